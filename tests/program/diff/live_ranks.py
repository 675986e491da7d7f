"""mckpt diff DUMP HF_DIR --as: a dump of a real rank of Megatron-Core (test_data/live_ranks), and dumps in every form that a rank under
Megatron-FSDP may have, in both orders; each planted fault is named. judges/live_ranks makes dumps with Megatron itself."""

import hashlib
import json
import os
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

REAL = os.path.join(DATA, "live_ranks", "tiny_qwen3_moe.tp2_rank1.json")
work = tempfile.TemporaryDirectory(prefix="mckpt_live_")


def at(name):
    return os.path.join(work.name, name)


def run(*args, status):
    found = run_mckpt("diff", *args)
    expect(found.returncode == status, f"{args}: exit status {found.returncode}, not {status}: {found.stdout}{found.stderr}")
    return found


def rows(*args, status):
    return [(r["kind"], r["name"], r["at"]) for r in json.loads(run(*args, "--json", status=status).stdout)["rows"]]


def written(name, dump):
    with open(at(name), "w") as f:
        json.dump(dump, f)
    return at(name)


def saved(rank, *grid):
    """A dump of the list that `ls --as fsdp` gives: DTensors under the keys of a save."""
    listed = json.loads(run_mckpt("ls", TINY_MODEL, "--as", "fsdp", "--digest", "--json", "--rank", rank, *grid).stdout)["tensors"]
    tensors = []
    for t in listed:
        chunk = t["chunks"][0] if t["chunks"] else {"offsets": [0] * len(t["shape"]), "sizes": [0] * len(t["shape"])}
        tensors.append({"name": t["name"], "dtype": t["dtype"], "shape": t["shape"], "local_shape": chunk["sizes"], "offset": chunk["offsets"], "placements": ["S(0)"],
                        "attributes": {}, "sha256": t["sha256"]})
    return {"schema": "mckpt.rank_dump/1", "rank": rank, "world": 4, "tensors": tensors}


# A real rank, and what is not in it as it should be.
AS = ["--as", "megatron", "--tp", 2]
expect_equal("real rank", rows(REAL, TINY_MODEL, *AS, status=0), [])
expect_equal("the other order", rows(TINY_MODEL, REAL, *AS, status=0), [])
text = run(REAL, TINY_MODEL, *AS, "*router*", status=0).stdout
expect(text.startswith("equal: all 2 tensors that match '*router*'"), text)
with open(REAL) as f:
    real = json.load(f)


def planted(change):
    dump = json.loads(json.dumps(real))
    change({t["name"]: t for t in dump["tensors"]}, dump)
    return written("planted.json", dump)


NORM, QKV, FC1 = "decoder.final_layernorm.weight", "decoder.layers.0.self_attention.linear_qkv.weight", "decoder.layers.1.mlp.experts.local_experts.3.linear_fc1.weight"
GROUPED = "decoder.layers.1.mlp.experts.linear_fc1.weight3"
for change, want in [
    (lambda t, d: t[NORM].update(sha256="0" * 64), [("values", NORM, "sha256")]),
    (lambda t, d: t[NORM].update(shape=[32], local_shape=[32]), [("shape", NORM, "")]),
    (lambda t, d: t[NORM].update(dtype="int16"), [("dtype", NORM, "")]),
    (lambda t, d: t[NORM].update(name="module." + NORM), []),
    (lambda t, d: t[NORM].update(name="x." + NORM), [("only_a", "x." + NORM, ""), ("only_b", NORM, "")]),
    (lambda t, d: t[QKV]["attributes"].update(partition_dim=1), [("attribute", QKV, "partition_dim")]),
    (lambda t, d: t[QKV]["attributes"].update(tensor_model_parallel=False, partition_dim=-1), [("attribute", QKV, n) for n in ("tensor_model_parallel", "partition_dim")]),
    (lambda t, d: t[NORM]["attributes"].update(tensor_model_parallel=True), [("attribute", NORM, "tensor_model_parallel")]),
    (lambda t, d: t[QKV]["attributes"].update(allreduce=False), [("attribute", QKV, "allreduce")]),
    (lambda t, d: t[FC1].update(sha256=t[FC1.replace(".3.", ".2.")]["sha256"]), [("values", GROUPED, "sha256")]),
    (lambda t, d: d["tensors"].remove(t[NORM]), [("only_b", NORM, "")]),
]:
    expect_equal(f"{want}", rows(planted(change), TINY_MODEL, *AS, status=1 if want else 0), want)
path = planted(lambda t, d: t[FC1].update(sha256=t[FC1.replace(".3.", ".2.")]["sha256"]))
expect("the values that the model has in decoder.layers.1.mlp.experts.linear_fc1.weight2" in run(path, TINY_MODEL, *AS, status=1).stdout, "experts that are exchanged")
path = planted(lambda t, d: t["decoder.layers.0.input_layernorm.weight"]["attributes"].update(sequence_parallel=True))
found = rows(path, TINY_MODEL, *AS, status=1)  # then the run has it, and the others lack it
expect(len(found) == 10 and {at for _, _, at in found} == {"sequence_parallel"}, f"{found}")

# The names of the dump are found; the usual ones are not its names, and are not what nobody asked for.
expect_equal("the dump's spelling", rows(REAL, TINY_MODEL, *AS, "--spelling", "unfused-norms", status=0), [])
found = rows(REAL, TINY_MODEL, *AS, "--spelling", "usual", status=1)
front = "decoder.layers."
expect_equal("the usual spelling", found, [("only_a", f"{front}{n}.input_layernorm.weight", "") for n in (0, 1)] + [("only_b", f"{front}{n}.self_attention.linear_qkv.layer_norm_weight", "") for n in (0, 1)])

# Options of Megatron-FSDP say nothing of a run without.
for flags in (["--engine", "v2"], ["--strategy", "optim"], ["--fsdp-unit", "none"], ["--bucket-size", 7], ["--fsdp-units-for", "sharded"]):
    text = run(REAL, TINY_MODEL, *AS, *flags, status=2).stderr
    expect(f"{flags[0]} is for a run under Megatron-FSDP" in text, text)

# DTensors of which the rank has nothing: no value was compared.
NOTHING = hashlib.sha256(b"").hexdigest()


def emptied(count):
    dump = json.loads(json.dumps(real))
    for t in dump["tensors"][:count]:
        empty = [0, *t["shape"][1:]]
        t.update(local_shape=empty, offset=None, placements=["S(0)"], sha256=NOTHING)
    return written("emptied.json", dump)


found = run(emptied(len(real["tensors"])), TINY_MODEL, *AS, status=1)
text = found.stdout + found.stderr
expect("no items of any tensor, so that no value was compared" in text and "bit-equal" not in text and not text.startswith("equal"), text)
text = run(TINY_MODEL, emptied(len(real["tensors"])), *AS, "--json", status=1).stdout
expect(json.loads(text)["equal"] is False, text)
text = run(emptied(2), TINY_MODEL, *AS, status=0).stdout
expect("not compared: those of 2 tensors, of which the rank has no items" in text, text)

# Damage of a dump is damage of an input.
def twice(t, d):
    d["tensors"].append(t[NORM])


for change, says in [
    (lambda t, d: t[QKV].update(offset=[1, 0]), "not inside its tensor"),
    (lambda t, d: t[QKV].update(local_shape=[1]), "another number of dimensions"),
    (twice, "has a tensor twice"),
    (lambda t, d: d["tensors"].append({**t[NORM], "name": "module." + NORM}), "two tensors of the dump are one of the model"),
    (lambda t, d: d.update(rank=2), "a rank that its run does not have"),
]:
    for order in ((planted(change), TINY_MODEL), (TINY_MODEL, planted(change))):
        text = run(*order, *AS, status=3).stderr
        expect(says in text and "MC1003" in text and "planted.json" in text, text)
for command in ("ls", "inspect", "verify", "stats"):
    text = run_mckpt(command, REAL).stderr
    expect("the file is a dump of a live rank" in text and "mckpt diff`, with --as megatron or fsdp" in text, f"{command}: {text}")

# A rule that is wrong: the mapping says that every rank has the whole output layer.
row = next(r for r in json.loads(run_mckpt("mappings", "show", "qwen3_moe", "--json").stdout)["rows"] if r["megatron"].endswith("output_layer.weight"))
wrong = written("rows.json", {"rows": [{**row, "rule": "replicate"}]})
found = run(REAL, TINY_MODEL, *AS, "--map-file", wrong, status=1).stdout
expect("the live rank has one of 2 parts of dimension 0, and the mapping gives every rank all of it" in found, found)

# Ranks under Megatron-FSDP.
GRID = ["--tp", 2, "--dp", 2]
for rank in range(4):
    dump = saved(rank, *GRID)
    path = written(f"saved{rank}.json", dump)
    expect_equal(f"saved, rank {rank}", rows(path, TINY_MODEL, "--as", "fsdp", "--tp", 2, status=0), [])
    expect_equal(f"saved, turned, rank {rank}", rows(TINY_MODEL, path, "--as", "fsdp", "--tp", 2, status=0), [])
    kept = [t for t in dump["tensors"] if 0 not in t["local_shape"]]
    expect_equal(f"without what is empty, rank {rank}", rows(written("kept.json", {**dump, "tensors": kept}), TINY_MODEL, "--as", "fsdp", "--tp", 2, status=0), [])
    plain = [{**t, "shape": t["local_shape"], "offset": [0] * len(t["shape"]), "placements": []} for t in kept]
    expect_equal(f"plain parts, rank {rank}", rows(written("plain.json", {**dump, "tensors": plain}), TINY_MODEL, "--as", "fsdp", "--tp", 2, status=0), [])
    unknown = [{**t, "offset": None} for t in kept]
    expect_equal(f"places unknown, rank {rank}", rows(written("unknown.json", {**dump, "tensors": unknown}), TINY_MODEL, "--as", "fsdp", "--tp", 2, status=0), [])
dump = saved(3, *GRID)
moved = next(t for t in dump["tensors"] if t["local_shape"][0] > 1 and t["offset"][0] > 0 and len(t["shape"]) == 2)
moved["offset"][0] -= 1
found = rows(written("moved.json", dump), TINY_MODEL, "--as", "fsdp", "--tp", 2, status=1)
expect(("attribute", moved["name"], "place") in found, f"{found}")

# Another type of the run, a page, and what is refused.
fp32 = written("fp32.json", saved(0, *GRID, "--dtype", "fp32"))
expect_equal("fp32", rows(fp32, TINY_MODEL, "--as", "fsdp", "--tp", 2, "--dtype", "fp32", status=0), [])
found = rows(fp32, TINY_MODEL, "--as", "fsdp", "--tp", 2, status=1)
expect(found and {kind for kind, _, _ in found} == {"cast"}, f"another type is named, and values are compared: {found}")
run(REAL, TINY_MODEL, *AS, "--rank", 0, "--html", at("page.html"), "-q", status=1)
expect("<!-- a picture made by mckpt" in open(at("page.html")).read(300), "page")
bad = written("bad.json", {**real, "tensors": [{**real["tensors"][0], "sha256": "x"}]})
for args, status, says in [((bad, TINY_MODEL, *AS), 3, "MC1003"), ((REAL, TINY_MODEL), 2, "--as"), ((REAL, TINY_MODEL, "--rank", 1), 2, "--as"), ((REAL, REAL, *AS), 2, "both are dumps"),
                           ((TINY_MODEL, TINY_MODEL, *AS), 2, "neither is a dump"), ((REAL, TINY_MODEL, *AS, "--max-ulp", 1), 2, "tolerance"),
                           ((REAL, TINY_MODEL, *AS, "--source-tp", 2), 2, "checkpoints"), ((REAL, TINY_MODEL, *AS, "no.such*"), 1, "MC1007"),
                           ((REAL, TINY_MODEL, "--as", "megatron", "--tp", 3), 2, "MC0201"), ((REAL, TINY_MODEL, *AS, "--rank", 9), 2, "MC0202")]:
    found = run(*args, status=status)
    expect(says in found.stderr, f"{args}: {found.stderr}")
config = at("config_only")
os.mkdir(config)
with open(os.path.join(TINY_MODEL, "config.json")) as f, open(os.path.join(config, "config.json"), "w") as out:
    out.write(f.read())
expect("no weights to compare with" in run(REAL, config, *AS, status=3).stderr, "a folder without weights")
expect(hashlib.sha256(b"").hexdigest() != real["tensors"][0]["sha256"], "the real dump has values")
finish(60)
