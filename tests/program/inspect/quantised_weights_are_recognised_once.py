"""`inspect` looks once for what a config declares about quantised weights, for its facts and its counts together: in a folder without such
weights, and in one with them."""

import os
import shutil
import subprocess

from mckpt_tests.checks import expect, finish, skip
from mckpt_tests.folders import scratch
from mckpt_tests.setting import DATA, MCKPT, SANITIZED

if SANITIZED:
    skip("the sanitizers make calls of their own")
if not shutil.which("strace") or subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode != 0:
    skip("strace is not installed, or cannot trace here")
folder = scratch()
log = os.path.join(folder.name, "calls")
MODELS = ("models/tiny_qwen3_moe", "quantized/qwen3_64_skiplist")
for model in MODELS:
    for more in ((), ("--json",)):
        run = subprocess.run(["strace", "-f", "-o", log, MCKPT, "inspect", os.path.join(DATA, model), *more], capture_output=True, text=True)
        expect(run.returncode == 0 and "qwen3" in run.stdout, f"{model} {more}: {run.stdout[:300]}{run.stderr[:300]}")
        with open(log) as f:
            # The file of ModelOpt is beside the config; nothing else of inspect looks for it.
            looks = [line for line in f if "hf_quant_config.json" in line]
        expect(len(looks) == 1, f"{model} {more}: {len(looks)} looks for a declaration: {looks}")
finish(2 * 2 * len(MODELS))
