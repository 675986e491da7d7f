"""Files of ranks (mp_rank_*/model_optim_rng.pt) that `convert to-pt` writes on the grids of the golden runs: torch itself
loads them, and every real rank finds in its file what it held: names in order, types, shapes and bytes. Exported again,
they are the model that they were made of, byte for byte."""
import argparse
import filecmp
import os
import tempfile

from mckpt_tests.checks import expect, expect_equal, fail, in_parallel
from mckpt_tests.golden import finish, sections
from mckpt_tests.judge import row
from mckpt_tests.models import GOLDEN, Models
from mckpt_tests.program import run_mckpt

import torch

# Runs that the real tool got wrong (golden_loads.py).
WRONG = {"gpt_oss_2i", "qwen3_moe_mlponly", "qwen3_moe_sparse2"}
torch.serialization.add_safe_globals([argparse.Namespace])
models = Models()
work = tempfile.TemporaryDirectory(prefix="mckpt_rank_files_")


def folder_of(rank, grid):
    """The folder that this rank reads: by its place in both meshes, written down once more here."""
    stage, r = divmod(rank, grid["tp"] * grid["cp"] * grid["dp"])
    name = f"mp_rank_{r % grid['tp']:02d}"
    name += f"_{stage:03d}" if grid["pp"] > 1 else ""
    return name + (f"_{r // grid['etp'] % grid['ep']:03d}" if grid["ep"] > 1 else "")


def line(name, tensor):
    dtype, shape, sha = row(tensor)
    return f"{name} {dtype} {'x'.join(map(str, shape)) or '-'} {sha}"


def check_run(tag, model, head, ranks):
    grid = {key: int(n) for key, n in (part.split("=") for part in head[0].split()[1:])}
    target, back = os.path.join(work.name, tag), os.path.join(work.name, tag + ".hf")
    flags = [text for key, n in grid.items() for text in (f"--{key}", str(n))]
    run = run_mckpt("convert", "to-pt", models.path(model), target, *flags, "--params-dtype", "auto", "--no-sync", "-q", "-j1")
    if run.returncode:
        return fail(f"{tag}: {run.stderr}")
    files = {}
    for rank, lines in enumerate(ranks):
        name = folder_of(rank, grid)
        if name not in files:
            saved = torch.load(os.path.join(target, "release", name, "model_optim_rng.pt"), weights_only=True, mmap=True)
            args = saved["args"]
            said = (args.tensor_model_parallel_size, args.pipeline_model_parallel_size, args.expert_model_parallel_size)
            expect(said == (grid["tp"], grid["pp"], grid["ep"]) and saved["checkpoint_version"] == 3.0, f"{tag} {name}: {args}")
            files[name] = [line(*item) for item in saved["model"].items()]
        got = files[name]
        expect_equal(f"{tag} rank {rank}", [g for g in got if ".router.expert_bias " not in g], [g for g in lines if not g.startswith("buffer ")])
        expect_equal(f"{tag} rank {rank} buffers", sorted("buffer " + g for g in got if ".router.expert_bias " in g),
                     sorted(g for g in lines if g.startswith("buffer ")))
    expect_equal(f"{tag}: folders", sorted(n for n in os.listdir(os.path.join(target, "release")) if n.startswith("mp_rank_")), sorted(files))
    run = run_mckpt("export", target, back, "--no-sync", "-q", "-j1")
    same = run.returncode == 0 and filecmp.cmp(os.path.join(back, "model.safetensors"), os.path.join(models.path(model), "model.safetensors"), shallow=False)
    # With the types of a run in bf16, the model in fp32 is rounded.
    expect(same or (run.returncode == 0 and "f32" in model), f"{tag}: exported {run.stderr}")


todo = []
for name in sorted(os.listdir(os.path.join(GOLDEN, "ranks"))):
    golden_head, golden_ranks = sections(f"ranks/{name}")
    model = name.split(".")[0]
    if model not in WRONG:
        todo.append((name.removesuffix(".txt"), model, golden_head, golden_ranks))
in_parallel(check_run, todo)
finish(5121, "ranks")
