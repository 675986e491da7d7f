"""torch, transformers and, where it is installed, compressed-tensors as judges of quantised values: random tensors of odd shapes are quantised
by them, `mckpt convert dequantize` reads the folder, and every weight has the bits that the library itself reads. And back: with --to
like-source the codes and scales of the source come out again.

compressed-tensors is a small package of Python alone. Where it is missing, what it judges is left out and named:

    pip install compressed_tensors==0.20.0
"""
import importlib.metadata
import importlib.util
import json
import os
import random
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SHARE

need("torch", "transformers", "safetensors")
import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers.integrations.finegrained_fp8 import Fp8Dequantize, Fp8Quantize  # noqa: E402
from transformers.integrations.mxfp4 import convert_moe_packed_tensors  # noqa: E402

HAS_CT = importlib.util.find_spec("compressed_tensors") is not None
WORK = tempfile.TemporaryDirectory()
random.seed(7)
torch.manual_seed(7)


def name(i, part="weight"):
    return f"model.layers.{i}.mlp.down_proj.{part}"


def same_bits(a, b):
    # A NaN is a NaN.
    a, b = (t.contiguous().view(torch.int16).masked_fill(t.isnan(), 1) for t in (a, b))
    return torch.equal(a, b)


def raw(tensor):
    return tensor.clone(memory_format=torch.contiguous_format).flatten().view(torch.uint8)


def written(folder, tensors, quantization_config):
    model_type = quantization_config.get("quant_method") == "mxfp4" and "gpt_oss" or "some"
    path = os.path.join(WORK.name, folder)
    os.makedirs(path)
    save_file({k: v.contiguous() for k, v in tensors.items()}, os.path.join(path, "model.safetensors"), {"format": "pt"})
    with open(os.path.join(path, "config.json"), "w") as file:
        json.dump({"architectures": ["SomeModel"], "model_type": model_type, "quantization_config": quantization_config}, file)
    return path


def judged(folder, tensors, quantization_config, expected, like_source=True, options=()):
    """The values of the folder are `expected`, {name: bf16 tensor}, and quantising them as the source gives its tensors."""
    source = written(folder, tensors, quantization_config)
    values = source + "_values"
    run = run_mckpt("convert", "dequantize", source, values, *options)
    if not expect(run.returncode == 0, f"{folder}: {run.stderr}"):
        return
    got = load_file(os.path.join(values, "model.safetensors"))
    expect(sorted(got) == sorted(expected), f"{folder}: tensors {sorted(got)[:9]}")
    for key, want in expected.items():
        if key in got:
            expect(got[key].dtype == torch.bfloat16 and got[key].shape == want.shape and same_bits(got[key], want),
                   f"{folder}: {key} {list(want.shape)} has other bits")
    if not like_source:
        return
    again = source + "_again"
    run = run_mckpt("convert", "quantize", values, again, "--to", "like-source", "--like", source)
    if expect(run.returncode == 0, f"{folder} back: {run.stderr}"):
        back = load_file(os.path.join(again, "model.safetensors"))
        for key, want in tensors.items():
            ok = key in back and torch.equal(raw(back[key]), raw(want))
            expect(ok, f"{folder} back: {key} has other bits")


def drawn_codes(rows, columns):
    codes = torch.randint(0, 256, (rows, columns), dtype=torch.uint8)
    codes[codes & 0x7f == 0x7f] = 0x7e  # no NaN
    return codes.view(torch.float8_e4m3fn)


def spread(scales, sizes, blocks):
    for dim in (0, 1):
        scales = scales.repeat_interleave(blocks[dim], dim)[tuple(slice(sizes[d] if d == dim else None) for d in (0, 1))]
    return scales


def fp8_blocks(folder, blocks, scale_type, count):
    """Codes and scales at random; the values by torch's own arithmetic, and where blocks divide the tensor by transformers."""
    tensors, expected = {}, {}
    for i in range(count):
        sizes = [random.choice([b, 2 * b, random.randint(1, 3 * b)]) for b in blocks]
        grid = [-(-n // b) for n, b in zip(sizes, blocks)]
        codes, scales = drawn_codes(*sizes), torch.exp(torch.randn(grid) * 3 - 6)
        if scale_type == torch.float8_e8m0fnu:
            scales = torch.exp2(scales.log2().ceil())
        scales = scales.to(scale_type)
        tensors[name(i)], tensors[name(i, "weight_scale_inv")] = codes, scales
        want = (codes.float() * spread(scales.float(), sizes, blocks)).bfloat16()
        if sizes == [g * b for g, b in zip(grid, blocks)]:
            theirs = Fp8Dequantize(None)._dequantize_one(codes, scales, torch.bfloat16)
            expect(same_bits(theirs, want), f"{folder}: transformers and torch differ")
        expected[name(i)] = want
    judged(folder, tensors, {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": blocks}, expected)


class QuantizerOf:
    """The methods that transformers' quantiser asks of its owner."""
    def __init__(self, blocks, scale_fmt):
        self.quantization_config = type("Config", (), {"weight_block_size": blocks, "scale_fmt": scale_fmt})


def fp8_of_transformers(folder, blocks, scale_fmt):
    """Weights that transformers quantises."""
    tensors, expected = {}, {}
    for i in range(6):
        value = torch.randn(blocks[0] * random.randint(1, 3), blocks[1] * random.randint(1, 3)).bfloat16() / 30
        made = Fp8Quantize(QuantizerOf(blocks, scale_fmt))._quantize_one("weight", value)
        codes, scales = made["weight"], made["weight_scale_inv"]
        tensors[name(i)], tensors[name(i, "weight_scale_inv")] = codes, scales
        expected[name(i)] = Fp8Dequantize(None)._dequantize_one(codes, scales, torch.bfloat16)
    config = {"quant_method": "fp8", "weight_block_size": blocks, **({"scale_fmt": scale_fmt} if scale_fmt else {})}
    judged(folder, tensors, config, expected)


def every_e4m3_code(folder, scale_type, lowest, nan):
    """Every code with every power of two that the type of the scales has, subnormal ones too; odd and even columns. With NaN
    codes the model is refused, unless they are accepted."""
    codes = torch.arange(256, dtype=torch.int16)
    codes = codes if nan else codes[codes & 0x7f != 0x7f]
    codes = torch.cat((codes, codes[-3:])).to(torch.uint8).view(torch.float8_e4m3fn)  # a last vector that is not full
    scales = torch.tensor([2.0**e for e in range(lowest, 128)]).unsqueeze(1)
    expect(bool((scales > 0).all()), f"{folder}: a scale was flushed to zero")
    codes, stored = codes.unsqueeze(0).repeat(len(scales), 1), scales.to(scale_type)
    expect(torch.equal(stored.float(), scales), f"{folder}: a power of two is not in the type")
    want = (codes.float() * scales).bfloat16()
    expect(bool(want.isinf().any()) and bool((want.abs() < 2.0**-126).any()), f"{folder}: values reach both ends of bf16")
    config = {"quant_method": "fp8", "weight_block_size": [1, codes.shape[1]]}
    tensors = {name(0): codes, name(0, "weight_scale_inv"): stored}
    overflow = "--allow-overflow"  # finite codes and scales beyond bf16
    judged(folder, tensors, config, {name(0): want}, False, (overflow, "--accept", "MC2017") if nan else (overflow,))
    run = run_mckpt("convert", "dequantize", os.path.join(WORK.name, folder), os.path.join(WORK.name, "refused"), "--overwrite")
    expect(run.returncode != 0 and ("MC2017" if nan else "MC0106") in run.stderr, f"{folder}: {run.stderr}")
    if nan:
        expect(f"that are NaN: {2 * len(scales) + len(scales)} of" in run.stderr, f"{folder}: {run.stderr}")


def every_mxfp4_code(folder):
    """Every pair of codes with every scale, 255 too, which is NaN elsewhere and 2**128 for gpt-oss."""
    stem = "model.layers.0.mlp.experts.down_proj"
    blocks = torch.arange(256, dtype=torch.int16).to(torch.uint8).reshape(1, 1, 16, 16).repeat(1, 256, 1, 1)
    scales = torch.arange(256, dtype=torch.int16).to(torch.uint8).reshape(1, 256, 1).repeat(1, 1, 16)
    tensors, config = {stem + "_blocks": blocks, stem + "_scales": scales}, {"quant_method": "mxfp4"}
    expected = {stem: convert_moe_packed_tensors(blocks, scales)}
    judged(folder, tensors, config, expected, False, ("--allow-overflow", "--accept", "MC2017"))
    run = run_mckpt("convert", "dequantize", os.path.join(WORK.name, folder), os.path.join(WORK.name, "refused"), "--overwrite")
    expect(run.returncode == 3 and "NaN: 16 of 4,096, the first at [0, 255, 0]" in run.stderr, f"{folder}: {run.stderr}")


def mxfp4(folder):
    tensors, expected = {}, {}
    for i, (experts, rows, groups) in enumerate([(1, 7, 1), (3, 66, 5), (2, 130, 3)]):
        stem = f"model.layers.{i}.mlp.experts.down_proj"
        blocks = torch.randint(0, 256, (experts, rows, groups, 16), dtype=torch.uint8)
        scales = torch.randint(2, 250, (experts, rows, groups), dtype=torch.uint8)
        tensors[stem + "_blocks"], tensors[stem + "_scales"] = blocks, scales
        expected[stem] = convert_moe_packed_tensors(blocks, scales)
    judged(folder, tensors, {"quant_method": "mxfp4"}, expected)


def compressed(folder, form, weights, shapes, scales_of, zero_points_of=None, like_source=True, scale_2=None):
    """Weights that compressed-tensors compresses with given scales, and its own values of them."""
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**weights))
    compressor = BaseCompressor.get_value_from_registry(form)
    tensors, expected = {}, {}
    for i, sizes in enumerate(shapes):
        weight = torch.randn(sizes).to(torch.bfloat16)
        state = {"weight": weight, "weight_scale": scales_of(weight)}
        if zero_points_of:
            state["weight_zero_point"] = zero_points_of(state["weight_scale"])
        if scale_2:
            state["weight_global_scale"] = torch.tensor([scale_2])
        stored = compressor.compress(state, scheme)
        values = compressor.decompress(stored, scheme)["weight"]
        stem = f"model.layers.{i}.mlp.down_proj."
        tensors.update({stem + part: tensor.detach() for part, tensor in stored.items()})
        expected[stem + "weight"] = values.detach().to(torch.bfloat16)
    config = {"quant_method": "compressed-tensors", "format": form, "ignore": [], "version": importlib.metadata.version("compressed-tensors"),
              "config_groups": {"group_0": {"targets": ["Linear"], "weights": scheme.weights.model_dump(mode="json")}}}
    judged(folder, tensors, config, expected, like_source)


def amax_scales(most, group, dtype):
    def scales(weight):
        parts = weight.float().reshape(weight.shape[0], -1, group or weight.shape[1])
        return (parts.abs().amax(-1) / most).to(dtype)
    return scales


def compressed_tensors():
    shapes = [(5, 64), (8, 256), (33, 96)]
    for bits in (3, 4, 8):
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            compressed(f"ct_int{bits}_{str(dtype)[6:]}", "pack-quantized",
                       {"num_bits": bits, "type": "int", "strategy": "group", "group_size": 32, "symmetric": True}, shapes,
                       amax_scales(2**(bits - 1) - 0.5, 32, dtype))
    compressed("ct_channel", "pack-quantized", {"num_bits": 4, "type": "int", "strategy": "channel", "symmetric": True},
               [(6, 20), (3, 37)], amax_scales(7, None, torch.bfloat16))
    compressed("ct_zero_points", "pack-quantized",
               {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": False}, [(16, 64), (33, 96)],
               amax_scales(7, 32, torch.bfloat16), lambda scale: torch.randint(-8, 8, scale.shape, dtype=torch.int8),
               like_source=True)
    compressed("ct_nvfp4", "nvfp4-pack-quantized",
               {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": True,
                "scale_dtype": "torch.float8_e4m3fn"}, shapes,
               lambda w: (amax_scales(6, 16, torch.float32)(w) * 100).to(torch.float8_e4m3fn).float(), scale_2=100.0)


def flat_scales(most, strategy, size, dtype):
    """Scales as compressed-tensors has them for each strategy; `size`: of a group, or of a block."""
    def scales(weight):
        value = weight.float().abs()
        if strategy == "tensor":
            return (value.max().reshape(1) / most).to(dtype)
        if strategy == "block":
            rows, columns = (-(-n // b) for n, b in zip(value.shape, size))
            padded = torch.zeros(rows * size[0], columns * size[1])
            padded[:value.shape[0], :value.shape[1]] = value
            return (padded.reshape(rows, size[0], columns, size[1]).amax((1, 3)) / most).to(dtype)
        return amax_scales(most, size, dtype)(weight)
    return scales


def bytes_of_compressed_tensors():
    """Integers of a byte each, zero points of a byte, one scale for a tensor of packed codes, groups of FP8: sizes that no two
    dimensions share, and rows and columns that no vector fills."""
    shapes = [(7, 96), (33, 160), (2, 224)]
    kinds = [("channel", None), ("group", 32), ("tensor", None), ("block", [8, 48])]
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for strategy, size in kinds:
            for bits, symmetric in ((8, True), (8, False), (4, True), (5, False)):
                how = {"num_bits": bits, "type": "int", "strategy": strategy, "symmetric": symmetric}
                how.update({"group": {"group_size": size}, "block": {"block_structure": size}}.get(strategy, {}))
                low = -2**(bits - 1)
                compressed(f"ct_bytes_{strategy}_{bits}_{symmetric}_{str(dtype)[6:]}", "int-quantized", how, shapes,
                           flat_scales(2**(bits - 1) - 1, strategy, size, dtype),
                           None if symmetric else lambda scale: torch.randint(low, -low, scale.shape, dtype=torch.int8))
    for symmetric in (True, False):
        compressed(f"ct_packed_tensor_{symmetric}", "pack-quantized",
                   {"num_bits": 4, "type": "int", "strategy": "tensor", "symmetric": symmetric}, [(6, 20), (33, 96)],
                   flat_scales(7, "tensor", None, torch.bfloat16),
                   None if symmetric else lambda scale: torch.randint(-8, 8, scale.shape, dtype=torch.int8))
        compressed(f"ct_packed_channel_{symmetric}", "pack-quantized",
                   {"num_bits": 5, "type": "int", "strategy": "channel", "symmetric": symmetric}, [(6, 20), (104, 132)],
                   flat_scales(15, "channel", None, torch.bfloat16),
                   None if symmetric else lambda scale: torch.randint(-16, 16, scale.shape, dtype=torch.int8))
        for bits in (4, 8):
            low = -2**(bits - 1)
            compressed(f"ct_packed_block_{bits}_{symmetric}", "pack-quantized",
                       {"num_bits": bits, "type": "int", "strategy": "block", "block_structure": [8, 48], "symmetric": symmetric}, shapes,
                       flat_scales(-low - 1, "block", [8, 48], torch.bfloat16),
                       None if symmetric else lambda scale, low=low: torch.randint(low, -low, scale.shape, dtype=torch.int8))
    for dtype in (torch.bfloat16, torch.float32):
        compressed(f"ct_fp8_groups_{str(dtype)[6:]}", "float-quantized",
                   {"num_bits": 8, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True}, shapes,
                   amax_scales(448, 32, dtype))


def main():
    count = 12 * SHARE // 100 + 2
    for i, blocks in enumerate([[128, 128], [64, 64], [32, 128], [1, 128], [16, 16]]):
        fp8_blocks(f"fp8_f32_{i}", blocks, torch.float32, count)
        fp8_blocks(f"fp8_bf16_{i}", blocks, torch.bfloat16, count)
        fp8_blocks(f"fp8_e8m0_{i}", blocks, torch.float8_e8m0fnu, count)
    fp8_of_transformers("fp8_transformers", [32, 64], None)
    fp8_of_transformers("fp8_transformers_ue8m0", [32, 64], "ue8m0")
    mxfp4("mxfp4")
    every_e4m3_code("e4m3_f32", torch.float32, -149, False)
    every_e4m3_code("e4m3_bf16", torch.bfloat16, -133, False)
    every_e4m3_code("e4m3_e8m0", torch.float8_e8m0fnu, -127, False)
    every_e4m3_code("e4m3_nan", torch.float32, -149, True)
    every_mxfp4_code("mxfp4_every")
    if HAS_CT:
        compressed_tensors()
        bytes_of_compressed_tensors()
    else:
        print("not judged: integers and NVFP4 of compressed-tensors, which is not installed")
    finish(200 if SHARE == 100 else 90)


main()
