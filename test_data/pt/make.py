#!/usr/bin/env python3
"""Writes the torch files of this folder with torch itself, and manifest.json with what torch reads back from them.

usage: python make.py [OUT_DIR]
"""
import argparse, enum, hashlib, json, os, pathlib, random, shutil, sys, tempfile

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SEED = 20240611


class Color(enum.Enum):
    red = 1


def entry(t):
    t = t.detach().contiguous()
    raw = b"" if t.numel() == 0 else t.reshape(-1).view(torch.uint8).numpy().tobytes()
    return {"dtype": str(t.dtype).replace("torch.", ""), "shape": list(t.shape),
            "sha256": hashlib.sha256(raw).hexdigest()}


def walk(value, path, out):
    if isinstance(value, torch.Tensor):
        out[path] = entry(value)
    elif isinstance(value, dict):
        for k, v in value.items():
            walk(v, f"{path}.{k}" if path else str(k), out)
    elif isinstance(value, (list, tuple)):
        for i, v in enumerate(value):
            walk(v, f"{path}.{i}" if path else str(i), out)
    return out


def make(shape, dtype, seed):
    g = torch.Generator().manual_seed(SEED + seed)
    n = int(np.prod(shape)) if shape else 1
    if dtype.is_complex:
        return torch.randn(n, dtype=dtype, generator=g).reshape(shape)
    if dtype == torch.bool:
        return (torch.randint(0, 2, (n,), generator=g) == 1).reshape(shape)
    if dtype.is_floating_point:
        return torch.randn(n, generator=g).to(dtype).reshape(shape)
    low, high = (0, 200) if not dtype.is_signed else (-100, 100)
    return torch.randint(low, high, (n,), generator=g).to(dtype).reshape(shape)


def nested():
    return {"a": make((3, 4), torch.float32, 1), "b": make((5,), torch.int64, 2),
            "nested": {"list": [make((2,), torch.float16, 3), 7, "s"], "scalar": make((), torch.float64, 4),
                       "empty": torch.empty(0, 3)}}


def views():
    base = make((6, 8), torch.float32, 5)
    return {"whole": base, "row": base[2], "transposed": base.t(), "slice": base[1:3, 2:5], "same": base,
            "steps": base[::2, 1::3], "expanded": make((1, 4), torch.float32, 6).expand(3, 4)}


def every_dtype():
    out = {}
    for i, name in enumerate(["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
                              "uint16", "uint32", "uint64", "bool", "complex64", "complex128"]):
        out[name] = make((4, 3), getattr(torch, name), 100 + i)
    for i, name in enumerate(["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]):
        out[name] = make((4, 3), torch.float32, 200 + i).abs().to(getattr(torch, name))
    out["float4_e2m1fn_x2"] = make((4, 3), torch.uint8, 210).view(torch.float4_e2m1fn_x2)
    return out


def training():
    weight = torch.nn.Parameter(make((3, 4), torch.float32, 7))
    adam = torch.optim.AdamW([weight])
    weight.grad = make((3, 4), torch.float32, 8)
    adam.step()
    args = argparse.Namespace(hidden_size=8, num_layers=2, bf16=True, params_dtype=torch.bfloat16, lr=3e-4,
                              data_path=["a", "b"], tokenizer_model=None, betas=(0.9, 0.95), save=pathlib.PosixPath("/x/y"),
                              tensor_model_parallel_size=2, pipeline_model_parallel_size=1)
    rng = {"random_rng_state": random.Random(3).getstate(), "np_rng_state": np.random.RandomState(3).get_state(),
           "torch_rng_state": torch.Generator().manual_seed(3).get_state()}
    return {"args": args, "checkpoint_version": 3.0, "iteration": 10, "color": Color.red, "blob": b"\x00\xff\x80",
            "model": {"language_model.embedding.word_embeddings.weight": make((13, 8), torch.bfloat16, 9)},
            "optimizer": adam.state_dict(), "rng_state": [rng]}


def files():
    linear = torch.nn.Linear(4, 3)
    with torch.no_grad():
        linear.weight.copy_(make((3, 4), torch.float32, 10))
        linear.bias.copy_(make((3,), torch.float32, 11))
    quantized = torch.quantize_per_tensor(make((3, 4), torch.float32, 12), 0.1, 10, torch.quint8)
    old = {"_use_new_zipfile_serialization": False}
    yield "zip.pt", nested(), {}
    yield "zip_protocol4.pt", nested(), {"pickle_protocol": 4}
    yield "zip_protocol5.pt", nested(), {"pickle_protocol": 5}
    yield "legacy.pt", nested(), old
    yield "legacy_protocol1.pt", nested(), dict(old, pickle_protocol=1)
    yield "legacy_protocol4.pt", nested(), dict(old, pickle_protocol=4)
    yield "views.pt", views(), {}
    yield "views_legacy.pt", views(), old
    yield "dtypes.pt", every_dtype(), {}
    yield "module.pt", linear.state_dict(), {}
    yield "parameters.pt", {"w": linear.weight, "b": linear.bias}, {}
    yield "quantized.pt", {"q": quantized}, {}
    yield "training.pt", training(), {}
    yield "one_tensor.pt", make((2, 3), torch.float32, 13), {}
    yield "list.pt", [make((2,), torch.float32, 14), {"x": make((3,), torch.int8, 15)}], {}


def write_megatron(out, manifest):
    whole = make((12, 8), torch.bfloat16, 20)
    (out / "megatron" / "iter_0000010").mkdir(parents=True)
    for tp in range(2):
        path = out / "megatron" / "iter_0000010" / f"mp_rank_{tp:02d}" / "model_optim_rng.pt"
        path.parent.mkdir()
        model = {"embedding.weight": whole.chunk(2)[tp].clone(), "fc1._extra_state": None}
        torch.save({"args": training()["args"], "iteration": 10, "model": model}, path)
        torch.save({0: {"param": make((5,), torch.float32, 21 + tp)}}, path.with_name("distrib_optim.pt"))
        manifest[str(path.relative_to(out))] = walk(torch.load(path, weights_only=False), "", {})
    (out / "megatron" / "latest_checkpointed_iteration.txt").write_text("10")


def write_rank(rank, world, store, out):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=world)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard
    line = init_device_mesh("cpu", (world,), mesh_dim_names=("dp",))
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    rows = [0, 20, 4, 0]
    uneven = make((24, 8), torch.float32, 30)
    begin = sum(rows[:rank])
    two = make((6, 10), torch.float32, 31)
    dp, tp = grid.get_local_rank("dp"), grid.get_local_rank("tp")
    even = make((8, 8), torch.float32, 32)
    from_local = lambda t, mesh, placements, whole: DTensor.from_local(
        t.clone(), mesh, placements, run_check=False, shape=whole.shape, stride=whole.stride())
    torch.save({"uneven": from_local(uneven[begin:begin + rows[rank]], line, [Shard(0)], uneven),
                "even": from_local(even.chunk(world)[rank], line, [Shard(0)], even),
                "grid": from_local(two.chunk(2, 0)[dp].chunk(2, 1)[tp], grid, [Shard(0), Shard(1)], two),
                "both": from_local(even.chunk(2)[dp].chunk(2)[tp], grid, [Shard(0), Shard(0)], even),
                "copies": from_local(even, line, [Replicate()], even),
                "plain": even, "rng": make((16,), torch.uint8, 40 + rank)},
               out / f"model_world_size_{world}_rank_{rank}.pt")
    dist.destroy_process_group()


def write_ranks(out, manifest):
    folder = out / "ranks"
    folder.mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        mp.spawn(write_rank, args=(4, os.path.join(scratch, "store"), folder), nprocs=4)
    whole = {"uneven": make((24, 8), torch.float32, 30), "grid": make((6, 10), torch.float32, 31)}
    for name in ("even", "both", "copies", "plain"):
        whole[name] = make((8, 8), torch.float32, 32)
    for rank in range(4):
        whole[f"rank_{rank}:rng"] = make((16,), torch.uint8, 40 + rank)
    manifest["ranks"] = walk(whole, "", {})


def write_shards(out, manifest):
    (out / "shards").mkdir()
    whole = {f"layers.{i}.weight": make((3, 4), torch.float32, 50 + i) for i in range(4)}
    for part in range(2):
        mine = dict(list(whole.items())[part * 2:part * 2 + 2])
        torch.save(mine, out / "shards" / f"pytorch_model-{part + 1:05d}-of-00002.bin")
    manifest["shards"] = walk(whole, "", {})


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)))
    for name in ("megatron", "ranks", "shards"):
        shutil.rmtree(out / name, ignore_errors=True)
    manifest = {}
    for name, value, options in files():
        torch.save(value, out / name, **options)
        got = torch.load(out / name, weights_only=False)
        manifest[name] = walk(got, "", {}) if not isinstance(got, torch.Tensor) else {"tensor": entry(got)}
        if name == "quantized.pt":
            raw = got["q"].int_repr()
            manifest[name] = {"q": dict(entry(raw), dtype="quint8")}
    torch.serialization.set_crc32_options(False)
    torch.save(nested(), out / "no_checksums.pt")
    torch.serialization.set_crc32_options(True)
    manifest["no_checksums.pt"] = walk(nested(), "", {})
    write_megatron(out, manifest)
    write_ranks(out, manifest)
    write_shards(out, manifest)
    (out / "manifest.json").write_text(json.dumps({"torch": torch.__version__, "files": manifest}, indent=1) + "\n")


if __name__ == "__main__":
    main()
