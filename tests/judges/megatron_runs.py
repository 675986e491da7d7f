"""Runs of Megatron-Core that were saved twice by its own code, as files of ranks with the optimizer of each rank and as
torch_dist (test_data/megatron_runs). The files of ranks, read by mckpt, equal the real torch_dist, read by
torch: weights, both moments, main weights, options of every parameter, steps. Fields that newer versions may
save are read, or refused by name. And the torch_dist that mckpt writes for the same grid differs from the
real one in what is listed here, and in docs/formats/dcp.md, and in nothing else."""

import json
import os
import pickle
import re
import shutil
import tarfile
import tempfile

from mckpt_tests.checks import expect, expect_equal, fail, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch", "numpy")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from mckpt_tests.ranks import load_whole  # noqa: E402
from torch.distributed.checkpoint.metadata import BytesStorageMetadata  # noqa: E402

MODEL, STATE, META = "model.module.", "optimizer.state.module.module.module.", "optimizer.param_to_group_meta.module.module.module."
ITERATION = "iter_0000003"
GRIDS = {"dense": ["--tp", 2, "--pp", 2, "--first-stage-layers", 2], "experts": ["--tp", 2, "--ep", 2], "chunks": ["--pp", 2, "--vpp", 2]}
work = tempfile.TemporaryDirectory(prefix="mckpt_runs_")


def mckpt(*args, status=0):
    run = run_mckpt(*args, "-q", *["--no-sync"] * (args[0] != "verify"))
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout}{run.stderr}")
    return run.stdout + run.stderr


def at_run_time(name):
    """The name that Megatron's own modules have for what a fused norm or grouped experts would be."""
    name = name.replace("self_attention.linear_qkv.layer_norm_", "input_layernorm.").replace("mlp.linear_fc1.layer_norm_", "pre_mlp_layernorm.")
    return re.sub(r"mlp\.experts\.(linear_fc[12]\.weight)(\d+)", r"mlp.experts.local_experts.\2.\1", name)


def usual(name):
    return name.replace("input_layernorm.", "self_attention.linear_qkv.layer_norm_").replace("pre_mlp_layernorm.", "mlp.linear_fc1.layer_norm_")


def parts(real):
    """The tensors of fsdp_dtensor for a torch_dist checkpoint, written down once more: parameter and kind ->
    tensor. Halves of gated tensors have their endings, layers and experts their numbers."""
    out = {}
    for key, tensor in real.items():
        if not isinstance(tensor, torch.Tensor):
            continue
        state = re.match(r"optimizer\.state\.(\w+)\.(.*)", key)
        kind, name = (state[1], state[2]) if state else ("", key)
        pieces = {name: tensor}
        if name.startswith("decoder.layers."):
            pieces = {name.replace("layers.", f"layers.{i}."): layer for i, layer in enumerate(tensor)}
        if ".experts.experts." in name:
            pieces = {n.replace("experts.experts.", "experts.") + str(e): t for n, layer in pieces.items() for e, t in enumerate(layer)}
        for n, t in pieces.items():
            if ".linear_fc1.weight" in n:
                out[n + "_w", kind], out[n + "_v", kind] = t.chunk(2)
            else:
                out[n, kind] = t
    return out


def same(what, got, want):
    expect(got is not None and got.dtype == want.dtype and got.shape == want.shape and torch.equal(got.contiguous().view(torch.uint8), want.contiguous().view(torch.uint8)), what)


def check_fsdp(name, folder, real):
    """The run as fsdp_dtensor, against the real torch_dist and the options that the real optimizer has."""
    out = os.path.join(work.name, name + "_fsdp")
    mckpt("convert", "to-fsdp", os.path.join(folder, ITERATION), out, "--assets", os.path.join(folder, "hf"), "--tp", 1, "--dp", 3)
    loaded = load_whole(os.path.join(out, ITERATION))
    got = {}
    for key, tensor in loaded.items():
        if key.startswith(MODEL):
            got[usual(key[len(MODEL):]), ""] = tensor
        elif key.startswith(STATE):
            parameter, kind = key[len(STATE):].rsplit(".", 1)
            got[usual(parameter), kind] = tensor
    want = parts(real)
    expect_equal(f"{name}: tensors of fsdp_dtensor", sorted(got), sorted(want))
    for key, tensor in want.items():
        same(f"{name}: {key} of fsdp_dtensor", got.get(key), tensor)
    check_options(name, folder, loaded)
    mckpt("verify", out, "--against", os.path.join(folder, ITERATION), "--assets", os.path.join(folder, "hf"))
    mckpt("verify", os.path.join(folder, ITERATION), "--against", out, "--assets", os.path.join(folder, "hf"), "--weights-only")


def check_options(name, folder, loaded):
    """The options that the real optimizer has of each parameter, in a loaded fsdp_dtensor."""
    with open(os.path.join(folder, "options.json")) as f:
        options = json.load(f)
    fields = {}
    for key, value in loaded.items():
        if key.startswith(META):
            parameter, field = key[len(META):].rsplit(".", 1)
            fields.setdefault(at_run_time(parameter), {})[field] = value
    if name == "experts":  # torch_dist has the norm before experts under the name of a fused one
        fields = {key.replace("mlp.linear_fc1.layer_norm_", "pre_mlp_layernorm."): of for key, of in fields.items()}
    expect_equal(f"{name}: parameters with options", sorted(fields), sorted(options))
    for parameter, of in options.items():
        mine = fields[parameter]
        expect(mine["step"] == 3 and isinstance(mine["step"], int), f"{name}: {parameter}: step {mine['step']}")
        # Megatron-FSDP marks no experts.
        expect_equal(f"{name}: options of {parameter}", [mine[key] for key in sorted(of)], [False if key == "is_expert_parallel" else value for key, value in sorted(of.items())])


def with_common(source, name, change):
    """A torch_dist folder with another common.pt, and no manifest."""
    out = os.path.join(work.name, name)
    shutil.copytree(source, out, ignore=shutil.ignore_patterns("mckpt_manifest.json"))
    path = os.path.join(out, "common.pt")
    common = torch.load(path, weights_only=False)
    change(common)
    torch.save(common, path)
    return out


def check_groups(name, folder):
    """Groups of torch_dist, whose parameters it does not list: each parameter gets the options that it had, and one other rate is found."""
    assets, source, ranks = os.path.join(folder, "hf"), os.path.join(folder, "torch_dist", ITERATION), os.path.join(folder, ITERATION)
    out = os.path.join(work.name, name + "_groups")
    mckpt("convert", "to-fsdp", source, out, "--assets", assets, "--dp", 2)
    check_options(name, folder, load_whole(os.path.join(out, ITERATION)))
    for group in range(len(flat(torch.load(os.path.join(source, "common.pt"), weights_only=False)["optimizer"]))):
        def other_rate(common, group=group):
            flat(common["optimizer"])[group]["lr"] += 1.0

        other = with_common(source, f"{name}_rate_{group}", other_rate)
        for one, against in ((other, ranks), (other, source), (other, out)):
            text = mckpt("verify", one, "--against", against, "--assets", assets, status=1)
            expect(".lr" in text and "MC1010" in text, f"{name}: another rate of group {group} is found: {text}")


def check_unsure_groups(folder):
    """The same run without the rate in its args, as if overrides of its own had made the groups: which parameter is in which is
    not known. The groups' options are compared all the same, in any order, and a conversion warns that it
    loses them."""
    assets, source, ranks = os.path.join(folder, "hf"), os.path.join(folder, "torch_dist", ITERATION), os.path.join(work.name, "unsure_ranks", ITERATION)
    shutil.copytree(os.path.join(folder, ITERATION), ranks)
    for rank in os.listdir(ranks):
        path = os.path.join(ranks, rank, "model_optim_rng.pt")
        saved = torch.load(path, weights_only=False)
        saved["args"].decoupled_lr = None
        torch.save(saved, path)

    def unsure(change=lambda groups: None):
        def edit(common):
            common["args"].decoupled_lr = None
            change(common["optimizer"]["optimizer"]["param_groups"])
        return edit

    def rate(group):
        def edit(groups):
            groups[group]["lr"] += 1.0
        return edit

    own, made = with_common(source, "unsure", unsure()), os.path.join(work.name, "unsure_made")
    mckpt("convert", "to-mcore", ranks, made, "--assets", assets)
    not_said = "which parameter is in which group of the optimizer"
    for one, other in ((own, ranks), (made, ranks), (made, own), (with_common(source, "reversed", unsure(lambda g: g.reverse())), made)):
        text = run_mckpt("verify", one, "--against", other, "--assets", assets).stdout
        expect(text.endswith(": equal\n") and not_said in text, f"{one} and {other}: {text}")
    changes = {f"rate_of_{g}": rate(g) for g in range(3)} | {"a_group_less": lambda g: g.pop(1), "a_group_more": lambda g: g.append({**g[0], "lr": 9.0})}
    for name, change in changes.items():
        other = with_common(source, name, unsure(change))
        for one, against in ((other, ranks), (other, own), (own, other)):
            text = mckpt("verify", one, "--against", against, "--assets", assets, status=1)
            says = [": not equal", "MC1010"] + [".lr: expected "] * name.startswith("rate")
            expect(all(part in text for part in says), f"{name}: {text}")
    out = os.path.join(work.name, "unsure_fsdp")
    text = mckpt("convert", "to-fsdp", own, out, "--assets", assets)
    expect("warning: the options of the optimizer are lost, such as lr and weight_decay of its 3 groups" in text, f"a loss is a warning: {text}")
    expect(not any(key.startswith(META) for key in load_whole(os.path.join(out, ITERATION))), "no options")
    text = run_mckpt("verify", out, "--against", own, "--assets", assets).stdout
    expect(": equal" in text and "options of the optimizer, which only one side has" in text, f"without options: {text}")
    text = mckpt("convert", "to-fsdp", own, out + "_weights", "--assets", assets, "--weights-only")
    expect("warning" not in text and "common_state.optimizer" not in text, f"weights alone lose no options: {text}")


def boxes(folder):
    """key -> type, shape, and its boxes, each with the rank that wrote it; and the keys of objects."""
    metadata = dcp.FileSystemReader(folder).read_metadata()
    files = {}
    for index, info in metadata.storage_data.items():
        files[index.fqn, tuple(index.offset or ())] = int(re.match(r"__(\d+)_\d+\.distcp", info.relative_path)[1])
    tensors, objects = {}, set()
    for key, item in metadata.state_dict_metadata.items():
        if isinstance(item, BytesStorageMetadata):
            objects.add(key)
        else:
            tensors[key] = (str(item.properties.dtype), tuple(item.size),
                            sorted((tuple(c.offsets), tuple(c.sizes), files[key, tuple(c.offsets)]) for c in item.chunks))
    return tensors, objects, metadata


def check_torch_dist(name, folder, real):
    """The same grid, written by mckpt, beside the real save."""
    out = os.path.join(work.name, name + "_core")
    mckpt("convert", "to-mcore", os.path.join(folder, ITERATION), out, "--assets", os.path.join(folder, "hf"), *GRIDS[name])
    mine, theirs = os.path.join(out, ITERATION), os.path.join(folder, "torch_dist", ITERATION)
    mckpt("verify", out, "--against", os.path.join(folder, ITERATION), "--assets", os.path.join(folder, "hf"))
    (got, got_objects, got_metadata), (want, want_objects, want_metadata) = boxes(mine), boxes(theirs)
    # 1. A run in fp32 has no main weights. mckpt writes those that a distributed optimizer asks for: the weights.
    made = {key for key in got if key.startswith("optimizer.state.fp32_param.")} if name == "chunks" else set()
    loaded = load_whole(mine)
    for key in made:
        same(f"{name}: {key}", loaded[key], real[key.removeprefix("optimizer.state.fp32_param.")])
    # 2. Megatron's own modules save the norm before experts under the name of a fused one; Transformer Engine's do not.
    renamed = {key: key.replace("pre_mlp_layernorm.", "mlp.linear_fc1.layer_norm_") if name == "experts" else key for key in got}
    expect_equal(f"{name}: boxes and the ranks that write them", sorted((renamed[key], box) for key, box in got.items() if key not in made), sorted(want.items()))
    for key, new in renamed.items():
        if key not in made:
            same(f"{name}: {key} of torch_dist", loaded[key], real[new])
    # 3. Norms of Transformer Engine have extra states, norms of torch have none; linear layers of both do.
    more = {re.sub(r"/.*", "", key) for key in got_objects - want_objects}
    expect(all(re.search(r"(norm|norm_)\._extra_state$", key) for key in more) and not want_objects - got_objects, f"{name}: objects {more} {want_objects - got_objects}")
    # 4. A file for each rank, where a save has two.
    files = sorted(n for n in os.listdir(theirs) if n.endswith(".distcp"))
    expect_equal(f"{name}: files", sorted(n for n in os.listdir(mine) if n.endswith(".distcp")), [n for n in files if n.endswith("_0.distcp")])
    expect_equal(f"{name}: other files", sorted(n for n in os.listdir(mine) if not n.endswith(".distcp")),
                 [".metadata", "common.pt", "hf_assets", "mckpt_manifest.json", "metadata.json"])
    expect(got_metadata.planner_data is None and want_metadata.planner_data is None, f"{name}: planner_data")
    # 5. The mark of the format names the writer of common.pt too.
    with open(os.path.join(mine, "metadata.json")) as one, open(os.path.join(theirs, "metadata.json")) as other:
        one, other = json.load(one), json.load(other)
    expect_equal(f"{name}: mark", sorted((other | one).items()), sorted(other.items()))
    check_common(name, mine, theirs)


def check_own_norms(folder, real):
    """Megatron's own modules save the norm in front of experts under another name: of their torch_dist it stays, and
    --spelling makes it. Then the keys are the real save's."""
    assets, theirs = os.path.join(folder, "hf"), os.path.join(folder, "torch_dist", ITERATION)
    want, want_objects, _ = boxes(theirs)
    norm = "decoder.layers.mlp.linear_fc1.layer_norm_weight"
    expect({norm, f"optimizer.state.exp_avg.{norm}"} <= set(want), f"the real names: {sorted(want)}")
    for form, source, words in (("kept", theirs, []), ("spelt", os.path.join(folder, ITERATION), ["--spelling", "unfused-norms"])):
        out = os.path.join(work.name, "own_norms_" + form)
        mckpt("convert", "to-mcore", source, out, "--assets", assets, *GRIDS["experts"], *words)
        out = os.path.join(out, ITERATION)
        got, objects, _ = boxes(out)
        expect_equal(f"{form}: boxes", sorted(got.items()), sorted(want.items()))
        loaded = load_whole(out)
        for key in got:
            same(f"{form}: {key}", loaded[key], real[key])
        more = {re.sub(r"/.*", "", key) for key in objects - want_objects}
        expect(all(re.search(r"(norm|norm_)\._extra_state$", key) for key in more) and not want_objects - objects, f"{form}: objects {more}")
        mckpt("verify", out, "--against", theirs, "--assets", assets)
    dense = os.path.join(work.name, "dense")
    for words, says in (("unfused-norms", "except those in front of experts"), ("submodule-conv", "one name for a convolution")):
        text = mckpt("convert", "to-mcore", os.path.join(dense, ITERATION), os.path.join(work.name, "no"), "--assets", os.path.join(dense, "hf"), "--spelling", words, status=2)
        expect(says in text and f"--spelling {words}" in text, f"{words} of a model without experts: {text}")


def check_rank_files(name, folder):
    """The same grid as files of ranks again: every weight of every rank, under the names of Transformer Engine's modules, and of
    Megatron's own, as the run had them."""
    ranks_again(name, folder, os.path.join(folder, ITERATION), "ranks", at_run_time, [])
    if name != "experts":  # whose names as Megatron's own modules have them are not written
        for source in (ITERATION, os.path.join("torch_dist", ITERATION)):
            ranks_again(name, folder, os.path.join(folder, source), "own_" + source.split("/")[0], lambda key: key, ["--spelling", "unfused-norms"])


def ranks_again(name, folder, source, form, renamed, words):
    out, runs = os.path.join(work.name, f"{name}_{form}"), os.path.join(folder, ITERATION)
    mckpt("convert", "to-pt", source, out, "--assets", os.path.join(folder, "hf"), "--iteration", 3, *GRIDS[name], *words)
    out = os.path.join(out, ITERATION)
    ranks = [rank for rank in sorted(os.listdir(runs)) if rank.startswith("mp_rank_")]
    # The fields that the conversion sets for the result; every other field is the run's own, such as lr and
    # decoupled_lr.
    said, numbers = {"use_megatron_fsdp": False, "no_save_optim": True, "no_save_rng": True}, []
    counts = {"data_parallel_size", "world_size", "num_distributed_optimizer_instances", "num_layers_per_virtual_pipeline_stage", "expert_tensor_parallel_size"}
    expect_equal(f"{name}: files of ranks", [rank for rank in sorted(os.listdir(out)) if rank.startswith("mp_rank_")], ranks)
    for rank in ranks:
        got, want = (torch.load(os.path.join(of, rank, "model_optim_rng.pt"), weights_only=False) for of in (out, runs))
        mine, theirs = vars(got["args"]), vars(want["args"])
        expect_equal(f"{name} {rank} of {form}: args", sorted((k, str(v)) for k, v in mine.items() if k not in counts and k not in said and k != "rank"), sorted((k, str(v)) for k, v in theirs.items() if k not in counts))
        numbers.append(mine.pop("rank"))
        expect_equal(f"{name} {rank} of {form}: args of the result", {k: mine.get(k) for k in said}, said)
        for section in (key for key in want if re.fullmatch(r"model\d*", key)):
            mine = {renamed(key): tensor for key, tensor in got[section].items() if isinstance(tensor, torch.Tensor)}
            theirs = {key: tensor for key, tensor in want[section].items() if isinstance(tensor, torch.Tensor) and not key.endswith("_extra_state")}
            expect_equal(f"{name} {rank} {section}: names", sorted(mine), sorted(theirs))
            for key, tensor in theirs.items():
                same(f"{name} {rank} {section}: {key}", mine.get(key), tensor)
    expect(len(set(numbers)) == len(ranks) and numbers[0] == 0, f"{name} of {form}: ranks {numbers}")


def check_common(name, mine, theirs):
    one, other = (torch.load(os.path.join(folder, "common.pt"), weights_only=False) for folder in (mine, theirs))
    expect_equal(f"{name}: entries of common.pt", sorted(one), sorted(other))
    for key in ("checkpoint_version", "iteration", "opt_param_scheduler", "num_floating_point_operations_so_far"):
        expect(one[key] == other[key], f"{name}: {key}: {one[key]}, {other[key]}")
    # 6. The args say the format, the number of ranks, and that states by parameter are for a distributed optimizer.
    said = {"ckpt_format": "torch_dist", "use_megatron_fsdp": False, "no_save_optim": False, "no_save_rng": True}
    counts = {"data_parallel_size", "world_size", "num_distributed_optimizer_instances", "num_layers_per_virtual_pipeline_stage"}
    counts |= set() if name == "experts" else {"expert_tensor_parallel_size"}
    a, b = vars(one["args"]), vars(other["args"])
    expect_equal(f"{name}: args", sorted((k, str(v)) for k, v in a.items() if k not in counts and k not in said), sorted((k, str(v)) for k, v in b.items() if k not in counts and k not in said))
    expect(all(a[key] == value for key, value in said.items()), f"{name}: args of the format")
    # 7. The groups have their steps; a save of torch's own optimizer has one for all of them beside the groups.
    groups = [sorted(map(str, map(sorted_items, flat(side["optimizer"])))) for side in (one, other)]
    steps = [str(g["step"]) for g in flat(one["optimizer"])]
    expect_equal(f"{name}: groups", groups[0], groups[1])
    expect(steps == ["3"] * len(steps) and steps, f"{name}: steps {steps}")
    # 8. The contents of the save: the form of the states, and how layers are stored.
    expect(one["content_metadata"].items() >= other["content_metadata"].items(), f"{name}: content {one['content_metadata']}")
    expect_equal(f"{name}: content", sorted(one["content_metadata"]), sorted({"chained_optim_avoid_prefix", "distrib_optim_sharding_type", "non_homogeneous_layers", "singleton_local_shards"}))


def flat(optimizer):
    """The groups of all optimizers of a run."""
    if "param_groups" in optimizer:
        return optimizer["param_groups"]
    return [g for part in (optimizer[k] for k in optimizer if k in (0, 1, "optimizer")) for g in flat(part)]


def sorted_items(group):
    return sorted((k, v) for k, v in group.items() if k not in ("step", "params"))


def changed(folder, name, ranks, change):
    """The files of ranks again, some of them changed."""
    out = os.path.join(work.name, name)
    shutil.copytree(os.path.join(folder, ITERATION), out)
    for rank in ranks:
        path = os.path.join(out, rank, "model_optim_rng.pt")
        saved = torch.load(path, weights_only=False)
        change(saved)
        torch.save(saved, path)
    return out


def refused(status, says, folder, assets):
    for mode in ("to-fsdp", "to-mcore"):
        text = mckpt("convert", mode, folder, os.path.join(work.name, "no"), "--assets", assets, status=status)
        expect(all(part in text for part in says), f"{folder}: {text}, without {says}")


def check_refusals(folder):
    """Numbers that may belong to several parameters, main weights of others, ranks that do not agree."""
    assets = os.path.join(folder, "hf")

    def one_less(saved):
        saved["optimizer"]["optimizer"]["param_groups"][0]["params"].pop()

    def two_at_once(saved):
        groups = saved["optimizer"]["optimizer"]["param_groups"]
        groups.append({**groups[0], "params": groups[0]["params"][4:]})
        groups[0]["params"] = groups[0]["params"][:4]

    def short_of_main(saved):
        saved["optimizer"]["fp32_from_fp16_params"][1].pop()

    def unlike(saved):
        saved["optimizer"]["optimizer"]["state"][9]["exp_avg"][3] += 1

    def odd(saved):
        saved["optimizer"]["optimizer"]["momenta"] = [torch.zeros(2)]

    for name, change, status, says in [
        ("one_less", one_less, 4, ["MC3005", "has the shape of no group's next number", "mp_rank_00_000"]),
        ("two_at_once", two_at_once, 4, ["MC3005", "may be number 0 of group 0 or number 4 of group 3"]),
        ("short_of_main", short_of_main, 4, ["MC3005", "the main weights of group 1", "has none"]),
        ("odd", odd, 4, ["MC3005", "optimizer.optimizer.momenta.0", "no form that is known"]),
        ("unlike", unlike, 3, ["MC1113", "mp_rank_01_000/optimizer.optimizer.state.9.exp_avg differs from mp_rank_00_000/"]),
    ]:
        # All ranks of a stage have the same groups.
        run = changed(folder, name, ["mp_rank_00_000", "mp_rank_01_000"][:1 + (name == "two_at_once")], change)
        refused(status, says, run, assets)
        mckpt("convert", "to-fsdp", run, os.path.join(work.name, name + "_weights"), "--assets", assets, "--weights-only")


def of_run(folder, name, rank_of=None, change=lambda model: None):
    """The files of ranks with the config beside them. `rank_of`: the ranks by folder, as the args of Megatron
    say them; the args of this run leave them out."""
    out = os.path.join(work.name, name)
    shutil.copytree(os.path.join(folder, ITERATION), out)
    shutil.copytree(os.path.join(folder, "hf"), os.path.join(out, "hf_assets"))
    for rank in sorted(r for r in os.listdir(out) if r.startswith("mp_rank_")):
        path = os.path.join(out, rank, "model_optim_rng.pt")
        saved = torch.load(path, weights_only=False)
        if rank_of:
            saved["args"].rank, saved["args"].world_size = rank_of(rank), 8
        change(saved["model"])
        torch.save(saved, path)
    return out


def moved(folder, one, other, copy=False):
    """The files of two ranks change places, or the first is copied over the second."""
    one, other = (os.path.join(folder, rank, "model_optim_rng.pt") for rank in (one, other))
    if not copy:
        os.rename(other, other + ".old")
    shutil.copy(one, other)
    if not copy:
        os.rename(other + ".old", one)
    return folder


def zeros(model):
    for tensor in (t for t in model.values() if isinstance(t, torch.Tensor)):
        tensor.zero_()


def check_order(folder):
    """Files in the folder of another rank: tp 2, pp 2 and dp 2, so that stage 1 begins with rank 4."""
    by_rank = lambda rank: int(rank[8:10]) + 4 * int(rank[11:14])  # noqa: E731
    verdict = lambda path: mckpt("verify", path).splitlines()[-1].split(": ", 1)[1]  # noqa: E731
    # The values are random bits, and some of them implausible.
    of_order = lambda path: verdict(path).replace("sound, with warnings", "sound")  # noqa: E731
    unsaid = "sound, but the order of the ranks was not checked"
    expect_equal("without a rank", of_order(of_run(folder, "unsaid")), unsaid)
    warning = "warning: the order of the ranks was not checked (nothing in the files says it): if files of two ranks changed places"
    swapped = moved(of_run(folder, "swapped"), "mp_rank_00_001", "mp_rank_01_001")
    for mode in (["export"], ["convert", "to-fsdp"], ["convert", "to-mcore"], ["convert", "to-pt"]):
        text = mckpt(*mode, swapped, os.path.join(work.name, "swapped_" + mode[-1]), *["--weights-only"] * (mode[-1] == "to-fsdp"))
        expect(text.count(warning) == 1, f"{mode} of swapped files: {text}")
    said = of_run(folder, "said_of_export", by_rank)
    expect("order of the ranks" not in mckpt("export", said, said + "_hf"), "the ranks are said")
    expect_equal("one process wrote all", of_order(of_run(folder, "converted", lambda _: 0)), unsaid)
    expect_equal("with ranks", of_order(of_run(folder, "said", by_rank)), "sound")
    # Only the weights became zeros: the main weights of the optimizer still have the values of the run.
    unlike = unsaid.replace("sound,", "sound, with warnings,")
    expect_equal("constants on all ranks", verdict(of_run(folder, "zeros", change=zeros)), unlike)
    for name, ranks, copy, rank_of, says in [
        ("tensor_ranks", ("00_001", "01_001"), False, by_rank, "its args say rank 5, which is tp 1, stage 1, and the folder is that of tp 0, stage 1"),
        ("stages", ("01_000", "01_001"), False, by_rank, "its args say rank 5, which is tp 1, stage 1, and the folder is that of tp 1, stage 0"),
        ("copy_said", ("00_001", "01_001"), True, by_rank, "its args say rank 4, which is tp 0, stage 1, and the folder is that of tp 1, stage 1"),
        ("copy", ("00_001", "01_001"), True, None, "the model in the file is, byte for byte, that of mp_rank_00_001"),
    ]:
        run = moved(of_run(folder, name, rank_of), *("mp_rank_" + rank for rank in ranks), copy)
        text = mckpt("verify", run, status=1)
        expect("MC1113" in text and says in text, f"verify {name}: {text}")
        text = mckpt("export", run, os.path.join(work.name, "no"), status=3)
        expect("MC1113" in text and "model_optim_rng.pt" in text and not os.path.exists(os.path.join(work.name, "no")), f"export {name}: {text}")
        if name == "copy":
            shutil.rmtree(os.path.join(run, "hf_assets"))
            expect(says in mckpt("verify", run, status=1), "a copy is found without a config")


def check_modules(folder):
    """A folder of no rank; what modules are that no table has."""
    def grouped(model):
        model["decoder.layers.0.mlp.experts.weight1"] = torch.zeros(2, 2)

    run = of_run(folder, "more")
    shutil.copytree(os.path.join(run, "mp_rank_01_001"), os.path.join(run, "mp_rank_02_001"))
    text = mckpt("export", run, os.path.join(work.name, "no"), status=4)
    expect("MC2015" in text and "mp_rank_02_001" in text and "4 folders" in text and "5 folders" in text, f"a folder of no rank: {text}")
    run = of_run(folder, "grouped", change=grouped)
    text = mckpt("export", run, os.path.join(work.name, "no"), status=3)
    expect("MC2005" in text and "decoder.layers.0.mlp.experts.weight1" in text and "moe_use_legacy_grouped_gemm" in text, f"other modules: {text}")


def check_load_marks(folder):
    """Files without which Megatron does not load a torch_dist folder; mckpt reads it all the same."""
    for name in ("common.pt", "metadata.json"):
        out = os.path.join(work.name, "without_" + name)
        shutil.copytree(os.path.join(folder, "torch_dist", ITERATION), out)
        mckpt("verify", out)
        os.unlink(os.path.join(out, name))
        text = mckpt("verify", out, status=1)
        expect("problem[MC1302]: " + name in text and "does not" in text and text.count("MC1302") == 1, f"without {name}: {text}")
        mckpt("export", out, out + "_hf", "--assets", os.path.join(folder, "hf"))


def check_kept_names(folder):
    """A torch_dist folder whose rows are divided anew under its own names is one that Megatron loads: it keeps the common state
    and the mark."""
    source = os.path.join(folder, "torch_dist", ITERATION)
    for name, args in [("to_dcp", ["to-dcp"]), ("to_dcp_weights", ["to-dcp", "--weights-only"]), ("by_key", ["reshard", "--any-model", "--keep-names"])]:
        out = os.path.join(work.name, name)
        mckpt("convert", *args, source, out, "--dp", 3)
        mckpt("verify", out)
        mckpt("verify", out, "--against", source, *["--weights-only"] * (name == "to_dcp_weights"))
        out = os.path.join(out, ITERATION if name == "by_key" else "")
        for file in ("common.pt", "metadata.json"):
            with open(os.path.join(source, file), "rb") as one, open(os.path.join(out, file), "rb") as other:
                expect(one.read() == other.read(), f"{name}: {file}")
        os.unlink(os.path.join(out, "mckpt_manifest.json"))
        os.unlink(os.path.join(out, "common.pt"))
        text = mckpt("verify", out, status=1)
        expect("problem[MC1302]: common.pt" in text, f"{name} without common.pt: {text}")


def edited(folder, name, edit):
    """The real torch_dist with another .metadata."""
    out = os.path.join(work.name, name)
    shutil.copytree(os.path.join(folder, "torch_dist", ITERATION), out)
    with open(os.path.join(out, ".metadata"), "rb") as f:
        metadata = pickle.load(f)
    edit(metadata)
    with open(os.path.join(out, ".metadata"), "wb") as f:
        pickle.dump(metadata, f)
    return out


def check_newer_keys(folder):
    """Without the extra states, as newer versions may save, it is the same; boxes without the axis of the layers are refused."""
    assets, stack = os.path.join(folder, "hf"), "decoder.layers.self_attention.linear_proj.weight"

    def dropped(metadata):
        for key in [key for key in metadata.state_dict_metadata if "_extra_state" in key]:
            del metadata.state_dict_metadata[key]
        for index in [index for index in metadata.storage_data if "_extra_state" in index.fqn]:
            del metadata.storage_data[index]

    def without_axis(metadata):
        tensor = metadata.state_dict_metadata[stack]
        for chunk in tensor.chunks:
            chunk.offsets, chunk.sizes = torch.Size(chunk.offsets[1:]), torch.Size(chunk.sizes[1:])

    newer = edited(folder, "dropped", dropped)
    run = run_mckpt("inspect", newer)
    expect("extra states none" in run.stdout, f"without extra states: {run.stdout}")
    mckpt("verify", newer, "--against", os.path.join(folder, "torch_dist", ITERATION), "--assets", assets)
    odd = edited(folder, "without_axis", without_axis)
    for mode in ("to-fsdp", "to-mcore", "to-pt"):
        text = mckpt("convert", mode, odd, os.path.join(work.name, "no"), "--assets", assets, status=3)
        expect(stack in text and "MC1" in text, f"{mode} of boxes without an axis: {text}")


def check_iterations(folder):
    """Megatron loads no states from release: they go to the iteration that the run says, whatever the name of its folder. Weights
    do not; and where a run says none, a warning does."""
    assets, dist = os.path.join(folder, "hf"), os.path.join(folder, "torch_dist", ITERATION)
    numbers = {"of_ranks": changed(folder, "copied_ranks", [], None), "of_dist": with_common(dist, "copied_dist", lambda common: None)}
    for name, source in numbers.items():
        for mode, flags, want in (("to-fsdp", [], ITERATION), ("to-mcore", [], ITERATION), ("to-fsdp", ["--weights-only"], "release")):
            out = os.path.join(work.name, f"{name}_{mode}_{want}")
            mckpt("convert", mode, source, out, "--assets", assets, *flags)
            with open(os.path.join(out, "latest_checkpointed_iteration.txt")) as f:
                expect_equal(f"{name} {mode} {flags}: folders and tracker", (sorted(os.listdir(out)), f.read()), (sorted([want, "latest_checkpointed_iteration.txt"]), "release" if flags else "3"))
    # Another iteration is also the args' iteration.
    out = os.path.join(work.name, "renumbered")
    mckpt("convert", "to-mcore", dist, out, "--assets", assets, "--iteration", 12)
    common = torch.load(os.path.join(out, "iter_0000012", "common.pt"), weights_only=False)
    expect_equal("iteration 12", (common["iteration"], common["args"].iteration), (12, 12))
    expect("not equal" not in mckpt("verify", out, "--against", dist, "--assets", assets), "another iteration is no other checkpoint")
    nowhere, out = with_common(dist, "nowhere", lambda common: common.pop("iteration")), os.path.join(work.name, "no_iteration")
    run = run_mckpt("convert", "to-fsdp", nowhere, out, "--assets", assets, "--no-sync")
    expect(run.returncode == 0 and "loads only weights" in run.stderr and "--iteration N sets one" in run.stderr and "release" in os.listdir(out), f"no iteration: {run.stderr}")


def main():
    for name in GRIDS:
        with tarfile.open(os.path.join(DATA, "megatron_runs", name + ".tar.xz")) as archive:
            archive.extractall(work.name, filter="data")
        folder = os.path.join(work.name, name)
        real = load_whole(os.path.join(folder, "torch_dist", ITERATION))
        check_fsdp(name, folder, real)
        check_torch_dist(name, folder, real)
        check_rank_files(name, folder)
        check_groups(name, folder)
        if name == "experts":
            check_own_norms(folder, real)
    check_unsure_groups(os.path.join(work.name, "dense"))
    check_refusals(os.path.join(work.name, "dense"))
    check_newer_keys(os.path.join(work.name, "dense"))
    check_order(os.path.join(work.name, "dense"))
    check_modules(os.path.join(work.name, "dense"))
    check_kept_names(os.path.join(work.name, "dense"))
    check_iterations(os.path.join(work.name, "dense"))
    check_load_marks(os.path.join(work.name, "experts"))
    finish(2360)


main()
