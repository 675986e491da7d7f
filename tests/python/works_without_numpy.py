"""The Python package with nothing but the standard library: listing, reading, slicing, mapping, errors,
closing. usage: works_without_numpy.py, with any Python from 3.10 on"""
import gc
import hashlib
import json
import os
import pickle
import shutil
import struct
import tempfile
import threading
import unittest

from mckpt_tests.package import INSTALLED, run
from mckpt_tests.setting import DATA, TINY_MODEL

import mckpt
import mckpt.tensor

MIXED = os.path.join(DATA, "formats/safetensors/mixed.safetensors")


class Package(unittest.TestCase):
    def setUp(self):
        mckpt.tensor.MAPPED_FROM = 1 << 16

    def test_is_a_mapping_in_natural_order(self):
        with mckpt.open(TINY_MODEL) as ckpt:
            self.assertEqual((len(ckpt), len(list(ckpt)), len(dict(ckpt.items()))), (45, 45, 45))
            self.assertIn("lm_head.weight", ckpt)
            self.assertNotIn("w", ckpt)
            self.assertNotIn(3, ckpt)
            self.assertIsNone(ckpt.get("w"))
            self.assertEqual(list(ckpt)[0], "lm_head.weight")
            self.assertEqual(ckpt.names("model.norm*"), ["model.norm.weight"])
            # A variable without a value does not choose all.
            for chosen in (ckpt.names, ckpt.in_file_order, lambda glob: mckpt.tensors(TINY_MODEL, glob)):
                with self.assertRaisesRegex(mckpt.Error, "`glob` is not allowed: expected a glob; without one all tensors are chosen, found ''") as raised:
                    chosen("")
                self.assertEqual(raised.exception.code, "MC0001")
                self.assertEqual(len(list(chosen(None))), 45)
            self.assertEqual(ckpt.format, "safetensors folder")
            self.assertEqual(ckpt.facts["model_type"], "qwen3_moe")
            self.assertEqual((ckpt.findings, ckpt.ranks), ([], 1))
            tensor = ckpt["lm_head.weight"]
            self.assertEqual((tensor.name, tensor.dtype, tensor.shape, tensor.nbytes, tensor.ndim, tensor.size), ("lm_head.weight", "bfloat16", (32, 16), 1024, 2, 512))
            self.assertEqual(repr(tensor), "<mckpt.Tensor lm_head.weight: bfloat16 [32, 16]>")
            self.assertIn("45 tensors", repr(ckpt))

    def test_lists_files_in_their_order(self):
        places = []
        for name, tensor in mckpt.tensors(TINY_MODEL):
            self.assertEqual(name, tensor.name)
            (chunk,) = tensor.chunks()
            places.append((chunk.file, chunk.offset))
        self.assertEqual(len(places), 45)
        self.assertEqual(places, sorted(places))
        self.assertEqual([name for name, _ in mckpt.tensors(TINY_MODEL, "*.norm.*")], ["model.norm.weight"])

    def test_reads_and_maps_the_same_bytes(self):
        with mckpt.open(MIXED) as ckpt:
            read = {name: t.tobytes() for name, t in ckpt.items()}
            mckpt.tensor.MAPPED_FROM = 0
            mapped = 0
            for name, tensor in ckpt.items():
                self.assertEqual(tensor.tobytes(), read[name], name)
                self.assertEqual(tensor.digest(), hashlib.sha256(read[name]).hexdigest(), name)
                mapped += not isinstance(tensor._memory(), bytearray)
                self.assertIsInstance(tensor._memory(copy=True), bytearray)
            self.assertGreater(mapped, 10)
            self.assertEqual((ckpt["scalar"].shape, len(read["scalar"])), ((), 4))
            self.assertEqual((ckpt["empty"].shape, read["empty"]), ((0, 4), b""))

    def test_parts_are_those_of_the_bytes(self):
        with mckpt.open(MIXED) as ckpt:
            for mckpt.tensor.MAPPED_FROM in (0, 1 << 16):
                t = ckpt["int32"]  # [3, 5]
                items = memoryview(t.tobytes()).cast("i", (3, 5)).tolist()
                self.assertEqual(bytes(t[1]._memory()), t[1].tobytes())
                self.assertEqual(list(memoryview(t[1].tobytes()).cast("i")), items[1])
                self.assertEqual(list(memoryview(t[:, -1].tobytes()).cast("i")), [row[-1] for row in items])
                self.assertEqual(list(memoryview(t[1:][:, 1:3].tobytes()).cast("i")), [x for row in items[1:] for x in row[1:3]])
                self.assertEqual(list(memoryview(t[2, 4].tobytes()).cast("i")), [items[2][4]])
                self.assertEqual([list(memoryview(row.tobytes()).cast("i")) for row in t], items)
                self.assertEqual((t[7:].shape, t[7:].tobytes()), ((0, 5), b""))
                self.assertEqual(t[1].name, "int32")
            for wrong, kind in ((lambda: t[3], IndexError), (lambda: t[0, 0, 0], IndexError), (lambda: t[::2], ValueError), (lambda: t["a"], TypeError),
                                (lambda: t[True], TypeError), (lambda: t[..., ...], IndexError), (lambda: ckpt["scalar"][0], IndexError), (lambda: iter(ckpt["scalar"]), TypeError)):
                self.assertRaises(kind, wrong)

    def test_statistics(self):
        with mckpt.open(TINY_MODEL) as ckpt:
            s = ckpt["model.norm.weight"].statistics(threads=2)
            self.assertEqual((s.numbers, s.finite, s.nan, s.infinite), (16, 16, 0, 0))
            self.assertLess(s.min, s.mean)
            self.assertLess(s.mean, s.max)

    def test_statistics_of_no_finite_number_are_none(self):
        nan, infinite = struct.pack("<f", float("nan")), struct.pack("<f", float("inf"))
        header, data = {}, b""
        for name, items in {"nan": [nan] * 3, "infinite": [infinite] * 2, "empty": [], "one": [nan, struct.pack("<f", 2)]}.items():
            content = b"".join(items)
            header[name] = {"dtype": "F32", "shape": [len(items)], "data_offsets": [len(data), len(data) + len(content)]}
            data += content
        text = json.dumps(header).encode()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.safetensors")
            with open(path, "wb") as f:
                f.write(struct.pack("<Q", len(text)) + text + data)
            with mckpt.open(path) as ckpt:
                for name in ("nan", "infinite", "empty"):
                    for s in (ckpt[name].statistics(), ckpt[name][:].statistics()):
                        self.assertEqual((s.finite, s.min, s.max, s.mean, s.deviation, s.l2), (0, None, None, None, None, None))
                s = ckpt["one"].statistics()
                self.assertEqual((s.finite, s.nan, s.min, s.max, s.mean, s.deviation, s.l2), (1, 1, 2, 2, 2, 0, 2))
                self.assertNotIn("<td>min</td>", ckpt["nan"].statistics()._repr_html_())

    def test_facts_of_parts_are_those_of_parts(self):
        with mckpt.open(MIXED) as ckpt:
            for name, slice_ in (("int32", slice(1, 3)), ("float32", 1), ("bfloat16", (slice(None), 0)), ("float64", -1)):
                whole = ckpt[name]
                if whole.ndim < 2 and isinstance(slice_, tuple):
                    slice_ = 0
                part = whole[slice_]
                self.assertEqual(part.digest(), hashlib.sha256(part.tobytes()).hexdigest())
                self.assertNotEqual(part.digest(), whole.digest())
                self.assertEqual(part.statistics().numbers, part.size)
                self.assertEqual(whole[...].digest(), whole.digest())
            items = memoryview(ckpt["int32"][1].tobytes()).cast("i").tolist()
            s = ckpt["int32"][1].statistics()
            self.assertEqual((s.numbers, s.min, s.max, s.zeros), (5, min(items), max(items), items.count(0)))
            self.assertAlmostEqual(s.mean, sum(items) / 5)
            self.assertEqual(ckpt["int32"][:].statistics(), ckpt["int32"].statistics())
        with mckpt.open(TINY_MODEL) as ckpt:  # types of 16 bits are counted by another way
            t = ckpt["lm_head.weight"]
            rows = [row.statistics() for row in t]
            whole = t.statistics()
            self.assertEqual((min(r.min for r in rows), max(r.max for r in rows)), (whole.min, whole.max))
            self.assertAlmostEqual(sum(r.mean for r in rows) / len(rows), whole.mean)

    def test_chunks_of_a_part_are_those_that_it_meets(self):
        with tempfile.TemporaryDirectory() as folder:
            mckpt.convert(TINY_MODEL, f"{folder}/ckpt", to="fsdp", dp=2, progress=False)
            with mckpt.open(f"{folder}/ckpt") as ckpt:
                t = next(t for t in ckpt.values() if len(t.chunks()) == 2 and all(c.sizes[0] for c in t.chunks()))
                first, second = sorted(t.chunks(), key=lambda c: c.offsets)
                self.assertEqual(t[0].chunks(), [first])
                self.assertEqual(t[-1].chunks(), [second])
                self.assertEqual(len(t[second.offsets[0] - 1 :].chunks()), 2)
                self.assertEqual(t[0:0].chunks(), [])

    def test_tensors_keep_their_checkpoint_open(self):
        every = dict(mckpt.tensors(TINY_MODEL))
        gc.collect()
        self.assertEqual(len(every["lm_head.weight"].tobytes()), 1024)
        self.assertRaisesRegex(mckpt.Error, "no such file", lambda: mckpt.tensors("nope"))  # not at the first next()
        self.assertRaisesRegex(mckpt.Error, "no tensor matches", lambda: mckpt.tensors(TINY_MODEL, "nope*"))

    def test_loaded_tensors(self):
        loaded = mckpt.load(TINY_MODEL, "cpu", progress=False)
        with mckpt.open(TINY_MODEL) as ckpt:
            for name, tensor in loaded.items():
                self.assertEqual(tensor.tobytes(), ckpt[name].tobytes(), name)
                self.assertEqual((tensor.size, tensor.ndim, tensor.device), (ckpt[name].size, ckpt[name].ndim, "cpu"))
            self.assertIn("<td>[32, 16]</td>", ckpt["lm_head.weight"]._repr_html_())
        self.assertIn("<td>cpu</td>", loaded["lm_head.weight"]._repr_html_())
        self.assertIn("<td>lm_head.weight</td><td>bfloat16</td><td>[32, 16]</td>", loaded._repr_html_())
        with self.assertRaisesRegex(KeyError, "nearest name is lm_head.weight") as raised:
            loaded["lm_head.weigh"]
        self.assertIsInstance(raised.exception, mckpt.NoSuchTensor)
        self.assertEqual((raised.exception.code, loaded.get("lm_head.weigh")), ("MC1007", None))
        self.assertEqual(str(pickle.loads(pickle.dumps(raised.exception))), str(raised.exception))
        kept = loaded["lm_head.weight"]
        with loaded:
            pass
        self.assertEqual(len(kept.tobytes()), 1024)
        self.assertIn("given up", repr(loaded))
        self.assertRaisesRegex(ValueError, "given up", lambda: loaded["lm_head.weight"])

    def test_objects(self):
        with mckpt.open(os.path.join(DATA, "pt/training.pt")) as ckpt:
            self.assertTrue(ckpt.objects())
            self.assertTrue(all(o.name and o.summary for o in ckpt.objects()), ckpt.objects())

    def test_errors_say_everything(self):
        with mckpt.open(TINY_MODEL) as ckpt, self.assertRaises(KeyError) as raised:
            ckpt["model.norm.weigh"]
        error = raised.exception
        self.assertIsInstance(error, mckpt.NoSuchTensor)
        self.assertIsInstance(error, mckpt.Error)
        self.assertEqual((error.code, error.offset), ("MC1007", -1))
        self.assertIn("model.norm.weight", str(error))
        self.assertEqual(str(pickle.loads(pickle.dumps(error))), str(error))
        with self.assertRaises(mckpt.Error) as raised:
            mckpt.open("/nowhere")
        self.assertEqual(raised.exception.status, 3)
        self.assertIn("/nowhere", str(raised.exception))
        self.assertRegex(repr(raised.exception), r"^<mckpt.Error MC1001: .*; help: .*>$")
        self.assertRaisesRegex(mckpt.Error, "help: .*~.*whole path", lambda: mckpt.open("~/Qwen3"))
        with mckpt.open(os.fsencode(TINY_MODEL)) as ckpt:  # bytes are names of files, too
            self.assertEqual(len(ckpt), 45)
            self.assertRaisesRegex(mckpt.NoSuchTensor, "there is no tensor of the name 'typo'", lambda: ckpt["typo"])
            with self.assertRaisesRegex(KeyError, "there is no object of the name 'typo': found 0 objects") as raised:
                ckpt.object("typo")
            self.assertEqual(raised.exception.code, "MC1007")
        self.assertRaises(TypeError, lambda: mckpt.open(3))
        with mckpt.open(TINY_MODEL) as ckpt:
            self.assertRaisesRegex(mckpt.Error, "nothing", lambda: ckpt.names("nothing*"))
        self.assertRaises(ValueError, lambda: mckpt.open("a\0b"))

    def test_a_file_that_ends_early_is_an_error_and_no_crash(self):
        with tempfile.TemporaryDirectory() as folder:
            path = shutil.copy(MIXED, folder)
            for mckpt.tensor.MAPPED_FROM in (0, 1 << 16):
                shutil.copy(MIXED, folder)
                with mckpt.open(path) as ckpt:
                    os.truncate(path, 1500)
                    with self.assertRaises(mckpt.Error):
                        ckpt["float32"].tobytes()

    def test_a_program_changes_its_folder(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        adapters = os.path.join(DATA, "adapters", "target_parameters")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(TINY_MODEL, os.path.join(folder, "model"))
            shutil.copytree(adapters, os.path.join(folder, "adapters"))
            shutil.copy(MIXED, os.path.join(folder, "file.safetensors"))
            mckpt.convert(TINY_MODEL, os.path.join(folder, "run"), to="fsdp", tp=2, progress=False)
            mckpt.convert(TINY_MODEL, os.path.join(folder, "ranks"), to="ranks", tp=2, progress=False)
            with open(os.path.join(folder, "map.json"), "w") as f:
                json.dump({"base": "qwen3_moe", "unread": [{"name": "no.such", "reason": "for the test"}]}, f)
            shutil.copytree(os.path.join(DATA, "own_names", "fsdp2_bare", "checkpoint"), os.path.join(folder, "dcp"))
            os.chdir(folder)
            adapter = {"base": os.path.join("adapters", "base")}
            kinds = [("model", mckpt.open, {}), ("file.safetensors", mckpt.open, {}), ("run", mckpt.open, {}), ("./dcp", mckpt.open, {}), ("run", mckpt.open_as_fsdp, {}),
                     ("run", mckpt.open_as_fsdp, {"assets": "model"}), ("ranks", mckpt.open_as_fsdp, {"map_file": "map.json"}),
                     (os.path.join("adapters", "adapter"), mckpt.open, adapter), (os.path.join("run", "..", "model"), mckpt.open, {}), ("dcp/__0_0.distcp", mckpt.open, {"local": True})]
            for path, opened, words in kinds:
                with self.subTest(path, opened=opened.__name__, **words):
                    os.chdir(folder)
                    absolute = {key: os.path.abspath(value) if key != "local" else value for key, value in words.items()}
                    with opened(path, **words) as ckpt, opened(os.path.join(folder, path), **absolute) as same:
                        shown = os.path.relpath(same.path, folder)
                        self.assertEqual(os.path.normpath(ckpt.path), shown)
                        self.assertTrue(ckpt.path.startswith(path) or opened is mckpt.open_as_fsdp or words, ckpt.path)
                        self.assertTrue(len(ckpt))
                        for away in ("/", os.path.join(folder, "model")):
                            os.chdir(away)
                            for name, tensor in list(ckpt.items())[:4]:
                                mckpt.tensor.MAPPED_FROM = 0
                                other = same[name]
                                self.assertEqual((tensor.digest(), tensor.statistics(), tensor.tobytes(), tensor.chunks()), (other.digest(), other.statistics(), other.tobytes(), other.chunks()))
            os.chdir(before)

    def test_errors_show_paths_as_they_were_given(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(TINY_MODEL, os.path.join(folder, "good"))
            shutil.copytree(os.path.join(DATA, "adapters", "target_parameters", "adapter"), os.path.join(folder, "adapter"))
            for name in ("bad", "deep/bad"):
                os.makedirs(os.path.join(folder, name))
                shutil.copy(os.path.join(TINY_MODEL, "config.json"), os.path.join(folder, name))
                with open(os.path.join(folder, name, "model.safetensors"), "wb") as f:
                    f.write(b"cut")
            mckpt.convert(TINY_MODEL, os.path.join(folder, "run"), to="fsdp", tp=2, progress=False)
            with open(os.path.join(folder, "bad.json"), "w") as f:
                f.write("{")

            def refused(opened, path, file, help_="", **words):
                with self.subTest(path, **words):
                    os.chdir(folder)
                    with self.assertRaises(mckpt.Error) as raised:
                        opened(path, **words)
                    error = raised.exception
                    self.assertEqual(error.file, file)
                    self.assertIn(help_, error.help)
                    if not file.startswith("/"):
                        self.assertNotIn(folder, f"{error} {error.help} {error.notes}")

            deep = os.path.join(folder, "deep")
            refused(mckpt.open, "nothere", "nothere", "name a file or folder")
            refused(mckpt.open, "god", "god", "did you mean good?")
            refused(mckpt.open, "deep/bat", "deep/bat", "did you mean deep/bad?")
            refused(mckpt.open, f"{deep}/bat", f"{deep}/bat", f"did you mean {deep}/bad?")
            refused(mckpt.open, "Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B", "downloads nothing")
            refused(mckpt.open, "~/Qwen3", "~/Qwen3", "only a shell")
            for path in ("bad", "deep/bad", "./deep/bad", "deep/../bad", deep + "/bad"):
                refused(mckpt.open, path, f"{path}/model.safetensors")
            refused(mckpt.open, "bad/model.safetensors", "bad/model.safetensors")
            for path in ("nothere", deep + "/nothere"):
                refused(mckpt.open_as_fsdp, "run", path, assets=path)
                refused(mckpt.open, "adapter", path, base=path)
            refused(mckpt.open_as_fsdp, "run", "bad.json", map_file="bad.json")

            os.chdir("/")  # here each path with a slash in front of it is in the folder
            with self.assertRaises(mckpt.Error) as raised:
                mckpt.open(folder[1:] + "/bad")
            self.assertEqual(raised.exception.file, f"{folder[1:]}/bad/model.safetensors")

            os.chdir(folder)  # an error of a later read, in another folder
            with mckpt.open("good") as ckpt:
                os.chdir("/")
                os.truncate(os.path.join(folder, "good", "model-00001-of-00002.safetensors"), 1500)
                with self.assertRaises(mckpt.Error) as raised:
                    ckpt["model.layers.0.self_attn.q_proj.weight"].digest()
                self.assertEqual(raised.exception.file, "good/model-00001-of-00002.safetensors")
            os.chdir(before)

    def test_a_closed_checkpoint_says_so(self):
        ckpt = mckpt.open(TINY_MODEL)
        tensor = ckpt["lm_head.weight"]
        ckpt.close()
        ckpt.close()
        for ask in (tensor.tobytes, lambda: tensor[:2], lambda: next(iter(tensor)), lambda: ckpt["lm_head.weight"], lambda: ckpt.get("lm_head.weight"), lambda: ckpt["no such"],
                    ckpt.items, ckpt.values, lambda: next(ckpt.in_file_order())):
            self.assertRaisesRegex(ValueError, "closed", ask)
        self.assertEqual((tensor.name, "lm_head.weight" in ckpt), ("lm_head.weight", True))
        self.assertIn("closed", ckpt._repr_html_())
        self.assertIn("closed", repr(ckpt))

    def test_threads_may_read_and_close(self):
        with mckpt.open(TINY_MODEL) as ckpt:
            expected = {name: t.tobytes() for name, t in ckpt.items()}
            faults = []

            def read():
                for name, tensor in ckpt.items():
                    try:
                        if tensor.tobytes() != expected[name]:
                            faults.append(name)
                    except ValueError as fault:
                        if "closed" not in str(fault):
                            faults.append(fault)

            threads = [threading.Thread(target=read) for _ in range(4)]
            for thread in threads:
                thread.start()
            ckpt.close()
            gc.collect()
            for thread in threads:
                thread.join()
            self.assertEqual(faults, [])

    def test_names_of_any_bytes(self):
        with mckpt.open(MIXED) as ckpt:
            self.assertEqual(ckpt["unicode_é"].shape, (2,))

    @unittest.skipIf(INSTALLED, "the installed package has its library inside")
    def test_the_library_is_found_or_named(self):
        import subprocess
        import sys

        code = "import mckpt; print(mckpt.version())"
        package = os.path.dirname(os.path.dirname(mckpt.__file__))

        def ran(environment):
            return subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": package, **environment}, capture_output=True, text=True, check=False)

        self.assertEqual(ran({}).stdout.strip(), mckpt.version())
        self.assertIn("ImportError: libmckpt.so cannot be loaded", ran({"MCKPT_LIBRARY": "/nowhere.so"}).stderr)
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copytree(os.path.dirname(mckpt.__file__), os.path.join(folder, "a", "b", "mckpt"))
            package = os.path.dirname(copy)
            self.assertRegex(ran({"MCKPT_LIBRARY": ""}).stderr, "(?s)was not found.*MCKPT_LIBRARY")
            os.mkdir(os.path.join(copy, "lib"))
            os.symlink(os.environ["MCKPT_LIBRARY"], os.path.join(copy, "lib", "libmckpt.so"))
            self.assertEqual(ran({"MCKPT_LIBRARY": ""}).stdout.strip(), mckpt.version())


run()
