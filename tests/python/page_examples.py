"""The Python blocks of docs/python.md run, one after the other, and the values in their comments are right.

A line `expression    # -> text` is checked: the text is what Python shows of the value, or how it begins, if it ends in "...".
"""
from mckpt_tests.checks import need

need("torch", "numpy")
import os
import re
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.package import SOURCE
from mckpt_tests.setting import TINY_MODEL

PAGE = os.path.join(SOURCE, "docs", "python.md")
ANSWER = re.compile(r"^(?P<code>\S.*?)\s+# -> (?P<text>.+)$")


def run_block(block, names, first_line):
    """Runs the block up to each line with an answer, and the rest."""
    waiting = []

    def run():
        # Empty lines in front keep the line numbers of the page in error messages.
        exec(compile("\n" * (start - 1) + "\n".join(waiting), PAGE, "exec"), names)

    start = first_line
    for number, line in enumerate(block.splitlines(), first_line):
        answer = ANSWER.match(line)
        if not answer:
            waiting.append(line)
            continue
        run()
        waiting, start = [], number + 1
        shown = repr(eval(answer["code"], names))
        text = answer["text"]
        right = shown.startswith(text[:-3]) if text.endswith("...") else shown == text
        expect(right, f"line {number}: {answer['code']} is {shown}, not {text}")
    run()


with open(PAGE, encoding="utf-8") as f:
    page = f.read()
names = {}
with tempfile.TemporaryDirectory() as folder:
    shutil.copytree(TINY_MODEL, os.path.join(folder, "tiny_qwen3_moe"))
    os.chdir(folder)
    for block in re.finditer(r"^```python\n(.*?)^```", page, re.M | re.S):
        run_block(block[1], names, page[: block.start(1)].count("\n") + 1)
finish(15)
