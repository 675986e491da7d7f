"""`reshard --rank-states` says at once which parameters have no states in the ranks' files, and refuses states under numbers with the
reason."""
import json
import os
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import TINY_MODEL

need("torch")
import torch  # noqa: E402

work = tempfile.TemporaryDirectory(prefix="mckpt_states_")


def path(name):
    return os.path.join(work.name, name)


def mckpt(*args, status=0):
    run = run_mckpt(*args)
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stderr}")
    return run


def states_of(names, folder):
    """The file of the one rank, with moments of these parameters."""
    os.mkdir(path(folder))
    state = {name: {field: torch.full(shapes[name], float(i)) for field in ("exp_avg", "exp_avg_sq")} for i, name in enumerate(names)}
    torch.save({"optimizer": {"state": state}}, path(f"{folder}/optim_world_size_1_rank_0.pt"))
    return path(folder)


mckpt("convert", "hf-to-fsdp", TINY_MODEL, path("ckpt"), "--dp", 1, "--no-sync", "-q")
listed = json.loads(mckpt("ls", TINY_MODEL, "--as", "megatron", "--json").stdout)["tensors"]
shapes = {t["name"]: t["shape"] for t in listed}

whole = mckpt("convert", "reshard", path("ckpt"), path("whole"), "--dp", 2, "--no-sync", "--rank-states", states_of(shapes, "all"))
expect("have no states" not in whole.stderr, whole.stderr)

lost = [name for name in shapes if ".experts." in name]
some = mckpt("convert", "reshard", path("ckpt"), path("some"), "--dp", 2, "--no-sync", "--rank-states", states_of([n for n in shapes if n not in lost], "fewer"))
expect(f"{len(lost)} of {len(shapes)} parameters have no states in the ranks' files: {lost[0]}" in some.stderr, some.stderr)
expect("warning" in some.stderr, some.stderr)
dry = mckpt("convert", "reshard", path("ckpt"), path("dry"), "--dp", 2, "-n", "--rank-states", path("fewer"))
expect("have no states in the ranks' files" in dry.stderr, dry.stderr)

os.mkdir(path("numbers"))
torch.save({"optimizer": {"state": {i: {"exp_avg": torch.zeros(shape)} for i, shape in enumerate(shapes.values())}, "param_groups": [{"params": list(range(len(shapes)))}]}},
           path("numbers/optim_world_size_1_rank_0.pt"))
numbers = mckpt("convert", "reshard", path("ckpt"), path("out"), "--dp", 2, "--no-sync", "--rank-states", path("numbers"), status=3)
expect("have numbers, not the names of their parameters" in numbers.stderr, numbers.stderr)
expect("experts have their global numbers" not in numbers.stderr, numbers.stderr)
expect(not os.path.exists(path("out")), "nothing is written")
finish(13)
