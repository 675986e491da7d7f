"""Checkpoints in which versions and specs of Megatron spell names differently: convolutions of Mamba mixers as modules, norms that are
not fused with the layer behind them, final norms under the name of the other kind of model. They are read as models by every command,
resharding keeps their names unless it is given others, and a parameter under two names is refused.
"""

import json
import os
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.golden import sections
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.respelt import SUBMODULE_CONV, UNFUSED_NORMS, renamed, respelt
from mckpt_tests.setting import DATA

models = Models()
folder = tempfile.TemporaryDirectory(prefix="mckpt_spelling_")
FRONT = "model.module."
BOTH = SUBMODULE_CONV + UNFUSED_NORMS


def place(name):
    return os.path.join(tempfile.mkdtemp(dir=folder.name), name)


def mckpt(*args, status=0):
    run = run_mckpt(*args, timeout=60)
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout[-300:]}{run.stderr[-900:]}")
    return run


def digests(source):
    rows = json.loads(mckpt("ls", source, "--json", "--digest").stdout)["tensors"]
    return {row["name"]: (row["dtype"], row["shape"], row["sha256"]) for row in rows}


def golden(file, rules):
    """The tensors that torch read of the real checkpoint, under the new names."""
    want = {}
    for line in sections(f"saved/{file}")[0][1:]:
        name, dtype, shape, digest = line.split()[:4]
        want[FRONT + renamed(name, rules)] = (dtype, [int(n) for n in shape.split("x")], digest)
    return want


# ---- What real runs saved (test_data/golden/saved), with the other names. `changed`: names of one layer pattern, counted by hand.

for model, file, grid, rules, word, changed in (
    ("nemotron_h", "nemotron_h.tp2_cp1_ep1_world4.txt", ["--tp", 2, "--dp", 2], SUBMODULE_CONV, "submodule-conv", 4),
    ("nemotron_h", "nemotron_h.tp2_cp1_ep1_world4.txt", ["--tp", 2, "--dp", 2], UNFUSED_NORMS, "unfused-norms", 5),
    ("nemotron_h", "nemotron_h.tp2_cp1_ep1_world4.txt", ["--tp", 2, "--dp", 2], BOTH, "submodule-conv, unfused-norms", 9),
    ("qwen3_5", "qwen3_5.tp1_cp1_ep1_world2.txt", ["--dp", 2], UNFUSED_NORMS, "unfused-norms", None),
    ("deepseek_v3", "deepseek_v3.tp2_cp1_ep1_world4.txt", ["--tp", 2, "--dp", 2], UNFUSED_NORMS, "unfused-norms", None),
):
    made = place("made")
    source = models.path(model)
    mckpt("convert", "hf-to-fsdp", source, made, *grid, "--vocab-size", "auto", "--params-dtype", "auto", "--dtype", "fp32", "--no-sync")
    other, count = respelt(os.path.join(made, "release"), place("release"), rules)
    want = golden(file, rules)

    def laid_out(path, *flags):
        return sorted(row["name"] for row in json.loads(mckpt("layout", path, "*", *flags, "--json").stdout)["parameters"])

    # The layout has the names of the checkpoint, and `usual` is a spelling that can be asked for like the other one.
    of_other, of_made = laid_out(other), laid_out(made)
    expect(len(set(of_made) - set(of_other)) >= (changed or 1), f"{word}: {of_other[:8]}")
    expect_equal(f"{word}: layout as usual", laid_out(other, "--spelling", "usual"), of_made)
    expect_equal(f"{word}: layout in the other spelling", laid_out(made, "--spelling", word.replace(" ", "")), of_other)
    usual = golden(file, [])
    expect_equal(f"{model} {word}: names", sorted(name for name in digests(other)), sorted(want))
    expect_equal(f"{model} {word}: values", sorted(digests(other).items()), sorted(want.items()))
    expect(count == len(set(want) - set(usual)) and count == (changed or count) and count > 0, f"{model} {word}: {count} names changed")
    card = json.loads(mckpt("inspect", other, "--json").stdout)["facts"]
    expect(card.get("spelling") == word, f"{model}: inspect names the spelling: {card}")
    expect("spelling" not in json.loads(mckpt("inspect", made, "--json").stdout)["facts"], f"{model}: the usual spelling is not named")
    mckpt("verify", other, "-q")
    mckpt("verify", other, "--against", source, "--params-dtype", "auto", "-q")
    mckpt("verify", other, "--against", made, "-q")
    mckpt("verify", made, "--against", other, "-q")
    back = place("back")
    mckpt("export", other, back, "--no-sync", "-q")
    mckpt("verify", back, "--against", source, "-q")

    # Resharding keeps the names; the values are the run's.
    three = place("three")
    mckpt("convert", "reshard", other, three, "--dp", 1 if model == "deepseek_v3" else 3, "--no-sync", "-q")
    if grid[0] == "--dp":
        expect_equal(f"{model} {word}: resharded", sorted(digests(three).items()), sorted(want.items()))
    else:
        expect_equal(f"{model} {word}: resharded", sorted(digests(three)), sorted(want))
    mckpt("verify", three, "--against", source, "--params-dtype", "auto", "-q")
    again = place("again")
    mckpt("convert", "reshard", three, again, *grid, "--no-sync", "-q")
    expect_equal(f"{model} {word}: and back", sorted(digests(again).items()), sorted(want.items()))

    # A training checkpoint of one spelling becomes the other, and back, with the chunks that a run of those modules has.
    given = ["--spelling", word.replace(", ", ",")]
    for start, names, end in ((made, given, want), (other, ["--spelling", "usual"], usual), (other, given, want)):
        out = place("given")
        mckpt("convert", "reshard", start, out, *grid, "--no-sync", "-q", *names)
        expect_equal(f"{model} {word}: reshard {names}", sorted(digests(out).items()), sorted(end.items()))
        mckpt("verify", out, "--against", source, "--params-dtype", "auto", "-q")

    # The same names, and the layout of a model that has these modules, are written directly.
    words = [flag for part in word.split(", ") for flag in ("--spelling", part)]
    direct = place("direct")
    mckpt("convert", "hf-to-fsdp", source, direct, *grid, "--vocab-size", "auto", "--params-dtype", "auto", "--dtype", "fp32", "--no-sync", *words)
    expect_equal(f"{model} {word}: direct", sorted(digests(direct).items()), sorted(want.items()))
    mckpt("verify", direct, "--against", again, "-q")

# ---- Real runs with optimizer states, and in torch_dist

real = os.path.join(DATA, "dcp", "fsdp_dtensor_optim")
llama, states = models.path("tiny_llama1"), respelt(real, place("iter_0000005"), UNFUSED_NORMS)[0]
names = {name: renamed(name, UNFUSED_NORMS) for name in digests(real)}
expect(any("input_layernorm.weight.exp_avg" in n for n in names.values()), "states are renamed")
out = place("out")
mckpt("convert", "reshard", states, out, "--assets", llama, "--dp", 2, "--no-sync", "-q")
want = {names[name]: value for name, value in digests(real).items()}
expect_equal("states", sorted(digests(out).items()), sorted(want.items()))
objects = [o["name"] for o in json.loads(mckpt("inspect", out, "--json").stdout)["objects"]]
meta = [name for name in objects if name.startswith("optimizer.param_to_group_meta.")]
expect(sum("pre_mlp_layernorm.weight." in name for name in meta) >= 13 and not any("layer_norm_" in name for name in meta), f"{meta[:9]}")
mckpt("verify", out, "--assets", llama, "--against", real, "-q")
mckpt("verify", real, "--assets", llama, "--against", out, "-q")

# --spelling names states and options as it names their parameters, through every door that keeps a checkpoint's format.


def group_objects(folder):
    found = json.loads(mckpt("inspect", folder, "--json").stdout)["objects"]
    return sorted(o["name"] for o in found if o["name"].startswith("optimizer.param_to_group_meta."))


mine = {renamed(name, UNFUSED_NORMS): value for name, value in digests(real).items()}
theirs = sorted(renamed(name, UNFUSED_NORMS) for name in group_objects(real))
for source_of, words, names, told in (
    (real, "unfused-norms", mine, theirs),
    (states, "usual", digests(real), group_objects(real)),
):
    for command in (["reshard"], ["to-fsdp"]):
        out = place("given")
        mckpt("convert", *command, source_of, out, "--assets", llama, "--dp", 2, "--no-sync", "-q", "--spelling", words)
        expect_equal(f"{command} {words}", sorted(digests(out).items()), sorted(names.items()))
        expect_equal(f"{command} {words}: options", group_objects(out), told)
        mckpt("verify", out, "--assets", llama, "--against", real, "-q")
        mckpt("diff", out, real, "--assets", llama, "-q")

flat = place("flat")
mckpt("convert", "hf-to-fsdp", models.path("nemotron_h"), flat, "--dp", 2, "--no-sync", "-q")
grouped = place("grouped")
mckpt("convert", "group", flat, grouped, "--pattern", "[M-]M[*-]", "--spelling", "submodule-conv,unfused-norms", "--no-sync", "-q")
direct = place("direct")
mckpt("convert", "hf-to-fsdp", models.path("nemotron_h"), direct, "--dp", 2, "--no-sync", "-q", "--hybrid-pattern", "[M-]M[*-]",
      "--spelling", "submodule-conv,unfused-norms")
expect_equal("grouped and respelt", sorted(digests(grouped).items()), sorted(digests(direct).items()))
back = place("back")
mckpt("convert", "ungroup", grouped, back, "--spelling", "usual", "--no-sync", "-q")
expect_equal("and back", sorted(digests(back).items()), sorted(digests(flat).items()))

dense, apart = models.path("tiny_dense2"), respelt(os.path.join(DATA, "dcp", "torch_dist_pp2"), place("iter_0000004"), UNFUSED_NORMS)[0]
card = json.loads(mckpt("inspect", apart, "--json").stdout)["facts"]
expect(card.get("spelling") == "unfused-norms", f"{card}")
mckpt("verify", apart, "--assets", dense, "--against", os.path.join(DATA, "dcp", "torch_dist_pp2"), "-q")
usual = place("usual")
mckpt("convert", "to-fsdp", os.path.join(DATA, "dcp", "torch_dist_pp2"), usual, "--assets", dense, "--dp", 2, "--no-sync", "-q")
stacked = place("stacked")
mckpt("convert", "to-fsdp", apart, stacked, "--assets", dense, "--dp", 2, "--no-sync", "-q")
want = {renamed(name, UNFUSED_NORMS): value for name, value in digests(usual).items()}
expect(len(set(want) - set(digests(usual))) >= 4, "both norms of both layers have other names")
expect_equal("torch_dist", sorted(digests(stacked).items()), sorted(want.items()))

# ---- Final norms of early models with groups

hybrid = models.path("nemotron_h")
made = place("made")
mckpt("convert", "hf-to-fsdp", hybrid, made, "--dp", 2, "--no-sync", "-q")
FINAL = [(r"decoder\.final_norm\.weight", "decoder.final_layernorm.weight")]
early, count = respelt(os.path.join(made, "release"), place("release"), FINAL)
expect(count == 1, f"{count} final norms")
mckpt("verify", early, "--against", hybrid, "-q")
mckpt("verify", early, "--against", made, "-q")
out = place("out")
mckpt("convert", "reshard", early, out, "--dp", 3, "--no-sync", "-q")
expect("model.module.decoder.final_layernorm.weight" in digests(out), "the final norm keeps its name")
mckpt("export", out, place("back"), "--no-sync", "-q")
two, _ = respelt(os.path.join(made, "release"), place("release"), [(r"layers\.1\.mlp\.linear_fc1\.layer_norm_weight", "final_layernorm.weight")])
told = mckpt("export", two, place("no"), status=3).stderr
expect("MC2005" in told and "decoder.final_norm.weight or decoder.final_layernorm.weight" in told, told)

# ---- Two names at once, and two spellings in one model: a norm and a vector of the same size are made namesakes.

TWO = [(r"layers\.1\.mlp\.linear_fc1\.layer_norm_weight", "layers.0.norm.weight")]
both, _ = respelt(os.path.join(made, "release"), place("release"), TWO)
for command in (["export", both, place("no")], ["convert", "reshard", both, place("no"), "--dp", 1], ["verify", both, "--against", hybrid]):
    told = mckpt(*command, status=3).stderr
    for word in ("MC2005", "decoder.layers.0.mixer.in_proj.layer_norm_weight", "decoder.layers.0.norm.weight", "both"):
        expect(word in told, f"{command[0]}: nothing of '{word}': {told}")
MIXED = [(r"layers\.0\.mixer\.in_proj\.layer_norm_weight", "layers.0.norm.weight")]
mixed, _ = respelt(os.path.join(made, "release"), place("release"), MIXED)
told = mckpt("export", mixed, place("no"), status=3).stderr
for word in ("MC2005", "decoder.layers.2.mixer.in_proj.layer_norm_weight", "decoder.layers.0.norm.weight"):
    expect(word in told, f"mixed: nothing of '{word}': {told}")

# ---- Words that mean nothing to a model

for args in (
    ["convert", "hf-to-fsdp", models.path("qwen3_moe"), place("no"), "--spelling", "submodule-conv"],
    ["ls", models.path("qwen3_moe"), "--as", "megatron", "--spelling", "submodule-conv"],
):
    told = mckpt(*args, status=2).stderr
    expect("--spelling submodule-conv" in told and "no parameters" in told, told)
told = mckpt("ls", hybrid, "--as", "fsdp", "--spelling", "submodule-conv,dots", status=2).stderr
expect("submodule-conv, unfused-norms or usual" in told and "dots" in told, told)
told = mckpt("convert", "reshard", flat, place("no"), "--spelling", "usual,submodule-conv", status=2).stderr
expect("a word alone" in told, told)
for args, says in (
    (["reshard", real, place("no"), "--assets", llama, "--spelling", "submodule-conv"], "no parameters"),
    (["reshard", real, place("no"), "--any-model", "--spelling", "unfused-norms"], "needs the tables"),
    (["reshard", os.path.join(DATA, "dcp", "fsdp2"), place("no"), "--spelling", "usual"], "with them its spelling"),
    (["reshard", os.path.join(DATA, "dcp", "torch_dist_pp2"), place("no"), "--assets", dense, "--spelling", "submodule-conv"], "one name for a convolution"),
):
    told = mckpt("convert", *args, status=2).stderr
    expect(says in told, f"{args}: {told}")

# ---- The layers of MTP in files of ranks: what a real rank of 0.19 held (test_data/golden/ranks), under the names of 0.16

for model in ("qwen3_next_mtp", "qwen3_5_mtp"):
    lines = [line.split() for line in sections(f"ranks/{model}.tp1_cp1_ep1.txt")[1][0]]
    usual = {f"mp_rank_00/model.{name}": (dtype, [int(n) for n in shape.split("x")], sha) for name, dtype, shape, sha in lines}
    old = {name.replace(".mtp_model_layer.", ".transformer_layer."): value for name, value in usual.items()}
    expect(len(set(old) - set(usual)) >= 8, f"{model}: layers of MTP: {sorted(set(old) - set(usual))}")
    for words, want, note in (([], usual, "writes transformer_layer"), (["--spelling", "mtp-transformer-layer"], old, "up to 0.16")):
        out = place("ranks")
        said = mckpt("convert", "to-pt", models.path(model), out, "--params-dtype", "auto", "--no-sync", *words).stderr
        expect("MTP     its layers are named" in said and note in said, f"{model} {words}: {said}")
        expect_equal(f"{model} {words}", sorted(digests(out).items()), sorted(want.items()))
        mckpt("verify", out, "--against", models.path(model), "--params-dtype", "auto", "-q")
for args, says in (
    (["to-pt", models.path("qwen3_moe"), place("no")], "no parameters"),
    (["hf-to-fsdp", models.path("qwen3_5_mtp"), place("no")], "only files of ranks"),
    (["to-mcore", models.path("qwen3_5_mtp"), place("no")], "one name for the layers of MTP"),
):
    told = mckpt("convert", *args, "--spelling", "mtp-transformer-layer", status=2).stderr
    expect(says in told and "--spelling mtp-transformer-layer" in told, f"{args[0]}: {told}")
finish(900)
