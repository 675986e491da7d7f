#!/usr/bin/env python3
"""Files whose names would meet in one translation unit are in different groups of a unity build, and others are together."""
import os
import subprocess
import sys
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.setting import SOURCE

SCRIPT = os.path.join(SOURCE, "cmake", "unity_groups.py")
FILES = {
    "lib/io/limits.h": 'inline constexpr std::string_view kNone = "none";\nstruct Row {\n};\ni64 count_of(int);\n',
    "lib/io/table.inc": "constexpr int kRows[] = {1, 2};\n",
    "lib/io/above.h": '#include "io/limits.h"\n',
}


def grouped(folder, pair):
    """True if two files with these texts are in one group."""
    names = ["first.cc", "second.cc"]
    for name, text in zip(names, pair):
        with open(os.path.join(folder, "lib", "io", name), "w") as f:
            f.write(text)
    lines = subprocess.run([sys.executable, SCRIPT, folder, os.path.join(folder, "lib", "io"), "10", *names],
                           check=True, text=True, capture_output=True).stdout.splitlines()
    groups = dict(reversed(line.split()) for line in lines)
    expect(sorted(groups) == names, f"groups of {sorted(groups)}")
    return groups["first.cc"] == groups["second.cc"]


def unnamed(text, *included):
    return "".join(f'#include "io/{name}"\n' for name in included) + f"namespace mckpt {{\nnamespace {{\n{text}\n}}\n}}\n"


def main(folder):
    os.makedirs(os.path.join(folder, "lib", "io"))
    for path, text in FILES.items():
        with open(os.path.join(folder, path), "w") as f:
            f.write(text)
    plain = "int sum() { return 1; }"
    for why, first, second, together in (
            ("two names", unnamed("int a = 1;"), unnamed("int b = 2;"), True),
            ("one name twice", unnamed("int a = 1;"), unnamed("int a = 2;"), False),
            ("one name twice, the second in a list", unnamed("int b = 1;"), unnamed("int a = 1, b = 2;"), False),
            ("one macro twice", "#define EACH 1\n" + plain, "#define EACH 2\n", False),
            ("a name that a table gives", unnamed('#include "io/table.inc"'), unnamed("int kRows = 2;"), False),
            ("a constant of a header that the other includes", unnamed("int kNone = 1;"), unnamed("int b = 2;", "limits.h"), False),
            ("a constant of a header that a header includes", unnamed("int b = 1;", "above.h"), unnamed("int kNone = 2;"), False),
            ("a type of a header that the other includes", unnamed("struct Row {};"), unnamed("int b = 2;", "limits.h"), False),
            ("a constant of a header that neither includes", unnamed("int kNone = 1;"), unnamed("int b = 2;"), True),
            ("a function of a header that the other calls", unnamed("int count_of = 1;"),
             unnamed("int b = count_of(2);", "limits.h"), False)):
        expect(grouped(folder, (first, second)) == together, f"{why}: {'' if together else 'not '}in one group")
    finish(20)


with tempfile.TemporaryDirectory() as made:
    main(made)
