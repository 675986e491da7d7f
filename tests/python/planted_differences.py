"""mckpt.diff() of two hundred pairs with planted differences of every kind: values, types, shapes, orders, missing and extra
tensors, configs, metadata, decoded sides, casts and states. Every one is named, and the two orders of the arguments mirror each
other; a sample through the program says the same as text and as JSON. With the standard library alone. usage: planted_differences.py"""
import json
import random
import shutil
import struct
import tempfile
import unittest
from pathlib import Path

from mckpt_tests.package import run
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

import mckpt

COLUMNS, LAYERS, EXPERTS = 16, 2, 3
MIRROR = {"only_a": "only_b", "only_b": "only_a"}


def bf16(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def value(two):
    return struct.unpack("<f", b"\0\0" + two)[0]


def items(data, size=2):
    return [data[i : i + size] for i in range(0, len(data), size)]


def widened(data):
    return b"".join(b"\0\0" + two for two in items(data))


def model(r):
    """name -> [dtype, shape, bytes]: a small model in bfloat16 with states of an optimizer and a random state."""
    def drawn(*shape):
        count = 1
        for n in shape:
            count *= n
        return ["BF16", list(shape), b"".join(bf16(r.gauss(0, 1)) for _ in range(count))]

    out = {"model.embed_tokens.weight": drawn(32, COLUMNS), "model.norm.weight": drawn(COLUMNS)}
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        out[at + "input_layernorm.weight"] = drawn(COLUMNS)
        out[at + "self_attn.q_proj.weight"] = drawn(COLUMNS, COLUMNS)
        for expert in range(EXPERTS):
            out[f"{at}mlp.experts.{expert}.up_proj.weight"] = drawn(8, COLUMNS)
    for name in ("model.norm.weight", "model.layers.1.self_attn.q_proj.weight"):
        for state in ("exp_avg", "exp_avg_sq"):
            dtype, shape, data = drawn(*out[name][1])
            out[f"optimizer.state.{state}.{name}"] = ["F32", shape, widened(data)]
    out["rng_state.torch"] = ["U8", [64], bytes(r.randrange(256) for _ in range(64))]
    return out


def write(path, tensors, metadata=None):
    entries, data = {}, b""
    if metadata is not None:
        entries["__metadata__"] = metadata
    for name, (dtype, shape, values) in tensors.items():
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    header = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def matrices(tensors):
    return [n for n in tensors if "proj" in n and n.startswith("model.")]


# Each plants a difference into `b` and returns the rows that a diff must have, as (kind, name) or (kind, name, at).
def one_item(r, b):
    name = r.choice([n for n in b if n.startswith("model.")])
    at = r.randrange(len(b[name][2]) // 2)
    parts = items(b[name][2])
    parts[at] = bf16(value(parts[at]) + 3)
    b[name][2] = b"".join(parts)
    width = b[name][1][-1]
    return [("values", name, f"[{at}]" if len(b[name][1]) == 1 else f"[{at // width}, {at % width}]")]


def scaled(r, b):
    name = r.choice(matrices(b))
    b[name][2] = b"".join(bf16(1.25 * value(two)) for two in items(b[name][2]))
    return [("values", name)]


def not_finite(r, b):
    name = r.choice(matrices(b))
    parts = items(b[name][2])
    parts[r.randrange(len(parts))] = struct.pack("<H", r.choice([0x7FC0, 0x7F80, 0xFF80]))
    b[name][2] = b"".join(parts)
    return [("values", name)]


def other_type(r, b):
    name = r.choice([n for n in b if n.startswith("model.")])
    b[name][0], b[name][2] = "F32", widened(b[name][2])
    return [("cast", name)]


def trained(r, b):
    """In the type of a training run, by less than bfloat16 shows."""
    name = r.choice(matrices(b))
    b[name][0] = "F32"
    b[name][2] = b"".join(struct.pack("<f", value(two) * (1 + 1e-5)) for two in items(b[name][2]))
    return [("cast", name), ("values", name)]


def half(r, b):
    """Neither type has all values of the other."""
    name = r.choice(matrices(b))
    b[name][0] = "F16"
    b[name][2] = b"".join(struct.pack("<e", value(two) + 2**-10) for two in items(b[name][2]))
    return [("cast", name), ("values", name)]


def integers(r, b):
    name = r.choice([n for n in b if n.startswith("model.")])
    b[name][0] = "I16"
    return [("cast", name), ("values", name)]


def other_shape(r, b):
    name = r.choice(matrices(b))
    rows, columns = b[name][1]
    b[name][1] = [columns, rows] if rows != columns else [rows * columns]
    return [("shape", name)]


def swapped(r, b):
    layer, one, other = r.randrange(LAYERS), *r.sample(range(EXPERTS), 2)
    first, second = (f"model.layers.{layer}.mlp.experts.{e}.up_proj.weight" for e in (one, other))
    b[first], b[second] = b[second], b[first]
    return [("values", first), ("values", second)]


def other_rows(r, b):
    name = r.choice(matrices(b))
    rows = items(b[name][2], 2 * COLUMNS)
    b[name][2] = b"".join(rows[4:] + rows[:4])
    return [("values", name)]


def other_columns(r, b):
    name = r.choice(matrices(b))
    b[name][2] = b"".join(row[8:] + row[:8] for row in items(b[name][2], 2 * COLUMNS))
    return [("values", name)]


def transposed(r, b):
    name = f"model.layers.{r.randrange(LAYERS)}.self_attn.q_proj.weight"
    parts = items(b[name][2])
    b[name][2] = b"".join(parts[c * COLUMNS + row] for row in range(COLUMNS) for c in range(COLUMNS))
    return [("values", name)]


def missing(r, b):
    name = r.choice(list(b))
    del b[name]
    return [("only_a", name)]


def extra(r, b):
    name = r.choice(["model.extra.weight", "model.layers.1.mlp.bias", "lm_head.weight", "model.layers.2.input_layernorm.weight"])
    b[name] = ["BF16", [3], bf16(1) * 3]
    return [("only_b", name)]


def states(r, b):
    name = r.choice([n for n in b if n.startswith("optimizer.")])
    b[name][2] = b"".join(struct.pack("<f", x * 1.5) for (x,) in struct.iter_unpack("<f", b[name][2]))
    return [("values", name)]


def random_state(r, b):
    b["rng_state.torch"][2] = bytes(255 - x for x in b["rng_state.torch"][2])
    return [("values", "rng_state.torch")]


def several(r, b):
    """The words of one difference must not hide another one."""
    rows = []
    for plant in (one_item, other_type, states, missing, extra):
        taken = {name: b.pop(name) for name in {row[1] for row in rows} if name in b}
        rows += plant(r, b)
        b.update(taken)
    return rows


OF_TENSORS = [(one_item, 24), (scaled, 6), (not_finite, 12), (other_type, 14), (trained, 14), (half, 6), (integers, 4), (other_shape, 10),
              (swapped, 6), (other_rows, 5), (other_columns, 5), (transposed, 4), (missing, 14), (extra, 8), (states, 10), (random_state, 2), (several, 6)]

# Differences of two config.json: a function of the config, and the places that a diff must name.
CONFIGS = [(lambda c: c.update(rope_theta=5.0), [".rope_theta"]), (lambda c: c.pop("hidden_act"), [".hidden_act"]),
           (lambda c: c.update(dtype="float32"), [".dtype"]), (lambda c: c.update(more={"x": [1]}), [".more"]),
           (lambda c: c.update(architectures=["Other"]), [".architectures[0]"]), (lambda c: c.update(architectures=[]), [".architectures"]),
           (lambda c: c.update(num_hidden_layers=9, vocab_size=7), [".num_hidden_layers", ".vocab_size"]),
           (lambda c: c.update({"odd key": None}), ['["odd key"]']), (lambda c: c.update(tie_word_embeddings=None), [".tie_word_embeddings"]),
           (lambda c: c.update(rms_norm_eps=1), [".rms_norm_eps"]), (lambda c: c.update(hidden_act="s" * 200), [".hidden_act"]),
           (lambda c: c.update(hidden_act="silu\u00e9"), [".hidden_act"])]
METADATA = [({"x": "1"}, {"x": "2"}, [".x"]), ({"x": "1"}, {}, [".x"]), ({}, {"y": "\u00e9"}, [".y"]), ({"format": "pt"}, {"format": "np"}, [".format"]),
            ({"x": "1", "y": "1"}, {"x": "2", "z": "1"}, [".x", ".y", ".z"]), ({"x": ""}, {}, [".x"])]


def mirrored(row):
    return MIRROR.get(row.kind, row.kind), row.name, row.at, row.b, row.a, row.items, row.largest, row.not_finite


def plain(row):
    return row.kind, row.name, row.at, row.a, row.b, row.items, row.largest, row.not_finite


class Planted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.planted = 0

    def judge(self, a, b, expected, sample=False):
        """`expected`: rows of diff(a, b), no more and no fewer, as (kind, name) or (kind, name, at)."""
        type(self).planted += 1
        said = f"{self.planted}: {expected}"
        first, second = (mckpt.diff(str(x), str(y), progress=False) for x, y in ((a, b), (b, a)))
        self.assertEqual(sorted(map(plain, first), key=str), sorted(map(mirrored, second), key=str), said)
        self.assertEqual((first.equal, second.equal, first.alike, second.alike), (False,) * 4, said)
        self.assertEqual(first.tensors, second.tensors, said)
        found = sorted((row.kind, row.name) for row in first)
        self.assertEqual(found, sorted(row[:2] for row in expected), said)
        for kind, name, *at in expected:
            if at:
                self.assertIn((kind, name, at[0]), [(r.kind, r.name, r.at) for r in first], said)
        for row in first:
            self.assertEqual((row.relative_l2 is None or row.cosine is None), row.kind != "values" or row.not_finite > 0 or "rng" in row.name, f"{row}")
        if sample:
            self.through_the_program(a, b, first, second)

    def through_the_program(self, a, b, first, second):
        for one, other, diff in ((a, b, first), (b, a, second)):
            text, answer = (run_mckpt("diff", str(one), str(other), *flags) for flags in ((), ("--json",)))
            self.assertEqual((text.returncode, answer.returncode), (1, 1), text.stderr)
            self.assertNotIn("bit-equal (", text.stdout)
            rows = json.loads(answer.stdout)["rows"]
            self.assertEqual([(r["kind"], r["name"], r["at"], r["a"], r["b"], r["relative_l2"], r["cosine"]) for r in rows],
                             [(r.kind, r.name, r.at, r.a, r.b, r.relative_l2, r.cosine) for r in diff])
            for row in diff:
                self.assertIn(row.name if row.kind != "values" else f"  {row.name}", text.stdout)
                if row.kind == "file" or row.kind == "object":
                    self.assertIn(row.name + row.at, text.stdout)
                elif row.kind == "cast":
                    self.assertIn(f"{row.a} | {row.b}", text.stdout)

    def test_tensors(self):
        number = 0
        for plant, count in OF_TENSORS:
            for _ in range(count):
                number += 1
                r = random.Random(number)
                a = model(r)
                b = {name: list(tensor) for name, tensor in a.items()}
                expected = plant(r, b)
                paths = self.folder / "a.safetensors", self.folder / "b.safetensors"
                write(paths[0], a), write(paths[1], b)
                self.judge(*paths, expected, sample=number % 6 == 0)
        self.assertEqual(number, 150)

    def test_configs(self):
        a, b = self.model_folder("a"), self.model_folder("b")
        original = json.loads((a / "config.json").read_text())
        for number, (change, places) in enumerate(CONFIGS):
            config = json.loads(json.dumps(original))
            change(config)
            (b / "config.json").write_text(json.dumps(config))
            self.judge(a, b, [("file", "config.json", at) for at in places], sample=number % 4 == 0)
        # Spaces, the order of keys and the spelling of a number are not a difference.
        (b / "config.json").write_text(json.dumps(dict(reversed(original.items())), indent=7).replace("1e-06", "0.000001"))
        self.assertTrue(mckpt.diff(str(a), str(b), progress=False).equal)
        self.assertTrue(mckpt.diff(str(b), str(a), progress=False).equal)
        # A file that is not JSON is compared by its bytes.
        (b / "config.json").write_text((a / "config.json").read_text()[:-3])
        self.judge(a, b, [("file", "config.json")])

    def test_metadata(self):
        tensors = model(random.Random(1))
        a, b = self.folder / "a.safetensors", self.folder / "b.safetensors"
        for number, (of_a, of_b, places) in enumerate(METADATA):
            write(a, tensors, of_a), write(b, tensors, of_b)
            self.judge(a, b, [("object", "__metadata__", at) for at in places], sample=number % 3 == 0)
        # The mark of torch is not a difference, and is named.
        write(a, tensors, {"format": "pt"}), write(b, tensors)
        d = mckpt.diff(str(a), str(b), progress=False)
        self.assertTrue(d.equal)
        self.assertIn("not compared: format of __metadata__, which only one side has", [c.note for c in d.checks])

    def test_decoded(self):
        codes = self.folder / "fp8"
        mckpt.convert(str(self.model_folder("plain")), str(codes), to="quantize", scheme="fp8-block", progress=False)
        for scheme, codes in (("fp8", codes), ("mxfp4", Path(DATA) / "quantized" / "gpt_oss")):
            values = self.folder / f"{scheme}.values"
            mckpt.convert(str(codes), str(values), to="dequantize", progress=False)
            decoded = {row.name for row in mckpt.diff(str(codes), str(values), progress=False) if row.kind == "cast"}
            self.assertTrue(all("proj" in name for name in decoded) and decoded, decoded)
            expected = [("cast", name) for name in decoded] + [("file", "config.json", ".quantization_config")]
            self.judge(codes, values, expected, sample=False)
            row = next(row for row in mckpt.diff(str(codes), str(values), progress=False) if row.kind == "cast")
            self.assertEqual((row.a.split()[0], row.b), (scheme, "bfloat16"))
            for name in sorted(decoded)[:5]:  # a value beside the type
                other = self.changed(values, name)
                self.judge(codes, other, expected + [("values", name)], sample=False)
            # Between a checkpoint and its quantised source
            mckpt.convert(str(values), str(self.folder / f"{scheme}.ckpt"), to="fsdp", sync=False, progress=False)
            for one, two in ((codes, f"{scheme}.ckpt"), (f"{scheme}.ckpt", codes)):
                d = mckpt.diff(str(self.folder / one), str(self.folder / two), progress=False)
                self.assertEqual(({row.kind for row in d}, d.equal), ({"cast", "file"}, False))
                type(self).planted += 1

    def test_formats(self):
        """One model as a folder and as checkpoints of a run: the differing tensor is named under the names of the first."""
        base = self.model_folder("base")
        for number, to in enumerate(("fsdp", "mcore", "ranks")):
            for name in ("model.layers.1.self_attn.k_proj.weight", "model.norm.weight", "lm_head.weight"):
                for dtype in (None, "fp32"):
                    other, ckpt = self.changed(base, name), self.folder / f"{to}.{name}.{dtype}"
                    mckpt.convert(str(other), str(ckpt), to=to, dtype=dtype, sync=False, progress=False)
                    first, second = (mckpt.diff(str(x), str(y), progress=False) for x, y in ((base, ckpt), (ckpt, base)))
                    self.assertEqual([r.name for r in first if r.kind == "values"], [name])
                    there = [r for r in second if r.kind == "values"]
                    self.assertEqual([(r.items, r.a, r.b) for r in there], [(r.items, r.b, r.a) for r in first if r.kind == "values"])
                    for d in (first, second):
                        self.assertEqual((d.equal, sum(r.kind == "cast" for r in d) > 0), (False, dtype is not None))
                    type(self).planted += 1

    @classmethod
    def tearDownClass(cls):
        assert cls.planted >= 200, f"only {cls.planted} differences were planted"

    def model_folder(self, name):
        out = self.folder / name
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(TINY_MODEL, out)
        return out

    def changed(self, folder, name):
        """A copy of the folder with another first item of the tensor."""
        out = self.folder / "changed"
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(folder, out)
        for path in out.glob("*.safetensors"):
            data = bytearray(path.read_bytes())
            length = struct.unpack("<Q", data[:8])[0]
            entry = json.loads(data[8 : 8 + length]).get(name)
            if entry:
                at = 8 + length + entry["data_offsets"][0]
                data[at : at + 2] = bf16(value(bytes(data[at : at + 2])) + 1)
                path.write_bytes(data)
        (out / "mckpt_manifest.json").unlink(missing_ok=True)
        return out


if __name__ == "__main__":
    run()
