"""transformers: `save_pretrained`, whole, in several files and with experts; and its distributed checkpoints."""

import os

import torch
from common import Case, main, run_ranks, tiny_model


def folder(out, name, form, kind="dense", **how):
    case = Case(out, name, src="src", no_export=True, form=form)
    model = tiny_model(kind)
    model.save_pretrained(case.at("src"), **how)
    case.expect_folder(model)
    os.rename(case.at("expected.json"), case.at("expected_raw.json"))


def whole(out):
    folder(out, "whole", "save_pretrained")


def several(out):
    folder(out, "several", "in several files", max_shard_size="8KB")


def experts(out):
    folder(out, "experts", "with experts", "moe")


def tied(out):
    case = Case(out, "tied", src="src", no_export=True, form="tied")
    tiny_model(tie_word_embeddings=True).save_pretrained(case.at("src"))
    case.expect_folder(tiny_model(tie_word_embeddings=True))
    os.rename(case.at("expected.json"), case.at("expected_raw.json"))


def save_distributed(folder, kind):
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    from transformers.distributed import checkpoint
    model = tiny_model(kind)
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("fsdp",))
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    try:
        model.save_pretrained(folder, distributed_checkpoint=True)
    except ValueError:  # it takes models that transformers itself has sharded; the function below it takes others
        os.makedirs(folder, exist_ok=True)
        model.config.save_pretrained(folder)
        checkpoint._save_model_checkpoint_distributed(model, folder)


def distributed(out):
    for kind, world in (("dense", 3), ("moe", 2)):
        case = Case(out, f"distributed_{kind}", src="ckpt", form=f"distributed, {kind}")
        run_ranks(world, save_distributed, case.at("ckpt"), kind)
        case.expect_folder(tiny_model(kind))


if __name__ == "__main__":
    main(["transformers"], whole, several, experts, tied, distributed)
