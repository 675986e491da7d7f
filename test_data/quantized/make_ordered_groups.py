#!/usr/bin/env python3
"""Makes ordered_groups/: integers and FP8 whose groups are not columns side by side (actorder "group", weight_g_idx), and the values that
compressed-tensors reads in them. 0.18.0 is the last release that has such groups.

    pip install --target OLD --no-deps compressed-tensors==0.18.0
    PYTHONPATH=OLD test_data/quantized/make_ordered_groups.py

Scales differ between all groups and rows, so that each value tells its group. The columns of two sizes do not fill words. A group that is not
full is not here: the release refuses columns that the group size does not divide."""
import hashlib
import json
from pathlib import Path

import compressed_tensors
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from safetensors.torch import save_file

HERE = Path(__file__).parent
GROUP, SIZES = 6, ((5, 6), (7, 30), (9, 66), (12, 96))  # rows and columns of a layer each
# Folder: format, bits, type of the codes, symmetric, type of the scales, actorder.
CASES = {
    "int4": ("pack-quantized", 4, "int", True, torch.bfloat16, "group"),
    "int4_zeros": ("pack-quantized", 4, "int", False, torch.bfloat16, "group"),
    "int3_zeros": ("pack-quantized", 3, "int", False, torch.float32, True),
    "int8": ("pack-quantized", 8, "int", True, torch.float16, "dynamic"),
    "bytes_zeros": ("int-quantized", 8, "int", False, torch.bfloat16, "group"),
    "fp8": ("float-quantized", 8, "float", True, torch.bfloat16, "group"),
}

assert compressed_tensors.__version__ == "0.18.0", compressed_tensors.__version__
torch.manual_seed(23)
expected = {}
for folder, (form, bits, kind, symmetric, scales, order) in CASES.items():
    weights = QuantizationArgs(num_bits=bits, type=kind, symmetric=symmetric, strategy="group", group_size=GROUP, actorder=order)
    scheme = QuantizationScheme(targets=["Linear"], weights=weights, format=form)
    packer, tensors = BaseCompressor.load_from_registry(form), {}
    for layer, (rows, columns) in enumerate(SIZES):
        name = f"model.layers.{layer}.mlp.up_proj.weight"
        groups = columns // GROUP
        order_of_columns = torch.randperm(columns)
        state = {"weight_g_idx": (order_of_columns // GROUP).to(torch.int32)}
        count = rows * groups
        state["weight_scale"] = ((torch.randperm(count) + 1) * 2.0**-8).reshape(rows, groups).to(scales)
        assert state["weight_scale"].unique().numel() == count, "a scale is there twice"
        if not symmetric:
            state["weight_zero_point"] = torch.randint(-(1 << bits - 1), 1 << bits - 1, (rows, groups), dtype=torch.int8)
        # Values within the range of their own scale, so that codes are spread over all.
        own = state["weight_g_idx"].long()
        codes = torch.randint(-(1 << bits - 1), 1 << bits - 1, (rows, columns))
        zeros = 0 if symmetric else state["weight_zero_point"][:, own].long()
        state["weight"] = ((codes - zeros) * state["weight_scale"][:, own].float()).to(scales)
        parts = packer.compress(state, scheme)
        assert (parts["weight_g_idx"].diff() < 0).any() or groups == 1, "columns are in order"
        values = packer.decompress(parts, scheme)["weight"].contiguous()
        assert values.dtype == scales
        side_by_side = packer.decompress({k: v for k, v in parts.items() if k != "weight_g_idx"}, scheme)["weight"]
        assert groups == 1 or not torch.equal(values, side_by_side), "the order makes no difference"
        tensors.update({name.removesuffix("weight") + part: tensor.contiguous() for part, tensor in parts.items()})
        digest = hashlib.sha256(values.view(torch.uint8).numpy().tobytes()).hexdigest()
        expected[f"{folder}/{name}"] = {"shape": list(values.shape), "sha256": digest}
    (HERE / "ordered_groups" / folder).mkdir(parents=True, exist_ok=True)
    save_file(tensors, HERE / "ordered_groups" / folder / "model.safetensors", metadata={"format": "pt"})
    group = {"targets": ["Linear"], "format": form,
             "weights": {"num_bits": bits, "type": kind, "symmetric": symmetric, "strategy": "group", "group_size": GROUP, "actorder": order}}
    quantization = {"quant_method": "compressed-tensors", "format": form, "version": compressed_tensors.__version__,
                    "config_groups": {"group_0": group}}
    config = {"architectures": ["SomeModel"], "model_type": "some", "dtype": str(scales).removeprefix("torch."), "quantization_config": quantization}
    (HERE / "ordered_groups" / folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
try:
    uneven = QuantizationArgs(num_bits=4, strategy="group", group_size=GROUP, actorder="group")
    state = {"weight": torch.ones(4, 16), "weight_scale": torch.ones(4, 3), "weight_g_idx": torch.arange(16, dtype=torch.int32) % 3}
    BaseCompressor.load_from_registry("pack-quantized").compress(state, QuantizationScheme(targets=["Linear"], weights=uneven))
    raise SystemExit("the release takes a group that is not full")
except ValueError as error:
    assert "divisble" in str(error), error
lines = ",\n".join(f' {json.dumps(name)}: {json.dumps(facts, separators=(",", ":"))}' for name, facts in expected.items())
(HERE / "ordered_groups" / "expected.json").write_text("{\n" + lines + "\n}\n")
