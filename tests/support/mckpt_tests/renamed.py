"""The model of the map file that docs/adding_a_model.md shows: llama3 under names that no table has."""
import json
import os
import re
import shutil
import struct

from mckpt_tests.golden import DATA, Models

RENAMED = {"gate_proj": "w1", "up_proj": "w3"}


def example():
    with open(os.path.join(DATA, "..", "docs", "adding_a_model.md")) as f:
        return re.search(r"```json\n(.*?)```", f.read(), re.S).group(1)


def renamed_copy(source, folder):
    """The model with the names of the example, and its rotary frequencies."""
    os.mkdir(folder)
    shutil.copy(os.path.join(source, "config.json"), folder)
    with open(os.path.join(source, "model.safetensors"), "rb") as f:
        blob = f.read()
    n = struct.unpack("<Q", blob[:8])[0]
    header = {re.sub("gate_proj|up_proj", lambda m: RENAMED[m[0]], name): t for name, t in json.loads(blob[8:8 + n]).items()}
    data = blob[8 + n:] + bytes(16)
    header["model.rotary.inv_freq"] = {"dtype": "F32", "shape": [4], "data_offsets": [len(data) - 16, len(data)]}
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def renamed_models():
    """The golden models, the path of llama3 and that of its renamed copy."""
    models = Models()
    source, mine = models.path("llama3"), models.path("llama3_of_mine")
    renamed_copy(source, mine)
    return models, source, mine
