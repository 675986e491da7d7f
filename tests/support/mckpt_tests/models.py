"""Models to convert: of any size, the golden ones drawn again from their recipes, and one under names that no table has."""
import concurrent.futures
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from mckpt_tests.folders import safetensors
from mckpt_tests.setting import DATA, GOLDEN_MODEL, SOURCE

GOLDEN = os.path.join(DATA, "golden")
MODEL_MAKER = os.path.join(SOURCE, "tests", "bench", "make_model.py")
RENAMED = {"gate_proj": "w1", "up_proj": "w3"}


def make_model(folder, **sizes):
    flags = [text for name, value in sizes.items() for text in ([f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)]))]
    subprocess.run([sys.executable, MODEL_MAKER, folder, *flags], check=True)
    return folder


class Models:
    """A folder of the golden models: a folder of golden/models, or of golden/families."""

    def __init__(self, kind="models", only=()):
        self.kind = kind
        self.root = tempfile.TemporaryDirectory(prefix="mckpt_golden_")
        at = os.path.join(GOLDEN, kind)
        names = sorted(name for name in os.listdir(at) if os.path.isdir(os.path.join(at, name)) and (not only or name in only))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self.draw, names))

    def path(self, model):
        return os.path.join(self.root.name, model)

    def draw(self, model):
        source, folder = os.path.join(GOLDEN, self.kind, model), self.path(model)
        os.mkdir(folder)
        with open(os.path.join(source, "config.json")) as f, open(os.path.join(folder, "config.json"), "w") as out:
            out.write(f.read())
        subprocess.run([GOLDEN_MODEL, os.path.join(source, "tensors.txt"), os.path.join(folder, "model.safetensors")], check=True)

    def tensors(self, model):
        """name -> (shape, bytes), read here and not by mckpt."""
        return {name: (shape, data) for name, (_, shape, data) in safetensors(self.path(model)).items()}


def hybrid_with_mtp(folder):
    """nemotron_h_moe with an MTP depth of an attention and an MLP, whose tensors are drawn like all others."""
    recipe = os.path.join(GOLDEN, "models", "nemotron_h_moe")
    with open(os.path.join(recipe, "config.json")) as f:
        config = json.load(f)
    kinds = config["layers_block_type"]
    config |= {"num_nextn_predict_layers": 1, "mtp_layers_block_type": ["attention", "moe"]}
    with open(os.path.join(recipe, "tensors.txt")) as f:
        lines = f.read().splitlines()
    hidden, more = config["hidden_size"], []
    for to, kind in enumerate(config["mtp_layers_block_type"]):
        front = f"backbone.layers.{kinds.index(kind)}."
        more += [line.replace(front, f"mtp.layers.{to}.") for line in lines if line.startswith(front)]
    norm = next(line for line in lines if line.startswith("backbone.norm_f.weight")).split(" ", 1)[1]
    more += [f"mtp.layers.0.{name}.weight {norm}" for name in ("enorm", "hnorm")]
    more += [f"mtp.layers.1.final_layernorm.weight {norm}", f"mtp.layers.0.eh_proj.weight BF16 {hidden}x{2 * hidden} perm mtp.eh_proj 0"]
    os.mkdir(folder)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    with open(os.path.join(folder, "tensors.txt"), "w") as f:
        f.write("\n".join(lines + more) + "\n")
    subprocess.run([GOLDEN_MODEL, os.path.join(folder, "tensors.txt"), os.path.join(folder, "model.safetensors")], check=True)
    return folder


def example():
    """The map file that docs/adding_a_model.md shows."""
    with open(os.path.join(SOURCE, "docs", "adding_a_model.md")) as f:
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
    """The golden models, the path of llama3 and the path of its renamed copy."""
    models = Models()
    source, mine = models.path("llama3"), models.path("llama3_of_mine")
    renamed_copy(source, mine)
    return models, source, mine
