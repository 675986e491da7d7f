"""A DCP folder that was saved with flatten_state_dict=False has its model as one object: `verify` says that the tensors inside were not read. Counters, random
states and objects without tensors are not told."""
import os
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt

need("torch")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint import DefaultSavePlanner  # noqa: E402

WORDS = "but tensors inside of 1 object were not read"

with tempfile.TemporaryDirectory() as scratch:
    for name, state, flat, told in (
            ("whole", {"model": {"w": torch.full((4,), float("nan"))}}, False, "model"),
            ("tuple", {"model": {"w": torch.ones(4)}, "betas": (torch.ones(2), torch.ones(2))}, True, "betas"),
            ("ordinary", {"model": {"w": torch.ones(4)}, "rng": (torch.arange(5, dtype=torch.uint8),), "step": (torch.tensor(3.0),), "lr": 0.5}, True, "")):
        folder = os.path.join(scratch, name)
        dcp.save(state, checkpoint_id=folder, planner=DefaultSavePlanner(flatten_state_dict=flat), no_dist=True)
        run = run_mckpt("verify", folder)
        last = run.stdout.rstrip().splitlines()[-1]
        expect(run.returncode == 0 and (WORDS in last) == bool(told), f"{name}: {run.stdout}")
        expect((f"not read: tensors inside of 1 object: {told}" in run.stdout) == bool(told), f"{name}: {run.stdout}")
finish(6)
