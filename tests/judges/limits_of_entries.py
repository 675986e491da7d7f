"""Entries of config.json that are wrong by themselves, beside transformers' own Qwen3-MoE: where its class refuses an entry, or computes
no finite numbers, mckpt refuses the config or warns; what it computes with is read without a word, but for the few entries with
which no model can be meant. The class of every family is asked for every spelling of entries that are null: mckpt warns where it
refuses them, and nowhere else. All activations and ways of rotary embeddings that transformers knows are known to mckpt.
"""

from mckpt_tests.checks import expect, finish, in_parallel, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.transformers_models import BUILT, GOLDEN_FAMILIES, TINY, golden_config

need("transformers")
import copy
import json
import os
import sys
import tempfile

import torch
import transformers
from transformers.activations import ACT2CLS
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

transformers.utils.logging.set_verbosity(50)
CONFIG = {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4, "vocab_size": 32, "max_position_embeddings": 64, "num_experts": 4,
          "num_experts_per_tok": 2, "moe_intermediate_size": 8, "rms_norm_eps": 1e-6, "tie_word_embeddings": False}
VALUES = {
    "hidden_act": ("SILU", "silu ", "", "nonsense", None),
    "rms_norm_eps": (None, 0, 0.0, -1, -1.0),
    "rope_theta": (None, [], 0.5, 1e4),
    "tie_word_embeddings": (None, True),
    "attention_bias": (None, False),
    "attention_dropout": (-1.0, 2.0, 0.5),
    "num_experts_per_tok": (None, 7, 4),
    "rope_scaling": tuple({"rope_theta": 1e4, **s} for s in ({"rope_type": "nonsense"}, {"type": "nonsense"}, {"rope_type": ""},
                    {"rope_type": "linear", "factor": 2.0}, {"type": "linear", "factor": 0.5}, {"rope_type": "dynamic", "factor": 2.0})),
}
# The class computes something, which cannot be meant.
NOT_MEANT = [("rope_theta", 0), ("rope_theta", -1), ("partial_rotary_factor", 7), ("partial_rotary_factor", 0), ("partial_rotary_factor", -1),
             ("num_experts_per_tok", 0)]
# The class demands a fraction, or has other words; releases before 5 compute with the entry.
OLDER_RELEASES = [("rms_norm_eps", 0)]


def computes(config):
    """Whether transformers' class takes the config and computes finite numbers, as in training."""
    try:
        torch.manual_seed(0)
        model = transformers.Qwen3MoeForCausalLM(transformers.Qwen3MoeConfig.from_dict(config)).train()
        return bool(torch.isfinite(model(torch.arange(8)[None]).logits).all())
    except Exception:
        return False


def answer(config):
    """The answer of mckpt: "refused", "warned", or "" where it has nothing to say."""
    with tempfile.TemporaryDirectory(prefix="mckpt_limits_") as folder:
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(config, f)
        run = run_mckpt("ls", folder, "--as", "megatron", "-q")
    expect(run.returncode in (0, 2, 3), f"{config}: exit status {run.returncode}: {run.stderr}")
    if run.returncode != 0:
        expect("MC2001" in run.stderr and "found" in run.stderr, run.stderr)
        return "refused"
    return "warned" if "warning" in run.stderr else ""


def check(key, value):
    config = {**CONFIG, key: value}
    said, ok = answer(config), computes(config)
    what = f"{key} {value!r}: transformers {'computes' if ok else 'refuses'}, mckpt: {said or 'nothing'}"
    if (key, value) in NOT_MEANT and not isinstance(value, float):
        expect(said == "refused", what)
    elif (key, value) in OLDER_RELEASES and not isinstance(value, float):
        expect(not ok and said == "", what)
    else:
        expect((said == "") == ok, what)


# Spellings of one entry are in one row; an entry that is read at the top alone is in the last.
SPELLINGS = [("rms_norm_eps", "layer_norm_epsilon", "norm_eps", "layernorm_epsilon", "layer_norm_eps"),
             ("hidden_act", "hidden_activation", "mlp_hidden_act", "activation_function"), ("num_experts_per_tok", "top_k_experts", "moe_top_k"),
             ("attention_bias",), ("mlp_bias",), ("rope_theta",)]
AT_TOP = "tie_word_embeddings"
# mckpt does not read this class's own config, but the one that its hub has.
OTHER_CONFIG = ("mimo_v2_flash",)


def language_of(config):
    inner = [config[key] for key in ("text_config", "llm_config", "thinker_config") if key in config]
    return language_of(inner[0]) if inner else config


def config_of_class(config):
    with tempfile.TemporaryDirectory(prefix="mckpt_limits_") as folder:
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(config, f)
        return transformers.AutoConfig.from_pretrained(folder)


def class_takes(config, key):
    """Whether transformers' class takes the config. It uses the base of rotary embeddings when the model is made."""
    try:
        found = config_of_class(config)
        if key == "rope_theta":
            with torch.device("meta"):
                getattr(transformers, config["architectures"][0])(found)
        return True
    except Exception:
        return False


def nulls_of(config):
    """The config with each spelling of each entry null, and no other spelling of it: one that the class does not have, too. A class
    that refuses the config without the entry says nothing of the spellings."""
    for spellings in SPELLINGS:
        less = copy.deepcopy(config)
        language = language_of(less)
        for other in spellings + ("rope_parameters", "rope_scaling") * (spellings == ("rope_theta",)):
            language.pop(other, None)
        asked = spellings if class_takes(less, spellings[0]) else spellings[:1]
        for key in asked:
            changed = copy.deepcopy(less)
            language_of(changed)[key] = None
            yield changed, key
    yield {**config, AT_TOP: None}, AT_TOP


def check_null(config, key):
    said, ok = answer(config), class_takes(config, key)
    expect(said == ("" if ok else "warned"), f"{config['model_type']}, {key} null: transformers {'takes' if ok else 'refuses'} it, mckpt: {said or 'nothing'}")


def check_word(entry):
    expect(answer({**CONFIG, **entry}) == "", f"{entry} is known to transformers")


families = {(c["model_type"], language_of(c).get("model_type")): c for c in [golden_config(m) for m in GOLDEN_FAMILIES + BUILT] + TINY
            if c["model_type"] not in OTHER_CONFIG}
nulls = [case for config in families.values() for case in nulls_of(config)]
# The layers of this tiny config are all of the kind that has a base of its own.
nulls = [(config, key) for config, key in nulls if (config["model_type"], key) != ("olmo3", "rope_theta")]
expect(len(families) > 50 and len(nulls) > 800, f"{len(families)} families, {len(nulls)} entries that are null")
in_parallel(check_null, nulls)
cases = [(k, v) for k, values in VALUES.items() for v in values] + NOT_MEANT
in_parallel(check, cases)
in_parallel(check_word, [({"hidden_act": a},) for a in ACT2CLS])
in_parallel(check_word, [({"rope_scaling": {"rope_type": t, "factor": 2.0}},) for t in ("default", *ROPE_INIT_FUNCTIONS)])
finish(1700)
