"""Makes the folder zero2_round_robin_w3: a small model that DeepSpeed trained in float32 with round_robin_gradients, two groups of the optimizer. The tensors
that zero_to_fp32 gives are compared with the weights that the model computes with. usage: make_round_robin.py (with DeepSpeed 0.19.8 and torch 2.11.0, on CPUs)"""
import hashlib
import json
import os
import pathlib
import shutil

os.environ["DS_ACCELERATOR"] = "cpu"
import deepspeed  # noqa: E402
import torch  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402
from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint  # noqa: E402

RANKS, FOLDER = 3, pathlib.Path(__file__).with_name("zero2_round_robin_w3")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [5, 7, 3, 8]
        self.embed = torch.nn.Embedding(11, sizes[0])
        self.layers = torch.nn.ModuleList([torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])
        self.norm = torch.nn.LayerNorm(sizes[-1])
        self.lm_head = torch.nn.Linear(sizes[-1], 11, bias=False)

    def forward(self, x):
        h = self.embed(x)
        for layer in self.layers:
            h = torch.tanh(layer(h))
        return self.lm_head(self.norm(h)).square().mean()


def work(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29811", RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS))
    deepspeed.init_distributed("gloo")
    torch.manual_seed(5)
    model = Net()
    groups = [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.1}, {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0}]
    engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(groups, lr=1e-2), config={
        "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": 2, "round_robin_gradients": True, "reduce_bucket_size": 4096, "allgather_bucket_size": 4096}})
    for i in range(2):
        engine.backward(engine(torch.randint(0, 11, (2, 4), generator=torch.Generator().manual_seed(10 * i + rank))))
        engine.step()
    engine.save_checkpoint(str(FOLDER))
    if rank == 0:
        weights = {name: p.detach().clone() for name, p in engine.module.named_parameters()}
        made = get_fp32_state_dict_from_zero_checkpoint(str(FOLDER))
        assert made.keys() == weights.keys() and all(torch.equal(made[n], weights[n]) for n in weights), "zero_to_fp32 gives other weights"
        tensors = {n: {"dtype": "F32", "shape": list(t.shape), "sha256": hashlib.sha256(t.contiguous().numpy().tobytes()).hexdigest()} for n, t in sorted(weights.items())}
        kind = "float32 state dict by deepspeed.utils.zero_to_fp32.get_fp32_state_dict_from_zero_checkpoint, equal to the weights of the running model"
        versions = {"torch": torch.__version__, "deepspeed": deepspeed.__version__}
        FOLDER.with_name(FOLDER.name + ".expected.json").write_text(json.dumps({"kind": kind, "versions": versions, "tensors": tensors}, indent=1) + "\n")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    mp.spawn(work, nprocs=RANKS)
    for script in FOLDER.glob("*.py"):
        script.unlink()
