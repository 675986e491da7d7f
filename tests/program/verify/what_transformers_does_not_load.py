"""A model that transformers does not load, though every tensor is in the files, is a warning of verify: names in wrappers in
pytorch_model.bin, shards and indexes that it does not take, and settings of config.json that it refuses."""

import json
import os
import shutil
import struct

from mckpt_tests.checks import finish
from mckpt_tests.folders import scratch_paths
from mckpt_tests.program import run_says as run
from mckpt_tests.setting import TINY_MODEL

path = scratch_paths()
with open(os.path.join(TINY_MODEL, "config.json")) as f:
    CONFIG = json.load(f)
run(0, "convert", "to-safetensors", TINY_MODEL, path("m.safetensors"), "-q", "--no-sync")
with open(path("m.safetensors"), "rb") as f:
    HEADER, DATA = json.loads(f.read(struct.unpack("<Q", f.read(8))[0])), f.read()


def folder_of(name, config=CONFIG):
    os.mkdir(path(name))
    with open(path(name, "config.json"), "w") as f:
        json.dump(config, f)
    return path(name)


def torch_file(target, named):
    text = json.dumps({named(k) if k != "__metadata__" else k: v for k, v in HEADER.items()}).encode()
    with open(path("renamed.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + DATA)
    run(0, "convert", "safetensors-to-pt", path("renamed.safetensors"), target, "-q", "--no-sync", "--overwrite")


NOT_FOUND = "which transformers does not take off: it does not load these tensors"
for name, named, words in (("plain", lambda k: k, ()), ("module", lambda k: f"module.{k}", (NOT_FOUND, "such as module.")),
                           ("model", lambda k: f"model.{k}", (NOT_FOUND, "such as model.")),
                           ("compiled", lambda k: k.replace("layers.0.", "layers.0._orig_mod."), (NOT_FOUND, "_orig_mod"))):
    saved = folder_of(name)
    torch_file(path(name, "pytorch_model.bin"), named)
    run(0, "verify", saved, words=words or ("config.json has them all",), no_words=() if words else ("warning[",))
# Another name is nothing that transformers looks for.
os.rename(path("module", "pytorch_model.bin"), path("module", "checkpoint.bin"))
run(0, "verify", path("module"), no_words=(NOT_FOUND,))

shards = folder_of("shards")
torch_file(path("shards", "pytorch_model-00001-of-00001.bin"), lambda k: k)
run(0, "verify", shards, words=("warning[MC1105]", "no pytorch_model.bin.index.json"))
places = {k: "pytorch_model-00001-of-00001.bin" for k in HEADER if k != "__metadata__"}
for metadata, words in (({}, ("warning[MC1105]", "no object 'metadata'")), ({"metadata": {}}, ())):
    with open(path("shards", "pytorch_model.bin.index.json"), "w") as f:
        json.dump({**metadata, "weight_map": places}, f)
    run(0, "verify", shards, words=words or ("config.json has them all",), no_words=() if words else ("warning[",))

VOCABULARY = CONFIG["vocab_size"]
LAYERS = CONFIG["num_hidden_layers"]
for name, change, word in (("pad", {"pad_token_id": VOCABULARY}, f"pad_token_id {VOCABULARY}"), ("last", {"pad_token_id": VOCABULARY - 1}, None),
                           ("negative", {"pad_token_id": -1}, None), ("none", {"pad_token_id": None}, None),
                           ("types", {"layer_types": ["full_attention"] * (LAYERS + 1)}, f"num_hidden_layers is {LAYERS}"),
                           ("code", {"layer_types": ["full_attention"] * (LAYERS + 1), "auto_map": {}}, None),
                           ("act", {"hidden_act": "SILU"}, "'hidden_act' is not known"), ("swish", {"hidden_act": "swish"}, None),
                           ("own_act", {"hidden_act": "own", "auto_map": {}}, "hidden_act own, which transformers does not know"),
                           ("all", {"layer_types": ["full_attention"] * LAYERS}, None)):
    changed = folder_of(name, {**CONFIG, **change})
    shutil.copy(path("m.safetensors"), path(name, "model.safetensors"))
    run(0, "verify", changed, words=("warning[MC2001]", word) if word else ("config.json has them all",), no_words=() if word else ("warning[",))
saved = folder_of("pad_bin", {**CONFIG, "pad_token_id": VOCABULARY})
torch_file(path("pad_bin", "pytorch_model.bin"), lambda k: k)
run(0, "verify", saved, words=(f"pad_token_id {VOCABULARY}",))

finish(20)
