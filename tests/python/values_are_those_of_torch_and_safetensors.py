"""The Python package reads the same as safetensors and torch, for every type, whole and in parts."""
from mckpt_tests.checks import need

need("torch", "numpy", "safetensors")
import ctypes
import glob
import os
import tempfile
import unittest
import weakref
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open

from mckpt_tests.package import run  # noqa: I001
from mckpt_tests.setting import DATA, TINY_MODEL

import mckpt
import mckpt.tensor
from mckpt import _dlpack

SAFETENSORS = sorted(glob.glob(os.path.join(DATA, "formats/safetensors/*.safetensors")) + glob.glob(os.path.join(TINY_MODEL, "*.safetensors"))
                     + glob.glob(os.path.join(DATA, "formats/safetensors/hf_sharded/*.safetensors")))
PT = [os.path.join(DATA, name) for name in ("pt/dtypes.pt", "pt/views.pt", "pt/legacy.pt", "pt/zip.pt", "pt/one_tensor.pt", "formats/pt/lowp_dtypes.pt", "formats/pt/legacy_bf16.pt")]
SLICES = [np.s_[0], np.s_[-1], np.s_[1:], np.s_[:1], np.s_[0:0], np.s_[5:2], np.s_[-2:], np.s_[..., 0], np.s_[..., 1:3], np.s_[:, 1], np.s_[1:2, ...], np.s_[0, 0],
          np.s_[1, 1:], np.s_[1:99]]


def bits(t):
    """A torch tensor as something that can be compared: type, shape, bytes."""
    t = t.detach().clone(memory_format=torch.contiguous_format).reshape(t.shape)
    return t.dtype, tuple(t.shape), bytes(t.untyped_storage())[: t.numel() * t.element_size()] if t.numel() else b""


def flat(value, prefix=""):
    """The tensors in nested dicts and lists under the names that mckpt gives them."""
    if isinstance(value, torch.Tensor):
        yield prefix, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from flat(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from flat(item, f"{prefix}.{i}" if prefix else str(i))


class Values(unittest.TestCase):
    def compare(self, ours, theirs, what):
        self.assertEqual(bits(ours.torch()), bits(theirs), what)
        self.assertEqual(ours.tobytes(), bits(theirs)[2], what)
        self.assertEqual((ours.shape, ours.nbytes, f"torch.{ours.dtype}"), (tuple(theirs.shape), len(bits(theirs)[2]), str(theirs.dtype)), what)
        self.assertEqual(ours.numpy(raw=True).tobytes(), ours.tobytes(), what)
        try:
            expected = theirs.numpy()
        except TypeError:
            return 1
        self.assertEqual(ours.numpy().dtype, expected.dtype, what)
        np.testing.assert_array_equal(ours.numpy(), expected, what)
        np.testing.assert_array_equal(np.asarray(ours), expected, what)
        return 1

    def compare_parts(self, ours, theirs, what):
        parts = 0
        for key in SLICES:
            try:
                expected = theirs[key]
            except IndexError:
                self.assertRaises(IndexError, lambda: ours[key])
                continue
            self.assertEqual(bits(ours[key].torch()), bits(expected), f"{what}{key}")
            self.assertEqual(ours[key].tobytes(), bits(expected)[2], f"{what}{key}")
            if expected.ndim:
                self.assertEqual(bits(ours[key][:1].torch()), bits(expected[:1]), f"{what}{key}[:1]")
            parts += 1
        return parts

    def test_safetensors(self):
        seen = parts = 0
        for mapped_from in (0, 1 << 16):  # mapped and read
            mckpt.tensor.MAPPED_FROM = mapped_from
            for path in SAFETENSORS:
                with mckpt.open(path) as ours, safe_open(path, "pt") as theirs:
                    self.assertEqual(sorted(ours), sorted(theirs.keys()), path)
                    for name in theirs.keys():
                        seen += self.compare(ours[name], theirs.get_tensor(name), f"{path} {name}")
                        parts += self.compare_parts(ours[name], theirs.get_tensor(name), f"{path} {name}")
        self.assertGreater(seen, 100)
        self.assertGreater(parts, 1000)

    def test_torch_files(self):
        seen = 0
        for mapped_from in (0, 1 << 16):
            mckpt.tensor.MAPPED_FROM = mapped_from
            for path in PT:
                theirs = dict(flat(torch.load(path, weights_only=True, map_location="cpu")))
                with mckpt.open(path) as ours:
                    if len(theirs) == 1:  # a tensor alone has no name in torch
                        theirs = dict(zip(ours, theirs.values()))
                    self.assertEqual(sorted(ours), sorted(theirs), path)
                    for name, expected in theirs.items():
                        seen += self.compare(ours[name], expected, f"{path} {name}")
                        self.compare_parts(ours[name], expected, f"{path} {name}")
        self.assertGreater(seen, 60)

    def test_sharded_checkpoints_have_the_values_of_their_source(self):
        with tempfile.TemporaryDirectory() as folder, mckpt.open(TINY_MODEL) as source:
            mckpt.convert(TINY_MODEL, f"{folder}/ckpt", to="fsdp", tp=2, progress=False)
            with mckpt.open(f"{folder}/ckpt") as sharded:
                name = next(n for n in sharded if n.endswith("final_layernorm.weight"))
                self.compare(sharded[name], source["model.norm.weight"].torch(), name)
                many = [t for t in sharded.values() if len(t.chunks()) > 1]
                self.assertTrue(many)
                for tensor in many:
                    self.compare_parts(tensor, tensor.torch(), tensor.name)

    def test_types_that_numpy_has_not_name_a_way(self):
        with mckpt.open(os.path.join(DATA, "formats/safetensors/mixed.safetensors")) as ckpt:
            try:
                import ml_dtypes  # noqa: F401
            except ImportError:
                for name in ("bfloat16", "float8_e4m3fn"):
                    with self.assertRaisesRegex(TypeError, r"ml_dtypes.*torch\(\).*numpy\(raw=True\)"):
                        ckpt[name].numpy()
            with self.assertRaisesRegex(TypeError, r"torch\(\)"):
                ckpt["float4_e2m1fn_x2"].numpy()
            self.assertEqual(ckpt["bfloat16"].numpy(raw=True).dtype, np.uint16)
            np.testing.assert_array_equal(ckpt["bfloat16"].numpy(raw=True), ckpt["bfloat16"].torch().view(torch.uint16).numpy())
        with mckpt.open(os.path.join(DATA, "pt/quantized.pt")) as ckpt:
            quantized = [t for t in ckpt.values() if t.dtype.startswith(("qint", "quint"))]
            self.assertTrue(quantized)
            with self.assertRaisesRegex(TypeError, r"tobytes\(\)"):
                quantized[0].torch()

    def test_dlpack(self):
        with mckpt.open(os.path.join(DATA, "formats/safetensors/mixed.safetensors")) as ckpt:
            taken = 0
            for name, tensor in ckpt.items():
                try:
                    theirs = torch.from_dlpack(tensor)
                except (BufferError, RuntimeError) as fault:  # types that DLPack, or this torch, does not have
                    self.assertRegex(name, "float4|float8", str(fault))
                    continue
                self.assertEqual(bits(theirs), bits(tensor.torch()), name)
                taken += 1
                del theirs
            self.assertGreater(taken, 14)
            np.testing.assert_array_equal(np.from_dlpack(ckpt["float32"]), ckpt["float32"].numpy())
            part = torch.from_dlpack(ckpt["float32"][1:, 2])
            self.assertEqual(bits(part), bits(ckpt["float32"].torch()[1:, 2]))
            ckpt["float32"].__dlpack__()  # nobody takes it over
            with self.assertRaises(BufferError):
                ckpt["float32"].__dlpack__(dl_device=(2, 0))
            with self.assertRaisesRegex((RuntimeError, BufferError, TypeError), "dtype|DLPack"):  # numpy's own error, with no other before it
                np.from_dlpack(ckpt["bfloat16"])

    def test_dlpack_frees_memory(self):
        class Memory(bytearray):
            pass

        def capsule():
            memory = Memory(8)
            freed = weakref.ref(memory)
            address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            return _dlpack.capsule(memory, address, 1, 8, (8,)), freed

        made, freed = capsule()
        taken = torch.from_dlpack(made)
        del made
        self.assertEqual((taken.tolist(), freed() is None), ([0] * 8, False))
        del taken
        self.assertIsNone(freed())
        made, freed = capsule()
        del made  # nobody took it over
        self.assertIsNone(freed())
        with self.assertRaisesRegex(ZeroDivisionError, "^integer division"):  # freed while an exception is on its way
            [torch.from_dlpack(capsule()[0]), capsule()[0], 1 // 0]

    def test_arrays_are_private_and_outlive_the_checkpoint(self):
        path = os.path.join(TINY_MODEL, "model-00001-of-00002.safetensors")
        before = Path(path).read_bytes()
        for mckpt.tensor.MAPPED_FROM in (0, 1 << 16):
            with mckpt.open(path) as ckpt:
                name = next(iter(ckpt))
                array, again, theirs = ckpt[name].numpy(raw=True), ckpt[name].numpy(raw=True), ckpt[name].torch()
            array[...] = 0
            theirs.zero_()
            self.assertTrue(again.any())
            self.assertEqual(Path(path).read_bytes(), before)


run()
