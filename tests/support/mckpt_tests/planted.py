"""Checkpoints with one thing wrong, planted in real saves and in conversions: the commands of docs/mission.md find it. They lie in
planted/, each under the name of its fault; without torch none is made, and the exit status is 77.

usage: python3 -m mckpt_tests.planted      in the folder in which the page made tiny_ckpt, nh, nh_core, dense, experts and experts_fsdp
"""
import dataclasses
import glob
import io
import json
import os
import pickle
import shutil

from mckpt_tests.checks import need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

need("torch", "numpy")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner  # noqa: E402
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict  # noqa: E402
from torch.distributed.checkpoint.state_dict_saver import _save_state_dict  # noqa: E402

OPTIM = os.path.join(DATA, "dcp", "fsdp_dtensor_optim")
META, STATE = "optimizer.param_to_group_meta.module.module.module.", "optimizer.state.module.module.module."
LAYER = "decoder.layers.0."
FC1, FC2, NORM = LAYER + "mlp.linear_fc1.weight", LAYER + "mlp.linear_fc2.weight", LAYER + "mlp.linear_fc1.layer_norm_weight"
PLAIN = {"flatten_state_dict": False, "flatten_sharded_tensors": False}


def copied(source, name):
    return shutil.copytree(source, os.path.join("planted", name))


def folder_of(run, word):
    """The folder below a run in which a file of this name is."""
    return next(at for at, _, files in sorted(os.walk(run)) if any(word in file for file in files))


# ---- Boxes: the tensors stay, and .metadata says otherwise.

BOXED = "model.module.decoder.layers.1.self_attention.linear_qkv.weight"


def with_boxes(name, change):
    index = glob.glob(os.path.join(copied("tiny_ckpt", name), "*", ".metadata"))[0]
    with open(index, "rb") as f:
        metadata = pickle.load(f)
    chunks = sorted(metadata.state_dict_metadata[BOXED].chunks, key=lambda chunk: tuple(chunk.offsets))
    change(metadata, chunks)
    with open(index, "wb") as f:
        pickle.dump(metadata, f)


def move(metadata, chunk, first, rows):
    """The chunk has these rows, and its record is found there."""
    at = next(at for at in metadata.storage_data if at.fqn == BOXED and tuple(at.offset) == tuple(chunk.offsets))
    offsets = torch.Size((first, *chunk.offsets[1:]))
    metadata.storage_data[dataclasses.replace(at, offset=offsets)] = metadata.storage_data.pop(at)
    object.__setattr__(chunk, "offsets", offsets)
    object.__setattr__(chunk, "sizes", torch.Size((rows, *chunk.sizes[1:])))


def lose(metadata, chunks):
    metadata.state_dict_metadata[BOXED].chunks.remove(chunks[0])


def shift(rows):
    return lambda metadata, chunks: move(metadata, chunks[-1], chunks[-1].offsets[0] + rows, chunks[-1].sizes[0])


def other_boundary(metadata, chunks):
    """One row of the first chunk is the second one's: still each row once, but not as the engine packs."""
    first, second = chunks[:2]
    object.__setattr__(first, "sizes", torch.Size((first.sizes[0] - 1, *first.sizes[1:])))
    move(metadata, second, second.offsets[0] - 1, second.sizes[0] + 1)


def boxes():
    with_boxes("hole", lose)
    with_boxes("overlap", shift(-1))
    with_boxes("outside", shift(1))
    with_boxes("boundary", other_boundary)


# ---- Values and objects of DCP folders.

def changed(source, name, *changes):
    reader = dcp.FileSystemReader(source)
    state = {key: torch.empty(item.size, dtype=item.properties.dtype) if hasattr(item, "size") else io.BytesIO()
             for key, item in reader.read_metadata().state_dict_metadata.items()}
    _load_state_dict(state, reader, planner=DefaultLoadPlanner(**PLAIN), no_dist=True)
    for change in changes:
        change(state)
    folder = os.path.join("planted", name)
    os.makedirs(folder)
    _save_state_dict(state, dcp.FileSystemWriter(folder, sync_files=False), planner=DefaultSavePlanner(**PLAIN), no_dist=True)
    for file in os.listdir(source):
        if file.endswith((".pt", ".json")) and "manifest" not in file:
            shutil.copy(os.path.join(source, file), folder)


def options(parameter, **fields):
    def change(state):
        for field, value in fields.items():
            assert f"{META}{parameter}.{field}" in state, (parameter, field)
            state[f"{META}{parameter}.{field}"] = value
    return change


def put(key, value):
    def change(state):
        assert key in state, key
        state[key] = value(state[key])
    return change


def without(*keys):
    return lambda state: [state.pop(key) for key in keys]


def moments(state):
    """Two states for each parameter; no two of their values are equal."""
    at = 1
    for key in [key for key in state if key.startswith("model.module.")]:
        for kind in ("exp_avg", "exp_avg_sq"):
            items = torch.arange(at, at + state[key].numel(), dtype=torch.float32)
            state[key.replace("model.module.", STATE) + "." + kind] = items.reshape(state[key].shape)
            at += state[key].numel()


def states():
    changed(folder_of("nh", ".metadata"), "hybrid_states/iter_0000005", moments)
    changed(OPTIM, "options", options(NORM, wd_mult=1.0, weight_decay=0.1), options(FC2, lr=0.125), options(FC1, step=3))
    changed(OPTIM, "no_state", without(f"{STATE}{FC2}.exp_avg", f"{STATE}{FC2}.exp_avg_sq"))
    changed(OPTIM, "piece", put(f"{STATE}{FC1}_w.exp_avg", lambda t: t[:5].clone()), put(f"{STATE}{FC1}_v.exp_avg", lambda t: t[:0].clone()))
    changed(OPTIM, "shape", put(f"{STATE}{FC2}.exp_avg", lambda t: t.reshape(-1, 1)))
    changed(OPTIM, "half", without(f"model.module.{FC1}_v", f"{STATE}{FC1}_v.exp_avg", f"{STATE}{FC1}_v.exp_avg_sq"))
    experts = folder_of("experts_fsdp", ".metadata")
    names = sorted({key[len(META):].rsplit(".", 1)[0] for key in dcp.FileSystemReader(experts).read_metadata().state_dict_metadata if key.startswith(META)})
    changed(experts, "expert_unmarked", *(options(name, is_expert_parallel=True) for name in [n for n in names if ".experts." in n][1:]))
    changed(folder_of("nh_core", ".metadata"), "full_state", put("output_layer._extra_state/shard_0_1", lambda _: [torch.ones(1)]))


# ---- Files of ranks.

def rank_file(name, rank, change):
    """A copy of the real run in which the model of one rank's file differs."""
    file = os.path.join(copied(os.path.dirname(folder_of("dense", "model_optim_rng")), name), rank, "model_optim_rng.pt")
    state = torch.load(file, weights_only=False)
    change(state["model"])
    torch.save(state, file)


def double(key):
    def change(model):
        model[key] = model[key].clone()
        model[key].view(-1)[2] *= 2
    return change


def ranks():
    rank_file("doubled", "mp_rank_01_000", double("decoder.layers.0.self_attention.linear_proj.weight"))
    rank_file("norm", "mp_rank_01_000", double("decoder.layers.0.pre_mlp_layernorm.weight"))
    listed = json.loads(run_mckpt("ls", TINY_MODEL, "--as", "megatron", "--json").stdout)["tensors"]
    shapes = {t["name"]: t["shape"] for t in listed}
    moments = {name: {"exp_avg": torch.zeros(shape), "exp_avg_sq": torch.zeros(shape)} for name, shape in shapes.items()}
    groups = [{"params": list(range(len(moments)))}]
    for name, optimizer in (("fewer_states", {"state": {n: m for n, m in moments.items() if ".experts." not in n}}),
                            ("numbered_states", {"state": dict(enumerate(moments.values())), "param_groups": groups})):
        os.mkdir(os.path.join("planted", name))
        torch.save({"optimizer": optimizer}, os.path.join("planted", name, "optim_world_size_1_rank_0.pt"))


def values():
    """NaN at [0, 5] of a tensor of the tiny model."""
    folder = copied(TINY_MODEL, "nan")
    row = next(t for t in json.loads(run_mckpt("ls", folder, "--json").stdout)["tensors"] if t["name"] == "model.layers.0.mlp.gate.weight")
    with open(os.path.join(folder, row["file"]), "r+b") as f:
        f.seek(row["offset"] + 2 * 5)
        f.write(b"\xc0\x7f")


os.mkdir("planted")
for plant in (boxes, states, ranks, values):
    plant()
