"""Hybrid models of any layer pattern, of the sizes that the ranks of the real HybridStack had in test_data/hybrid/layer_keys.json. A
pattern gives the layers, whatever its groups and pipes, and the depths of MTP behind a slash.
"""

import json
import os
import re
import subprocess

from mckpt_tests.models import GOLDEN
from mckpt_tests.setting import GOLDEN_MODEL

SIZES = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96, "ssm_state_size": 16,
         "mamba_head_dim": 8, "n_groups": 2, "mamba_num_heads": 16, "n_routed_experts": 4, "moe_intermediate_size": 32, "vocab_size": 32,
         "moe_shared_expert_intermediate_size": 32}
KINDS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
TENSORS = {
    "M": {"A_log": "16", "D": "16", "conv1d.bias": "192", "conv1d.weight": "192x1x4", "dt_bias": "16", "in_proj.weight": "336x64",
          "norm.weight": "128", "out_proj.weight": "64x128"},
    "*": {"q_proj.weight": "64x64", "k_proj.weight": "32x64", "v_proj.weight": "32x64", "o_proj.weight": "64x64"},
    "-": {"up_proj.weight": "96x64", "down_proj.weight": "64x96"},
    "E": {"gate.weight": "4x64", "gate.e_score_correction_bias": "4", "shared_experts.up_proj.weight": "32x64",
          "shared_experts.down_proj.weight": "64x32"}
    | {f"experts.{e}.up_proj.weight": "32x64" for e in range(4)} | {f"experts.{e}.down_proj.weight": "64x32" for e in range(4)},
}


def hybrid_model(pattern, folder):
    main, *mtp = pattern.split("/")
    symbols, depths = re.sub(r"[\[\]|]", "", main), len(mtp) if mtp and mtp[0] else 0
    os.mkdir(folder)
    with open(os.path.join(GOLDEN, "models", "nemotron_h_moe", "config.json")) as f:
        config = json.load(f) | SIZES | {"layers_block_type": [KINDS[s] for s in symbols]}
    tensors = {"backbone.embeddings.weight": "32x64", "backbone.norm_f.weight": "64", "lm_head.weight": "32x64"}

    def add(front, symbol):
        tensors.update({f"{front}mixer.{name}": shape for name, shape in TENSORS[symbol].items()} | {f"{front}norm.weight": "64"})

    for i, s in enumerate(symbols):
        add(f"backbone.layers.{i}.", s)
    if depths:
        config |= {"num_nextn_predict_layers": depths, "mtp_layers_block_type": [KINDS[s] for s in mtp[0]]}
    for depth in range(depths):
        first, last = depth * len(mtp[0]), depth * len(mtp[0]) + len(mtp[0]) - 1
        for i, s in enumerate(mtp[0]):
            add(f"mtp.layers.{first + i}.", s)
        tensors |= {f"mtp.layers.{first}.enorm.weight": "64", f"mtp.layers.{first}.hnorm.weight": "64"}
        tensors |= {f"mtp.layers.{first}.eh_proj.weight": "64x128", f"mtp.layers.{last}.final_layernorm.weight": "64"}
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    with open(os.path.join(folder, "tensors.txt"), "w") as f:
        f.writelines(f"{name} BF16 {shape} rand {name} 0\n" for name, shape in sorted(tensors.items()))
    subprocess.run([GOLDEN_MODEL, os.path.join(folder, "tensors.txt"), os.path.join(folder, "model.safetensors")], check=True)
    os.remove(os.path.join(folder, "tensors.txt"))
    return folder
