"""Every promise of docs/reliability.md has programs that scripts/trust runs, and these are there; what a run does not measure is not in its
table as measured."""

import os
import re
import subprocess
import sys
import tempfile

from mckpt_tests import figures_page
from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.figures_page import Row
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
        expect_equal("the page around the table", f.read().split("<!-- figures")[0], promised)
    broken = trust("--only", "P16", "--small", build=build)  # of a program that can do nothing
    expect(broken.returncode == 1 and "**short**" in broken.stdout and "failed with status" in broken.stdout, f"a broken program: {broken.stdout}")
    for unknown in ("P20", "faults/no_such_program"):
        expect(trust("--only", unknown, build=build).returncode == 1, f"--only {unknown}")

    # A run replaces the rows of what it measured, and those alone; what it could not run replaces nothing that was measured.
    def row(part, reached, run="", what=""):
        return Row("P16", part, what, "no failure", reached, True, 1, run)

    old = [row("faults/one", "8 of 8", "a", "races"), row("faults/one", "all", "a"), row("faults/two", "5 of 5", "a"), row("faults/three", "not run here: no disk", "a")]
    new = [row("faults/one", "9 of 9", "b", "races"), row("faults/two", "not run here: not root", "b"), row("faults/three", "7 of 7", "b")]
    rows = figures_page.merged(old, new)
    expect_equal("rows of two runs", sorted((r.part, r.reached) for r in rows), [("faults/one", "9 of 9"), ("faults/three", "7 of 7"), ("faults/two", "5 of 5")])
    lines = figures_page.table(rows, {"a": "first", "b": "second", "c": "nothing of it is left"}, {"P16": "one of two writers wins"}, ["faults/two", "faults/one"])
    expect_equal("runs that the table names", [line for line in lines if line.startswith("- ")], ["- a: first", "- b: second"])
    figures_page.write(copy, lines)
    again, runs = figures_page.read(copy)
    expect_equal("the table that is read again", figures_page.table(again, runs, {"P16": "one of two writers wins"}, ["faults/two", "faults/one"]), lines)
    expect_equal("order of its rows", [r.part for r in again], ["faults/two", "faults/one", "faults/three"])
finish(45)
