"""Sorts the source files of a library into groups that can each be one translation unit, for unity builds: no two files
of a group give the same name in an unnamed namespace, or by #define. Where a file so gives a name, none of its group calls
a function of a header that has it, as the name hides that function, or includes a header with a type or a constant that
has it, as neither can then be meant. It looks at the text alone, so two files may be apart that need not be.

usage: unity_groups.py ROOT FOLDER MOST FILE...      ROOT: where the headers are; FOLDER: what files are relative to;
prints a line "GROUP FILE" for each file that has a group, of at most MOST files
"""
import os
import re
import sys

CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)
TYPE = re.compile(r'^(?:template\s*<.*?>\s*)?(?:struct|class|union|enum(?:\s+class)?)\s+(\w+)', re.S)
USING = re.compile(r'^using\s+(\w+)\s*=')
TOPS = ("", "lib", "lib/api", "tools", "tests")  # where the paths of includes begin
TYPES = r"^(?:struct|class|enum class|enum) (\w+)"
CONSTANTS = r"^(?:inline |static )?(?:constexpr|const) [\w:<>]+ (\w+)(?:\[| =|\{|;)"
FUNCTIONS = r"^[\w:<>,&* \[\]]*?[\w>&*] [&*]?(\w+)\("
TEST = re.compile(r'^TEST(?:_F|_P)?\s*\((\s*\w+\s*,\s*\w+\s*)\)')


def declared(text):
    """The names that a declaration gives, from its text up to its body or its end."""
    for pattern in (TEST, TYPE, USING):
        found = pattern.match(text)
        if found:
            return [re.sub(r"\s", "", found[1])]
    before = re.split(r"\(|=", re.sub(r"^template\s*<.*?>\s+(?=\w)", "", text, flags=re.S))[0].strip()
    words = re.findall(r"\w+", re.sub(r"\[.*", "", before))
    if not words or "::" in before.rsplit(None, 1)[-1]:
        return []
    values = [] if text[len(before):].lstrip().startswith("(") else re.findall(r"(\w+)\s*=(?!=)", text)  # a = 1, b = 2
    return [words[-1], *values]


def with_tables(root, text):
    """A text with what it includes from tables, which are files that end in .inc."""
    def content(include):
        for path in (os.path.join(root, top, include[1]) for top in TOPS):
            if os.path.exists(path):
                with open(path) as f:
                    return f.read()
        return ""
    return re.sub(r'^#include "([^"]+\.inc)"', content, text, flags=re.M)


def own_names(text):
    """The names that the text of a file declares in unnamed namespaces, each with the named namespaces around it, and
    its macros."""
    text = CODE.sub(" ", text)
    names = {("#", name) for name in re.findall(r"^\s*#\s*define\s+(\w+)", text, re.M)}
    text = re.sub(r"^\s*#[^\n]*(?:\\\n[^\n]*)*", "", text, flags=re.M)
    scopes, start, depth = [], 0, 0  # depth: of braces that are not namespace
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
            space = "::".join(scope for scope in scopes if scope)
            names |= {(space, name) for name in declared(before)}
        if mark[0] == ";":
            start = mark.end()
    return names


def headers_of(root):
    """The text of each header of the tree, by its path."""
    texts = {}
    for top in ("lib", "mappings", "tools", "tests"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith(".h"):
                    path = os.path.join(folder, name)
                    with open(path) as f:
                        texts[os.path.relpath(path, root)] = f.read()
    return texts


class Visible:
    """The types and constants that files see in the headers that they include, and that those include."""

    def __init__(self, headers):
        self.own = {path: set(re.findall(TYPES, text, re.M)) | set(re.findall(CONSTANTS, text, re.M))
                    for path, text in headers.items()}
        self.included = {path: self.paths(text) for path, text in headers.items()}

    def paths(self, text):
        named = re.findall(r'^\s*#\s*include "([^"]+)"', text, re.M)
        return {path for name in named for path in (os.path.join(top, name) for top in TOPS)
                if path in self.own}

    def names(self, text):
        seen, left = set(), self.paths(text)
        while left:
            seen |= left
            left = set().union(*(self.included[path] for path in left)) - seen
        return set().union(*(self.own[path] for path in seen))


def main():
    root, folder, most, files = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    headers = headers_of(root)
    visible = Visible(headers)
    # A name in an unnamed namespace hides functions of the same name.
    functions = set().union(*(re.findall(FUNCTIONS, text, re.M) for text in headers.values()))
    # A group: its files; the names that they give in unnamed namespaces, and which of them functions of headers have;
    # the functions of headers that they call; the types and constants of headers that they see.
    groups = []
    for file in files:
        path = os.path.join(folder, file)
        with open(path) as f:
            text = f.read()
        given = own_names(with_tables(root, text))
        names = {name for _, name in given}
        hiding = names & functions
        calls = set(re.findall(r"\b(\w+)\s*\(", CODE.sub(" ", text))) & functions
        sees = visible.names(text)
        for group in groups:
            together, known, hidden, called, seen = group
            if len(together) < most and not (known & given or hidden & calls or called & hiding or seen & names
                                             or sees & {name for _, name in known}):
                break
        else:
            groups.append(group := ([], set(), set(), set(), set()))
        group[0].append(file)
        for known, more in zip(group[1:], (given, hiding, calls, sees)):
            known.update(more)
    for number, (together, *_) in enumerate(groups):
        for file in together:
            print(f"{number} {file}")


main()
