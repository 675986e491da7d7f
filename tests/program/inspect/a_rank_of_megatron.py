"""One file of Megatron's ranks, looked at: the places in its mesh, and of each parameter local shape, offset and whole shape. The whole
shapes are those that the torch_dist of the same real run states; the files of all tensor-parallel ranks tile them."""
import json
import os
import re
import tarfile
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

work = tempfile.TemporaryDirectory(prefix="mckpt_rank_")


def answer(*args):
    run = run_mckpt(*args, "--json")
    expect(run.returncode == 0, f"{args}: {run.stderr}")
    return json.loads(run.stdout)


def of_torch_dist(name):
    """The key of torch_dist for a rank's parameter, and how many dimensions of it are layers and experts."""
    name = re.sub(r"^model\d*\.", "", name)
    name, layers = re.subn(r"decoder\.layers\.\d+\.", "decoder.layers.", name)
    name, experts = re.subn(r"experts\.local_experts\.\d+\.", "experts.experts.", name)
    return name, layers + experts


for archive, mesh, ranks in (("dense", ["tp", "pp"], 4), ("experts", ["tp", "ep"], 2)):
    with tarfile.open(f"{DATA}/megatron_runs/{archive}.tar.xz") as tar:
        tar.extractall(work.name, filter="data")
    stated, files = {}, []
    for at, folders, names in os.walk(os.path.join(work.name, archive)):
        if ".metadata" in names:
            stated = {t["name"]: t["shape"] for t in answer("ls", at)["tensors"]}
        if "mp_rank_" in os.path.basename(at):
            files += [os.path.join(at, name) for name in names if name.endswith(".pt") and "optim_rng" in name]
    expect(len(files) == ranks and stated, f"{archive}: {files}")
    pieces, compared = {}, 0
    for file in sorted(files):
        shard = answer("inspect", file)["shard"]
        expect([axis["name"] for axis in shard["mesh"]] == mesh and [axis["size"] for axis in shard["mesh"]] == [2, 2], f"{file}: {shard['mesh']}")
        numbers = [int(n) for n in re.search(r"mp_rank_([\d_]+)", file)[1].split("_")]
        expect([axis["at"] for axis in shard["mesh"]] == numbers, f"{file}: {shard['mesh']}")
        for t in shard["tensors"]:
            name, fronts = of_torch_dist(t["name"])
            if not t["name"].startswith("model") or name not in stated:
                continue
            compared += 1
            expect(t["shape"] == stated[name][fronts:], f"{file}: {t}, stated {stated[name]}")
            stage = numbers[1] if archive == "dense" else 0
            pieces.setdefault((t["name"], stage), []).append((t["offsets"], t["local_shape"], t["shape"]))
    expect(compared > 20, f"{archive}: only {compared} parameters")
    for (name, _), boxes in pieces.items():
        cut = [box for box in boxes if box[1] != box[2]]
        if not cut:
            continue
        dim = next(d for d in range(len(cut[0][1])) if cut[0][1][d] != cut[0][2][d])
        expect(sorted(box[0][dim] for box in cut) == [0, cut[0][1][dim]] and 2 * cut[0][1][dim] == cut[0][2][dim], f"{name}: {boxes}")
finish(100)
