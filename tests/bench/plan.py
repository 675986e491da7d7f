"""How long planning and its proof take for large models, by the program itself: `convert hf-to-fsdp --dry-run`. The files are
holes behind headers, so nothing is read but headers.

usage: plan.py MCKPT [OTHER_MCKPT...] [--rounds N] [--keep DIR] [--only WORD]      several programs take turns

  235B   Qwen3-235B-A22B: 94 layers, 128 experts, 36,945 tensors, 438 GiB
  100k   a dense Qwen3 with 9,090 layers: 99,993 tensors
"""

import argparse
import json
import os
import pathlib
import statistics
import struct
import subprocess
import tempfile
import time

QWEN3_235B = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "attention_bias": False,
    "decoder_sparse_step": 1,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "mlp_only_layers": [],
    "moe_intermediate_size": 1536,
    "num_attention_heads": 64,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 94,
    "num_key_value_heads": 4,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 151936,
}
DENSE_100K = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "attention_bias": False,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 512,
    "intermediate_size": 1536,
    "num_attention_heads": 8,
    "num_hidden_layers": 9090,
    "num_key_value_heads": 2,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 32768,
}
CASES = [
    ("235B", QWEN3_235B, "--tp 4 --ep 8 --dp 256"),
    ("235B", QWEN3_235B, "--tp 8 --ep 64 --dp 128"),
    ("235B", QWEN3_235B, "--ep 128 --dp 1024"),
    ("100k", DENSE_100K, "--tp 2 --dp 32"),
]


def layer_tensors(config, layer):
    at, h, dim = f"model.layers.{layer}", config["hidden_size"], config["head_dim"]
    q, kv = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    shapes = {
        "input_layernorm": [h],
        "post_attention_layernorm": [h],
        "self_attn.q_norm": [dim],
        "self_attn.k_norm": [dim],
        "self_attn.q_proj": [q, h],
        "self_attn.k_proj": [kv, h],
        "self_attn.v_proj": [kv, h],
        "self_attn.o_proj": [h, q],
    }
    experts = config.get("num_experts", 0)
    if experts:
        shapes["mlp.gate"] = [experts, h]
    for part in [f"mlp.experts.{e}" for e in range(experts)] or ["mlp"]:
        width = config["moe_intermediate_size" if experts else "intermediate_size"]
        shapes |= {f"{part}.gate_proj": [width, h], f"{part}.up_proj": [width, h], f"{part}.down_proj": [h, width]}
    return {f"{at}.{name}.weight": shape for name, shape in shapes.items()}


def make_model(folder, config):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    files, layers = [{}], config["num_hidden_layers"]
    for layer in range(layers):
        if len(files[-1]) > 1000:
            files.append({})
        files[-1] |= layer_tensors(config, layer)
    vocab, h = config["vocab_size"], config["hidden_size"]
    files.append({"model.embed_tokens.weight": [vocab, h], "lm_head.weight": [vocab, h], "model.norm.weight": [h]})
    where = {}
    for number, tensors in enumerate(files):
        name, at, header = f"model-{number + 1:05}-of-{len(files):05}.safetensors", 0, {}
        for tensor, shape in tensors.items():
            size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
            header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
            at += size
            where[tensor] = name
        text = json.dumps(header).encode()
        with open(folder / name, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + at)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))


def run_once(program, model, grid):
    """Wall and processor seconds, peak memory in MiB, how many chunks."""
    command = [program, "convert", "hf-to-fsdp", str(model), str(model) + ".out", "--dry-run", *grid.split()]
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+") as words:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=words)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - begin
        words.seek(0)
        text = words.read()
    # A disk that is too small for the result is found when all is planned and proved.
    if status != 0 and "MC3006" not in text:
        raise SystemExit(text)
    chunks = next(part.split("\n")[0] for part in text.split(", ") if " chunk" in part)
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, chunks


def main():
    options = argparse.ArgumentParser()
    options.add_argument("programs", nargs="+")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--keep", help="make the models in this folder and leave them there")
    options.add_argument("--only", default="")
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        print(
            f"load {os.getloadavg()[0]:.1f}\n| model, grid | program | best | median | processor time, best | peak | |\n|---|---|---|---|---|---|---|"
        )
        for name, config, grid in CASES:
            if options.only not in f"Plan {name} {grid}":
                continue
            model = pathlib.Path(options.keep or temporary) / name
            if not model.exists():
                make_model(model, config)
            runs = {program: [] for program in options.programs}
            for _ in range(options.rounds):
                for program in options.programs:
                    runs[program].append(run_once(program, model, grid))
            for program, many in runs.items():
                wall, computing, peak, chunks = zip(*many)
                print(
                    f"| {name} `{grid}` | {program} | {min(wall):.2f} s | {statistics.median(wall):.2f} s | {min(computing):.2f} s "
                    f"| {max(peak):.0f} MiB | {chunks[0]} |",
                    flush=True,
                )


main()
