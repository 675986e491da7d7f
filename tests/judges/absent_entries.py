"""An entry that config.json lacks has the default of transformers' class. For every family, each entry in turn is left out, at the
top and in each nested config: mckpt reads the model that it reads where transformers has written the default out, or refuses the
config by the missing entry; where transformers cannot do without the list of layers, mckpt refuses the config too. And a config as
transformers writes it, which leaves entries out, is the config with all of them.
$MCKPT_LIST: prints the refusals.
"""

from mckpt_tests.checks import expect, finish, in_parallel, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.transformers_models import BUILT, GOLDEN_FAMILIES, TINY, golden_config, tiny_name

need("transformers")
import copy
import json
import os
import sys
import tempfile

import transformers

transformers.utils.logging.set_verbosity(50)
# transformers has nothing to say of layers for prediction: its classes do not build them.
NOT_FACTS = {"model_type", "architectures", "transformers_version", "dtype", "torch_dtype", "num_nextn_predict_layers", "mtp_num_hidden_layers",
             "num_mtp_layers"}
# Where a default of others counts, and which.
OTHERS_COUNT = {
    "text_config.num_sliding_attention_heads": "Megatron-Bridge has the heads of Step-3.5, not those of full attention",
    "vision_config.vision_use_head": "Gemma 3 has no pooling head; the default is that of SigLIP's class",
}


def read(config):
    """The parameters of the model as mckpt reads the config: names and shapes; or the error."""
    with tempfile.TemporaryDirectory(prefix="mckpt_absent_") as folder:
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(config, f)
        run = run_mckpt("ls", folder, "--as", "megatron", "--json", "-q")
    if run.returncode != 0:
        return run.stderr
    return sorted((t["name"], tuple(t["shape"])) for t in json.loads(run.stdout)["tensors"])


def of_transformers(config):
    """The config of transformers' class with every entry; None where the class refuses it."""
    with tempfile.TemporaryDirectory(prefix="mckpt_absent_") as folder:
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(config, f)
        try:
            found = transformers.AutoConfig.from_pretrained(folder)
            return found, written(found, config, diff=False)
        except Exception:
            return None, None


def written(found, config, diff):
    """As transformers writes the config, or with all that it leaves out."""
    return {**json.loads(found.to_json_string(use_diff=diff)), "architectures": config["architectures"]}


def check_defaults(kind, config):
    """The config of the class in which every entry is the default; some are of no possible model."""
    a, b = (read(written(kind(), config, diff)) for diff in (True, False))
    if not (isinstance(a, str) and isinstance(b, str)):
        expect(a == b, f"the default of {kind.__name__}: {difference(a, b)}")


def places(config, here=()):
    """The keys that lead to each object that is a config: (), ("text_config",), ..."""
    yield here
    for key, value in config.items():
        if key.endswith("_config") and isinstance(value, dict) and key != "quantization_config":
            yield from places(value, (*here, key))


def without(config, here, key):
    config = copy.deepcopy(config)
    at = config
    for name in here:
        at = at[name]
    del at[key]
    return config


def difference(a, b):
    if isinstance(a, str) or isinstance(b, str):
        return f"{a if isinstance(a, str) else f'{len(a)} parameters'} against {b if isinstance(b, str) else f'{len(b)} parameters'}"
    return f"{len(a)} parameters against {len(b)}, first {next((x for x in zip(a, b) if x[0] != x[1]), '')}"


def check(what, config):
    found, whole = of_transformers(config)
    if not expect(found is not None, f"{what}: transformers refuses the config"):
        return
    a, b = (read(written(found, config, diff)) for diff in (True, False))
    expect(not isinstance(b, str), f"{what}: mckpt refuses the whole config: {b}")
    expect(a == b, f"{what} as transformers writes it: {difference(a, b)}")
    classes.setdefault(type(found), config)
    for here in places(whole):
        at = whole
        for name in here:
            at = at[name]
        for key in at:
            if key in NOT_FACTS or key.startswith("_") or ".".join((*here, key)) in OTHERS_COUNT:
                continue
            less = without(whole, here, key)
            _, filled = of_transformers(less)
            if filled is None:
                expect(key != "layer_types" or isinstance(read(less), str), f"{what} without the list of layers: read, and transformers refuses it")
                continue
            got, want = read(less), b if filled == whole else read(filled)
            if isinstance(got, str) and "MC2001" in got and "is missing" in got:
                refused.append(f"{what}: {'.'.join((*here, key))}: {got.splitlines()[0]}")
                continue
            # An entry that was left out contradicts no other one.
            if (isinstance(got, str) and isinstance(want, str)) or (isinstance(want, str) and "contradicts" in want and got == b):
                continue
            expect(got == want, f"{what} without {'.'.join((*here, key))}: {difference(got, want)}"[:400])


refused, classes = [], {}
chosen = sys.argv[1:]
cases = [(tiny_name(c), c) for c in TINY if not chosen or c["model_type"] in chosen]
cases += [(m, golden_config(m)) for m in GOLDEN_FAMILIES + BUILT if not chosen or m in chosen]
in_parallel(check, cases)
in_parallel(check_defaults, list(classes.items()))
if os.environ.get("MCKPT_LIST"):
    print("\n".join(refused))
finish(1 if chosen else 1500)
