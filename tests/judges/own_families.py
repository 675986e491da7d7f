"""Families that no table has, brought in by a map file that began as `mckpt mappings draft`: the model goes to two tensor-parallel
ranks and back without the map file, which the checkpoint keeps; transformers computes the same logits, and what a rank holds is what
Megatron's layers would have, computed here from the model's own code.

The models come from test_data/own_families, which transformers saved.
"""

import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("transformers")
import hashlib  # noqa: E402

import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

from mckpt_tests.judge import raw_bytes  # noqa: E402

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()

# By model, its draft: the base, how many rows it leaves to decide, and how many of the model's tensors the base explains. The maps that became
# of them are in test_data/own_families/maps. Nothing of GPT-NeoX has a name that a family has: its map has no base.
DRAFTS = {"phi3": ("glm4", 5, 13), "starcoder2": ("qwen2", 10, 20), "gpt_neox": None, "granitemoe": ("mixtral", 6, 15)}
H, HEADS, D, FFN = 16, 4, 4, 24


def half(tensor, rank, dim=0):
    return tensor.chunk(2, dim)[rank]


def by_group(q, k, v, groups):
    """Megatron's order of rows: the queries of a group, its key, its value."""
    q, k, v = (t.reshape(groups, -1, *t.shape[1:]) for t in (q, k, v))
    return torch.cat([q, k, v], 1).flatten(0, 1)


def held(name, t, rank):
    """Some of what a rank of two holds of layer 1, from how the model's code takes its tensors apart."""
    if name == "phi3":  # forward: query, key, value = qkv split at heads * D; gate, up = gate_up.chunk(2)
        q, k, v = t["model.layers.1.self_attn.qkv_proj.weight"].split([16, 8, 8])
        gate, up = t["model.layers.1.mlp.gate_up_proj.weight"].chunk(2)
        return {"self_attention.linear_qkv.weight": half(by_group(q, k, v, 2), rank),
                "mlp.linear_fc1.weight": torch.cat([half(gate, rank), half(up, rank)])}
    if name == "starcoder2":
        q, k, v = (t[f"model.layers.1.self_attn.{x}_proj.bias"] for x in "qkv")
        return {"self_attention.linear_qkv.bias": half(by_group(q, k, v, 2), rank),
                "mlp.linear_fc1.bias": half(t["model.layers.1.mlp.c_fc.bias"], rank),
                "mlp.linear_fc2.weight": half(t["model.layers.1.mlp.c_proj.weight"], rank, 1),
                "mlp.linear_fc1.layer_norm_bias": t["model.layers.1.post_attention_layernorm.bias"]}
    if name == "gpt_neox":  # forward: qkv.view(..., heads, 3 * D).chunk(3)
        whole = t["gpt_neox.layers.1.attention.query_key_value.weight"]
        q, k, v = (x.flatten(0, 1) for x in whole.view(HEADS, 3 * D, H).chunk(3, 1))
        return {"self_attention.linear_qkv.weight": half(by_group(q, k, v, HEADS), rank),
                "mlp.linear_fc2.bias": t["gpt_neox.layers.1.mlp.dense_4h_to_h.bias"]}
    gate, up = t["model.layers.1.block_sparse_moe.input_linear.weight"][2].chunk(2)
    return {"mlp.experts.linear_fc1.weight2": torch.cat([gate, up]),
            "mlp.experts.linear_fc2.weight2": t["model.layers.1.block_sparse_moe.output_linear.weight"][2]}


def logits(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
    torch.manual_seed(3)
    with torch.no_grad():
        return model(input_ids=torch.randint(3, 40, (2, 9)), use_cache=False).logits


def mckpt(status, *args, word=""):
    done = run_mckpt(*args, timeout=100)
    expect(done.returncode == status and word in done.stdout + done.stderr,
           f"mckpt {' '.join(map(str, args))}: exit status {done.returncode}, not {status} with '{word}': {done.stdout[-800:]}{done.stderr[-800:]}")
    return done


def check(name, draft):
    source = os.path.join(DATA, "own_families", name)
    with tempfile.TemporaryDirectory(prefix="mckpt_own_family_") as folder:
        place = lambda what: os.path.join(folder, what)  # noqa: E731
        mckpt(3, "convert", "hf-to-fsdp", source, place("ckpt"), word="mckpt mappings draft")
        if draft:
            answer = json.loads(mckpt(0, "mappings", "draft", source, place("map.json"), "--json").stdout)
            expect_equal(f"draft of {name}", [answer["base"], answer["to_decide"], answer["explained"]], list(draft))
            mckpt(3, "mappings", "check", source, place("map.json"), word="the map is a draft")
            mckpt(3, "convert", "hf-to-fsdp", source, place("ckpt"), "--map-file", place("map.json"), word="the map is a draft")
        else:
            mckpt(3, "mappings", "draft", source, place("map.json"), word="no family explains any of the tensors")
        shutil.copy(os.path.join(DATA, "own_families", "maps", name + ".json"), place("map.json"))
        mckpt(0, "mappings", "check", source, place("map.json"))
        grid = ["--tp", 2, "--ep", 2] if name == "granitemoe" else ["--tp", 2]
        mckpt(0, "convert", "hf-to-fsdp", source, place("ckpt"), "--map-file", place("map.json"), "--no-sync", *grid)
        mckpt(0, "verify", place("ckpt"), "--against", source)
        mckpt(0, "export", place("ckpt"), place("back"), "--no-sync")
        mckpt(0, "verify", place("back"), "--against", place("ckpt"))
        want, got = logits(source), logits(place("back"))
        expect(bool(want.isfinite().all()) and raw_bytes(want) == raw_bytes(got), f"{name}: other logits")
        tensors = load_file(os.path.join(source, "model.safetensors"))
        for rank in (0, 1):
            listed = json.loads(mckpt(0, "ls", source, "--as", "megatron", "--map-file", place("map.json"), "--tp", 2, "--rank", rank,
                                      "--digest", "--json").stdout)["tensors"]
            sums = {t["name"]: t["sha256"] for t in listed}
            for leaf, tensor in held(name, tensors, rank).items():
                sha = hashlib.sha256(raw_bytes(tensor)).hexdigest()
                expect_equal(f"{name}, rank {rank}, {leaf}", [sums.get("decoder.layers.1." + leaf)], [sha])


for name, draft in DRAFTS.items():
    check(name, draft)
finish(72)
