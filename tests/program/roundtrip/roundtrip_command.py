"""`mckpt roundtrip` over ranks: what it prints, what it writes, and what it refuses. It saves the same as
`convert` writes."""

import json
import os
import subprocess
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import difference
from mckpt_tests.models import Models
from mckpt_tests.setting import MCKPT, MPIRUN

models = Models()


def mckpt(*args, ranks=1):
    start = [MPIRUN, "-n", str(ranks), "--timeout", "100"] if ranks > 1 else []
    return subprocess.run([*start, MCKPT, *map(str, args)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def ends(run, status, what, *words):
    expect(run.returncode == status, f"{what}: exit status {run.returncode}, not {status}: {run.stdout[-600:]}{run.stderr[-600:]}")
    for word in words:
        expect(word in run.stdout + run.stderr, f"{what}: nothing of '{word}': {run.stdout[-600:]}{run.stderr[-600:]}")
    return run


def answer(run):
    try:
        return json.loads(run.stdout)
    except ValueError:
        expect(False, f"no JSON: {run.stdout[:300]}{run.stderr[:300]}")
        return {}


def check_folders(folder):
    """Eight ranks: the saved checkpoint and the exported model, byte by byte."""
    source = models.path("qwen3_moe")
    saved, exported, converted = (os.path.join(folder, name) for name in ("saved", "exported", "converted"))
    grid = ["--tp", 2, "--ep", 4, "--dp", 4]
    run = ends(
        mckpt(
            "roundtrip", source, *grid, "--checkpoint", saved, "--output", exported, "--no-sync", "--json", ranks=8
        ),
        0,
        "eight ranks",
        "517 rows become 518",
    )
    told = answer(run)
    for key, value in {
        "schema": "mckpt.roundtrip/1",
        "ok": True,
        "equal": True,
        "ranks": 8,
        "device": "cpu",
        "engine": "v1",
        "strategy": "optim_grads_params",
        "output": exported,
        "checkpoint": saved,
        "differences": [],
        "grid": "tp=2 cp=1 ep=4 etp=1 pp=1 dp=4",
    }.items():
        expect(told.get(key) == value, f"{key} is {told.get(key)}, not {value}")
    expect(
        [p["name"] for p in told["phases"]] == ["load", "unshard", "check", "save", "reload", "export", "compare"],
        f"phases: {told['phases']}",
    )
    expect(sum(g["expert"] for g in told["groups"]) == 3, "groups of experts")
    # As many blocks as a module and the next one need, each as large as the largest at most.
    modules = [g["module"] for g in told["groups"]]
    most = 2 * max(modules.count(m) for m in modules) * max(2 * g["bucket_items"] for g in told["groups"])
    expect(told["gathered_bytes"] <= most + 4096 * 4, f"unsharding took {told['gathered_bytes']}, the blocks of two modules {most}")
    ends(
        mckpt(
            "convert",
            "hf-to-fsdp",
            source,
            converted,
            *grid,
            "--vocab-size",
            "auto",
            "--params-dtype",
            "auto",
            "--dtype",
            "fp32",
            "--no-sync",
        ),
        0,
        "convert",
    )
    expect(difference(saved, converted) == "", f"saved is not what is converted: {difference(saved, converted)}")
    ends(mckpt("verify", exported, "--against", saved), 0, "verify the export --against the checkpoint")
    ends(mckpt("verify", saved), 0, "verify the checkpoint")
    # Where something is already nothing is done.
    ends(mckpt("roundtrip", source, *grid, "--vocab-size", "auto", "--output", exported, ranks=8), 4, "an output that is there", "MC3003")


def check_instances():
    source = models.path("nemotron_h")
    run = ends(
        mckpt("roundtrip", source, "--dp", 4, "--hsdp", 2, ranks=4), 0, "2 x 2", "hsdp=2", "equal: every bit came back", "parameter groups"
    )
    expect(run.stdout.count("equal:") == 1, "one rank answers")
    expect(not [n for n in os.listdir(tempfile.gettempdir()) if n.startswith("mckpt_roundtrip_")], "the temporary folder is left")


def check_dp():
    """Without --dp it follows from the number of ranks, and is told."""
    source = models.path("qwen3_moe")
    for ranks, grid, dp, chosen in (
        (8, ["--tp", 2], 4, True),
        (4, ["--tp", 2, "--cp", 2], 1, True),
        (4, ["--ep", 2], 4, True),
        (2, ["--dp", 2], 2, False),
        (1, [], 1, False),
    ):
        run = ends(mckpt("roundtrip", source, *grid, "--vocab-size", "auto", "--until", "check", "--json", ranks=ranks), 0, f"{ranks} {grid}")
        expect(answer(run)["grid"].endswith(f" dp={dp}"), f"{ranks} ranks {grid}: {run.stdout[:200]}")
        note = f"dp={dp} chosen, from the {ranks} ranks of the job"
        expect((run.stderr.count(note) == 1) == chosen, f"{ranks} ranks {grid}: {run.stderr}")
        expect("smallest" not in run.stderr, f"{ranks} ranks {grid}: {run.stderr}")
    run = ends(mckpt("roundtrip", source, "--tp", 2, ranks=3), 2, "three ranks", "MC0201", "a multiple of 2 (tp=2 cp=1 pp=1)", "found    3")
    expect(run.stderr.count("error[") == 1, f"one rank reports: {run.stderr}")


def check_slices():
    """The context-parallel slices of the mixers' weights are compared with the source, on every rank."""
    for model, ranks, grid, slices in (
        ("nemotron_h", 2, ["--cp", 2], 2 * 2 * 5),  # two Mamba layers of five sliced tensors, on each rank
        ("qwen3_next", 4, ["--tp", 2, "--cp", 2], 4 * 2 * 3),
        ("nemotron_h_moe", 4, ["--cp", 4], 4 * 2 * 5),
        ("nemotron_h", 2, [], 0),
        ("qwen3_dense", 2, ["--cp", 2], 0),
    ):
        run = ends(mckpt("roundtrip", models.path(model), *grid, "--vocab-size", "auto", "--json", ranks=ranks), 0, f"{model} {grid}")
        expect(answer(run).get("cp_slices") == slices, f"{model} {grid}: {answer(run).get('cp_slices')} slices, not {slices}")
    run = ends(mckpt("roundtrip", models.path("nemotron_h"), "--cp", 2, "--until", "check", ranks=2), 0, "text")
    expect("20 context-parallel slices of all ranks compared with the source" in run.stdout, run.stdout)


def check_calls():
    """Loading broadcasts nothing: a model that is read once is received once by whoever else needs it. Communicators count
    the bytes that the ranks received, which do not follow from a plan."""
    source = models.path("qwen3_moe")
    grid = ["--tp", 2, "--ep", 2, "--dp", 2, "--vocab-size", "auto", "--until", "unshard"]
    run = ends(mckpt("roundtrip", source, *grid, "--json", ranks=4), 0, "calls")
    told = answer(run)
    phases = {p["name"]: p for p in told["phases"]}
    load, unshard = (phases[name]["collectives"] for name in ("load", "unshard"))
    calls = {c["call"]: c["calls"] for c in load["by_call"]}
    expect(calls["broadcast"] == 0 and 0 < load["calls"] < 60, f"{load}")
    expect(load["calls"] == sum(c["calls"] for c in load["by_call"]), f"{load}")
    expect(load["received_bytes"] == sum(c["received_bytes"] for c in load["by_call"]) > 0, f"{load}")
    naive = told["broadcast_each_parameter"]
    size = sum(len(data) for _, data in models.tensors("qwen3_moe").values())
    expect((naive["calls"], naive["received_bytes"]) == (told["parameters"], 3 * size), f"{naive}, {size} bytes")
    expect(load["calls"] < naive["calls"], f"{load['calls']} calls for {naive['calls']} parameters")
    # Gathers of a module bring each rank what the others have: as the groups themselves count it.
    expect(unshard["received_bytes"] == phases["unshard"]["bytes"] > 0, f"{unshard}, {phases['unshard']}")
    run = ends(mckpt("roundtrip", source, *grid, ranks=4), 0, "calls as text", "calls    load", " a rank at most; all ranks received ")
    expect(f"instead of {naive['calls']} broadcasts, one for each parameter, with" in run.stdout, run.stdout)
    told = answer(ends(mckpt("roundtrip", source, "--until", "load", "--json"), 0, "alone"))
    alone = told["phases"][0]["collectives"]
    expect((alone["calls"], alone["received_bytes"]) == (0, 0) and not any(c["calls"] for c in alone["by_call"]), f"{alone}")
    expect(told["broadcast_each_parameter"]["received_bytes"] == 0 and told["logits"] is None, f"{told}")


def check_differences():
    """Weights of the source that the parameters cannot hold do not come back, and that is said."""
    run = ends(mckpt("roundtrip", models.path("nemotron_h_f32ssm"), "--main-dtype", "none", "--json"), 1, "rounded values")
    told = answer(run)
    expect(told["equal"] is False and told["ok"] is False, "equal")
    expect(
        any(d.startswith("exported backbone.layers.") and ".mixer." in d and " from item " in d for d in told["differences"]),
        f"differences: {told['differences']}",
    )
    ends(mckpt("roundtrip", models.path("nemotron_h_f32ssm")), 0, "the same with main weights")


def check_refusals():
    ends(
        mckpt("roundtrip", models.path("qwen3_moe"), "--tp", 2, "--vocab-size", "auto"),
        2,
        "too few ranks",
        "MC0201",
        "the ranks of the job do not divide by tp*cp*pp",
        "a multiple of 2",
        "found    1",
    )
    ends(
        mckpt("roundtrip", models.path("qwen3_moe"), "--tp", 2, "--dp", 2, "--vocab-size", "auto", ranks=2),
        2,
        "another number of ranks than the grid has",
        "MC0201",
        "the number of ranks of the job is not that of the grid",
    )
    ends(mckpt("roundtrip", models.path("qwen3_moe"), "--strategy", "no_shard", "--checkpoint", "nowhere"), 2, "no_shard", "MC0203")
    expect(not os.path.exists("nowhere"), "what was refused left something")


with tempfile.TemporaryDirectory(prefix="mckpt_live_") as scratch:
    os.chdir(scratch)
    check_folders(scratch)
    check_instances()
    check_dp()
    check_slices()
    check_calls()
    check_differences()
    check_refusals()
    os.chdir("/")
finish(30)
