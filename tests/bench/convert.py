"""Times conversions, whole processes, next to `cp -r` of the same bytes and to torch by hand.

usage: convert.py MCKPT [--folder DIR] [--rounds N] [--threads N] [--mib N] [--only WORD]

Contenders take turns, so that what else the machine does hits all of them alike. The table has best and
median wall time as multiples of cp's, processor time as a multiple of cp's, bytes read and written by system
calls for each byte of the model, calls per GiB and the kernel's peak of the process's memory. Sources are in
the page cache; what was written is removed between rounds. Standard library only, but for the peers, which
are left out where torch is missing.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys

from in_turns import has_torch, make_model, options, run, warm, work_folder

a = options()

HF_TO_DCP = """
import sys, json, glob, torch, torch.distributed.checkpoint as dcp
from safetensors import safe_open
sd = {}
for f in sorted(glob.glob(sys.argv[1] + '/*.safetensors')):
    s = safe_open(f, 'pt')
    sd.update({k: s.get_tensor(k) for k in s.keys()})
import warnings; warnings.simplefilter('ignore')
dcp.save(sd, storage_writer=dcp.FileSystemWriter(sys.argv[2], sync_files=False), no_dist=True)
"""
DCP_TO_HF = """
import sys, os, torch, torch.distributed.checkpoint as dcp, warnings
warnings.simplefilter('ignore')
from safetensors.torch import save_file
reader = dcp.FileSystemReader(sys.argv[1])
sd = {k: torch.empty(m.size, dtype=m.properties.dtype) for k, m in reader.read_metadata().state_dict_metadata.items() if hasattr(m, 'size')}
dcp.load(sd, storage_reader=reader, no_dist=True)
os.makedirs(sys.argv[2])
save_file(sd, sys.argv[2] + '/model.safetensors', metadata={'format': 'pt'})
"""
# As many ranks as the new grid has, each with its rows of every tensor.
RESHARD = """
import sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp, warnings
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, Replicate, empty
warnings.simplefilter('ignore')
dist.init_process_group('gloo')
mesh = init_device_mesh('cpu', (dist.get_world_size(),))
reader = dcp.FileSystemReader(sys.argv[1])
sd = {k: empty(*m.size, dtype=m.properties.dtype, device_mesh=mesh, placements=[Shard(0)])
      for k, m in reader.read_metadata().state_dict_metadata.items() if hasattr(m, 'size')}
dcp.load(sd, storage_reader=reader)
dcp.save(sd, storage_writer=dcp.FileSystemWriter(sys.argv[2], sync_files=False))
dist.destroy_process_group()
"""
TORCH = has_torch()


def folder_bytes(folder):
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


def case(name, source, contenders, target):
    if a.only and a.only not in name:
        return
    size = folder_bytes(source)
    warm(source)
    results = {who: [] for who in contenders}
    for _ in range(a.rounds):
        for who, command in contenders.items():
            shutil.rmtree(target, ignore_errors=True)
            results[who].append(run(command))
    shutil.rmtree(target, ignore_errors=True)
    best = {who: min(r[0] for r in rows) for who, rows in results.items()}
    median = {who: statistics.median(r[0] for r in rows) for who, rows in results.items()}
    busy = {who: statistics.median(r[1] for r in rows) for who, rows in results.items()}
    for who, rows in results.items():
        last = rows[-1]
        print(
            f"| {name} | {who} | {best[who]:.3f} s | {best[who] / best['cp']:.2f} / {median[who] / median['cp']:.2f} | {busy[who] / busy['cp']:.2f} "
            f"| {last[2] / size:.2f} / {last[3] / size:.2f} | {last[4] / size * (1 << 30):,.0f} | {last[5] / (1 << 20):,.0f} MiB |",
            flush=True,
        )


work = work_folder(a.folder)
out, mckpt, j = work / "out", str(pathlib.Path(a.mckpt).resolve()), ["-j", str(a.threads), "-q", "--progress", "none"]
layers = max(1, a.mib // 128)  # of 126 MiB each with these sizes
dense = make_model(
    work / "dense",
    ["--layers", layers, "--hidden", 2048, "--heads", 16, "--kv", 8, "--head-dim", 128, "--ffn", 8192, "--vocab", 32000, "--shard-bytes", 1 << 30],
)
small = make_model(
    work / "small",
    ["--layers", 26, "--hidden", 128, "--heads", 2, "--kv", 1, "--head-dim", 64, "--experts", 128, "--moe-ffn", 80, "--vocab", 512],
)
hub = make_model(
    work / "hub",
    ["--layers", max(1, a.mib // 152), "--hidden", 2048, "--heads", 8, "--kv", 2, "--head-dim", 128, "--experts", 16, "--moe-ffn", 768, "--vocab", 8192, "--hub"],
)

print(
    "| what | who | best | wall / cp: best, median | CPU / cp | read, written per byte | calls per GiB | peak |\n|---|---|---|---|---|---|---|---|"
)


def to_fsdp(source, *options):
    return [mckpt, "convert", "hf-to-fsdp", str(source), str(out), *j, *options]


def copy(source, sync=False):
    return ["bash", "-c", f"cp -r {source} {out}" + (f" && sync {out}/*" if sync else "")]


def with_peer(contenders, code, source):
    return contenders | ({"torch by hand": [sys.executable, "-c", code, str(source), str(out)]} if TORCH else {})


scratch = ["--no-sync"]
case(
    "hf-to-fsdp, tp 2, dp 2",
    dense,
    with_peer({"cp": copy(dense), "mckpt": to_fsdp(dense, "--tp", "2", "--dp", "2", *scratch)}, HF_TO_DCP, dense),
    out,
)
case("the same, durable", dense, {"cp": copy(dense, True), "mckpt": to_fsdp(dense, "--tp", "2", "--dp", "2")}, out)
case("hf-to-fsdp to fp32", dense, {"cp": copy(dense), "mckpt": to_fsdp(dense, "--tp", "2", "--dp", "2", "--dtype", "fp32", *scratch)}, out)
case("row strips, tp 8", dense, {"cp": copy(dense), "mckpt": to_fsdp(dense, "--tp", "8", *scratch)}, out)
case(
    "10,000 small tensors",
    small,
    with_peer({"cp": copy(small), "mckpt": to_fsdp(small, "--tp", "2", "--ep", "4", *scratch)}, HF_TO_DCP, small),
    out,
)
case("transposed experts", hub, {"cp": copy(hub), "mckpt": to_fsdp(hub, "--tp", "2", "--ep", "4", "--expert-layout", "hub", *scratch)}, out)

for name, model, grid in (
    ("", dense, ["--tp", "2", "--dp", "2"]),
    (", 10,000 small tensors", small, ["--tp", "2", "--ep", "4"]),
    (", transposed experts", hub, ["--tp", "2", "--ep", "4", "--expert-layout", "hub"]),
):
    checkpoint = work / f"ckpt_{model.name}"
    if not checkpoint.exists():
        subprocess.run([mckpt, "convert", "hf-to-fsdp", str(model), str(checkpoint), "-q", *grid], check=True, stdout=subprocess.DEVNULL)
    export = [mckpt, "export", str(checkpoint), str(out), *j, *scratch]
    release = checkpoint / "release"
    case("export" + name, release, with_peer({"cp": copy(release), "mckpt": export}, DCP_TO_HF, release), out)
    case(
        "verify --against" + name,
        release,
        {"cp": copy(release), "mckpt": [mckpt, "verify", str(checkpoint), "--against", str(model), *j, *(grid[4:])]},
        out,
    )
# Megatron's other formats, and back; made once for the ways back.
for mode, grid in (("to-mcore", ["--tp", "2"]), ("to-pt", ["--tp", "2", "--pp", "2"])):
    make = [mckpt, "convert", mode, str(dense), *j, *grid, *scratch]
    case(f"{mode}, {' '.join(grid)}", dense, {"cp": copy(dense), "mckpt": [*make[:4], str(out), *make[4:]]}, out)
    checkpoint = work / f"ckpt_{mode}"
    if not checkpoint.exists():
        subprocess.run([*make[:4], str(checkpoint), *make[4:]], check=True, stdout=subprocess.DEVNULL)
    case(f"export of {mode}", checkpoint / "release", {"cp": copy(checkpoint / "release"), "mckpt": [mckpt, "export", str(checkpoint), str(out), *j, *scratch]}, out)
# Archives; `to-dcp` is what they are compared with.
for name, model in (("", dense), (", 10,000 small tensors", small)):
    archive = [mckpt, "convert", "to-hdf5", str(model)]
    contenders = {"cp": copy(model), "mckpt to-dcp": [mckpt, "convert", "to-dcp", str(model), str(out), *j, *scratch]}
    case("to-hdf5" + name, model, contenders | {"mckpt": [*archive, str(out), *j, *scratch]}, out)
    checkpoint = work / f"hdf5_{model.name}"
    if not checkpoint.exists():
        subprocess.run([*archive, str(checkpoint), *j, *scratch], check=True, stdout=subprocess.DEVNULL)
    case("from-hdf5" + name, checkpoint, {"cp": copy(checkpoint), "mckpt": [mckpt, "convert", "from-hdf5", str(checkpoint), str(out), *j, *scratch]}, out)
(work / "reshard.py").write_text(RESHARD)
for first, second in ((4, 2), (8, 3)):
    checkpoint = work / f"ckpt_dp{first}"
    if not checkpoint.exists():
        subprocess.run(
            [mckpt, "convert", "hf-to-fsdp", str(dense), str(checkpoint), "-q", "--dp", str(first)], check=True, stdout=subprocess.DEVNULL
        )
    release = checkpoint / "release"
    contenders = {"cp": copy(release), "mckpt": [mckpt, "convert", "reshard", str(checkpoint), str(out), *j, *scratch, "--dp", str(second)]}
    if TORCH:
        contenders["torch, its ranks"] = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            f"--nproc-per-node={second}",
            str(work / "reshard.py"),
            str(release),
            str(out),
        ]
    case(f"reshard, dp {first} to {second}", release, contenders, out)
if not a.folder:
    shutil.rmtree(work)
