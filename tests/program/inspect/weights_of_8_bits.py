"""A run that has its weights in 8 bits packs them into buffers of their own, and saves fp32 main weights: nothing but the boxes tells it.
`inspect` and `layout` recognise such a save, `reshard` and `to-fsdp` keep its packing unless `--fp8-recipe` says otherwise, and weights of
which it is not known whether they are of 8 bits are refused. That the boxes are Megatron's: judges/fp8_groups.
"""
import json
import os
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.models import GOLDEN, Models, make_model
from mckpt_tests.program import run_mckpt

models = Models(only=("qwen3_dense", "qwen3_moe", "nemotron_h"))
scratch = tempfile.TemporaryDirectory(prefix="mckpt_fp8_")
V1 = ["tensorwise", "delayed", "blockwise"]


def place(name):
    return os.path.join(tempfile.mkdtemp(dir=scratch.name), name)


def mckpt(*args, status=0):
    run = run_mckpt(*args)
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout[-300:]}{run.stderr[-900:]}")
    return run


def packing(folder):
    return json.loads(mckpt("inspect", folder, "--json").stdout)["packing"]


def boxes(folder):
    listed = json.loads(mckpt("ls", folder, "--json", "--digest").stdout)["tensors"]
    return [(t["name"], t["sha256"], [(c["rank"], c["offsets"], c["sizes"]) for c in t["chunks"]]) for t in listed]


def saved(model, *flags):
    out = place("saved")
    mckpt("convert", "hf-to-fsdp", model if os.sep in model else models.path(model), out, *flags, "--dtype", "fp32", "--vocab-size", 520, "--no-sync", "-q")
    return out


for model, grid, other in (
    ("qwen3_dense", ["--dp", 3], ["--dp", 5]),
    ("qwen3_dense", ["--tp", 2, "--dp", 3], ["--dp", 4]),
    ("qwen3_moe", ["--ep", 2, "--dp", 6], ["--ep", 4, "--dp", 4]),
    ("nemotron_h", ["--dp", 3], ["--dp", 2]),
):
    said = f"{model} {grid}"
    plain, packed = saved(model, *grid), saved(model, *grid, "--fp8-recipe", "tensorwise")
    of_plain, of_packed = packing(plain), packing(packed)
    expect(boxes(plain) != boxes(packed), f"{said}: the boxes differ")
    expect(of_plain["fits"] and of_plain["fp8_recipes"] == [] and not of_plain["remarks"], f"{said}: {of_plain}")
    expect(of_packed["fits"] and of_packed["fp8_recipes"][:3] == V1 and of_packed["strategies"] == ["optim_grads_params"], f"{said}: {of_packed}")
    for name in ("engine", "units", "ranks", "tp", "ep", "dp", "hsdp", "parameters"):
        expect(of_packed[name] == of_plain[name], f"{said}: {name}: {of_packed[name]} and {of_plain[name]}")
    text = mckpt("inspect", packed).stdout
    expect("weights in 8 bits; " in text and "boxes do not tell the recipe of the weights in 8 bits: tensorwise, delayed or blockwise\n" in text, text)
    # The save is laid out as the option says.
    told = mckpt("layout", packed, "--json")
    expect("weights in 8 bits" in told.stderr, told.stderr)
    expect_equal(f"{said}: layout", json.loads(told.stdout)["groups"], json.loads(mckpt("layout", packed, "--fp8-recipe", "tensorwise", "--json").stdout)["groups"])
    expect(json.loads(mckpt("layout", packed, "--fp8-recipe", "none", "--json").stdout)["groups"] != json.loads(told.stdout)["groups"], f"{said}: layout without")

    # On another grid.
    wanted = {"auto": boxes(saved(model, *other, "--fp8-recipe", "tensorwise")), "none": boxes(saved(model, *other))}
    for command in ("reshard", "to-fsdp"):
        for flags, recipe in (([], "auto"), (["--fp8-recipe", "auto"], "auto"), (["--fp8-recipe", "none"], "none")):
            out = place("out")
            run = mckpt("convert", command, packed, out, *other, *flags, "--no-sync")
            expect(("by a run with weights in 8 bits" in run.stderr) == (recipe == "auto"), f"{said} {flags}: {run.stderr}")
            expect_equal(f"{said} {command} {flags}", boxes(out), wanted[recipe])
        out = place("out")
        run = mckpt("convert", command, plain, out, *other, "--no-sync")
        expect("8 bits" not in run.stderr, run.stderr)
        expect_equal(f"{said} {command} of another run", boxes(out), wanted["none"])
        mckpt("verify", out, "--against", packed, "-q")
    told = mckpt("convert", "reshard", packed, place("no"), *other, "--strategy", "optim", status=2).stderr
    expect("the run of the result cannot have them" in told and "--fp8-recipe none" in told, told)

# MXFP8 has blocks of 32 rows and columns, and is the one recipe of v2, which parts none.
even = make_model(place("even"), layers=3, hidden=96, heads=4, kv=2, head_dim=32, ffn=160, vocab=520)
of_one = packing(saved(even, "--dp", 3, "--fp8-recipe", "mxfp8"))
expect(of_one["fits"] and of_one["engine"] == "v1" and of_one["fp8_recipes"] == [*V1, "mxfp8"], f"{of_one}")
two, plain = saved(even, "--dp", 3, "--engine", "v2", "--fp8-recipe", "mxfp8"), saved(even, "--dp", 3, "--engine", "v2")
expect(boxes(two) != boxes(plain), "v2: the boxes differ")
of_two, of_plain = packing(two), packing(plain)
expect(of_two["fits"] and of_two["engine"] == "v2" and of_two["fp8_recipes"] == ["mxfp8"], f"{of_two}")
expect(of_plain["fits"] and of_plain["fp8_recipes"] == [], f"{of_plain}")
expect("weights in 8 bits (mxfp8); " in mckpt("inspect", two).stdout, "v2")
for source, recipe in ((two, ["--fp8-recipe", "mxfp8"]), (plain, [])):
    for engine in ("v1", "v2"):
        out = place("out")
        mckpt("convert", "to-fsdp", source, out, "--engine", engine, "--dp", 2, "--no-sync", "-q")
        expect_equal(f"v2 to {engine} {recipe}", boxes(out), boxes(saved(even, "--dp", 2, "--engine", engine, *recipe)))
one = saved("qwen3_dense", "--dp", 3, "--fp8-recipe", "tensorwise")
told = mckpt("convert", "reshard", one, place("no"), "--engine", "v2", "--dp", 2, status=2).stderr
expect("matrices of whole blocks of 32 rows and columns" in told and "--fp8-recipe none" in told, told)

# Weights that no list has.
for model, flags, says in (
    ("muse_glimmer_a", [], "it is not known whether the weight is of 8 bits"),
    ("glm_moe_dsa", [], "which weights of an indexer are of 8 bits is not known"),
):
    told = mckpt("layout", os.path.join(GOLDEN, "families", model), "--fp8-recipe", "tensorwise", *flags, status=2).stderr
    expect(says in told, f"{model}: {told}")
expect("self_attention.gate_proj.weight" in mckpt("layout", os.path.join(GOLDEN, "families", "muse_glimmer_a"), "--fp8-recipe", "tensorwise", status=2).stderr, "the weight is named")
for kind, model in (("families", "gemma4_ple"), ("families", "nemotron3_latent"), ("models", "qwen3_next")):
    folder = os.path.join(GOLDEN, kind, model)
    if os.path.isdir(folder):
        mckpt("layout", folder, "--fp8-recipe", "tensorwise", "-q")
for source, kind in ((models.path("qwen3_dense"), "to-mcore"), (models.path("qwen3_dense"), "to-pt")):
    out = place("out")
    mckpt("convert", kind, source, out, "--no-sync", "-q")
    told = mckpt("convert", "reshard", out, place("no"), "--tp", 2, "--fp8-recipe", "mxfp8", status=2).stderr
    expect("--fp8-recipe has no meaning for the format of the source" in told, told)
finish(100)
