"""The tests that need the standard library alone pass with every Python from 3.10 on that is here; none of them has to have
numpy or torch."""
import glob
import os
import shutil
import subprocess
import sys

from mckpt_tests.checks import expect, finish, skip
from mckpt_tests.package import SOURCE

TESTS = ["works_without_numpy.py", "conversions.py", "differences.py", "settings_are_known.py"]
VERSION = "import sys; print(*sys.version_info[:2])"


def pythons():
    """version -> a Python of that version other than the one that runs this"""
    names = [f"python3.{minor}" for minor in range(10, 30)]
    places = [shutil.which(name) for name in ["python3", *names]]
    places += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")))
    found = {}
    for place in filter(None, places):
        answer = subprocess.run([place, "-c", VERSION], capture_output=True, text=True, check=False)
        version = tuple(map(int, answer.stdout.split()))
        if answer.returncode == 0 and version >= (3, 10) and version != sys.version_info[:2]:
            found.setdefault(version, place)
    return found


found = pythons()
if not found:
    skip("there is no other Python from 3.10 on")
for version, python in sorted(found.items()):
    for test in TESTS:
        # -S: without packages that somebody has installed for it
        done = subprocess.run([python, "-S", os.path.join(SOURCE, "tests", "python", test)], capture_output=True, text=True, check=False)
        expect(done.returncode == 0, f"{python} {test}:\n{done.stdout}{done.stderr}")
        print(".".join(map(str, version)), test, done.stderr.strip().splitlines()[-1])
finish(len(TESTS))
