"""Memory of a rank (`layout MODEL --memory`): the bytes are the sums over the real buffers (test_data/golden/buckets.txt), and over one small model
computed by hand; layers outside FSDP units are a warning, which models whose layers are units do not have."""
import json
import os
import tempfile
import xml.etree.ElementTree

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL


def memory(model, *args):
    run = run_mckpt("layout", model, "--memory", "--json", *args)
    answer = json.loads(run.stdout)
    return {(row["engine"], row["strategy"]): row for row in answer["memory"]["rows"]}, answer, run.stderr


# By hand: shards of 272, 416, 384, 416 and 384 items, all full on rank 0; buckets of 1088, 1664, 768 and again; 5872 items.
rows, answer, words = memory(TINY_MODEL, "--ep", "2", "--dp", "4")
fields = ("weights", "main_weights", "gradients", "moments", "total", "gathered", "unreduced", "largest_unit")
SHARD, BUCKETS, ITEMS = 1872, 1088 + 2 * (1664 + 768), 1040 + 2 * (1648 + 768)


def of(strategy, engine="v1"):
    return [rows[engine, strategy][field] for field in fields]


full = of("optim_grads_params")
expect_equal("optim_grads_params", full, [2 * SHARD, 4 * SHARD, 4 * SHARD, 8 * SHARD, 18 * SHARD, 2 * 2432, 4 * 2432, "decoder.layers.0"])
expect_equal("no_shard", of("no_shard"), [2 * ITEMS, 4 * ITEMS, 4 * ITEMS, 8 * ITEMS, 18 * ITEMS, 0, 0, None])
optim, grads = rows["v1", "optim"], rows["v1", "optim_grads"]
expect(optim["weights"] >= 2 * ITEMS and optim["gradients"] == 2 * optim["weights"] and optim["main_weights"] < optim["gradients"] / 2 + 400, f"optim: {optim}")
expect(grads["weights"] == optim["weights"] and grads["gradients"] == grads["main_weights"] == optim["main_weights"], f"optim_grads: {grads}")
expect_equal("v2 beside v1", of("optim_grads_params", "v2"), full)
# v2 packs all four in one way, with units and padding; shapes here leave no holes, so that padding alone is more than v1's no_shard.
expect_equal("v2 no_shard", of("no_shard", "v2"), [2 * BUCKETS, 4 * BUCKETS, 4 * BUCKETS, 8 * ITEMS, 10 * BUCKETS + 8 * ITEMS, 0, 0, None])
expect_equal("v2 optim", of("optim", "v2"), [2 * BUCKETS, 4 * SHARD, 4 * BUCKETS, 8 * SHARD, 6 * BUCKETS + 12 * SHARD, 0, 0, None])
expect_equal("v2 optim_grads", of("optim_grads", "v2"), [2 * BUCKETS, 4 * SHARD, 4 * SHARD, 8 * SHARD, 2 * BUCKETS + 16 * SHARD, 0, 0, None])
# Two instances of two ranks that have parts: main weights and moments are cut over both axes, weights and gradients inside an instance.
parts, told, _ = memory(TINY_MODEL, "--ep", "1", "--dp", "4", "--hsdp", "2", "--hsdp-outer", "shard", "--engine", "v2")
row, shard = parts["v2", "optim_grads_params"], told["totals"]["shard_bytes"] // 4
expect_equal("v2 parts", [row[f] for f in fields[:4]], [4 * shard, 4 * shard, 8 * shard, 8 * shard])
expect("helper buffers" in parts["v1", "optim_grads_params"]["refused"] and "only optim_grads_params" in parts["v2", "optim"]["refused"], f"what is refused: {parts}")
expect(not words, f"no warning: {words}")
bf16, _, _ = memory(TINY_MODEL, "--ep", "2", "--dp", "4", "--gradients", "bf16", "--moments", "bf16", "--dtype", "bf16")
expect_equal("types", [bf16["v1", "optim_grads_params"][f] for f in fields[:4]], [2 * SHARD, 2 * SHARD, 2 * SHARD, 4 * SHARD])
frozen, _, _ = memory(TINY_MODEL, "--ep", "2", "--dp", "4", "--freeze", "*")
expect_equal("frozen", [frozen["v1", "optim_grads_params"][f] for f in fields[:4]], [2 * SHARD, 0, 0, 0])

# The real buffers of Megatron-FSDP on rank 0: "group bucket shard csf", then "name offset items".
cases = {}
with open(os.path.join(DATA, "golden", "buckets.txt")) as f:
    for line in f:
        word, *rest = line.split()
        if word == "case":
            groups = cases.setdefault(tuple(rest), [])
        elif word == "group":
            groups.append((int(rest[0]), int(rest[1]), []))
        else:
            groups[-1][2].append((word, int(rest[0]), int(rest[1])))
compared = 0
for (case, model, tp, cp, ep, dp), groups in cases.items():
    folder = os.path.join(DATA, "golden", "models", model)
    if ".optim" in case or "no_shard" in case or "outer" in case or not os.path.exists(folder):
        continue
    rows, answer, _ = memory(folder, "--tp", tp, "--cp", cp, "--ep", ep, "--dp", dp, "--params-dtype", "bf16")
    row = rows["v1", "optim_grads_params"]
    shards = sum(shard for _, shard, _ in groups)
    expect_equal(case, [row["weights"], row["main_weights"], row["gradients"]], [2 * shards, 4 * shards, 4 * shards])
    units = {}
    for i, (bucket, shard, members) in enumerate(groups):
        if bucket == shard:  # of one rank: it has the buffer
            continue
        parts = members[0][0].split(".layers.")
        units.setdefault(parts[0] + ".layers." + parts[1].split(".")[0] if len(parts) > 1 else i, []).append(bucket)
    expect_equal(case + " gathered", [row["gathered"]], [2 * max(map(sum, units.values()), default=0)])
    if not any(".experts." in name for _, _, members in groups for name, _, _ in members):
        held = [sum(max(0, min(at + n, (s + 1) * shard) - max(at, s * shard)) for _, shard, members in groups for _, at, n in members) for s in range(int(dp) * int(cp))]
        expect_equal(case + " moments", [row["moments"], row["rank"] // int(tp)], [8 * max(held), held.index(max(held))])
        unused = shards - held[held.index(max(held))]
        expect_equal(case + " holes and padding", [row["holes"] + row["padding"]], [10 * unused])
    compared += 1
expect(compared >= 5, f"{compared} real runs were compared")

# Layers outside units.
falcon = os.path.join(DATA, "golden", "families", "falcon_h1")
rows, answer, words = memory(falcon, "--dp", "2")
outside = answer["outside_units"]
expect(outside["parameters"] == outside["of_parameters"] > 0 and outside["items"] == outside["of_items"], f"falcon_h1: {outside}")
expect("warning" in words and "outside FSDP units" in words and f"all {outside['parameters']} parameters" in words, words)
expect("outside FSDP units" in run_mckpt("layout", falcon, "--dp", "2").stderr, "the warning without --memory")
for model in ("nemotron_h", "qwen3_moe", "qwen3_vl", "deepseek_v3", "qwen3_next", "gpt_oss"):
    run = run_mckpt("layout", os.path.join(DATA, "golden", "models", model), "--dp", "2", "-q")
    expect("outside FSDP units" not in run.stderr, f"{model}: {run.stderr}")
run = run_mckpt("layout", os.path.join(DATA, "golden", "models", "nemotron_h"), "--dp", "2", "--fsdp-unit", "TransformerLayer")
expect("of layers" in run.stderr and "mixer" in run.stderr, f"Mamba layers that are no units: {run.stderr}")

# The text, and what is refused.
run = run_mckpt("layout", TINY_MODEL, "--memory", "--ep", "2", "--dp", "4")
expect("main weights float32" in run.stdout and "decoder.layers.0" in run.stdout and run.returncode == 0, run.stdout)
for args in (("--memory", "--group", "0"), ("--moments", "bf16"), ("--gradients", "bf16")):
    expect(run_mckpt("layout", TINY_MODEL, *args).returncode == 2, f"{args}")
expect(run_mckpt("layout", "4x5", "--memory").returncode == 2, "--memory of shapes")

# The drawing has a bar for each row, in their proportions.
with tempfile.TemporaryDirectory(prefix="mckpt_memory_") as folder:
    drawing = os.path.join(folder, "memory.svg")
    run = run_mckpt("plot", TINY_MODEL, "--as", "fsdp", "--ep", "2", "--dp", "4", "--memory", "-o", drawing, "-q")
    expect(run.returncode == 0, run.stderr)
    svg = xml.etree.ElementTree.parse(drawing).getroot()
    titles = [e.text for e in svg.iter("{http://www.w3.org/2000/svg}title")]
    for part, size in (("weights", 2 * SHARD), ("moments", 8 * SHARD), ("moments", 8 * ITEMS), ("gathered weights", 2 * 2432)):
        expect(f"{part}: {size:,} B" in titles, f"{part} {size}: {titles}")
    widths = {e[0].text: float(e.get("width")) for e in svg.iter("{http://www.w3.org/2000/svg}rect") if len(e)}
    ratio = widths[f"moments: {8 * ITEMS:,} B"] / widths[f"weights: {2 * ITEMS:,} B"]
    expect(abs(ratio - 4) < 0.05, f"proportions: {ratio}")
    for args in (("-o", os.path.join(folder, "m.html"), "--as", "fsdp", "--memory"), ("-o", drawing, "--as", "torch_dist", "--memory")):
        expect(run_mckpt("plot", TINY_MODEL, *args).returncode == 2, f"{args}")
# Nothing to show is an error with the reasons, and only types of the help are taken.
for words, code, says in (
    (("--gradients", "int8"), 2, ("auto, bf16, fp16, fp32",)),
    (("--moments", "int8"), 2, ("bf16, fp16, fp32",)),
):  # fmt: skip
    run = run_mckpt("layout", TINY_MODEL, "--memory", *words)
    expect(run.returncode == code and not run.stdout and all(text in run.stderr for text in says), f"{words}: {run.returncode} {run.stdout} {run.stderr}")
with tempfile.TemporaryDirectory() as scratch:
    picture = os.path.join(scratch, "memory.svg")
    run = run_mckpt("plot", TINY_MODEL, "*router*", "--as", "fsdp", "--memory", "-o", picture)
    expect(run.returncode == 2 and "it takes no GLOB" in run.stderr and not os.path.exists(picture), f"plot with a GLOB: {run.stderr}")

finish(60)
