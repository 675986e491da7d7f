#!/usr/bin/env python3
"""Packs this folder from the reference data, an unpacked archive of quantised checkpoints with known answers (README.md says who made them).

    test_data/quantized/pack.py REFERENCE_DIR          REFERENCE_DIR has A1_fp8_block, A2_mxfp4, ...

Models are copied as they are, as Hugging Face folders; of answers only data types, shapes and digests are kept, on one line each."""
import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
MODELS = {  # folder here: folder of the reference. Its qwen3_128 and qwen3_128_from_fp32 have nothing that the others lack
    "deepseek_v3_128": "A1_fp8_block/deepseek_v3_128",
    "deepseek_v31_ue8m0_f32": "A1_fp8_block/deepseek_v31_ue8m0_f32",
    "qwen3_bf16_scales": "A1_fp8_block/qwen3_bf16_scales",
    "qwen3_ue8m0_e8m0": "A1_fp8_block/qwen3_ue8m0_e8m0",
    "qwen3_64_skiplist": "A1_fp8_block/qwen3_64_skiplist",
    "qwen3_5_moe_fused": "A1_fp8_block/qwen3_5_moe_fused",
    "gpt_oss": "A2_mxfp4/gpt_oss",
    "kimi_k2_int4": "A3_int4/kimi_k2_int4",
}
LOOSE = {  # file here: (folder, file, answers)
    "fp8_block": ("A1_fp8_block/loose", "src", "expected"),
    "fp8_nan": ("A1_fp8_block/loose", "nan", "nan.expected"),
    "fp8_scalar": ("A4_fp8_scalar", "src", "expected"),
    "mxfp4": ("A2_mxfp4/loose", "src", "expected"),
    "mxfp8": ("A6_mxfp8", "src", "expected"),
    "nvfp4": ("A5_nvfp4", "src", "expected"),
    "int": ("A3_int4/loose", "src", "expected"),
}
QUANTISED = ("F8_E4M3", "F8_E8M0", "U8", "I32")


def lines(tensors):
    """JSON of a table of tensors, a line each."""
    rows = (f'  {json.dumps(name)}: {json.dumps(facts, separators=(",", ":"))}' for name, facts in sorted(tensors.items()))
    return "{\n" + ",\n".join(rows) + "\n }"


def requantised(path):
    """{quantiser: {tensor: facts}}: what a quantiser made of the values; tensors that it leaves alone are left out."""
    if not path.exists():
        return {}
    given = json.loads(path.read_text())
    single = given.get("quantiser")
    result = {}
    for name, facts in given["tensors"].items():
        quantiser, tensor = (single, name) if single else name.split("/", 1)
        of_scale = tensor.endswith(("_scale_inv", "_scales", ".weight_scale"))
        if facts["dtype"] in QUANTISED or of_scale:
            result.setdefault(quantiser, {})[tensor] = facts
    return result


def write(path, answers, more, again=None):
    parts = [f' "tensors": {lines(answers["tensors"])}']
    for key in more:
        if key in answers:
            parts.append(f' {json.dumps(key)}: {json.dumps(answers[key], separators=(",", ":"))}')
    for quantiser, tensors in (again or {}).items():
        parts.append(f' {json.dumps("requantised by " + quantiser)}: {lines(tensors)}')
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def main():
    reference = Path(sys.argv[1])
    for name, folder in MODELS.items():
        shutil.copytree(reference / folder / "src", HERE / name, dirs_exist_ok=True, copy_function=shutil.copyfile)
        write(HERE / f"{name}.expected.json", json.loads((reference / folder / "expected.json").read_text()), ("block",),
              requantised(reference / folder / "requant.json"))
    (HERE / "loose").mkdir(exist_ok=True)
    for name, (folder, data, answers) in LOOSE.items():
        shutil.copyfile(reference / folder / f"{data}.safetensors", HERE / "loose" / f"{name}.safetensors")
        found = json.loads((reference / folder / f"{answers}.json").read_text())
        if isinstance(found.get("alternative"), dict):
            found["alternatives"] = found["alternative"]
        elif "alternative" in found.get("notes", {}):
            found["alternatives"] = found["notes"]["alternative"]
        for case in found.get("cases", {}).values():
            for key in ("dequantised_dtype", "tensors", "single_rounding_equal", "elements_differing_from_one_rounding"):
                case.pop(key, None)
        write(HERE / "loose" / f"{name}.expected.json", found, ("blocks", "cases", "alternatives"))


main()
