"""JSON files beside the checkpoints of a run are compared by key, wherever the two sides have them, or named as not compared: the config of its model,
the numbers of its adapter, and what says how it was sharded, less the grid. In both orders, of `diff` and of `verify --against`."""
import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

RANKS = os.path.join(DATA, "rank_files", "verl2_w3")
DCP = os.path.join(DATA, "own_names", "fsdp2_bare")


def edit(path, change, start="{}"):
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(start)
    with open(path, encoding="utf-8") as f:
        fields = json.load(f)
    fields.update(change)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(fields, f)


def copied(scratch, name, source):
    folder = os.path.join(scratch, name)
    shutil.copytree(source, folder)
    return folder


def rows_of(a, b):
    run = run_mckpt("diff", a, b, "--json")
    told = json.loads(run.stdout)
    return run.returncode, {(r["kind"], r["name"], r["at"], r["a"], r["b"]) for r in told["rows"]}, told


def check(what, a, b, file, at, of_a, of_b, verdict=1):
    """`b` differs from `a` in that file alone; "" as a place: the file as a whole."""
    for one, other, x, y in ((a, b, of_a, of_b), (b, a, of_b, of_a)):
        status, rows, told = rows_of(one, other)
        found = {r[:2] + r[3:] if not at else r for r in rows}
        want = ("file", file, x, y) if not at else ("file", file, at, x, y)
        expect(status == 1 and found == {want} and not told["equal"], f"{what}: {status} {rows}")
        text = run_mckpt("diff", one, other).stdout
        expect(f"file     {file}{at}" in text, f"{what}: {text}")
        run = run_mckpt("verify", one, "--against", other)
        expect(run.returncode == verdict and file in run.stdout, f"{what}: verify: {run.stdout}")


with tempfile.TemporaryDirectory() as scratch:
    plain = copied(scratch, "plain", RANKS)
    expect(rows_of(RANKS, plain)[:2] == (0, set()), "equal folders")
    config = copied(scratch, "config", RANKS)
    edit(os.path.join(config, "huggingface", "config.json"), {"rms_norm_eps": 0.5})
    eps = json.load(open(os.path.join(RANKS, "huggingface", "config.json"), encoding="utf-8"))["rms_norm_eps"]
    check("config", RANKS, config, "huggingface/config.json", ".rms_norm_eps", str(eps), "0.5")
    sharded = copied(scratch, "sharded", RANKS)
    edit(os.path.join(sharded, "fsdp_config.json"), {"FSDP_version": 9})
    check("sharding", RANKS, sharded, "fsdp_config.json", ".FSDP_version", "2", "9")
    grid = copied(scratch, "grid", RANKS)
    edit(os.path.join(grid, "fsdp_config.json"), {"world_size": 7})
    status, rows, told = rows_of(RANKS, grid)
    expect((status, rows) == (0, set()) and any("world_size of fsdp_config.json" in n for n in told["not_compared"]), f"the grid: {told}")
    os.remove(os.path.join(grid, "fsdp_config.json"))
    for a, b in ((RANKS, grid), (grid, RANKS)):
        expect(any("fsdp_config.json" in n for n in rows_of(a, b)[2]["not_compared"]), "a file of one side is named")
    # The numbers of an adapter: a side without them is another model.
    eight, sixteen = copied(scratch, "eight", RANKS), copied(scratch, "sixteen", RANKS)
    for folder, alpha in ((eight, 8), (sixteen, 16)):
        edit(os.path.join(folder, "lora_train_meta.json"), {"r": 4, "lora_alpha": alpha})
    check("alpha", eight, sixteen, "lora_train_meta.json", ".lora_alpha", "8", "16")
    check("no alpha", eight, RANKS, "lora_train_meta.json", "", "", "")
    # An export has the config in another place.
    out = os.path.join(scratch, "out")
    run = run_mckpt("export", config, out, "--no-sync", "-q")
    expect(run.returncode == 0, run.stderr)
    expect(rows_of(out, config)[:2] == (0, set()), f"the export and its source: {rows_of(out, config)[1]}")
    for a, b, name in ((out, RANKS, "config.json"), (RANKS, out, "huggingface/config.json")):
        status, rows, _ = rows_of(a, b)
        expect(status == 1 and {r[:3] for r in rows} == {("file", name, ".rms_norm_eps")}, f"export: {rows}")
        expect(run_mckpt("verify", a, "--against", b).returncode == 1, "verify of the export")
    # A DCP folder with the config beside its files.
    one, two = copied(scratch, "one", os.path.join(DCP, "checkpoint")), copied(scratch, "two", os.path.join(DCP, "checkpoint"))
    for folder, eps in ((one, 1e-6), (two, 0.5)):
        shutil.copy(os.path.join(DCP, "config.json"), folder)
        edit(os.path.join(folder, "config.json"), {"rms_norm_eps": eps})
    check("DCP", one, two, "config.json", ".rms_norm_eps", "1e-06", "0.5")
finish(40)
