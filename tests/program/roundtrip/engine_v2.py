"""roundtrip --engine v2: a live model that is packed as Megatron-FSDP v2 packs it comes back with every bit, and saves, byte for byte,
what convert hf-to-fsdp writes for the same ranks."""

import filecmp
import os
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt

models = Models()
for model, flags in (
    ("tiny_moe1", ["--dp", "4", "--ep", "2"]),  # experts of their ranks
    ("qwen3_5", ["--dp", "3"]),  # gated delta nets
    ("tiny_llama1", ["--dp", "3", "--freeze", "embedding.*"]),  # frozen parameters have main weights too
    ("tiny_dense1", ["--dp", "4", "--hsdp", "2", "--main-dtype", "none"]),  # which is fp32 all the same
    ("qwen3_dense", ["--dp", "3", "--strategy", "optim"]),
    ("tiny_moe1", ["--dp", "4", "--ep", "2", "--strategy", "no_shard"]),
    ("qwen3_moe", ["--dp", "4", "--ep", "2", "--hsdp", "2", "--hsdp-outer", "shard"]),
    ("nemotron_h", ["--dp", "4", "--hybrid-pattern", "[M-]M[*-]", "--fsdp-unit", "HybridStack,MambaLayer"]),  # units in units
    ("nemotron_h_moe", ["--dp", "3", "--fsdp-unit", "MambaLayer", "--strategy", "optim_grads"]),  # experts by layer
):
    with tempfile.TemporaryDirectory(prefix="mckpt_live_v2_") as folder:
        live, converted = os.path.join(folder, "live"), os.path.join(folder, "converted")
        run = run_mckpt("roundtrip", models.path(model), "--engine", "v2", "--checkpoint", live, "--no-sync", *flags, ranks=int(flags[1]))
        expect(run.returncode == 0 and "equal: every bit came back" in run.stdout, f"{model}: {run.stdout}{run.stderr}")
        expect(" ranks, Megatron-FSDP v2, " in run.stdout.splitlines()[0], f"{model}: the engine is not named: {run.stdout}")
        flags = [f for f in flags if f not in ("--main-dtype", "none")]
        run = run_mckpt("convert", "hf-to-fsdp", models.path(model), converted, "--engine", "v2", "--params-dtype", "auto", "--no-sync", *flags)
        expect(run.returncode == 0, f"{model}: {run.stderr}")
        names = sorted(n for n in os.listdir(os.path.join(converted, "release")) if n.endswith(("distcp", "metadata")))
        expect(len(names) == int(flags[1]) + 1, f"{model}: {names}")
        unlike = [n for n in names if not filecmp.cmp(os.path.join(live, "release", n), os.path.join(converted, "release", n), shallow=False)]
        expect_equal(f"{model}: bytes", unlike, [])
# Parts of tensor-parallel ranks are packed and come back; a checkpoint of them would lose one.
for model, flags in (("tiny_dense1", ["--tp", "2"]), ("qwen3_moe", ["--tp", "2", "--ep", "2", "--dp", "2"])):
    ranks = 2 * int(flags[-1]) if "--dp" in flags else 2
    run = run_mckpt("roundtrip", models.path(model), "--engine", "v2", *flags, ranks=ranks)
    expect(run.returncode == 0 and "equal: every bit came back" in run.stdout, f"{model} {flags}: {run.stdout}{run.stderr}")
    run = run_mckpt("roundtrip", models.path(model), "--engine", "v2", "--checkpoint", "never", *flags, ranks=ranks)
    expect(run.returncode == 2 and "MC0203" in run.stderr and "tensor parallelism" in run.stderr and not os.path.exists("never"), f"{model} {flags}: {run.stderr}")
finish(20)
