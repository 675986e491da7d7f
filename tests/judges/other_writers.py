"""Checkpoints whose writers name and pack the parameters otherwise than Megatron-Bridge: fused where it has parts, other names of
the MTP layer, Megatron-FSDP's keys without `module.`, tied weights under both names, no arguments. Written by torch's own planner,
cut anywhere over three ranks, they export as the model that they hold.
"""
import os

from mckpt_tests.checks import expect_equal, need
from mckpt_tests.folders import safetensors
from mckpt_tests.golden import finish
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt

need("torch", "numpy")
import random  # noqa: E402
import re  # noqa: E402
import tempfile  # noqa: E402

import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from mckpt_tests.ranks import Shards, cuts, load_whole, save_as_ranks  # noqa: E402


PREFIX = "model.module."
PARTS = ["_w", "_v", ".query", ".key", ".value", ".z", ".beta", ".alpha"]  # in the order of the fused tensor
PART = re.compile(r"(.*weight\d*)(_[wv]|\.(?:query|key|value|z|beta|alpha))")
models = Models()
scratch = tempfile.TemporaryDirectory(prefix="mckpt_others_")
r = random.Random(7)


def mckpt(*args, status=0):
    run = run_mckpt(*args, "-q", timeout=60)
    expect_equal(f"{' '.join(args)}: {run.stderr}", [run.returncode], [status])
    return run.stderr


def place(name):
    return os.path.join(tempfile.mkdtemp(dir=scratch.name), name)


def parameters(model, *flags):
    """The tensors that Megatron-Bridge would have saved: name -> tensor, and the arguments."""
    out = place("checkpoint")
    mckpt("convert", "hf-to-fsdp", models.path(model), out, "--no-sync", *flags)
    state = load_whole(os.path.join(out, "release"))
    return {key.removeprefix(PREFIX): t for key, t in state.items() if key.startswith(PREFIX)}, state["args"]


def fused(state):
    out, parts = {}, {}
    for name, tensor in state.items():
        if match := PART.fullmatch(name):
            parts.setdefault(match[1], {})[match[2]] = tensor
        else:
            out[name] = tensor
    return out | {name: torch.cat([some[part] for part in PARTS if part in some]) for name, some in parts.items()}


def renamed(state):
    return {name.replace(".mtp_model_layer.", ".transformer_layer."): tensor for name, tensor in state.items()}


def tied_twice(state):
    return state | {"output_layer.weight": state["embedding.word_embeddings.weight"]}


def with_extra_state(state):
    return state | {"decoder.layers.0.mlp.linear_fc1._extra_state": torch.zeros(8, dtype=torch.uint8)}


def save(state, prefix, **objects):
    """Three ranks, each with any rows of every tensor."""
    owned = {name: cuts(r, t.shape[0], 3) for name, t in state.items()}

    def held(name, tensor, rank):
        return Shards.rows(tensor, *owned[name][rank])
    folder = place("saved")
    save_as_ranks(({**objects, "model": {prefix + name: held(name, t, rank) for name, t in state.items()}} for rank in range(3)),
                  lambda: dcp.FileSystemWriter(folder, sync_files=False))
    return folder


def check_export(model, checkpoint, *flags):
    back = place("back")
    mckpt("export", checkpoint, back, "--assets", models.path(model), "--no-sync", *flags)
    want = safetensors(models.path(model))
    got = safetensors(back) if os.path.exists(back) else {}
    expect_equal(model, [(name, got.get(name)) for name in sorted(want | got)], [(name, want.get(name)) for name in sorted(want | got)])
    mckpt("verify", back, "--against", checkpoint, "--assets", models.path(model), *flags)
    mckpt("verify", checkpoint, "--against", models.path(model), *flags)


CASES = [("qwen3_5", "module.", [fused]), ("qwen3_next_mtp", "module.module.", [renamed]), ("qwen3_next_mtp", "", [fused, renamed]),
         ("deepseek_v3_mtp", "", [fused]), ("qwen3_5_moe_mtp", "module.", [fused, renamed, with_extra_state]), ("qwen3_moe", "", [fused]),
         ("gpt_oss", "", [fused]), ("nemotron_h_moe", "", [fused]), ("qwen3_vl_moe", "module.", [fused, with_extra_state]),
         ("tiny_llama1", "", [fused, tied_twice]), ("tiny_llama1", "module.", [tied_twice])]
for model, prefix, changes in CASES:
    state, arguments = parameters(model)
    for change in changes:
        state = change(state)
    check_export(model, save(state, prefix, args=arguments))
    # Without arguments, options have to say over how many ranks the rows are divided.
    check_export(model, save(state, prefix), "--source-tp", "1", "--source-etp", "1")

# Mamba's fused tensors are stored rank after rank: who wrote them must be known.
state, arguments = parameters("nemotron_h", "--tp", "2", "--vocab-size", "auto")
check_export("nemotron_h", save(state, "module.", args=arguments))
unknown = save(state, "module.")
check_export("nemotron_h", unknown, "--source-tp", "2")
told = mckpt("export", unknown, place("back"), "--assets", models.path("nemotron_h"), "--no-sync", status=4)
for ranks in ("1000000", "5", "-1"):
    told = mckpt("export", unknown, place("back"), "--assets", models.path("nemotron_h"), "--no-sync", "--source-tp", ranks, status=4)
    expect_equal("told", ["MC2013" in told, "divides its 384 rows" in told], [True, True])
with open(os.path.join(unknown, "run_config.yaml"), "w") as f:  # Megatron-Bridge's
    f.write("model:\n  tensor_model_parallel_size: 2\n  expert_tensor_parallel_size: null\n")
check_export("nemotron_h", unknown)
expect_equal("told", ["MC2013" in told, "--source-tp" in told], [True, True])
# An output layer that is not the embedding is not a copy of it.
state, arguments = parameters("tiny_llama1")
untied = save(state | {"output_layer.weight": state["embedding.word_embeddings.weight"] + 1}, "")
told = mckpt("export", untied, place("back"), "--assets", models.path("tiny_llama1"), "--no-sync", status=3)
expect_equal("told", ["MC2005" in told, "output_layer.weight" in told], [True, True])
finish(2331)
