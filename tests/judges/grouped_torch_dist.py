"""torch_dist checkpoints of hybrid models with groups: `convert to-mcore --hybrid-pattern` writes the keys, shapes and boxes that ranks of
the real HybridStack had (test_data/hybrid/layer_keys.json, pull request 4943), and every command reads such a checkpoint as the model that
it is of. Where a tensor goes is computed here, from the brackets of the pattern, and not by mckpt.
"""

import glob
import json
import os
import re
import tarfile
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.folders import difference
from mckpt_tests.hybrid_models import hybrid_model
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

models = Models(only=("nemotron_h", "nemotron_h_moe"))
scratch = tempfile.TemporaryDirectory(prefix="mckpt_grouped_")


def place(name):
    return os.path.join(tempfile.mkdtemp(dir=scratch.name), name)


def mckpt(*args, status=0):
    run = run_mckpt(*args, timeout=60)
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout[-300:]}{run.stderr[-900:]}")
    return run


def rows(folder):
    return {row["name"]: row for row in json.loads(mckpt("ls", folder, "--json", "--digest").stdout)["tensors"]}


def digests(folder):
    return {name: (row["dtype"], row["shape"], row["sha256"]) for name, row in rows(folder).items()}


def pattern_in(folder):
    args = mckpt("inspect", folder, "--args").stdout
    return re.search(r"hybrid_layer_pattern: '?([^'\n]*)", args).group(1)


# ---- What ranks of the real HybridStack had

def model_of(pattern):
    return hybrid_model(pattern, place("model"))


def recorded(name):
    """By key, the shape; and the names of objects."""
    with open(os.path.join(DATA, "hybrid", "layer_keys.json")) as f:
        ranks = [m for m in json.load(f)["models"] if m["name"] == name]
    tensors, objects = {}, set()
    for rank in ranks:
        for _, key, shape, offset, *size in rank["keys"]:
            if size:
                tensors[key] = shape
            else:
                objects.add(f"{key}/shard_{'.'.join(map(str, offset))}_{'.'.join(map(str, shape))}")
    return ranks[0]["pattern"], tensors, objects


pattern, tensors, objects = recorded("k_pr_pp2")
made, recorded_model = place("made"), model_of(pattern)
mckpt("convert", "to-mcore", recorded_model, made, "--hybrid-pattern", pattern.replace("|", ""), "--no-sync", "-q")
found = {name: row["shape"] for name, row in rows(made).items()}
extra = {name for name in found if ".shared_experts." in name or name.endswith(".router.expert_bias")}
expect(len(tensors) > 30 and len(extra) == 3, f"{len(tensors)} recorded tensors, and {extra}")
expect_equal("recorded tensors", sorted((n, s) for n, s in found.items() if n not in extra), sorted(tensors.items()))
written = {o["name"] for o in json.loads(mckpt("inspect", made, "--json").stdout)["objects"] if "_extra_state" in o["name"]}
expect(not any(o.startswith("output_layer.") for o in written), "an output layer of groups has no extra state")
# The stages of the recorded run: which rank writes which key, under which name the rank has it, and the same values.
staged = place("staged")
mckpt("convert", "to-mcore", recorded_model, staged, "--hybrid-pattern", pattern, "--pp", 2, "--no-sync", "-q")
expect_equal("staged", sorted(digests(staged).items()), sorted(digests(made).items()))
of_file = {}
for name, row in rows(staged).items():
    of_file.setdefault(row["chunks"][0]["rank"], set()).add(name)
with open(os.path.join(DATA, "hybrid", "layer_keys.json")) as f:
    stages = {m["rank"]: m["keys"] for m in json.load(f)["models"] if m["name"] == "k_pr_pp2"}
expect(sorted(stages) == [0, 1], "the record has two ranks")
for rank, keys in stages.items():
    real = {key for _, key, _, _, *size in keys if size}
    expect_equal(f"keys of stage {rank}", sorted(of_file[rank] - extra), sorted(real))
    held = mckpt("ls", recorded_model, "--as", "megatron", "--pp", 2, "--rank", rank, "--hybrid-pattern", pattern, "-q").stdout.split()
    # Experts of the recorded run are modules of their own.
    real = {re.sub(r"local_experts\.(\d+)\.(linear_fc\d\.weight)", r"\2\1", name) for name, _, _, _, *size in keys if size}
    own = {name for name in held if ".shared_experts." not in name and not name.endswith(".router.expert_bias")}
    expect_equal(f"names on stage {rank}", sorted(own), sorted(real))
# Attention itself has a state in the record's stand-ins, and none in real runs; a final norm has one in both.
missing = {o for o in objects - written if ".core_attention." not in o}
expect(not missing, f"extra states that the real run has: {sorted(missing)}")
told = mckpt("convert", "to-mcore", model_of("[MM]"), place("no"), "--hybrid-pattern", "[MM]", status=2).stderr
expect("MC0205" in told and "two layers of a group would have the same names" in told, told)

# ---- The same values under the names that the brackets say


def names_in_groups(pattern):
    """From the key of a flat model to the key of one with these groups."""
    logical = {}
    for number, item in enumerate(re.findall(r"\[[^]]*\]|[^|\[\]]", pattern)):
        for _ in item.strip("[]"):
            logical[len(logical)] = number

    def of(key):
        key = re.sub(r"decoder\.layers\.(\d+)\.", lambda m: f"decoder.layers.{logical[int(m[1])]}.", key)
        return key.replace("decoder.final_norm.", "decoder.final_layernorm.")

    return of


def ends_between_groups(pattern, layers):
    """Whether so many layers are whole items."""
    counts = [len(item.strip("[]")) for item in re.findall(r"\[[^]]*\]|[^|\[\]]", pattern)]
    return layers in [sum(counts[:n]) for n in range(len(counts))]


VOCAB = ["--vocab-size", 520]  # of every grid
GRIDS = (["--dp", 1, *VOCAB], ["--tp", 2, "--dp", 2, *VOCAB])
for model, patterns in (("nemotron_h", ("[M-]M[*-]", "M[-M*]-", "[M]-[M*-]")), ("nemotron_h_moe", ("[ME][*]M[E]", "M[E][*]ME"))):
    source = models.path(model)
    for grid in GRIDS:
        flat = place("flat")
        mckpt("convert", "to-mcore", source, flat, *grid, "--no-sync", "-q")
        for pattern in patterns:
            said = f"{model} {pattern} {grid}"
            made, name = place("made"), names_in_groups(pattern)
            mckpt("convert", "to-mcore", source, made, *grid, "--hybrid-pattern", pattern, "--no-sync", "-q")
            want = sorted((name(key), value) for key, value in digests(flat).items())
            expect_equal(said, sorted(digests(made).items()), want)
            expect(pattern_in(made) == pattern, f"{said}: args say {pattern_in(made)}")
            renamed = place("renamed")
            mckpt("convert", "group", flat, renamed, "--pattern", pattern, "--no-sync", "-q")
            expect_equal(f"{said}: group", sorted(digests(renamed).items()), want)

            # Sources of every command.
            for start in (made, renamed):
                mckpt("verify", start, "-q")
                mckpt("verify", start, "--against", source, "-q")
                mckpt("verify", start, "--assets", source, "-q")
                back = place("back")
                mckpt("export", start, back, "--no-sync", "-q")
                expect(not difference(back, source, ("mckpt_manifest.json",)), f"{said}: exported")
            # Two stages, which end where a group does.
            first = next(n for n in (1, 2) if ends_between_groups(pattern, n))
            for grid_of_result in (["--tp", 4], ["--pp", 2, "--first-stage-layers", first]):
                again = place("again")
                mckpt("convert", "reshard", made, again, *grid_of_result, "--no-sync", "-q")
                expect_equal(f"{said}: reshard {grid_of_result}", sorted(digests(again).items()), want)
                expect(pattern_in(again) == pattern, f"{said}: after reshard {pattern_in(again)}")
            fsdp, direct = place("fsdp"), place("direct")
            mckpt("convert", "to-fsdp", made, fsdp, "--dp", 2, "--no-sync", "-q")
            mckpt("convert", "hf-to-fsdp", source, direct, "--dp", 2, "--hybrid-pattern", pattern, "--params-dtype", "none", *VOCAB,
                  "--no-sync", "-q")
            expect_equal(f"{said}: to-fsdp", sorted(digests(fsdp).items()), sorted(digests(direct).items()))
            expect(pattern_in(fsdp) == pattern, f"{said}: in fsdp_dtensor {pattern_in(fsdp)}")
            core = place("core")
            mckpt("convert", "to-mcore", fsdp, core, *grid, "--no-sync", "-q")
            expect_equal(f"{said}: to-fsdp and back", sorted(digests(core).items()), want)
            ranks, plain = place("ranks"), place("plain")
            mckpt("convert", "to-pt", made, ranks, *grid, "--no-sync", "-q")
            mckpt("convert", "to-pt", flat, plain, *grid, "--no-sync", "-q")
            expect_equal(f"{said}: to-pt", sorted(digests(ranks).items()), sorted(digests(plain).items()))

# ---- A real run with its optimizer, whose layers get the names of a hybrid model: the GPT model is in it still

with tarfile.open(os.path.join(DATA, "megatron_runs", "dense.tar.xz")) as tar:
    tar.extractall(scratch.name, filter="data")
run = os.path.join(scratch.name, "dense")
(real,) = glob.glob(os.path.join(run, "torch_dist", "iter_*"))
assets = ["--assets", os.path.join(run, "hf")]
for pattern in ("[*-]" * 5, "*-" * 5):
    start = place("start")
    mckpt("convert", "gpt-to-hybrid", real, start, "--pattern", pattern, "--no-sync", "-q")
    mckpt("verify", start, "--against", real, *assets, "-q")
    mckpt("export", start, place("model"), *assets, "--no-sync", "-q")
    for command in (["reshard", "--tp", 2], ["to-fsdp", "--dp", 2]):
        out = place("out")
        mckpt("convert", command[0], start, out, *assets, *command[1:], "--no-sync", "-q")
        mckpt("verify", out, *assets, "-q")
        text = mckpt("verify", out, "--against", real, *assets).stdout
        expect("192 tensors" in text, f"{pattern} {command}: {text}")
        told = mckpt("inspect", out, "--args").stdout
        expect("hybrid_layer_pattern: None" in told and "num_layers: 5\n" in told, f"{pattern} {command}: the args of the result")

# ---- A pattern with pipes cuts the stages itself, also several chunks of each and empty ones

hybrid = models.path("nemotron_h")
whole = place("whole")
mckpt("convert", "to-mcore", hybrid, whole, "--hybrid-pattern", "[M-]M[*-]", "--no-sync", "-q")
FIRST, SECOND, THIRD = "decoder.layers.0.", "decoder.layers.1.", "decoder.layers.2."
for pattern, pp, rank_of in (
    ("[M-]|M[*-]", 2, {FIRST: 0, SECOND: 1, THIRD: 1}),
    ("[M-]M|[*-]", 2, {FIRST: 0, SECOND: 0, THIRD: 1}),
    ("[M-]|M|[*-]|", 2, {FIRST: 0, SECOND: 1, THIRD: 0}),
    ("|[M-]|M[*-]", 3, {FIRST: 1, SECOND: 2, THIRD: 2}),
):
    out = place("cut")
    mckpt("convert", "to-mcore", hybrid, out, "--hybrid-pattern", pattern, "--pp", pp, "--no-sync", "-q")
    expect_equal(f"{pattern}: values", sorted(digests(out).items()), sorted(digests(whole).items()))
    ranks = {(name[:17], row["chunks"][0]["rank"]) for name, row in rows(out).items() if name.startswith("decoder.layers.")}
    expect_equal(f"{pattern}: ranks of layers", sorted(ranks), sorted(rank_of.items()))
    text = mckpt("inspect", out, "--args").stdout
    chunks = len(pattern.split("|")) // pp
    expect((f"virtual_pipeline_model_parallel_size: {chunks}\n" in text) == (chunks > 1), f"{pattern}: {text}")
    expect("num_layers_per_virtual" not in text, f"{pattern}: {text}")
    back = place("one")
    mckpt("convert", "reshard", out, back, "--pp", 1, "--no-sync", "-q")
    expect_equal(f"{pattern}: on one stage", sorted(digests(back).items()), sorted(digests(whole).items()))

# ---- Refusals

for args, status, says in (
    ([hybrid, "--hybrid-pattern", "[M-]M[*-]", "--pp", 5], 4, "stage 0 ends with layer 0, and the group [M-] has layers 0 to 1"),
    ([whole, "--pp", 5], 4, "a group is on one stage: [M-] with layers 0 to 1, [*-] with layers 3 to 4"),
    ([hybrid, "--hybrid-pattern", "[M-]|M|[*-]", "--pp", 2], 4, "3 segments in [M-]|M|[*-]"),
    ([hybrid, "--hybrid-pattern", "[M-]|M[*-]", "--pp", 2, "--last-stage-layers", 3], 2, "the pattern cuts the layers of the stages itself"),
    ([hybrid, "--hybrid-pattern", "[M-]|M[*-]", "--pp", 2, "--vpp", 2], 2, "expected --vpp 1: 2 segments on 2 stages"),
    ([hybrid, "--hybrid-pattern", "[M-]M[*-]", "--pp", 2, "--vpp", 2], 2, "a pattern without | has one chunk"),
    ([hybrid, "--hybrid-pattern", "[M-]M[-*]"], 2, "the layers of the pattern are not those of the model"),
    ([hybrid, "--hybrid-pattern", "[M-]M[*-]", "--layers", "stacked"], 2, "never one tensor"),
    ([whole, "--hybrid-pattern", "[M-]M*-"], 2, "the pattern has other layers or groups than the source"),
):
    told = mckpt("convert", "to-mcore", args[0], place("no"), *args[1:], status=status).stderr
    expect(says in told, told)
told = mckpt("ls", hybrid, "--as", "megatron", "--pp", 2, "--hybrid-pattern", "[M-]|M|[*-]|", status=2).stderr
expect("several chunks of layers" in told, told)
finish(500)
