"""The places that the documentation names exist, and contain what it says they contain.

usage: MCKPT_SOURCE=FOLDER map_is_true.py

In every page, a name in backquotes that begins with a folder of the project is a file or folder: `lib/io/store/store.h`,
`io/store/store` (the same without lib/ and without the ending), `lib/io/store/store.{h,cc}`, or a test: `faults/stopped_runs`.
Names in backquotes after "FILE: " are functions or types that the file contains: `lib/io/store/store.h`: `Store`, `open_store`.

docs/map.md names every folder of lib/, mappings/ and tools/ that has source files, and its rows are short: whoever looks for a
place reads one line.
"""
import glob
import os
import re
import sys

ROOT = os.environ["MCKPT_SOURCE"]
MAP, LONGEST_ROW = "docs/map.md", 200
SOURCES = (".h", ".cc", ".cu", ".inc", ".py", ".js", ".css", ".html")
# CHANGELOG.md, too: it is for users, and names no place in the code but scripts.
PAGES = ["README.md", "SECURITY.md", "CHANGELOG.md"] + sorted(
    os.path.relpath(p, ROOT) for p in glob.glob(os.path.join(ROOT, "docs/**/*.md"), recursive=True))
TOP = ["lib", "mappings", "tools", "tests", "docs", "scripts", "cmake", "test_data"]
TESTS = ["faults", "judges", "program", "python", "unit"]
LIBRARIES = ["api", "core", "options", "io", "hf", "convert", "page", "runtime", "live"]
PATH = re.compile(r"^(?:%s)/[\w./{},*-]*$" % "|".join(TOP + TESTS + LIBRARIES))


def files_of(name):
    """The files or folders that the name stands for; [] if one of them does not exist."""
    if "{" in name:
        front, endings, back = re.match(r"(.*)\{(.*)\}(.*)", name).groups()
        found = [files_of(front + ending + back) for ending in endings.split(",")]
        return sum(found, []) if all(found) else []
    top = name.split("/")[0]
    bases = [name] if top in TOP else ["tests/" + name] if top in TESTS else ["lib/" + name]
    for base in bases:
        if "*" in base:
            found = [os.path.relpath(p, ROOT) for p in glob.glob(os.path.join(ROOT, base))]
        else:
            found = [base + e for e in ("", ".h", ".cc", ".py", ".sh", "_test.cc") if os.path.exists(os.path.join(ROOT, base + e))]
        if found:
            return found
    return []


def contains(paths, word):
    pattern = re.compile(r"(?<![\w])%s(?![\w])" % re.escape(word.removesuffix("()")))
    return any(os.path.isfile(os.path.join(ROOT, p)) and pattern.search(open(os.path.join(ROOT, p), encoding="utf-8").read()) for p in paths)


def text_of(page):
    return open(os.path.join(ROOT, page), encoding="utf-8").read()


def folders_with_sources():
    for top in ("lib", "mappings", "tools"):
        for folder, _, files in os.walk(os.path.join(ROOT, top)):
            if any(f.endswith(SOURCES) for f in files):
                yield os.path.relpath(folder, ROOT)


faults, places, words = [], 0, 0
for number, line in enumerate(text_of(MAP).splitlines(), 1):
    if line.startswith("|") and len(line) > LONGEST_ROW:
        faults.append(f"{MAP}:{number}: a row of {len(line)} characters; at most {LONGEST_ROW}: one or two places, the rest is in their heads")
named, folders = set(re.findall(r"`([^`\n]+)`", text_of(MAP))), list(folders_with_sources())
faults += [f"{MAP} does not name the folder `{f}`" for f in folders if f not in named]
for page in PAGES:
    text = re.sub(r"^```.*?^```", "", text_of(page), flags=re.M | re.S)
    for m in re.finditer(r"`([^`\n]+)`((?::| and|,)? (?:`[^`\n]+`(?:, )?)+)?", text):
        names = re.findall(r"`([^`\n]+)`", m[0])
        listing = m[2] is not None and m[2].startswith(":")
        for n, name in enumerate(names):
            if PATH.match(name):
                places += 1
                found = files_of(name)
                if not found:
                    faults.append(f"{page}: `{name}` does not exist")
            elif listing and n > 0 and PATH.match(names[0]):
                words += 1
                if not contains(files_of(names[0]), name):
                    faults.append(f"{page}: {names[0]} does not contain `{name}`")
print(f"{len(PAGES)} pages, {places} places, {words} names in them, {len(folders)} folders")
assert len(PAGES) >= 30 and len(folders) >= 60, "too few pages or folders were found: does MCKPT_SOURCE name the project?"
assert places >= 60, "too few places were found: has the form of the pages changed?"
assert words >= int(os.environ.get("MAP_WORDS", "60")), "too few functions were found: has the form of docs/map.md changed?"
if faults:
    sys.exit("\n".join(faults))
