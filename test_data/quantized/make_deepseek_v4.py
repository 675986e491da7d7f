#!/usr/bin/env python3
"""Makes deepseek_v4_fp4 and its answers. usage: make_deepseek_v4.py QUANTIZATION_UTILS

QUANTIZATION_UTILS is megatron/bridge/models/conversion/quantization_utils.py of Megatron-Bridge 0.6.2, which makes codes and scales
of random matrices, and values of these codes. Names, types and the entries of config.json are DeepSeek-V4-Flash's: routed experts in
FP4, two codes a byte, other matrices in FP8 with exponents for blocks of 128 x 128. Needs torch and safetensors."""
import hashlib
import importlib.util
import json
import os
import sys

import torch
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = {
    "architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "torch_dtype": "bfloat16", "expert_dtype": "fp4", "hidden_size": 192, "vocab_size": 40,
    "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [128, 128]},
}
MATRICES = {"layers.0.attn.wq_a": (130, 192), "layers.0.attn.wkv": (64, 192), "layers.0.attn.wo_b": (192, 300), "layers.0.ffn.shared_experts.w1": (256, 192)}
EXPERTS = {f"layers.0.ffn.experts.{e}.{leaf}": shape for e in range(3) for leaf, shape in (("w1", (96, 192)), ("w3", (96, 192)), ("w2", (192, 96)))}
PLAIN = {"embed.weight": (40, 192), "layers.0.attn_norm.weight": (192,), "layers.0.ffn.gate.weight": (3, 192), "layers.0.attn.attn_sink": (4,)}


def main():
    spec = importlib.util.spec_from_file_location("quantization_utils", sys.argv[1])
    real = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(real)
    torch.manual_seed(4)
    tensors, values = {}, {}
    for name, shape in PLAIN.items():
        tensors[name] = values[name] = torch.randn(shape).to(torch.bfloat16)
    for name, (rows, columns) in MATRICES.items():
        like = torch.empty((rows + 127) // 128, (columns + 127) // 128, dtype=torch.float8_e8m0fnu)
        tensors[name + ".weight"], tensors[name + ".scale"] = real.quantize_fp8_e4m3fn_like_scale(torch.randn(rows, columns) * 2**torch.randint(-9, 9, (rows, 1)), like)
    for name, (rows, columns) in EXPERTS.items():
        like = torch.empty(rows, columns // 32, dtype=torch.float8_e8m0fnu)
        tensors[name + ".weight"], tensors[name + ".scale"] = real.quantize_mxfp4_e2m1_like_scale(torch.randn(rows, columns) * 2**torch.randint(-9, 9, (rows, 1)), like)
    for name in [*MATRICES, *EXPERTS]:
        values[name + ".weight"] = real.maybe_dequantize_hf_quantized_weight(name + ".weight", tensors)
    folder = os.path.join(HERE, "deepseek_v4_fp4")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(CONFIG, f, indent=2)
    save_file(tensors, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    facts = {name: {"dtype": "BF16", "shape": list(t.shape), "sha256": hashlib.sha256(t.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()}
             for name, t in sorted(values.items())}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(fact, separators=(',', ':'))}" for name, fact in facts.items())
    with open(folder + ".expected.json", "w") as f:
        f.write('{\n "tensors": {\n' + lines + "\n }\n}\n")


if __name__ == "__main__":
    main()
