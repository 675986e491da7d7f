"""Folders of DeepSpeed ZeRO that are damaged or mixed, or of a kind that cannot be joined: each is named with its file and its numbers, and
none is called sound.
"""
import copy
import json
import pathlib
import shutil
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch", "numpy")
import torch  # noqa: E402

from mckpt_tests.zero import make, write  # noqa: E402

SETTINGS = {"groups": [{"a": (4, 6), "b": (7,), "c": (3, 5)}, {"d": (2,)}], "frozen": {"f": (3, 3)}, "buffers": {"r": (4,)}}
temp = tempfile.TemporaryDirectory()
count = 0


def saved(stage, ranks=3, **more):
    global count
    count += 1
    folder = pathlib.Path(temp.name, f"case{count}")
    made = write(folder, stage=stage, ranks=ranks, **{**SETTINGS, **more})
    return folder, folder / "global_step2", made


def optimizer_file(rank):
    return f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"


def model_file(rank):
    return f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt"


def swap(a, b):
    held = a.with_name("held")
    a.rename(held), b.rename(a), held.rename(b)


def without_name(path):
    """Saves the file again to a stream, which leaves out its name."""
    state = torch.load(path, weights_only=False)
    with open(path, "wb") as stream:
        torch.save(state, stream)


def told(folder, status, *texts, absent=()):
    """verify ends with this status and prints the texts."""
    run = run_mckpt("verify", folder)
    out = run.stdout + run.stderr
    expect(run.returncode == status, f"{texts}: exit status {run.returncode}, want {status}: {out}")
    for text in texts:
        expect(text in out, f"{text!r} is not in {out}")
    for text in (*absent, *([": sound"] if status else [])):
        expect(text not in out, f"{text!r} is in {out}")


def changed(path, change):
    state = torch.load(path, weights_only=False)
    change(state)
    torch.save(state, path)


def missing_files():
    for stage in (1, 2, 3):
        for rank in (0, 1, 2):
            folder, at, made = saved(stage)
            (at / optimizer_file(rank)).unlink()
            told(folder, 1, "problem[MC1106]", f"files of ranks are missing: 2 of 3 are there; missing: {optimizer_file(rank)}",
                 "a hole: no chunk covers")
            # The data that are there are at their place: no tensor is shown with values of another.
            run = run_mckpt("stats", folder, "a")
            expect(run.returncode in (1, 3), f"stats of a tensor with holes: {run.returncode} {run.stdout}")
    folder, at, _ = saved(2)
    for rank in range(3):
        (at / optimizer_file(rank)).unlink()
    told(folder, 1, "problem[MC1106]", "the float32 weights are missing")
    folder, at, _ = saved(2)
    (at / "mp_rank_00_model_states.pt").unlink()
    told(folder, 1, "MC1106", "the file of the model, which has the names and shapes, is missing", "mp_rank_00_model_states.pt")
    folder, at, _ = saved(3)
    (at / "zero_pp_rank_1_mp_rank_00_model_states.pt").unlink()
    told(folder, 1, "problem[MC1106]", "2 of 3 are there; missing: zero_pp_rank_1_mp_rank_00_model_states.pt")
    folder, at, _ = saved(2)
    path = at / optimizer_file(1)
    path.write_bytes(path.read_bytes()[:-200])
    told(folder, 1, optimizer_file(1), "a hole: no chunk covers")


def mixed_saves():
    for stage in (2, 3):
        _, other, _ = saved(stage, ranks=2)
        folder, at, _ = saved(stage)
        shutil.copy(other / optimizer_file(1), at)
        told(folder, 1, "problem[MC1315]", optimizer_file(1), "a save by 2 ranks", "by 3")
        folder, at, _ = saved(stage, ranks=2)
        _, other, _ = saved(stage)
        shutil.copy(other / optimizer_file(2), at)
        told(folder, 1, "problem[MC1315]", optimizer_file(2))
        folder, at, _ = saved(stage)
        _, other, _ = saved(stage, steps=3)
        shutil.copy(other / optimizer_file(1), at)
        told(folder, 1, "problem[MC1315]", optimizer_file(1), "the optimizer's step is 3 here and 2 there")
        _, other, _ = saved(stage, version="0.15.0")
        shutil.copy(other / optimizer_file(1), at)
        told(folder, 1, "problem[MC1315]", "ds_version is 0.15.0 here and 0.19.8 there")
    folder, at, _ = saved(2)
    shutil.copy(at / optimizer_file(0), at / optimizer_file(0).removeprefix("bf16_"))
    told(folder, 1, "problem[MC1113]", "the file is of rank 0, and so is")
    folder, at, _ = saved(3)
    _, other, _ = saved(3, groups=[{"a": (4, 6), "b": (7,), "c": (5, 3)}, {"d": (2,)}])
    name = "zero_pp_rank_2_mp_rank_00_model_states.pt"
    shutil.copy(other / name, at)
    told(folder, 1, "problem[MC1113]", name, "expected c [3, 5], found c [5, 3]")
    shutil.copy(saved(3, steps=4)[1] / name, at)
    told(folder, 1, "problem[MC1315]", name, "global_steps is 4 here and 2 there")
    folder, at, _ = saved(2)
    shutil.copy(saved(2, ranks=2)[1] / "mp_rank_00_model_states.pt", at)
    told(folder, 1, "problem[MC1315]", "the number of ranks is 2 here and 3 there")


def copied_files():
    """A rank's file under the name of another rank: its sizes fit, and with ZeRO 3 nothing else shows it."""
    for stage in (1, 2, 3):
        folder, at, _ = saved(stage)
        shutil.copy(at / optimizer_file(0), at / optimizer_file(1))
        told(folder, 1, "problem[MC1113]", f"{optimizer_file(1)}: rank 1: the file has the same weights as {optimizer_file(0)}")
    # Ranks that have zeros alone, as where parameters are smaller than the number of ranks, are not copies.
    told(saved(3, groups=[{"a": (1,), "b": (1,)}], frozen={})[0], 0, ": sound")
    folder, at, _ = saved(3)
    shutil.copy(at / model_file(2), at / model_file(1))
    told(folder, 1, "problem[MC1113]", f"{model_file(2)}: rank 2: the file has the same weights as {model_file(1)}")
    # Nor are ranks that have the same constant alone: norms that were not trained.
    folder, at, _ = saved(3)
    for r in range(3):
        changed(at / model_file(r), lambda s: s["frozen_param_fragments"].update(f=torch.ones(3).bfloat16()))
    told(folder, 0, ": sound")


def swapped_files():
    """The files of two ranks under each other's names: told by the names under which torch saved them."""
    for stage, name_of in ((1, optimizer_file), (3, optimizer_file), (3, model_file)):
        folder, at, _ = saved(stage)
        swap(at / name_of(0), at / name_of(2))
        told(folder, 1, f"{name_of(0)}: rank 0: this is another file of the save: it was saved as {name_of(2)}",
             f"{name_of(2)}: rank 2: this is another file of the save: it was saved as {name_of(0)}")
    folder = pathlib.Path(temp.name, "experts")
    shutil.copytree(pathlib.Path(DATA, "zero", "zero0_moe_w2"), folder)
    expert = "layer_0_expert_{}_mp_rank_00_model_states.pt".format
    swap(folder / "global_step2" / expert(1), folder / "global_step2" / expert(3))
    told(folder, 1, f"{expert(1)}: this is another file of the save: it was saved as {expert(3)}")
    swap(folder / "global_step2" / expert(1), folder / "global_step2" / expert(3))
    told(folder, 0, ": sound")
    # Without ZeRO each rank of experts has the states of its own; the groups of the optimizer say how many there are.
    states = "expp_rank_{}_mp_rank_00_optim_states.pt".format
    for lost in ([0], [1], [0, 1]):
        for rank in lost:
            (folder / "global_step2" / states(rank)).rename(folder / states(rank))
        told(folder / "global_step2", 1, f"problem[MC1106]: files of ranks are missing: {2 - len(lost)} of 2 are there", states(lost[0]))
        for rank in lost:
            (folder / states(rank)).rename(folder / "global_step2" / states(rank))
    # Files that were saved without their names, as to an open stream, say nothing in ZeRO 3. In ZeRO 1 and 2 the addresses do.
    unsaid, warning = ": sound, but the order of the ranks was not checked", "the order of the ranks was not checked (nothing in the files says it)"
    for stage in (2, 3):
        folder, at, _ = saved(stage)
        for path in at.iterdir():
            without_name(path)
        told(folder, 0, unsaid if stage == 3 else ": sound", absent=[] if stage == 3 else [unsaid])
        swap(at / optimizer_file(0), at / optimizer_file(1))
        told(folder, *((0, unsaid) if stage == 3 else (1, "param_slice_mappings of group 0 does not fit")))
        run = run_mckpt("convert", "to-safetensors", folder, pathlib.Path(temp.name, f"swapped{stage}.safetensors"), "--no-sync")
        expect((run.returncode, warning in run.stderr) == ((0, True) if stage == 3 else (3, False)), run.stderr)
    # ... unless every rank has as many items of one tensor.
    folder, at, _ = saved(1, ranks=2, groups=[{"a": (4, 6)}], frozen={})
    for path in at.iterdir():
        without_name(path)
    told(folder, 0, unsaid)


def turns():
    """With round_robin_gradients param_slice_mappings has another order than the parts, which fits if the ranks take turns in it."""
    groups = [{"a": (4, 6), "b": (7,), "c": (3, 5), "e": (2, 2), "h": (9,)}, {"d": (2,)}]
    for stage in (1, 2):
        folder, at, _ = saved(stage, groups=groups, turns=True)
        told(folder, 0, ": sound")
        for path in at.iterdir():
            without_name(path)
        swap(at / optimizer_file(0), at / optimizer_file(1))
        told(folder, 1, "problem[MC1113]", "param_slice_mappings of group 0 does not fit param_shapes with round_robin_gradients")
    # A run without the switch has another order in param_shapes.
    folder, at, _ = saved(2, groups=groups, turns=True)
    shutil.copy(saved(2, groups=groups)[1] / "mp_rank_00_model_states.pt", at)
    changed(at / "mp_rank_00_model_states.pt", lambda s: s["ds_config"]["zero_optimization"].update(round_robin_gradients=True))
    told(folder, 1, "problem[MC1113]", "place 1 is the turn of e, in param_shapes of b")
    folder, at, _ = saved(2, groups=groups, turns=True)
    changed(at / optimizer_file(0), lambda s: setattr(s["optimizer_state_dict"]["param_slice_mappings"][0]["a"], "numel", 5))
    told(folder, 1, "it has 9 items of a, param_shapes 24")


def tied():
    """Second names are in the file of rank 0 alone: where another file has its name, they are lost."""
    lost = "no file has shared_params, so if they are shared with others, as a tied output layer is, this is the file of another rank"
    folder, at, _ = saved(3, shared={"g": "a"})
    told(folder, 0, ": sound")
    swap(at / model_file(0), at / model_file(1))
    told(folder, 1, f"{model_file(1)}: rank 1: the file has shared_params, which DeepSpeed writes in the file of rank 0",
         f"it was saved as {model_file(1)}", absent=["MC1317"])
    folder, at, _ = saved(3, shared={"g": "a"})
    for path in (at / model_file(0), at / model_file(1)):
        shutil.copy(at / model_file(2), path)
    told(folder, 1, "problem[MC1317]", "the values of 1 parameter are in no file: g; " + lost, f"it was saved as {model_file(2)}")


def numbers():
    folder, at, _ = saved(2)
    other = saved(2, groups=[{"a": (4, 6), "b": (17,), "c": (3, 5)}, {"d": (2,)}])[1]
    shutil.copy(other / "mp_rank_00_model_states.pt", at)
    told(folder, 1, "problem[MC1113]", "the parts of group 0 have 46 items, but its 3 parameters take 56")
    folder, at, _ = saved(3)
    other = saved(3, groups=[{"a": (4, 6), "b": (17,), "c": (3, 5)}, {"d": (2,)}])[1]
    for r in range(3):
        name = f"zero_pp_rank_{r}_mp_rank_00_model_states.pt"
        shutil.copy(other / name, at)
    told(folder, 1, "problem[MC1113]", "the rank's parts have 17 items, but the parameters take 20 on each of 3 ranks")
    # Two parameters of one size that changed places: only DeepSpeed's own addresses show it.
    folder, at, _ = saved(1, groups=[{"a": (4,), "b": (2, 2), "c": (9,)}])
    shutil.copy(saved(1, groups=[{"b": (2, 2), "a": (4,), "c": (9,)}])[1] / "mp_rank_00_model_states.pt", at)
    told(folder, 1, "problem[MC1113]", "param_slice_mappings of group 0 does not fit: it has 2 items of b at 4, param_shapes and the parts' sizes 4 at 0")
    folder, at, _ = saved(2)
    changed(at / optimizer_file(1), lambda s: s["optimizer_state_dict"]["base_optimizer_state"]["state"][0].update(exp_avg=torch.zeros(5)))
    told(folder, 1, "problem[MC1113]", "the state exp_avg of group 0 has 5 items, its weights 16")
    for r in range(3):
        changed(at / optimizer_file(r), lambda s: s["optimizer_state_dict"]["base_optimizer_state"]["state"].pop(1))
    told(folder, 1, "warning[MC1113]: there is no state exp_avg_sq of 1 parameter, but of 3")
    folder, at, _ = saved(2)
    changed(at / optimizer_file(0), lambda s: s["optimizer_state_dict"]["single_partition_of_fp32_groups"].__setitem__(1, torch.zeros(0)))
    told(folder, 1, "problem[MC1113]", "the rank's part of group 1 has 0 items, other ranks' 2: the group is left out")
    folder, at, _ = saved(2)
    changed(at / "mp_rank_00_model_states.pt", lambda s: s.update(module=torch.zeros(5)))
    told(folder, 1, "MC1220", "mp_rank_00_model_states.pt", "'module' is missing")
    folder, at, _ = saved(3)
    changed(at / "zero_pp_rank_1_mp_rank_00_model_states.pt", lambda s: s["frozen_param_fragments"].update(f=torch.zeros(2).bfloat16()))
    told(folder, 1, "problem[MC1113]", "the fragment of the parameter has [2], expected at least 3 items")
    folder, at, _ = saved(2)
    changed(at / optimizer_file(2), lambda s: s["optimizer_state_dict"].update(partition_count=1 << 60))
    told(folder, 1, "partition_count is not a number of ranks")
    for file in range(3):
        changed(at / optimizer_file(file), lambda s: s["optimizer_state_dict"].update(partition_count=1 << 19))
    told(folder, 1, "3 of 524288 are there")


def frozen():
    told(saved(2, lists_frozen=False)[0], 1, "problem[MC1317]", "exclude_frozen_parameters")
    # The rest can be had by name, without what a whole model needs.
    folder, at, made = saved(2, lists_frozen=False)
    file, dcp = pathlib.Path(temp.name, "rest.safetensors"), pathlib.Path(temp.name, "rest")
    run = run_mckpt("convert", "to-safetensors", folder, file, "--no-sync")
    expect(run.returncode == 3 and "MC1317" in run.stderr and "--accept MC1317" in run.stderr and not file.exists(), run.stderr)
    for mode, out in (("to-safetensors", file), ("to-dcp", dcp)):
        run = run_mckpt("convert", mode, folder, out, "--no-sync", "--accept", "MC1317")
        expect(run.returncode == 0 and "warning[MC1317]" in run.stderr, run.stderr)
        listed = run_mckpt("ls", out, "--json").stdout
        expect({t["name"] for t in json.loads(listed)["tensors"]} == {"a", "b", "c", "d", "r"}, listed)
    told(saved(1)[0], 0, "warning[MC1317]", "1 tensor of 'module' that training did not change is read from there, in bfloat16: f;")
    folder, at, _ = saved(3)
    for r in range(3):
        changed(at / f"zero_pp_rank_{r}_mp_rank_00_model_states.pt", lambda s: s["module"].update(lost=torch.empty(0)))
    told(folder, 1, "problem[MC1317]", "the values of 1 parameter are in no file: lost")
    folder, at, _ = saved(3)
    changed(at / "zero_pp_rank_1_mp_rank_00_model_states.pt", lambda s: s["module"].update(r=torch.ones(4)))
    told(folder, 0, "warning[MC1113]", "the buffer has other values")
    folder, at, _ = saved(2)
    changed(at / "mp_rank_00_model_states.pt", lambda s: s["shared_params"].update(g="nowhere"))
    told(folder, 1, "problem[MC1113]", "the parameter is shared with nowhere, which is in no file")


def experts():
    """Folders with DeepSpeed-MoE, of DeepSpeed itself: ranks 0 and 2 share one half of the experts, ranks 1 and 3 the other."""
    def moe():
        global count
        count += 1
        folder = pathlib.Path(temp.name, f"case{count}")
        shutil.copytree(pathlib.Path(DATA, "zero", "zero1_moe_w4"), folder)
        return folder, folder / "global_step2"

    def of_rank(rank):
        return f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"

    def of_expert(layer, expert):
        return f"layer_{layer}_expert_{expert}_mp_rank_00_model_states.pt"

    part = "moe.deepspeed_moe.experts.deepspeed_experts"
    folder, at = moe()
    (at / of_rank(3)).unlink()
    told(folder, 1, "problem[MC1106]", f"files of ranks are missing: 3 of 4 are there; missing: {of_rank(3)}", "a hole: no chunk covers")
    # The set of the other ranks is whole.
    holes = [f["tensor"] for f in json.loads(run_mckpt("verify", folder, "--json").stdout)["findings"] if "hole" in f["message"]]
    mine = {name for name in holes if part in name and not name.startswith("optimizer.")}
    expect(mine and all(name.startswith(("layers.0." + part + ".3.", "layers.1." + part + ".1.")) for name in mine), f"holes: {sorted(mine)}")
    folder, at = moe()
    (at / of_expert(0, 2)).unlink()
    told(folder, 1, "problem[MC1106]", f"files of experts are missing: 5 of 6 are there; missing: {of_expert(0, 2)}", absent=["a hole"])
    folder, at = moe()
    changed(at / of_expert(1, 1), lambda s: s.update({f"layers.1.{part}.1.up.weight": torch.ones(5, 7)}))
    told(folder, 1, "problem[MC1113]", of_expert(1, 1), "the expert has [5, 7], its float32 weights [7, 5]")
    folder, at = moe()
    changed(at / of_expert(1, 1), lambda s: s.update({f"layers.1.{part}.1.scale": torch.full((3,), 2.5)}))
    told(folder, 0, "sound")
    run = run_mckpt("cat", folder, f"layers.1.{part}.1.scale")
    expect("2.5" in run.stdout, f"an expert's tensor that was not trained: {run.stdout}{run.stderr}")
    folder, at = moe()
    changed(at / of_rank(2), lambda s: s["optimizer_state_dict"].update(partition_count=[4, 4]))
    told(folder, 1, "problem[MC1315]", of_rank(2), "cut over other numbers of ranks")
    for rank in range(4):
        changed(at / of_rank(rank), lambda s: s["optimizer_state_dict"].update(partition_count=[4, 3]))
    told(folder, 1, "MC1221", "do not divide each other")
    folder, at = moe()
    changed(at / "mp_rank_00_model_states.pt", lambda s: s.update(num_experts=[4, 3]))
    told(folder, 1, "problem[MC1113]", "has 1 expert of layers.1.")
    folder, at = moe()
    changed(at / of_rank(1), lambda s: s["optimizer_state_dict"]["param_slice_mappings"][1].popitem())
    told(folder, 1, "problem[MC1113]", of_rank(1), "param_slice_mappings of group 1 does not fit")


def refused():
    for name, text in (("mp_rank_01_model_states.pt", "several model-parallel ranks"),
                       ("bf16_zero_pp_rank_0_mp_rank_01_optim_states.pt", "several model-parallel ranks"),
                       ("layer_0_expert_3_mp_rank_01_model_states.pt", "several model-parallel ranks"),
                       ("layer_03-model_00-model_states.pt", "of a pipeline")):
        folder, at, _ = saved(2)
        shutil.copy(at / "mp_rank_00_model_states.pt", at / name)
        told(folder, 1, "MC1221", text, name)
    folder, at, _ = saved(2)
    (at / "zero").mkdir()
    told(folder, 1, "MC1221", "a universal checkpoint")
    folder, at, _ = saved(2)
    changed(at / "mp_rank_00_model_states.pt", lambda s: s.update(ds_autoep_layers=[{}]))
    told(folder, 1, "MC1221", "AutoEP")
    folder, at, _ = saved(1)
    for r in range(3):
        changed(at / optimizer_file(r), lambda s: s["optimizer_state_dict"].pop("zero_stage"))
    told(folder, 1, "MC1221", "does not say that it is of ZeRO 1, 2 or 3")
    for tag, status, text in (("../elsewhere", 1, "MC1004"), ("/etc", 1, "MC1004"), ("", 1, "latest"),
                              ("global_step9", 3, "latest names global_step9, which does not exist")):
        folder, at, _ = saved(1)
        (folder / "latest").write_text(tag)
        told(folder, status, text, *([f"name one, such as {folder}/global_step2"] if status == 3 else []))


def beside():
    """Saves beside the one that latest names, other tensors of the user, and a model without ZeRO."""
    folder, at, made = saved(2)
    shutil.copytree(at, folder / "global_step1")
    changed(at / "mp_rank_00_model_states.pt", lambda s: s.update(my_state={"mean": torch.ones(3)}))
    run = run_mckpt("ls", folder)
    expect("my_state.mean" in run.stdout and "global_step2" not in run.stdout, run.stdout)
    run = run_mckpt("inspect", folder)
    expect("chosen global_step2 (latest)" in run.stdout and "zero stage 2" in run.stdout, run.stdout)
    run = run_mckpt("verify", folder)
    for text in ("global_step1: sound", "global_step2: sound", f"{folder}: 2 checkpoints, each sound"):
        expect(run.returncode == 0 and text in run.stdout, run.stdout)
    # DeepSpeed's own scripts are not called files that were not read; another one is.
    shutil.rmtree(folder / "global_step1")
    for script in ("zero_to_fp32.py", "global_step2/zero_to_torch.py"):
        (folder / script).write_text("pass")
    told(folder, 0, f"{folder}: sound\n")
    (folder / "train.py").write_text("pass")
    told(folder, 0, "not read: train.py", "sound, but 1 file was not read")
    shutil.copytree(at, folder / "global_step1")
    (folder / "latest").unlink()
    run = run_mckpt("inspect", folder)
    expect(run.returncode == 3 and "global_step1" in run.stderr, run.stderr)
    state = copy.deepcopy(next(iter(make(stage=1, ranks=1, groups=[{"a": (2, 3)}]).model.values())))
    state.update(param_shapes=None, shared_params=None, ds_config={"zero_optimization": {"stage": 0}})
    plain = pathlib.Path(temp.name, "plain")
    plain.mkdir()
    torch.save(state, plain / "mp_rank_00_model_states.pt")
    run = run_mckpt("ls", plain)
    expect(run.returncode == 0 and run.stdout.splitlines()[1].startswith("a "), run.stdout + run.stderr)
    told(plain, 0, ": sound")


missing_files()
mixed_saves()
copied_files()
swapped_files()
turns()
tied()
numbers()
frozen()
experts()
refused()
beside()
finish(340)
