#!/usr/bin/env python3
"""Makes whole_codes/: integers of 3, 5, 6 and 7 bits as compressed-tensors packed them up to 0.17.1, whole codes in each word, and the values
that it reads in them.

    pip install --target OLD --no-deps compressed-tensors==0.10.2
    PYTHONPATH=OLD test_data/quantized/make_whole_codes.py

10 and 100 columns of 3 bits take as many words as in the packing of today; 96 take more."""
import hashlib
import json
from pathlib import Path

import compressed_tensors
import torch
from compressed_tensors.compressors.quantized_compressors.pack_quantized import PackedQuantizationCompressor, unpack_from_int32
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import dequantize
from safetensors.torch import save_file

HERE = Path(__file__).parent
# Folder: bits, rows, symmetric. The release packs zero points of rows that fill words only.
CASES = {"int3": (3, 20, False), "int5": (5, 12, True), "int6": (6, 10, False), "int7": (7, 8, True)}
COLUMNS = (10, 60, 96, 100)

assert compressed_tensors.__version__ == "0.10.2", compressed_tensors.__version__
torch.manual_seed(9)
expected = {}
for folder, (bits, rows, symmetric) in CASES.items():
    args = QuantizationArgs(num_bits=bits, type="int", symmetric=symmetric, strategy="channel")
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    packer, tensors = PackedQuantizationCompressor(), {}
    for layer, columns in enumerate(COLUMNS):
        name = f"model.layers.{layer}.mlp.up_proj.weight"
        zeros = None if symmetric else torch.randint(least, most + 1, (rows, 1), dtype=torch.int8)
        scale = (torch.rand(rows, 1) * 0.3 + 0.05).bfloat16()
        codes = torch.randint(least, most + 1, (rows, columns))
        weight = ((codes - (0 if zeros is None else zeros)) * scale).bfloat16()
        packed = packer.compress_weight(weight, scale, args, zeros)
        parts = {"weight_packed": packed["weight_packed"], "weight_scale": scale, "weight_shape": packed["weight_shape"]}
        if zeros is not None:
            parts["weight_zero_point"] = packed["weight_zero_point"]
        if zeros is None:
            values = packer.decompress_weight(parts, args).contiguous()
        else:  # the release does not take packed zero points apart itself
            zeros_again = unpack_from_int32(parts["weight_zero_point"], bits, torch.Size([rows, 1]), packed_dim=0)
            codes_again = unpack_from_int32(parts["weight_packed"], bits, torch.Size([rows, columns]))
            values = dequantize(codes_again, scale, zeros_again).contiguous()
        tensors.update({name.removesuffix("weight") + part: tensor.contiguous() for part, tensor in parts.items()})
        digest = hashlib.sha256(values.view(torch.uint8).numpy().tobytes()).hexdigest()
        assert values.dtype == torch.bfloat16
        expected[f"{folder}/{name}"] = {"shape": list(values.shape), "sha256": digest}
    (HERE / "whole_codes" / folder).mkdir(exist_ok=True)
    save_file(tensors, HERE / "whole_codes" / folder / "model.safetensors", metadata={"format": "pt"})
    group = {"targets": ["Linear"], "weights": {"num_bits": bits, "type": "int", "symmetric": symmetric, "strategy": "channel"}}
    quantization = {"quant_method": "compressed-tensors", "format": "pack-quantized", "version": compressed_tensors.__version__,
                    "config_groups": {"group_0": group}}
    config = {"architectures": ["SomeModel"], "model_type": "some", "quantization_config": quantization}
    (HERE / "whole_codes" / folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
lines = ",\n".join(f' {json.dumps(name)}: {json.dumps(facts, separators=(",", ":"))}' for name, facts in expected.items())
(HERE / "whole_codes" / "expected.json").write_text("{\n" + lines + "\n}\n")
