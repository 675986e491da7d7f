"""The source tree as its #include lines show it."""
import os
import re

from mckpt_tests.setting import SOURCE

LIBRARIES = "lib"  # lib/io/zip/zip.h is included as "io/zip/zip.h", mappings/rule.h as "mappings/rule.h"; public headers as "mckpt/plans.h"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def product_files(*suffixes):
    """Paths below the source tree of everything that is built into the program."""
    found = []
    for top in (LIBRARIES, "mappings", "tools"):
        for folder, _, names in os.walk(os.path.join(SOURCE, top)):
            found += [os.path.relpath(os.path.join(folder, name), SOURCE) for name in names if name.endswith(suffixes)]
    return sorted(found)


def read(path):
    with open(os.path.join(SOURCE, path)) as f:
        return f.read()


def include_graph():
    """file -> the files of the tree that it includes"""
    files = product_files(".h", ".cc", ".cu", ".inc")
    known = set(files)
    graph = {}
    for file in files:
        named = [(f"{LIBRARIES}/{name}", f"{LIBRARIES}/options/{name}", f"{LIBRARIES}/api/{name}", f"tools/{name}", name)
                 for name in INCLUDE.findall(read(file))]
        graph[file] = [path for candidates in named for path in candidates if path in known]
    return graph


def room(file):
    """The folder that a file is in, as includes name it: io/zip, mappings/rules, tools/render."""
    return os.path.dirname(file.removeprefix(LIBRARIES + "/"))
