"""An archive of a folder that has more than one checkpoint: HDF5 shows the tensors of the one that was archived, and the others are files
of it. A fresh archive is sound in both forms, gives all files back, and is not sound once a byte of any of them has changed.
"""

import filecmp
import json
import os
import shutil

from mckpt_tests.checks import expect, expect_equal, finish, need, skip
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import BUILD, TINY_MODEL

need("torch", "h5py")
if not os.path.exists(os.path.join(BUILD, "mckpt-hdf5")):
    skip("mckpt-hdf5 is not built")
import h5py  # noqa: E402
import torch  # noqa: E402

temporary = scratch()


def path(name):
    return os.path.join(temporary.name, name)


def mckpt(*args, status=0):
    run = run_mckpt(*args, *(["--no-sync", "-q"] if args[0] == "convert" else []))
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout}{run.stderr}")
    return run.stdout


def add_optimizer(folder):
    torch.save({"state": {0: {"exp_avg": torch.ones(3)}}, "param_groups": [{"lr": 1}]}, os.path.join(folder, "optimizer.pt"))


def add_hdf5(folder):
    with h5py.File(os.path.join(folder, "tf_model.h5"), "w") as f:
        f["w"] = [1.0, 2.0]


def add_archive(folder):
    mckpt("convert", "to-hdf5", TINY_MODEL, os.path.join(folder, "inner.h5"))


def verified(archive, unread):
    answer = json.loads(mckpt("verify", archive, "--json"))
    expect_equal(f"{archive}: problems", [f for f in answer["findings"] if not f.get("warning")], [])
    expect_equal(f"{archive}: not read", [u["path"] for u in answer["unread"]], unread)
    checks = {c["name"]: c["status"] for c in answer["checks"]}
    expect(checks.get("archive") == "pass", f"{archive}: {checks}")
    return checks


def archives_of(folder, file, unread):
    for archive in (f"{folder}.h5", f"{folder}_archive"):
        mckpt("convert", "to-hdf5", folder, archive)
        checks = verified(archive, unread)
        expect(unread or checks.get("beside") == "pass", f"{archive}: {file} was not looked at")
        back = archive + "_back"
        mckpt("convert", "from-hdf5", archive, back)
        _, unlike, lost = filecmp.cmpfiles(folder, back, os.listdir(folder), shallow=False)
        expect(not unlike and not lost, f"{archive}: {unlike} {lost}")
        if not unread:
            mckpt("verify", os.path.join(archive, file))  # the file by itself, whose tensors HDF5 does not show
        changed(archive, os.path.join(folder, file))


def changed(archive, file):
    """One byte of the file, where the archive has it."""
    index = os.path.join(archive, "archive.h5") if os.path.isdir(archive) else archive
    parts = [os.path.join(archive, n) for n in os.listdir(archive) if n.endswith(".h5")] if os.path.isdir(archive) else [index]
    with open(file, "rb") as f:
        data = f.read()
    for part in parts:
        with open(part, "rb") as f:
            at = f.read().find(data[:64])
        if at >= 0:
            with open(part, "r+b") as f:
                f.seek(at + 30)
                f.write(bytes([data[30] ^ 1]))
            break
    expect(at >= 0, f"{archive} has the first bytes of {file} nowhere")
    told = json.loads(mckpt("verify", archive, "--json", status=1))
    name = os.path.basename(file)
    expect(any(name in json.dumps(finding) for finding in told["findings"]), f"{archive}: a changed byte of {name} is not named: {told['findings']}")


for number, (add, name, unread) in enumerate(
    [(add_optimizer, "optimizer.pt", []), (add_hdf5, "tf_model.h5", ["tf_model.h5"]), (add_archive, "inner.h5", ["inner.h5"])]
):
    model = path(f"model_{number}")
    shutil.copytree(TINY_MODEL, model)
    add(model)
    archives_of(model, name, unread)
# The file itself is named where it is asked for.
run = run_mckpt("ls", path("model_1.h5/tf_model.h5"))
expect(run.returncode == 3 and "MC1402" in run.stderr and "from-hdf5" in run.stderr, run.stderr)
finish(40)
