"""mckpt.diff(): files that differ in one item, in names, types, shapes and other things than tensors; one model in several
formats and grids is equal to itself. With the standard library alone. usage: differences.py, with any Python from 3.10 on"""
import json
import os
import shutil
import struct
import tarfile
import tempfile
import unittest
from pathlib import Path

from mckpt_tests.package import run
from mckpt_tests.setting import DATA, TINY_MODEL

import mckpt


def safetensors(path, tensors):
    """tensors: name -> (dtype, shape, bytes)"""
    entries, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    header = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


def tensors_of(folder):
    """As safetensors() takes them."""
    out = {}
    for path in sorted(Path(folder).glob("*.safetensors")):
        whole = path.read_bytes()
        size = 8 + struct.unpack("<Q", whole[:8])[0]
        for name, entry in json.loads(whole[8:size]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                out[name] = (entry["dtype"], entry["shape"], whole[size + begin:size + end])
    return out


def floats(*values):
    return ("F32", [len(values)], struct.pack(f"<{len(values)}f", *values))


class Differences(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def diff(self, a, b, **how):
        """The differences both ways, which must be the same rows with the sides exchanged."""
        first, second = mckpt.diff(a, b, progress=False, **how), mckpt.diff(b, a, progress=False, **how)
        other = {"only_a": "only_b", "only_b": "only_a"}
        back = sorted((other.get(r.kind, r.kind), r.name, r.at, r.b, r.a, r.items, r.largest) for r in second)
        self.assertEqual(sorted((r.kind, r.name, r.at, r.a, r.b, r.items, r.largest) for r in first), back)
        self.assertEqual(first.equal, second.equal)
        self.assertEqual(first.tensors, second.tensors)
        return first

    def files(self, a, b):
        return self.diff(safetensors(self.folder / "a.safetensors", a), safetensors(self.folder / "b.safetensors", b))

    def test_hidden_files_are_named(self):
        a, b = self.folder / "a", self.folder / "b"
        shutil.copytree(TINY_MODEL, a), shutil.copytree(TINY_MODEL, b)
        shutil.copy(DATA + "/pt/one_tensor.pt", b / ".state.pt")
        shutil.copy(DATA + "/pt/one_tensor.pt", b / ".notes")
        found = self.diff(a, b)
        self.assertTrue(found.equal)
        self.assertEqual(found.unread, [f"{b / '.state.pt'} (a hidden file)"])
        self.assertEqual(found.unread_paths, [str(b / ".state.pt")])

    def test_equal_files(self):
        d = self.files({"v": floats(1, 2), "w": floats(3)}, {"w": floats(3), "v": floats(1, 2)})
        self.assertEqual((d.equal, d.rows, d.tensors, len(d)), (True, [], 2, 0))
        self.assertEqual(d.compared, "tensors of the same names")
        self.assertIn("equal: tensors of the same names (2 compared)", repr(d))
        self.assertRaisesRegex(TypeError, "diff.equal", lambda: bool(d))

    def test_items(self):
        d = self.files({"v": floats(1, 2, 3), "w": floats(1), "x": floats(0)}, {"v": floats(1, 2.5, 5), "w": floats(1), "x": floats(0)})
        self.assertFalse(d.equal)
        (row,) = d
        apart = (0.25 + 4) ** 0.5 / (1 + 6.25 + 25) ** 0.5
        cosine = (1 + 5 + 15) / (14 * 32.25) ** 0.5
        self.assertEqual((row.kind, row.name, row.at, row.a, row.b, row.file), ("values", "v", "[1]", "2", "2.5", "a.safetensors"))
        self.assertEqual((row.items, row.beyond, row.largest, row.most_ulps, row.hint), (2, 2, 2.0, 6291456, ""))
        self.assertAlmostEqual(row.relative_l2, apart, 12)
        self.assertAlmostEqual(row.cosine, cosine, 12)
        self.assertEqual(str(row), "values  v  [1]  2 | 2.5  (2 items differ, by 2 at most, relative L2 0.36)")
        self.assertFalse(d.alike)
        within = mckpt.diff(self.folder / "a.safetensors", self.folder / "b.safetensors", within="rtol:0.4", progress=False)
        self.assertEqual((within.alike, within.equal, within.rows[0].beyond), (True, False, 0))
        some = mckpt.diff(self.folder / "a.safetensors", self.folder / "b.safetensors", within=["v=atol:0.5"], progress=False)
        self.assertEqual((some.alike, some.rows[0].beyond), (False, 1))
        self.assertIn("not equal: 1 with other values", repr(d))
        self.assertIn("<td>v</td><td>[1]</td><td>2</td><td>2.5</td><td>2 items differ, by 2 at most, relative L2 0.36</td>", d._repr_html_())

    def test_scales_of_activations(self):
        codes = {"w.weight": ("F8_E4M3", [1, 2], bytes([0x38, 0x40])), "w.weight_scale_inv": ("F32", [1, 1], struct.pack("<f", 1))}
        values = {"w.weight": ("F32", [1, 2], struct.pack("<2f", 1, 2))}
        (row,) = self.files({**codes, "w.input_scale": floats(1)}, {**codes, "w.input_scale": floats(2)})
        self.assertEqual((row.kind, row.name, row.a, row.b), ("values", "w.input_scale", "1", "2"))
        self.assertEqual([r.kind for r in self.files({**codes, "w.input_scale": floats(1)}, codes)], ["only_a"])
        d = self.files({**codes, "w.input_scale": floats(1)}, values)
        self.assertEqual([r.kind for r in d], ["cast"])
        self.assertIn("w.input_scale (1 scale of activations or caches, which the other side does not have)", str(d))
        report = mckpt.verify(self.folder / "a.safetensors", against=self.folder / "b.safetensors", progress=False)
        self.assertTrue(report.equal)
        self.assertIn(", but 1 scale of activations or caches was not compared", repr(report))

    def test_names_types_and_shapes(self):
        a = {"mine": floats(1), "t": floats(1, 2), "s": floats(1, 2), "z": floats(1)}
        b = {"yours": ("BF16", [2], b"1234"), "t": ("I64", [2], b"1234567812345678"), "s": ("F32", [2, 1], struct.pack("<2f", 1, 2)), "z": floats(1)}
        d = self.files(a, b)
        self.assertEqual([(r.kind, r.name, r.a, r.b) for r in d],
                         [("only_a", "mine", "float32 [1]", ""), ("only_b", "yours", "", "bfloat16 [2]"), ("shape", "s", "float32 [2]", "float32 [2, 1]"),
                          ("dtype", "t", "float32 [2]", "int64 [2]")])
        self.assertEqual((d.only_a, d.only_b, d.equal, d.tensors), (["mine"], ["yours"], False, 1))
        self.assertIn("1 only in the first; 1 only in the second; 1 of another shape; 1 of another dtype, values not compared", str(d))

    def test_every_tensor_has_a_row_and_a_count(self):
        names = [f"t{i:03}" for i in range(120)]  # more than a report has findings
        d = self.files({n: floats(i) for i, n in enumerate(names)}, {n: floats(i + 1) for i, n in enumerate(names)})
        self.assertEqual([(r.name, r.items, r.largest) for r in d], [(n, 1, 1.0) for n in names])
        self.assertEqual(d.findings, [])
        lines = str(d).splitlines()
        self.assertEqual((len(lines), lines[21].split()[1], lines[22]), (23, "t019", "  ... and 100 more, in .rows"))

    def test_a_name_of_other_libraries_is_answered(self):
        for name in ("rtol", "atol"):
            self.assertRaisesRegex(TypeError, f'{name}: .*within="{name}:', lambda name=name: mckpt.diff(TINY_MODEL, TINY_MODEL, **{name: 1e-3}))

    def test_texts_of_files_are_escaped(self):
        d = self.files({"<b>": floats(1)}, {"w": floats(1)})
        self.assertIn(", 1 tensor>", repr(mckpt.open(self.folder / "a.safetensors")))
        self.assertIn("&lt;b&gt;", d._repr_html_())
        self.assertNotIn("<b>", d._repr_html_())

    def test_one_model_in_all_forms(self):
        one, two, hf = self.folder / "one", self.folder / "two", self.folder / "hf"
        mckpt.convert(TINY_MODEL, one, to="fsdp", tp=2, ep=2, progress=False)
        mckpt.convert(one, two, to="reshard", tp=1, etp=1, dp=3, progress=False)
        mckpt.export(two, hf, progress=False)
        for a, b, tensors in ((one, two, 41), (hf, TINY_MODEL, 45), (one, TINY_MODEL, 45), (two, hf, 45)):
            for d in (mckpt.diff(a, b, progress=False), mckpt.diff(b, a, progress=False)):
                self.assertEqual((d.equal, d.rows, d.tensors), (True, [], tensors), str(d))
        for d in (mckpt.diff(one, hf, progress=False), mckpt.diff(hf, one, progress=False)):
            self.assertIn("each tensor of the Hugging Face model", d.compared)

    def test_states_of_one_side_differ_in_both_orders(self):
        with tarfile.open(DATA + "/megatron_runs/chunks.tar.xz") as archive:
            archive.extractall(self.folder, filter="data")
        run, ranks = self.folder / "chunks" / "iter_0000003", self.folder / "ranks"
        mckpt.convert(run, ranks, to="ranks", assets=self.folder / "chunks" / "hf", progress=False)
        d = self.diff(ranks, run)  # files of ranks are written without an optimizer
        self.assertEqual((d.equal, d.alike, d.only_a, len(d.only_b)), (False, False, [], 76))

    def test_one_item_across_formats(self):
        mckpt.convert(TINY_MODEL, self.folder / "ckpt", to="fsdp", tp=2, progress=False)
        changed = shutil.copytree(TINY_MODEL, self.folder / "changed")
        with mckpt.open(changed) as ckpt:
            (chunk,) = ckpt["model.norm.weight"].chunks()
        with open(changed / chunk.file, "r+b") as f:
            f.seek(chunk.offset + 2 * 3)
            f.write(struct.pack("<H", 0x4000))  # 2.0
        for a, b, name in ((self.folder / "ckpt", changed, "model.norm.weight"), (changed, self.folder / "ckpt", "model.norm.weight"),
                           (changed, TINY_MODEL, "model.norm.weight")):
            d = mckpt.diff(a, b, progress=False)
            self.assertFalse(d.equal)
            (row,) = d
            self.assertEqual((row.kind, row.name, row.at, row.items), ("values", name, "[3]", 1), str(d))
            self.assertIn("2", (row.a, row.b))

    def test_a_type_that_a_conversion_changes_is_a_row(self):
        mckpt.convert(TINY_MODEL, self.folder / "ckpt", to="fsdp", dtype_rule={"*router*": "fp32"}, progress=False)
        self.assertTrue(mckpt.verify(self.folder / "ckpt", TINY_MODEL, progress=False).equal)
        d = mckpt.diff(self.folder / "ckpt", TINY_MODEL, progress=False)
        self.assertEqual({(r.kind, r.a, r.b) for r in d}, {("cast", "float32", "bfloat16")}, str(d))
        self.assertEqual((len(d), d.equal), (2, False))

    def test_other_things_than_tensors(self):
        mckpt.convert(TINY_MODEL, self.folder / "a", to="fsdp", progress=False)
        mckpt.convert(TINY_MODEL, self.folder / "b", to="fsdp", progress=False)
        config = next((self.folder / "b").rglob("config.json"))
        text = config.read_text()
        config.write_text(text + " ")
        self.assertEqual(self.diff(self.folder / "b", self.folder / "a").rows, [])  # JSON is compared by value
        config.write_text(text.replace("1000000.0", "5.0"))
        rows = [(r.kind, r.name, r.at, r.a, r.b) for r in self.diff(self.folder / "b", self.folder / "a")]
        self.assertEqual(rows, [("file", "hf_assets/config.json", ".rope_theta", "5.0", "1000000.0")])

    def test_names_without_the_front_of_the_class(self):
        for name, front in (("plain", "model."), ("lacking", "")):
            (self.folder / name).mkdir()
            shutil.copyfile(os.path.join(TINY_MODEL, "config.json"), self.folder / name / "config.json")
            tensors = {f"{front if key.startswith('model.') else ''}{key.removeprefix('model.')}": value for key, value in tensors_of(TINY_MODEL).items()}
            safetensors(self.folder / name / "model.safetensors", tensors)
        found = self.diff(self.folder / "plain", self.folder / "lacking")
        self.assertTrue(found.equal)
        self.assertIn(f"names in {self.folder / 'lacking'} lack the 'model.' in front", found.compared)
        for tested, source in (("plain", "lacking"), ("lacking", "plain")):
            self.assertTrue(mckpt.verify(self.folder / tested, against=self.folder / source, progress=False).equal)

    def test_entries_of_an_index_that_one_side_has(self):
        shutil.copytree(TINY_MODEL, self.folder / "more")
        index = self.folder / "more" / "model.safetensors.index.json"
        whole = json.loads(index.read_text())
        index.write_text(json.dumps({**whole, "metadata": {**whole["metadata"], "x": 1}}))
        rows = [(r.kind, r.name, r.at, r.a, r.b) for r in self.diff(self.folder / "more", TINY_MODEL).rows]
        self.assertEqual(rows, [("file", index.name, ".metadata.x", "1", "")])
        for tested, source in ((self.folder / "more", TINY_MODEL), (TINY_MODEL, self.folder / "more")):
            report = mckpt.verify(tested, against=source, progress=False)
            self.assertEqual((report.equal, report.findings), (True, []))
            self.assertIn(f"not compared: x in the metadata of {index.name}, which only {self.folder / 'more'} has", str(report))

    def test_weights_of_deepspeed_that_one_side_has(self):
        save, alone = os.path.join(DATA, "zero/zero1_tied_w2"), self.folder / "alone.safetensors"
        mckpt.convert(save, alone, to="safetensors", progress=False)
        found, words = self.diff(save, alone), "25 weights that DeepSpeed saves beside their float32 parts"
        self.assertTrue(found.equal)
        self.assertIn(f"compared), but {words} were not compared", repr(found))
        self.assertIn(f"not compared: {words} in the optimizer, which one side alone has: module.model.", str(found))
        report = mckpt.verify(alone, against=save, progress=False)
        self.assertIn(f"equal to {save}, but {words} were not compared", str(report).splitlines()[0])
        self.assertNotIn("DeepSpeed saves", str(self.diff(save, save)))

    def test_what_cannot_be_compared_is_an_error(self):
        with self.assertRaises(mckpt.Error) as raised:
            mckpt.diff(TINY_MODEL, self.folder / "nothing", progress=False)
        self.assertEqual(raised.exception.status, 3)
        broken = self.folder / "broken.safetensors"
        broken.write_bytes(b"not a safetensors file at all")
        self.assertRaises(mckpt.Error, mckpt.diff, broken, TINY_MODEL, progress=False)
        self.assertRaisesRegex(mckpt.Error, "did you mean", mckpt.diff, TINY_MODEL, TINY_MODEL, asset="x", progress=False)
        with self.assertRaisesRegex(mckpt.Error, "there is no `names`") as raised:
            mckpt.diff(TINY_MODEL, TINY_MODEL, regex=True, progress=False)
        self.assertEqual((raised.exception.code, raised.exception.status), ("MC0001", 2))

    def test_a_checkpoint_of_an_unknown_model(self):
        plain = os.path.join(DATA, "dcp/torch_dist_mini")
        d = self.diff(plain, plain)
        self.assertTrue(d.equal, str(d))


run()
