"""A merge that makes finite values infinite is refused like a cast that does (MC0106), whatever is written, and --allow-overflow accepts
it: a base in fp16 with its largest number, and factors that add to it. Wider types hold the values."""
import json
import os
import struct
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt

WORK = tempfile.TemporaryDirectory()


def path(*parts):
    return os.path.join(WORK.name, *parts)


def save(file, tensors):
    """{name: (dtype, shape, numbers)} as safetensors."""
    header, data = {}, b""
    for name, (dtype, shape, numbers) in tensors.items():
        packed = struct.pack(f"<{len(numbers)}{'e' if dtype == 'F16' else 'f'}", *numbers)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


NAME = "model.layers.0.self_attn.q_proj"
CASES = {  # name: tensors of the adapter
    "factors": {f"base_model.model.{NAME}.lora_A.weight": ("F32", [1, 2], [1000.0, 1.0]),
                f"base_model.model.{NAME}.lora_B.weight": ("F32", [3, 1], [100.0, 0.0, 1.0])},
    "replaced": {f"base_model.model.{NAME}.weight": ("F32", [3, 2], [1e6, 0, 0, 0, 0, 0])},
}
save(path("base", "model.safetensors"), {NAME + ".weight": ("F16", [3, 2], [65504.0, 1.0, 2.0, 3.0, 4.0, 5.0])})
with open(path("base", "config.json"), "w") as config:
    json.dump({"model_type": "unknown_model", "architectures": ["Unknown"]}, config)
TARGETS = {"export": ["export"], "to_safetensors": ["convert", "to-safetensors"], "to_dcp": ["convert", "to-dcp"]}
for case, tensors in CASES.items():
    save(path(case, "adapter_model.safetensors"), tensors)
    with open(path(case, "adapter_config.json"), "w") as config:
        json.dump({"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ".*"}, config)
    for target, command in TARGETS.items():
        out = path(f"{case}_{target}" + (".safetensors" if target == "to_safetensors" else ""))
        what = [*command, path(case), out, "--base", path("base")]
        run = run_mckpt(*what)
        expect(run.returncode == 4 and "MC0106" in run.stderr and NAME in run.stderr, f"{case} {target}: {run.returncode} {run.stderr}")
        expect(not os.path.exists(out), f"{case} {target}: something was published")
        run = run_mckpt(*what, "--dtype", "fp16", "--overwrite")
        expect(run.returncode == 4 and "MC0106" in run.stderr, f"{case} {target} fp16: {run.stderr}")
        run = run_mckpt(*what, "--dtype", "bf16", "--overwrite")
        expect(run.returncode == 0, f"{case} {target} bf16: {run.stderr}")
        run = run_mckpt(*what, "--allow-overflow", "--overwrite")
        expect(run.returncode == 0, f"{case} {target} allowed: {run.stderr}")
finish(24)
