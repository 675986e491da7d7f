"""torch_dist checkpoints of a hybrid model, written by torch, in every spelling of their keys: convolutions in parts or whole, with a dot
or an underscore; norms fused or not; either name of the final norm. The resharded checkpoint, loaded by
torch, has the values that went in, weights and optimizer states, under the names of fsdp_dtensor; norms keep
the name that they have. Two names at once are refused.
"""

import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish, need
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.respelt import UNFUSED_NORMS, renamed

need("torch", "numpy")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from mckpt_tests.ranks import load_whole, save_as_ranks  # noqa: E402

models = Models()
scratch = tempfile.TemporaryDirectory(prefix="mckpt_spelt_")
MODEL, STATE = "model.module.", "optimizer.state.module.module.module."
source = models.path("nemotron_h")
with open(os.path.join(source, "config.json")) as f:
    config = json.load(f)
INNER, GROUPS = config["mamba_num_heads"] * config["mamba_head_dim"], config["n_groups"] * config["ssm_state_size"]
PARTS = {
    "in_proj": {"z": INNER, "x": INNER, "B": GROUPS, "C": GROUPS, "dt": config["mamba_num_heads"]},
    "conv1d": {"x": INNER, "B": GROUPS, "C": GROUPS},
}


def place(name):
    return os.path.join(tempfile.mkdtemp(dir=scratch.name), name)


def mckpt(*args, status=0):
    run = run_mckpt(*args, timeout=60)
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stderr[-800:]}")
    return run.stderr


def keys_of(name, conv, parts, norms, final):
    """The keys of a parameter in torch_dist: (key, first row, rows), one for each part."""
    stored = name.replace("mixer.conv1d_", conv)
    if norms:
        stored = renamed(stored, UNFUSED_NORMS)
    if final:
        stored = stored.replace("decoder.final_norm.", "decoder.final_layernorm.")
    module = next((m for m in PARTS if f"mixer.{m}" in name and "layer_norm" not in name), None)
    if module is None or (module == "conv1d" and not parts):
        return [(stored, 0, None)]
    out, at = [], 0
    for part, rows in PARTS[module].items():
        out.append((f"{stored}.{part}", at, rows))
        at += rows
    return out


def torch_dist(weights, states, **how):
    out = {}
    for name, whole in weights.items():
        for kind, value in [("", whole)] + [(f"optimizer.state.{kind}.", s[name]) for kind, s in states.items()]:
            for key, first, rows in keys_of(name, **how):
                out[kind + key] = value if rows is None else value[first : first + rows].clone()
    out["common_state/shard_0_1"] = [{"checkpoint_version": 3.0, "iteration": 4}]
    return out


def saved(state):
    folder = place("iter_0000004")
    save_as_ranks([state], lambda: dcp.FileSystemWriter(folder, sync_files=False), flatten=False)
    with open(os.path.join(folder, "metadata.json"), "w") as f:
        f.write('{"sharded_backend": "torch_dist", "sharded_backend_version": 1}')
    return folder


made = place("made")
mckpt("convert", "hf-to-fsdp", source, made, "--dp", 1, "--no-sync")
weights = {name[len(MODEL) :]: value for name, value in load_whole(os.path.join(made, "release"), objects=False).items()}
numbers = torch.arange(sum(w.numel() for w in weights.values()), dtype=torch.float64)  # every item of a state is its own
at, moments = 0, {}
for name, whole in weights.items():
    moments[name] = numbers[at : at + whole.numel()].reshape(whole.shape).to(torch.float32)
    at += whole.numel()
states = {"exp_avg": moments, "exp_avg_sq": {name: value / 2 for name, value in moments.items()}}
assets = ["--assets", source]

for conv in ("mixer.conv1d.", "mixer.conv1d_"):
    for parts in (True, False):
        for norms in (True, False):
            for final in (True, False):
                how = {"conv": conv, "parts": parts, "norms": norms, "final": final}
                folder, out, back = saved(torch_dist(weights, states, **how)), place("out"), place("back")
                mckpt("convert", "to-fsdp", folder, out, *assets, "--dp", 2, "--no-sync", "-q")
                rename = (lambda name: renamed(name, UNFUSED_NORMS)) if norms else (lambda name: name)
                want = {MODEL + rename(name): value for name, value in weights.items()}
                want |= {f"{STATE}{rename(name)}.{kind}": value for kind, s in states.items() for name, value in s.items()}
                got = load_whole(os.path.join(out, "iter_0000004"), objects=False)
                expect_equal(f"{how}: names", sorted(got), sorted(want))
                expect_equal(f"{how}: values", [name for name in want if not torch.equal(want[name], got[name])], [])
                mckpt("export", folder, back, *assets, "--no-sync", "-q")
                mckpt("verify", back, "--against", source, "-q")
                mckpt("verify", folder, "--against", source, "-q")
                mckpt("verify", folder, *assets, "--against", made, status=1)  # the states are on one side only
                mckpt("verify", out, "--against", folder, "-q")
                shutil.rmtree(out)

# Both names of a convolution, of a norm and of the final norm.
usual = torch_dist(weights, {}, conv="mixer.conv1d.", parts=True, norms=False, final=False)
for more, names in (
    ({"conv": "mixer.conv1d_", "parts": True, "norms": False, "final": False}, ("mixer.conv1d_weight", "mixer.conv1d.weight")),
    ({"conv": "mixer.conv1d.", "parts": True, "norms": True, "final": False}, ("layer_norm_weight", "norm.weight")),
    ({"conv": "mixer.conv1d.", "parts": True, "norms": False, "final": True}, ("final_norm", "final_layernorm")),
):
    folder = saved(torch_dist(weights, {}, **more) | usual)
    told = mckpt("export", folder, place("no"), *assets, "--no-sync", status=3)
    for word in ("MC2005", "two names", *names):
        expect(word in told, f"{more}: nothing of '{word}': {told}")
finish(1000)
