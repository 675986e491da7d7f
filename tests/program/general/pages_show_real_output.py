"""The examples of README.md, SECURITY.md and docs/ are real: they run here, and show what the program prints today.

usage: pages_show_real_output.py [--update] [PAGE...]      --update writes what the program prints into the pages

The words behind the three backquotes say what a block is:

    console            lines "$ COMMAND", each with what it prints on stdout below it; the commands run and must succeed
    console exit=N     the same with stdout and stderr, and the last command ends with exit status N
    sh                 a script, which runs and must succeed
    bash               not run, as it needs a cluster, a network or files of the reader; bash must be able to read it
    text, yaml         not run
    (others)           blocks that tests of their own run: TESTED_ELSEWHERE

A line `<!-- run: COMMAND -->` runs and is not shown. A block with needs=mpi or needs=torch is left out if that module is not built. All
blocks of a page run in one folder, one after the other; test_data is in it. Options of mckpt in the text, and in blocks of bash, are those
that its help lists; links lead to files and headings.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.setting import BUILD, MCKPT, SOURCE

TESTED_ELSEWHERE = {
    ("docs/python.md", "python"): "python/page_examples",
    ("docs/library.md", "cpp"): "build/installed_library",
    ("docs/library.md", "c"): "build/installed_library",
    ("docs/library.md", "cmake"): "build/installed_library",
    ("docs/adding_a_model.md", "json"): "program/ls/map_file_example",
    ("docs/json.md", ""): "program/general/json_is_documented",
    ("docs/mission.md", "shell"): "program/general/mission_lines_hold",
}
RUN_ELSEWHERE = {"docs/mission.md"}  # every command in its text runs in program/general/mission_lines_hold, also with options that are refused
NOT_RUN = {"text", "yaml"}
STEP = re.compile(r"^```(?P<words>[^\n]*)\n(?P<block>.*?)^```$|^<!-- run: (?P<hidden>.*?) -->$", re.M | re.S)
SHIM = '#!/bin/sh\nPATH=${PATH#*:} exec "%s/scripts/mpirun" "$@"\n' % SOURCE  # mpirun, as root and with more ranks than cores


def environment(folder):
    shims = os.path.join(folder, "bin")
    os.mkdir(shims)
    with open(os.path.join(shims, "mpirun"), "w", encoding="utf-8") as f:
        f.write(SHIM)
    os.chmod(f.name, 0o755)
    kept = {name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TMPDIR") if name in os.environ}
    return {**kept, "PATH": ":".join([shims, os.path.dirname(MCKPT), os.environ["PATH"]]), "HOME": folder, "LC_ALL": "C.UTF-8"}


def run(command, work, env, both=False):
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=work, env=env, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT if both else subprocess.PIPE, timeout=120)
    return done.returncode, done.stdout, done.stderr or ""


def shown(block, words, work, env):
    """The block as it should be, or None: each command, and below it what it prints."""
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    if not expect(commands, f"a console block without a command: {block!r}"):
        return None
    exits = [word[len("exit="):] for word in words if word.startswith("exit=")]
    out = ""
    for i, command in enumerate(commands):
        status, printed, errors = run(command, work, env, both=bool(exits))
        wanted = int(exits[0]) if exits and i == len(commands) - 1 else 0
        if not expect(status == wanted, f"{command}: exit status {status}, not {wanted}: {printed}{errors}"):
            return None
        out += "$ " + command + "\n" + printed.replace(work + "/", "")
    return out


helps = {}


def options_of(command, mode):
    """The options that a command has, as its help lists them; None if there is no such command."""
    key = (command, mode)
    if key not in helps:
        for flag in ("--help-all", "--help"):  # all options, where --help shows the most used
            done = subprocess.run([MCKPT, *filter(None, key), flag], text=True, capture_output=True, timeout=60)
            if done.returncode == 0:
                break
        helps[key] = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", done.stdout)) if done.returncode == 0 else None
    return helps[key]


def check_options(page, text):
    """Every option of `mckpt COMMAND ...` in a text is one of the command's."""
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        for words in re.findall(r"(?:^|[\s/(])mckpt ([a-z][^|;&<>#]*)", line):
            words = words.split()
            mode = words[1] if words[0] == "convert" and len(words) > 1 and re.fullmatch(r"[a-z]+(-[a-z]+)*", words[1]) else None
            known = options_of(words[0], mode)
            if not expect(known is not None, f"{page}: mckpt {words[0]} {mode or ''} is no command: {line.strip()}"):
                continue
            for option in re.findall(r"(?<!\S)(--?[a-z][\w-]*)", " ".join(words)):
                expect(option in known or option == "--help", f"{page}: {words[0]} {mode or ''} has no {option}: {line.strip()}")


def anchors_of(path):
    """The anchors of a page's headings, as GitHub makes them."""
    with open(path, encoding="utf-8") as f:
        headings = re.findall(r"^#+ (.*)$", f.read(), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(page, text):
    """Every link to a file leads to one, and to a heading of it."""
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        path = os.path.join(SOURCE, os.path.dirname(page), name) if name else os.path.join(SOURCE, page)
        found = os.path.exists(path)
        expect(found and (not anchor or anchor in anchors_of(path)), f"{page}: there is no {target}")


def check_page(page):
    """Runs the steps of a page; returns its text as it should be."""
    with open(os.path.join(SOURCE, page), encoding="utf-8") as f:
        text = f.read()
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder)
        work = os.path.join(folder, "work")
        os.mkdir(work)
        os.symlink(os.path.join(SOURCE, "test_data"), os.path.join(work, "test_data"))

        def real(step):
            words, block = (step["words"] or "").split(), step["block"]
            if not all(os.path.exists(os.path.join(BUILD, f"libmckpt_{word[6:]}.so")) for word in words if word.startswith("needs=")):
                return step[0]
            kind = "sh" if step["hidden"] else words[0] if words else ""
            where = f"{page}, line {text[:step.start()].count(chr(10)) + 1}"
            if kind == "console":
                block = shown(block, words, work, env)
                return step[0] if block is None else f"```{step['words']}\n{block}```"
            if kind == "sh":
                status, printed, errors = run(step["hidden"] or block, work, env)
                expect(status == 0, f"{where}: exit status {status}: {printed}{errors}")
            elif kind == "bash":
                readable = subprocess.run(["bash", "-n", "-c", block], text=True, capture_output=True, timeout=60)
                expect(readable.returncode == 0, f"{where}: {readable.stderr}")
                check_options(where, block)
            else:
                expect(kind in NOT_RUN or (page, kind) in TESTED_ELSEWHERE, f"{where}: no test runs a block of {kind!r}; text is not run")
            return step[0]

        updated = STEP.sub(real, text)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    check_links(page, prose)
    for span in [] if page in RUN_ELSEWHERE else re.findall(r"`(mckpt [^`\n]+)`", prose):
        check_options(page, span)
    return text, updated


def all_pages():
    found = glob.glob(os.path.join(SOURCE, "docs", "**", "*.md"), recursive=True)
    return ["README.md", "SECURITY.md"] + sorted(os.path.relpath(path, SOURCE) for path in found)


def main():
    pages = [argument for argument in sys.argv[1:] if argument != "--update"] or all_pages()
    for page in pages:
        text, updated = check_page(page)
        if "--update" in sys.argv:
            with open(os.path.join(SOURCE, page), "w", encoding="utf-8") as f:
                f.write(updated)
            continue
        for old, new in zip(STEP.finditer(text), STEP.finditer(updated)):
            expect(old[0] == new[0], f"{page} shows another output than this; read what changed, then run the test with --update:\n{new[0]}")
    finish(10)


main()
