"""Writes the folders of models that torch's FSDP2 shards over ranks on the CPU (gloo): what dcp.save() of each form of state
dict leaves, the config, and what transformers saves of the same model as expected.json.

usage: make_fsdp2.py [FOLDER]     default: beside this program; needs torch 2.11, transformers 5.23

   fsdp2_bare                      2 ranks   the state dict itself; tied
   fsdp2_app                       3 ranks   {"app": Stateful}, as torch's tutorial has it, with the optimizer
   fsdp2_tp                        2 x 2     {"model": ...}, tensor parallel as well: chunks are not in the order of the ranks
   wrapped_dcp_compile_per_layer   2 ranks   {"model": ...} by the names of modules, layers compiled; tied
"""
import hashlib
import json
import os
import pathlib
import shutil
import socket
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import transformers
from safetensors.torch import load_file
from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

# Sizes that no number of ranks divides.
LLAMA = ("LlamaForCausalLM", dict(vocab_size=53, hidden_size=24, intermediate_size=22, num_hidden_layers=2, num_attention_heads=4,
                                  num_key_value_heads=2, head_dim=6, tie_word_embeddings=False))
LLAMA_TP = ("LlamaForCausalLM", dict(LLAMA[1], intermediate_size=54))
QWEN3 = ("Qwen3ForCausalLM", dict(vocab_size=37, hidden_size=20, intermediate_size=26, num_hidden_layers=2, num_attention_heads=2,
                                  num_key_value_heads=1, head_dim=10, tie_word_embeddings=True))
CASES = {  # model, tensor-parallel ranks, all ranks, seed
    "fsdp2_bare": (QWEN3, 1, 2, 11),
    "fsdp2_app": (LLAMA, 1, 3, 12),
    "fsdp2_tp": (LLAMA_TP, 2, 4, 13),
    "wrapped_dcp_compile_per_layer": (QWEN3, 1, 2, 14),
}
TP_PLAN = {
    "self_attn.q_proj": ColwiseParallel(), "self_attn.k_proj": ColwiseParallel(), "self_attn.v_proj": ColwiseParallel(),
    "self_attn.o_proj": RowwiseParallel(), "mlp.gate_proj": ColwiseParallel(), "mlp.up_proj": ColwiseParallel(), "mlp.down_proj": RowwiseParallel(),
}


def made_model(model, seed):
    name, sizes = model
    torch.manual_seed(seed)
    model_class = getattr(transformers, name)
    model = model_class(model_class.config_class(**sizes, pad_token_id=None, bos_token_id=0, eos_token_id=1, max_position_embeddings=64))
    with torch.no_grad():
        for p in model.parameters():  # norms too, which are ones otherwise
            p.normal_()
    return model


class App(Stateful):
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def state_dict(self):
        return {"model": get_model_state_dict(self.model), "optim": get_optimizer_state_dict(self.model, self.optimizer)}


def rank_main(rank, name, folder, port):
    model, tp, world, seed = CASES[name]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    model = made_model(model, seed)
    mesh = init_device_mesh("cpu", (world // tp, tp), mesh_dim_names=("dp", "tp"))
    for layer in model.model.layers:
        if tp > 1:
            parallelize_module(layer, mesh["tp"], TP_PLAN)
        fully_shard(layer, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    state = model.state_dict()
    if name == "fsdp2_app":
        # One moment, to be small; the gradients are the weights themselves.
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0, momentum=0.9)
        for p in model.parameters():
            p.grad = p.detach().clone()
        optimizer.step()
        state = {"app": App(model, optimizer)}
    elif name == "fsdp2_tp":
        state = {"model": state}
    elif name.startswith("wrapped"):
        for i, layer in enumerate(model.model.layers):
            model.model.layers[i] = torch.compile(layer)
        # FSDP's own hooks remove the names of wrappers; a walk over the modules keeps them.
        state = {"model": dict(model.named_parameters(remove_duplicate=False))}
    dcp.save(state, checkpoint_id=folder)
    dist.destroy_process_group()


def expected_of(model, seed):
    """The tensors that transformers saves of the model before it is sharded."""
    tensors = {}
    with tempfile.TemporaryDirectory() as folder:
        model = made_model(model, seed)
        model.save_pretrained(folder)
        config = (pathlib.Path(folder) / "config.json").read_text()
        for name, t in sorted(load_file(folder + "/model.safetensors").items()):
            assert t.dtype == torch.float32
            tensors[name] = {"dtype": "F32", "shape": list(t.shape), "sha256": hashlib.sha256(t.numpy().tobytes()).hexdigest()}
    return config, tensors


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent
    versions = {"python": sys.version.split()[0], "torch": torch.__version__, "transformers": transformers.__version__}
    for name, (model, _, world, seed) in CASES.items():
        shutil.rmtree(out / name, ignore_errors=True)
        (out / name).mkdir(parents=True)
        torch.multiprocessing.spawn(rank_main, (name, str(out / name / "checkpoint"), free_port()), nprocs=world)
        config, tensors = expected_of(model, seed)
        (out / name / "config.json").write_text(config)
        rows = ",\n".join(f"  {json.dumps(n)}: {json.dumps(t)}" for n, t in tensors.items())
        head = f' "made_by": "transformers save_pretrained",\n "world": {world},\n "seed": {seed},\n "versions": {json.dumps(versions)}'
        (out / name / "expected.json").write_text(f'{{\n{head},\n "tensors": {{\n{rows}\n }}\n}}\n')


if __name__ == "__main__":
    main()
