#!/usr/bin/env python3
"""Packs v2_runs.json: the flat buffers of runs of Megatron-FSDP v2, as its own code laid them out and every rank held them.

usage: pack_v2_runs.py RUN.json...     (records of the runs: for each rank its groups with size, items, offsets and ranges)
"""
import json
import os
import sys


def main():
    out = []
    for path in sorted(sys.argv[1:]):
        with open(path) as f:
            ranks = json.load(f)["ranks"]
        for number, group in enumerate(ranks[0]["groups"]):
            mine = [rank["groups"][number] for rank in ranks]
            ranges = [[held["items"][i]["item_range"] for held in mine] for i in range(len(group["items"]))]
            out.append({"run": os.path.basename(path)[:-len(".json")], "module": group["module"], "requires_grad": group["requires_grad"],
                        "world": len(ranks), "size": group["size"], "shapes": [item["shape"] for item in group["items"]],
                        "offsets": [item["offset"] for item in group["items"]], "item_ranges": ranges,
                        "local_ranges": [held["local_range"] for held in mine]})
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "v2_runs.json"), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(group) for group in out) + "\n]\n")


main()
