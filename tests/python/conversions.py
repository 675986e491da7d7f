"""Planning, proving, running and verifying from Python; progress and the exceptions of callbacks; with the standard library
alone. usage: conversions.py, with any Python from 3.10 on"""
import hashlib
import io
import json
import math
import os
import shutil
import struct
import tempfile
import unittest
from pathlib import Path

from mckpt_tests.package import run
from mckpt_tests.setting import DATA, TINY_MODEL

import mckpt
import mckpt.progress


class Conversions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_there_and_back(self):
        c = mckpt.plan(TINY_MODEL, self.folder / "ckpt", to="fsdp", tp=2, threads=2, dtype_rule={"*router*": "fp32"})
        self.assertIsNone(c.account)
        self.assertIn("planned", repr(c))
        account = c.prove(progress=False)
        self.assertEqual((account.tensors_in, account.invented, account.changed), (45, 0, 2))
        self.assertEqual(c.account, account)
        self.assertTrue(all(f.bytes > 0 for f in c.outputs))
        self.assertIn(os.path.realpath(TINY_MODEL), [os.path.realpath(s) for s in c.sources])
        self.assertEqual(os.listdir(self.folder), [])
        done = c.run(progress=False)
        self.assertEqual(done.output, c.path)
        self.assertEqual(done.bytes, c.bytes)
        self.assertIn("done", repr(c))
        with self.assertRaisesRegex(mckpt.Error, "only once"):
            c.run(progress=False)
        back = mckpt.export(done.output, self.folder / "hf", dtype="auto", progress=False)
        report = mckpt.verify(back.output, TINY_MODEL, progress=False)
        self.assertEqual((report.equal, report.sound, report.ok), (True, True, True), str(report))

    def test_kinds(self):
        mckpt.convert(f"{TINY_MODEL}/model-00001-of-00002.safetensors", self.folder / "a.pt", to="torch-file", include=["model.layers.0.*"], progress=False)
        mckpt.convert(self.folder / "a.pt", self.folder / "a.safetensors", to="pt-to-safetensors", progress=False)
        self.assertTrue(mckpt.verify(self.folder / "a.safetensors", self.folder / "a.pt", progress=False).equal)
        with mckpt.open(self.folder / "a.safetensors") as ckpt:
            self.assertTrue(len(ckpt) and all(name.startswith("model.layers.0.") for name in ckpt))

    def test_one_file_and_a_folder_of_ranks_are_not_mistaken(self):
        for to, target, other in (("pt", "m.pt", 'to="torch-file"'), ("to-pt", "m.pth", 'to="torch-file"'), ("ranks", "m.bin", 'to="torch-file"')):
            with self.assertRaisesRegex(mckpt.Error, other) as raised:
                mckpt.convert(TINY_MODEL, self.folder / target, to=to, progress=False)
            self.assertEqual(raised.exception.status, 2)
        self.assertEqual(os.listdir(self.folder), [])
        for name in ("m.pt", "m.pth", "m.bin"):
            mckpt.convert(TINY_MODEL, self.folder / name, to="torch-file", progress=False)
            self.assertEqual(mckpt.open(self.folder / name).format, "torch.save zip")

    def test_one_file_is_not_resumed(self):
        for to, target in (("torch-file", "m.pt"), ("safetensors", "m.safetensors")):
            with self.assertRaisesRegex(mckpt.Error, "leave `resume` out") as raised:
                mckpt.convert(TINY_MODEL, self.folder / target, to=to, resume=True, progress=False)
            self.assertEqual(raised.exception.status, 2)
        self.assertEqual(os.listdir(self.folder), [])
        mckpt.convert(TINY_MODEL, self.folder / "ckpt", to="fsdp", resume=True, progress=False)

    def test_files_of_ranks(self):
        c = mckpt.plan(TINY_MODEL, self.folder / "ranks", to="ranks", tp=2, pp=2, params_dtype="auto", iteration=5)
        self.assertEqual((c.grid["tp"], c.grid["pp"], len(c.outputs)), (2, 2, 4))
        self.assertTrue(mckpt.verify(c.run(progress=False).output, TINY_MODEL, progress=False).equal)
        mckpt.convert(self.folder / "ranks", self.folder / "other", to="to-pt", tp=4, progress=False)
        back = mckpt.export(self.folder / "other", self.folder / "hf", progress=False)
        self.assertTrue(mckpt.verify(back.output, TINY_MODEL, progress=False).equal)
        self.assertRaisesRegex(mckpt.Error, "one stage alone", lambda: mckpt.plan(TINY_MODEL, "b", to="ranks", vpp=2))

    def test_a_setting_with_one_value_takes_no_list(self):
        self.assertRaisesRegex(mckpt.Error, r"`tp` is not allowed: expected a whole number, found \[1, 2\]", lambda: mckpt.plan(TINY_MODEL, "b", to="fsdp", tp=[1, 2]))
        for what in ({"dtype": ["bf16", "fp32"]}, {"strategy": ["optim", "no_shard"]}, {"assets": ["a", TINY_MODEL]}):
            (name,) = what
            self.assertRaisesRegex(mckpt.Error, f"`{name}` has one value", lambda what=what: mckpt.plan(TINY_MODEL, "b", to="fsdp", **what))
        for call in (lambda names: mckpt.load(TINY_MODEL, "cpu", names=names, progress=False), lambda names: mckpt.diff(TINY_MODEL, TINY_MODEL, names=names, progress=False)):
            for names in ([], ["*norm*", "lm*"]):
                self.assertRaisesRegex(TypeError, "names is one glob", lambda call=call, names=names: call(names))

    def test_a_difference_of_a_quantised_model_is_counted(self):
        quiet = {"progress": False}
        codes = mckpt.convert(TINY_MODEL, self.folder / "codes", to="quantize", scheme="fp8-block", **quiet).output
        self.assertTrue(mckpt.verify(codes, TINY_MODEL, **quiet).equal)  # it is quantised from these values
        report = mckpt.verify(TINY_MODEL, codes, **quiet)
        self.assertFalse(report.equal)
        self.assertEqual(report.differing_tensors, len(report.differences))
        found = mckpt.diff(TINY_MODEL, codes, **quiet)
        rows = {r.name: r.items for r in found.rows if r.kind == "values"}
        self.assertTrue(rows)
        self.assertEqual({d.tensor: d.items for d in report.differences}, rows)
        self.assertTrue(all(f"expected {d.expected}, found {d.found}" in str(report) for d in report.differences))

    def test_quantised_models(self):
        source = os.path.join(DATA, "quantized/gpt_oss")
        quiet = {"progress": False}
        c = mckpt.plan(source, self.folder / "values", to="dequantize", dtype="bf16")
        account = c.prove(progress=False)
        self.assertEqual((account.dequantized, account.quantized), (4, 0))
        values = c.run(progress=False).output
        self.assertTrue(mckpt.verify(values, source, **quiet).equal)
        for target in (self.folder / "one.safetensors", os.fsencode(self.folder / "one.safetensors")):
            self.assertRaisesRegex(mckpt.Error, "`max_shard_size` is for the files of a folder", lambda target=target: mckpt.plan(source, target, to="dequantize", max_shard_size=5000))
        # The files of the published model, of plain numbers and of a checkpoint.
        c = mckpt.plan(values, self.folder / "again", to="quantize", like=source)
        self.assertEqual(c.prove(progress=False).quantized, 8)
        mckpt.convert(source, self.folder / "ckpt", to="fsdp", tp=2, **quiet)
        exported = mckpt.export(self.folder / "ckpt", self.folder / "hf", assets=source, quantize="like-source", **quiet)
        for folder in (c.run(progress=False).output, exported.output):
            for name in os.listdir(source):
                self.assertEqual((Path(folder) / name).read_bytes(), (Path(source) / name).read_bytes(), name)
        mckpt.convert(values, self.folder / "mxfp4", to="quantize", scheme="mxfp4", **quiet)
        self.assertTrue(mckpt.verify(self.folder / "mxfp4", values, **quiet).equal)
        for what, error in (({}, "is missing"), ({"scheme": "int4"}, "does not name a scheme"), ({"scheme": "mxfp4", "like": source}, "belongs to")):
            self.assertRaisesRegex(mckpt.Error, error, lambda what=what: mckpt.plan(values, "b", to="quantize", **what))

    def test_one_of_two_models_is_chosen(self):
        two, one = Path(DATA, "saved_dicts", "two_models.pt"), self.folder / "critic.safetensors"
        self.assertRaisesRegex(mckpt.Error, "`model_dict` NAME", lambda: mckpt.plan(two, one, to="safetensors"))
        mckpt.convert(two, one, to="safetensors", model_dict="critic", progress=False)
        with mckpt.open(one) as ckpt:
            firsts = {name: struct.unpack("<f", tensor.tobytes()[:4])[0] for name, tensor in ckpt.items()}
        self.assertEqual(firsts, {"bert.embeddings.weight": 1000, "bert.pooler.dense.bias": 1100})
        report = mckpt.verify(one, two, model_dict="critic", progress=False)
        self.assertTrue(report.equal)
        self.assertIn("but 3 tensors beside the model were not compared", str(report))
        self.assertFalse(mckpt.verify(one, two, model_dict="actor", progress=False).equal)
        self.assertTrue(mckpt.diff(one, two, model_dict="critic", progress=False).equal)

    def test_an_adapter_is_its_base_merged(self):
        data = Path(DATA, "adapters", "target_parameters")
        adapter, base = data / "adapter", data / "base"
        with open(str(data) + ".expected.json", encoding="utf-8") as f:
            expected = {name: tensor["sha256"] for name, tensor in json.load(f)["bf16"].items()}
        with mckpt.open(adapter, base=base) as ckpt:
            self.assertEqual({name: tensor.digest() for name, tensor in ckpt.items()}, expected)
        merged = mckpt.export(adapter, self.folder / "merged", base=base, progress=False).output
        with mckpt.open(merged) as ckpt:
            self.assertEqual({name: tensor.digest() for name, tensor in ckpt.items()}, expected)
        self.assertTrue(mckpt.verify(adapter, base=base, progress=False).sound)
        self.assertTrue(mckpt.diff(adapter, merged, base=base, progress=False).equal)
        for to in ("fsdp", "dcp"):
            made = mckpt.convert(adapter, self.folder / to, to=to, base=base, progress=False).output
            self.assertTrue(mckpt.verify(made, merged, progress=False).equal, to)
            self.assertFalse(mckpt.verify(made, base, progress=False).equal, to)
        loaded = mckpt.load(adapter, "cpu", base=base, progress=False)
        self.assertEqual({name: hashlib.sha256(bytes(loaded[name].tobytes())).hexdigest() for name in loaded}, expected)
        for call in (mckpt.open, lambda path, base: mckpt.plan(path, "b", to="fsdp", base=base)):
            with self.assertRaisesRegex(mckpt.Error, "no path is one"):
                call(merged, base=base)

    def test_an_archive_merges_no_adapter(self):
        data = Path(DATA, "adapters", "plain")
        with self.assertRaisesRegex(mckpt.Error, "no adapter is merged") as raised:
            mckpt.convert(data / "adapter", self.folder / "archive.h5", to="hdf5", base=data / "base", progress=False)
        self.assertEqual(raised.exception.status, 2)
        self.assertFalse((self.folder / "archive.h5").exists())

    def test_wrong_settings_are_refused(self):
        for settings, text in (({"strategi": "optim"}, "did you mean"), ({"tp": "two"}, "whole number")):
            with self.assertRaisesRegex(mckpt.Error, text) as raised:
                mckpt.plan(TINY_MODEL, self.folder / "ckpt", to="fsdp", **settings)
            self.assertEqual(raised.exception.status, 2)
        self.assertRaisesRegex(mckpt.Error, "hf, mcore, reshard", lambda: mckpt.plan("a", "b", to="gguf"))
        self.assertRaisesRegex(mckpt.Error, "`tp`.*a whole number, found 2.0", lambda: mckpt.plan("a", "b", to="fsdp", tp=2.0))
        self.assertRaisesRegex(TypeError, "mckpt.diff", lambda: mckpt.plan("a", "b", to="fsdp", rtol=0.5))
        for call in (lambda: mckpt.convert("a", "b", to="fsdp", dry_run=True), lambda: mckpt.export("a", "b", dry_run=True)):
            self.assertRaisesRegex(TypeError, r"mckpt\.plan", call)

    def test_a_rule_that_decides_nothing_is_refused(self):
        for rules in ({"*router*": "fp32", "*": "fp16"}, {"*router*": ["bf16", "fp16"]}):
            with self.assertRaisesRegex(mckpt.Error, r"a later rule decides .*found \*router\*=") as raised:
                mckpt.plan(TINY_MODEL, self.folder / "no", to="fsdp", dp=2, dtype_rule=rules)
            self.assertEqual(raised.exception.code, "MC1007")
        mckpt.plan(TINY_MODEL, self.folder / "no", to="fsdp", dp=2, dtype_rule={"*": "fp16", "*router*": "fp32"})

    def test_threads_are_counted_as_they_are(self):
        with mckpt.open(TINY_MODEL) as ckpt:
            for threads, found in ((2**32 + 1, "31 bits, found 4294967297"), (2**31, "31 bits, found 2147483648"), (1.5, "whole number, found 1.5"), (1025, "1 to 1024, found 1025")):
                with self.assertRaisesRegex(mckpt.Error, f"threads.*{found}") as raised:
                    ckpt["lm_head.weight"].statistics(threads)
                self.assertEqual((raised.exception.code, raised.exception.status), ("MC0001", 2))
            self.assertGreater(ckpt["lm_head.weight"].statistics(threads=1024).numbers, 0)
        self.assertRaisesRegex(mckpt.Error, "threads.*1 to 1024, found 1000000000", lambda: mckpt.load(TINY_MODEL, "cpu", threads=10**9, progress=False))

    def test_paths_that_are_not_utf8_come_back(self):
        for odd in (b"a\xff", b"\xe2\x82 \xf0\x9f\x98", "\u00e9".encode() + b"\xed\xa0\x80"):
            out = os.fsencode(self.folder) + b"/" + odd
            planned = mckpt.plan(TINY_MODEL, out, to="fsdp")
            done = planned.run(progress=False)
            self.assertEqual((os.fsencode(planned.path), os.fsencode(done.output)), (out + b"/release",) * 2)
            self.assertTrue(os.path.exists(done.output))
            self.assertTrue(repr(planned).encode())  # what print() writes
            back = mckpt.plan(done.output, out + b"2", to="hf")
            self.assertIn(out + b"/release", [os.fsencode(source) for source in back.sources])
            self.assertTrue(back._repr_html_().encode())
            with mckpt.open(out) as ckpt:
                self.assertEqual(os.fsencode(ckpt.path), out + b"/release")
                self.assertTrue(repr(ckpt).encode())
                name = next(iter(ckpt))
                self.assertTrue(all(os.fsencode(chunk.file) for chunk in ckpt[name].chunks()))
            checked, compared = mckpt.verify(out, progress=False), mckpt.diff(out, out, progress=False)
            for answer in (checked, compared):
                self.assertTrue((repr(answer) + str(answer) + answer._repr_html_()).encode())
            with self.assertRaises(mckpt.Error) as raised:
                mckpt.open(out + b"/nothing")
            self.assertEqual(os.fsencode(raised.exception.file), out + b"/nothing")
            self.assertTrue(str(raised.exception).encode())

    def test_settings_without_effect_are_refused(self):
        quiet = {"progress": False}
        for settings, says in (({"hsdp_outer": "shard"}, "shares nothing"), ({"source_tp": 2}, "source_tp"), ({"source_ep": 2}, "source_ep")):
            with self.assertRaisesRegex(mckpt.Error, says):
                mckpt.plan(TINY_MODEL, self.folder / "no", to="fsdp", dp=2, **settings)
        mcore = mckpt.convert(TINY_MODEL, self.folder / "mcore", to="mcore", **quiet).output
        with self.assertRaisesRegex(mckpt.Error, "fp8_recipe"):
            mckpt.plan(mcore, self.folder / "no", to="reshard", tp=2, fp8_recipe="mxfp8")
        dump = os.path.join(DATA, "live_ranks", "tiny_qwen3_moe.tp2_rank1.json")
        self.assertTrue(mckpt.diff(dump, TINY_MODEL, live="megatron", tp=2, **quiet).equal)
        self.assertFalse(mckpt.diff(dump, TINY_MODEL, live="megatron", tp=2, spelling="usual", **quiet).equal)
        self.assertFalse(mckpt.diff(TINY_MODEL, dump, live="megatron", tp=2, spelling=["usual"], **quiet).equal)
        with self.assertRaisesRegex(mckpt.Error, "for a run under Megatron-FSDP"):
            mckpt.diff(dump, TINY_MODEL, live="megatron", tp=2, engine="v2", **quiet)

    def test_weights_in_8_bits_stay_packed(self):
        quiet = {"progress": False}
        eight = mckpt.convert(TINY_MODEL, self.folder / "eight", to="fsdp", dp=3, fp8_recipe="delayed", **quiet).output
        recipes = mckpt.open(eight).packing["fp8_recipes"]
        self.assertEqual(recipes[:3], ["tensorwise", "delayed", "blockwise"])
        for recipe, packed in ((None, True), ("auto", True), ("none", False), ("blockwise", True)):
            settings = {} if recipe is None else {"fp8_recipe": recipe}
            out = mckpt.convert(eight, self.folder / f"to_{recipe}", to="reshard", dp=3, **settings, **quiet).output
            self.assertEqual(bool(mckpt.open(out).packing["fp8_recipes"]), packed, recipe)

    def test_an_existing_result_is_replaced_only_on_request(self):
        for _ in range(2):
            mckpt.convert(TINY_MODEL, self.folder / "ckpt", to="fsdp", overwrite=True, progress=False)
        with self.assertRaises(mckpt.Error) as raised:
            mckpt.convert(TINY_MODEL, self.folder / "ckpt", to="fsdp", progress=False)
        self.assertEqual(raised.exception.status, 4)

    def test_verify_finds_damage(self):
        broken = self.folder / "model.safetensors"
        broken.write_bytes(b"not a safetensors file at all")
        report = mckpt.verify(broken, progress=False)
        self.assertEqual((report.sound, report.equal), (False, None))
        self.assertRegex(str(report.findings[0]), r"^problem\[MC")
        self.assertIn("not sound", repr(report))
        self.assertIs(report.ok, False)
        self.assertIs(mckpt.verify(TINY_MODEL, progress=False).ok, True)
        self.assertIn("<table>", report._repr_html_())

    def test_verify_takes_warnings_for_problems(self):
        odd = os.path.join(DATA, "pt", "training.pt")  # one rank's file, and of an odd optimizer
        report = mckpt.verify(odd, progress=False)
        self.assertEqual([f.code for f in report.findings if not f.warning], ["MC1304"])
        self.assertIn("groups", [c.name for c in report.checks])
        odd = os.path.join(DATA, "pt", "no_checksums.pt")
        report = mckpt.verify(odd, progress=False)
        self.assertTrue(report.sound and all(f.warning for f in report.findings) and report.findings)
        strict = mckpt.verify(odd, strict=True, progress=False)
        self.assertFalse(strict.ok)
        self.assertEqual([f.message for f in report.findings], [f.message for f in strict.findings])
        self.assertTrue(mckpt.verify(TINY_MODEL, strict=True, progress=False).ok)
        with self.assertRaises(mckpt.Error):
            mckpt.verify(odd, odd, strict=True, progress=False)
        for wrong in ("yes", "", 2):
            with self.assertRaisesRegex(mckpt.Error, f"`strict` is not allowed: expected True or False, found {wrong!r}"):
                mckpt.verify(TINY_MODEL, strict=wrong, progress=False)

    def test_what_verify_does_not_read_has_its_path(self):
        model = shutil.copytree(TINY_MODEL, self.folder / "model")
        (model / "modeling_own.py").write_text("0\n")
        report = mckpt.verify(model, progress=False)
        self.assertEqual((report.unread, report.unread_paths), (["modeling_own.py (code)"], ["modeling_own.py"]))

    def test_verify_finds_differences(self):
        name = "model-00001-of-00002.safetensors"
        changed = self.folder / name
        data = bytearray(Path(TINY_MODEL, name).read_bytes())
        data[-1] ^= 1
        changed.write_bytes(data)
        report = mckpt.verify(changed, f"{TINY_MODEL}/{name}", progress=False)
        self.assertIs(report.equal, False)
        (difference,) = report.differences
        self.assertEqual(difference.items, 1)
        self.assertIsInstance(difference.largest, float)
        self.assertIn(difference.tensor, str(report))
        self.assertIn("differs from", repr(report))
        self.assertIs(report.ok, False)
        self.assertRaisesRegex(TypeError, r"report\.ok.*\.equal.*\.sound", lambda: bool(report))

    def test_verify_counts_what_a_cast_rounds(self):
        half = self.folder / "half"
        mckpt.convert(TINY_MODEL, half, to="fsdp", dtype="fp16", progress=False)
        report = mckpt.verify(half, TINY_MODEL, report=self.folder / "half.json", progress=False)
        self.assertEqual((report.equal, report.rounded), (True, 45))
        self.assertIn("after a cast that rounds 45 tensors", repr(report))
        self.assertEqual(json.loads((self.folder / "half.json").read_text())["against"]["rounded"], 45)
        self.assertEqual(mckpt.verify(TINY_MODEL, TINY_MODEL, progress=False).rounded, 0)
        self.assertIsNone(mckpt.verify(TINY_MODEL, progress=False).rounded)

    def test_verify_says_what_a_cast_made_infinite(self):
        for name, dtype, data in (("wide", "F32", struct.pack("<3f", 1, 70000, 2)), ("half", "F16", struct.pack("<3e", 1, math.inf, 2))):
            header = json.dumps({"w": {"dtype": dtype, "shape": [3], "data_offsets": [0, len(data)]}}).encode()
            (self.folder / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
        report = mckpt.verify(self.folder / "half.safetensors", self.folder / "wide.safetensors", progress=False)
        self.assertTrue(report.equal)
        self.assertIn(", but 1 tensor has values that a cast made infinite", repr(report))

    def test_verify_by_the_model(self):
        model = self.folder / "model"
        model.mkdir()
        config = json.loads(Path(TINY_MODEL, "config.json").read_text())
        (model / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
        report = mckpt.verify(TINY_MODEL, assets=model, progress=False)
        self.assertEqual([f.code for f in report.findings], ["MC2005"])
        self.assertEqual([c.status for c in report.checks if c.name == "model"], ["fail"])

    def test_progress_comes_in_the_thread_of_the_caller(self):
        import threading

        seen = []
        mckpt.convert(TINY_MODEL, self.folder / "ckpt", to="fsdp", progress=lambda p: seen.append((p, threading.current_thread())))
        self.assertTrue(seen)
        self.assertTrue(all(p.phase and p.done >= 0 and t is threading.current_thread() for p, t in seen))

    def test_progress_ends_full(self):
        def last_events(**how):
            seen = []
            mckpt.convert(TINY_MODEL, self.folder / "ckpt", to="fsdp", progress=seen.append, **how)
            for before, after in zip(seen, seen[1:]):
                self.assertGreaterEqual(after.done, before.done, seen)  # no bar goes back
            return {p.phase: p for p in seen}

        for how in ({}, {"overwrite": True}):
            last = last_events(**how)
            self.assertEqual(list(last), ["prove", "write", "finish"])
            self.assertTrue(all(p.done == p.bytes for p in last.values()), last)
            self.assertGreater(last["finish"].bytes, 10000)

    def test_what_cannot_show_progress_is_refused_first(self):
        for wrong in (3, "bar", 0):
            for work in (lambda: mckpt.convert("/nowhere", self.folder / "ckpt", to="fsdp", progress=wrong), lambda: mckpt.verify("/nowhere", progress=wrong),
                         lambda: mckpt.load("/nowhere", "cpu", progress=wrong), lambda: mckpt.diff("/nowhere", "/nowhere", progress=wrong)):
                self.assertRaisesRegex(TypeError, "progress is a function", work)

    def test_the_grid(self):
        c = mckpt.plan(TINY_MODEL, self.folder / "ckpt", to="fsdp", tp=2, ep=4)  # ep needs two more ranks
        grid = {"tp": 2, "cp": 1, "ep": 4, "etp": 1, "pp": 1, "dp": 2, "hsdp": 1, "ranks": 4}
        self.assertEqual(c.grid, grid)
        self.assertIn("<td>ep=4</td>", c._repr_html_())
        done = c.run(progress=False)
        self.assertEqual(done.grid, grid)
        self.assertEqual(mckpt.plan(done.output, self.folder / "other", to="reshard", dp=3).grid["ranks"], 3)
        self.assertIsNone(mckpt.export(done.output, self.folder / "hf", progress=False).grid)
        self.assertEqual(hash(done), hash(done))

    def test_torch_dist(self):
        core = mckpt.convert(TINY_MODEL, self.folder / "core", to="mcore", tp=2, layers="indexed", progress=False)
        self.assertEqual((core.grid["tp"], core.grid["ranks"]), (2, 2))
        with mckpt.open(core.output) as opened:
            self.assertEqual(opened["decoder.layers.1.mlp.experts.experts.linear_fc1.weight"].shape, (4, 16, 16))
        self.assertTrue(mckpt.verify(core.output, against=TINY_MODEL, progress=False).ok)
        with self.assertRaisesRegex(mckpt.Error, "layers"):
            mckpt.plan(TINY_MODEL, self.folder / "other", to="mcore", layers="each")

    def test_exceptions_of_callbacks_reach_the_caller(self):
        class Enough(Exception):
            pass

        def enough(progress):
            raise Enough(progress.phase)

        for work in (lambda: mckpt.convert(TINY_MODEL, self.folder / "ckpt", to="fsdp", progress=enough), lambda: mckpt.verify(TINY_MODEL, progress=enough),
                     lambda: mckpt.plan(TINY_MODEL, self.folder / "other", to="fsdp").prove(progress=enough)):
            self.assertRaises(Enough, work)

    def test_the_bar_is_one_line_that_goes_away(self):
        to = io.StringIO()
        bar = mckpt.progress.Bar(to)
        bar(mckpt.Progress("write", 50, 100))
        self.assertIn("50%", to.getvalue())
        bar(mckpt.Progress("finish", 0, 0))
        bar.end()
        self.assertTrue(to.getvalue().endswith("\r\x1b[K"))
        self.assertNotIn("\n", to.getvalue())

    def test_a_notebook_has_a_bar_and_tables(self):
        import sys
        import types
        from unittest import mock

        shown = []

        class Handle:
            def update(self, made):
                shown.append(made)

        def display(made, display_id):
            self.assertIs(display_id, True)
            shown.append(made)
            return Handle()

        ipython = types.ModuleType("IPython")
        ipython.display = types.ModuleType("IPython.display")
        ipython.display.display, ipython.display.HTML = display, str
        ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
        with mock.patch.dict(sys.modules, {"IPython": ipython, "IPython.display": ipython.display}):
            c = mckpt.plan(TINY_MODEL, self.folder / "ckpt", to="fsdp")
            done = c.run()
            self.assertTrue(any("<progress" in text for text in shown), shown)
            self.assertEqual(shown[-1], "")
            count = len(shown)
            mckpt.verify(done.output, progress=False)
            self.assertEqual(len(shown), count)
            ipython.get_ipython = lambda: None  # IPython is imported, but this is not a notebook
            mckpt.verify(done.output)
            self.assertEqual(len(shown), count)
        self.assertIn("<td>copied</td>", c._repr_html_())
        self.assertIn("<td>tensors_in</td><td>45</td>", c.account._repr_html_())
        self.assertIn("<td>output</td>", done._repr_html_())
        with mckpt.open(TINY_MODEL) as ckpt:
            self.assertIn("<td>lm_head.weight</td><td>bfloat16</td><td>[32, 16]</td><td>1,024</td>", ckpt._repr_html_())
            self.assertIn("<td>nan</td><td>0</td>", ckpt["lm_head.weight"].statistics()._repr_html_())

    def test_a_view_of_a_sharded_checkpoint(self):
        mckpt.convert(TINY_MODEL, self.folder / "ckpt", to="fsdp", tp=2, progress=False)
        with mckpt.open_as_fsdp(self.folder / "ckpt") as view, mckpt.open(self.folder / "ckpt") as ckpt:
            self.assertEqual(len(view), len(ckpt))
        self.assertTrue(os.path.isdir(os.path.join(DATA, "dcp/torch_dist_mini")))
        with mckpt.open(os.path.join(DATA, "dcp/torch_dist_mini")) as plain:
            self.assertGreater(len(plain), 0)


run()
