"""Writes a safetensors file, or a folder of shards with its index, of many small tensors, for timing what looks at headers.

usage: make_many_tensors.py OUT [COUNT] [--shards N]

The names imitate a mixture-of-experts model; each tensor has 16 bfloat16 values. Standard library only.
"""
import argparse
import json
import os
import struct

parser = argparse.ArgumentParser()
parser.add_argument("out")
parser.add_argument("count", type=int, nargs="?", default=10_000)
parser.add_argument("--shards", type=int, default=0, help="a folder of so many files instead of one file")
options = parser.parse_args()


def name(i):
    return f"model.layers.{i // 192}.mlp.experts.{i // 3 % 64}.{('down', 'gate', 'up')[i % 3]}_proj.weight"


def write(path, names):
    header = {"__metadata__": {"format": "pt"}}
    for i, n in enumerate(names):
        header[n] = {"dtype": "BF16", "shape": [4, 4], "data_offsets": [32 * i, 32 * i + 32]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.write(bytes(range(32)) * len(names))


names = [name(i) for i in range(options.count)]
if not options.shards:
    write(options.out, names)
else:
    os.makedirs(options.out, exist_ok=True)
    weight_map = {}
    for s in range(options.shards):
        file = f"model-{s + 1:05d}-of-{options.shards:05d}.safetensors"
        mine = names[s::options.shards]
        write(os.path.join(options.out, file), mine)
        weight_map.update((n, file) for n in mine)
    with open(os.path.join(options.out, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": 32 * options.count}, "weight_map": weight_map}, f, indent=2)
