#!/usr/bin/env python3
"""The L2 norms of `stats`: exact sums of squares of every tensor, of a model whole and in shards, and of optimizer states."""
import json
import math
import os
import random
import shutil
import struct
import tempfile
import unittest
from fractions import Fraction

from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

MODEL_PREFIX = "model.module."


def stats(path, *args):
    done = run_mckpt("stats", "--json", path, *args)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def root(power):
    """The square root of a fraction, rounded once or twice: far nearer than the tests ask for."""
    scale = 2**400
    return float(Fraction(math.isqrt(int(power * scale * scale)), scale))


def flat(values):
    return [v for part in values for v in flat(part)] if isinstance(values, list) else [values]


def write_safetensors(path, tensors):
    """tensors: name -> (dtype, struct letter, shape, numbers as they are stored)."""
    header, data = {}, b""
    for name, (dtype, letter, shape, numbers) in tensors.items():
        raw = struct.pack(f"<{len(numbers)}{letter}", *numbers)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def float_of(code):
    return struct.unpack("<f", struct.pack("<I", code))[0]


def made_model(folder, wide):
    """The tiny model with a distinct value in each item of a tensor; exact sums of squares by name."""
    with open(os.path.join(TINY_MODEL, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    config["torch_dtype"] = config["dtype"] = "float32" if wide else "bfloat16"
    os.mkdir(folder)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    listed = json.loads(run_mckpt("ls", "--json", TINY_MODEL).stdout)["tensors"]
    rng, tensors, sums = random.Random(5), {}, {}
    for t in listed:
        items = math.prod(t["shape"])
        # Magnitudes from 2^-30 to 2^30, both signs, no value twice.
        codes = rng.sample(range(97 << (23 if wide else 7), 157 << (23 if wide else 7)), items)
        codes = [c | rng.getrandbits(1) << (31 if wide else 15) for c in codes]
        tensors[t["name"]] = ("F32", "I", t["shape"], codes) if wide else ("BF16", "H", t["shape"], codes)
        sums[t["name"]] = sum(Fraction(float_of(c if wide else c << 16)) ** 2 for c in codes)
    write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
    return sums


# Parameters of the result, and the tensors that they are made of.
def parts(sums):
    layer = "model.layers.1."
    return {
        "embedding.word_embeddings.weight": sums["model.embed_tokens.weight"],
        "decoder.layers.1.self_attention.linear_proj.weight": sums[layer + "self_attn.o_proj.weight"],
        "decoder.layers.1.self_attention.linear_qkv.weight": sum(
            sums[f"{layer}self_attn.{x}_proj.weight"] for x in "qkv"),
        "decoder.layers.1.mlp.experts.linear_fc1.weight2_w": sums[layer + "mlp.experts.2.gate_proj.weight"],
        "decoder.layers.1.mlp.experts.linear_fc1.weight2_v": sums[layer + "mlp.experts.2.up_proj.weight"],
    }


class Norms(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def near(self, found, power, what, within=1e-13):
        exact = root(power)
        self.assertLessEqual(abs(found - exact), within * exact, (what, found, exact))

    def check_model(self, wide):
        path = os.path.join(self.folder.name, "hf")
        sums = made_model(path, wide)
        whole = stats(path)
        for t in whole["tensors"]:
            self.near(t["l2"], sums[t["name"]], t["name"])
        self.near(whole["l2"], sum(sums.values()), "all")
        self.assertEqual(whole["l2_tensors"], len(sums))
        for number, grid in enumerate((["--dp", 3], ["--dp", 5, "--tp", 2], ["--dp", 4, "--ep", 4])):
            ckpt = os.path.join(self.folder.name, f"ckpt{number}")
            made = run_mckpt("convert", "hf-to-fsdp", path, ckpt, "--no-sync", *grid)
            self.assertEqual(made.returncode, 0, made)
            sharded = stats(ckpt)
            found = {t["name"].removeprefix(MODEL_PREFIX): t["l2"] for t in sharded["tensors"]}
            for name, power in parts(sums).items():
                self.near(found[name], power, (grid, name))
            self.near(sharded["l2"], sum(sums.values()), grid)
            self.assertLess(abs(sharded["l2"] - whole["l2"]), 1e-12 * whole["l2"])

    def test_files_of_ranks(self):
        """Norms, the router and the tied parts that each rank has are counted once, in whatever order they are listed."""
        path = os.path.join(self.folder.name, "hf")
        sums = made_model(path, True)
        for number, grid in enumerate((["--tp", 2, "--pp", 2], ["--tp", 4], ["--ep", 2, "--tp", 2])):
            ckpt = os.path.join(self.folder.name, f"ranks{number}")
            made = run_mckpt("convert", "to-pt", path, ckpt, "--no-sync", *grid)
            self.assertEqual(made.returncode, 0, made)
            found = stats(ckpt)
            self.near(found["l2"], sum(sums.values()), grid)
            self.assertLess(found["l2_tensors"], len(found["tensors"]))
            norms = stats(ckpt, "*final_layernorm*")
            self.near(norms["l2"], sums["model.norm.weight"], grid)
            self.assertEqual(norms["l2_tensors"], 1)
            self.assertGreater(len(norms["tensors"]), 1)
            last = sorted(t["name"] for t in norms["tensors"])[-1]  # the copy alone
            self.near(stats(ckpt, last)["l2"], sums["model.norm.weight"], grid)
        line = run_mckpt("stats", ckpt).stdout.splitlines()[-1]
        self.assertRegex(line, r"^L2 of all parameters  [0-9.e+]+  \([0-9]+ tensors; [0-9]+ others are copies or unused\)$")
        # Without the config nobody knows what is a copy.
        shutil.rmtree(os.path.join(ckpt, "release", "hf_assets"))
        found = stats(ckpt)
        self.assertEqual((found["l2"], found["l2_tensors"]), (None, 0))
        line = run_mckpt("stats", ckpt).stdout.splitlines()[-1]
        self.assertRegex(line, r"^L2 of all parameters  -  \(not known: several ranks may have copies ")

    def test_a_model_in_bf16(self):
        self.check_model(wide=False)

    def test_a_model_in_fp32(self):
        self.check_model(wide=True)

    def test_chosen_tensors(self):
        path = os.path.join(self.folder.name, "hf")
        sums = made_model(path, True)
        norms = stats(path, "*norm*")
        self.near(norms["l2"], sum(v for k, v in sums.items() if "norm" in k), "norms")
        self.assertEqual(norms["l2_tensors"], sum("norm" in k for k in sums))

    def test_states_of_an_optimizer_are_not_parameters(self):
        """A real checkpoint of three ranks: the states have norms of their own and are not in the sum."""
        path = os.path.join(DATA, "dcp", "fsdp_dtensor_optim")
        found = stats(path)
        model = [t for t in found["tensors"] if t["name"].startswith("model.")]
        states = [t for t in found["tensors"] if t["name"].startswith("optimizer.") and "exp_avg" in t["name"]]
        self.assertEqual(found["l2_tensors"], len(model))
        self.assertGreater(len(states), len(model))
        self.near(found["l2"], sum(Fraction(t["l2"]) ** 2 for t in model), "parameters", 1e-12)
        for t in states[::7] + model[::5]:
            values = json.loads(run_mckpt("cat", "--json", path, t["name"]).stdout)["values"]
            self.assertEqual(t["dtype"], "float32")  # of which `cat` prints the shortest text that leads back
            power = sum(Fraction(struct.unpack("<f", struct.pack("<f", v))[0]) ** 2 for v in flat(values))
            self.near(t["l2"], power, t["name"])

    def test_quantised_weights(self):
        """As docs/json.md says: numbers of the values, and with --raw of the codes."""
        path, name = os.path.join(DATA, "quantized", "deepseek_v3_128"), "model.layers.0.mlp.up_proj.weight"
        for args, dtype in (((), "bfloat16"), (("--raw",), "float8_e4m3fn")):
            values = flat(json.loads(run_mckpt("cat", "--json", path, name, *args).stdout)["values"])
            (found,) = stats(path, name, *args)["tensors"]
            self.assertEqual((found["dtype"], found["count"]), (dtype, len(values)))
            self.assertEqual(found["max"], max(values))
            self.near(found["l2"], sum(Fraction(v) ** 2 for v in values), dtype, 1e-6)

    def test_extremes(self):
        """Squares that doubles cannot hold, outliers, values that are not finite, and no value at all."""
        quiet = 0x7FC00000
        cases = {
            "huge": ("F64", "d", [1.7e308, -1.6e308, 3.0]),
            "tiny": ("F64", "d", [5e-324, 1e-320, 2.5e-310]),
            "mixed": ("F64", "d", [1e-200, 1e-190, 0.0]),
            "equal": ("F64", "d", [1e-170] * 5),
            "zeros": ("F32", "f", [0.0] * 9),
            "outlier": ("F32", "f", [float_of(0x4F000000)] + [float_of(0x3C000000 + 3 * i) for i in range(9000)]),
            "long": ("I64", "q", [2**62 + 1, -2**61, 7]),
            "empty": ("F32", "f", []),
        }
        path = os.path.join(self.folder.name, "x.safetensors")
        tensors = {k: (d, f, [len(v)], v) for k, (d, f, v) in cases.items()}
        tensors["odd"] = ("F32", "I", [5], [quiet, 0x7F800000, 0x40400000, 0xFF800000, 0x40800000])  # 3 and 4
        tensors["none"] = ("F32", "I", [1], [quiet])
        write_safetensors(path, tensors)
        found = {t["name"]: t["l2"] for t in stats(path)["tensors"]}
        for name in ("empty", "none"):
            self.assertIsNone(found.pop(name))
        self.assertEqual((found.pop("odd"), found.pop("zeros")), (5, 0))
        for name, norm in found.items():
            power = sum(Fraction(v) ** 2 for v in cases[name][2])
            scale = 2**2400
            exact = float(Fraction(math.isqrt(int(power * scale * scale)), scale)) if name != "huge" else None
            if name == "huge":  # beyond a double's range
                self.assertEqual(norm, "Infinity")
            else:
                self.assertLessEqual(abs(norm - exact), 1e-13 * exact + 5e-324, (name, norm, exact))

    def test_text(self):
        lines = run_mckpt("stats", TINY_MODEL).stdout.splitlines()
        self.assertIn(" L2 ", lines[0])
        self.assertRegex(lines[-1], r"^L2 of all parameters  [0-9.]+  \(45 tensors\)$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
