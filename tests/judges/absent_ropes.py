"""transformers' class has a default for each entry about rotary embeddings that config.json lacks: stretched embeddings, or a part of each
head. In every family `to-mcore` writes the args that it writes for the config with the default in it, whether all entries are left out
or the object alone. A share of each head that config.json says is in the args if the class computes with it.
"""

from mckpt_tests.checks import expect, finish, in_parallel, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.transformers_models import BUILT, GOLDEN_FAMILIES, TINY, golden_config, tiny_name

need("transformers")
import json
import os
import sys
import tempfile

import torch
import transformers

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity(50)
OBJECTS = ("rope_parameters", "rope_scaling")
ENTRIES = (*OBJECTS, "rope_theta", "partial_rotary_factor", "rotary_dim", "rope_local_base_freq")
# mckpt does not read this class's own config, but the one that its hub has.
OTHER_CONFIG = ("mimo_v2_flash",)
# The args of rotary embeddings; the base is left out where the config has none.
SAID = ("position_embedding_type", "rotary_percent", "use_rope_scaling", "rope_scaling_factor", "yarn_rotary_scaling_factor",
        "yarn_original_max_position_embeddings", "yarn_beta_fast", "yarn_beta_slow", "rope_type", "rotary_scaling_factor",
        "original_max_position_embeddings", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")


def without(config, entries):
    return {k: without(v, entries) if isinstance(v, dict) and k.endswith("_config") else v for k, v in config.items() if k not in entries}


def write(config, folder):
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)


def args_of(folder, config):
    """The args of the result for this config, with the weights in the folder; None where it is refused."""
    write(config, folder)
    with tempfile.TemporaryDirectory(prefix="mckpt_ropes_") as out:
        run = run_mckpt("convert", "to-mcore", folder, os.path.join(out, "run"), "-q", "--no-sync")
        if not expect(run.returncode == 0, f"{config['model_type']}: {run.stderr}"):
            return None
        return vars(torch.load(os.path.join(out, "run", "release", "common.pt"), weights_only=False)["args"])


def rotated(config):
    """How many numbers the rotary embeddings of the class have; nothing for a class without them."""
    with tempfile.TemporaryDirectory(prefix="mckpt_ropes_") as folder, torch.device("meta"):
        write(config, folder)
        model = getattr(transformers, config["architectures"][0])(transformers.AutoConfig.from_pretrained(folder))
    parts = model.get_decoder() if hasattr(model, "get_decoder") else model
    return [buffer.numel() for name, part in parts.named_modules() if "RotaryEmbedding" in type(part).__name__ for buffer in part.buffers()]


def with_share(config, share):
    """The config whose language model says this share, and embeddings that are not stretched."""
    for key in ("text_config", "llm_config", "thinker_config"):
        if key in config:
            return {**config, key: with_share(config[key], share)}
    rope = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": share}
    return {**without(config, ENTRIES), "partial_rotary_factor": share, "rope_parameters": rope}


def check_share(what, config, folder):
    try:
        half, whole = rotated(with_share(config, 0.5)), rotated(with_share(config, 1.0))
    except Exception as e:
        print(f"{what}: with a share: transformers refuses: {type(e).__name__}: {e}"[:200])
        return
    if not whole:
        print(f"{what}: no rotary embeddings")
        return
    got = args_of(folder, with_share(config, 0.5))
    if got and got["position_embedding_type"] == "none":
        print(f"{what}: args without rotary embeddings")
        return
    expect(got and got.get("rotary_percent") == (1 if half == whole else 0.5), f"{what}: the class has {half} and {whole}, args {got and got.get('rotary_percent')}")


def check(what, config):
    for entries in (OBJECTS, ENTRIES):
        less = without(config, entries)
        with tempfile.TemporaryDirectory(prefix="mckpt_ropes_") as folder:
            write(less, folder)
            try:
                found = transformers.AutoConfig.from_pretrained(folder)
                rope = found.get_text_config().rope_parameters
                model = getattr(transformers, config["architectures"][0])(found).to(torch.bfloat16)
            except Exception as e:
                print(f"{what}: without {entries[0]} and others: transformers refuses: {type(e).__name__}: {e}"[:200])
                continue
            model.save_pretrained(folder)
            full = {**json.loads(found.to_json_string(use_diff=False)), "architectures": config["architectures"]}
            if entries is OBJECTS and config["model_type"] not in OTHER_CONFIG:
                check_share(what, full, folder)
            if not rope or any(isinstance(v, dict) for v in rope.values()):
                print(f"{what}: no object of the whole model")
                continue
            got, want = args_of(folder, less), args_of(folder, full)
            if got is None or want is None:
                continue
            expect([got.get(k) for k in SAID] == [want.get(k) for k in SAID],
                   f"{what} without {entries}: {[(k, got.get(k), want.get(k)) for k in SAID if got.get(k) != want.get(k)]}")
            expect(got.get("rotary_base", want.get("rotary_base")) == want.get("rotary_base"), f"{what}: rotary_base {got.get('rotary_base')}, {want.get('rotary_base')}")


chosen = sys.argv[1:]
cases = [(tiny_name(c), c) for c in TINY if not chosen or c["model_type"] in chosen]
cases += [(m, golden_config(m)) for m in GOLDEN_FAMILIES + BUILT if not chosen or m in chosen]
in_parallel(check, cases)
finish(1 if chosen else 450)
