"""Folders of torch_checkpointing that are not whole: a file lost, of another rank, cut, or a metadata.pkl that does not fit. The folders are
those that the library wrote (test_data/newest)."""
import os
import pickle
import shutil
import tarfile
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA


def metadata(change):
    """An edit of metadata.pkl; `change` gets its root."""

    def edit(saved):
        path = os.path.join(saved, "metadata.pkl")
        with open(path, "rb") as f:
            root = pickle.load(f)
        change(root)
        with open(path, "wb") as f:
            pickle.dump(root, f)

    return edit


def swap(a, b):
    def edit(saved):
        a_path, b_path = os.path.join(saved, a), os.path.join(saved, b)
        os.rename(a_path, a_path + ".held")
        os.rename(b_path, a_path)
        os.rename(a_path + ".held", b_path)

    return edit


def remove(name):
    return lambda saved: os.remove(os.path.join(saved, name))


def all_sharding(root):
    for groups in root["metadata"]["model"]["nested_path_to_metadata"].values():
        for group in groups:
            yield group["sharding_metadata"]["data"]


def other_shape(root):
    for data in all_sharding(root):
        data["global_shape"] = [n + 1 for n in data["global_shape"]]


def unknown_placement(root):
    for data in all_sharding(root):
        data["placements"] = [{"type": "Ragged", "dim": 0}]


CASES = [  # folder, edit, exit status of verify, words
    ("K_safetensors_w2", lambda saved: None, 0, "order of the ranks: not checked"),
    ("K_safetensors_w2", remove("model_1.safetensors"), 1, "files of model are missing: 1 of 2 ranks are there; the first that is missing is model_1.safetensors"),
    ("K_safetensors_w2", metadata(other_shape), 1, "leave out items of the tensor"),
    ("K_safetensors_w2", metadata(unknown_placement), 1, "a placement is of a type that mckpt does not know"),
    ("K_folders_w2", remove("rank_1/optim.pt"), 1, "the first that is missing is rank_1/optim.pt"),
    ("K_folders_w2", swap("rank_0/weights.pt", "rank_1/weights.pt"), 1, "by its name the file is of rank 0, but rank 1 wrote it"),
    ("K_noreshard_w2", remove("model_1.pt"), 1, "MC"),
    ("K_v1_w2", metadata(lambda root: root.update(world_size=3)), 1, "2 of 3 ranks are there"),
]  # fmt: skip


def main():
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(os.path.join(DATA, "newest", "K.tar.xz")) as archive:
            archive.extractall(scratch, filter="data")
        for folder, edit, status, words in CASES:
            whole, saved = os.path.join(scratch, folder, "ckpt"), os.path.join(scratch, "saved")
            if not os.path.isdir(whole):
                whole = os.path.join(scratch, "K", folder, "ckpt")
            shutil.copytree(whole, saved)
            edit(saved)
            run = run_mckpt("verify", saved)
            expect(run.returncode == status and words in run.stdout + run.stderr, f"{folder}, {words}: {run.returncode} {run.stdout} {run.stderr}")
            shutil.rmtree(saved)
    finish(len(CASES))


if __name__ == "__main__":
    main()
