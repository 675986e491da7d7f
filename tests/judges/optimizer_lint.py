"""The lint of optimizers in `verify`: saves of real runs have no warning, and every fault that is planted in one of them is a warning
that names the parameter or the group and says how many there are. Each fault is one that real code makes: a norm in the decayed group, an
expert in the dense one, options and steps of one parameter, states and lists that do not fit, main weights of another save."""

import copy
import glob
import io
import json
import os
import shutil
import tarfile
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch", "numpy")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner  # noqa: E402
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict  # noqa: E402
from torch.distributed.checkpoint.state_dict_saver import _save_state_dict  # noqa: E402

work = tempfile.TemporaryDirectory(prefix="mckpt_lint_")
META, STATE = "optimizer.param_to_group_meta.module.module.module.", "optimizer.state.module.module.module."


def unpacked(archive, into):
    folder = os.path.join(work.name, into)
    with tarfile.open(os.path.join(DATA, archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def report(path, *args):
    run = run_mckpt("verify", path, "--json", *args)
    return json.loads(run.stdout), run


def checks_of(answer):
    """The checks of all checkpoints in the answer, with their findings' warnings."""
    yield from answer.get("checks", [])
    for part in answer.get("parts", []):
        yield from checks_of(part)


def folder_with(run, word):
    for at, folders, files in sorted(os.walk(run)):
        if any(word in name for name in folders + files):
            return at
    raise AssertionError(f"no {word} in {run}")


# ---- Saves of real runs: no warning of the lint. A case of newest or of Megatron's ranks is opened with its assets.

runs = {name: unpacked(f"megatron_runs/{name}.tar.xz", "runs") + "/" + name for name in ("dense", "experts", "chunks", "stages", "ends")}
healthy = [(os.path.join(DATA, name), []) for name in (
    "dcp/fsdp_dtensor_optim", "dcp/megatron_fsdp_v2", "dcp/fsdp2", "dcp/hfsdp", "dcp/torch_dist_pp2", "pt/training.pt",
    "own_names/fsdp2_app/checkpoint", "own_names/fsdp2_bare/checkpoint", "own_names/accelerate_fsdp2_sharded", "own_names/accelerate_fsdp1_sharded",
    "rank_files/accelerate", "rank_files/trainer", "rank_files/verl2_w3", "rank_files/accel2_nodcp_w2")]
healthy += [(path, []) for path in sorted(glob.glob(os.path.join(DATA, "zero", "zero*"))) if os.path.isdir(path)]
for run in runs.values():
    healthy += [(folder_with(run, "mp_rank_"), ["--assets", os.path.join(run, "hf")]), (folder_with(run, "metadata.json"), [])]
for archive in sorted(glob.glob(os.path.join(DATA, "dcp/packed/*.tar.xz"))):
    healthy.append((unpacked(os.path.relpath(archive, DATA), os.path.basename(archive)), []))
for group in "ABDKMT":
    newest = unpacked(f"newest/{group}.tar.xz", "newest")
for case in sorted(os.listdir(newest)):
    with open(os.path.join(newest, case, "case.json")) as f:
        opened = json.load(f)
    place = os.path.join(newest, case, opened.get("opened", "ckpt") if isinstance(opened.get("opened", "ckpt"), str) else "ckpt")
    if os.path.exists(place):
        healthy.append((place, []))

looked_at = 0
for path, args in healthy:
    answer, run = report(path, *args)
    groups = [check for check in checks_of(answer) if check["name"] == "groups"]
    looked_at += len(groups)
    odd = [(f["tensor"], f["message"]) for f in answer.get("findings", []) if f["code"] in ("MC1013", "MC1311") and " magnitude " not in f["message"]]
    expect(all(check["status"] == "pass" for check in groups), f"{path}: {odd}")
expect(looked_at >= 60, f"optimizers of real runs: {looked_at} looked at")


# ---- Faults

def read_dcp(folder):
    reader = dcp.FileSystemReader(folder)
    metadata = reader.read_metadata()
    state = {name: torch.empty(m.size, dtype=m.properties.dtype) if hasattr(m, "size") else io.BytesIO() for name, m in metadata.state_dict_metadata.items()}
    _load_state_dict(state, reader, planner=DefaultLoadPlanner(flatten_state_dict=False, flatten_sharded_tensors=False), no_dist=True)
    return state


def write_dcp(state, folder):
    _save_state_dict(state, dcp.FileSystemWriter(folder), planner=DefaultSavePlanner(flatten_state_dict=False, flatten_sharded_tensors=False), no_dist=True)


count = 0


def planted(what, source, change, *words, args=()):
    """Writes a copy of the source with the change, and expects a warning with all of the words."""
    global count
    count += 1
    folder = os.path.join(work.name, f"planted_{count}")
    kind, content, rest = source
    content = copy.deepcopy(content)
    if kind == "folder":
        for value in content.values():
            change(value)
    else:
        change(content)
    if kind == "dcp":
        write_dcp(content, folder)
    elif kind == "file":
        os.makedirs(folder)
        folder = os.path.join(folder, "training.pt")
        torch.save(content, folder)
    else:  # a folder in which some files are changed
        shutil.copytree(rest, folder)
        for name, value in content.items():
            torch.save(value, os.path.join(folder, name))
    answer, run = report(folder, *args)
    texts = [f"{f['tensor'] or ''} {f['message']}" for f in answer["findings"]]
    found = any(all(word in text for word in words) for text in texts)
    expect(found, f"{what}: no finding has {words}: {texts}")
    problems = [f for f in answer["findings"] if not f["warning"]]
    expect(run.returncode == (1 if problems else 0), f"{what}: exit {run.returncode} with {problems[:1]}")
    if found and not problems:
        expect(run_mckpt("verify", folder, "--strict", "-q", *args).returncode == 1, f"{what}: --strict")


def loaded(folder, *names):
    return {name: torch.load(os.path.join(folder, name), weights_only=False) for name in names}


def options(names, **fields):
    def change(state):
        for name in names:
            for field, value in fields.items():
                assert f"{META}{name}.{field}" in state, (name, field)
                state[f"{META}{name}.{field}"] = value
    return change


def without(*parts):
    def change(state):
        names = [name for name in state if any(part in name for part in parts)]
        assert names, parts
        for name in names:
            del state[name]
    return change


# fsdp_dtensor: the options and states of a real run with experts, by parameter.
run_mckpt("convert", "to-fsdp", folder_with(runs["experts"], "metadata.json"), os.path.join(work.name, "fsdp"), "--assets", runs["experts"] + "/hf", "-q")
fsdp = ("dcp", read_dcp(folder_with(os.path.join(work.name, "fsdp"), ".metadata")), None)
trained = sorted({name[len(META):].rsplit(".", 1)[0] for name in fsdp[1] if name.startswith(META)})
norms = [name for name in trained if name.endswith("norm.weight") and "q_" not in name and "k_" not in name]
experts = [name for name in trained if ".experts." in name]
matrix = next(name for name in trained if name.endswith("linear_proj.weight"))
query = next(name for name in trained if name.endswith("q_layernorm.weight"))
DECAY = {"wd_mult": 1.0, "weight_decay": 0.125}

planted("a norm of a layer decays", fsdp, options(norms[1:2], **DECAY), norms[1], "1 of", "decays")
planted("the final norm decays", fsdp, options(["decoder.final_layernorm.weight"], **DECAY), "decoder.final_layernorm.weight", "1 of", "decays")
planted("two norms decay", fsdp, options(norms[:2], **DECAY), norms[0], norms[1], "2 of", "decay")
planted("one of the norms of queries decays", fsdp, options([query], **DECAY), query, "decays")
planted("all norms decay", fsdp, options([n for n in trained if n.endswith("norm.weight")], **DECAY), "decay", norms[0])
planted("a matrix does not decay", fsdp, options([matrix], wd_mult=0.0, weight_decay=0.0), matrix, "1 of", "does not decay")
planted("an expert does not decay", fsdp, options(experts[:1], wd_mult=0.0, weight_decay=0.0), experts[0], "does not decay")
planted("wd_mult 0 and a decay", fsdp, options(norms[:1], weight_decay=0.125), "wd_mult 0", "weight_decay 0.125")
planted("wd_mult 1 and no decay", fsdp, options([matrix], weight_decay=0.0), "wd_mult 1", "weight_decay 0")
planted("lr of a matrix", fsdp, options([matrix], lr=2.1875), matrix, "lr is 2.1875", "alone")
planted("lr of a norm", fsdp, options(norms[2:3], lr=0.0), norms[2], "lr is 0", "alone")
planted("max_lr of one", fsdp, options([matrix], max_lr=2.5), matrix, "max_lr is 2.5", "alone")
planted("min_lr of one", fsdp, options([matrix], min_lr=0.125), matrix, "min_lr is 0.125", "alone")
planted("betas of one", fsdp, options(experts[-1:], betas=(0.5, 0.999)), experts[-1], "betas is (0.5, 0.999)", "alone")
planted("eps of one", fsdp, options([matrix], eps=1e-5), matrix, "eps is", "alone")
planted("step of one", fsdp, options([matrix], step=2), matrix, "step is 2 for 1 parameter")
planted("steps of a layer", fsdp, options(norms[:3], step=1), norms[0], norms[2], "step is 1 for 3 parameters")
planted("an expert unmarked", fsdp, options(experts[1:], is_expert_parallel=True), experts[0], f"1 of {len(experts)} expert", "outside the groups of experts")
planted("a norm among experts", fsdp, options([*experts, norms[0]], is_expert_parallel=True), norms[0], "1 parameter is in a group of experts")
planted("states of a parameter lost", fsdp, without(STATE + matrix), matrix, "no optimizer state")
planted("options of a parameter lost", fsdp, without(META + matrix + "."), matrix, "not in optimizer.param_to_group_meta")
planted("one moment lost", fsdp, without(STATE + matrix + ".exp_avg_sq"), matrix, "no exp_avg_sq")
planted("states of no parameter", fsdp, without("model.module." + matrix), matrix, "no parameter")


def changed_main(state):
    state[STATE + matrix + ".master_param"] = state["model.module." + matrix].float()
    state["model.module." + matrix] = state["model.module." + matrix].bfloat16()
    state["model.module." + matrix].view(-1)[3] += 1


planted("a weight that is not its main weight", fsdp, changed_main, matrix, "1 value of", "main weight")

# torch_dist: groups without parameters.
dist_folder = folder_with(runs["dense"], "metadata.json")
dist = ("folder", loaded(dist_folder, "common.pt"), dist_folder)
moe_folder = folder_with(runs["experts"], "metadata.json")
moe = ("folder", loaded(moe_folder, "common.pt"), moe_folder)


def group(number, optimizer=None, **fields):
    def change(common):
        of = common["optimizer"] if optimizer is None else common["optimizer"][optimizer]
        of["optimizer"]["param_groups"][number].update(fields)
    return change


def every_group(**fields):
    def change(common):
        for g in common["optimizer"]["optimizer"]["param_groups"]:
            g.update(fields)
    return change


planted("torch_dist: the group of norms decays", dist, group(2, weight_decay=0.125), "group 2", "weight_decay 0.125")
planted("torch_dist: no group without decay", dist, every_group(wd_mult=1.0, weight_decay=0.125), "no group is without decay", "3 groups")
planted("torch_dist: a group of matrices without decay", dist, group(0, weight_decay=0.0), "group 0", "nothing in it decays")
planted("torch_dist: lr of a group", dist, group(2, lr=2.1875), "lr differs", "group 2 2.1875")
planted("torch_dist: betas of a group", dist, group(2, betas=(0.5, 0.999)), "betas differs", "group 2 (0.5, 0.999)")
planted("torch_dist: eps of a group", dist, group(2, eps=1e-5), "eps differs", "group 2")
planted("torch_dist: step of a group", dist, lambda c: [g.update(step=3 - (i == 1)) for i, g in enumerate(c["optimizer"]["optimizer"]["param_groups"])], "step differs", "group 1")
planted("torch_dist: experts unmarked", moe, group(0, 1, is_expert_parallel=False), "is marked as of experts", "expert parameter")
planted("torch_dist: a dense group marked", moe, group(1, 0, is_expert_parallel=True), "group 1 of optimizer 0", "marked as of experts")

# Files of Megatron's ranks: numbers, which the model gives names.
rank_folder = folder_with(runs["dense"], "mp_rank_")
stage = [f"mp_rank_0{tp}_000/model_optim_rng.pt" for tp in (0, 1)]
ranks = ("folder", loaded(rank_folder, *stage), rank_folder)
hf = ("--assets", runs["dense"] + "/hf")


def rank_group(number, **fields):
    return lambda state: state["optimizer"]["optimizer"]["param_groups"][number].update(fields)


planted("ranks: the group of norms decays", ranks, rank_group(2, weight_decay=0.125), "decay")
planted("ranks: a number without states", ranks, lambda s: s["optimizer"]["optimizer"]["state"].pop(3), "no states")
planted("ranks: a step", ranks, lambda s: s["optimizer"]["optimizer"]["state"][3].update(step=torch.tensor(1.0)), "number 3", "step is 1 for 2 parameters")

# State dicts of torch: names in lists, and steps as tensors.
v2 = ("dcp", read_dcp(os.path.join(DATA, "dcp/megatron_fsdp_v2")), None)
planted("v2: a step", v2, lambda s: s["optimizer.state.blocks.0.lin1.weight.step"].fill_(1), "blocks.0.lin1.weight", "step is 1 for 1 parameter")
planted("v2: a moment lost", v2, without("optimizer.state.blocks.1.lin1.weight.exp_avg_sq"), "blocks.1.lin1.weight", "exp_avg_sq")
planted("v2: a name out of its list", v2, lambda s: s["optimizer.param_groups.0.params"].remove("blocks.0.lin1.weight"), "blocks.0.lin1.weight", "not in optimizer.param_groups")

# DeepSpeed ZeRO: the file of the model has the weights, the files of the ranks have the main weights.
zero_folder = folder_with(os.path.join(DATA, "zero", "zero2_groups_w3"), "model_states")
zero_model = ("folder", loaded(zero_folder, "mp_rank_00_model_states.pt"), zero_folder)


def double_one(state):
    name = next(name for name in state["module"] if name.endswith("q_proj.weight"))
    state["module"][name] = state["module"][name].clone()
    state["module"][name].view(-1)[2] *= 2


from mckpt_tests import zero as _  # noqa: E402, F401 its classes stand in for DeepSpeed's in pickles
zero = ("folder", loaded(zero_folder, *sorted(name for name in os.listdir(zero_folder) if name.endswith("optim_states.pt"))), zero_folder)


def zero_state(number, field, value):
    return lambda s: s["optimizer_state_dict"]["base_optimizer_state"]["state"][number].__setitem__(field, value)


planted("ZeRO: the step of a group", zero, zero_state(1, "step", torch.tensor(7.0)), "step is 7 for 5 parameters", "model.layers.0.input_layernorm.weight")
planted("ZeRO: a weight that is not its main weight", zero_model, double_one, "q_proj.weight", "1 value of", "main weight")

# A file of torch.save.
model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 5), torch.nn.Linear(5, 3), torch.nn.Linear(3, 7))
adam = torch.optim.AdamW([{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
                          {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}])
model(torch.ones(2, 4)).sum().backward()
adam.step()
saved = ("file", {"model": model.state_dict(), "optimizer": adam.state_dict()}, None)
planted("file: a step", saved, lambda s: s["optimizer"]["state"][4].update(step=torch.tensor(9.0)), "number 4", "step is 9 for 1 parameter")
planted("file: a number without states", saved, lambda s: s["optimizer"]["state"].pop(1), "number 1", "1 of 8 parameters of groups has no states")
planted("file: states of no number", saved, lambda s: s["optimizer"]["param_groups"][0]["params"].remove(2), "number 2", "no group lists")
planted("file: a bias decays", saved, lambda s: (s["optimizer"]["param_groups"][1]["params"].remove(6), s["optimizer"]["param_groups"][0]["params"].append(6)), "number 6", "1 of 4 norms and biases decays")
planted("file: a moment lost", saved, lambda s: s["optimizer"]["state"][5].pop("exp_avg"), "number 5", "lacks")

expect(count >= 40, f"{count} faults were planted")
finish(180)
