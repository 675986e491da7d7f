"""verify says which scales of FP8 weights transformers does not read: by the method fp8 it takes weight_scale_inv and MODULE.scale, and codes
without either for weights (5.23, asked with FineGrainedFP8Config(dequantize=True)). mckpt reads weight_scale, too."""
import json
import os
import struct
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt

ROWS, COLUMNS = 256, 128
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}
BLOCKS = FP8 | {"weight_block_size": [128, 128]}
TENSORS = {"quant_method": "compressed-tensors", "format": "float-quantized",
           "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "tensor"}}}}


def folder(path, module, scale, shape, declared):
    """A module with FP8 codes and its scales."""
    os.makedirs(path)
    items = 1
    for size in shape:
        items *= size
    parts = {module + ".weight": ("F8_E4M3", [ROWS, COLUMNS], bytes([0x38]) * ROWS * COLUMNS), scale: ("F32", shape, struct.pack("<f", 0.5) * items)}
    header, data = {}, b""
    for name, (dtype, dims, raw) in parts.items():
        header[name] = {"dtype": dtype, "shape": dims, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path + "/model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    with open(path + "/config.json", "w") as f:
        json.dump({"model_type": "own", "quantization_config": declared}, f)


CASES = [  # module, name of the scales, shape, what config.json declares, whether transformers leaves them out, whether vLLM reads them
    ("a", "a.weight_scale", [2, 1], BLOCKS, True, False), ("a", "a.weight_scale", [ROWS, 1], FP8, True, False), ("a", "a.weight_scale", [], FP8, True, True),
    ("a", "a.weight_scale_inv", [2, 1], BLOCKS, False, False), ("a", "a.weight_scale_inv", [], FP8, False, False), ("a", "a.scale", [2, 1], BLOCKS, False, False),
    ("embed_tokens", "embed_tokens.weight_scale", [1], FP8, False, False), ("a", "a.weight_scale", [], TENSORS, False, False)]
with tempfile.TemporaryDirectory() as work:
    for number, (module, scale, shape, declared, left_out, of_vllm) in enumerate(CASES):
        path = f"{work}/{number}"
        folder(path, module, scale, shape, declared)
        run = run_mckpt("verify", path)
        expect(run.returncode == 0, f"{scale} {shape}: {run.stdout}")
        said = "warning[MC2016]" in run.stdout and "takes the codes for weights" in run.stdout and "the scales of 1 tensor are named weight_scale" in run.stdout
        expect(said == left_out, f"{scale} {shape} {declared}: {run.stdout}")
        expect(("as vLLM does" in run.stdout) == of_vllm, f"{scale} {shape}: {run.stdout}")
        found = json.loads(run_mckpt("verify", path, "--json").stdout)
        expect(([c["status"] for c in found["checks"] if c["name"] == "scales"] == ["warn"]) == left_out, f"{scale} {shape}: {found['checks']}")
        expect(run_mckpt("convert", "dequantize", path, path + "_values").returncode == 0, f"{scale} {shape}: not dequantised")
finish(5 * len(CASES))
