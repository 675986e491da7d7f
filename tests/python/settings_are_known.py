"""Each setting that the library reads is a key of the TypedDicts of mckpt.settings, with its type, and has a line in the text of
its function; and nothing else is. The library is asked: its error for an unknown setting lists those that
there are. The files of scripts/fields say the same as the library today. usage: settings_are_known.py, with
any Python from 3.10 on"""
import ctypes
import dataclasses
import inspect
import json
import os
import subprocess
import sys
import tempfile
import unittest

from mckpt_tests.package import run
from mckpt_tests.setting import BUILD, MCKPT, SOURCE, TINY_MODEL

import mckpt
from mckpt import settings, values

class Two:
    """A whole number of another library."""

    def __index__(self):
        return 2


PARAMETERS = {"source", "target", "threads", "device", "dtype", "names"}  # of functions, beside their settings


def explicit(function):
    return {name for name, p in inspect.signature(function).parameters.items() if p.kind is not p.VAR_KEYWORD}


class Settings(unittest.TestCase):
    def read_by(self, call):
        """The settings that the library reads in this call, by its error."""
        with self.assertRaisesRegex(mckpt.Error, "there is no setting") as raised:
            call(there_is_no_setting_of_such_a_name=1)
        (note,) = raised.exception.notes
        here, _, of_the_run = note.removeprefix("the settings are ").partition("; of the run: ")
        self.assertFalse({"source", "target"} & set(here.split(", ")))
        self.of_the_run = set(of_the_run.split(", ")) - {""}
        return here.split(", ")

    def check(self, function, call, group, keys, also=()):
        names = list(settings.FIELDS[group])
        known = set(self.read_by(call)) - PARAMETERS
        self.assertEqual(sorted(known), sorted(set(names) - PARAMETERS | set(also)))
        for name in names:
            given = keys.__annotations__[name]
            self.assertRegex(function.__doc__, rf"(?m)^{name}: \S")
            self.check_type(call, name, getattr(given, "__forward_arg__", given))

    def check_type(self, call, name, given):
        if name == "rank":  # without which others are read: see test_loading
            return
        expected = {"Int": "a whole number", "Flag": "True or False"}.get(given)
        if expected:
            with self.assertRaisesRegex(mckpt.Error, f"`{name}` is not allowed: expected {expected}"):
                call(**{name: "x"})
        else:
            with self.assertRaises(mckpt.Error) as raised:
                call(**{name: "x"}, there_is_no_setting_of_such_a_name=1)
            self.assertNotRegex(str(raised.exception), "expected (a whole number|True or False)")

    def test_conversions(self):
        for kind in settings.CONVERSION:
            with self.subTest(kind):
                self.check(mckpt.plan, lambda kind=kind, **what: mckpt.plan(TINY_MODEL, "b", to=kind, threads=1, **what), kind, settings.ConversionSettings)
                self.assertIn(f'to="{kind}": ', mckpt.convert.__doc__)
        self.assertEqual(self.of_the_run, {"allow_overflow", "card", "command", "max_memory", "overwrite", "resume", "sync"})
        self.check(mckpt.export, lambda **what: mckpt.export(TINY_MODEL, "b", threads=1, progress=False, **what), "hf", settings.ExportSettings)

    def test_settings_that_a_kind_does_not_read_are_refused(self):
        for kind, name in (("mcore", "hsdp"), ("mcore", "hsdp_outer"), ("gpt-to-hybrid", "layers"), ("ungroup", "keys"), ("group", "norms"), ("quantize", "base"),
                           ("dequantize", "base"), ("reshard", "base"), ("torch-file", "base"), ("from-hdf5", "base")):
            with self.subTest(kind, name=name), self.assertRaisesRegex(mckpt.Error, f"no setting `{name}` here") as raised:
                mckpt.plan(TINY_MODEL, "b", to=kind, **{name: 1 if name in settings.NUMBERS else "1"})
            (note,) = raised.exception.notes
            self.assertNotIn(name, note.replace(",", "").split())
            self.assertIn("model_files", note)
        with self.assertRaisesRegex(mckpt.Error, "no setting `overwrite` here") as raised:
            mckpt.plan(TINY_MODEL, "b", to="fsdp", overwrite=True)
        self.assertIn("setting of the run", raised.exception.help)

    def test_numbers_that_do_not_fit_and_empty_texts_are_refused(self):
        for value, words in ((2 ** 63, "expected a number of 63 bits"), (-2 ** 63 - 1, "expected a number of 63 bits")):
            for name in ("dp", "iteration"):
                with self.assertRaisesRegex(mckpt.Error, f"`{name}` is not allowed: {words}") as raised:
                    mckpt.plan(TINY_MODEL, "b", to="fsdp", **{name: value})
                self.assertEqual(raised.exception.code, "MC0001")
        for kind, name in (("to-dcp", "section"), ("fsdp", "dtype"), ("fsdp", "assets"), ("fsdp", "model_dict")):
            with self.assertRaisesRegex(mckpt.Error, f"`{name}` needs a value that is not empty") as raised:
                mckpt.plan(TINY_MODEL, "b", to=kind, **{name: ""})
            self.assertEqual(raised.exception.code, "MC0001")

    def test_numbers_are_whole_numbers_in_every_function(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        count = iter(range(1000))
        out = lambda: f"{folder.name}/{next(count)}"
        tensor = mckpt.open(TINY_MODEL)["lm_head.weight"]
        plan = mckpt.plan(TINY_MODEL, out(), to="safetensors")
        plan.run(progress=False)
        calls = [("threads", lambda **n: mckpt.verify(TINY_MODEL, progress=False, **n)), ("threads", lambda **n: mckpt.diff(TINY_MODEL, TINY_MODEL, progress=False, **n)),
                 ("path_tp", lambda **n: mckpt.diff(TINY_MODEL, TINY_MODEL, progress=False, **n)), ("threads", lambda **n: mckpt.plot(TINY_MODEL, out() + ".html", progress=False, **n)),
                 ("threads", lambda **n: mckpt.load(TINY_MODEL, "cpu", progress=False, **n)), ("threads", lambda **n: mckpt.plan(TINY_MODEL, out(), to="fsdp", dp=1, **n)),
                 ("tp", lambda **n: mckpt.plan(TINY_MODEL, out(), to="fsdp", dp=1, **n)), ("threads", lambda **n: mckpt.convert(TINY_MODEL, out(), to="fsdp", dp=1, progress=False, **n)),
                 ("threads", lambda **n: mckpt.export(out(), out(), progress=False, **n)), ("max_memory", lambda **n: plan.run(progress=False, overwrite=True, **n)),
                 ("source_tp", lambda **n: mckpt.open_as_fsdp(TINY_MODEL, **n)), ("threads", lambda **n: tensor.statistics(**n))]
        for name, call in calls:
            for value in ("2", "two", b"2", 2.0, [2], {"2": 2}):
                with self.subTest(name, value=value), self.assertRaises(mckpt.Error) as raised:
                    call(**{name: value})
                e = raised.exception
                self.assertEqual((e.code, e.status, e.message, e.expected, e.found), ("MC0001", 2, f"the value of `{name}` is not allowed", "a whole number", repr(value)))
            try:
                call(**{name: Two()})  # is read as 2, which may be no setting of this checkpoint
            except mckpt.Error as e:
                self.assertNotIn("a whole number", str(e))
        for value in (2**31, -(2**31) - 1):
            for name, call in calls:
                if name == "threads":
                    self.assertRaisesRegex(mckpt.Error, "`threads` is not allowed: expected a number of 31 bits", lambda call=call, value=value: call(threads=value))

    def test_comparing(self):
        self.check(mckpt.verify, lambda **how: mckpt.verify(TINY_MODEL, TINY_MODEL, progress=False, **how), "compare", settings.CompareSettings, ["against", "command", "report"])
        self.check(mckpt.diff, lambda **how: mckpt.diff(TINY_MODEL, TINY_MODEL, progress=False, **how), "diff", settings.DiffSettings, ["html", "regex"])
        self.check(mckpt.open_as_fsdp, lambda **how: mckpt.open_as_fsdp(TINY_MODEL, **how), "open_as_fsdp", settings.SourceSettings)
        with tempfile.TemporaryDirectory() as folder:
            self.check(mckpt.plot, lambda **how: mckpt.plot(TINY_MODEL, folder + "/p.html", progress=False, **how), "plot", settings.PlotSettings, ["regex", "stats"])
        alone = set(self.read_by(lambda **how: mckpt.verify(TINY_MODEL, progress=False, **how)))
        self.assertEqual(alone - PARAMETERS - {"against"}, {"accept", "assets", "base", "card", "command", "follow_links", "model_dict", "model_files", "report", "strict"})
        self.assertRaisesRegex(mckpt.Error, "no setting `source_tp`", lambda: mckpt.verify(TINY_MODEL, source_tp=1, progress=False))

    def test_loading(self):
        def load(**what):
            mckpt.load(TINY_MODEL, "cpu", progress=False, **{"rank": 0, **what})

        self.check(mckpt.load, load, "load_rank", settings.LoadSettings)
        self.assertRaisesRegex(mckpt.Error, "`rank` is not allowed: expected a whole number", lambda: load(rank="x"))

    def test_the_keys_of_functions_are_those_of_their_groups(self):
        for keys, groups in ((settings.SourceSettings, settings.SOURCE), (settings.DiffSettings, settings.DIFF), (settings.PlotSettings, settings.PLOT), (settings.CompareSettings, settings.COMPARE),
                             (settings.ExportSettings, settings.EXPORT), (settings.LoadSettings, settings.LOAD), (settings.ConversionSettings, settings.CONVERSION)):
            self.assertEqual(set(keys.__annotations__), {name for group in groups for name in settings.FIELDS[group]})
        for function, keys in ((mckpt.plan, settings.ConversionSettings), (mckpt.convert, settings.ConversionSettings), (mckpt.load, settings.LoadSettings),
                               (mckpt.verify, settings.CompareSettings), (mckpt.diff, settings.DiffSettings), (mckpt.plot, settings.PlotSettings), (mckpt.export, settings.ExportSettings)):
            self.assertFalse(explicit(function) & set(keys.__annotations__))

    def test_files_that_are_written_are_current(self):
        done = subprocess.run([sys.executable, os.path.join(SOURCE, "scripts", "fields"), "--check", "--library", os.path.join(BUILD, "libmckpt.so")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_results_have_the_fields_of_the_library(self):
        text = ctypes.CDLL(os.path.join(BUILD, "libmckpt.so")).mckpt_settings_json
        text.restype = ctypes.c_char_p
        results = {r["name"]: {f["name"] for f in r["fields"]} for r in json.loads(text(None))["results"]}
        self.assertEqual(set(results), {"Account", "RunReport", "Statistics"})
        for name, fields in results.items():
            self.assertEqual({f.name for f in dataclasses.fields(getattr(values, name))} - {"grid"}, fields, name)

    def test_words_for_a_conversion(self):
        self.assertEqual(list(settings.WORDS), list(settings.CONVERSION))
        for to in settings.Kind.__args__:
            self.assertRegex(mckpt.convert.__doc__, rf'(?m)(^"|; |, ){to}([",;]|$)')
            with self.assertRaises(mckpt.Error) as raised:
                mckpt.plan("/nowhere", "b", to=to)
            self.assertNotIn("no such kind", str(raised.exception), to)
        for wrong, near in (("fdsp", "fsdp"), ("hf-to-fspd", "hf-to-fsdp"), ("safetensor", "safetensors"), ("to-dpc", "to-dcp")):
            self.assertRaisesRegex(mckpt.Error, f"did you mean `{near}`", lambda wrong=wrong: mckpt.plan("a", "b", to=wrong))

    def test_both_doors_have_the_same_words(self):
        """A mode of the program is a word of Python, and makes the same."""
        modes = subprocess.run([MCKPT, "help", "--json"], capture_output=True, text=True, check=True)
        names = {page["name"].removeprefix("convert ") for page in json.loads(modes.stdout)["commands"] if page["name"].startswith("convert ")}
        self.assertGreaterEqual(len(names), 18)
        self.assertEqual(names - set(settings.Kind.__args__), set())
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue(os.path.isdir(mckpt.convert(TINY_MODEL, folder + "/ranks", to="pt", progress=False).output))
            self.assertRaisesRegex(mckpt.Error, "torch-file", lambda: mckpt.convert(TINY_MODEL, folder + "/m.pt", to="pt", progress=False))
            self.assertTrue(os.path.isfile(mckpt.convert(TINY_MODEL, folder + "/m.pt", to="torch-file", progress=False).output))

    def test_types_of_tensors_as_torch_spells_them(self):
        narrow = mckpt.load(TINY_MODEL, "cpu", "float16", progress=False)
        self.assertEqual({t.dtype for t in narrow.values()}, {"float16"})
        self.assertRaisesRegex(mckpt.Error, "bf16, fp16 or fp32", lambda: mckpt.load(TINY_MODEL, "cpu", "int8", progress=False))


run()
