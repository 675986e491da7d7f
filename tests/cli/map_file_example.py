"""The map file that docs/adding_a_model.md shows, on a model that has such names: it reads it as the table reads the same
model under its own names. Without it, and with one that is wrong, the model is refused.

usage: map_file_example.py MCKPT TEST_DATA GOLDEN_MODEL
"""
import json
import os
import re
import shutil
import struct
import subprocess

from golden import DATA, MCKPT, Models, expect_equal, finish, listing

RENAMED = {"gate_proj": "w1", "up_proj": "w3"}
models = Models()


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


def map_file(text):
    path = os.path.join(models.root.name, "rows.json")
    with open(path, "w") as f:
        f.write(text)
    return path


def refused(what, code, *args):
    answer = listing(mine, "--as", "megatron", *args)
    expect_equal(what, [code in answer if isinstance(answer, str) else "accepted"], [True])


source, mine = models.path("llama3"), models.path("llama3_of_mine")
renamed_copy(source, mine)
grid = ("--tp", 2, "--rank", 1, "--vocab-size", "auto")
for how in ("megatron", "fsdp"):
    got = listing(mine, "--as", how, "--map-file", map_file(example()), *grid)
    expect_equal(how, got, listing(source, "--as", how, *grid))
check = subprocess.run([MCKPT, "mappings", "check", mine, "--map-file", map_file(example())], capture_output=True, text=True)
expect_equal("mappings check", [check.returncode, "computed again from the config" in check.stderr], [0, True])

refused("without it", "MC2005")
without_unread = {"rows": json.loads(example())["rows"]}
refused("without the unread tensor", "MC2005", "--map-file", map_file(json.dumps(without_unread)))
wrong = [
    ("a rule that is not there", "MC0001", '"gated_mlp"', '"gated_mpl"'),
    ("a word that is not there", "MC2009", '"ffn hidden"', '"fnn hidden"'),
    ("a number on one side only", "MC2009", "model.layers.{L}.mlp.w1", "model.layers.mlp.w1"),
    ("a split that is not there", "MC2009", '"swiglu"', '"swigloo"'),
    ("no rule for two sources", "MC2009", '"rule": "gated_mlp",', ""),
    ("a row that is not there", "MC2009", "mlp.linear_fc1.weight", "mlp.linear_fc3.weight"),
    ("a key that is not there", "MC2009", '"split"', '"splits"'),
    ("a rule and its dimension", "MC2009", '"split": "swiglu"', '"partition_dim": 0'),
    ("no JSON", "MC1003", "{", "("),
]
for what, code, old, new in wrong:
    assert old in example(), old
    refused(what, code, "--map-file", map_file(example().replace(old, new)))
finish(58)
