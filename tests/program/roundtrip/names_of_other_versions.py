"""A live model with the names of other versions and specs of Megatron: it loads, unshards, saves and exports; what it saves is, chunk by
chunk and file by file, what `convert hf-to-fsdp --spelling` writes, and with groups has the names of members.
"""
import json
import os
import subprocess
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.respelt import SUBMODULE_CONV, UNFUSED_NORMS, renamed, respelt
from mckpt_tests.setting import MCKPT, MPIRUN

models = Models()
FINAL = [(r"decoder\.final_norm\.weight", "decoder.final_layernorm.weight")]
TWO_NORMS = [(r"layers\.2\.layers\.1\.pre_mlp_layernorm\.weight", "final_layernorm.weight")]


def mckpt(*args, ranks=1):
    if ranks == 1:
        run = run_mckpt(*args, timeout=120)
    else:
        run = subprocess.run([MPIRUN, "-n", str(ranks), "--timeout", "100", MCKPT, *map(str, args)], capture_output=True, text=True, timeout=120,
                             stdin=subprocess.DEVNULL)
    expect(run.returncode == 0, f"{args}: exit status {run.returncode}: {run.stdout[-600:]}{run.stderr[-600:]}")
    return run


def chunks(folder):
    """name -> type, shape, digest of the whole, and the places of its chunks"""
    listed = json.loads(mckpt("ls", folder, "--json", "--digest").stdout)["tensors"]
    seen = mckpt("inspect", folder, "--map=*").stdout.split("\n", 1)[1]
    return sorted((t["name"], t["dtype"], t["shape"], t["sha256"]) for t in listed), [line for line in seen.splitlines() if "->" not in line]


for model, words, rules, grid, ranks in (
    ("nemotron_h", "submodule-conv,unfused-norms", SUBMODULE_CONV + UNFUSED_NORMS, ["--tp", 2], 2),
    ("nemotron_h", "submodule-conv", SUBMODULE_CONV, ["--dp", 2], 2),
    ("qwen3_5", "unfused-norms", UNFUSED_NORMS, [], 1),
):
    source = models.path(model)
    with tempfile.TemporaryDirectory(prefix="mckpt_other_") as scratch:
        saved, made = os.path.join(scratch, "saved"), os.path.join(scratch, "made")
        same = ["--vocab-size", "auto", "--spelling", words, "--no-sync", *grid]
        mckpt("roundtrip", source, "--checkpoint", saved, *same, ranks=ranks)
        mckpt("convert", "hf-to-fsdp", source, made, "--params-dtype", "auto", "--dtype", "fp32", *same)
        (live, live_map), (written, written_map) = chunks(saved), chunks(made)
        expect_equal(f"{model} {words}: tensors", live, written)
        expect_equal(f"{model} {words}: chunks", live_map, written_map)
        usual = os.path.join(scratch, "usual")
        mckpt("convert", "hf-to-fsdp", source, usual, "--params-dtype", "auto", "--dtype", "fp32", "--no-sync", "--vocab-size", "auto", *grid)
        want = sorted((renamed(name, rules), *rest) for name, *rest in chunks(usual)[0])
        expect_equal(f"{model} {words}: the names are the other ones", live, want)
        mckpt("verify", saved, "--against", usual, "-q")

with tempfile.TemporaryDirectory(prefix="mckpt_other_") as scratch:
    saved, flat = os.path.join(scratch, "saved"), os.path.join(scratch, "flat")
    hybrid = models.path("nemotron_h")
    mckpt("roundtrip", hybrid, "--hybrid-pattern", "[M-]M[*-]", "--spelling", "submodule-conv,unfused-norms", "--checkpoint", saved, "--no-sync")
    names = [name for name, *_ in chunks(saved)[0]]
    for name in ("layers.0.layers.0.mixer.conv1d.weight", "layers.0.layers.0.norm.weight", "layers.0.layers.1.pre_mlp_layernorm.weight",
                 "layers.1.mixer.conv1d.bias", "layers.2.layers.0.input_layernorm.weight"):
        expect(f"model.module.decoder.{name}" in names, f"no {name}: {names}")
    # Read as a model, and taken out of its groups, it is the same model.
    mckpt("export", saved, os.path.join(scratch, "back"), "--no-sync", "-q")
    mckpt("convert", "ungroup", saved, flat, "--no-sync", "-q")
    mckpt("verify", flat, "--against", hybrid, "--params-dtype", "auto", "-q")
    mckpt("verify", saved, "--against", hybrid, "--params-dtype", "auto", "-q")

    # Early models with groups have the final norm under the other name. Both at once are refused.
    early, count = respelt(os.path.join(saved, "release"), os.path.join(scratch, "early", "release"), FINAL)
    expect(count == 1, f"{count} final norms")
    mckpt("export", early, os.path.join(scratch, "of_early"), "--no-sync", "-q")
    mckpt("verify", early, "--against", hybrid, "--params-dtype", "auto", "-q")
    both, _ = respelt(os.path.join(saved, "release"), os.path.join(scratch, "both", "release"), TWO_NORMS)
    told = run_mckpt("export", both, os.path.join(scratch, "of_both"), "--no-sync", timeout=60)
    expect(told.returncode != 0 and "decoder.final_layernorm.weight" in told.stderr and "decoder.final_norm.weight" in told.stderr, told.stderr)
finish(150)
