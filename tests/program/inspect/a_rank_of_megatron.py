"""One file of Megatron's ranks, looked at: the places in its mesh, and of each parameter local shape, offset and whole shape. The whole
shapes are those that the torch_dist of the same real run states; the files of all tensor-parallel ranks tile them."""
import json
import os
import re
import tarfile
import tempfile
import zipfile

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
        if name.endswith("linear_fc1.weight") or ".linear_fc1.weight" in name:  # gated: a part of the gate, and a part of the rest
            expect(all(box[0] is None for box in cut), f"{name}: {boxes}")
            continue
        expect(sorted(box[0][dim] for box in cut) == [0, cut[0][1][dim]] and 2 * cut[0][1][dim] == cut[0][2][dim], f"{name}: {boxes}")


def changed(name, *edits):
    """A rank's file in which something else stands: behind group 1 of `old` comes `new`."""
    source = os.path.join(work.name, "dense/iter_0000003/mp_rank_01_000/model_optim_rng.pt")
    file = os.path.join(work.name, name, "mp_rank_01_000/model_optim_rng.pt")
    os.makedirs(os.path.dirname(file))
    with zipfile.ZipFile(source) as whole, zipfile.ZipFile(file, "w") as out:
        for entry in whole.namelist():
            data = whole.read(entry)
            if entry.endswith("data.pkl"):
                for old, new in edits:
                    expect(len(re.findall(old, data, re.S)) == 1, f"{name}: {re.findall(old, data, re.S)}")
                    data = re.sub(old, lambda found: found[1] + new, data, flags=re.S)
            out.writestr(entry, data)
    return {t["name"]: t for t in answer("inspect", file)["shard"]["tensors"]}


FC1 = "model.decoder.layers.0.mlp.linear_fc1.weight"
# A run without gates has rows that lie together; a plain or a gated GELU is not told apart.
unsaid = changed("unsaid", (rb"(swiglu(?:q.)?)\x88", b"\x89"))[FC1]
expect((unsaid["offsets"], unsaid["shape"], unsaid["placements"]) == (None, [20, 8], "Shard(0)"), unsaid)
plain = changed("plain", (rb"()X\x06\x00\x00\x00swiglu", b"X\x0c\x00\x00\x00squared_relu"))[FC1]
expect((plain["offsets"], plain["shape"], plain["placements"]) == ([10, 0], [20, 8], "Shard(0)"), plain)
# Norms of another size than a head's may be cut as the heads are.
wide = changed("wide", (rb"(kv_channels(?:q.|r....)?)K\x04", b"K\x05"))["model.decoder.layers.0.self_attention.q_layernorm.weight"]
expect((wide["offsets"], wide["shape"], wide["placements"]) == (None, None, ""), wide)
# A down projection is whole if it has the rows that the args say; older releases cut it.
DOWN = "model.decoder.layers.0.self_attention.linear_q_down_proj.weight"
name = (rb"()X2\x00\x00\x00decoder\.layers\.0\.self_attention\.linear_proj\.weight", b"X9\x00\x00\x00decoder.layers.0.self_attention.linear_q_down_proj.weight")
for rows, shape in ((8, [8, 8]), (16, None)):
    found = changed(f"down{rows}", name, (rb"()kv_channels(?:q.)K\x04", b"q_lora_rankq\x11K" + bytes([rows])))[DOWN]
    expect(found["shape"] == shape and (found["offsets"] is None) == (shape is None), f"{rows}: {found}")
# More ranks than a tensor can have rows.
huge = changed("huge", (rb"(tensor_model_parallel_size(?:q.|r....)?)K\x02", b"\x8a\x08" + (2**62).to_bytes(8, "little")))
expect((huge[FC1]["offsets"], huge[FC1]["shape"]) == (None, None), huge[FC1])
# Each whole tensor has room in 63 bits, and their sum has not.
big = changed("big", (rb"(tensor_model_parallel_size(?:q.|r....)?)K\x02", b"\x8a\x08" + (2**56).to_bytes(8, "little")))
expect(big[FC1]["shape"] == [10 * 2**56, 8], big[FC1])
text = run_mckpt("inspect", os.path.join(work.name, "big/mp_rank_01_000/model_optim_rng.pt"))
expect(text.returncode == 0 and "items are here" in text.stdout, text.stdout)
# A module that is not Megatron's own is whole on every rank, or cut: its name does not tell.
copied = changed("copied", (rb"()decoder(?=\.layers\.0\.self_attention\.linear_proj\.weight)", b"resblok"))
copied = copied["model.resblok.layers.0.self_attention.linear_proj.weight"]
expect((copied["offsets"], copied["shape"], copied["placements"]) == (None, None, ""), copied)
finish(100)
