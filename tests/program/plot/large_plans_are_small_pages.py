"""A plan of DeepSeek-V3, 671 B parameters, of nothing but its config.json: the page has at most 2 MB and some hundred lines, and
every byte of the model is in it once. The same on so many ranks that they share columns, and as a folder of Hugging Face
without weights' data."""
import json
import os
import tempfile

from mckpt_tests import pages
from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt

MOST_BYTES = 2_000_000
VALUES = 682_636_487_424  # with the multi-token prediction layer, as program/ls/large_models computes them
CONFIG = {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "attention_bias": False,
          "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432,
          "kv_lora_rank": 512, "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_routed_experts": 256,
          "n_shared_experts": 1, "num_attention_heads": 128, "num_hidden_layers": 61, "num_key_value_heads": 128,
          "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
          "tie_word_embeddings": False, "torch_dtype": "bfloat16", "v_head_dim": 128, "vocab_size": 129280}


def items_of(shape):
    out = 1
    for size in shape:
        out *= size
    return out


def plan(*grid):
    run = run_mckpt("plot", "DeepSeek-V3", "-o", "plan.html", *grid, "-q", timeout=300)
    expect(run.returncode == 0, f"{grid}: {run}")
    size = os.path.getsize("plan.html")
    expect(size <= MOST_BYTES, f"{grid}: {size} bytes")
    made = pages.data("plan.html")
    shard_map = made["map"]
    print(*grid, size, "bytes", len(shard_map["rows"]), "rows", sum(len(r.get("boxes", [])) for r in shard_map["rows"]), "boxes", len(shard_map["columns"]), "columns")
    expect(len(shard_map["columns"]) <= 256 and not shard_map["tensors_left_out"] and not shard_map["rows_not_drawn"] and not shard_map["faulty_tensors"], f"{grid}: something is not drawn")
    return made


with tempfile.TemporaryDirectory(prefix="mckpt_plot_") as folder:
    os.chdir(folder)
    os.mkdir("DeepSeek-V3")
    with open("DeepSeek-V3/config.json", "w") as f:
        json.dump(CONFIG, f)
    for grid in (["--as", "fsdp", "--ep", "64", "--dp", "128"], ["--as", "fsdp", "--tp", "8", "--ep", "64", "--dp", "64"], ["--as", "torch_dist", "--tp", "2", "--pp", "1", "--ep", "32"]):
        made = plan(*grid)
        sums = [made["sizes"]["nodes"][made["sizes"]["root"]][i] for i in (0, 1)]
        drawn = 0
        for block in made["map"]["blocks"]:
            for row, *layers in (variant for kind in block["kinds"] for variant in kind):
                row = made["map"]["rows"][row]
                drawn += items_of(row["dims"]) * len(pages.numbers(row.get("members", [[0, 0]]))) * (len(pages.numbers(layers[0])) if layers else block["count"])
        # Buffers of the router are fp32, and not parameters.
        expect(VALUES <= sums[1] <= VALUES * 1.00001 and drawn == sums[1] == made["summary"]["items"], f"{grid}: {drawn} items are drawn, {sums[1]} in modules, {VALUES} in the model")
finish(9)
