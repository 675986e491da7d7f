"""Megatron-FSDP v2 itself (megatron_fsdp.experimental) over gloo ranks on CPU: models are built of the names and shapes that ranks of Megatron
have, and wrapped as Megatron's adapter wraps them: the experts of each layer, then every module of a unit class, from the last to the first,
then the model. No released Megatron has the adapter; its main branch does it so (mcore_fsdp_adapter.py, read in November 2026).

A run is a dict:

    rows        by rank: the parameters, {"name", "shape", "trained"}, in the order of registration
    axes        strategies, one for each axis of the mesh: ["optim"]; ["no_shard", "optim_grads_params"] is HSDP
    mesh        ranks of each axis; [2, 2]: rank 3 is the second of the second instance
    ep          expert-parallel ranks; their data-parallel ranks have as many axes
    units       names of classes
"""
import hashlib
import os
import re
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

LR, BETAS = 0.25, (0.5, 0.75)


class Bare(torch.nn.Module):
    """A module without a program."""


def build(rows):
    """A tree of modules with these parameters, registered in this order, with values of no checkpoint."""
    root = Bare()
    for row in rows:
        *path, leaf = row["name"].split(".")
        module = root
        for step in path:
            if step not in module._modules:
                module.add_module(step, Bare())
            module = module._modules[step]
        if leaf == "expert_bias":
            module.register_buffer(leaf, torch.full(row["shape"], -3.0))
        else:
            module.register_parameter(leaf, torch.nn.Parameter(torch.full(row["shape"], -7.0, dtype=torch.bfloat16), row["trained"]))
    return root


def class_of(name, module, hybrid):
    """The class that Megatron gives to the module of that name; "" for others."""
    in_mtp = re.fullmatch(r"mtp\.layers\.\d+\.mtp_model_layer(\.layers\.\d+)?", name)
    in_decoder = re.fullmatch(r"(.*\.)?decoder\.layers\.\d+(\.layers\.\d+)?", name)
    if hybrid and (name == "decoder" or ((in_mtp or in_decoder) and "layers" in module._modules)):
        return "HybridStack"
    if not (in_mtp or in_decoder):
        return ""
    return "MambaLayer" if hybrid and "mixer" in module._modules else "TransformerLayer"


def placements(axes):
    """Parameters, gradients and states of the optimizer on each axis, by its strategy."""
    from megatron_fsdp.experimental import Flat, Partial, Placements, Replicate

    average = Partial(dist.ReduceOp.AVG)
    of = {
        "no_shard": (Replicate(), average, Replicate()),
        "optim": (Replicate(), average, Flat()),
        "optim_grads": (Replicate(), Flat(), Flat()),
        "optim_grads_params": (Flat(), Flat(), Flat()),
    }
    parameter, gradient, optimizer = ([of[axis][i] for axis in axes] for i in range(3))
    return Placements(dp_axes=list(range(len(axes))), parameter=parameter, gradient=gradient, optimizer=optimizer)


def meshes(run):
    """One for dense parameters, one for the experts of this rank."""
    from torch.distributed.device_mesh import init_device_mesh

    mesh, ep = run["mesh"], run["ep"]
    dense = init_device_mesh("cpu", tuple(mesh), mesh_dim_names=("outer", "inner")[2 - len(mesh) :])
    if ep == 1:
        return dense, dense
    names = ("e_outer", "e_inner")[2 - len(mesh) :]
    experts = init_device_mesh("cpu", (*mesh[:-1], mesh[-1] // ep, ep), mesh_dim_names=(*names, "ep"))
    return dense, experts[names] if len(names) > 1 else experts[names[0]]


def wrapped(root, run, of_run):
    """As Megatron wraps a model. `of_run`: what meshes() made."""
    from megatron_fsdp.experimental import fully_shard

    mesh, expert_mesh = of_run
    how = placements(run["axes"])
    modules = list(root.named_modules())
    hybrid = any(name.endswith(".mixer") for name, _ in modules)
    classes = {name: class_of(name, module, hybrid) for name, module in modules}
    for name, module in modules:
        if name.endswith("mlp.experts"):
            fully_shard(module, mesh=expert_mesh, placements=how)
    for name, module in reversed(modules):
        if name and classes[name] in run["units"]:
            fully_shard(module, mesh=mesh, placements=how)
    fully_shard(root, mesh=mesh, placements=how)
    return root


def fsdp_modules(root):
    return [(name, m) for name, m in root.named_modules() if hasattr(m, "_parameter_groups")]


def packing(root):
    """The buffers of this rank: where each parameter is in each, and what the rank has of it."""
    out = []
    for name, module in fsdp_modules(root):
        for group in module._parameter_groups:
            main, front = group.main_weight, f"{name}." if name else ""
            held = [main._get_owned_range(i) for i in range(len(group.parameter_names))]
            out.append(
                {
                    "module": name,
                    "names": [front + n for n in group.parameter_names],
                    "shapes": [list(s) for s in main.layout.tensor_shapes],
                    "trained": group.requires_grad,
                    "size": main.layout.size,
                    "offsets": list(main.layout.tensor_to_offset),
                    "held": [[h.tensor_relative_offset, h.tensor_relative_offset + h.numel] if h else [0, 0] for h in held],
                    "main": [main.offset, main.local_buffer.numel()],
                    "weights": group.model_weight.local_buffer.numel(),
                    "gradients": group.main_grad.local_buffer.numel() if group.requires_grad else 0,
                    "one_buffer": group.model_weight is main,
                }
            )
    return out


def optimizer_of(root, fill):
    """AdamW with two groups and states: element i of a parameter has code(name) + i. Without `fill`, states that are to be loaded."""
    from torch.distributed.tensor import DTensor

    trained = [(n, p) for n, p in root.named_parameters() if p.requires_grad]
    groups = [[(n, p) for n, p in trained if (p.dim() > 1) == decays] for decays in (True, False)]
    optimizer = torch.optim.AdamW(
        [{"params": [p for _, p in group], "weight_decay": decay} for group, decay in zip(groups, (0.1, 0.0))], lr=LR, betas=BETAS
    )
    for name, p in groups[0] + groups[1]:  # as step() makes them
        state = optimizer.state[p]
        state["step"] = torch.tensor(9.0 if fill else 0.0)
        for kind, sign in (("exp_avg", 1), ("exp_avg_sq", -1)):
            state[kind] = torch.zeros_like(p)
            if fill:
                assert isinstance(state[kind], DTensor)
                set_values(state[kind], lambda i: sign * (code(name) + i))
    return optimizer


def code(name):
    return int(hashlib.sha256(name.encode()).hexdigest()[:3], 16) * 4096


def set_values(dtensor, of_items):
    local, chunk = dtensor._local_tensor, position(dtensor)
    row = local[0].numel() if local.numel() else 1
    local.copy_(of_items(torch.arange(local.numel(), dtype=torch.float32) + chunk * row).reshape(local.shape))


def position(dtensor):
    """The first row of this rank's part, as Megatron-FSDP finds it."""
    from megatron_fsdp.uneven_dtensor import gather_and_compute_chunk_metadata

    return gather_and_compute_chunk_metadata(dtensor).offsets[0]


def states_of(root, optimizer):
    """The state dict that checkpoint.py of Megatron-FSDP v2 hands to torch."""
    from megatron_fsdp.uneven_dtensor import preprocess_state_dict_for_uneven_dtensor
    from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict

    state = {"model": get_model_state_dict(root)}
    if optimizer:
        state["optimizer"] = get_optimizer_state_dict(root, optimizer)
    return preprocess_state_dict_for_uneven_dtensor(state)


def pieces(state):
    """The values of this rank: name, offset, data."""
    from torch.distributed.tensor import DTensor

    flat = {f"model.{n}": t for n, t in state["model"].items()}
    for name, kinds in state.get("optimizer", {}).get("state", {}).items():
        flat |= {f"optimizer.state.{name}.{kind}": t for kind, t in kinds.items()}
    out = {}
    for name, t in flat.items():
        local = t._local_tensor if isinstance(t, DTensor) else t
        if not local.numel():
            continue
        at = t._local_tensor.__create_chunk_list__()[0].offsets[0] if isinstance(t, DTensor) else 0
        out[name] = (at, list(t.shape), local.detach().clone())
    return out


def in_rank(rank, world, port, jobs, results):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    dist.init_process_group("gloo", rank=rank, world_size=world)
    made = {}
    for job in jobs:
        key = (tuple(job["mesh"]), job["ep"])
        if key not in made:
            made[key] = meshes(job)
        root = wrapped(build(job["rows"][rank]), job, made[key])
        optimizer = optimizer_of(root, False) if job["optimizer"] else None
        state = states_of(root, optimizer)
        if job["load"]:
            dcp.load(state, checkpoint_id=job["load"])
        torch.save({"pieces": pieces(state), "packing": packing(root)}, f"{results}/{job['name']}.{rank}.pt")
        if job["save"]:
            dcp.save(state, storage_writer=dcp.FileSystemWriter(job["save"], sync_files=False))
        if job["trained"]:
            dcp.save(states_of(root, optimizer_of(root, True)), storage_writer=dcp.FileSystemWriter(job["trained"], sync_files=False))
    leave(rank, world, results)


def leave(rank, world, results):
    """Ends the process when all ranks are done. The end of torch in a process aborts from time to time, and
    nothing that is judged depends on it."""
    open(f"{results}/done.{rank}", "w").close()
    while not all(os.path.exists(f"{results}/done.{other}") for other in range(world)):
        time.sleep(0.05)
    os._exit(0)
