"""convert reshard keeps the format of its source, and writes what the command of that format writes; options that a format has no use
for are refused, and so are states that files of ranks have no place for. convert to-fsdp makes fsdp_dtensor of each of them."""

import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

work = tempfile.TemporaryDirectory(prefix="mckpt_stays_")
STAGES = ["--pp", "2", "--first-stage-layers", "1"]
models = Models("models", only=["qwen3_dense", "tiny_llama1", "deepseek_v3_mtp"])


def at(name):
    return os.path.join(work.name, name)


def convert(*args, status=0):
    run = run_mckpt("convert", *args, "--no-sync", "-j1")
    expect(run.returncode == status, f"{args}: {run.stdout}{run.stderr}")
    return run.stderr


def files(folder):
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as f:
                found[os.path.relpath(os.path.join(place, name), folder)] = f.read()
    return found


def same(what, got, want, *but):
    """The same files with the same bytes; the manifests, which have times, are left out."""
    a, b = ({name: data for name, data in files(at(f)).items() if not name.endswith("manifest.json")} for f in (got, want))
    expect_equal(f"{what}: files", sorted(a), sorted(b))
    expect_equal(f"{what}: bytes", [name for name in a if a[name] != b.get(name) and os.path.basename(name) not in but], [])


def refused(words, *args, status):
    text = convert(*args, at("no"), status=status)
    expect(all(word in text for word in words) and not os.path.exists(at("no")), f"{args}: {text}, without {words}")


def listed(folder):
    run = run_mckpt("ls", at(folder), "--jsonl", "--digest")
    return sorted((t["name"], t["dtype"], t["shape"], t["sha256"]) for t in map(json.loads, run.stdout.splitlines()) if "name" in t)


def facts(folder):
    return json.loads(run_mckpt("inspect", at(folder), "--json").stdout)


def torch_dist():
    convert("to-mcore", TINY_MODEL, at("core"), "--tp", "2", "--iteration", "7")
    convert("reshard", at("core"), at("core_ep"), "--ep", "2", "--pp", "2")
    convert("to-mcore", at("core"), at("wanted"), "--ep", "2", "--pp", "2")
    same("torch_dist", "core_ep", "wanted")
    # Layers that are apart stay apart, and what a run put beside the data stays there, with the new grid.
    convert("to-mcore", TINY_MODEL, at("apart"), "--tp", "2", "--layers", "indexed", "--iteration", "7")
    beside = {"train_state.pt": "a state", "run_config.yaml": "model:\n  tensor_model_parallel_size: 2\n"}
    for name, text in beside.items():
        with open(os.path.join(at("apart"), "iter_0000007", name), "w") as f:
            f.write(text)
    os.remove(os.path.join(at("apart"), "iter_0000007", "mckpt_manifest.json"))
    convert("reshard", at("apart"), at("apart_1"))
    expect_equal("layers", [facts("apart_1")["facts"]["layers"]], ["a tensor each"])
    kept = {name: files(at("apart_1"))[f"iter_0000007/{name}"].decode() for name in beside}
    expect_equal("beside", sorted(kept.items()), sorted((beside | {"run_config.yaml": beside["run_config.yaml"].replace("2", "1")}).items()))
    # A real save with its optimizer, whose states have a main weight for each.
    convert("to-mcore", os.path.join(DATA, "dcp", "fsdp_dtensor_optim"), at("states"), "--assets", models.path("tiny_llama1"))
    convert("reshard", at("states"), at("states_tp"), "--tp", "2")
    convert("reshard", at("states_tp"), at("states_1"), "--vocab-size", "37")
    run = run_mckpt("verify", at("states_tp"), "--against", at("states"))
    expect(run.returncode == 0 and "36 tensors" in run.stdout, f"states: {run.stdout}{run.stderr}")
    expect_equal("states, there and back", listed("states_1"), listed("states"))
    convert("reshard", at("states"), at("weights"), "--weights-only")
    expect_equal("weights", listed("weights"), [t for t in listed("states") if not t[0].startswith("optimizer.")])


def rank_files():
    dense, deep = models.path("qwen3_dense"), models.path("deepseek_v3_mtp")
    rows = ["--vocab-size", "518"]  # the rows of two tensor-parallel ranks stay
    for name, model, words in (("usual", dense, rows), ("unfused", dense, ["--spelling", "unfused-norms", *rows]), ("mtp", deep, ["--spelling", "mtp-transformer-layer"])):
        convert("to-pt", model, at(name), "--tp", "2", "--iteration", "7", *words)
        convert("reshard", at(name), at(name + "_pp"), *STAGES)
        convert("to-pt", model, at(name + "_wanted"), *STAGES, "--iteration", "7", *words)
        expect_equal(f"files of ranks, {name}", listed(name + "_pp"), listed(name + "_wanted"))
        expect_equal(f"iteration, {name}", sorted(os.listdir(at(name + "_pp"))), ["iter_0000007", "latest_checkpointed_iteration.txt"])
        expect(run_mckpt("verify", at(name + "_pp"), "--against", at(name)).returncode == 0, f"verify {name}")
    shutil.copytree(at("usual"), at("with_states"))
    states = os.path.join(at("with_states"), "iter_0000007", "mp_rank_00", "distrib_optim.pt")
    shutil.copy(os.path.join(DATA, "pt", "dtypes.pt"), states)
    refused(["MC3005", "--weights-only", "to-mcore", "to-fsdp"], "reshard", at("with_states"), status=4)
    convert("reshard", at("with_states"), at("without"), "--weights-only", *STAGES)
    expect_equal("without states", listed("without"), listed("usual_pp"))


def others():
    """DCP folders with names of their own, archives, and what is not a sharded checkpoint."""
    for name in ("fsdp2", "plain", "megatron_fsdp_v2"):
        source = os.path.join(DATA, "dcp", name)
        convert("reshard", source, at(name), "--dp", "3")
        expect_equal(f"{name}: format", facts(name)["format"], json.loads(run_mckpt("inspect", source, "--json").stdout)["format"])
        expect(run_mckpt("verify", at(name), "--against", source).returncode == 0, f"verify {name}")
    refused(["MC0001", "--assets", "to-fsdp"], "reshard", at("fsdp2"), "--assets", TINY_MODEL, status=2)
    refused(["MC2013", "--dp", "to-fsdp"], "reshard", at("fsdp2"), "--tp", "2", status=4)
    convert("to-hdf5", at("core"), at("core.h5"))
    convert("reshard", at("core.h5"), at("of_archive"), "--tp", "2")
    expect_equal("archive", listed("of_archive"), listed("core"))
    refused(["MC1112", "hf-to-fsdp"], "reshard", TINY_MODEL, status=3)
    refused(["MC1112", "to-fsdp"], "reshard", os.path.join(DATA, "own_names", "verl_fsdp2"), status=3)


def options():
    convert("hf-to-fsdp", TINY_MODEL, at("fsdp"), "--dp", "2")
    for flags in (["--strategy", "optim"], ["--engine", "v2"], ["--freeze", "none"], ["--fsdp-unit", "none"], ["--bucket-size", "7"]):
        refused(["MC0001", flags[0], "to-fsdp"], "reshard", at("core"), *flags, status=2)
    for source in ("usual", "fsdp2"):
        refused(["MC0001", "--strategy", "to-fsdp"], "reshard", at(source), "--strategy", "optim", status=2)
    for source in ("fsdp", "fsdp2"):
        refused(["MC0001", "--vpp", "to-mcore"], "reshard", at(source), "--vpp", "2", status=2)
    # to-fsdp takes them all, and keeps types and names; hf-to-fsdp takes models.
    for source, assets in (("core", TINY_MODEL), ("usual", models.path("qwen3_dense")), ("fsdp", TINY_MODEL)):
        convert("to-fsdp", at(source), at(f"{source}_as_fsdp"), "--dp", "3", "--strategy", "optim")
        expect_equal(f"{source}: to-fsdp", facts(f"{source}_as_fsdp")["format"], "DCP fsdp_dtensor")
        run = run_mckpt("verify", at(f"{source}_as_fsdp"), "--against", assets)
        expect(run.returncode == 0, f"to-fsdp of {source}: {run.stdout}")
        refused(["MC1112", "to-fsdp"], "hf-to-fsdp", at(source), status=3)
    for flags in (["--dtype", "fp32"], ["--params-dtype", "auto"]):
        refused(["MC0001", flags[0]], "to-fsdp", at("core"), *flags, status=2)
    for flags in (["--any-model"], ["--rank-states", at("core")]):
        refused(["MC0001", flags[0]], "to-fsdp", TINY_MODEL, *flags, status=2)


torch_dist()
rank_files()
others()
options()
finish(120)
