"""torch_checkpointing: the sharded model of FSDP2 with its CheckpointManager, as files of ranks with metadata. It gathers the metadata on a GPU, which
is told otherwise, and writes past the cache of the kernel, which not every file system can."""

import torch
from common import Case, main, run_ranks, tiny_model


def on_cpu(function):
    def call(*args, **how):
        return function(*args, **{**how, "device": "cpu"} if how.get("device") == "cuda" else how)
    return call


def through_the_cache(opened, direct):
    """os.open of a file system that has no O_DIRECT, which the library falls back from."""
    def call(path, flags, *more):
        if flags & direct:
            raise OSError(22, "no O_DIRECT")
        return opened(path, flags, *more)
    return call


def save(folder, kind):
    import torch_checkpointing as tc
    from torch.distributed.fsdp import fully_shard
    from torch_checkpointing.default_resharder import DefaultResharder
    from torch_checkpointing.storage import filesystem
    model = tiny_model(kind)
    for layer in model.model.layers:
        fully_shard(layer)
    fully_shard(model)
    torch.tensor, torch.empty, torch.zeros = on_cpu(torch.tensor), on_cpu(torch.empty), on_cpu(torch.zeros)
    torch.Tensor.cuda = lambda self, *args, **how: self
    filesystem.os.open = through_the_cache(filesystem.os.open, filesystem.os.O_DIRECT)
    config = tc.CheckpointManager.Config(save=tc.SyncCheckpointSaverConfig(), default=tc.ItemSpec(resharder=DefaultResharder()))
    tc.CheckpointManager(config).save(folder, {"model": dict(model.state_dict())})


def make(out, name, kind):
    case = Case(out, name, src="ckpt", form=kind)
    run_ranks(2, save, case.at("ckpt"), kind)
    case.expect_folder(tiny_model(kind))


def dense(out):
    make(out, "dense", "dense")


def moe(out):
    make(out, "moe", "moe")


if __name__ == "__main__":
    main(["torch_checkpointing", "torch"], dense, moe)
