"""Draws golden models into the working folder, each as a Hugging Face folder of its name.

usage: python3 -m mckpt_tests.drawn MODEL...      names of test_data/golden/models and families; two more:

    hybrid_mtp      a hybrid model with an MTP depth (models.py)
    hybrid_scaled   nemotron_h with a tensor outside the layers that each mixer reads, the second map file of docs/adding_a_model.md
                    for it, gathered.json, and apart.json, which does not gather the tensor with the mixers
"""
import json
import os
import re
import shutil
import subprocess
import sys

from mckpt_tests.models import GOLDEN, hybrid_with_mtp
from mckpt_tests.setting import GOLDEN_MODEL, SOURCE


def drawn(name, recipe, change=lambda lines: lines):
    os.mkdir(name)
    shutil.copy(os.path.join(recipe, "config.json"), name)
    with open(os.path.join(recipe, "tensors.txt")) as f:
        lines = change(f.read().splitlines())
    tensors = os.path.join(name, "tensors.txt")
    with open(tensors, "w") as f:
        f.write("\n".join(lines) + "\n")
    subprocess.run([GOLDEN_MODEL, tensors, os.path.join(name, "model.safetensors")], check=True)
    os.remove(tensors)


def draw_scaled(name):
    def with_scale(lines):
        norm = next(line for line in lines if line.startswith("backbone.norm_f.weight")).split(" ", 1)[1]
        return [*lines, f"backbone.shared_scale.weight {norm}"]

    drawn(name, os.path.join(GOLDEN, "models", "nemotron_h"), with_scale)
    with open(os.path.join(SOURCE, "docs", "adding_a_model.md")) as f:
        rows = json.loads(re.findall(r"```json\n(.*?)```", f.read(), re.S)[1])
    for file in ("gathered.json", "apart.json"):
        with open(file, "w") as f:
            json.dump(rows, f)
        rows["rows"][0].pop("gathered_with", None)


def draw(name):
    if name == "hybrid_mtp":
        return hybrid_with_mtp(name)
    if name == "hybrid_scaled":
        return draw_scaled(name)
    drawn(name, next(path for path in (os.path.join(GOLDEN, kind, name) for kind in ("models", "families")) if os.path.isdir(path)))


for model in sys.argv[1:]:
    draw(model)
