#!/usr/bin/env python3
"""Packs what the model providers of Megatron-Bridge were set to. usage: pack_providers.py ORACLE_DIR...

An ORACLE_DIR has, for every model and grid, MODEL/tp*.json with the fields of the provider that the run was built of
("provider"). They become providers.json here: one run a line, with the config of the model if models/ does not have it.
From a directory with families without a table in mckpt, only the models in OTHERS are taken.
"""
import glob
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
OTHERS = ("qwen3_5_moe_text", "nemotron3_latent")


def main():
    lines = []
    for root in sys.argv[1:]:
        for path in sorted(glob.glob(f"{root}/*/tp*.json") + glob.glob(f"{root}/broken/*/tp*.json")):
            folder = os.path.dirname(path)
            model, grid = os.path.basename(folder), os.path.basename(path).removesuffix(".json")
            known = os.path.exists(os.path.join(HERE, "models", model, "config.json"))
            if not known and model not in OTHERS:
                continue
            with open(path) as f:
                run = {"model": model, "grid": grid, "provider": json.load(f)["provider"]}
            if not known:
                with open(os.path.join(folder, "hf", "config.json")) as f:
                    run["config"] = f.read()
            lines.append(json.dumps(run, sort_keys=True))
    with open(os.path.join(HERE, "providers.json"), "w") as f:
        f.write("[\n" + ",\n".join(sorted(lines)) + "\n]\n")


if __name__ == "__main__":
    main()
