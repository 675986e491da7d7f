"""Times two builds of the program in turns: what a change of the code costs.

usage: two_builds.py OLD NEW [--folder DIR] [--rounds N] [--threads N] [--mib N] [--only WORD]

Each build carries out the same commands on the same files, by turns, so that what else the machine does hits both
alike. The table has the medians of processor time and of the peak of memory, and the new build's as multiples of the
old one's. Standard library only.
"""

import pathlib
import shutil
import statistics
import subprocess
import sys

from in_turns import make_model, options, run, warm, work_folder

old = str(pathlib.Path(sys.argv.pop(1)).resolve())
a = options()
new = str(pathlib.Path(a.mckpt).resolve())
work = work_folder(a.folder)
out = work / "out"
quiet = ["-j", str(a.threads), "-q", "--progress", "none"]


def case(name, sources, *command):
    """`command` has "OUT" where it writes."""
    if a.only not in name:
        return
    for source in sources:
        warm(source)
    rows = {old: [], new: []}
    for _ in range(a.rounds):
        for program in rows:
            shutil.rmtree(out, ignore_errors=True)
            rows[program].append(run([program, *(str(out) if word == "OUT" else str(word) for word in command)]))
    shutil.rmtree(out, ignore_errors=True)
    busy = {program: statistics.median(row[1] for row in runs) for program, runs in rows.items()}
    peak = {program: statistics.median(row[5] for row in runs) for program, runs in rows.items()}
    print(
        f"| {name} | {busy[old]:.3f} s | {busy[new]:.3f} s | {busy[new] / busy[old]:.2f} "
        f"| {peak[old] / (1 << 20):,.1f} MiB | {peak[new] / (1 << 20):,.1f} MiB | {peak[new] / peak[old]:.2f} |",
        flush=True,
    )


def made(name, *command):
    """A checkpoint that the old build makes; it is kept where the folder is named."""
    folder = work / name
    if not folder.exists():
        words = (str(folder) if word == "OUT" else str(word) for word in command)
        subprocess.run([old, *words, "-q"], check=True, stdout=subprocess.DEVNULL)
    return folder


layers = max(1, a.mib // 128)  # of 126 MiB each with these sizes
dense = make_model(
    work / "dense",
    ["--layers", layers, "--hidden", 2048, "--heads", 16, "--kv", 8, "--head-dim", 128, "--ffn", 8192, "--vocab", 32000, "--shard-bytes", 1 << 30],
)
small = make_model(
    work / "small",
    ["--layers", 26, "--hidden", 128, "--heads", 2, "--kv", 1, "--head-dim", 64, "--experts", 128, "--moe-ffn", 80, "--vocab", 512],
)

print("| what | old CPU | new CPU | new / old | old peak | new peak | new / old |\n|---|---|---|---|---|---|---|")
for model, grid in ((dense, ["--tp", 2, "--dp", 2]), (small, ["--tp", 2, "--ep", 4])):
    of = model.name
    ckpt = made(f"fsdp_{of}", "convert", "hf-to-fsdp", model, "OUT", *grid)
    ranks = made(f"ranks_{of}", "convert", "to-pt", model, "OUT", *grid)
    case(f"hf-to-fsdp, {of}", [model], "convert", "hf-to-fsdp", model, "OUT", *quiet, "--no-sync", *grid)
    case(f"to-mcore, {of}", [model], "convert", "to-mcore", model, "OUT", *quiet, "--no-sync", *grid)
    case(f"export, {of}", [ckpt], "export", ckpt, "OUT", *quiet, "--no-sync")
    case(f"export of ranks, {of}", [ranks], "export", ranks, "OUT", *quiet, "--no-sync", "--assets", model)
    case(f"reshard, {of}", [ckpt], "convert", "reshard", ckpt, "OUT", *quiet, "--no-sync", "--tp", 1, "--dp", 4)
    case(f"verify against, {of}", [ckpt, model], "verify", ckpt, "--against", model, *quiet)
    case(f"diff, {of}", [ckpt], "diff", ckpt, ckpt, *quiet)
    case(f"plan alone, {of}", [model], "convert", "hf-to-fsdp", model, "OUT", *quiet, "--dry-run", *grid)
    case(f"ls, {of}", [ckpt], "ls", ckpt)
    case(f"inspect, {of}", [ckpt], "inspect", ckpt)
if not a.folder:
    shutil.rmtree(work)
