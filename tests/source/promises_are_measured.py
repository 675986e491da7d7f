"""Every promise of docs/reliability.md has programs that scripts/trust runs, and these are there; what a run does not measure is not in its
table as measured."""

import os
import re
import subprocess
import sys
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.promises import PARTS, PROMISES
from mckpt_tests.setting import SOURCE

TRUST = os.path.join(SOURCE, "scripts", "trust")
with open(os.path.join(SOURCE, "docs", "reliability.md")) as f:
    page = f.read()
promised = page.split("<!-- figures")[0]
expect_equal("promises of the page", re.findall(r"^\| (P\d+) \|", promised, re.M), list(PROMISES))
for part in PARTS:
    expect(os.path.isfile(os.path.join(SOURCE, "tests", part.path)), f"there is no tests/{part.path}")
    expect(set(part.promises) <= set(PROMISES), f"{part.path}: {part.promises}")
for promise in PROMISES:
    expect(any(promise in part.promises for part in PARTS), f"nothing measures {promise}")


def trust(*words, build):
    return subprocess.run([sys.executable, TRUST, "--build", build, *words], capture_output=True, text=True)


with tempfile.TemporaryDirectory() as build:
    program = os.path.join(build, "mckpt")
    with open(program, "w") as f:
        f.write("#!/bin/sh\n[ \"$1\" != --version ] || echo mckpt 0.0; exit 1\n")
    os.chmod(program, 0o755)
    copy = os.path.join(build, "page.md")
    with open(copy, "w") as f:
        f.write(page)
    late = trust("--only", "P16", "--minutes", "0", "--write", copy, build=build)
    expect(late.returncode == 1 and "not run: the time was over" in late.stdout, f"no time: {late.stdout} {late.stderr}")
    with open(copy) as f:
        written = f.read()
    expect(written.count("| P16 | ") == 2 and written.split("<!-- figures")[0] == promised, f"the page: {written}")
    trust("--only", "P15", "--minutes", "0", "--write", copy, "--add", build=build)
    with open(copy) as f:
        added = f.read()
    expect(added.count("Measured by") == 2 and added.replace("\n", "").startswith(written.split("<!-- end")[0].replace("\n", "")), f"added: {added}")
    broken = trust("--only", "P16", "--small", build=build)  # of a program that can do nothing
    expect(broken.returncode == 1 and "**short**" in broken.stdout and "failed with status" in broken.stdout, f"a broken program: {broken.stdout}")
    expect(trust("--only", "P20", build=build).returncode == 1, "a promise that is not there")
finish(40)
