"""Layers that a result cannot have as the run of its source named them: a note says so. Files of ranks have no groups, and a GPT model under the names
of a hybrid gets its own names again, weights and optimizer states alike. Where the result can have the layers, they stay without a word.
"""

import json
import os
import pickle
import re
import tarfile
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish, need
from mckpt_tests.hybrid_models import hybrid_model
from mckpt_tests.program import run_mckpt, run_says
from mckpt_tests.setting import DATA

need("torch")  # its classes are in .metadata
scratch = tempfile.TemporaryDirectory(prefix="mckpt_other_layers_")
REMOVED, RENAMED = "as files of ranks have none", "get the names that the GPT model has"


def mckpt(*args, status=0):
    run = run_says(status, *args)
    return run.stdout + run.stderr


def convert(how, source, *args):
    out = tempfile.mkdtemp(dir=scratch.name) + "/out"
    said = mckpt("convert", how, source, out, *args, "--no-sync")
    return out, said


def args_of(folder):
    told = dict(re.findall(r"(\w+): (.*)", mckpt("inspect", folder, "--args")))
    # A run passes over None, and how many fields there are is a field of the answer.
    return {name: value for name, value in told.items() if value != "None" and name != "args"}


def pattern_of(folder):
    return args_of(folder).get("hybrid_layer_pattern", "").strip("'")


def digests(folder):
    rows = json.loads(run_mckpt("ls", folder, "--json", "--digest").stdout)["tensors"]
    expect(len(rows) > 0, f"{folder}: no tensors")
    return sorted((row["name"], row["dtype"], tuple(row["shape"]), row["sha256"]) for row in rows)


def check_removed(what, source, pattern, flat, *grid):
    """The files of ranks equal files that are made of the flat model, and a note says which groups they lack."""
    out, said = convert("to-pt", source, *grid)
    expect_equal(f"{what}: pattern", pattern_of(out), flat)
    expect(f"groups  of the pattern {pattern} are removed, {REMOVED}: " in said, f"{what}: {said}")
    right, said = convert("to-pt", model, *grid, *(["--hybrid-pattern", flat] if "|" in flat else []))
    expect(REMOVED not in said, f"{what}, of the model: {said}")
    # A state dict has the main weights, which are another type.
    kept = 4 if source != state_dict else 1
    expect_equal(what, *([row[:kept] for row in digests(folder)] for folder in (out, right)))
    return out, mckpt("verify", out, "--against", source)


# ---- Groups: of torch_dist and fsdp_dtensor, whose names show them by group and by member, and of a state dict without args

FLAT, GROUPED = "M-M*", "[M-][M*]"
model = hybrid_model(FLAT, os.path.join(scratch.name, "model"))
core, _ = convert("to-mcore", model, "--hybrid-pattern", GROUPED)
fsdp, _ = convert("hf-to-fsdp", model, "--dp", 2, "--hybrid-pattern", GROUPED)
state_dict, _ = convert("hf-to-fsdp", model, "--dp", 2, "--engine", "v2", "--hybrid-pattern", GROUPED)
for what, source in (("torch_dist", core), ("fsdp_dtensor", fsdp), ("a state dict", state_dict)):
    for grid in (("--tp", 2), ("--pp", 2)):
        out, told = check_removed(f"{what} {grid}", source, GROUPED, FLAT, *grid)
        expect("as in the source" in told and f"layers differently: {FLAT} and {'no pattern' if source == state_dict else GROUPED}" in told, f"{what}: {told}")
told = mckpt("verify", *(convert("ungroup", core)[0], "--against", core))
expect(f"name the layers differently: {FLAT} and {GROUPED}" in told, told)

# Where no args say the groups, names by member do.
silent, _ = convert("hf-to-fsdp", model, "--hybrid-pattern", GROUPED)
with open(os.path.join(silent, "release", ".metadata"), "rb") as f:
    metadata = pickle.load(f)
del metadata.state_dict_metadata["args"]
metadata.storage_data = {index: place for index, place in metadata.storage_data.items() if index.fqn != "args"}
with open(os.path.join(silent, "release", ".metadata"), "wb") as f:
    pickle.dump(metadata, f)
os.remove(os.path.join(silent, "release", "mckpt_manifest.json"))
out, said = convert("to-pt", silent, "--source-tp", 1, "--tp", 2)
expect(f"groups  of the pattern {GROUPED} are removed" in said, said)
expect_equal("without args", digests(out), digests(convert("to-pt", model, "--tp", 2)[0]))

# With pipes: two notes on one stage, one on the same stages.
piped, _ = convert("to-mcore", model, "--pp", 2, "--hybrid-pattern", "[M-]|[M*]")
check_removed("with pipes", piped, "[M-]|[M*]", "M-|M*", "--pp", 2)
_, said = convert("to-pt", piped)
expect("groups  of the pattern [M-]|[M*] are removed" in said and "stages  of the pattern M-|M* become those of M-M*" in said, said)

# Without groups in the source, or with a pattern that the user gives, there is nothing to tell; and groups stay where the result can have them.
flat, _ = convert("to-mcore", model)
for source, args in ((flat, ()), (core, ("--hybrid-pattern", FLAT))):
    out, said = convert("to-pt", source, "--tp", 2, *args)
    expect(REMOVED not in said, f"{args}: {said}")
    expect_equal(f"{args}: pattern", pattern_of(out), FLAT)
for how, source in (("to-mcore", core), ("to-mcore", fsdp), ("to-fsdp", core), ("reshard", core), ("reshard", fsdp)):
    out, said = convert(how, source)
    expect(REMOVED not in said and RENAMED not in said, f"{how}: {said}")
    expect_equal(f"{how}: pattern", pattern_of(out), GROUPED)

# One refusal says all that is wrong with a pattern, and what it expects is taken.
for stages, pattern, expected, ways in ((1, "[M-]|[M*]", FLAT, "leave [, ] and | out"), (1, GROUPED, FLAT, "leave [ and ] out"), (2, "[M-]|[M*]", "M-|M*", "leave [ and ] out")):
    for source in (core, model):
        said = mckpt("convert", "to-pt", source, os.path.join(scratch.name, "no"), "--pp", stages, "--hybrid-pattern", pattern, status=2)
        expect("error[MC0205]" in said and f"expected {expected}\n" in said and ways in said, f"{pattern}: {said}")
        out, _ = convert("to-pt", source, "--pp", stages, "--hybrid-pattern", expected)
        expect_equal(f"{expected} on {stages}", pattern_of(out), expected)

# ---- A trained GPT model under the names of a hybrid becomes what the GPT checkpoint becomes, states included

with tarfile.open(os.path.join(DATA, "megatron_runs", "dense.tar.xz")) as archive:
    archive.extractall(scratch.name, filter="data")
run = os.path.join(scratch.name, "dense")
LAYERS = 5
gpt, said = convert("to-fsdp", os.path.join(run, "torch_dist"), "--assets", os.path.join(run, "hf"), "--dp", 2)
expect(RENAMED not in said, said)
core, _ = convert("to-mcore", gpt, "--tp", 2)
for pattern in ("*-" * LAYERS, "[*-]" * LAYERS):
    hybrid, _ = convert("gpt-to-hybrid", gpt, "--pattern", pattern)
    of_core, _ = convert("gpt-to-hybrid", core, "--pattern", pattern)
    for how, source, grid in (
        ("to-mcore", hybrid, ("--tp", 2)),
        ("to-mcore", hybrid, ("--pp", 5, "--layers", "indexed")),
        ("to-mcore", hybrid, ("--weights-only",)),
        ("to-mcore", of_core, ("--tp", 2)),
        ("reshard", of_core, ("--tp", 2)),
        ("to-fsdp", of_core, ("--dp", 2)),
        ("to-pt", hybrid, ("--tp", 2, "--pp", 5)),
        ("to-pt", of_core, ("--tp", 2, "--pp", 5)),
    ):
        what = f"{how} {' '.join(map(str, grid))} of {pattern}, {'fsdp_dtensor' if source == hybrid else 'torch_dist'}"
        out, said = convert(how, source, *grid)
        expect(f"layers  of the hybrid model {pattern} {RENAMED}" in said, f"{what}: {said}")
        # A hybrid has a tensor for each layer, and reshard keeps that.
        likewise = ("to-mcore", core, *grid, "--layers", "indexed") if how == "reshard" else (how, gpt if source == hybrid else core, *grid)
        right, said = convert(*likewise)
        expect(RENAMED not in said, f"{what}, of the GPT model: {said}")
        expect_equal(f"{what}: tensors", digests(out), digests(right))
        expect_equal(f"{what}: args", sorted(args_of(out).items()), sorted(args_of(right).items()))
        expect_equal(f"{what}: layers", (args_of(out)["num_layers"], pattern_of(out)), (str(LAYERS), ""))
        mckpt("verify", out, "--against", right, "-q")
    said = mckpt("convert", "to-mcore", hybrid, os.path.join(scratch.name, "no"), "--hybrid-pattern", pattern, status=2)
    expect(f"and the layers of the pattern {pattern} get the names of a GPT model" in said, said)
finish(2500)
