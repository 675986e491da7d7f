"""Files of Megatron's ranks that are not of one save: what every rank saves alike (options of the optimizer's groups, args, the
schedule, counts, replicas of states) is changed in one file of a real run. verify names the file, what differs, and both values; a
conversion refuses the folder. Values that each rank says for itself do not count as a difference."""

import io
import os
import re
import shutil
import tarfile
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch")
import torch  # noqa: E402

ITERATION, FILE = "iter_0000003", "model_optim_rng.pt"
work = tempfile.TemporaryDirectory(prefix="mckpt_one_save_")


def mckpt(*args, status=0):
    run = run_mckpt(*args, "-q", *["--no-sync"] * (args[0] in ("convert", "export")))
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout}{run.stderr}")
    return run.stdout + run.stderr


class Run:
    """The files of a run with its config beside them, and what they were."""

    def __init__(self, name):
        with tarfile.open(os.path.join(DATA, "megatron_runs", name + ".tar.xz")) as archive:
            archive.extractall(work.name, filter="data")
        self.golden = os.path.join(work.name, name)
        self.path = os.path.join(self.golden, ITERATION)
        shutil.copytree(os.path.join(self.golden, "hf"), os.path.join(self.path, "hf_assets"))
        self.ranks = sorted(rank for rank in os.listdir(self.path) if rank.startswith("mp_rank_"))
        self.saved = {rank: open(self.file(rank), "rb").read() for rank in self.ranks}

    def file(self, rank):
        return os.path.join(self.path, rank, FILE)

    def plant(self, changes):
        """The files as they were, but for the changes, by rank."""
        for rank, whole in self.saved.items():
            with open(self.file(rank), "wb") as f:
                f.write(whole)
            if rank in changes:
                saved = torch.load(self.file(rank), weights_only=False)
                changes[rank](saved)
                torch.save(saved, self.file(rank))


def optimizer_of(saved, number=0):
    """One of several optimizers, or the only one."""
    of = saved["optimizer"]
    return (of[number] if isinstance(of, list) else of)["optimizer"]


def groups_of(saved, optimizer=0):
    return optimizer_of(saved, optimizer)["param_groups"]


def states_of(saved):
    return optimizer_of(saved)["state"]


def item(kind, number):
    return lambda saved: states_of(saved)[number][kind].view(-1)[1].add_(1)


def more_steps(saved):
    for state in states_of(saved).values():
        state["step"] += 5


def check_planted(run, rank, same_groups, optimizer, replica):
    """`same_groups`: the rank with the same groups as `rank`. `optimizer`: the number of the one whose groups
    are changed. `replica`: the number of a parameter that both have alike."""
    groups = f"optimizer.{optimizer}.optimizer.param_groups" if optimizer else "optimizer.optimizer.param_groups"
    first, no = run.ranks[0], os.path.join(work.name, "no")

    def option(name, value, group=0):
        return lambda saved: groups_of(saved, optimizer)[group].__setitem__(name, value)

    def entry(name, value):
        return lambda saved: saved.__setitem__(name, value)

    def arg(name, value):
        return lambda saved: setattr(saved["args"], name, value)

    plants = [
        (option("lr", 3.5), same_groups, f"{groups}[0].lr is 3.5 here and 0.21875 there"),
        (option("weight_decay", 3.5), same_groups, f"{groups}[0].weight_decay is 3.5 here and 0.125 there"),
        (option("eps", 3.5), same_groups, f"{groups}[0].eps is 3.5 here and 1e-08 there"),
        (option("betas", (0.5, 0.125)), same_groups, f"{groups}[0].betas[1] is 0.125 here and 0.75 there"),
        (option("step", 8), same_groups, f"{groups}[0].step is here alone"),
        (lambda saved: groups_of(saved, optimizer)[0].pop("eps"), same_groups, f"{groups}[0].eps is missing here"),
        (entry("iteration", 7), first, "iteration is 7 here and 3 there"),
        (entry("checkpoint_version", 2.0), first, "checkpoint_version is 2.0 here and 3.0 there"),
        (entry("num_floating_point_operations_so_far", 8), first, "num_floating_point_operations_so_far is 8 here and 7 there"),
        (lambda saved: saved["opt_param_scheduler"].update(num_steps=999), first, "opt_param_scheduler.num_steps is 999 here and 3 there"),
        (lambda saved: saved.pop("opt_param_scheduler"), first, "opt_param_scheduler is missing here"),
        (arg("lr", 123.0), first, "args.lr is 123.0 here and 0.25 there"),
        (arg("q_lora_rank", 5), first, "args.q_lora_rank is 5 here and nothing there"),
        (item("exp_avg", replica), None, f".state.{replica}.exp_avg differs from {same_groups}/"),
        (item("exp_avg_sq", replica), None, f".state.{replica}.exp_avg_sq differs from {same_groups}/"),
        (more_steps, None, f"the optimizer had made another number of steps in the files of two ranks"),
    ]
    if optimizer == 0:
        plants += [(option("lr", 3.5, 2), same_groups, f"{groups}[2].lr is 3.5 here and 0.21875 there"),
                   (lambda saved: saved["optimizer"]["fp32_from_fp16_params"][2][-1].view(-1)[1].add_(1), None, ".fp32_from_fp16_params.2.12 differs from")]
    for number, (change, other, says) in enumerate(plants):
        run.plant({rank: change})
        finding = f"MC1315]: {rank}/{FILE}: the file is of another save than that of {other}: {says}" if other else says
        text = mckpt("verify", run.path, status=1)
        expect(finding in text and ("MC1315" if other else "MC1113") in text and f"{rank}/{FILE}" in text, f"{says}: {text}")
        if number % 3:
            continue
        text = mckpt("convert", "to-mcore", run.path, no, status=3)
        expect(says in text and not os.path.exists(no), f"to-mcore, {says}: {text}")
    run.plant({rank: option("lr", 3.5)})
    for command in (["export", run.path, no], ["verify", run.path, "--against", os.path.join(run.golden, "torch_dist", ITERATION)],
                    ["diff", os.path.join(run.golden, "torch_dist", ITERATION), run.path, "--assets", os.path.join(run.golden, "hf")]):
        expect("MC1315" in mckpt(*command, status=3), f"{command[0]} of another rate")
    text = run_mckpt("convert", "to-fsdp", run.path, os.path.join(work.name, "accepted_" + rank), "--accept", "MC1315", "--no-sync").stderr
    expect("warning[MC1315]" in text and "lr is 3.5 here" in text, f"accepted: {text}")


def check_stages(run):
    """A stage that says something else as a whole; groups that only one stage has; and what ranks say each for itself."""
    last = ["mp_rank_00_001", "mp_rank_01_001"]

    def rate(saved):
        groups_of(saved)[0]["lr"] = 3.5

    def own_group(saved):  # of parameters with a rate of their own
        groups_of(saved)[0].update(lr=3.5, max_lr=4.0)

    def more_groups(saved):
        groups_of(saved).append({**groups_of(saved)[0], "params": [], "max_lr": 4.0, "lr": 3.5})

    run.plant(dict.fromkeys(last, rate))
    text = mckpt("verify", run.path, status=1)
    expect(text.count("MC1315") == 1 and f"{last[0]}/{FILE}: the file is of another save than that of mp_rank_00_000: optimizer.optimizer.param_groups[0].lr is 3.5 here" in text, f"a stage: {text}")
    run.plant({rank: lambda saved: setattr(saved["args"], "num_layers", 11) for rank in run.ranks})
    text = mckpt("verify", run.path, status=1)
    expect("MC1312" in text and "found num_layers 11" in text and "--accept MC1312" in text, f"layers by the args: {text}")
    # Accepted, the layers are the model's, and the result says so.
    out, layers = os.path.join(work.name, "accepted"), torch.load(io.BytesIO(run.saved[last[0]]), weights_only=False)["args"].num_layers
    mckpt("convert", "to-pt", run.path, out, "--tp", "2", "--accept", "MC1312")
    args = torch.load(os.path.join(out, "release", "mp_rank_01", FILE), weights_only=False)["args"]
    expect((args.num_layers, args.rank, args.pipeline_model_parallel_size, args.lr) == (layers, 1, 1, 0.25) and layers != 11, f"args of the result: {args}")
    mckpt("verify", out)
    for change in (own_group, more_groups):
        run.plant(dict.fromkeys(last, change))
        expect(": sound" in mckpt("verify", run.path), change.__name__)

    def own_words(number):
        def change(saved):
            vars(saved["args"]).update(rank=4 * (number % 2) + number // 2, local_rank=number, world_size=8, pipeline_model_parallel_rank=number % 2)
            saved["rng_state"] = [{"random_rng_state": number}]
        return change

    run.plant({rank: own_words(n) for n, rank in enumerate(run.ranks)})
    text = mckpt("verify", run.path)
    # The values are random bits, of which verify may find some implausible; it warns of nothing else.
    warned = set(re.findall(r"warning\[(MC\d+)\]", text))
    ends = ": sound, with warnings\n" if warned else ": sound\n"
    expect(text.endswith(ends) and warned <= {"MC1013"}, f"what ranks say each for itself: {text}")
    run.plant({last[1]: lambda saved: setattr(saved["args"], "data_cache_path", "/scratch/node7")})
    text = mckpt("verify", run.path)
    expect("warning[MC1315]" in text and "args.data_cache_path is '/scratch/node7' here and nothing there" in text, f"a path: {text}")


def check_experts(run):
    """Args that say other experts than config.json and the tensors have."""
    for said, found in ((8, "num_experts 8"), (None, "num_experts None")):
        run.plant({rank: lambda saved: setattr(saved["args"], "num_experts", said) for rank in run.ranks})
        text = mckpt("verify", run.path, status=1)
        expect("MC1312" in text and "expected num_experts 4" in text and f"found {found}" in text, f"experts by the args: {text}")
        out = os.path.join(work.name, "experts_" + str(said))
        mckpt("convert", "to-pt", run.path, out, "--accept", "MC1312")
        args = torch.load(os.path.join(out, "release", "mp_rank_00", FILE), weights_only=False)["args"]
        expect(args.num_experts == 4, f"experts of the result: {args.num_experts}")
        mckpt("verify", out)


def check_comparison(run):
    """States that the files of a run have are compared with the other side's, on either side."""
    real, assets = os.path.join(run.golden, "torch_dist", ITERATION), os.path.join(run.golden, "hf")
    for changes, says, verdict in (({}, "against  192 tensors", ": equal\n"), ({run.ranks[0]: item("exp_avg", 2)}, ".exp_avg': differs at", ": not equal\n")):
        run.plant(changes)
        for one, other in ((run.path, real), (real, run.path)):
            text = run_mckpt("verify", one, "--against", other, "--assets", assets).stdout
            expect(text.endswith(verdict) and says in text, f"{one} against {other}: {text}")
    mckpt("verify", run.path, "--against", real, "--assets", assets, "--weights-only")


def check_unknown_states(run):
    """States that are given to no parameter are not compared, and verify says so."""
    def one_less(saved):
        groups_of(saved)[0]["params"].pop()

    run.plant(dict.fromkeys(run.ranks, one_less))
    text = run_mckpt("verify", run.path).stdout
    expect("optimizer not compared: " in text and "which parameters the states of the optimizer are of" in text and "the states of the optimizer were not compared" in text, text)
    run.plant({rank: lambda saved: saved.pop("optimizer") for rank in run.ranks})
    for rank in run.ranks:
        torch.save({"0": {"param": torch.zeros(2)}}, os.path.join(run.path, rank, "distrib_optim.pt"))
    text = run_mckpt("verify", run.path).stdout
    expect("a distributed optimizer does not say which parameters its states are of" in text and "the states of the optimizer were not compared" in text, text)


dense, experts = Run("dense"), Run("experts")
check_planted(dense, "mp_rank_01_001", "mp_rank_00_001", 0, 25)
check_planted(experts, "mp_rank_01_001", "mp_rank_00_000", 1, 16)
check_stages(dense)
check_experts(experts)
check_comparison(dense)
check_unknown_states(dense)
finish(115)
