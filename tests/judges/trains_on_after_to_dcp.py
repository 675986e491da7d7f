"""A training run goes on from what `convert to-dcp` makes of its checkpoint: FSDP2 models on other numbers of ranks load model and optimizer
by dcp.load, and take the next steps with the losses and the weights that they have from the checkpoint itself, bit for bit.
"""
from mckpt_tests.checks import need

need("torch")
import json
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.program import run_mckpt

SAVED_BY, LOADED_BY = 3, (2,)  # rows of no tensor divide evenly by both


class Model(torch.nn.Module):
    """Uneven rows, parameters of one item and of none, a head that is the embedding, a buffer."""
    def __init__(self):
        super().__init__()
        self.embed_tokens = torch.nn.Embedding(13, 7)
        self.layers = torch.nn.ModuleList([torch.nn.Sequential(torch.nn.Linear(7, 11), torch.nn.GELU(), torch.nn.Linear(11, 7)) for _ in range(2)])
        self.norm = torch.nn.LayerNorm(7)
        self.gain = torch.nn.Parameter(torch.ones(1))
        self.lm_head = torch.nn.Linear(7, 13, bias=False)
        self.lm_head.weight = self.embed_tokens.weight
        self.register_buffer("scale", torch.arange(1.0, 8.0))

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = x + layer(x)
        return self.lm_head(self.norm(x) * self.scale * self.gain)


def made():
    torch.manual_seed(7)
    model = Model()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    return model, torch.optim.AdamW([{"params": decayed}, {"params": rest, "weight_decay": 0.0}], lr=0.03)


def step(model, optimizer, number):
    """One step on the same tokens on each rank, so that the mean of gradients does not depend on the number of ranks."""
    generator = torch.Generator().manual_seed(number)
    tokens = torch.randint(0, 13, (4, 9), generator=generator)
    loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def join(rank, world, folder, name):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store_{name}", rank=rank, world_size=world)


def train(rank, folder):
    join(rank, SAVED_BY, folder, "train")
    model, optimizer = made()
    for number in range(3):
        step(model, optimizer, number)
    weights, states = get_state_dict(model, optimizer)
    dcp.save({"app": {"model": weights, "optim": states}, "step": 3}, storage_writer=dcp.FileSystemWriter(f"{folder}/saved", sync_files=False))
    dist.destroy_process_group()


def go_on(rank, world, folder, sources):
    """Two more steps from each of the checkpoints."""
    join(rank, world, folder, f"go_on_{world}")
    seen = {}
    for source in sources:
        model, optimizer = made()
        weights, states = get_state_dict(model, optimizer)
        state = {"app": {"model": weights, "optim": states}, "step": 0}
        dcp.load(state, storage_reader=dcp.FileSystemReader(f"{folder}/{source}"))
        set_state_dict(model, optimizer, model_state_dict=state["app"]["model"], optim_state_dict=state["app"]["optim"])
        losses = [step(model, optimizer, number) for number in (3, 4)]
        whole = {name: value.full_tensor() if hasattr(value, "full_tensor") else value for name, value in model.state_dict().items()}
        sums = {name: value.double().sum().item() for name, value in whole.items()}
        moments = [value.full_tensor().double().sum().item() for each in optimizer.state.values() for value in each.values() if hasattr(value, "full_tensor")]
        seen[source] = {"step": state["step"], "losses": losses, "weights": sums, "moments": moments}
    if rank == 0:
        with open(f"{folder}/seen_{world}.json", "w", encoding="utf-8") as f:
            json.dump(seen, f)
    dist.destroy_process_group()


def main():
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, (folder,), nprocs=SAVED_BY, start_method="fork")
        made_by = {"of_1": 1, "of_5": 5}
        for name, ranks in made_by.items():
            run = run_mckpt("convert", "to-dcp", f"{folder}/saved", f"{folder}/{name}", "--dp", ranks, "--no-sync")
            expect(run.returncode == 0, run.stderr)
            expect_equal(f"files of {name}", [len([f for f in os.listdir(f"{folder}/{name}") if f.endswith(".distcp")])], [ranks])
        for world in LOADED_BY:
            mp.start_processes(go_on, (world, folder, ["saved", *made_by]), nprocs=world, start_method="fork")
            with open(f"{folder}/seen_{world}.json", encoding="utf-8") as f:
                seen = json.load(f)
            want = seen.pop("saved")
            expect(want["step"] == 3 and want["losses"][0] != want["losses"][1] and len(want["moments"]) > 10, f"nothing was trained: {want}")
            for name, got in seen.items():
                for what, value in want.items():
                    expect(got[what] == value, f"{name} on {world} ranks: other {what}: {got[what]}, want {value}")
    finish(10)


if __name__ == "__main__":
    sys.exit(main())
