"""The | in the pattern of a hybrid model: a run of one stage has none, whoever writes its checkpoint, and a pipeline that does not divide the
layers gets them, of a model as of a checkpoint of it.
"""

import os
import re
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.hybrid_models import hybrid_model
from mckpt_tests.program import run_mckpt

PATTERN = "M-M*M-M*"
scratch = tempfile.TemporaryDirectory(prefix="mckpt_pipes_")
NO = os.path.join(scratch.name, "no")
model = hybrid_model(PATTERN, os.path.join(scratch.name, "model"))


def mckpt(*args, status=0):
    run = run_mckpt(*args, timeout=60)
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout[-300:]}{run.stderr[-900:]}")
    return run.stdout + run.stderr


def convert(how, source, *args):
    out = tempfile.mkdtemp(dir=scratch.name) + "/out"
    said = mckpt("convert", how, source, out, *args, "--no-sync")
    return out, said


def pattern_of(folder):
    return re.search(r"hybrid_layer_pattern: '(.*)'", mckpt("inspect", folder, "--args"))[1]


# ---- One stage: a pattern with pipes is refused, by the same words at all doors

PIPES = ("--hybrid-pattern", "M-M*|M-M*")
core, _ = convert("to-mcore", model)
two, _ = convert("to-mcore", model, "--pp", 2, *PIPES)
for door in (
    ("convert", "hf-to-fsdp", model, NO),
    ("convert", "to-fsdp", model, NO),
    ("convert", "to-mcore", model, NO),
    ("convert", "to-mcore", two, NO),
    ("convert", "to-pt", model, NO),
    ("convert", "to-pt", two, NO),
    ("convert", "reshard", core, NO),
    ("ls", model, "--as", "megatron"),
    ("layout", model),
    ("plot", model, "--as", "fsdp", "-o", NO + ".svg"),
    ("roundtrip", model),
):
    said = mckpt(*door, *PIPES, status=4)
    expect("error[MC2007]" in said and "Megatron refuses them in a run of one stage" in said and f"expected {PATTERN}, or" in said, f"{door}: {said}")

# ---- One stage: pipes that the source has are told and left out

for how in ("reshard", "to-mcore", "to-pt", "to-fsdp"):
    out, said = convert(how, two)
    expect_equal(how, pattern_of(out), PATTERN)
    expect("stages  of the pattern M-M*|M-M* become those of M-M*M-M*" in said, f"{how}: {said}")
    mckpt("verify", out, "--against", two, "-q")

# Stages stay where layers are named anew, so pipes that they cannot have are told.
for source, pattern, says in ((core, "[M-]M*|[M-]M*", "2 segments, and the args 1 stage, on which"), (two, "[M-]M|*|[M-]M*", "3 segments, and the args 2 stages, among which")):
    _, said = convert("group", source, "--pattern", pattern)
    expect(says in said, f"group to {pattern}: {said}")

# ---- Stages among which the layers do not divide: pipes are placed, for a model as for the checkpoint of one stage

for stages, placed in ((2, PATTERN), (3, "M-M|*M|-M*"), (5, "M-|M|*M|-|M*")):
    resharded, _ = convert("reshard", core, "--pp", stages)
    for how in ("to-mcore", "to-pt"):
        out, said = convert(how, model, "--pp", stages)
        expect_equal(f"{how} --pp {stages}", (pattern_of(out), f"become those of {placed}" in said), (placed, placed != PATTERN))
        expect_equal(f"{how} --pp {stages}: resharded", pattern_of(resharded), placed)
        mckpt("verify", out, "--against", resharded, "-q")
mckpt("plot", model, "--as", "torch_dist", "--pp", 3, "-o", os.path.join(scratch.name, "planned.svg"))

# ---- Files of ranks with pipes of one's own

given = "M|-M*M|-M*"
for source in (model, core):
    out, _ = convert("to-pt", source, "--pp", 3, "--hybrid-pattern", given)
    expect_equal("to-pt --hybrid-pattern", pattern_of(out), given)
    held = mckpt("ls", os.path.join(out, "release", "mp_rank_00_001"), "-q")
    expect_equal("layers of the second stage", sorted(set(re.findall(r"decoder[.]layers[.](\d)", held))), ["0", "1", "2", "3"])
for pattern, status, says in (
    ("[M-]M*|[M-]M*", 2, "files of ranks have layers without groups"),
    ("M-M*|M-M-", 2, "the layers of the pattern are not those of the model"),
    ("M-M|*M|-M*", 4, "the segments of the pattern do not divide"),
):
    said = mckpt("convert", "to-pt", model, NO, "--pp", 2, "--hybrid-pattern", pattern, status=status)
    expect(says in said, f"{pattern}: {said}")
finish(80)
