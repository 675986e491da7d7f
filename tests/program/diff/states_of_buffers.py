"""States of an optimizer that are stretches of the buffers of one run (distrib_optim.pt, dp_reshardable, dp_zero_gather_scatter) are compared whether a config is
known or not: a state that differs, or that one side lacks, is a difference in both orders, and nothing is refused that can be compared."""
import os
import shutil
import tarfile
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch")
import torch  # noqa: E402

RANKS, BUCKETS, GATHERED = "M_pt_tp2dp2_w4", "M_dp2_w2", "M_gather_dp2_w2"
BUCKET, STATE = "bucket_idx_0.exp_avg", "mp_rank_01/distrib_optim.pt:"


def check(what, status, *args, words=(), lacks=()):
    run = run_mckpt(*args)
    text = run.stdout + run.stderr
    expect(run.returncode == status and all(w in text for w in words) and not any(w in text for w in lacks), f"{what}: {args}: {run.returncode} {text[-1200:]}")


def change(folder):
    """Adds 1 to one item of the first momentum of one rank's file."""
    path = os.path.join(folder, "iter_0000005", "mp_rank_01", "distrib_optim.pt")
    states = torch.load(path, weights_only=False)
    kinds = next(v for k, v in states[0].items() if "bfloat16" in str(k))
    kinds["exp_avg"][5] += 1
    torch.save(states, path)


with tempfile.TemporaryDirectory() as scratch:
    with tarfile.open(os.path.join(DATA, "newest", "M.tar.xz")) as archive:
        archive.extractall(scratch, members=[m for m in archive if m.name.split("/")[0] in (RANKS, BUCKETS, GATHERED)], filter="data")
    def at(case, part):
        return os.path.join(scratch, case, part)
    def made(what, case, *words):
        out = os.path.join(scratch, f"{case}_{what}")
        run = run_mckpt("convert", what, at(case, "ckpt"), out, "--assets", at(case, "assets"), "-q", "--no-sync", *words)
        expect(run.returncode == 0, f"{what} {case}: {run.stderr}")
        return out

    one, other = at(RANKS, "ckpt"), os.path.join(scratch, "other")
    shutil.copytree(one, other)
    change(other)
    for known in ((), ("--assets", at(RANKS, "assets"))):
        for a, b in ((one, other), (other, one)):
            check("a changed state", 1, "diff", a, b, *known, words=(STATE, "exp_avg"))
            check("a changed state", 1, "diff", a, b, *known, "--json", words=(STATE, '"equal": false'))
            check("a changed state", 1, "verify", a, "--against", b, *known, words=(STATE,))
            check("a changed state", 1, "verify", a, "--against", b, *known, "--json", words=(STATE, '"equal": false'))
        check("the same", 0, "diff", one, one, *known, words=("equal: all 144 tensors",))
        check("the same", 0, "verify", one, "--against", one, *known)
    weights = made("to-pt", RANKS, "--tp", "2")
    for a, b in ((one, weights), (weights, one)):
        check("states of one side", 1, "diff", a, b, words=(STATE,))
    check("a conversion of weights", 0, "verify", weights, "--against", one)
    # Without states the two are compared by the names of parameters, and what has no place there is named.
    bare = os.path.join(scratch, "bare")
    shutil.copytree(one, bare, ignore=shutil.ignore_patterns("distrib_optim.pt"))
    random = "mp_rank_00/rng_state.0.torch_rng_state"
    for verb in (("diff", bare), ("verify", bare, "--against")):
        check("random states", 0, *verb, bare, "--assets", at(RANKS, "assets"), words=(f"not compared: {random}", "and 17 more (of neither the model nor the optimizer)"))
    check("a run has states", 1, "verify", one, "--against", weights, words=(STATE.replace("01", "00"),))

    for case, word in ((BUCKETS, BUCKET), (GATHERED, "param_state/shard")):
        run, weights = at(case, "ckpt"), made("reshard", case, "--tp", "1", "--weights-only")
        for known in ((), ("--assets", at(case, "assets"))):
            check("the same", 0, "diff", run, run, *known, words=("equal: all",))
            check("the same", 0, "verify", run, "--against", run, *known)
            for a, b in ((run, weights), (weights, run)):
                check("states of one side", 1, "diff", a, b, *known, "-v", words=(word,))
            check("a conversion of weights", 0, "verify", weights, "--against", run, *known, "--weights-only")
    check("lost states", 1, "verify", os.path.join(scratch, f"{BUCKETS}_reshard"), "--against", at(BUCKETS, "ckpt"), words=(BUCKET,))
    check("lost states", 4, "verify", os.path.join(scratch, f"{GATHERED}_reshard"), "--against", at(GATHERED, "ckpt"), words=("MC3005",))
    # The one object of all states has no counterpart in another format, and diff has no --weights-only.
    fsdp = made("to-fsdp", GATHERED, "--weights-only", "--dp", "1")
    check("two formats", 4, "diff", fsdp, at(GATHERED, "ckpt"), words=("MC3005", "--weights-only of mckpt convert reshard"))
    fsdp = made("to-fsdp", BUCKETS, "--weights-only", "--dp", "1")
    for a, b in ((fsdp, at(BUCKETS, "ckpt")), (at(BUCKETS, "ckpt"), fsdp)):
        check("two formats", 1, "diff", a, b, words=(BUCKET,))
    check("two formats", 0, "verify", fsdp, "--against", at(BUCKETS, "ckpt"), "--weights-only")
finish(42)
