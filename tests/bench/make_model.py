"""Makes a model of any size for benchmarks: config.json, shards, index. A Qwen3 one, with experts or without, or one of
another family: a golden model of the tests made large.

usage: make_model.py FOLDER [--layers N] [--hidden N] [--heads N] [--kv N] [--head-dim N] [--ffn N] [--vocab N]
                            [--experts N --moe-ffn N] [--hub] [--shard-bytes N] [--sparse]
       make_model.py FOLDER --like GOLDEN_MODEL [--width N] [--depth N] [--shard-bytes N] [--sparse]

--hub      experts in one tensor a layer with the input dimension first, as Qwen3-VL-MoE has them on the hub
--like     a folder of test_data/golden/models; every width times --width, its layers --depth times
--sparse   files that have their size and no data: as large a model as the file system can name
Values are random bytes that are finite as bfloat16; of the norms that Megatron stores less one, between 1 and 2, which bfloat16
brings back. Standard library only.
"""

import argparse
import json
import os
import random
import struct

from grown_model import grown

parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("folder")
for name, value in dict(
    layers=4, hidden=1024, heads=16, kv=4, head_dim=64, ffn=4096, vocab=32000, experts=0, moe_ffn=256, shard_bytes=2 << 30, width=1, depth=1
).items():
    parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
parser.add_argument("--like")
parser.add_argument("--hub", action="store_true")
parser.add_argument("--sparse", action="store_true")
a = parser.parse_args()
BLOCK = 8 << 20


def qwen3_config():
    common = {
        "head_dim": a.head_dim,
        "hidden_act": "silu",
        "hidden_size": a.hidden,
        "intermediate_size": a.ffn,
        "max_position_embeddings": 4096,
        "num_attention_heads": a.heads,
        "num_hidden_layers": a.layers,
        "num_key_value_heads": a.kv,
        "attention_bias": False,
        "rms_norm_eps": 1e-06,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "vocab_size": a.vocab,
    }
    if not a.experts:
        return common | {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}
    return common | {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "num_experts": a.experts,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": a.moe_ffn,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
    }


def qwen3_shapes():
    yield "model.embed_tokens.weight", [a.vocab, a.hidden]
    for layer in range(a.layers):
        p = f"model.layers.{layer}."
        yield p + "input_layernorm.weight", [a.hidden]
        yield p + "self_attn.q_proj.weight", [a.heads * a.head_dim, a.hidden]
        for which in "kv":
            yield f"{p}self_attn.{which}_proj.weight", [a.kv * a.head_dim, a.hidden]
        yield p + "self_attn.o_proj.weight", [a.hidden, a.heads * a.head_dim]
        yield p + "self_attn.q_norm.weight", [a.head_dim]
        yield p + "self_attn.k_norm.weight", [a.head_dim]
        yield p + "post_attention_layernorm.weight", [a.hidden]
        if not a.experts:
            yield p + "mlp.gate_proj.weight", [a.ffn, a.hidden]
            yield p + "mlp.up_proj.weight", [a.ffn, a.hidden]
            yield p + "mlp.down_proj.weight", [a.hidden, a.ffn]
            continue
        yield p + "mlp.gate.weight", [a.experts, a.hidden]
        if a.hub:
            yield p + "mlp.experts.gate_up_proj", [a.experts, a.hidden, 2 * a.moe_ffn]
            yield p + "mlp.experts.down_proj", [a.experts, a.moe_ffn, a.hidden]
            continue
        for expert in range(a.experts):
            e = f"{p}mlp.experts.{expert}."
            yield e + "gate_proj.weight", [a.moe_ffn, a.hidden]
            yield e + "up_proj.weight", [a.moe_ffn, a.hidden]
            yield e + "down_proj.weight", [a.hidden, a.moe_ffn]
    yield "model.norm.weight", [a.hidden]
    yield "lm_head.weight", [a.vocab, a.hidden]


def size(shape):
    items = 1
    for n in shape:
        items *= n
    return 2 * items


def shards():
    files, room = [], 0
    for name, shape in shapes:
        if not files or room < size(shape):
            files.append([])
            room = a.shard_bytes
        files[-1].append((name, shape))
        room -= size(shape)
    return files


def write(path, tensors, block):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors:
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size(shape)]}
        at += size(shape)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        if a.sparse:
            f.truncate(8 + len(text) + at)
            return
        for done in range(0, at, BLOCK):
            # Each block begins elsewhere in the noise, so that no two tensors are alike.
            shift = 2 * random.randrange(BLOCK // 2)
            f.write((block[shift:] + block[:shift])[: min(BLOCK, at - done)])
        for name, shape in tensors:
            if name.endswith("linear_attn.norm.weight"):
                f.seek(8 + len(text) + header[name]["data_offsets"][0])
                f.write(bytes(b for _ in range(size(shape) // 2) for b in (random.randrange(0x80, 0x100), 0x3F)))


config, shapes = grown(a.like, a.width, a.depth) if a.like else (qwen3_config(), list(qwen3_shapes()))
random.seed(1)
# The exponent's top bit is cleared in every value: none is infinite or NaN.
block = b"" if a.sparse else bytes(b & 0xBF if i & 1 else b for i, b in enumerate(random.randbytes(1 << 20))) * (BLOCK >> 20)
os.makedirs(a.folder, exist_ok=True)
files = shards()
index = {}
for i, tensors in enumerate(files):
    name = "model.safetensors" if len(files) == 1 else f"model-{i + 1:05}-of-{len(files):05}.safetensors"
    write(os.path.join(a.folder, name), tensors, block)
    index |= {tensor: name for tensor, _ in tensors}
with open(os.path.join(a.folder, "config.json"), "w") as f:
    json.dump(config, f, indent=2)
if len(files) > 1:
    with open(os.path.join(a.folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": sum(size(s) for _, s in shapes)}, "weight_map": index}, f)
