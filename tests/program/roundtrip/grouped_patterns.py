"""A hybrid model in groups, through a checkpoint and back: what is saved names the pattern that it is of, is sound, and
is read again by commands that know nothing of the round trip.
"""
import json
import os
import subprocess
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.models import GOLDEN, Models
from mckpt_tests.setting import GOLDEN_MODEL, MCKPT, MPIRUN

models = Models()


def mckpt(*args, ranks=1):
    start = [MPIRUN, "-n", str(ranks), "--timeout", "100"] if ranks > 1 else []
    return subprocess.run([*start, MCKPT, *map(str, args)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def done(what, *args, ranks=1, status=0):
    run = mckpt(*args, ranks=ranks)
    expect(run.returncode == status, f"{what}: exit status {run.returncode}, not {status}: {run.stdout[-600:]}{run.stderr[-600:]}")
    return run


def model_with_mtp(folder):
    """nemotron_h_moe with an MTP depth of an attention and an MLP, whose tensors are drawn like all others."""
    recipe = os.path.join(GOLDEN, "models", "nemotron_h_moe")
    with open(os.path.join(recipe, "config.json")) as f:
        config = json.load(f)
    kinds = config["layers_block_type"]
    config |= {"num_nextn_predict_layers": 1, "mtp_layers_block_type": ["attention", "moe"]}
    with open(os.path.join(recipe, "tensors.txt")) as f:
        lines = f.read().splitlines()
    hidden, more = config["hidden_size"], []
    for to, kind in enumerate(config["mtp_layers_block_type"]):
        front = f"backbone.layers.{kinds.index(kind)}."
        more += [line.replace(front, f"mtp.layers.{to}.") for line in lines if line.startswith(front)]
    norm = next(line for line in lines if line.startswith("backbone.norm_f.weight")).split(" ", 1)[1]
    more += [f"mtp.layers.0.{name}.weight {norm}" for name in ("enorm", "hnorm")]
    more += [f"mtp.layers.1.final_layernorm.weight {norm}", f"mtp.layers.0.eh_proj.weight BF16 {hidden}x{2 * hidden} perm mtp.eh_proj 0"]
    os.mkdir(folder)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    with open(os.path.join(folder, "tensors.txt"), "w") as f:
        f.write("\n".join(lines + more) + "\n")
    subprocess.run([GOLDEN_MODEL, os.path.join(folder, "tensors.txt"), os.path.join(folder, "model.safetensors")], check=True)
    return folder


def check(model, pattern, *flags, ranks=1):
    with tempfile.TemporaryDirectory(prefix="mckpt_grouped_") as scratch:
        saved, back, flat = (os.path.join(scratch, name) for name in ("saved", "back", "flat"))
        done(pattern, "roundtrip", model, "--hybrid-pattern", pattern, "--checkpoint", saved, "--no-sync", *flags, ranks=ranks)
        done(f"{pattern}: verify", "verify", saved)
        told = json.loads(done(f"{pattern}: inspect", "inspect", saved, "--args", "--json").stdout)
        args = json.dumps(told)
        expect(json.dumps(pattern)[1:-1] in args, f"{pattern}: the args have another pattern")
        done(f"{pattern}: export", "export", saved, back, "--no-sync")
        done(f"{pattern}: back", "verify", back, "--against", model)
        done(f"{pattern}: ungroup", "convert", "ungroup", saved, flat, "--no-sync")


hybrid = models.path("nemotron_h")
for pattern in ("[M-]M[*-]", "M[-M][*-]", "[M-][M*-]", "[M-]M*-", "M-M[*-]", "M-[M*-]", "[M-M*-]"):
    check(hybrid, pattern)
check(hybrid, "[M-]M[*-]", "--dp", 2, ranks=2)
with tempfile.TemporaryDirectory(prefix="mckpt_mtp_") as scratch:
    mtp = model_with_mtp(os.path.join(scratch, "mtp"))
    check(mtp, "[ME][*M]E/*E")
    run = done("no MTP part", "roundtrip", mtp, "--hybrid-pattern", "[ME][*M]E", status=2)
    expect("ME*ME/*E, with brackets" in run.stderr, f"what is missing is named: {run.stderr}")
finish(30)
