"""A model whose type no family has is nearest to the family that explains most of its tensors, then to the one with the fewest rows
that do not fit, then by name: each golden model, called by another name, is nearest to its own. Under its own name the draft has its own
family as base, and no row."""
import glob
import json
import os
import struct
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

SIZES = {"BF16": 2, "F16": 2, "F32": 4, "I64": 8}
# Models whose tensors another family explains as well, of which nothing but a name tells them apart; mckpt has no rows for what
# is left of mimo's MTP layers under other numbers.
ALIKE = {"deepseek_v2": "deepseek_v3", "glm4_moe_lite": "deepseek_v3", "gemma": "llama", "kimi_k2": "deepseek_v3", "mimo": "seed_oss", "mistral": "llama",
         "sarvam_moe": "bailing_moe_v2", "sarvam_moe_a": "bailing_moe_v2"}


def write_model(listing, folder):
    """A file of zeros with the tensors of a list: "name BF16 4x3 ..." a line."""
    header, at = {}, 0
    with open(listing) as lines:
        for name, dtype, shape, *_ in map(str.split, lines):
            dims = [int(d) for d in shape.split("x") if d != "-"]
            size = SIZES[dtype]
            for d in dims:
                size *= d
            header[name] = {"dtype": dtype, "shape": dims, "data_offsets": [at, at + size]}
            at += size
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.truncate(8 + len(text) + at)


def nearest(folder, config, model_type, architecture):
    with open(os.path.join(folder, "config.json"), "w") as out:
        json.dump({**config, "model_type": model_type, "architectures": [architecture]}, out)
    fact = json.loads(run_mckpt("inspect", folder, "--json").stdout)["facts"].get("family", "")
    before, _, words = fact.partition("the nearest family is ")
    family, _, count = words.partition(", which explains ")
    expect(before.startswith("unknown"), f"{folder}: {fact}")
    return family, count


FAMILIES = json.loads(run_mckpt("mappings", "--json").stdout)["families"]


def family_of(model_type):
    return next(f["name"] for f in FAMILIES if model_type in f["model_types"])


def drafted(folder, config):
    """The draft of the model under its own name."""
    with open(os.path.join(folder, "config.json"), "w") as out:
        json.dump(config, out)
    return json.loads(run_mckpt("mappings", "draft", folder, "--json").stdout)


for listing in sorted(glob.glob(os.path.join(DATA, "golden", "*", "*", "tensors.txt"))):
    name = os.path.basename(os.path.dirname(listing))
    config_file = os.path.join(os.path.dirname(listing), "config.json")
    if not os.path.exists(config_file):
        continue
    with open(config_file) as file:
        config = json.load(file)
    own = config["model_type"]
    with tempfile.TemporaryDirectory(prefix="mckpt_nearest_") as folder:
        write_model(listing, folder)
        family, count = nearest(folder, config, "zzz9", "ZzzForCausalLM")
        expect(family in (own, family_of(own), ALIKE.get(own)), f"{name}: {own} is called {family}, {count}")
        explained, _, rest = count.partition(" of ")
        expect(own == "mimo" or explained == rest.split()[0], f"{name}: {count}")
        if name in ("qwen3_dense", "qwen3_moe", "llama3"):  # tensors count more than names
            family, count = nearest(folder, config, "qwen2_plus", "Qwen2PlusForCausalLM")
            want = {"qwen3_dense": "qwen3", "qwen3_moe": "qwen3_moe", "llama3": "llama"}[name]
            expect(family == want, f"{name} as qwen2_plus: {family}, {count}")
        if name == "glm4_moe":  # a draft turns the words of other families for its experts
            words = {"n_routed_experts": "num_experts", "n_shared_experts": "num_shared_experts"}
            other = {words.get(key, key): value for key, value in config.items()} | {"model_type": "zzz9", "architectures": ["ZzzForCausalLM"]}
            draft = drafted(folder, other)
            text = json.loads(draft["map"])
            expect((draft["base"], draft["to_decide"]) == (own, 0), f"{name} with other words: {draft}")
            expect(text["config"] == {key: {"key": word} for key, word in words.items()} and text["rows"] == [], f"{name} with other words: {text}")
        draft = drafted(folder, config)
        expect(draft["base"] == family_of(own) and (own == "mimo" or draft["explained"] == draft["tensors"] and draft["to_decide"] == 0), f"{name}: {draft}")
finish(100)
