"""Rows that are wrong on purpose, given as map files: the comparison with the golden data must see each of them, on every
rank, in exactly the parameters that it is about.
"""
import json
import os
import re

from mckpt_tests.checks import expect_equal, fail
from mckpt_tests.golden import finish, listing, sections
from mckpt_tests.models import Models

models = Models()


def row(leaf, rule, *sources, layers="model.layers.{L}."):
    return {"megatron": "decoder.layers.{L}." + leaf, "rule": rule, "hugging_face": [[layers + n, s] for n, s in sources]}


FAULTS = [
    ("gate for up", "qwen3_dense.tp2_cp1_ep1",
     row("mlp.linear_fc1.weight", "gated_mlp", ("mlp.up_proj.weight", "ffn hidden"), ("mlp.gate_proj.weight", "ffn hidden"))),
    ("keys for values", "qwen3_dense.tp2_cp1_ep1",
     row("self_attention.linear_qkv.weight", "qkv", ("self_attn.q_proj.weight", "q hidden"),
         ("self_attn.v_proj.weight", "kv hidden"), ("self_attn.k_proj.weight", "kv hidden"))),
    ("one norm for another", "qwen3_dense.tp2_cp1_ep1",
     row("self_attention.q_layernorm.weight", "replicate", ("self_attn.k_norm.weight", "head_dim")),
     row("self_attention.k_layernorm.weight", "replicate", ("self_attn.q_norm.weight", "head_dim"))),
    ("gate for up in experts", "qwen3_moe.tp2_cp1_ep4",
     row("mlp.experts.linear_fc1.weight{E}", "gated_mlp", ("mlp.experts.{E}.up_proj.weight", "expert_ffn hidden"),
         ("mlp.experts.{E}.gate_proj.weight", "expert_ffn hidden"))),
    ("alternate rows for halves", "qwen3_vl_moe.tp1_cp1_ep1",
     {"megatron": "language_model.decoder.layers.{L}.mlp.experts.linear_fc1.weight{E}", "rule": "gated_expert_interleaved_rows",
      "hugging_face": [["model.language_model.layers.{L}.mlp.experts.gate_up_proj", "experts 2*expert_ffn hidden"]]}),
    ("rows for columns", "nemotron_h.tp2_cp1_ep1",
     row("mixer.out_proj.weight", "column", ("mixer.out_proj.weight", "hidden mamba_inner"), layers="backbone.layers.{L}.")),
    ("a split norm taken for a norm", "nemotron_h.tp2_cp1_ep1",
     row("mixer.norm.weight", "replicate", ("mixer.norm.weight", "mamba_inner"), layers="backbone.layers.{L}.")),
]


def check_fault(what, tag, *rows):
    model = tag.split(".")[0]
    path = os.path.join(models.path(model), "rows.json")
    with open(path, "w") as f:
        json.dump({"rows": rows}, f)
    pattern = "|".join(re.escape(r["megatron"]).replace(r"\{L\}", r"\d+").replace(r"\{E\}", r"\d+") for r in rows)
    head, ranks = sections(f"ranks/{tag}.txt")
    flags = [f"--{part}" for part in head[0].split()[1:]]
    for rank, lines in enumerate(ranks):
        found = listing(models.path(model), "--as", "megatron", "--vocab-size", "auto", "--rank", rank, "--map-file", path, *flags)
        if isinstance(found, str):
            return fail(f"{what}: {found}")
        got = {r["name"]: r["sha256"] for r in found}
        unlike = [line.split()[0] for line in lines if got.get(line.split()[0]) != line.split()[3]]
        about = [name for name in got if re.fullmatch(pattern, name)]
        expect_equal(f"{what}, rank {rank}", sorted(unlike), sorted(about))


for what, tag, *rows in FAULTS:
    check_fault(what, tag, *rows)
finish(128)
