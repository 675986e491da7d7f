"""The tensors of a rank of models that are too large to be here: listed from config.json alone, from an index
alone, and from headers alone (files with holes instead of data). The number of values is given by the
formulas below.
"""
import json
import math
import os
import struct
import sys
import tempfile

from mckpt_tests.program import run_mckpt

failures = []

QWEN3_235B = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "attention_bias": False, "decoder_sparse_step": 1,
              "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 12288, "mlp_only_layers": [],
              "moe_intermediate_size": 1536, "num_attention_heads": 64, "num_experts": 128, "num_experts_per_tok": 8,
              "num_hidden_layers": 94, "num_key_value_heads": 4, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
              "vocab_size": 151936}
DEEPSEEK_V3 = {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "attention_bias": False,
               "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432,
               "kv_lora_rank": 512, "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_routed_experts": 256,
               "n_shared_experts": 1, "num_attention_heads": 128, "num_hidden_layers": 61, "num_key_value_heads": 128,
               "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
               "tie_word_embeddings": False, "torch_dtype": "bfloat16", "v_head_dim": 128, "vocab_size": 129280}


def values_of_qwen3():
    h, width, experts, layers = 4096, 1536, 128, 94
    attention = 2 * 8192 * h + 2 * 512 * h + 2 * 128
    return 2 * 151936 * h + h + layers * (attention + experts * h + experts * 3 * h * width + 2 * h)


def values_of_deepseek():
    h, heads = 7168, 128
    attention = h * 1536 + 1536 + 1536 * heads * 192 + h * 576 + 512 + 512 * heads * 256 + heads * 128 * h
    moe = 256 * h + 256 + 257 * 3 * h * 2048
    main = 2 * 129280 * h + h + 61 * (attention + 2 * h) + 3 * 3 * h * 18432 + 58 * moe
    return main + attention + 2 * h + moe + 3 * h + 2 * h * h


def listed(folder, *args):
    run = run_mckpt("ls", folder, "--json", "-q", *args, timeout=60)
    return json.loads(run.stdout)["tensors"] if run.returncode == 0 else run.stderr


def expect(what, got, want):
    if got != want:
        failures.append(f"{what}: {str(got)[:300]}, not {str(want)[:300]}")


def items(tensors):
    return sum(math.prod(t["shape"]) for t in tensors)


def folder_of(root, name, config):
    folder = os.path.join(root, name)
    os.mkdir(folder)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    return folder


def write_header(path, shapes):
    """Returns the bytes of data, of which the file has only the length."""
    header, at = {}, 0
    for name, shape in shapes:
        n = 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + at)
    return at


def qwen3_tensors():
    yield "model.embed_tokens.weight", [151936, 4096]
    yield "lm_head.weight", [151936, 4096]
    yield "model.norm.weight", [4096]
    for n in range(94):
        p = f"model.layers.{n}."
        for leaf, shape in (("q_proj", [8192, 4096]), ("k_proj", [512, 4096]), ("v_proj", [512, 4096]), ("o_proj", [4096, 8192]),
                            ("q_norm", [128]), ("k_norm", [128])):
            yield f"{p}self_attn.{leaf}.weight", shape
        yield p + "input_layernorm.weight", [4096]
        yield p + "post_attention_layernorm.weight", [4096]
        yield p + "mlp.gate.weight", [128, 4096]
        for e in range(128):
            for leaf, shape in (("gate_proj", [1536, 4096]), ("up_proj", [1536, 4096]), ("down_proj", [4096, 1536])):
                yield f"{p}mlp.experts.{e}.{leaf}.weight", shape


with tempfile.TemporaryDirectory(prefix="mckpt_large_") as root:
    for name, config, values in (("qwen3_235b", QWEN3_235B, values_of_qwen3()), ("deepseek_v3", DEEPSEEK_V3, values_of_deepseek())):
        folder = folder_of(root, name, config)
        expect(f"{name}, values", items(listed(folder, "--as", "megatron")), values)
        expect(f"{name}, values in FSDP keys", items(listed(folder, "--as", "fsdp")), values)
        expect(f"{name}, digest", "there are no weights to digest" in listed(folder, "--as", "megatron", "--digest"), True)

    grid = ["--as", "megatron", "--tp", "4", "--ep", "8", "--dp", "8", "--rank", "13"]
    promised = listed(os.path.join(root, "qwen3_235b"), *grid)
    # From the headers alone: 10 files of holes.
    headers = folder_of(root, "headers", QWEN3_235B)
    tensors = list(qwen3_tensors())
    total, weight_map, count = 0, {}, 10
    for number in range(count):
        file = f"model-{number + 1:05d}-of-{count:05d}.safetensors"
        total += write_header(os.path.join(headers, file), tensors[number::count])
        weight_map.update((name, file) for name, _ in tensors[number::count])
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    with open(os.path.join(headers, "model.safetensors.index.json"), "w") as f:
        json.dump(index, f)
    expect("from headers", listed(headers, *grid), promised)
    # From the index alone.
    indexed = folder_of(root, "indexed", QWEN3_235B)
    with open(os.path.join(indexed, "model.safetensors.index.json"), "w") as f:
        json.dump(index, f)
    expect("from the index", listed(indexed, *grid), promised)
    del index["weight_map"]["model.layers.93.mlp.experts.127.up_proj.weight"]
    with open(os.path.join(indexed, "model.safetensors.index.json"), "w") as f:
        json.dump(index, f)
    expect("from an index that lacks one", "MC2005" in listed(indexed, *grid), True)

for failure in failures:
    print("FAIL", failure)
sys.exit(1 if failures else 0)
