"""torch itself: distributed checkpoints of FSDP2 on several meshes, bare and with an optimizer, asynchronous, and as Hugging Face shards; a file
for each rank, as verl names them; a file of tensors of all types."""

import os
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from common import Case, main, run_ranks, tiny_model, values
from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor


def sharded(mesh_shape, names, kind, dtype):
    mesh = init_device_mesh("cpu", mesh_shape, mesh_dim_names=names)
    model = tiny_model(kind, dtype)
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def whole(state):
    return {name: t.full_tensor() if isinstance(t, DTensor) else t for name, t in state.items() if isinstance(t, torch.Tensor)}


def optimizer_of(model):
    """AdamW after one step, with states that follow from their names."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    names = {id(p): name for name, p in model.named_parameters()}
    for p, state in optimizer.state.items():
        for kind in ("exp_avg", "exp_avg_sq"):
            local = state[kind].to_local() if isinstance(state[kind], DTensor) else state[kind]
            local.copy_(values(f"{kind} {names[id(p)]} {dist.get_rank()}", local.shape, local.dtype))
    return optimizer


def save_sharded(folder, mesh_shape, names, kind, dtype, form):
    model = sharded(mesh_shape, names, kind, dtype)
    state = get_model_state_dict(model)
    optimizer = None
    if form in ("app", "async"):
        hsdp = len(mesh_shape) > 1  # replicas would have other states than each other
        optimizer = torch.optim.AdamW(model.parameters()) if hsdp else optimizer_of(model)
        state = {"app": {"model": state, "optim": get_optimizer_state_dict(model, optimizer)}}
    if form == "async":
        dcp.async_save(state, checkpoint_id=folder, process_group=dist.new_group(backend="gloo")).result()
    elif form == "hf":
        from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
        dcp.save(state, storage_writer=HuggingFaceStorageWriter(path=folder, save_distributed=True))
    else:
        dcp.save(state, checkpoint_id=folder)


def make(out, name, world, mesh, names, kind="dense", dtype=torch.bfloat16, form="bare"):
    case = Case(out, name, src="ckpt", form=name.replace("_", " "))
    run_ranks(world, save_sharded, case.at("ckpt"), mesh, names, kind, dtype, form)
    case.expect_folder(tiny_model(kind, dtype))


def dcp_bare(out):
    make(out, "dcp_bare", 3, (3,), ("fsdp",), dtype=torch.float32)


def dcp_moe(out):
    make(out, "dcp_moe", 2, (2,), ("fsdp",), "moe")


def dcp_app(out):
    make(out, "dcp_app", 3, (3,), ("fsdp",), form="app")


def dcp_hsdp(out):
    make(out, "dcp_hsdp", 4, (2, 2), ("ddp", "fsdp"))


def dcp_async(out):
    make(out, "dcp_async", 2, (2,), ("fsdp",), form="async")


def dcp_hf(out):
    make(out, "dcp_hf", 2, (2,), ("fsdp",), form="hf")


def save_ranks(folder, raw, mesh_shape, names):
    rank, world = dist.get_rank(), dist.get_world_size()
    if "tp" in names:
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        mesh = init_device_mesh("cpu", mesh_shape, mesh_dim_names=names)
        model = tiny_model(dtype=torch.float32)
        for layer in model.model.layers:
            parallelize_module(layer, mesh["tp"], {"self_attn.q_proj": ColwiseParallel(), "self_attn.o_proj": RowwiseParallel(),
                                                   "mlp.gate_proj": ColwiseParallel(), "mlp.down_proj": RowwiseParallel()})
            if "fsdp" in names:
                fully_shard(layer, mesh=mesh["fsdp"])
        if "fsdp" in names:
            fully_shard(model, mesh=mesh["fsdp"])
    else:
        model = sharded(mesh_shape, names, "dense", torch.float32)
    state = model.state_dict()
    os.makedirs(folder, exist_ok=True)
    torch.save(state, os.path.join(folder, f"model_world_size_{world}_rank_{rank}.pt"))
    full = whole(state)
    if rank == 0:
        torch.save(full, raw)


def make_ranks(out, name, world, mesh, names):
    case = Case(out, name, src="ckpt", form=name.replace("_", " "))
    with tempfile.TemporaryDirectory() as folder:
        raw = os.path.join(folder, "raw.pt")
        run_ranks(world, save_ranks, case.at("ckpt"), raw, mesh, names)
        case.answer("expected_raw", torch.load(raw, weights_only=True))
    case.expect_folder(tiny_model(dtype=torch.float32))
    shutil.copytree(case.at("assets"), case.at("ckpt/huggingface"))


def ranks_fsdp(out):
    make_ranks(out, "ranks_fsdp", 3, (3,), ("fsdp",))


def ranks_hsdp(out):
    make_ranks(out, "ranks_hsdp", 4, (2, 2), ("ddp", "fsdp"))


def ranks_tp(out):
    make_ranks(out, "ranks_tp", 2, (2,), ("tp",))


def ranks_fsdp_tp(out):
    make_ranks(out, "ranks_fsdp_tp", 4, (2, 2), ("fsdp", "tp"))


def pt_types(out):
    case = Case(out, "pt_types", src="src.pt", form="torch.save of all types")
    types = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
             torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64]
    tensors = {f"t.{str(t)[6:]}": values(str(t), (3, 5), torch.float32 if t.is_floating_point else t).to(t) for t in types}
    tensors["turned"], tensors["part"] = tensors["t.float32"].t(), tensors["t.int64"][1:, ::2]
    tensors["scalar"], tensors["none"] = torch.tensor(2.5), torch.zeros(0, 3)
    torch.save(tensors, case.at("src.pt"))
    case.answer("expected_raw", torch.load(case.at("src.pt"), weights_only=True))


if __name__ == "__main__":
    main(["torch"], pt_types, ranks_fsdp, ranks_hsdp, ranks_tp, ranks_fsdp_tp, dcp_bare, dcp_moe, dcp_app, dcp_hsdp, dcp_async, dcp_hf)
