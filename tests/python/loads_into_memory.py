"""mckpt.load: the tensors of every format in memory, as torch has them, with and without a cast; memory that outlives what
load() returned; errors. Once in the host's memory, and once on a GPU where there is one."""
from mckpt_tests.checks import need

need("torch", "numpy")
import gc
import glob
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import torch

from mckpt_tests.hybrid_models import hybrid_model
from mckpt_tests.package import PACKAGE, run  # noqa: I001
from mckpt_tests.setting import DATA, TINY_MODEL

import mckpt

PATHS = [TINY_MODEL, os.path.join(DATA, "pt/views.pt"), os.path.join(DATA, "pt/dtypes.pt"), os.path.join(DATA, "formats/pt/lowp_dtypes.pt"),
         *sorted(glob.glob(os.path.join(DATA, "formats/safetensors/*.safetensors")))]


def bits(t):
    return t.dtype, tuple(t.shape), bytes(t.detach().cpu().clone(memory_format=torch.contiguous_format).untyped_storage())[: t.nbytes]


class Loads(unittest.TestCase):
    device = "cpu"

    def load(self, path, **how):
        return mckpt.load(path, self.device, progress=False, **how)

    def test_every_format_has_the_values_that_open_reads(self):
        seen = 0
        with tempfile.TemporaryDirectory() as folder:
            mckpt.convert(TINY_MODEL, f"{folder}/ckpt", to="fsdp", tp=2, dp=2, progress=False)  # tensors of several pieces
            for path in [*PATHS, f"{folder}/ckpt"]:
                with mckpt.open(path) as ckpt:
                    loaded = self.load(path, threads=3)
                    self.assertEqual(sorted(loaded), sorted(ckpt), path)
                    self.assertEqual(loaded.nbytes, sum(t.nbytes for t in ckpt.values()))
                    for name, tensor in ckpt.items():
                        mine = loaded[name]
                        self.assertEqual((mine.dtype, mine.shape, mine.nbytes), (tensor.dtype, tensor.shape, tensor.nbytes))
                        self.assertEqual(mine.data % 256, 0)
                        try:
                            expected = tensor.torch()
                        except TypeError:
                            continue
                        self.assertEqual(bits(mine.torch()), bits(expected), f"{path} {name}")
                        seen += 1
        self.assertGreater(seen, 140)

    def test_types(self):
        as_stored, narrow = self.load(TINY_MODEL).torch(), self.load(TINY_MODEL, dtype="fp16").torch()
        for name, t in as_stored.items():
            self.assertEqual(bits(narrow[name]), bits(t.to(torch.float16)), name)
        mixed = os.path.join(DATA, "formats/safetensors/mixed.safetensors")
        stored, wide = self.load(mixed), self.load(mixed, dtype="fp32")
        cast = {"bfloat16", "float16", "float32", "float64"}
        for name, t in wide.items():
            self.assertEqual(t.dtype, "float32" if stored[name].dtype in cast else stored[name].dtype, name)
        self.assertEqual(bits(wide["bfloat16"].torch()), bits(stored["bfloat16"].torch().float()))

    def test_a_quantised_model(self):
        """As it is stored without a type, like every reader of safetensors; with one, the values of the reference implementations."""
        for model, quantised in (("deepseek_v3_128", 36), ("gpt_oss", 4), ("kimi_k2_int4", None)):
            folder = os.path.join(DATA, "quantized", model)
            with open(folder + ".expected.json") as file:
                expected = json.load(file)["tensors"]
            with mckpt.open(folder) as stored:
                self.assertEqual(sorted(self.load(folder)), sorted(stored))
                values = self.load(folder, dtype="bf16", threads=3)
                self.assertEqual(sorted(values), sorted(expected))
                made = 0
                for name, answer in expected.items():
                    self.assertEqual(list(values[name].shape), answer["shape"], name)
                    if answer["dtype"] == "BF16":
                        got = values[name].torch().cpu().contiguous().view(torch.uint8).numpy().tobytes()
                        self.assertEqual(hashlib.sha256(got).hexdigest(), answer["sha256"], f"{model} {name}")
                    else:
                        self.assertEqual(values[name].dtype, "bfloat16", name)  # a type is for all of them
                    made += name not in stored or stored[name].dtype != "bfloat16" and answer["dtype"] == "BF16"
                self.assertEqual(made, quantised or made)
                self.assertGreater(made, 0)
            wide = self.load(folder, dtype="fp32")
            for name in expected:
                self.assertEqual(wide[name].dtype, "float32")
        one = self.load(os.path.join(DATA, "quantized/gpt_oss"), dtype="bf16", names="*.0.mlp.experts.down_proj")
        self.assertEqual(list(one), ["model.layers.0.mlp.experts.down_proj"])

    def test_choice(self):
        self.assertEqual(list(self.load(TINY_MODEL, names="model.norm*")), ["model.norm.weight"])
        with self.assertRaisesRegex(mckpt.Error, r"no tensor matches 'norm'.*\n.*whole name"):
            self.load(TINY_MODEL, names="norm")

    def test_a_rank(self):
        """Rows of q, k and v as tensor-parallel rank 1 of 2 has them; judges/golden_loads has the real ranks."""
        hf = self.load(TINY_MODEL).torch()
        rank = self.load(TINY_MODEL, rank=1, tp=2)
        qkv = rank["decoder.layers.0.self_attention.linear_qkv.weight"].torch()
        q, k, v = (hf[f"model.layers.0.self_attn.{part}_proj.weight"] for part in "qkv")
        self.assertEqual(bits(qkv), bits(torch.cat([q[16:], k[8:], v[8:]])))
        self.assertEqual(self.load(TINY_MODEL, rank=1, tp=2, dtype="fp32")["decoder.final_layernorm.weight"].dtype, "float32")
        stages = [list(self.load(TINY_MODEL, rank=r, pp=2)) for r in (0, 1)]
        self.assertIn("embedding.word_embeddings.weight", stages[0])
        self.assertIn("output_layer.weight", stages[1])

    def test_a_rank_of_a_model_with_an_unlike_copy_is_refused(self):
        """The config says that lm_head is the embedding; it has values of its own, which no parameter would get."""
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "model")
            shutil.copytree(TINY_MODEL, model)
            path = os.path.join(model, "config.json")
            with open(path) as f:
                config = json.load(f)
            with open(path, "w") as f:
                json.dump(config | {"tie_word_embeddings": True}, f)
            with self.assertRaisesRegex(mckpt.Error, "values of its own"):
                self.load(model, rank=0)

    def test_a_pattern_is_named_where_layers_do_not_divide(self):
        with tempfile.TemporaryDirectory() as folder:
            model = hybrid_model("M-M*-", os.path.join(folder, "model"))
            with self.assertRaisesRegex(mckpt.Error, r"hybrid_pattern.* with \| at the ends of stages, such as 'M-\|M\*-'"):
                self.load(model, rank=0, pp=2)
            self.assertIn("embedding.word_embeddings.weight", self.load(model, rank=0, pp=2, hybrid_pattern="M-|M*-"))

    def test_a_cut_file_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            cut = os.path.join(folder, "cut.safetensors")
            with open(glob.glob(os.path.join(TINY_MODEL, "*.safetensors"))[0], "rb") as whole, open(cut, "wb") as f:
                f.write(whole.read()[:-100])
            with self.assertRaisesRegex(mckpt.Error, "cut.safetensors"):
                self.load(cut)

    def test_memory_lives_as_long_as_somebody_needs_it(self):
        loaded = self.load(TINY_MODEL)
        norm, again = loaded["model.norm.weight"].torch(), torch.from_dlpack(loaded["model.norm.weight"])
        expected = norm.clone()
        self.assertEqual(norm.data_ptr(), loaded["model.norm.weight"].data)
        loaded["model.norm.weight"].__dlpack__()  # nobody takes it over
        del loaded
        gc.collect()
        self.assertEqual(bits(norm), bits(expected))
        norm.zero_()  # both are the same memory
        self.assertFalse(again.any())

    def test_numpy(self):
        loaded = self.load(os.path.join(DATA, "formats/safetensors/mixed.safetensors"))
        if self.device != "cpu":
            for read in (lambda: np.asarray(loaded["float32"]), loaded["float32"].numpy, loaded["float32"].tobytes):
                self.assertRaisesRegex(TypeError, r"torch\(\)\.cpu\(\)", read)
            return
        array, same = np.asarray(loaded["float32"]), loaded["float32"].numpy()
        np.testing.assert_array_equal(array, loaded["float32"].torch().numpy())
        self.assertEqual((array.dtype, array.shape), (np.dtype("float32"), loaded["float32"].shape))
        self.assertEqual(np.asarray(loaded["float32"], dtype="f8").dtype, np.dtype("f8"))
        copied = loaded["float32"].numpy(copy=True)
        own = np.array(loaded["float32"])
        same.flat[0] = 77  # the same memory
        self.assertEqual((array.flat[0], copied.flat[0] == 77, own.flat[0] == 77), (77, False, False))
        for name, tensor in loaded.items():
            raw = tensor.numpy(raw=True)
            self.assertEqual(raw.tobytes(), tensor.tobytes(), name)
        if importlib.util.find_spec("ml_dtypes") is None:  # which gives numpy this type
            self.assertRaisesRegex(TypeError, r"numpy\(raw=True\)", lambda: np.asarray(loaded["bfloat16"]))
        expected = array.copy()
        del loaded, same
        gc.collect()
        np.testing.assert_array_equal(array, expected)

    def test_items_smaller_than_a_byte(self):
        tensors = {"six": ("F6_E2M3", [4, 1], bytes((0x12, 0x13, 0x14))), "four": ("F4", [4, 3], bytes(range(6)))}
        entries, data = {}, b""
        for name, (dtype, shape, items) in tensors.items():
            entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(items)]}
            data += items
        header = json.dumps(entries).encode()
        with tempfile.NamedTemporaryFile(suffix=".safetensors") as f:
            f.write(len(header).to_bytes(8, "little") + header + data)
            f.flush()
            loaded = self.load(f.name)
            for name, (_, shape, items) in tensors.items():
                self.assertEqual((loaded[name].shape, loaded[name].nbytes), (tuple(shape), len(items)))
                if self.device == "cpu":
                    self.assertEqual(loaded[name].numpy(raw=True).tobytes(), items)

    def test_types_and_devices_as_torch_has_them(self):
        for dtype in ("bfloat16", torch.bfloat16, "bf16"):
            loaded = mckpt.load(TINY_MODEL, torch.device(self.device), dtype, progress=False)
            self.assertEqual(loaded["model.norm.weight"].dtype, "bfloat16")
        self.assertEqual(self.load(TINY_MODEL, dtype=torch.float32)["model.norm.weight"].dtype, "float32")
        for device in (torch.device("cpu", 0), "cpu:0"):
            self.assertEqual(mckpt.load(TINY_MODEL, device, progress=False).device, "cpu")

    @unittest.skipIf(torch.cuda.is_available(), "there is a GPU")
    def test_without_a_gpu_the_host_is_named(self):
        self.assertRaisesRegex(mckpt.Error, 'help: .*device="cpu"', lambda: mckpt.load(TINY_MODEL, progress=False))

    def test_tensors_that_are_alive_when_python_ends(self):
        program = "import sys, mckpt; kept = mckpt.load(sys.argv[1], sys.argv[2], progress=False).torch(); print(len(kept))"
        done = subprocess.run([sys.executable, "-c", program, TINY_MODEL, self.device], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": PACKAGE})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "45\n", ""))

    def test_errors(self):
        for how, message in [
            (dict(device="tpu"), "expected cpu, cuda or cuda:N, found tpu"),
            (dict(device="cuda:x"), "no such device"),
            (dict(device="cuda:99"), "cuda"),
            (dict(device="cpu", tp=2), "`tp` 2, but no rank is named"),
            (dict(device="cpu", rank=2, tp=2), "expected 0 to 1, found 2"),
            (dict(device="cpu", rank=0, tp=3), "expected a multiple of 3, found 4"),
            (dict(device="cpu", dtype="int8"), "expected keep, bf16, fp16 or fp32"),
            (dict(device="cpu", dtyp="bf16"), "did you mean `dtype`"),
            (dict(device="cpu:1"), "no such device"),
            (dict(device="cpu", threads=-1), "threads"),
            (dict(device="cpu", threads=10**9), "expected 1 to 1024, found 1000000000"),
        ]:
            with self.assertRaisesRegex(mckpt.Error, message.replace("(", r"\(")):
                mckpt.load(TINY_MODEL, progress=False, **how)
        with self.assertRaises(mckpt.Error) as raised:
            self.load(os.path.join(DATA, "no such file"))
        self.assertIn("no such file", str(raised.exception))

    def test_progress(self):
        seen = []
        self.load(TINY_MODEL).torch()
        mckpt.load(TINY_MODEL, self.device, progress=seen.append)
        self.assertEqual((seen[-1].phase, seen[-1].done, seen[-1].bytes), ("load", 14816, 14816))



@unittest.skipUnless(torch.cuda.is_available(), "there is no GPU")
class LoadsOntoAGpu(Loads):
    device = "cuda:0"

    def test_the_device(self):
        norm = self.load(TINY_MODEL)["model.norm.weight"]
        self.assertEqual(str(norm.torch().device), "cuda:0")
        self.assertEqual(norm.__dlpack_device__(), (2, 0))


run()
