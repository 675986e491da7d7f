"""Prints the source files that cannot share a translation unit with others of their library, for unity builds: those that
give a name of their own (in an unnamed namespace, or by #define) which another file gives too, or which is a type of a
header. They are compiled alone. What is found by looking at the text may be more than has to be.

usage: unity_strangers.py ROOT FILE...      ROOT: where the headers are; the files of one library
"""
import collections
import os
import re
import sys

CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)
TYPE = re.compile(r'^(?:template\s*<.*?>\s*)?(?:struct|class|union|enum(?:\s+class)?)\s+(\w+)', re.S)
USING = re.compile(r'^using\s+(\w+)\s*=(.*)', re.S)
TEST = re.compile(r'^TEST(?:_F|_P)?\s*\((\s*\w+\s*,\s*\w+\s*)\)')


def declared(text):
    """The name that a declaration gives, from its text up to its body, its value or its end."""
    for pattern in (TEST, TYPE):
        found = pattern.match(text)
        if found:
            return re.sub(r"\s", "", found[1])
    if USING.match(text):
        return USING.match(text)[1]
    before = re.split(r"\(|=", re.sub(r"^template\s*<.*?>\s+(?=\w)", "", text, flags=re.S))[0].strip()
    names = re.findall(r"\w+", re.sub(r"\[.*", "", before))
    return names[-1] if names and "::" not in before.rsplit(None, 1)[-1] else None


def own_names(path):
    """What a file declares in unnamed namespaces, each with the named namespaces around it, and its macros."""
    with open(path) as f:
        text = CODE.sub(" ", f.read())
    names = {("#", name) for name in re.findall(r"^\s*#\s*define\s+(\w+)", text, re.M)}
    text = re.sub(r"^\s*#[^\n]*(?:\\\n[^\n]*)*", "", text, flags=re.M)
    scopes, start, depth = [], 0, 0  # depth: of braces that are no namespace
    for mark in re.finditer(r"[{};]", text):
        before = text[start:mark.start()].strip()
        if mark[0] == "{":
            space = re.search(r"(?:^|\s)(?:inline\s+)?namespace\s*([\w:]*)$", before) if depth == 0 else None
            if space:
                scopes.append(space[1])
                start = mark.end()
                continue
            depth += 1
            if depth > 1:
                continue
        elif mark[0] == "}":
            if depth == 0 and scopes:
                scopes.pop()
            depth = max(0, depth - 1)
            if depth == 0:
                start = mark.end()
            continue
        elif depth > 0:
            continue
        if "" in scopes and before and not before.startswith(("namespace", "static_assert", "friend")):
            name = declared(before)
            if name:
                names.add(("::".join(scope for scope in scopes if scope), name))
        if mark[0] == ";":
            start = mark.end()
    return names


def header_types(root):
    types = set()
    for top in ("lib", "mappings", "tools", "tests"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith(".h"):
                    with open(os.path.join(folder, name)) as f:
                        types |= set(re.findall(r"^(?:struct|class|enum class|enum) (\w+)", f.read(), re.M))
    return types


def main():
    root, files = sys.argv[1], sys.argv[2:]
    types, owners = header_types(root), collections.defaultdict(list)
    for file in files:
        for name in own_names(os.path.join(root, file)):
            owners[name].append(file)
    strangers = {file for (_, name), of in owners.items() if len(of) > 1 or name in types for file in of[0 if name in types else 1:]}
    print(";".join(sorted(strangers)), end="")


main()
