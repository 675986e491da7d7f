"""mckpt quantises matrices to FP8 blocks of 128 x 128, and warns exactly where transformers decodes other values of them, or none.
"""

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import TINY_MODEL

need("torch", "safetensors", "transformers")
import os
import shutil

import torch
from safetensors.torch import load_file, save_file
from transformers.integrations.finegrained_fp8 import Fp8Dequantize

NAME = "model.layers.0.self_attn.q_proj.weight"
SHAPES = [(128, 128), (256, 384), (64, 32), (100, 128), (128, 100), (192, 128), (128, 192), (320, 256), (256, 320), (576, 256), (129, 128), (100, 300)]
temporary = scratch()


def decoded(codes, scales):
    """Each item times the scale of its block of 128 x 128."""
    whole = scales.repeat_interleave(128, 0).repeat_interleave(128, 1)
    return codes.float() * whole[: codes.shape[0], : codes.shape[1]]


def of_transformers(codes, scales):
    try:
        return Fp8Dequantize(None)._dequantize_one(codes, scales, torch.float32)
    except ValueError:
        return None


def check(shape, number):
    source, target = (os.path.join(temporary.name, f"{number}_{what}") for what in ("values", "coded"))
    os.mkdir(source)
    shutil.copy(os.path.join(TINY_MODEL, "config.json"), source)
    torch.manual_seed(number)
    values = torch.randn(shape) * torch.logspace(-2, 2, shape[0])[:, None] * torch.logspace(-2, 2, shape[1])[None]
    save_file({NAME: values.to(torch.bfloat16)}, os.path.join(source, "model.safetensors"), metadata={"format": "pt"})
    run = run_mckpt("convert", "quantize", source, target, "--scheme", "fp8-block", "--no-sync")
    told = run_mckpt("convert", "quantize", source, target + "_json", "--scheme", "fp8-block", "--no-sync", "--json")
    if not expect(run.returncode == 0 and told.returncode == 0, f"{shape}: {run.stderr}"):
        return
    tensors = load_file(os.path.join(target, "model.safetensors"))
    codes, scales = tensors[NAME], tensors[NAME + "_scale_inv"]
    right, theirs = decoded(codes, scales), of_transformers(codes, scales)
    expect(torch.allclose(right, values, rtol=0.2, atol=float(values.abs().max()) / 300), f"{shape}: the blocks are not those of the values")
    reads = theirs is not None and torch.equal(theirs, right)
    seen.add(reads)
    for said in (run.stderr, told.stderr):
        expect(("multiple of 128" in said and NAME in said) is not reads, f"{shape}: transformers {'reads the values' if reads else 'does not read them'}, mckpt: {said}")


seen = set()
for number, shape in enumerate(SHAPES):
    check(shape, number)
expect(seen == {True, False}, "transformers reads some shapes and others not")
finish(4 * len(SHAPES))
