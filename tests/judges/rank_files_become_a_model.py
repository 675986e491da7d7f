"""The command of README.md in place of verl's model_merger works: rank files that torch's ranks saved, with
optimizer and schedule beside them, become a Hugging Face model that equals the original bit for bit. The
command is README.md's."""
from mckpt_tests.checks import need

need("torch", "safetensors")
import json
import os
import re
import shutil
import subprocess
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from safetensors.torch import load_file
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from mckpt_tests.checks import expect, finish
from mckpt_tests.setting import MCKPT, SOURCE, TINY_MODEL

RANKS = 3  # divides neither 32 rows nor 16 nor 8, so that the last rank has less, or nothing


def weights():
    files = sorted(name for name in os.listdir(TINY_MODEL) if name.endswith(".safetensors"))
    return {name: tensor for file in files for name, tensor in load_file(os.path.join(TINY_MODEL, file)).items()}


def save_rank(rank, folder):
    """As FSDP2 workers do: each rank saves its own pieces with torch.save."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS)
    mesh = init_device_mesh("cpu", (RANKS,))
    model = {name: distribute_tensor(tensor, mesh, [Shard(0)]) for name, tensor in weights().items()}
    states = {i: {"exp_avg": tensor, "step": torch.tensor(1.0)} for i, tensor in enumerate(model.values())}
    parts = {
        "model": model,
        "optim": {"state": states, "param_groups": [{"lr": 1e-3, "params": list(states)}]},
        "extra_state": {"lr_scheduler": {"last_epoch": 3}, "rng": torch.get_rng_state()},
    }
    for part, state in parts.items():
        torch.save(state, f"{folder}/global_step_100/actor/{part}_world_size_{RANKS}_rank_{rank}.pt")
    dist.destroy_process_group()


def command():
    """The cell of README.md that begins with the name of the other tool."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as f:
        row = re.search(r"^\| `verl\.model_merger`.*$", f.read(), re.M)[0]
    return re.search(r"`(mckpt export [^`]*)`", row)[1]


def run(line, folder):
    env = {**os.environ, "PATH": os.path.dirname(MCKPT) + ":" + os.environ["PATH"]}
    return subprocess.run(["bash", "-c", line], cwd=folder, env=env, text=True, capture_output=True, timeout=120)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/global_step_100/actor/huggingface")
        mp.spawn(save_rank, (folder,), RANKS)
        shutil.copy(os.path.join(TINY_MODEL, "config.json"), f"{folder}/global_step_100/actor/huggingface")
        with open(f"{folder}/global_step_100/actor/fsdp_config.json", "w", encoding="utf-8") as f:
            json.dump({"FSDP_version": 2, "world_size": RANKS}, f)

        made = run(command(), folder)
        expect(made.returncode == 0, f"{command()}: {made.stderr}")
        for check in ("mckpt verify OUT", f"mckpt verify OUT --against {TINY_MODEL}", "mckpt convert hf-to-fsdp OUT again --dp 2"):
            done = run(check, folder)
            expect(done.returncode == 0, f"{check}: {done.stdout}{done.stderr}")
        joined, original = load_file(f"{folder}/OUT/model.safetensors"), weights()
        expect(set(joined) == set(original), "other tensors than the model's")
        for name, tensor in original.items():
            expect(name in joined and joined[name].dtype == tensor.dtype and torch.equal(joined[name], tensor), f"{name} differs")
    finish(50)


if __name__ == "__main__":
    main()
