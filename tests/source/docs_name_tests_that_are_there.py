"""The tests that the documents name, in backquotes and by their paths below tests/, are there."""
import glob
import os
import re
import sys

from mckpt_tests.setting import SOURCE

NAME = re.compile(r"`((?:unit|program|python|judges|faults|source)/[a-z0-9_/]+)`|tests/((?:[a-z_]+/)+[a-z0-9_]+\.(?:cc|py|sh|h))")


def is_there(name):
    path = os.path.join(SOURCE, "tests", name)
    return any(map(os.path.exists, (path, path + ".sh", path + ".py", path + "_test.cc")))


named, missing = 0, []
for document in sorted(glob.glob(os.path.join(SOURCE, "docs", "**", "*.md"), recursive=True)) + [os.path.join(SOURCE, "README.md")]:
    with open(document) as f:
        for found in NAME.finditer(f.read()):
            named += 1
            name = found[1] or found[2]
            if not is_there(name):
                missing.append(f"{os.path.relpath(document, SOURCE)}: there is no test {name}")
print(f"{named} names")
print("\n".join(missing))
sys.exit(bool(missing) or named < 50)
