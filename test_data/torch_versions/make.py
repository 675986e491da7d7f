#!/usr/bin/env python3
"""Has the installed torch, 1.13 or newer, save small files of many kinds, with a manifest of the values that they were made of.

usage: python make.py OUT                  writes OUT/<version of torch>/
       python make.py --pack OUT FOLDER    packs every folder of OUT into FOLDER/<version>.tar.xz

manifest.json: the versions; for each source (a file or a folder) its kind (`pt`, `dcp`, `ranks`) and each tensor's data type, shape and the SHA-256
of its contiguous little-endian bytes, taken from the values before they were saved; the words of a refusal where no value is a plain tensor. Sources that this torch cannot save are
in `not_saved`, with its own words. Values follow from the tensor's name alone, so that two ranks agree on them."""

import argparse
import collections
import datetime
import hashlib
import json
import os
import platform
import random
import shutil
import sys
import tempfile
import time
import traceback
import warnings

if "--pack" not in sys.argv:
    import numpy as np
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp

DTYPES = ["float64", "float32", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool"]  # those that every release can save
UNSIGNED = ["uint16", "uint32", "uint64"]
SMALL_FLOATS = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
RANKS = 2


# ---- Values


def values(name, shape, dtype=None):
    """A tensor whose bytes follow from its name. All bits of integers and small floats; moderate numbers of the larger ones."""
    dtype = dtype or torch.float32
    rnd, count = random.Random(name), 1
    for n in shape:
        count *= n
    if dtype == torch.bool:
        return torch.tensor([rnd.random() < 0.5 for _ in range(count)], dtype=torch.bool).reshape(shape)
    if dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        return torch.tensor([rnd.uniform(-100, 100) for _ in range(count)], dtype=torch.float64).to(dtype).reshape(shape)
    if not count:
        return torch.empty(shape, dtype=dtype)
    if dtype.is_complex:
        return torch.complex(values(name + ".real", shape), values(name + ".imag", shape)).to(dtype)
    width = torch.empty(0, dtype=dtype).element_size()
    bits = torch.tensor([rnd.getrandbits(6 if dtype.is_floating_point else 8) for _ in range(count * width)], dtype=torch.uint8)  # small floats that are not NaN
    return bits.view(dtype).reshape(shape)


def row(tensor):
    plain = tensor.detach()
    if plain.is_conj():
        plain = plain.resolve_conj()
    if plain.is_neg():
        plain = plain.resolve_neg()
    plain = plain.clone(memory_format=torch.contiguous_format)
    data = plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""
    return {"dtype": str(tensor.dtype).replace("torch.", ""), "shape": list(tensor.shape), "sha256": hashlib.sha256(data).hexdigest()}


def walk(value, path=()):
    """Names are the ways to the tensors, joined with dots; a tensor that is the whole file is "tensor"."""
    if isinstance(value, torch.Tensor):
        yield ".".join(path) or "tensor", value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from walk(item, (*path, str(key)))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from walk(item, (*path, str(i)))


# ---- Files of torch.save: each function gives what is saved


def all_types():
    return {name: values(name, (3, 5), getattr(torch, name)) for name in DTYPES}


def small_floats():
    torch.float8_e5m2  # the first of them that torch had
    return {name: values(name, (3, 5), getattr(torch, name)) for name in SMALL_FLOATS if hasattr(torch, name)}


def complex_types():
    return {name: values(name, (2, 3), getattr(torch, name)) for name in ("complex64", "complex128")}


def half_complex():
    return {"complex32": values("complex32", (2, 3), torch.complex32)}


def unsigned_types():
    return {name: values(name, (3, 2), getattr(torch, name)) for name in UNSIGNED}


def nested():
    return {"model": collections.OrderedDict([("a.weight", values("a", (3, 4))), ("b", {"c": [values("c0", (2,)), values("c1", (3,), torch.int64)], 7: values("seven", (1,))})]),
            "pair": (values("p0", (2, 2)), values("p1", ())), "number": 3, "text": "t\u00e9xt", "none": None, "flag": True, "large": 2**70, "bytes": b"\x00\xff",
            "set": {1, 2}, "range": range(3), "size": torch.Size([2, 3]), "dtype": torch.bfloat16, "device": torch.device("cpu"), "float": 1.5}


def tied():
    embedding = values("embedding", (6, 4))
    head = torch.nn.Parameter(values("head", (4, 4)))
    return {"embed.weight": embedding, "lm_head.weight": embedding, "first": head, "second": head, "part": embedding[2:4]}


def views():
    base, column = values("base", (6, 8)), values("column", (4, 3, 2), torch.int32)
    return {"transposed": base.t(), "rows": base[1:4], "columns": base[:, 2:5], "stepped": base[::2, 1::3], "item": base[3, 4], "row": base[5],
            "expanded": values("expanded", (1, 4)).expand(3, 4), "permuted": column.permute(2, 0, 1), "flat": column.reshape(-1)[5:11], "empty": base[2:2],
            "diagonal": base.diagonal(), "unfolded": values("unfolded", (9,)).unfold(0, 4, 2), "channels": values("channels", (2, 3, 4, 5)).contiguous(memory_format=torch.channels_last),
            "small_of_large": values("large", (500,), torch.int16)[7:9]}


def shapes():
    return {"scalar": values("scalar", ()), "empty": values("none", (0,)), "empty_rows": values("none", (0, 4)), "deep": values("deep", (1, 2, 1, 3, 1)), "one": values("one", (1,), torch.bool)}


class Net(torch.nn.Module if "--pack" not in sys.argv else object):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 6)
        self.norm = torch.nn.BatchNorm1d(6)
        self.back = torch.nn.Linear(6, 4, bias=False)
        self.register_buffer("mask", values("mask", (4, 4), torch.bool))

    def forward(self, x):
        return self.back(self.norm(self.linear(x)))


def filled(module):
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(values(name, tensor.shape, tensor.dtype).abs() / 50 if "var" in name else values(name, tensor.shape, tensor.dtype) / 50)
    return module


def state_dict():
    return filled(Net()).state_dict()


def training(kind="AdamW"):
    net = filled(Net())
    optimizer = getattr(torch.optim, kind)(net.parameters(), lr=0.1, **({"momentum": 0.9} if kind == "SGD" else {}))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, Constant())
    for _ in range(2):
        net(values("input", (3, 4))).sum().backward()
        optimizer.step()
        schedule.step()
    torch.manual_seed(5)
    return {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "lr_scheduler": schedule.state_dict(), "rng": torch.get_rng_state(),
            "args": argparse.Namespace(tp=2, lr=0.1, names=["a"]), "iteration": 2, "generator": random.Random(3).getstate(), "scaler": {"scale": 65536.0}}


class Constant:
    def __call__(self, step):
        return 1.0


def parameters():
    out = torch.nn.ParameterList([torch.nn.Parameter(values("p0", (2, 3))), torch.nn.Parameter(values("p1", (4,), torch.bfloat16), requires_grad=False)])
    result = {"list": list(out), "leaf": values("leaf", (3,)).requires_grad_()}
    if hasattr(torch.nn, "Buffer"):
        result["buffer"] = torch.nn.Buffer(values("buffer", (2,)))
    return result


def with_attributes():
    tensor, parameter = values("tensor", (2, 3)), torch.nn.Parameter(values("parameter", (3, 2)))
    tensor.tensor_model_parallel, parameter.allreduce, parameter.partition_dim = True, False, 1
    return {"tensor": tensor, "parameter": parameter}


def one_tensor():
    return values("alone", (3, 7), torch.float16)


def a_list():
    return [values("l0", (2,)), [values("l1", (3,))], (values("l2", (1, 2)),)]


def numpy_beside():
    return {"weight": values("weight", (2, 3)), "array": np.arange(6, dtype=np.float32).reshape(2, 3), "scalar": np.float64(2.5), "int": np.int64(7)}


def conjugated():
    tensor = values("conj", (2, 3), torch.complex64)
    return {"conj": tensor.conj(), "neg": torch._neg_view(values("neg", (2, 2))), "plain": values("plain", (2,))}


def quantised():
    scales = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    return {"tensor": torch.quantize_per_tensor(values("tensor", (3, 4)), 0.5, 3, torch.qint8), "unsigned": torch.quantize_per_tensor(values("unsigned", (5,)), 1.0, 128, torch.quint8),
            "channel": torch.quantize_per_channel(values("channel", (3, 4)), scales, torch.tensor([0, 1, 2]), 0, torch.qint8), "wide": torch.quantize_per_tensor(values("wide", (2,)), 0.01, 0, torch.qint32)}


def sparse():
    return {"coo": torch.sparse_coo_tensor(torch.tensor([[0, 1], [2, 0]]), values("coo", (2,)), (2, 3)), "plain": values("plain", (2,))}


def sparse_rows():
    return {"csr": torch.sparse_csr_tensor(torch.tensor([0, 1, 2]), torch.tensor([2, 0]), values("csr", (2,)), (2, 3)), "plain": values("plain", (2,))}


def on_meta():
    return {"meta": torch.empty(3, 4, device="meta"), "plain": values("plain", (2,))}


class Marked(torch.Tensor if "--pack" not in sys.argv else object):
    pass


def subclass():
    return {"marked": values("marked", (2, 3)).as_subclass(Marked), "plain": values("plain", (2,))}


def whole_module():
    return filled(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2)))


def storages():
    return {"weight": values("weight", (4,)), "storage": values("storage", (5,)).storage()}


# name: (what is saved, kinds of containers). Values of ODD have tensors that are not plain, or classes that are not torch's.
ZIP, LEGACY = ["zip", "zip_p4", "zip_p5"], ["legacy", "legacy_p4"]
PLAIN = {"all_types": (all_types, ZIP + LEGACY), "complex": (complex_types, ["zip", "legacy"]), "half_complex": (half_complex, ["zip"]), "unsigned": (unsigned_types, ["zip", "legacy"]), "small_floats": (small_floats, ["zip", "legacy"]), "nested": (nested, ZIP + LEGACY), "tied": (tied, ["zip", "legacy"]),
         "views": (views, ["zip", "legacy", "zip_p5"]), "shapes": (shapes, ["zip", "legacy"]), "state_dict": (state_dict, ["zip", "legacy"]), "parameters": (parameters, ["zip", "legacy"]),
         "with_attributes": (with_attributes, ["zip", "legacy"]), "one_tensor": (one_tensor, ["zip", "legacy"]), "a_list": (a_list, ["zip"]), "numpy_beside": (numpy_beside, ["zip", "legacy"]),
         "adamw": (training, ["zip", "legacy"]), "sgd": (lambda: training("SGD"), ["zip"]), "adam": (lambda: training("Adam"), ["zip"]), "no_checksums": (shapes, ["zip_no_crc"])}
ODD = {"conjugated": conjugated, "quantised": quantised, "sparse": sparse, "sparse_rows": sparse_rows, "on_meta": on_meta, "subclass": subclass, "whole_module": whole_module, "storages": storages}


def save(value, path, container):
    if container == "zip_no_crc":
        torch.serialization.set_crc32_options(False)
    try:
        protocol = {"zip_p4": 4, "zip_p5": 5, "legacy_p4": 4}.get(container, 2)
        torch.save(value, path, pickle_protocol=protocol, _use_new_zipfile_serialization=not container.startswith("legacy"))
    finally:
        if container == "zip_no_crc":
            torch.serialization.set_crc32_options(True)


class Writer:
    def __init__(self, out):
        self.out = out
        self.sources, self.not_saved = {}, {}

    def attempt(self, name, what):
        try:
            entry = what(os.path.join(self.out, name))
            self.sources[name] = entry
        except BaseException as e:  # noqa: BLE001  (the exceptions of torch.distributed.checkpoint are of this kind)
            if os.environ.get("TRACE"):
                traceback.print_exc()
            self.not_saved[name] = f"{type(e).__name__}: {e}".split("\n")[0][:160]
            path = os.path.join(self.out, name)
            shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)

    def pt(self):
        for name, (make, containers) in PLAIN.items():
            for container in containers:
                def plain(path, make=make, container=container):
                    value = make()
                    entry = {"kind": "pt", "tensors": {key: row(t) for key, t in walk(value)}}
                    save(value, path, container)
                    return entry
                self.attempt(f"{name}_{container}.pt", plain)
        for name, make in ODD.items():
            def odd(path, make=make):
                value = make()
                save(value, path, "zip")
                return odd_entry(value, path)
            self.attempt(f"{name}.pt", odd)
        self.attempt("script.pt", lambda path: torch.jit.trace(torch.nn.Linear(3, 2), torch.ones(1, 3)).save(path) or {"kind": "odd", "tensors": {}, "others": []})


def odd_entry(value, path):
    """The tensors that are listed: plain ones, the codes of quantised ones, subclasses as their tensors. torch 1.13 does not save that a tensor is a conjugate, so that the
    file has the values without it."""
    tensors, others = {}, []
    for (key, t), (_, again) in zip(walk(value), walk(torch.load(path, **({"weights_only": False} if torch.__version__ > "1.13.9" else {})))):
        if t.layout != torch.strided or t.device.type != "cpu" or again.is_conj() or again.is_neg():
            others.append(key)
        else:
            tensors[key] = {**row(again.int_repr()), "dtype": str(again.dtype).replace("torch.", "")} if again.is_quantized else row(again.as_subclass(torch.Tensor))
    return {"kind": "odd", "tensors": tensors, "others": others}


# ---- Folders of torch.distributed.checkpoint and files of ranks, by two ranks


def dcp_save():
    """This torch's function that saves a state dict into a folder."""
    try:
        import torch.distributed.checkpoint as dcp
    except ImportError:
        import torch.distributed._shard.checkpoint as dcp
    if hasattr(dcp, "save"):
        return lambda state, path, **more: dcp.save(state, storage_writer=dcp.FileSystemWriter(path, **more))
    return lambda state, path, **more: dcp.save_state_dict(state, dcp.FileSystemWriter(path, **more))


def dtensor_modules():
    try:
        import torch.distributed.tensor as tensor
        tensor.DTensor
    except (ImportError, AttributeError):
        import torch.distributed._tensor as tensor
    try:
        from torch.distributed.device_mesh import init_device_mesh
    except ImportError:
        init_device_mesh = None
    return tensor, init_device_mesh


def mesh_of_ranks(tensor, init_device_mesh):
    return init_device_mesh("cpu", (RANKS,)) if init_device_mesh else tensor.DeviceMesh("cpu", list(range(RANKS)))


def plain_state():
    return {"weight": values("weight", (5, 3)), "count": values("count", (), torch.int64), "half": values("half", (4,), torch.bfloat16), "flags": values("flags", (3,), torch.bool)}


def deep_state():
    return {"model": {"a": values("a", (3, 4)), "layers": {"0": {"w": values("w", (2, 2))}}}, "steps": 7, "text": "hello", "list": [values("l0", (2,)), 3]}


def dtensor_state():
    """Rows over the ranks, uneven too; columns; a copy on each rank."""
    tensor, init = dtensor_modules()
    mesh = mesh_of_ranks(tensor, init)
    split = {"rows": ((6, 4), tensor.Shard(0)), "uneven": ((5, 3), tensor.Shard(0)), "columns": ((4, 6), tensor.Shard(1)), "short": ((1, 3), tensor.Shard(0)), "copies": ((3, 3), tensor.Replicate())}
    out = {name: tensor.distribute_tensor(values(name, shape), mesh, [placement]) for name, (shape, placement) in split.items()}
    out["half"] = tensor.distribute_tensor(values("half", (4, 4), torch.float16), mesh, [tensor.Shard(0)])
    out["plain"] = values("plain", (3,), torch.int64)
    return out, {**{name: values(name, shape) for name, (shape, _) in split.items()}, "half": values("half", (4, 4), torch.float16), "plain": values("plain", (3,), torch.int64)}


def dtensor_2d_state():
    """Over a mesh of two dimensions, the first of size 1."""
    tensor, init = dtensor_modules()
    mesh = init("cpu", (1, RANKS)) if init else tensor.DeviceMesh("cpu", [list(range(RANKS))])
    whole = {"rows": values("rows", (6, 4)), "columns": values("columns", (3, 5))}
    return {name: tensor.distribute_tensor(whole[name], mesh, [tensor.Replicate(), tensor.Shard(d)]) for d, name in enumerate(whole)}, whole


def sharded_state():
    """ShardedTensors of torch.distributed._shard: a shard a rank, and two shards a rank."""
    from torch.distributed._shard.sharded_tensor import Shard, init_from_local_shards
    rank, out, whole = dist.get_rank(), {}, {}
    for name, shape, cuts in (("rows", (6, 4), [(0, 3), (3, 3)]), ("uneven", (5, 3), [(0, 3), (3, 2)]), ("twice", (8, 2), [(0, 2), (2, 2), (4, 2), (6, 2)])):
        whole[name] = values(name, shape)
        mine = [(begin, count) for i, (begin, count) in enumerate(cuts) if i % RANKS == rank]
        shards = [Shard.from_tensor_and_offsets(whole[name][begin:begin + count].clone(), [begin, 0], rank) for begin, count in mine]
        out[name] = init_from_local_shards(shards, *shape)
    whole["plain"] = out["plain"] = values("plain", (3,), torch.int64)
    return out, whole


class Wide(torch.nn.Module if "--pack" not in sys.argv else object):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(5, 7), torch.nn.Linear(7, 3, bias=False)

    def forward(self, x):
        return self.second(self.first(x))


def wide():
    net = Wide()
    with torch.no_grad():
        for name, p in net.named_parameters():
            p.copy_(values(name, p.shape))
    return net


def fsdp1_state(kind):
    """The state dict of torch's FullyShardedDataParallel on the CPU: ShardedTensors, or DTensors where it is given a mesh."""
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, StateDictType
    more = {}
    if kind == "dtensor":
        tensor, init = dtensor_modules()
        more["device_mesh"] = mesh_of_ranks(tensor, init)
    net = wide()
    whole = {name: p.detach().clone() for name, p in net.named_parameters()}
    model = FSDP(net, use_orig_params=True, device_id=torch.device("cpu"), **more) if kind != "plain" else FSDP(net, device_id=torch.device("cpu"))
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        return model.state_dict(), whole


def fsdp2_state():
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        from torch.distributed._composable.fsdp import fully_shard
    tensor, init = dtensor_modules()
    net = wide()
    whole = {name: p.detach().clone() for name, p in net.named_parameters()}
    fully_shard(net, mesh=mesh_of_ranks(tensor, init))
    return net.state_dict(), whole


def plainly(make):
    """A state without pieces, with the tensors that this release stores as such: torch 1.13 keeps a nested dictionary as one object."""
    def state():
        try:
            from torch.distributed.checkpoint._nested_dict import flatten_state_dict
            flat = flatten_state_dict(make())[0]
        except ImportError:
            flat = make()
        return make(), {key: value for key, value in flat.items() if isinstance(value, torch.Tensor)}
    return state


STATES = {"plain": plainly(plain_state), "deep": plainly(deep_state), "dtensor": dtensor_state, "dtensor_2d": dtensor_2d_state, "sharded": sharded_state, "fsdp1": lambda: fsdp1_state("plain"),
          "fsdp1_orig": lambda: fsdp1_state("orig"), "fsdp1_mesh": lambda: fsdp1_state("dtensor"), "fsdp2": fsdp2_state}
HOW = {"plain": ["dcp", "dcp_files"], "deep": ["dcp"], "dtensor": ["dcp", "ranks"], "dtensor_2d": ["dcp", "ranks"], "sharded": ["dcp", "ranks"], "fsdp1": ["dcp", "ranks"], "fsdp1_orig": ["dcp"], "fsdp1_mesh": ["dcp", "ranks"], "fsdp2": ["dcp", "ranks"]}


def save_as_rank(rank, out, name, how):
    state, whole = STATES[name]()
    if how.startswith("dcp"):
        dcp_save()(state, out, **({"single_file_per_rank": False} if how == "dcp_files" else {}))
    else:
        os.makedirs(out, exist_ok=True)
        torch.save(state, os.path.join(out, f"model_world_size_{RANKS}_rank_{rank}.pt"))
    return {"kind": "dcp" if how.startswith("dcp") else "ranks", "tensors": {key: row(t) for key, t in whole.items()}}


def of_a_rank(rank, out, meeting):
    """Saves every state that this torch can make. Each has ranks that met anew, since a save that fails may leave a message behind."""
    warnings.simplefilter("ignore")
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(RANKS), LOCAL_RANK=str(rank))
    torch.set_num_threads(1)
    writer = Writer(out)
    for name, how in [(name, how) for name, hows in HOW.items() for how in hows]:
        dist.init_process_group("gloo", init_method=f"file://{meeting}/{how}_{name}", rank=rank, world_size=RANKS, timeout=datetime.timedelta(seconds=120))
        writer.attempt(f"{how}_{name}", lambda path, name=name, how=how: save_as_rank(rank, path, name, how))
        # The other rank may still wait for a message of this one, until its time is over.
        open(f"{meeting}/{how}_{name}_{rank}", "w").close()
        while not all(os.path.exists(f"{meeting}/{how}_{name}_{r}") for r in range(RANKS)):
            time.sleep(0.02)
        dist.destroy_process_group()
    with open(os.path.join(meeting, f"rank_{rank}.json"), "w") as f:
        json.dump([writer.sources, writer.not_saved], f)


def by_ranks(writer):
    with tempfile.TemporaryDirectory() as meeting:
        mp.spawn(of_a_rank, (writer.out, meeting), nprocs=RANKS)
        for rank in range(RANKS):
            with open(os.path.join(meeting, f"rank_{rank}.json")) as f:
                sources, not_saved = json.load(f)
            writer.sources.update(sources)
            writer.not_saved.update(not_saved)
    for name in writer.not_saved:
        writer.sources.pop(name, None)
        shutil.rmtree(os.path.join(writer.out, name), ignore_errors=True)


def write_all(out):
    warnings.simplefilter("ignore")
    version = torch.__version__.split("+")[0]
    folder = os.path.join(out, version)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    writer = Writer(folder)
    writer.pt()
    by_ranks(writer)
    with open(os.path.join(folder, "manifest.json"), "w") as f:
        json.dump({"torch": version, "python": platform.python_version(), "numpy": np.__version__, "sources": writer.sources, "not_saved": writer.not_saved}, f, indent=1, sort_keys=True)
    print(version, len(writer.sources), "saved;", json.dumps(writer.not_saved, indent=1))


def pack_all(out, folder):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "newest"))
    from pack import pack
    for version in sorted(os.listdir(out)):
        if os.path.exists(os.path.join(out, version, "manifest.json")):
            pack(out, [version], os.path.join(folder, version + ".tar.xz"))


if __name__ == "__main__":
    pack_all(*sys.argv[2:4]) if sys.argv[1] == "--pack" else write_all(sys.argv[1])
