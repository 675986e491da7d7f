"""verl: its FSDP checkpoint manager on CPU ranks, with FSDP1 and FSDP2: files of ranks, the optimizer, what is beside, and huggingface/; a model that PEFT
wraps, whole and with `save_lora_only`."""

import torch
from common import Case, main, run_ranks, tiny_model, values


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


def with_lora():
    """The model in PEFT's wrapper. Its factors are multiples of 1/4, so that the merged weights do not depend on the order of sums."""
    from peft import LoraConfig, get_peft_model
    model = get_peft_model(tiny_model(dtype=torch.float32), LoraConfig(target_modules=["q_proj", "down_proj"], r=3, lora_alpha=6, task_type="CAUSAL_LM"))
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "lora_" in name:
                p.copy_((values(name, p.shape, torch.float32) * 4).round() / 4)
    return model


def save_lora(folder, only):
    from omegaconf import OmegaConf
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from verl.utils.checkpoint.fsdp_checkpoint_manager import FSDPCheckpointManager
    model = with_lora()
    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),), mesh_dim_names=("fsdp",))
    for layer in model.base_model.model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    contents = {"save_contents": ["model"], "load_contents": ["model"], **({"save_lora_only": True} if only else {})}
    FSDPCheckpointManager(model, None, None, None, OmegaConf.create(contents)).save_checkpoint(folder, global_step=5)


def lora(out):
    case = Case(out, "lora", src="global_step_5/actor", form="fsdp2 with LoRA")
    run_ranks(2, save_lora, case.at("global_step_5/actor"), False)
    case.expect_folder(with_lora().merge_and_unload())


def lora_only(out):
    case = Case(out, "lora_only", src="global_step_5/actor", form="fsdp2 with LoRA, save_lora_only")
    tiny_model(dtype=torch.float32).save_pretrained(case.at("base"))
    run_ranks(2, save_lora, case.at("global_step_5/actor"), True)
    case.expect_folder(with_lora().merge_and_unload())


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
    main(["verl", "torch"], fsdp1, fsdp2, fsdp2_moe, lora, lora_only)
