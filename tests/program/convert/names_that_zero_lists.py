"""The files of ZeRO list what the model has: a module `scheduler`, `optimizer` or `rng_state` and a buffer `step` are the model's, whatever the names of
other checkpoints mean, and tensors of the user's own state are not. In all stages, for all commands."""
import pathlib
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.zero import make

need("torch", "safetensors")
import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

GROUPS = [{"embed.weight": (9, 4), "scheduler.weight": (4, 4), "scheduler.bias": (4,), "optimizer.weight": (8, 8)}, {"rng_state.weight": (4, 3)}]
OWN = {"rng_state": torch.arange(6), "ema": {"embed.weight": torch.ones(9, 4)}}


def write(folder, stage, ranks):
    made = make(stage, ranks, GROUPS, frozen={"param_groups.weight": (3, 5)}, buffers={"step": (), "steps": (3,), "train_state.mean": (4,)},
                shared={"state.exp_avg": "embed.weight"}, bf16=False)
    next(iter(made.model.values())).update(OWN)
    (folder / "global_step2").mkdir(parents=True)
    made.save(folder / "global_step2")
    (folder / "latest").write_text("global_step2")
    return {name: t for name, t in made.want.items() if not name.startswith("optimizer.state.")}


def check_values(what, got, want):
    expect_equal(f"{what}: names", sorted(got), sorted(want))
    for name in got.keys() & want.keys():
        expect(torch.equal(got[name], want[name]), f"{what}: {name}")


def check(scratch, stage, ranks):
    what, folder, out = f"ZeRO {stage}, {ranks} ranks", scratch / f"zero{stage}", scratch / f"zero{stage}.safetensors"
    want = write(folder, stage, ranks)
    run = run_mckpt("convert", "to-safetensors", folder, out)
    expect(run.returncode == 0, f"{what}: {run.stderr}")
    if run.returncode == 0:
        check_values(what, load_file(out), want)
    expect("1 tensor of these may be weights: ema.embed.weight" in run.stderr, f"{what}: the user's own state is named: {run.stderr}")
    for a, b in ((out, folder), (folder, out)):
        told = run_mckpt("verify", a, "--against", b)
        expect(told.returncode == 0 and f"{len(want)} tensors" in told.stdout, f"{what}: {a} {b}: {told.stdout} {told.stderr}")
        told = run_mckpt("diff", a, b)
        expect(told.returncode == 0 and f"all {len(want)} tensors" in told.stdout, f"{what}: diff {a} {b}: {told.stdout} {told.stderr}")
    half = scratch / f"half{stage}.safetensors"
    run = run_mckpt("convert", "to-safetensors", folder, half, "--dtype", "fp16")
    expect(run.returncode == 0, f"{what}: fp16: {run.stderr}")
    trained = [name for group in GROUPS for name in group]
    expect_equal(f"{what}: types", {str(load_file(half)[n].dtype) for n in trained}, {"torch.float16"})
    dcp = scratch / f"dcp{stage}"
    run = run_mckpt("convert", "to-dcp", folder, dcp, "--section", "model", "-q")
    expect(run.returncode == 0, f"{what}: to-dcp: {run.stderr}")
    again = scratch / f"again{stage}.safetensors"
    run = run_mckpt("convert", "to-safetensors", dcp, again, "-q")
    expect(run.returncode == 0, f"{what}: from DCP: {run.stderr}")
    if run.returncode == 0:
        check_values(f"{what}, by DCP", load_file(again), want)


def check_bare(scratch):
    """Names alone: what is left out and may be a weight is named, also where it begins as an optimizer does."""
    path, out = scratch / "bare.pt", scratch / "bare.safetensors"
    torch.save({"model.norm.weight": torch.ones(4), "lm_head.weight": torch.ones(4, 4), "optimizer.proj.weight": torch.ones(8, 8),
                "optimizer.state.lm_head.weight": torch.ones(4, 4), "optimizer.state.lm_head.weight.exp_avg": torch.ones(4, 4),
                "optimizer.proj.scale": torch.ones(3), "scheduler.weight": torch.ones(2), "rng_state.weight": torch.ones(2, 2), "step": torch.ones(3, 3), "epoch": torch.ones(1),
                "optimizer.lm_head.exp_avg": torch.ones(4), "seed": torch.tensor(1.0), "global_step": torch.ones(2, dtype=torch.int64)}, path)
    named = "optimizer.proj.weight, optimizer.proj.scale, scheduler.weight, rng_state.weight, step, epoch"
    run = run_mckpt("convert", "to-safetensors", path, out)
    expect(run.returncode == 0 and f"left    6 tensors of these may be weights: {named}\n" in run.stderr, f"names alone: {run.stderr}")
    for a, b in ((out, path), (path, out)):
        run = run_mckpt("verify", a, "--against", b)
        expect(run.returncode == 0 and f"not compared: 6 tensors beside the model that may be weights: {named}\n" in run.stdout
               and "equal, but 6 tensors beside the model were not compared" in run.stdout, f"names alone, compared: {run.stdout} {run.stderr}")


with tempfile.TemporaryDirectory() as scratch:
    check_bare(pathlib.Path(scratch))
    for stage, ranks in ((1, 2), (2, 3), (3, 2)):
        check(pathlib.Path(scratch), stage, ranks)
finish(90)
