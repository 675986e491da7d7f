"""Every rank of the golden Megatron-FSDP runs as `mckpt ls --as fsdp` lists it: keys in the order of the save, types,
global shapes, digests and boxes of the local shards; and the saved checkpoints as wholes.
"""
import math
import os

from mckpt_tests.checks import expect_equal, fail, in_parallel
from mckpt_tests.golden import finish, is_expert_bias, listing, run_flags, sections, text
from mckpt_tests.models import GOLDEN, Models

PREFIX = "model.module."
models = Models()


def line_of(row):
    box = "nothing"
    if row["chunks"]:
        (chunk,) = row["chunks"]
        box = f"{text(chunk['offsets'])} {text(chunk['sizes'])}"
    return f"{row['name'].removeprefix(PREFIX)} {row['dtype']} {text(row['shape'])} {row['sha256']} {box}"


def check_rank(tag, model, flags, rank, lines):
    rows = listing(models.path(model), "--as", "fsdp", "--rank", rank, *flags)
    if isinstance(rows, str):
        return fail(f"{tag} rank {rank}: {rows}")
    got = [line_of(row) for row in rows]
    if model == "gpt_oss" and "--ep" in flags:
        # The real save numbers expert biases from 0 on every expert-parallel rank, so that they collide; mckpt
        # numbers them like the weights. Everything else is equal.
        ours, theirs = ([line for line in side if is_expert_bias(line)] for side in (got, lines))
        expect_equal(f"{tag} rank {rank} biases", sorted(l.split()[1:] for l in ours), sorted(l.split()[1:] for l in theirs))
        got, lines = sorted(set(got) - set(ours)), sorted(set(lines) - set(theirs))
    expect_equal(f"{tag} rank {rank}", got, lines)


def depends_on_tp(key):
    """Mamba's fused tensors are stored rank by rank."""
    return ".mixer.in_proj.weight" in key or ".mixer.conv1d_" in key


def stored_boxes(model, flags):
    """key -> the boxes that any rank of the run holds, each once."""
    grid = {flag: int(size) for flag, size in zip(flags[::2], flags[1::2]) if flag in ("--tp", "--cp", "--dp")}
    boxes = {}
    for rank in range(math.prod(grid.values())):
        for row in listing(models.path(model), "--as", "fsdp", "--rank", rank, *flags, digest=False):
            held = boxes.setdefault(row["name"].removeprefix(PREFIX), set())
            held |= {f"{text(c['offsets'])}+{text(c['sizes'])}" for c in row["chunks"]}
    return {key: ";".join(sorted(held)) for key, held in boxes.items()}


def check_saved_boxes(tag, model, lines):
    head, _ = sections(f"fsdp/{tag}")
    got = stored_boxes(model, run_flags(head[1]))
    want = {line.split()[0]: line.split()[4] for line in lines}
    keys = sorted(key for key in want if not (model == "gpt_oss" and is_expert_bias(key)))
    expect_equal(f"{tag}: boxes", [f"{k} {got.get(k)}" for k in keys], [f"{k} {want[k]}" for k in keys])


def check_saved(tag, model, lines):
    """One rank that holds everything has the whole tensors of any run."""
    dtype = [] if "nomain" in tag else ["--dtype", "fp32"]
    rows = listing(models.path(model), "--as", "fsdp", *dtype)
    got = {r["name"].removeprefix(PREFIX): f"{r['dtype']} {text(r['shape'])} {r['sha256']}" for r in rows}
    want = {line.split()[0]: " ".join(line.split()[1:4]) for line in lines}
    if model == "gpt_oss":
        # Half of the biases are lost: the file has the biases of the upper experts under the numbers of the
        # lower.
        lost = [k for k in got if is_expert_bias(k)]
        found = {k: want.pop(k) for k in lost if k in want}
        expect_equal(f"{tag}: biases in the file", [len(found) * 2], [len(lost)])
        for key, value in found.items():
            stem, number = key.rsplit("bias", 1)
            expect_equal(f"{tag}: {key}", [value], [got[f"{stem}bias{int(number) + 8}"]])
        got = {k: v for k, v in got.items() if k not in lost}
    padded = {k for k, v in want.items() if k in got and "word_embeddings" in k and v.split()[1] != got[k].split()[1]}
    padded |= {k for k in want if padded and k.startswith("output_layer")}
    skip = padded | {k for k in want if "tp2" in tag and depends_on_tp(k)}
    expect_equal(f"{tag}: keys", sorted(got), sorted(want))
    keys = sorted(set(want) - skip)
    expect_equal(tag, [f"{k} {got[k]}" for k in keys], [f"{k} {want[k]}" for k in keys])


def expect_refused(code, model, *flags):
    answer = listing(models.path(model), "--as", "fsdp", "--vocab-size", "auto", *flags)
    expect_equal(f"{model} {flags}", [code in answer if isinstance(answer, str) else "accepted"], [True])


work = []
for name in sorted(os.listdir(os.path.join(GOLDEN, "fsdp"))):
    head, ranks = sections(f"fsdp/{name}")
    model, flags = head[0].split()[1], run_flags(head[1])
    work += [(check_rank, (name, model, flags, rank, lines)) for rank, lines in enumerate(ranks)]
for name in sorted(os.listdir(os.path.join(GOLDEN, "saved"))):
    head, _ = sections(f"saved/{name}")
    work += [(check, (name, head[0].split()[1], head[1:])) for check in (check_saved, check_saved_boxes)]
in_parallel(lambda check, args: check(*args), work)
# Where the real run stops, mckpt does: a shard that would begin inside a row, parts without ranges, stages.
expect_refused("MC0204", "deepseek_v3", "--ep", 2, "--dp", 4)
expect_refused("MC0203", "qwen3_dense", "--dp", 2, "--strategy", "no_shard")
expect_refused("MC0203", "qwen3_dense", "--pp", 3)
finish(8916, "fsdp", "saved")
