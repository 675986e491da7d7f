"""verl: its FSDP checkpoint manager on CPU ranks, with FSDP1 and FSDP2: files of ranks, the optimizer, what is beside, and huggingface/."""

import torch
from common import Case, main, run_ranks, tiny_model


def save(folder, version, kind):
    from omegaconf import OmegaConf
    from verl.utils.checkpoint.fsdp_checkpoint_manager import FSDPCheckpointManager
    model = tiny_model(kind, torch.float32)
    if version == 1:
        from torch.distributed.fsdp import FullyShardedDataParallel
        model = FullyShardedDataParallel(model, use_orig_params=True, device_id=torch.device("cpu"), sync_module_states=False)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),), mesh_dim_names=("fsdp",))
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()  # with weight decay, so the weights are put back
    tiny = dict(tiny_model(kind, torch.float32).named_parameters())
    put_back(model, tiny, version)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    contents = ["model", "optimizer", "extra"]
    manager = FSDPCheckpointManager(model, optimizer, scheduler, None, OmegaConf.create({"save_contents": contents, "load_contents": contents}))
    manager.save_checkpoint(folder, global_step=5)


@torch.no_grad()
def put_back(model, tiny, version):
    if version == 1:
        from torch.distributed.fsdp import FullyShardedDataParallel
        with FullyShardedDataParallel.summon_full_params(model, writeback=True):
            for name, p in model.named_parameters():
                p.copy_(tiny[name.replace("_fsdp_wrapped_module.", "")])
        return
    from torch.distributed.tensor import distribute_tensor
    for name, p in model.named_parameters():
        p.copy_(distribute_tensor(tiny[name], p.device_mesh, p.placements))


def make(out, name, world, version, kind):
    case = Case(out, name, src="global_step_5/actor", form=name.replace("_", " "))
    run_ranks(world, save, case.at("global_step_5/actor"), version, kind)
    case.expect_folder(tiny_model(kind, torch.float32))


def fsdp1(out):
    make(out, "fsdp1", 2, 1, "dense")


def fsdp2(out):
    make(out, "fsdp2", 3, 2, "dense")


def fsdp2_moe(out):
    make(out, "fsdp2_moe", 2, 2, "moe")


if __name__ == "__main__":
    import verl.utils.checkpoint.fsdp_checkpoint_manager  # noqa: F401 - once, before the ranks are forked
    main(["verl", "torch"], fsdp1, fsdp2, fsdp2_moe)
