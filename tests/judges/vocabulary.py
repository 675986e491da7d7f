"""The rows of the vocabulary follow the grid: rows of zeros are added where they do not divide, in the weights and in both moments, and
padding can be taken away again. torch writes the first checkpoint, says what padding is, and reads every result.

    517 rows --tp 4--> 520 rows --tp 1--> 520 rows --tp 1, 517 rows--> every bit as at first
"""

import json
import os
import sys
import tempfile

from mckpt_tests.checks import expect_equal, failures, need
from mckpt_tests.models import GOLDEN, Models, make_model
from mckpt_tests.program import run_mckpt

need("torch", "numpy")
import hashlib  # noqa: E402

import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from mckpt_tests.ranks import load_whole  # noqa: E402

MODEL, STATE = "model.module.", "optimizer.state.module.module.module."
VOCABULARY = ("embedding.word_embeddings.weight", "output_layer.weight")
models = Models()
scratch = tempfile.TemporaryDirectory(prefix="mckpt_vocabulary_")


def same(what, got, want):
    expect_equal(what, [got], [want])


def path(name):
    return os.path.join(scratch.name, name)


def mckpt(*args, status=0):
    run = run_mckpt(*args)
    same(" ".join(map(str, args)) + ": " + run.stderr, run.returncode, status)
    return run


def saved(name, weights, states, args):
    """A checkpoint of one process of torch, with a state of the optimizer beside every weight."""
    dcp.save(
        {
            **{MODEL + key: t for key, t in weights.items()},
            **{STATE + key: t for key, t in states.items()},
            "args": args,
            "iteration": 3,
            "checkpoint_version": 3.0,
        },
        storage_writer=dcp.FileSystemWriter(path(name), sync_files=False),
        no_dist=True,
    )
    return path(name)


def weights_and_args(source, name, *flags):
    mckpt("convert", "hf-to-fsdp", source, path(name), "--params-dtype", "auto", "--dtype", "fp32", "--no-sync", *flags)
    loaded = load_whole(os.path.join(path(name), "release"))
    return {key.removeprefix(MODEL): t for key, t in loaded.items() if key.startswith(MODEL)}, loaded["args"]


def moments_of(weights):
    """Every item of a moment has a value of its own."""
    states, at = {}, 1
    for key, t in weights.items():
        for kind, sign in (("exp_avg", 1), ("exp_avg_sq", -1)):
            states[f"{key}.{kind}"] = sign * torch.arange(at, at + t.numel(), dtype=torch.float32).reshape(t.shape)
        at += t.numel()
    assert at < 1 << 24
    return states


def is_vocabulary(key):
    return any(key == name or key.startswith(name + ".") for name in VOCABULARY)


def with_rows(tensors, rows):
    """The vocabulary as torch makes it: the first rows, and zeros behind them."""
    out = {}
    for key, t in tensors.items():
        if is_vocabulary(key):
            t = torch.cat([t[:rows], torch.zeros(max(0, rows - t.shape[0]), *t.shape[1:], dtype=t.dtype)])
        out[key] = t
    return out


def reshard(source, name, assets, *flags):
    run = mckpt("convert", "reshard", source, path(name), "--assets", assets, "--no-sync", "--json", *flags)
    return os.path.join(path(name), "iter_0000003" if os.path.isdir(path(name) + "/iter_0000003") else "release"), run


def check(what, folder, weights, states, rows):
    got = load_whole(folder)
    want = {MODEL + key: t for key, t in with_rows(weights, rows).items()}
    want |= {STATE + key: t for key, t in with_rows(states, rows).items()}
    tensors = {key: t for key, t in got.items() if isinstance(t, torch.Tensor)}
    same(f"{what}: names", sorted(tensors), sorted(want))
    unlike = [key for key, t in want.items() if key in tensors and (tensors[key].shape != t.shape or not torch.equal(tensors[key], t))]
    same(f"{what}: tensors", unlike, [])
    same(f"{what}: args", got["args"].padded_vocab_size, rows)


def account(run):
    numbers = json.loads(run.stdout)
    return {name: numbers[name] for name in ("padded", "unpadded", "dropped", "invented")}


def go_over(name, assets, vocab, tied, tp, rows):
    """One rank -> tp ranks -> one rank, and back to the rows of the model."""
    weights, args = weights_and_args(assets, f"{name}.made")
    same(f"{name}: as made", args.padded_vocab_size, vocab)
    states = moments_of(weights)
    start = saved(f"{name}.start", weights, states, args)
    tensors = 3 * (1 if tied else 2)  # a weight and its two moments

    folder, run = reshard(start, f"{name}.wide", assets, "--tp", tp, "--dp", 2)
    same(f"{name}: account", account(run), {"padded": tensors, "unpadded": 0, "dropped": 0, "invented": 0})
    added = "1 row of zeros is" if rows - vocab == 1 else f"{rows - vocab} rows of zeros are"
    same(f"{name}: note", f"{added} added, for tp {tp}" in run.stderr, True)
    wide = load_whole(folder)
    for key, t in with_rows({**weights, **states}, rows).items():
        front = STATE if key.endswith(("exp_avg", "exp_avg_sq")) else MODEL
        if is_vocabulary(key):
            same(f"{name}: {key}", torch.equal(wide[front + key], t), True)
    same(f"{name}: args", wide["args"].padded_vocab_size, rows)
    mckpt("verify", path(f"{name}.wide"), "-q")
    mckpt("verify", path(f"{name}.wide"), "--against", start, "--assets", assets, "-q")
    mckpt("verify", start, "--against", path(f"{name}.wide"), "--assets", assets, "-q")

    # The rows stay where they divide; the fused tensors are again one rank's.
    folder, run = reshard(path(f"{name}.wide"), f"{name}.kept", assets, "--tp", 1, "--dp", 3)
    same(f"{name}: kept", account(run), {"padded": 0, "unpadded": 0, "dropped": 0, "invented": 0})
    check(f"{name}: kept", folder, weights, states, rows)

    folder, run = reshard(path(f"{name}.wide"), f"{name}.back", assets, "--tp", 1, "--dp", 3, "--vocab-size", vocab)
    same(f"{name}: back", account(run), {"padded": 0, "unpadded": tensors, "dropped": 0, "invented": 0})
    same(f"{name}: note back", f"the last {rows - vocab} {'is' if rows - vocab == 1 else 'are'} padding" in run.stderr, True)
    check(f"{name}: back", folder, weights, states, vocab)


def run_with_padding_of_its_own(assets):
    """Padding that a run of two ranks trained, as the moments of a real run have it: it stays as long as there is room."""
    weights, args = weights_and_args(assets, "own.made")
    weights = with_rows(weights, 518)
    for key in VOCABULARY:
        weights[key][517] = torch.arange(1.0, 97.0)
    states = moments_of(weights)  # of padding too
    args.padded_vocab_size = 518
    start = saved("own.start", weights, states, args)
    for flags, rows, numbers in (
        (("--tp", 1, "--dp", 3), 518, {"padded": 0, "unpadded": 0}),
        (("--tp", 1, "--vocab-size", 520), 520, {"padded": 6, "unpadded": 0}),
        (("--tp", 1, "--dp", 2, "--vocab-size", 517), 517, {"padded": 0, "unpadded": 6}),
        (("--tp", 1, "--vocab-size", "keep"), 518, {"padded": 0, "unpadded": 0}),
    ):
        folder, run = reshard(start, f"own.{rows}.{len(flags)}.{flags[-1]}", assets, *flags)
        same(f"own {flags}", account(run), numbers | {"dropped": 0, "invented": 0})
        check(f"own {flags}", folder, weights, states, rows)
    # 518 rows do not divide by 4: the family's rule gives the rows, and the run's own row stays.
    folder, _ = reshard(start, "own.four", assets, "--tp", 4)
    four = load_whole(folder)[MODEL + VOCABULARY[0]]
    same("own: tp 4", torch.equal(four, with_rows(weights, 520)[VOCABULARY[0]]), True)


def like_a_real_run(assets):
    """Two ranks' embedding of a real run: weights and boxes of the checkpoint that it saved."""
    weights, args = weights_and_args(assets, "real.made")
    start = saved("real.start", weights, {}, args)
    folder, _ = reshard(start, "real.two", assets, "--tp", 2, "--dp", 2)
    metadata = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
    got = load_whole(folder)
    with open(os.path.join(GOLDEN, "saved", "qwen3_dense.tp2_cp1_ep1_world4.txt")) as f:
        lines = [line.split() for line in f if line.startswith(VOCABULARY)]
    same("real: tensors", [line[0] for line in lines], list(VOCABULARY))
    for key, dtype, shape, digest, boxes in lines:
        t = got[MODEL + key]
        same(f"real: {key}", [str(t.dtype), "x".join(map(str, t.shape))], [f"torch.{dtype}", shape])
        same(f"real: {key} bytes", hashlib.sha256(t.contiguous().numpy().tobytes()).hexdigest(), digest)
        own = ["+".join("x".join(map(str, part)) for part in (c.offsets, c.sizes)) for c in metadata[MODEL + key].chunks]
        same(f"real: {key} boxes", ";".join(sorted(own)), boxes)


def refused(assets):
    start = path("qwen3_dense.start")
    base = ["convert", "reshard", start, path("never"), "--assets", assets]
    for flags, status, code, words in (
        (("--tp", 2, "--vocab-size", "keep"), 4, "MC2006", "a multiple of 2 rows"),
        (("--tp", 2, "--vocab-size", 519), 4, "MC2006", "a multiple of 2"),
        (("--tp", 1, "--vocab-size", 516), 4, "MC2006", "at least 517"),
        (("--tp", 1, "--vocab-size", "some"), 2, "MC0001", "--vocab-size"),
    ):
        run = mckpt(*base, *flags, status=status)
        same(f"refused {flags}: {run.stderr}", code in run.stderr and words in run.stderr, True)
    run = mckpt("convert", "reshard", start, path("never"), "--any-model", "--source-tp", 1, "--vocab-size", 520, status=2)
    same("any model: " + run.stderr, "MC0001" in run.stderr and "--assets" in run.stderr, True)
    same("nothing is written", os.path.exists(path("never")), False)


def main():
    go_over("qwen3_dense", models.path("qwen3_dense"), 517, False, 4, 520)
    go_over("tiny_llama1", models.path("tiny_llama1"), 37, True, 2, 38)
    odd = make_model(path("odd"), layers=2, hidden=48, heads=6, kv=3, head_dim=8, ffn=96, vocab=77)
    go_over("odd", odd, 77, False, 3, 78)
    run_with_padding_of_its_own(models.path("qwen3_dense"))
    like_a_real_run(models.path("qwen3_dense"))
    refused(models.path("qwen3_dense"))
    sys.exit(1 if failures else 0)


main()
