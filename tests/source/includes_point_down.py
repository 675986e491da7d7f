"""A library includes only what is below it, and the folders inside a library have an order: no folder includes, over
others or at once, a folder that includes it. Prints the files that break this.

    core <- options, io, mappings <- hf <- convert <- page, live <- api <- tools; runtime sees core, runtime/system is below
    io; of convert, asked alone sees options
"""
import sys

from mckpt_tests.sources import include_graph, room

BELOW = {
    "core": [],
    "options": ["core"],
    "runtime/system": ["core"],
    "runtime": ["core", "runtime/system"],
    "mappings": ["core"],
    "io": ["core", "runtime/system"],
    "hf": ["core", "io", "mappings"],
    "convert": ["core", "io", "mappings", "hf", "runtime"],
    "convert/asked": ["core", "options", "io", "mappings", "hf", "convert"],
    "page": ["core", "io", "convert"],
    "live": ["core", "io", "mappings", "hf", "convert", "runtime", "runtime/system"],
    "api": ["core", "options", "io", "mappings", "hf", "convert", "convert/asked", "page", "live", "runtime"],
}
BELOW["tools"] = [*BELOW, "api"]

# Includes from folder to folder that close a circle today. One that no longer does must leave this list.
KNOWN = {
    # The registry of tables and the list of rules name what is in the folders below them.
    ("mappings", "mappings/models"),
    ("mappings", "mappings/rules"),
}

def library(file):
    """io for lib/io/zip/zip.h; the system functions, and where options become the engine's, are libraries of
    their own."""
    folder = room(file)
    return folder if folder in ("runtime/system", "convert/asked") else folder.split("/")[0]

def circle_from(start, edges):
    """The shortest way over folders from one back to itself, or None."""
    ways, seen = [[start]], set()
    for way in ways:
        for after in edges.get(way[-1], ()):
            if after == start:
                return [*way, start]
            if after not in seen:
                seen.add(after)
                ways.append([*way, after])
    return None

def main():
    broken, includes, used = [], {}, set()
    for file, targets in include_graph().items():
        for target in targets:
            of, to = library(file), library(target)
            used.add((of, to))
            if of != to and to not in BELOW[of]:
                broken.append(f"{file} includes {target}: {to} is not below {of}")
            if of == to and room(file) != room(target):
                includes.setdefault((room(file), room(target)), []).append(f"{file} includes {target}")

    for of, below in BELOW.items():
        broken += [f"{of} includes nothing of {to} any more: take it off BELOW" for to in below if of != "tools" and (of, to) not in used]

    edges = {}
    for of, to in includes:
        if (of, to) not in KNOWN:
            edges.setdefault(of, set()).add(to)
    reported = set()
    for folder in sorted(edges):
        circle = circle_from(folder, edges)
        if circle and not reported & set(circle):
            reported |= set(circle)
            broken.append("a circle of folders: " + " -> ".join(circle))
            for step in zip(circle, circle[1:]):
                broken += [f"    {text}" for text in includes[step][:4]]

    every = {}
    for of, to in includes:
        every.setdefault(of, set()).add(to)
    for of, to in sorted(KNOWN):
        alone = {folder: after - {to} if folder == of else after for folder, after in every.items()}
        if to not in every.get(of, ()) or circle_from(of, {**alone, of: {to}}) is None:
            broken.append(f"{of} -> {to} closes no circle any more: take it off the list KNOWN")
    print(f"{sum(map(len, includes.values()))} includes between {len({of for of, _ in includes} | {to for _, to in includes})} folders")
    print("\n".join(broken))
    return bool(broken) or not includes

sys.exit(main())
