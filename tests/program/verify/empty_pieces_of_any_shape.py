"""FSDP2 over tensor parallelism (torch 2.11) saves [0, 0] for the piece [5, 0] of a rank without columns. torch loads the save, and it is sound: nobody reads
a piece without items. A piece with items has its own shape, and an empty one as many dimensions as the tensor."""
import io
import os
import pickle
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt

need("torch")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint.filesystem import _StorageInfo  # noqa: E402
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex  # noqa: E402


def save(folder, stored, sizes):
    """`w` [5, 3] in one piece, and a second piece at its right edge: `sizes` in .metadata, `stored` in the file."""
    whole = torch.arange(15.0).reshape(5, 3)
    dcp.save({"model": {"w": whole}}, checkpoint_id=folder, no_dist=True)
    path = os.path.join(folder, ".metadata")
    with open(path, "rb") as f:
        metadata = pickle.load(f)
    record = io.BytesIO()
    torch.save(torch.zeros(stored), record)
    with open(os.path.join(folder, "__1_0.distcp"), "wb") as f:
        f.write(record.getvalue())
    tensor, edge = metadata.state_dict_metadata["model.w"], torch.Size([0, 3])
    tensor.size = torch.Size([5, 3 + sizes[1]])
    tensor.chunks.append(ChunkStorageMetadata(offsets=edge, sizes=torch.Size(sizes)))
    metadata.storage_data[MetadataIndex("model.w", edge, 1)] = _StorageInfo("__1_0.distcp", 0, len(record.getvalue()))
    with open(path, "wb") as f:
        pickle.dump(metadata, f)
    return whole


CASES = (("as_torch_saves_it", [0, 0], [5, 0], True), ("the_same", [5, 0], [5, 0], True), ("empty_rows", [0, 7], [5, 0], True),
         ("one_dimension", [0], [5, 0], False), ("lost_items", [0, 0], [5, 2], False), ("too_many_items", [5, 2], [5, 0], False))

with tempfile.TemporaryDirectory() as scratch:
    for name, stored, sizes, sound in CASES:
        folder = os.path.join(scratch, name)
        whole = save(folder, stored, sizes)
        run = run_mckpt("verify", folder)
        expect((run.returncode == 0) == sound and ("MC1310" in run.stdout) != sound, f"{name}: {run.returncode} {run.stdout} {run.stderr}")
        if not sound:
            continue
        expect("could not be read" not in run.stdout, f"{name}: {run.stdout}")
        loaded = {"model": {"w": torch.zeros(5, 3)}}
        dcp.load(loaded, checkpoint_id=folder, no_dist=True)
        expect(torch.equal(loaded["model"]["w"], whole), f"{name}: torch loads {loaded}")
        out = os.path.join(scratch, name + ".safetensors")
        run = run_mckpt("convert", "to-safetensors", folder, out, "-q")
        expect(run.returncode == 0, f"{name}: {run.stderr}")
        run = run_mckpt("verify", out, "--against", folder)
        expect(run.returncode == 0, f"{name}: {run.stdout}")
finish(18)
