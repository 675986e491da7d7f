"""Writes tiny_qwen3_moe/: a Qwen3-MoE model of 2 layers and 4 experts with seeded noise for weights, in two bfloat16
shards, with the names and shapes that a real one has. Standard library only.

usage: make_tiny_qwen3_moe.py [FOLDER]     default: tiny_qwen3_moe beside this program
"""
import json
import os
import random
import struct
import sys

CONFIG = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "attention_bias": False,
    "decoder_sparse_step": 1,
    "head_dim": 8,
    "hidden_act": "silu",
    "hidden_size": 16,
    "intermediate_size": 32,
    "max_position_embeddings": 128,
    "mlp_only_layers": [],
    "model_type": "qwen3_moe",
    "moe_intermediate_size": 8,
    "norm_topk_prob": True,
    "num_attention_heads": 4,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 32,
}


def shapes():
    hidden, heads, kv, dim = 16, 4, 2, 8
    yield "model.embed_tokens.weight", [32, hidden]
    for layer in range(2):
        p = f"model.layers.{layer}."
        yield p + "input_layernorm.weight", [hidden]
        yield p + "self_attn.q_proj.weight", [heads * dim, hidden]
        yield p + "self_attn.k_proj.weight", [kv * dim, hidden]
        yield p + "self_attn.v_proj.weight", [kv * dim, hidden]
        yield p + "self_attn.o_proj.weight", [hidden, heads * dim]
        yield p + "self_attn.q_norm.weight", [dim]
        yield p + "self_attn.k_norm.weight", [dim]
        yield p + "post_attention_layernorm.weight", [hidden]
        yield p + "mlp.gate.weight", [4, hidden]
        for expert in range(4):
            e = f"{p}mlp.experts.{expert}."
            yield e + "gate_proj.weight", [8, hidden]
            yield e + "up_proj.weight", [8, hidden]
            yield e + "down_proj.weight", [hidden, 8]
    yield "model.norm.weight", [hidden]
    yield "lm_head.weight", [32, hidden]


def bf16(value):
    """The upper half of the float's bits, rounded to nearest, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def tensor(rng, name, shape):
    center, spread = (1.0, 0.1) if "norm" in name else (0.0, 0.02)
    count = 1
    for n in shape:
        count *= n
    return b"".join(bf16(rng.gauss(center, spread)) for _ in range(count))


def write_safetensors(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, data in tensors.values()))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "tiny_qwen3_moe")
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(20)
    shards = [{}, {}]
    for name, shape in shapes():
        in_second = name.startswith(("model.layers.1.", "model.norm", "lm_head"))
        shards[in_second][name] = (shape, tensor(rng, name, shape))
    weight_map, total = {}, 0
    for i, shard in enumerate(shards):
        file = f"model-{i + 1:05}-of-00002.safetensors"
        write_safetensors(os.path.join(folder, file), shard)
        weight_map.update({name: file for name in shard})
        total += sum(len(data) for _, data in shard.values())
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    for name, value in (("config.json", CONFIG), ("model.safetensors.index.json", index)):
        with open(os.path.join(folder, name), "w") as f:
            f.write(json.dumps(value, indent=2) + "\n")


main()
