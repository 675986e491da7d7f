"""`python -m mckpt` and mckpt.program() find the program of a source tree and of an installed folder, and say in one line where it was
looked for. usage: the_program_is_found.py"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from mckpt_tests.package import PACKAGE, run


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = os.path.realpath(self.folder.name)

    def python(self, packages, *words):
        """Python with a copy of the package in a folder of the root, without what another package of the name says."""
        at = os.path.join(self.root, packages)
        shutil.copytree(os.path.join(PACKAGE, "mckpt"), os.path.join(at, "mckpt"), dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        env = {**os.environ, "PYTHONPATH": at, "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([sys.executable, *words], env=env, cwd=self.root, capture_output=True, text=True)

    def program(self, *names):
        path = os.path.join(self.root, *names)
        os.makedirs(os.path.dirname(path))
        with open(path, "w") as f:
            f.write('#!/bin/sh\necho "$0 $*"\nexit 3\n')
        os.chmod(path, 0o755)
        return path

    def test_it_is_found(self):
        for packages, names in (("tools/python", ("build", "mckpt")), ("lib/python", ("bin", "mckpt"))):
            with self.subTest(packages):
                path = self.program(*names)
                done = self.python(packages, "-m", "mckpt", "ls", "two words")
                self.assertEqual((done.returncode, done.stdout), (3, f"{path} ls two words\n"), done.stderr)
                done = self.python(packages, "-c", "import mckpt; print(mckpt.program())")
                self.assertEqual(done.stdout, f"{path}\n", done.stderr)
                os.remove(path)

    def test_it_is_missing(self):
        done = self.python("tools/python", "-m", "mckpt", "--version")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (127, "", 1), done.stderr)
        self.assertIn(os.path.join(self.root, "build", "mckpt"), done.stderr)
        self.assertIn("cmake --build build --target mckpt", done.stderr)
        done = self.python("tools/python", "-c", "import mckpt; mckpt.program()")
        self.assertIn("FileNotFoundError", done.stderr)


run()
