"""--help of every command and mode fits a screen of 80 columns and 40 lines, and names --help-all, which has every option.
Each page has three examples, and every example is a line that the program understands.
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

from mckpt_tests.setting import MCKPT

LINES, COLUMNS, EXAMPLES = 40, 80, 3
USAGE = 2
faults = []


def check(right, what):
    if not right:
        faults.append(what)


def page(*words):
    environment = {**os.environ, "COLUMNS": str(COLUMNS)}
    return subprocess.run([MCKPT, *words], capture_output=True, text=True, check=True, env=environment).stdout


def lines_on_screen(text):
    return sum(max(1, -(-len(line) // COLUMNS)) for line in text.splitlines())


def is_understood(example, folder):
    """Whether the line is not refused as such. Its files are not there: the command ends with that."""
    line = re.sub(r"^mpirun -n \d+ ", "", example)
    line = line.replace("mckpt ", shlex.quote(MCKPT) + " ", 1)
    run = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, cwd=folder,
                         env={**os.environ, "HOME": folder})
    return run.returncode != USAGE, run.stderr


def look_at(command, folder):
    name = command["name"]
    short, whole = page(*name.split(), "--help"), page(*name.split(), "--help-all")
    check(lines_on_screen(short) <= LINES, f"{name} --help takes {lines_on_screen(short)} lines")
    check(short.splitlines()[-1].startswith(f"`mckpt {name} --help-all`"), f"{name} --help does not end with --help-all")
    check(len(command["examples"]) >= EXAMPLES, f"{name} has {len(command['examples'])} examples")
    lines = re.sub(r" \\\n +", " ", short.split("\nExamples\n")[1].split("\n\n")[0]).splitlines()
    shown = [line.strip() for line in lines]
    check(shown == command["examples"][:EXAMPLES], f"{name} --help shows other examples: {shown}")
    for option in command["options"]:
        left = ", ".join(option["names"])
        check(re.search(rf"^ +{re.escape(left)}(?![\w-])", whole, re.M), f"{name} --help-all lacks {left}")
        there = bool(re.search(rf"^ +{re.escape(left)}(?![\w-])", short, re.M))
        check(there == option["common"], f"{name} --help: {left} is shown: {there}")
        check(not (option["common"] and option["needs"]), f"{name}: {left} needs {option['needs']}, and is common")
        if option["words"] and left != "--accept":
            unsaid = [word for word in option["words"] if word not in option["help"]]
            check(not unsaid, f"{name}: the help of {left} does not name {unsaid}")
    for example in command["examples"]:
        understood, said = is_understood(example, folder)
        check(understood, f"{name}: {example} is refused: {said}")


commands = json.loads(page("help", "--json"))["commands"]
assert len(commands) >= 24, len(commands)
with tempfile.TemporaryDirectory() as empty:
    os.mkdir(os.path.join(empty, "Qwen3-30B-A3B"))  # `layout` takes a folder that is not there for a shape
    for each in commands:
        look_at(each, empty)
print(f"{len(commands)} pages, {len(faults)} faults")
sys.exit("\n".join(faults) if faults else 0)
