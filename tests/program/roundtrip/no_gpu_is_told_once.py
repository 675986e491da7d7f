"""Without a GPU `mckpt roundtrip --device cuda` says what is missing, and once what to do instead.
"""
import os
import subprocess
import sys

from mckpt_tests.setting import DATA, MCKPT, built

MODULE = built("no_gpu/libmckpt_cuda.so")
INSTEAD = "--device cpu keeps the model in the host's memory"
failures = 0
for driver in (True, False):
    environment = {**os.environ, "MCKPT_MODULE_PATH": os.path.dirname(MODULE), **({} if driver else {"WITHOUT_DRIVER": "1"})}
    command = [MCKPT, "roundtrip", os.path.join(DATA, "models", "tiny_qwen3_moe"), "--device", "cuda"]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, timeout=60)
    if run.returncode != 3 or "error[MC0004]: there is no GPU to use" not in run.stderr or run.stderr.count(INSTEAD) != 1:
        failures += 1
        print(f"FAIL with{'' if driver else 'out'} a driver: exit status {run.returncode}: {run.stderr}")
sys.exit(1 if failures else 0)
