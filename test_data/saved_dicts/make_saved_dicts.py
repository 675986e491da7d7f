"""Writes saves of nested dicts, as torch's own functions leave them: the model is one of the dicts. Its names are of a model that
mckpt has no table of.

usage: make_saved_dicts.py [FOLDER]     default: beside this program; needs torch 2.11

   model_and_more     dcp.save of {"model": ..., "ema": ..., "opt": ..., "loss": T, "cuda_rng": [T]}
   model_alone        dcp.save of the state dict itself, with names that begin with "model."
   model_and_more.pt  torch.save of the first
   two_models.pt      torch.save of {"actor": ..., "critic": ...}; the actor has one tensor more
   words.pt           torch.save of a model whose modules have the names of other things, beside such things; b.w is a.w, c.w equals it,
                      and d.w and e.w are halves of one storage
"""
import pathlib
import shutil
import sys

import torch
import torch.distributed.checkpoint as dcp

HERE = pathlib.Path(__file__).resolve().parent


def state(first, names):
    return {name: torch.arange(3 * i + 2, dtype=torch.float32) + first + 100 * i for i, name in enumerate(names)}


def main(folder):
    names = ["bert.embeddings.weight", "bert.pooler.dense.bias", "cls.bias"]
    more = {"ema": state(1000, names), "model": state(0, names), "opt": {"state": {"a": torch.ones(2)}},
            "loss": torch.tensor(2.5), "cuda_rng": [torch.arange(4)]}
    for name, save in (("model_and_more", more), ("model_alone", state(0, ["model." + n for n in names]))):
        shutil.rmtree(folder / name, ignore_errors=True)
        dcp.save(save, checkpoint_id=folder / name)
    torch.save(more, folder / "model_and_more.pt")
    torch.save({"actor": state(0, names), "critic": state(1000, names[:2])}, folder / "two_models.pt")
    names = ["scheduler.w", "rng.table", "optim.state.exp_avg", "extra_state", "step", "a.w"]
    model = state(0, names)
    halves = torch.arange(6, dtype=torch.float32).repeat(2)
    model |= {"b.w": model["a.w"], "c.w": model["a.w"].clone(), "d.w": halves[:6], "e.w": halves[6:]}
    torch.save({"model": model, "scheduler": state(1000, ["w"]), "step": torch.tensor(7.0)}, folder / "words.pt")


main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
