"""Items of torch_checkpointing that are not torch files: JSON is shown as other objects are, bytes are named
with their size, and `verify` reads both."""

import json
import os
import pickle
import shutil
import tarfile
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA


def told(status, texts, *args):
    run = run_mckpt(*args)
    out = run.stdout + run.stderr
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, want {status}: {out[-1500:]}")
    for text in texts:
        expect(text in out, f"{args[:2]}: {text!r} is not in {out[-1500:]}")
    return run


def metadata_that_lies(folder):
    """A format of files that is not known, and ranks that no job has: never another checkpoint that is sound."""
    path = os.path.join(folder, "metadata.pkl")
    with open(path, "rb") as f:
        good = f.read()

    def changed(change):
        data = pickle.loads(good)
        change(data["metadata"]["model"])
        with open(path, "wb") as f:
            pickle.dump(data, f)

    def other_format(model):
        for rank in model["rank_to_layout_info"].values():
            rank["serialization_format"]["type"] = "NumpySerialization"

    changed(other_format)
    told(1, ["problem[MC1221]: model_0.safetensors", "is of the format NumpySerialization of torch_checkpointing, which is not read"], "verify", folder)
    for rank in (2 ** 63 - 1, 2 ** 20, -5):
        changed(lambda model: model["rank_to_layout_info"].update({rank: model["rank_to_layout_info"].pop(1)}))
        told(1, ["there is no such rank"], "verify", folder)
        first = lambda model: next(iter(model["nested_path_to_metadata"].values()))[0]
        changed(lambda model: first(model).update(ranks=(0, rank)))
        told(1, ["there is no such rank"], "verify", folder)
        changed(lambda model: first(model)["sharding_metadata"]["data"]["mesh_spec"].update(mesh_data=(0, rank)))
        told(1, ["there is no such rank"], "verify", folder)


def main():
    with tempfile.TemporaryDirectory(prefix="mckpt_items_") as work:
        with tarfile.open(os.path.join(DATA, "newest", "K.tar.xz")) as tar:
            tar.extractall(work, [m for m in tar if m.name.startswith("K_safetensors_w2/ckpt")], filter="data")
        folder = os.path.join(work, "K_safetensors_w2", "ckpt")
        for rank in (0, 1):
            with open(os.path.join(folder, f"seen_{rank}.json"), "w") as f:
                json.dump({"files": ["a", "b"], "big": 2 ** 70, "rate": 0.5, "none": None, "more": {"yes": True}}, f)
            with open(os.path.join(folder, f"blob_{rank}.bin"), "wb") as f:
                f.write(b"\x80\x02" * 600_000)
        objects = ["train:rank_1:step  7", "seen:rank_0:files  ['a', 'b']", "seen:rank_0:big  '1180591620717411303424'", "seen:rank_0:rate  0.5",
                   "seen:rank_0:none  None", "seen:rank_0:more  {'yes': True}", "blob:rank_1  1,200,000 bytes"]
        told(0, objects, "inspect", "--args", folder)
        told(0, ["10 files", "sound"], "verify", folder)
        told(0, ["25 copied"], "convert", "to-safetensors", folder, os.path.join(work, "out.safetensors"), "--no-sync")

        os.remove(os.path.join(folder, "seen_1.json"))
        told(1, ["MC1106", "seen_1.json: the file of rank 1 of seen is missing"], "verify", folder)
        with open(os.path.join(folder, "seen_1.json"), "w") as f:
            f.write('{"files": [')
        told(1, ["MC1003", "seen_1.json", "ends inside"], "verify", folder)
        shutil.copy(os.path.join(folder, "seen_0.json"), os.path.join(folder, "seen_1.json"))
        # Bytes of which a rank has no file do not count as an item: the files are beside.
        os.remove(os.path.join(folder, "blob_1.bin"))
        told(0, ["beside this checkpoint, not shown: blob_0.bin"], "inspect", folder)
        metadata_that_lies(folder)
    finish(20)


if __name__ == "__main__":
    main()
