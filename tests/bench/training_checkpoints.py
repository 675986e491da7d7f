"""Times the export of what training programs save, whole processes, next to `cp` of the result and to the tool that is used for it: rank files of
verl, a DCP folder of accelerate, and DeepSpeed ZeRO 3.

usage: training_checkpoints.py MCKPT [--folder DIR] [--gib N] [--rounds N] [--threads N] [--ranks N] [--only WORD] [--without-tools]

Each folder has about --gib GiB, ZeRO's with the optimizer's states. Contenders take turns; sources are in the
page cache if there is room, and results are removed between rounds, the folders at the end. The memory is the
largest RssAnon (private memory) of the process, looked at every 2 ms. The results of mckpt and of the tool
are compared tensor by tensor. Needs torch and safetensors; accelerate and deepspeed for their rows.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from in_turns import warm

HERE = pathlib.Path(__file__).resolve().parent
parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("mckpt")
parser.add_argument("--folder")
parser.add_argument("--gib", type=float, default=10)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--ranks", type=int, default=8)
parser.add_argument("--only", default="")
parser.add_argument("--without-tools", action="store_true", help="which need memory for the whole model, once or twice")
a = parser.parse_args()
LAYER = 126 << 20  # bytes of a layer of the model below, in bfloat16
SIZES = "--hidden 2048 --heads 16 --kv 8 --head-dim 128 --ffn 8192 --vocab 32000".split()

# One process for each rank, one after the other: torch's stand-in for a process group makes DTensors without the other ranks.
SAVE_AS_VERL = """
import glob, sys, torch, torch.distributed as dist
from safetensors import safe_open
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.testing._internal.distributed.fake_pg import FakeStore
model, folder, ranks, rank = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
dist.init_process_group('fake', store=FakeStore(), rank=rank, world_size=ranks)
mesh, state = init_device_mesh('cpu', (ranks,)), {}
block = torch.randint(0x3c00, 0x3f80, (1000003,), dtype=torch.int16, generator=torch.Generator().manual_seed(rank))
for path in sorted(glob.glob(model + '/*.safetensors')):
    file = safe_open(path, 'pt')
    for name in file.keys():
        shape = torch.Size(file.get_slice(name).get_shape())
        rows = -(-shape[0] // ranks)
        mine = max(0, min((rank + 1) * rows, shape[0]) - rank * rows)
        items = mine * shape[1:].numel()
        local = block.repeat(items // block.numel() + 1)[:items].clone().reshape(mine, *shape[1:]).view(torch.bfloat16)
        strides = torch.empty(shape, device='meta').stride()
        state[name] = DTensor.from_local(local, mesh, [Shard(0)], run_check=False, shape=shape, stride=strides)
torch.save(state, f'{folder}/model_world_size_{ranks}_rank_{rank}.pt')
"""
SAVE_AS_ZERO = """
import collections, glob, sys, torch
from safetensors import safe_open
from mckpt_tests.zero import ZeroStageEnum
model, folder, ranks, rank = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
shapes = collections.OrderedDict()
for path in sorted(glob.glob(model + '/*.safetensors')):
    file = safe_open(path, 'pt')
    shapes.update((name, torch.Size(file.get_slice(name).get_shape())) for name in file.keys())
items = sum(-(-shape.numel() // ranks) for shape in shapes.values())
block = torch.rand(1000003, generator=torch.Generator().manual_seed(rank))
parts = [block.roll(i).repeat(items // block.numel() + 1)[:items].clone() for i in range(3)]
state = {0: {'step': torch.tensor(2.0), 'exp_avg': parts[1], 'exp_avg_sq': parts[2]}}
torch.save({'optimizer_state_dict': {'zero_stage': ZeroStageEnum(3), 'partition_count': ranks, 'fp32_flat_groups': [parts[0]],
                                     'optimizer_state_dict': {'state': state, 'param_groups': []}},
            'ds_config': {}, 'ds_version': '0.19.8'}, f'{folder}/bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt')
torch.save({'module': {name: torch.empty(0, dtype=torch.bfloat16) for name in shapes}, 'buffer_names': [], 'optimizer': None,
            'param_shapes': [shapes], 'frozen_param_shapes': collections.OrderedDict(), 'frozen_param_fragments': {}, 'shared_params': {}, 'lr_scheduler': None,
            'skipped_steps': 0, 'global_steps': 2, 'dp_world_size': ranks, 'mp_world_size': 1, 'ds_version': '0.19.8',
            'ds_config': {'zero_optimization': {'stage': 3}}}, f'{folder}/zero_pp_rank_{rank}_mp_rank_00_model_states.pt')
"""
# What verl's model merger does, but for making the model in between: all files loaded, pieces joined, shards of 5 GB saved.
MERGE_AS_VERL = """
import concurrent.futures, glob, os, sys, torch
from safetensors.torch import save_file
from torch.distributed.tensor import DTensor
source, target = sys.argv[1], sys.argv[2]
ranks = len(glob.glob(source + '/model_world_size_*'))
paths = [f'{source}/model_world_size_{ranks}_rank_{rank}.pt' for rank in range(ranks)]
with concurrent.futures.ThreadPoolExecutor(min(32, os.cpu_count())) as pool:
    states = list(pool.map(lambda path: torch.load(path, map_location='cpu', weights_only=False), paths))
merged = {}
for name in list(states[0]):
    pieces = [state.pop(name) for state in states]
    merged[name] = torch.cat([p._local_tensor.bfloat16() for p in pieces]) if isinstance(pieces[0], DTensor) else pieces[0]
os.makedirs(target)
files, size = [{}], 0
for name, tensor in merged.items():
    if size + tensor.nbytes > 5e9:
        files.append({})
        size = 0
    files[-1][name] = tensor.contiguous()
    size += tensor.nbytes
for i, tensors in enumerate(files):
    save_file(tensors, f'{target}/model-{i + 1:05}-of-{len(files):05}.safetensors', metadata={'format': 'pt'})
"""
SAME = """
import glob, sys, torch
from safetensors import safe_open
def opened(folder):
    files = [safe_open(path, 'pt') for path in glob.glob(folder + '/*.safetensors')]
    return {name: file for file in files for name in file.keys()}
one, two = opened(sys.argv[1]), opened(sys.argv[2])
unlike = [name for name in one if name not in two or not torch.equal(one[name].get_tensor(name), two[name].get_tensor(name))]
print(f'{len(one)} tensors, {len(unlike)} differ' if len(one) == len(two) else 'other tensors')
sys.exit(bool(unlike) or len(one) != len(two))
"""


def private_bytes(pid):
    try:
        with open(f"/proc/{pid}/status") as f:
            return next((int(line.split()[1]) << 10 for line in f if line.startswith("RssAnon")), 0)
    except OSError:
        return 0


def run(command, env=None):
    """seconds, processor seconds, the largest private memory"""
    most, ended = [0], threading.Event()
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **(env or {})})

    def watch():
        while not ended.wait(0.002):
            most[0] = max(most[0], private_bytes(child.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    ended.set()
    watcher.join()
    if child.returncode != 0:
        sys.exit(f"{command}: {errors.decode()[-3000:]}")
    return seconds, usage.ru_utime + usage.ru_stime, most[0]


def has(package):
    return subprocess.run([sys.executable, "-c", f"import {package}"], capture_output=True, env=PEERS).returncode == 0


def by_ranks(script, model, folder):
    folder.mkdir(parents=True)
    for rank in range(a.ranks):
        subprocess.run([sys.executable, "-c", script, model, folder, str(a.ranks), str(rank)], check=True,
                       env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent / "support"), os.environ.get("PYTHONPATH", "")])})
    return folder


def make_model(name, layers, *options):
    folder = work / name
    subprocess.run([sys.executable, HERE / "make_model.py", folder, "--layers", str(layers), *SIZES, *options], check=True)
    return folder


def folder_gib(folder):
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / (1 << 30)


def case(name, source, export, tool, peer):
    """`export`: arguments after the name of the source; `peer`: the command of the tool, or nothing."""
    made, copied, merged = work / "made", work / "copied", work / "merged"
    contenders = {"cp": ["cp", "-r", made, copied], "mckpt": [mckpt, "export", source, made, *export, *j]}
    if peer and not a.without_tools:
        contenders[tool] = peer(merged)
    results = {who: [] for who in contenders}
    warm(source)
    run(contenders["mckpt"])  # what is copied
    size = folder_gib(made)
    for i in range(a.rounds):
        for who, command in contenders.items():
            target = {"cp": copied, "mckpt": made}.get(who, merged)
            shutil.rmtree(target, ignore_errors=True)
            results[who].append(run(command, PEERS if who == tool else None))
            if who == tool and i == 0:
                same = subprocess.run([sys.executable, "-c", SAME, made, merged], capture_output=True, text=True)
                print(f"{name}: mckpt and {tool}: {same.stdout.strip()}{same.stderr[-1000:]}", file=sys.stderr)
            if who != "mckpt":
                shutil.rmtree(target, ignore_errors=True)
    checked = subprocess.run([mckpt, "verify", made, "--against", source, "-q"], capture_output=True, text=True)
    print(f"{name}: {checked.stdout.strip().splitlines()[-1] if checked.stdout else checked.stderr}", file=sys.stderr)
    shutil.rmtree(made, ignore_errors=True)
    best = {who: min(r[0] for r in rows) for who, rows in results.items()}
    median = {who: statistics.median(r[0] for r in rows) for who, rows in results.items()}
    for who, rows in results.items():
        print(f"| {name}, {folder_gib(source):.1f} -> {size:.1f} GiB | {who} | {best[who]:.1f} s | {best[who] / best['cp']:.2f} / {median[who] / median['cp']:.2f} "
              f"| {statistics.median(r[1] for r in rows):.1f} s | {max(r[2] for r in rows) / (1 << 20):,.0f} MiB |", flush=True)
    shutil.rmtree(source, ignore_errors=True)


work = pathlib.Path(a.folder or tempfile.mkdtemp(prefix="mckpt_training_"))
work.mkdir(parents=True, exist_ok=True)
mckpt, j = str(pathlib.Path(a.mckpt).resolve()), ["-j", str(a.threads), "-q", "--no-sync", "--progress", "none"]
PEERS = {**os.environ, "DS_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": ""}
print("| what | who | best | wall / cp: best, median | processor time | private memory, most |\n|---|---|---|---|---|---|")
try:
    layers = max(1, int(a.gib * (1 << 30) / LAYER))
    if a.only in "verl accelerate":
        model = make_model("model", layers, "--sparse")
        verl = by_ranks(SAVE_AS_VERL, model, work / "verl")
        (verl / "huggingface").mkdir()
        shutil.copy(model / "config.json", verl / "huggingface")
    if a.only in "accelerate":
        dcp = work / "pytorch_model_fsdp_0"
        subprocess.run([mckpt, "convert", "to-dcp", verl, dcp, "--dp", str(a.ranks), "--section", "model.", *j], check=True, stdout=subprocess.DEVNULL)
        merge = [sys.executable, "-c", "import sys; from accelerate.utils import merge_fsdp_weights; merge_fsdp_weights(sys.argv[1], sys.argv[2])"]
        case("DCP of accelerate", dcp, ["--assets", model], "accelerate merge-weights", has("accelerate") and (lambda out: [*merge, dcp, out]))
    if a.only in "verl":
        case("rank files of verl", verl, [], "torch, as verl merges", lambda out: [sys.executable, "-c", MERGE_AS_VERL, verl, out])
    if a.only in "zero":
        # 12 bytes for each parameter, where the model has 2.
        model = make_model("small", max(1, layers // 6), "--sparse")
        zero = work / "zero"
        by_ranks(SAVE_AS_ZERO, model, zero / "global_step2")
        (zero / "latest").write_text("global_step2")
        script = "import sys; from deepspeed.utils.zero_to_fp32 import convert_zero_checkpoint_to_fp32_state_dict as c; c(sys.argv[1], sys.argv[2], safe_serialization=True)"
        case("ZeRO 3", zero, ["--assets", model], "zero_to_fp32", has("deepspeed") and (lambda out: [sys.executable, "-c", script, zero, out]))
finally:
    shutil.rmtree(work, ignore_errors=True)
