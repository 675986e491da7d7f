"""A quantised model written as bfloat16: the program beside cp of the bytes that it writes, a script of torch, and a script
of transformers' own function for MXFP4, one process each, in turns. Prints best and median seconds, the ratio to cp, and
the peak of memory.

usage: dequantize.py MCKPT [--folder DIR] [--mib N] [--rounds N] [--scheme fp8|mxfp4] [--device cuda]

Everything is in the page cache, and nothing is synced. The model is made by torch, N MiB of values. With
--device cuda the program loads an FP8 model and the same model in bfloat16 instead (roundtrip --until load),
and the ratio compares the seconds for the same parameters. It needs a Llama's folder, which live.py makes.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("mckpt")
parser.add_argument("--folder", default="/tmp/mckpt_quantized_bench")
parser.add_argument("--mib", type=int, default=2048)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--scheme", choices=["fp8", "mxfp4"], default="fp8")
parser.add_argument("--device")
a = parser.parse_args()

source, result = os.path.join(a.folder, a.scheme), os.path.join(a.folder, "out")

MAKE = """
import json, sys, torch
from safetensors.torch import save_file
folder, scheme, mib = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.manual_seed(1)
rows, columns = 4096, 14336
count = max(1, mib * 2**20 // (rows * columns * 2))
tensors = {}
for i in range(count):
    if scheme == "fp8":
        codes = torch.randint(0, 256, (rows, columns), dtype=torch.uint8)
        codes[(codes & 127) == 127] = 3
        tensors[f"model.layers.{i}.mlp.up_proj.weight"] = codes.view(torch.float8_e4m3fn)
        tensors[f"model.layers.{i}.mlp.up_proj.weight_scale_inv"] = torch.rand(rows // 128, columns // 128) + 0.01
    else:
        name = f"model.layers.{i}.mlp.experts.gate_up_proj"
        tensors[name + "_blocks"] = torch.randint(0, 256, (4, 5760, 90, 16), dtype=torch.uint8)
        tensors[name + "_scales"] = torch.randint(110, 130, (4, 5760, 90), dtype=torch.uint8)
how = {"quant_method": "fp8", "weight_block_size": [128, 128]} if scheme == "fp8" else {"quant_method": "mxfp4"}
save_file(tensors, folder + "/model.safetensors")
json.dump({"model_type": "x" if scheme == "fp8" else "gpt_oss", "quantization_config": how}, open(folder + "/config.json", "w"))
"""

TORCH = """
import sys, torch
from safetensors import safe_open
from safetensors.torch import save_file
out = {}
with safe_open(sys.argv[1] + "/model.safetensors", "pt") as f:
    for name in f.keys():
        if not name.endswith(".weight"):
            continue
        codes, scales = f.get_tensor(name), f.get_tensor(name + "_scale_inv")
        rows, columns = codes.shape
        scaled = codes.float().view(rows // 128, 128, columns // 128, 128) * scales[:, None, :, None]
        out[name] = scaled.to(torch.bfloat16).view(rows, columns)
save_file(out, sys.argv[2])
"""

TRANSFORMERS = """
import sys, torch
from safetensors import safe_open
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors
out = {}
with safe_open(sys.argv[1] + "/model.safetensors", "pt") as f:
    for name in f.keys():
        if name.endswith("_blocks"):
            blocks, scales = f.get_tensor(name), f.get_tensor(name[:-7] + "_scales")
            out[name[:-7]] = convert_moe_packed_tensors(blocks, scales, dtype=torch.bfloat16).contiguous()
save_file(out, sys.argv[2])
"""


def timed(command):
    """Seconds, and the peak of memory in KiB, of a process."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command[:3]} ended with {status}")
    return time.monotonic() - begin, usage.ru_maxrss


def on_gpu():
    model = os.path.join(a.folder, "dense")
    live = [sys.executable, os.path.join(HERE, "live.py"), "true", "--shape", "dense", "--folder", a.folder, "--repeat", "0"]
    subprocess.run(live, stdout=subprocess.DEVNULL, check=False)
    fp8 = model + "_fp8"
    if not os.path.isdir(fp8):
        subprocess.run([a.mckpt, "convert", "quantize", model, fp8, "--to", "fp8-block", "--no-sync", "-q"], check=True)
    for folder in (model, fp8) * a.rounds:
        command = [a.mckpt, "--json", "roundtrip", folder, "--device", a.device, "--until", "load"]
        phases = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["phases"]
        print(os.path.basename(folder), *[f"{p['name']} {p['seconds']:.3f} s" for p in phases], flush=True)


def on_cpu():
    os.makedirs(source, exist_ok=True)
    if not os.path.isfile(os.path.join(source, "config.json")):
        subprocess.run([sys.executable, "-c", MAKE, source, a.scheme, str(a.mib)], check=True)
    other = ("torch script", TORCH) if a.scheme == "fp8" else ("transformers", TRANSFORMERS)
    plain, copy = os.path.join(result, "model.safetensors"), os.path.join(a.folder, "copy.safetensors")
    script = os.path.join(a.folder, "script.safetensors")
    contenders = {
        "mckpt": [a.mckpt, "convert", "dequantize", source, result, "--no-sync", "--overwrite", "-q"],
        "cp": ["cp", plain, copy],
        other[0]: [sys.executable, "-c", other[1], source, script],
    }
    seconds, peak = {name: [] for name in contenders}, {}
    for _ in range(a.rounds):
        for name, command in contenders.items():
            for stale in (copy, script):
                if os.path.exists(stale):
                    os.remove(stale)
            if name == "mckpt":
                shutil.rmtree(result, ignore_errors=True)
            took, peak[name] = timed(command)
            seconds[name].append(took)
    print(f"{os.path.getsize(plain) / 2**20:,.0f} MiB written, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    for name, all_of in seconds.items():
        best = min(all_of)
        print(f"{name:13} best {best:7.3f} s  median {statistics.median(all_of):7.3f} s  {best / min(seconds['cp']):5.2f} x cp  peak {peak[name] / 1024:,.0f} MiB")


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
on_gpu() if a.device else on_cpu()
