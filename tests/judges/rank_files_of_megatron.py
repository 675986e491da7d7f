"""Files of ranks (mp_rank_*/model_optim_rng.pt) that `convert to-pt` writes on the grids of the golden runs: torch itself
loads them, and every real rank finds in its file what it held: names in order, types, shapes and bytes. Exported again,
they are the model that they were made of, byte for byte. So are the files that torch writes as in a training run."""
import argparse
import filecmp
import io
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
torch.serialization.add_safe_globals([argparse.Namespace])  # as Megatron does
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


# --- as a training run saves them ---

def as_saved_by_a_run(folder, change=lambda rank, model: None):
    """The files again, as torch writes them in a run: parameters are views of one buffer, with what Transformer Engine keeps
    beside them, the states of an optimizer, random states, and a distributed optimizer in a file of its own."""
    source = os.path.join(work.name, "qwen3_moe.tp2_cp1_ep2_etp2", "release")
    for rank, name in enumerate(sorted(n for n in os.listdir(source) if n.startswith("mp_rank_"))):
        saved = torch.load(os.path.join(source, name, "model_optim_rng.pt"), weights_only=True)
        model = saved["model"]
        buffer = torch.cat([tensor.reshape(-1) for tensor in model.values()])
        begin = 0
        for key, tensor in model.items():
            model[key] = buffer[begin:begin + tensor.numel()].view(tensor.shape)
            begin += tensor.numel()
        change(rank, model)
        model["decoder.layers.0.self_attention.linear_qkv._extra_state"] = io.BytesIO(b"state")
        model["decoder.layers.0.mlp.experts.linear_fc1._extra_state"] = torch.zeros(7, dtype=torch.uint8)
        saved |= {"optimizer": {"optimizer": {"state": {0: {"exp_avg": torch.ones(3)}}, "param_groups": [{"params": [0]}]}},
                  "opt_param_scheduler": {"max_lr": 1e-3, "num_steps": 10}, "num_floating_point_operations_so_far": 5,
                  "rng_state": [{"torch_rng_state": torch.zeros(5, dtype=torch.uint8), "rng_tracker_states": {}}]}
        os.makedirs(os.path.join(folder, name))
        torch.save(saved, os.path.join(folder, name, "model_optim_rng.pt"))
        torch.save({0: {"param": torch.full((3,), float(rank))}}, os.path.join(folder, name, "distrib_optim.pt"))


def expect_run(status, says, *args):
    run = run_mckpt(*args, "-q", *["--no-sync"] * (args[0] != "verify"))
    expect(run.returncode == status and all(part in run.stdout + run.stderr for part in says), f"{args}: {run.returncode} {run.stdout}{run.stderr}")


source, run_folder, out = models.path("qwen3_moe"), os.path.join(work.name, "run", "iter_0000007"), os.path.join(work.name, "of_run")
as_saved_by_a_run(run_folder)
expect_run(0, [], "export", run_folder, out, "--assets", source)
expect(filecmp.cmp(os.path.join(out, "model.safetensors"), os.path.join(source, "model.safetensors"), shallow=False), "a run's files, exported")
expect_run(0, [], "verify", run_folder, "--against", source)
expect_run(4, ["optimizer", "--weights-only"], "convert", "to-fsdp", run_folder, out + "_fsdp", "--assets", source, "--dp", "2")
expect_run(0, [], "convert", "to-fsdp", run_folder, out + "_fsdp", "--assets", source, "--dp", "2", "--weights-only")
expect_run(0, [], "verify", out + "_fsdp", "--against", source)
expect_run(0, [], "convert", "to-pt", run_folder, out + "_pt", "--assets", source, "--tp", "4")
expect_run(0, [], "verify", out + "_pt", "--against", run_folder, "--assets", source)

# Megatron-Core 0.16 has another name for the layers of MTP.
for mtp_model in ("deepseek_v3_mtp", "qwen3_next_mtp"):
    mtp, exported = (os.path.join(work.name, mtp_model + end) for end in (".ranks", ".exported"))
    expect_run(0, [], "convert", "to-pt", models.path(mtp_model), mtp, "--tp", "2")
    os.unlink(os.path.join(mtp, "release", "mckpt_manifest.json"))
    for name in sorted(n for n in os.listdir(os.path.join(mtp, "release")) if n.startswith("mp_rank_")):
        path = os.path.join(mtp, "release", name, "model_optim_rng.pt")
        saved = torch.load(path, weights_only=True)
        saved["model"] = {key.replace("mtp_model_layer", "transformer_layer"): tensor for key, tensor in saved["model"].items()}
        expect(any("mtp.layers.0.transformer_layer." in key for key in saved["model"]), f"{mtp_model}: {list(saved['model'])}")
        torch.save(saved, path)
    expect_run(0, [], "export", mtp, exported)
    expect(filecmp.cmp(os.path.join(exported, "model.safetensors"), os.path.join(models.path(mtp_model), "model.safetensors"), shallow=False),
           f"{mtp_model}: names of Megatron-Core 0.16, exported")


def unlike(rank, model):
    if rank == 3:
        model["decoder.final_layernorm.weight"][5] += 1


def without(rank, model):
    if rank == 2:
        del model["decoder.layers.0.mlp.router.weight"]


def more(rank, model):
    if rank == 1:
        model["decoder.layers.0.mlp.odd.weight"] = torch.zeros(2)


for name, change, status, says in [
    ("unlike", unlike, 3, ["MC1113", "mp_rank_01_001/model.decoder.final_layernorm.weight differs from mp_rank_00_000/"]),
    ("without", without, 3, ["MC2005", "lack 1 parameter", "mp_rank_01_000: decoder.layers.0.mlp.router.weight"]),
    ("more", more, 3, ["MC2005", "1 tensor that the model does not have", "mp_rank_00_001: decoder.layers.0.mlp.odd.weight"]),
]:
    as_saved_by_a_run(os.path.join(work.name, name), change)
    expect_run(status, says, "export", os.path.join(work.name, name), out + name, "--assets", source)
finish(5142, "ranks")
