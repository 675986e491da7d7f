"""mypy --strict finds nothing in the package, for every version of Python that it is for, with torch and numpy and without; nor in
programs that use every public name (tests/support/typed). It does find a wrong use."""
from mckpt_tests.checks import need

need("mypy")
import os
import re
import subprocess
import sys
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.package import PACKAGE, SOURCE
from mckpt_tests.setting import TINY_MODEL

import mckpt

TYPED = os.path.join(SOURCE, "tests", "support", "typed")
USES = os.path.join(TYPED, "every_name.py")


def mypy(folder, *words):
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={folder}/cache", *words]
    return subprocess.run(command, cwd=folder, env={**os.environ, "MYPYPATH": PACKAGE}, capture_output=True, text=True, check=False)


with open(USES, encoding="utf-8") as f:
    program = f.read()
for name in mckpt.__all__:
    expect(re.search(rf"\bmckpt\.{name}\b", program), f"{USES} does not use {name}")

with tempfile.TemporaryDirectory() as folder:
    done = subprocess.run([sys.executable, USES, TINY_MODEL, folder], env={**os.environ, "PYTHONPATH": PACKAGE}, capture_output=True, text=True, check=False)
    expect(done.stdout == "every name works\n", done.stdout + done.stderr)
    # mypy itself supports no version before 3.10; the newest one that it knows is its own default at most.
    for words in (["--python-version", "3.10"], ["--python-version", "3.13"], ["--no-site-packages"]):
        done = mypy(folder, *words, "-p", "mckpt")
        expect(done.returncode == 0 and "no issues" in done.stdout, f"mypy --strict {' '.join(words)}:\n{done.stdout}{done.stderr}")
    done = mypy(folder, TYPED)
    expect(done.returncode == 0 and "no issues" in done.stdout, f"mypy --strict {TYPED}:\n{done.stdout}{done.stderr}")
    wrong = os.path.join(folder, "wrong.py")
    with open(wrong, "w", encoding="utf-8") as f:
        f.write("import mckpt\nshape: int = mckpt.open('a')['b'].shape\nmckpt.diff('a', 'b').rows[0].kinds\n")
        f.write("mckpt.plan('a', 'b', to='fsdp', tp='2')\nmckpt.convert('a', 'b', to='fspd')\nmckpt.export('a', 'b', tp=2)\nmckpt.load('a', stratgy='optim')\n")
        f.write("mckpt.verify('a', against='b', weights_only=3)\nmckpt.open_as_fsdp('a', source_tp='2')\nmckpt.diff('a', 'b', path_tpp=2)\n")
    done = mypy(folder, wrong)
    expect(done.stdout.count("error:") == 9, f"mypy does not know the types of the package:\n{done.stdout}{done.stderr}")
finish(30)
