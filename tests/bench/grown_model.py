"""A golden model of test_data/golden/models made large: every width times a number, every layer as often as wanted. Counts (of heads,
experts, groups) and what follows from them stay, so the model is as odd as the small one. All tensors are bfloat16.

    config, shapes = grown("test_data/golden/models/nemotron_h", width=40, depth=20)
"""

import json
import os
import re

WIDTHS = {
    "hidden_size",
    "head_dim",
    "intermediate_size",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "vocab_size",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "ssm_state_size",
    "mamba_head_dim",
    "out_hidden_size",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
}
LAYERS = {"num_hidden_layers", "layer_types", "layers_block_type"}  # a number, or a list with one entry a layer
LAYER = re.compile(r"^((?:model\.|model\.language_model\.|backbone\.)layers\.)(\d+)(\..*)$")
COUNTED = re.compile(r"\.(A_log|D|dt_bias|e_score_correction_bias|sinks|router\.bias)$")  # an item for each head or expert
COUNTED_ROWS = re.compile(r"\.((in_proj_a|in_proj_b|in_proj_ba|gate|router|shared_expert_gate|pos_embed)\.weight|mlp\.experts\.\w+)$")
WIDE_ROWS = re.compile(r"\.(conv1d|patch_embed\.proj)\.weight$")
MAMBA_ROWS = re.compile(r"\.mixer\.in_proj\.weight$")  # a row for each head besides what is wide


def grown_config(config, width, depth):
    if isinstance(config, list):
        return [grown_config(c, width, depth) for c in config]
    if not isinstance(config, dict):
        return config
    out = {}
    for key, value in config.items():
        if key in WIDTHS and isinstance(value, int):
            value *= width
        elif key in LAYERS:
            value = value * depth
        out[key] = grown_config(value, width, depth)
    return out


def grown_shape(name, shape, width, heads):
    if COUNTED.search(name):
        return shape
    if COUNTED_ROWS.search(name):
        return [shape[0], *(n * width for n in shape[1:])]
    if WIDE_ROWS.search(name):
        return [shape[0] * width, *shape[1:]]
    if MAMBA_ROWS.search(name):
        return [(shape[0] - heads) * width + heads, shape[1] * width]
    return [n * width for n in shape]


def grown(folder, width, depth):
    """The config, and the tensors as (name, shape)."""
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    with open(os.path.join(folder, "tensors.txt")) as f:
        small = [(name, [int(n) for n in shape.split("x")]) for name, _, shape, *_ in map(str.split, f)]
    if depth > 1 and (config.get("first_k_dense_replace") or config.get("mlp_only_layers")):
        raise SystemExit("a model whose first layers differ from the others does not get deeper")
    layers = 1 + max(int(m[2]) for name, _ in small if (m := LAYER.match(name)))
    shapes = []
    for name, shape in small:
        shape = grown_shape(name, shape, width, config.get("mamba_num_heads"))
        if m := LAYER.match(name):
            shapes += [(f"{m[1]}{int(m[2]) + layers * k}{m[3]}", shape) for k in range(depth)]
        else:
            shapes.append((name, shape))
    return grown_config(config, width, depth), shapes
