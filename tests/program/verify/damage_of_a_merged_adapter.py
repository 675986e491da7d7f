"""A fault of the values of an adapter is reported of its file, and not of the base that it is merged with."""
import json
import os
import shutil
import struct
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SOURCE

CASE = os.path.join(SOURCE, "test_data/adapters/peft/alpha_negative")
with tempfile.TemporaryDirectory() as scratch:
    adapter = os.path.join(scratch, "adapter")
    shutil.copytree(CASE + "/adapter", adapter)
    run = run_mckpt("verify", adapter, "--base", CASE + "/base", "--json")
    checks = {c["name"]: c for c in json.loads(run.stdout)["checks"]}
    expect(run.returncode == 0 and checks["adapter"]["status"] == "pass" and checks["adapter"]["count"] == 4, run.stdout)
    weights = os.path.join(adapter, "adapter_model.safetensors")
    with open(weights, "r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(struct.pack("<f", float("nan")))
    run = run_mckpt("verify", adapter, "--base", CASE + "/base", "--json")
    found = {(f["file"], f["tensor"].endswith("lora_B.weight")) for f in json.loads(run.stdout)["findings"]}
    expect(run.returncode == 1, run.stdout)
    expect(found == {(None, False), (weights, True)}, run.stdout)
finish(3)
