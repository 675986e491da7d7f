"""Layers in groups under Megatron-FSDP v2. Its checkpoints have no args: the names show the groups, and the model the layers in them, so that every
command reads such a checkpoint, and one that came from it over v1. Units inside units: the inner one owns, and what is left belongs to the
stack around it.
"""
import json
import os
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.models import Models, hybrid_with_mtp
from mckpt_tests.program import run_mckpt

models = Models(only=("nemotron_h",))
work = tempfile.TemporaryDirectory(prefix="mckpt_v2_groups_")


def place(name):
    return os.path.join(work.name, name)


def done(*args):
    run = run_mckpt(*args)
    expect(run.returncode == 0, f"{' '.join(map(str, args))}: {run.returncode} {run.stdout[-300:]}{run.stderr[-600:]}")
    return run


def units_of(model, *flags):
    """By unit, the parameters of its groups."""
    told = json.loads(done("layout", model, "--engine", "v2", "--dp", 2, "--json", *flags).stdout)
    out = {}
    for p in told["parameters"]:
        if p["group"] is not None:
            out.setdefault(told["groups"][p["group"]]["unit"], []).append(p["name"])
    return out


hybrid, mtp = models.path("nemotron_h"), hybrid_with_mtp(place("mtp"))
PATTERN = "[M-]M[*-]"

# The inner unit owns.
units = units_of(hybrid, "--hybrid-pattern", PATTERN, "--fsdp-unit", "HybridStack,MambaLayer")
expect_equal("units in units", sorted(map(str, units)), ["None", "decoder", "decoder.layers.0", "decoder.layers.0.layers.0", "decoder.layers.1", "decoder.layers.2"])
expect(all(".layers.1." in n for n in units["decoder.layers.0"]), f"what the Mamba layer leaves: {units['decoder.layers.0']}")
expect_equal("what the stacks leave", units["decoder"], ["decoder.final_norm.weight"])
v1 = json.loads(done("layout", hybrid, "--dp", 2, "--hybrid-pattern", PATTERN, "--fsdp-unit", "HybridStack,MambaLayer", "--json").stdout)
expect_equal("v1: the outer one owns", sorted({str(g["unit"]) for g in v1["groups"]}), ["None", "decoder.layers.0", "decoder.layers.1", "decoder.layers.2"])
units = units_of(mtp, "--hybrid-pattern", "[ME][*M]E/*E", "--fsdp-unit", "HybridStack")
expect_equal("stacks and experts", sorted(map(str, units)), [
    "None", "decoder", "decoder.layers.0", "decoder.layers.0.layers.1.mlp.experts", "decoder.layers.1", "decoder.layers.2.mlp.experts",
    "mtp.layers.0.mtp_model_layer", "mtp.layers.0.mtp_model_layer.layers.1.mlp.experts"])  # fmt: skip

# A checkpoint says its groups by its names.
for model, pattern, flags in (
    (hybrid, PATTERN, ["--fsdp-unit", "HybridStack"]),
    (hybrid, "M[-M]*[-]", []),  # a group of one
    (mtp, "[ME][*M]E/*E", ["--ep", 2, "--fsdp-unit", "HybridStack,TransformerLayer"]),
):
    name = f"{os.path.basename(model)}{pattern.replace('/', ' ')}"
    at, back, other, v1, flat = (place(f"{name}.{what}") for what in ("v2", "back", "other", "v1", "flat"))
    done("convert", "hf-to-fsdp", model, at, "--engine", "v2", "--dp", 4, "--hybrid-pattern", pattern, *flags, "--no-sync")
    done("verify", at)
    done("verify", at, "--against", model)
    done("export", at, back, "--no-sync")
    done("verify", back, "--against", model)
    done("convert", "reshard", at, other, "--engine", "v2", "--dp", 3, "--no-sync")
    names = [t["name"] for t in json.loads(done("ls", other, "--json").stdout)["tensors"]]
    grouped = "model.decoder.layers.0.layers.0." if pattern[0] == "[" else "model.decoder.layers.1.layers.0."
    expect(any(n.startswith(grouped) for n in names), f"{name}: the groups are kept: {names[:4]}")
    done("verify", other, "--against", at)
    done("convert", "to-fsdp", at, v1, "--dp", 2, "--no-sync")
    done("verify", v1, "--against", model)
    done("convert", "reshard", v1, place(f"{name}.again"), "--engine", "v2", "--dp", 3, "--no-sync")
    done("verify", place(f"{name}.again"), "--against", other)
    done("diff", place(f"{name}.again"), other)
    # Beside a checkpoint without groups.
    done("convert", "hf-to-fsdp", model, flat, "--engine", "v2", "--dp", 2, "--no-sync")
    done("verify", at, "--against", flat)

# Names that no groups of the model's layers can have are refused as before.
run = run_mckpt("convert", "hf-to-fsdp", hybrid, place("never"), "--engine", "v2", "--hybrid-pattern", "[M-]M[-*]", "-n")
expect(run.returncode == 2 and "not those of the model" in run.stderr, run.stderr)
finish(50)
