"""The check "groups" of files of ranks: states of FSDP's ranks are found under the names that joining gives them, a group counts once
for all ranks, and a save whose states were not read says so. A parameter of a Megatron run counts once for its
tensor-parallel ranks, and one whose name is not known may have a learning rate of its own."""
import glob
import json
import os
import shutil
import tarfile
import tempfile
import zipfile

from mckpt_tests.checks import expect, expect_equal, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch")
import torch  # noqa: E402

WORK = tempfile.TemporaryDirectory(prefix="mckpt_states_")


def groups(path, *options):
    run = run_mckpt("verify", path, "--json", *options)
    check = [c for c in json.loads(run.stdout)["checks"] if c["name"] == "groups"]
    text = run_mckpt("verify", path, *options).stdout
    return check[0] if check else {}, next((line for line in text.splitlines() if "groups" in line), ""), text


def edited(data, pattern, change):
    """A copy whose pickles of these files have other bytes."""
    folder = os.path.join(WORK.name, f"{data}{len(os.listdir(WORK.name))}")
    shutil.copytree(os.path.join(DATA, "rank_files", data), folder)
    for path in glob.glob(os.path.join(folder, pattern)):
        with zipfile.ZipFile(path) as old:
            entries = [(e.filename, old.read(e)) for e in old.infolist()]
        with zipfile.ZipFile(path, "w") as new:
            for name, content in entries:
                new.writestr(name, change(content) if name.endswith("data.pkl") else content)
    return folder


for data, optimizer in (("pieces", "optim_*"), ("accelerate", "optimizer_*")):
    check, line, text = groups(os.path.join(DATA, "rank_files", data))
    expect_equal(f"{data}: the check", [check["status"], check["count"]], ["pass", 4])
    expect("4 parameters" in line and "groups, options and states fit" in line, f"{data}: {line}")
    folder = edited(data, optimizer, lambda b: b.replace(b"model.norm.weight", b"model.nirm.weight"))
    check, line, text = groups(folder)
    expect_equal(f"{data}, renamed: status", check["status"], "warn")
    expect("tensor 'model.nirm.weight': states of 1 parameter that the model does not have" in text, f"{data}: {text}")
    expect("'model.norm.weight': 1 of 4 parameters has no states" in text, f"{data}: {text}")

# Groups and states that are none of a known optimizer: nothing says that states fit.
alone = os.path.join(WORK.name, "alone.pt")
torch.save({"model": {"w": torch.ones(3)}, "optim": {"state": {"w": {"odd": torch.ones(3)}}, "param_groups": [{"lr": 0.5, "params": ["w"]}]}}, alone)
check, line, _ = groups(alone)
expect_equal("options alone", [check["count"], check["note"]], [1, "states were not read"])
expect("1 group " in line and "groups and options fit; states were not read" in line and "states fit" not in line, line)

# A tensor-parallel run of two stages of 17 and 26 parameters, with a learning rate of the embedding and the output layer.
with tarfile.open(os.path.join(DATA, "megatron_runs", "dense.tar.xz")) as tar:
    tar.extractall(WORK.name, filter="data")
run = os.path.join(WORK.name, "dense", "iter_0000003")
check, line, _ = groups(run)
expect_equal("a run of 2 x 2 ranks", [check["status"], check["count"]], ["pass", 43])
one = os.path.join(run, "mp_rank_00_000", "model_optim_rng.pt")
check, line, text = groups(one)
expect_equal("one rank", [check["status"], check["count"]], ["pass", 17])
expect("for this parameter alone" not in text, text)
# A step that differs is still seen without a name.
saved = torch.load(one, weights_only=False)
saved["optimizer"]["optimizer"]["state"][3]["step"] = torch.tensor(1.0)
torch.save(saved, one)
check, line, text = groups(run)
expect("number 3': step is 1 for 1 parameter, and 3 for the other 85" in text, text)
finish(14)
