"""The output that README.md shows below each `$ mckpt ...` is what the program prints.

usage: readme_shows_real_output.py [--update]      --update writes what it prints into README.md
"""
import os
import re
import subprocess
import sys
import tempfile

from mckpt_tests.setting import MCKPT, SOURCE

PROGRAM, ROOT = MCKPT, SOURCE
README = os.path.join(ROOT, "README.md")
ENVIRONMENT = {
    "PATH": os.path.dirname(PROGRAM) + ":" + os.environ["PATH"],
    "LC_ALL": "C.UTF-8",
    "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", ""),
}


def shown(block, folder):
    """The block as it should be: each command, and below it what it prints. What one block makes the next ones find."""
    commands = [line for line in block.splitlines() if line.startswith("$ ")]
    assert commands, f"a console block without a command: {block!r}"
    out = ""
    for command in commands:
        run = subprocess.run(["bash", "-c", command[2:]], cwd=folder, env=ENVIRONMENT, text=True, capture_output=True, timeout=60)
        assert run.returncode == 0, f"{command}: exit {run.returncode}: {run.stderr}"
        out += command + "\n" + run.stdout
    return out


def main():
    text = open(README, encoding="utf-8").read()
    pattern = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.M | re.S)
    blocks = pattern.findall(text)
    assert len(blocks) >= 3, "README.md has lost its examples"
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(ROOT, "test_data"), os.path.join(folder, "test_data"))
        real = {block: shown(block, folder) for block in blocks}
    if "--update" in sys.argv:
        with open(README, "w", encoding="utf-8") as f:
            f.write(pattern.sub(lambda m: real[m[0]], text))
        return
    stale = [block.splitlines()[0] for block in blocks if real[block] != block]
    if stale:
        sys.exit("README.md shows another output than: " + "; ".join(stale) + "\nread what changed, then run this with --update")


main()
