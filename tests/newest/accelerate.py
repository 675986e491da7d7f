"""accelerate: `save_fsdp_model` and `save_fsdp_optimizer` of FSDP2, as DCP and as one file a rank. Its Accelerator asks for GPUs, so an object with the attributes that
these functions read stands for it."""

import types

import torch
import torch.distributed as dist
from common import Case, main, run_ranks, tiny_model


def save(folder, use_dcp):
    from accelerate.utils import fsdp_utils
    from torch.distributed.fsdp import StateDictType, fully_shard
    model = tiny_model("moe", torch.float32)
    for layer in model.model.layers:
        fully_shard(layer)
    fully_shard(model)
    plugin = types.SimpleNamespace(state_dict_type=StateDictType.SHARDED_STATE_DICT, state_dict_config=types.SimpleNamespace(offload_to_cpu=False), fsdp_version=2,
                                   cpu_ram_efficient_loading=False, optim_state_dict_config=types.SimpleNamespace(offload_to_cpu=False))
    accelerator = types.SimpleNamespace(num_processes=dist.get_world_size(), process_index=dist.get_rank(), is_fsdp2=True, wait_for_everyone=dist.barrier)
    fsdp_utils.logger = types.SimpleNamespace(info=lambda *a: None, warning=lambda *a: None)
    fsdp_utils.save_fsdp_model(plugin, accelerator, model, folder, use_dcp=use_dcp)


def make(out, name, use_dcp, form):
    case = Case(out, name, src="ckpt", form=form)
    run_ranks(3, save, case.at("ckpt"), use_dcp)
    case.expect_folder(tiny_model("moe", torch.float32))


def as_dcp(out):
    make(out, "dcp", True, "save_fsdp_model, DCP")


def as_rank_files(out):
    make(out, "rank_files", False, "save_fsdp_model, one file a rank")


if __name__ == "__main__":
    main(["accelerate", "torch"], as_dcp, as_rank_files)
