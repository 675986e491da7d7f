"""Saves of DeepSpeed's AutoTP, whose parameters are joined by the map that is stored with the model. Maps and shards are DeepSpeed's own
(test_data/zero/affine_maps.json): rows, columns, fused parameters, blocks in any order, parts that all ranks have. A map that contradicts itself or the
files, or does not say all, is refused; ranks that are missing leave holes; values that ranks should have alike are compared.
"""
import hashlib
import json
import pathlib
import shutil
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch", "numpy")
import torch  # noqa: E402

from mckpt_tests.zero import make_tensor_parallel  # noqa: E402

temp = tempfile.TemporaryDirectory()
count = 0


def with_numbers(value):
    """JSON has no numbers as keys."""
    if isinstance(value, dict):
        return {int(k) if k.isdigit() else k: with_numbers(v) for k, v in value.items()}
    return [with_numbers(v) for v in value] if isinstance(value, list) else value


MAPS = with_numbers(json.loads(pathlib.Path(DATA, "zero", "affine_maps.json").read_text()))


def saved(tp=2, stage=2, ranks=2, names=None, change=None, **settings):
    """A folder. `change`: of the maps and the dicts of all files."""
    global count
    count += 1
    cases = {name: case for name, case in MAPS[tp].items() if names is None or name in names}
    shards = {name: [torch.tensor(s, dtype=torch.float32).reshape(case["map"]["ranks"][r]["shard_shape"]) for r, s in enumerate(case["shards"])]
              for name, case in cases.items()}
    made = make_tensor_parallel({name: case["map"] for name, case in cases.items()}, shards, stage, ranks, **settings)
    if change:
        change(made)
    folder = pathlib.Path(temp.name, f"case{count}")
    folder.mkdir()
    made.save(folder)
    return folder


def told(folder, status, *texts, command="verify", absent=()):
    run = run_mckpt(command, folder)
    out = run.stdout + run.stderr
    expect(run.returncode == status, f"{texts}: exit status {run.returncode}, want {status}: {out[-2000:]}")
    for text in texts:
        expect(text in out, f"{text!r} is not in {out[-2000:]}")
    for text in absent:
        expect(text not in out, f"{text!r} is in {out[-2000:]}")


def digest(tensor):
    return "sha256:" + hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()


def joined():
    for tp, stage, ranks in ((2, 2, 1), (2, 1, 3), (2, 3, 2), (3, 2, 2)):
        folder = saved(tp, stage, ranks)
        rows = {r["name"]: r for r in map(json.loads, run_mckpt("ls", folder, "--digest", "--jsonl").stdout.splitlines())}
        for name, case in MAPS[tp].items():
            shape = case["map"]["logical_shape"]
            whole = torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)
            for tensor, want in ((name, whole), (f"optimizer.state.{name}.exp_avg", whole + 1000), (f"optimizer.state.{name}.exp_avg_sq", whole + 2000)):
                row = rows.get(tensor, {})
                expect(row.get("shape") == shape and "sha256:" + row["sha256"].replace("sha256:", "") == digest(want), f"tp {tp}, ZeRO {stage}, {ranks}: {tensor}: {row}")
            expect(rows.get(f"optimizer.state.{name}.step", {}).get("shape") == [], f"the step of {name}")
        expect(len(rows) == 4 * len(MAPS[tp]), f"tp {tp}, ZeRO {stage}: {len(rows)} tensors")
        told(folder, 0, "sound", absent=["warn"])
        told(folder, 0, f"tensor-parallel ranks {tp}", command="inspect")


def models(made):
    return list(made.model.values())


def of_map(name, visit, files=None):
    """Changes the map of a parameter, in all files of the model or in one."""
    def change(made):
        for state in models(made)[files] if files else models(made):
            visit(state["universal_checkpoint_info"]["affine_map"]["params"][f"^{name}$"])
    return change


def wrong_maps():
    def of_info(visit):
        return lambda made: [visit(state["universal_checkpoint_info"]) for state in models(made)]

    def piece(name, rank, at, **fields):
        return of_map(name, lambda m: m["ranks"][rank]["pieces"][at].update(fields))
    def swap_ranks(m):
        m["ranks"].update({0: m["ranks"][1], 1: m["ranks"][0]})
        for r in (0, 1):
            for p in m["ranks"][r]["pieces"]:
                p.update(locations=[r])
    few = ["rows", "columns", "norm", "qkv"]
    for change, code, texts in (
            (lambda made: [s.pop("universal_checkpoint_info") for s in models(made)], "MC1221", ["no affine_map", "mp_rank_01_model_states.pt"]),
            (of_info(lambda i: i.pop("affine_map")), "MC1221", ["no affine_map"]),
            (of_info(lambda i: i["affine_map"].update(version=2)), "MC1221", ["version 2"]),
            (of_info(lambda i: i["affine_map"]["params"].pop("^qkv$")), "MC1221", ["qkv", "does not say how"]),
            (of_info(lambda i: (i["affine_map"]["params"].pop("^qkv$"), i.update(autotp_unsupported_parameter_patterns={"^qkv$": "it is interleaved"}))),
             "MC1221", ["qkv", "it is interleaved"]),
            (of_info(lambda i: i["affine_map"]["params"].update({"^.*qkv$": i["affine_map"]["params"].pop("^qkv$")})), "MC1221", ["not the name of one parameter"]),
            (lambda made: [s.update(checkpoint_parallel_dimensions={"pp_degree": 2, "tp_degree": 1}) for s in models(made)], "MC1221", ["pp_degree 2"]),
            (lambda made: [s.update(mp_world_size=2 ** 62) for s in models(made)], "MC1210", ["mp_world_size is not a number of ranks"]),
            (lambda made: [s.update(mp_world_size=5000) for s in models(made)], "MC1221", ["mp_world_size 5000"]),
            (piece("norm", 1, 0, scale=0.5), "MC1221", ["norm", "scale 0.5"]),
            (piece("rows", 0, 0, unit="rows"), "MC1221", ["rows", "unit"]),
            (piece("columns", 0, 0, source=[0, [1, 5]]), "MC1221", ["columns", "no box"]),
            (piece("rows", 1, 0, source=[6, [3, 1]]), "MC1113", ["rows", "contradicts itself"]),       # overlaps, and leaves a hole
            (piece("rows", 1, 0, source=[12, [3, 1]]), "MC1113", ["rows", "reaches out of [5, 3]"]),
            (piece("columns", 1, 0, dest=[1, [3, 1]]), "MC1113", ["columns", "reaches out of"]),
            (piece("qkv", 0, 1, dest=[0, [3, 1]]), "MC1113", ["qkv", "the shard of rank 0"]),
            (piece("norm", 1, 0, locations=[1]), "MC1113", ["norm", "said to be on ranks [1]"]),
            (piece("rows", 0, 0, locations=[0, 1]), "MC1113", ["rows", "said to be on ranks [0, 1]"]),
            (piece("rows", 0, 0, shape=[2, 3]), "MC1113", ["rows", "contradicts itself"]),
            (of_map("rows", lambda m: m["ranks"].pop(1)), "MC1113", ["rows", "it has 1 ranks, the save 2"]),
            (of_map("rows", lambda m: m["ranks"][0]["pieces"].clear()), "MC1113", ["rows", "contradicts itself"]),
            (of_map("rows", lambda m: m.update(logical_shape=[6, 3])), "MC1113", ["rows", "contradicts itself"]),
            (of_map("rows", lambda m: m.update(logical_shape=[-5, 3])), "MC1113", ["rows", "negative"]),
            (of_map("rows", lambda m: m.update(unit=2)), "MC1221", ["rows", "unit"]),
            (of_map("rows", swap_ranks, slice(1, 2)), "MC1113", ["another one than in mp_rank_00_model_states.pt"]),
            (of_map("rows", swap_ranks), "MC1113", ["rows", "another shape"])):
        told(saved(names=few, change=change), 1, code, *texts, absent=[": sound"])


    folder = saved(names=few, change=piece("rows", 1, 0, source=[6, [3, 1]]))
    run = run_mckpt("convert", "to-safetensors", folder, folder / "out.safetensors")
    expect(run.returncode == 3 and "MC1113" in run.stderr and not (folder / "out.safetensors").exists(), f"a conversion by a wrong map: {run.returncode} {run.stderr}")


def other_ranks():
    few = ["rows", "columns", "norm"]
    whole = saved(names=few)

    def copy_without(*patterns):
        global count
        count += 1
        folder = pathlib.Path(temp.name, f"case{count}")
        shutil.copytree(whole, folder)
        for pattern in patterns:
            for path in folder.glob(pattern):
                path.unlink()
        return folder
    told(copy_without("*mp_rank_01*"), 1, "MC1106", "files of tensor-parallel ranks are missing: 1 of 2 are there; missing: those of mp_rank_01", "a hole: no chunk covers")
    told(copy_without("mp_rank_01*"), 1, "MC1106", "the file of the model of tensor-parallel rank 1", "a hole: no chunk covers")
    told(copy_without("*pp_rank_1_mp_rank_01*"), 1, "MC1106", "bf16_zero_pp_rank_1_mp_rank_01_optim_states.pt", "a hole: no chunk covers")
    folder = copy_without("mp_rank_01*")
    shutil.copy(folder / "mp_rank_00_model_states.pt", folder / "mp_rank_01_model_states.pt")
    told(folder, 1, "MC1113", "mp_rank_01_model_states.pt")
    # Shards of equal shapes, and files that do not say their names: nothing says which rank is which.
    def even(made):
        for path in list(made.model) + list(made.optimizer):
            state = made.model.get(path) or made.optimizer[path]
            with open(folder / path, "wb") as stream:
                torch.save(state, stream)
        made.model.clear(), made.optimizer.clear()
    folder = pathlib.Path(temp.name, "streams")
    folder.mkdir()
    saved(names=["norm"], ranks=1, change=even)
    told(folder, 0, "the order of the ranks was not checked")

    def other_step(made):
        made.optimizer["bf16_zero_pp_rank_0_mp_rank_01_optim_states.pt"]["optimizer_state_dict"]["base_optimizer_state"]["state"][0]["step"].add_(1)
    told(saved(names=few, change=other_step), 1, "MC1315", "the optimizer's step is")
    told(saved(names=few, change=lambda made: models(made)[1].update(global_steps=7)), 1, "MC1315", "global_steps")

    def other_values(made):
        state = made.optimizer["bf16_zero_pp_rank_0_mp_rank_01_optim_states.pt"]["optimizer_state_dict"]
        state["single_partition_of_fp32_groups"][0][-1] += 1
        state["base_optimizer_state"]["state"][0]["exp_avg_sq"][-1] += 1
    folder = saved(names=["norm"], ranks=1, change=other_values)
    told(folder, 1, "MC1113", "norm", "tensor-parallel ranks have other values of what they all have, from [5] on", "optimizer.state.norm.exp_avg_sq")
    # Buffers are in no map: alike on all ranks, or nothing says what they are.
    told(saved(names=few, buffers={"scale": (3,)}, change=lambda made: [s["module"].update(scale=torch.ones(3)) for s in models(made)]), 0, "sound")
    told(saved(names=few, buffers={"scale": (3,)}), 1, "MC1221", "scale", "a buffer, with other values on each rank")
    # A tensor of the user's own is each rank's.
    folder = saved(names=few, change=lambda made: [s.update(mine=torch.tensor([r])) for r, s in enumerate(models(made))])
    names = [json.loads(line)["name"] for line in run_mckpt("ls", folder, "--jsonl").stdout.splitlines()]
    expect({"mine", "mp_rank_01_model_states.pt:mine"} <= set(names), f"tensors of the user: {names}")


def shards_and_main_weights():
    """The weights of each rank are shards, and the main weights whole: only what all ranks have is compared, and the rest is named. ZeRO 3 saves no weights."""
    words, verdict = " whose main weights have other shapes, as shards of tensor-parallel ranks have: ", ": sound, but shards of tensor-parallel ranks were not compared with their main weights\n"
    for names, count, compared in ((["rows", "columns", "norm"], 4, 2), (["rows"], 2, 0)):
        for stage in (1, 2):
            folder = saved(stage=stage, names=names)
            listed = "module.rows, module.columns and 2 more" if count > 3 else "module.rows, mp_rank_01_model_states.pt:rows"
            note = f"not compared: {count} weights{words}"
            run = run_mckpt("verify", folder)
            expect(run.returncode == 0 and note in run.stdout and run.stdout.endswith(verdict), f"ZeRO {stage}, {names}: {run.stdout}")
            checks = {c["name"]: c for c in json.loads(run_mckpt("verify", folder, "--json").stdout)["checks"]}
            main = checks.get("main", {})
            expect((main.get("status"), main.get("count")) == ("pass" if compared else "none", compared) and main["note"].startswith(note + "module.rows"), f"{listed}: {main}")
    for folder in (saved(stage=3, names=["rows"]), saved(names=["norm"])):
        told(folder, 0, ": sound\n", absent=["not compared"])


joined()
wrong_maps()
shards_and_main_weights()
other_ranks()
finish(200)
