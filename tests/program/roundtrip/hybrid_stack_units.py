"""Stacks of hybrid models as FSDP units: a live model saves what `convert hf-to-fsdp` makes of the same run, byte by byte;
`reshard` of a checkpoint with other units gives the same files; `ls --as fsdp` lists the boxes in them.
"""
import json
import os
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.folders import difference
from mckpt_tests.models import Models, hybrid_with_mtp
from mckpt_tests.program import run_mckpt

models = Models()
STACKS = ["--fsdp-unit", "HybridStack"]
SAVED_TYPES = ["--params-dtype", "auto", "--dtype", "fp32"]


def done(what, *args, ranks=1):
    run = run_mckpt(*args, ranks=ranks)
    expect(run.returncode == 0, f"{what}: {run.stdout[-400:]}{run.stderr[-600:]}")
    return run


def refused(what, code, word, *args):
    run = run_mckpt(*args)
    expect(run.returncode == 2 and code in run.stderr and word in run.stderr, f"{what}: {run.returncode} {run.stderr}")


def boxes(folder):
    """(name, rank) -> (offsets, sizes)"""
    tensors = json.loads(done("ls", "ls", folder, "--json").stdout)["tensors"]
    return {(t["name"], c["rank"]): (c["offsets"], c["sizes"]) for t in tensors for c in t["chunks"]}


def expected(model, ranks, *flags):
    """The same by `ls --as fsdp`. A tensor that several ranks hold alike, such as a buffer, is saved by one
    of them."""
    found = {}
    for rank in range(ranks):
        run = done("ls --as", "ls", model, "--as", "fsdp", "--dp", ranks, "--rank", rank, "--json", *flags)
        found |= {(t["name"], rank): (c["offsets"], c["sizes"]) for t in json.loads(run.stdout)["tensors"] for c in t["chunks"]}
    return found


def check(folder, number, model, pattern, units, modules):
    what = f"{os.path.basename(model)} {pattern} {units}"
    saved, made, layers, again = (os.path.join(folder, f"{name}{number}") for name in ("saved", "made", "layers", "again"))
    groups = ["--hybrid-pattern", pattern] if pattern else []
    run = done(what, "roundtrip", model, *groups, *units, "--checkpoint", saved, "--no-sync", "--json", ranks=2)
    sharded = list(dict.fromkeys(g["module"] for g in json.loads(run.stdout)["groups"]))
    expect(sharded == ["model", *modules], f"{what}: sharded {sharded}")
    done(what, "convert", "hf-to-fsdp", model, made, "--dp", 2, *groups, *units, *SAVED_TYPES, "--no-sync")
    expect(difference(saved, made) == "", f"{what}: saved is not what is converted: {difference(saved, made)}")
    on_disk, listed = boxes(made), expected(model, 2, *groups, *units)
    expect_equal(what, sorted(on_disk), sorted(k for k in listed if k in on_disk))
    expect(all(listed[k] == box for k, box in on_disk.items()), f"{what}: ls --as fsdp lists other boxes")
    # The layout depends on the units, and from the default units reshard comes to the same files.
    done(what, "convert", "hf-to-fsdp", model, layers, "--dp", 2, *groups, *SAVED_TYPES, "--no-sync")
    expect(boxes(layers) != on_disk, f"{what}: the boxes do not depend on the units")
    done(what, "convert", "reshard", layers, again, "--dp", 2, *units, "--no-sync")
    for file in ("__0_0.distcp", "__1_0.distcp"):
        with open(os.path.join(made, "release", file), "rb") as a, open(os.path.join(again, "release", file), "rb") as b:
            expect(a.read() == b.read(), f"{what}: reshard writes another {file}")


with tempfile.TemporaryDirectory(prefix="mckpt_stacks_") as folder:
    hybrid, mtp = models.path("nemotron_h"), hybrid_with_mtp(os.path.join(folder, "mtp"))
    mtp_layers = [f"mtp.layers.0.mtp_model_layer.layers.{i}" for i in (0, 1)]
    check(folder, 0, hybrid, None, STACKS, ["decoder"])
    check(folder, 1, hybrid, "M-M*-", STACKS, ["decoder"])  # the grouped dialect without a group
    check(folder, 2, hybrid, "[M-]M[*-]", STACKS, ["decoder.layers.0", "decoder.layers.2"])
    check(folder, 3, hybrid, "[M-]M[*-]", ["--fsdp-unit", "HybridStack,MambaLayer"],
          ["decoder.layers.0", "decoder.layers.1", "decoder.layers.2"])
    check(folder, 4, mtp, None, STACKS, ["decoder", "mtp.layers.0.mtp_model_layer"])
    check(folder, 5, mtp, "[ME][*M]E/*E", STACKS, ["decoder.layers.0", "decoder.layers.1"])
    check(folder, 6, mtp, "[ME][*M]E/*E", ["--fsdp-unit", "HybridStack,TransformerLayer"],
          ["decoder.layers.0", "decoder.layers.1", "decoder.layers.2", *mtp_layers])

    # Onto other tensor-parallel ranks, which needs the model's table: the groups stay, and the values too.
    wide, narrow, back = (os.path.join(folder, name) for name in ("wide", "narrow", "back"))
    done("wide", "convert", "hf-to-fsdp", hybrid, wide, "--dp", 2, "--hybrid-pattern", "[M-]M[*-]", "--vocab-size", 520, *STACKS, "--no-sync")
    done("narrow", "convert", "reshard", wide, narrow, "--tp", 2, "--dp", 2, *STACKS, "--no-sync")
    direct = os.path.join(folder, "direct")
    done("direct", "convert", "hf-to-fsdp", hybrid, direct, "--tp", 2, "--dp", 2, "--hybrid-pattern", "[M-]M[*-]", "--vocab-size", 520, *STACKS,
         "--no-sync")
    same_vocab = {k: v for k, v in boxes(direct).items() if ".layers." in k[0]}
    expect({k: v for k, v in boxes(narrow).items() if ".layers." in k[0]} == same_vocab, "boxes over two tensor-parallel ranks")
    done("verify", "verify", narrow)
    done("back", "export", narrow, back, "--no-sync")
    done("back", "verify", back, "--against", hybrid)

    dry = ["convert", "hf-to-fsdp", hybrid, os.path.join(folder, "never"), "--dry-run"]
    refused("no hybrid", "MC0203", "no HybridStack", "convert", "hf-to-fsdp", models.path("qwen3_next"), "never", *STACKS, "--dry-run")
    refused("no such class", "MC0001", "TransformerLayer, MambaLayer, HybridStack or none", *dry, "--fsdp-unit", "Stack")
    refused("another pattern", "MC0205", "not those of the model", *dry, "--hybrid-pattern", "[M-]M[-*]")
    refused("no pattern", "MC0205", "is not closed", *dry, "--hybrid-pattern", "[M-")
finish(70)
