"""mckpt.plot() and the page of mckpt.diff(): the picture is the program's, whole and damaged checkpoints are
told apart, and a checkpoint that cannot be drawn is an error. usage: pictures.py, with any Python from
3.10 on"""
import os
import tempfile
import unittest
from pathlib import Path

from mckpt_tests.package import run
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

import mckpt

HOLE = os.path.join(DATA, "dcp", "variations", "hole")


class Pictures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def plot(self, path, name, **how):
        return mckpt.plot(path, self.folder / name, progress=False, **how)

    def test_pictures_are_those_of_the_program(self):
        for name, how, words in (("a.html", {}, []), ("b.svg", {}, []), ("c.html", {"stats": True, "names": "*.norm.weight"}, ["--stats", "*.norm.weight"]),
                                 ("d.html", {"names": r"layers\.1\.", "regex": True}, ["--regex", r"layers\.1\."])):
            with self.subTest(name):
                self.assertTrue(self.plot(TINY_MODEL, name, **how))
                run_mckpt("plot", TINY_MODEL, *words, "-o", self.folder / ("of_the_program_" + name), "-q")
                self.assertEqual((self.folder / name).read_text(), (self.folder / ("of_the_program_" + name)).read_text())

    def test_the_page_of_a_difference_is_that_of_the_program(self):
        other = os.path.join(DATA, "quantized/gpt_oss")
        found = mckpt.diff(TINY_MODEL, other, html=self.folder / "d.html", progress=False)
        self.assertFalse(found.equal)
        run_mckpt("diff", TINY_MODEL, other, "--html", self.folder / "of_the_program.html", "-q")
        self.assertEqual((self.folder / "d.html").read_text(), (self.folder / "of_the_program.html").read_text())
        self.assertRaisesRegex(mckpt.Error, "`html` makes a page", lambda: mckpt.diff(TINY_MODEL, TINY_MODEL, html="d.svg", progress=False))

    def test_damage_is_drawn_and_told(self):
        self.assertFalse(self.plot(HOLE, "hole.html"))
        self.assertIn('"hole"', (self.folder / "hole.html").read_text())

    def test_what_cannot_be_drawn_is_an_error(self):
        self.assertRaisesRegex(mckpt.Error, "MC0002|ending", lambda: self.plot(TINY_MODEL, "picture.png"))
        self.assertRaisesRegex(mckpt.Error, "a picture in text is of the parts", lambda: self.plot(TINY_MODEL, "picture.txt"))
        self.assertRaisesRegex(mckpt.Error, "a drawing has no statistics", lambda: self.plot(TINY_MODEL, "picture.svg", stats=True))
        self.assertRaisesRegex(mckpt.Error, "MC0001.*there is no `names`", lambda: self.plot(TINY_MODEL, "picture.html", regex=True))
        self.assertRaisesRegex(mckpt.Error, "no such file", lambda: self.plot("nowhere", "picture.html"))
        self.assertEqual(os.listdir(self.folder), [])


run()
