"""Makes zero2_moe_w2 and zero1_moe_w4: a tiny model with two layers of DeepSpeed's own MoE, trained for two steps on CPU ranks (gloo) and
saved by the engine's `save_checkpoint`; and NAME.expected.json, the float32 weights and states of the optimizer as the running engine
itself gives them (safe_get_full_fp32_param, safe_get_full_optimizer_state), from every rank, under the names that the files of experts have.

    for each NAME: DS_ACCELERATOR=cpu torchrun --nproc-per-node RANKS make_moe.py NAME OUT

    zero2_moe_w2   ZeRO 2, 2 ranks, 4 and 6 experts over both of them, bf16
    zero0_moe_w2   no ZeRO: the weights are in the files of the model and of the experts, fp32
    zero1_moe_w4   ZeRO 1, 4 ranks, experts over 2 ranks, each cut over 2 more; an odd number of items, fp32
"""
import hashlib
import json
import os
import sys

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.moe.layer import MoE
from deepspeed.moe.utils import split_params_into_different_moe_groups_for_optimizer
from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_optimizer_state

CASES = {  # stage, bf16, experts of the two layers
    "zero2_moe_w2": (2, True, (4, 6)),
    "zero0_moe_w2": (0, False, (4, 2)),
    "zero1_moe_w4": (1, False, (4, 2)),
}
EP = 2
HIDDEN, FFN, VOCAB = 5, 7, 11


class Expert(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(HIDDEN, FFN)
        self.down = torch.nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class Layer(torch.nn.Module):
    def __init__(self, experts):
        super().__init__()
        self.norm = torch.nn.LayerNorm(HIDDEN)
        self.moe = MoE(HIDDEN, Expert(), num_experts=experts, ep_size=EP, k=1, capacity_factor=4.0, eval_capacity_factor=4.0)

    def forward(self, x):
        out, loss, _ = self.moe(self.norm(x))
        return x + out, loss


class Model(torch.nn.Module):
    def __init__(self, experts):
        super().__init__()
        self.embed = torch.nn.Embedding(VOCAB, HIDDEN)
        self.layers = torch.nn.ModuleList(Layer(n) for n in experts)
        self.head = torch.nn.Linear(HIDDEN, VOCAB)
        self.register_buffer("scale", torch.tensor([1.5, 2.5, 3.5]))

    def forward(self, tokens):
        x, more = self.embed(tokens), 0.0
        for layer in self.layers:
            x, loss = layer(x)
            more = more + loss
        logits = self.head(x).float()
        return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()) + 0.01 * more


def fact(tensor):
    data = tensor.detach().cpu().contiguous()
    kind = {torch.float32: "F32", torch.bfloat16: "BF16"}[data.dtype]
    return {"dtype": kind, "shape": list(data.shape), "sha256": hashlib.sha256(data.view(torch.uint8).numpy().tobytes()).hexdigest()}


def main(name, out):
    stage, bf16, experts = CASES[name]
    deepspeed.init_distributed("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7 + rank % EP)  # experts differ from rank to rank; what ranks have alike, the engine copies from rank 0
    model = Model(experts)
    groups = split_params_into_different_moe_groups_for_optimizer({"params": list(model.parameters()), "name": "all"})
    engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(groups, lr=1e-2), config={
        "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, "bf16": {"enabled": bf16},
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": stage, "reduce_bucket_size": 4096, "allgather_bucket_size": 4096}})
    for step in range(2):
        tokens = torch.randint(0, VOCAB, (2, 12), generator=torch.Generator().manual_seed(100 * step + rank))
        engine.backward(engine(tokens))
        engine.step()
    engine.save_checkpoint(out, tag="global_step2")

    # The engine connects parameters with their states before its first step, when there are none yet.
    if stage > 0:
        engine.optimizer._hp_optimizer_states_linked = False
        engine.optimizer._lazy_init_hp_params_optimizer_state()
    found = {}
    ep_rank = rank % EP
    for key, parameter in engine.module.named_parameters():
        if "deepspeed_experts." in key:  # "..deepspeed_experts.1.up.weight" of rank 1 is expert 1 + the number that rank 0 has
            front, rest = key.split("deepspeed_experts.")
            local, rest = rest.split(".", 1)
            layer = int(key.split(".")[1])
            key = f"{front}deepspeed_experts.{int(local) + ep_rank * experts[layer] // EP}.{rest}"
        if stage == 0:
            found[key] = fact(parameter)
            continue
        found[key] = fact(safe_get_full_fp32_param(parameter))
        for state in ("exp_avg", "exp_avg_sq"):
            found[f"optimizer.state.{key}.{state}"] = fact(safe_get_full_optimizer_state(parameter, state))
    for key, buffer in engine.module.named_buffers():
        found[key] = fact(buffer)
    every = [None] * ranks
    dist.all_gather_object(every, found)
    if rank == 0:
        whole = {}
        for one in every:
            for key, value in one.items():
                assert whole.setdefault(key, value) == value, f"ranks differ in {key}"
        with open(os.path.join(os.path.dirname(os.path.abspath(out)), f"{name}.expected.json"), "w") as f:
            json.dump({"deepspeed": deepspeed.__version__, "torch": torch.__version__, "tensors": dict(sorted(whole.items()))}, f, indent=1)
    dist.barrier()


main(sys.argv[1], sys.argv[2])
