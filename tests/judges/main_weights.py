"""A weight in half precision that is not its main weight, rounded: `verify` finds one changed value, in files of ranks and in
torch_dist, whatever wrote the archive around it anew; runs as they were saved are sound."""

import io
import os
import shutil
import tarfile
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch", "numpy")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402

work = tempfile.TemporaryDirectory(prefix="mckpt_main_")


def unpacked(name):
    with tarfile.open(os.path.join(DATA, "megatron_runs", name + ".tar.xz")) as tar:
        tar.extractall(work.name, filter="data")
    return os.path.join(work.name, name)


def verify(path, *args):
    run = run_mckpt("verify", path, *args)
    line = next((line for line in run.stdout.splitlines() if " main " in f"{line} "), "")
    return run.returncode, line.split()[:1], run.stdout


def folder_with(run, word):
    """The folder of the iteration below `run` whose name, or what is in it, has the word."""
    for folder, folders, files in os.walk(run):
        if any(word in name for name in folders + files):
            return folder
    raise AssertionError(f"no {word} in {run}")


def change_ranks(folder):
    """Doubles one value of one weight in the file of one rank."""
    file = next(os.path.join(at, name) for at, _, names in sorted(os.walk(folder)) for name in names if name == "model_optim_rng.pt")
    state = torch.load(file, weights_only=False)
    name = next(key for key in state["model"] if key.endswith("linear_proj.weight"))
    state["model"][name].view(-1)[5] *= 2
    torch.save(state, file)
    return name


def change_dcp(folder):
    """The same in a chunk of torch_dist, whose record keeps its size."""
    metadata = dcp.FileSystemReader(folder).read_metadata()
    index, place = next((i, p) for i, p in metadata.storage_data.items() if i.fqn.endswith("linear_proj.weight") and "optimizer" not in i.fqn)
    path = os.path.join(folder, place.relative_path)
    with open(path, "r+b") as f:
        f.seek(place.offset)
        tensor = torch.load(io.BytesIO(f.read(place.length)))
        tensor.view(-1)[5] *= 2
        out = io.BytesIO()
        torch.save(tensor, out)
        expect(len(out.getvalue()) == place.length, "the record keeps its size")
        f.seek(place.offset)
        f.write(out.getvalue())
    return index.fqn


for name in ("dense", "experts"):
    run = unpacked(name)
    ranks, dist = (folder_with(run, word) for word in ("mp_rank_", "metadata.json"))
    assets = ["--assets", os.path.join(run, "hf")]
    for folder, change, args in ((ranks, change_ranks, assets), (dist, change_dcp, [])):
        expect_equal(f"{name}: {folder} as it was saved", verify(folder, *args)[:2], (0, ["pass"]))
        changed = folder + "_changed"
        shutil.copytree(folder, changed)
        weight = change(changed)
        code, status, text = verify(changed, *args)
        expect_equal(f"{name}: {changed}", (code, status), (1, ["FAIL"]))
        expect("MC1311" in text and weight.split("layers.")[-1].split(".", 1)[-1] in text and "1 value of" in text, text)

finish(14)
