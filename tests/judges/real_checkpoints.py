"""Checkpoints that Megatron itself wrote come out as the Hugging Face models they were made of, bit for bit, and are what
mckpt would write of these. A conversion that cannot come out right is refused.
"""
import os
import tarfile
import tempfile

from mckpt_tests.checks import expect_equal
from mckpt_tests.folders import safetensors
from mckpt_tests.golden import finish
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

models = Models()
DCP = os.path.join(DATA, "dcp")
CHECKPOINTS = [("packed/qwen3_dense.world2", "qwen3_dense"), ("packed/tiny_dense1.world3.frozen", "tiny_dense1"),
               ("fsdp_dtensor_optim", "tiny_llama1"), ("hfsdp", "tiny_dense1")]
FROZEN = ("embed_tokens", "q_proj", "k_proj", "v_proj", "input_layernorm", "model.norm")
REFUSED = [("damaged_pp2", "tiny_dense2", "MC1313"), ("torch_dist_pp2", "tiny_llama1", "MC2005"), ("hfsdp", "tiny_llama1", "MC2005"),
           ("hfsdp", "qwen3_dense", "MC2005"), ("megatron_fsdp_v2", "tiny_dense1", "MC2005"), ("fsdp2", "tiny_dense1", "MC2005")]
scratch = tempfile.TemporaryDirectory(prefix="mckpt_real_")


def mckpt(*args):
    run = run_mckpt(*args, "-q", timeout=60)
    return run.returncode, run.stdout + run.stderr


def folder(name):
    if not name.startswith("packed/"):
        return os.path.join(DCP, name)
    with tarfile.open(os.path.join(DCP, name + ".tar.xz")) as tar:
        tar.extractall(scratch.name)
    return os.path.join(scratch.name, os.path.basename(name))


def output(name):
    return tempfile.mkdtemp(dir=scratch.name) + "/" + name


for name, model in CHECKPOINTS:
    checkpoint, source, back = folder(name), models.path(model), output("back")
    for what, *command in (("export", "export", checkpoint, back, "--assets", source, "--no-sync"),
                           ("the model against the checkpoint", "verify", back, "--against", checkpoint),
                           ("the checkpoint against the model", "verify", checkpoint, "--against", source, "--params-dtype", "auto")):
        expect_equal(f"{name}: {what}", [mckpt(*command)[0]], [0])
    want, got = safetensors(source), safetensors(back)
    expect_equal(name, sorted(got), sorted(want))
    expect_equal(name, [got[n] for n in sorted(want)], [want[n] for n in sorted(want)])
    # In the types in which they are stored: the main weights, but for what was frozen.
    wide = output("wide")
    mckpt("export", checkpoint, wide, "--assets", source, "--dtype", "keep", "--no-sync")
    frozen = FROZEN if name.endswith("frozen") else ()
    got = safetensors(wide)
    expect_equal(f"{name}, as stored", [f"{n} {got[n][0]}" for n in sorted(want)],
                 [f"{n} {'BF16' if any(part in n for part in frozen) else 'F32'}" for n in sorted(want)])

for name, model, code in REFUSED:
    status, told = mckpt("export", folder(name), output("back"), "--assets", models.path(model), "--no-sync")
    expect_equal(f"{name} as {model}: {told}", [status != 0, code in told], [True, True])
finish(249)
