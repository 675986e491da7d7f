"""Random states and extra states (FP8) of two folders of torch_dist are compared, whether a config is known or not; an extra state of None is none. `verify`
names what a conversion left out of its source."""
import io
import os
import pickle
import shutil
import tarfile
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch")
import torch  # noqa: E402
from torch.distributed.checkpoint.filesystem import _StorageInfo  # noqa: E402
from torch.distributed.checkpoint.metadata import BytesStorageMetadata, MetadataIndex  # noqa: E402

EXTRA, RANDOM = "decoder.layers.mlp.linear_fc1._extra_state/shard_0_5", "rng_state/shard_0_1"


def with_objects(source, folder, objects):
    """A copy with these objects, in a file of their own."""
    shutil.copytree(source, folder)
    path = os.path.join(folder, ".metadata")
    with open(path, "rb") as f:
        metadata = pickle.load(f)
    with open(os.path.join(folder, "__7_0.distcp"), "wb") as f:
        for name, value in objects.items():
            record = io.BytesIO()
            torch.save(value, record)
            metadata.state_dict_metadata[name] = BytesStorageMetadata()
            metadata.storage_data[MetadataIndex(name)] = _StorageInfo("__7_0.distcp", f.tell(), len(record.getvalue()))
            f.write(record.getvalue())
    with open(path, "wb") as f:
        pickle.dump(metadata, f)
    return folder


def check(what, status, *args, words=()):
    run = run_mckpt(*args)
    expect(run.returncode == status, f"{what}: {args}: {run.returncode} {run.stdout[-700:]} {run.stderr[-300:]}")
    for word in words:
        expect(word in run.stdout + run.stderr, f"{what}: {word}: {run.stdout[-900:]} {run.stderr[-300:]}")


def cut(source, folder):
    """A copy with zeros for the record of the extra state."""
    shutil.copytree(source, folder)
    with open(os.path.join(folder, ".metadata"), "rb") as f:
        place = next(s for i, s in pickle.load(f).storage_data.items() if i.fqn == EXTRA)
    with open(os.path.join(folder, place.relative_path), "r+b") as f:
        f.seek(place.offset)
        f.write(b"\0" * place.length)
    return folder


with tempfile.TemporaryDirectory() as scratch:
    with tarfile.open(os.path.join(DATA, "megatron_runs", "dense.tar.xz")) as archive:
        archive.extractall(scratch, filter="data")
    source, hf = (os.path.join(scratch, "dense", *parts) for parts in (("torch_dist", "iter_0000003"), ("hf",)))

    def made(name, **objects):
        return with_objects(source, os.path.join(scratch, name, "iter_0000003"), {EXTRA: objects["extra"], RANDOM: objects["random"]})
    one, extra, states = made("one", extra=[b"scales 1"], random=[1, 2]), made("extra", extra=[b"scales 2"], random=[1, 2]), made("random", extra=[b"scales 1"], random=[1, 3])
    none = made("none", extra=None, random=[1, 2])
    for words in ((), ("--assets", hf)):
        for a, b, name in ((one, extra, EXTRA), (one, states, RANDOM), (one, none, EXTRA), (source, one, RANDOM)):
            for x, y in ((a, b), (b, a)):
                check("diff", 1, "diff", x, y, *words, words=(f"object   {name}",))
        check("the same", 0, "diff", one, one, *words)
    for a, b, name in ((one, extra, EXTRA), (one, states, RANDOM)):
        check("verify", 1, "verify", a, "--against", b, "--assets", hf, words=(name,))
    # An object that cannot be read is told with its name, and ends nothing.
    damaged = cut(one, os.path.join(scratch, "damaged", "iter_0000003"))
    for x, y in ((one, damaged), (damaged, one)):
        for words in ((), ("--assets", hf)):
            check("a damaged object", 1, "diff", x, y, *words, words=(EXTRA,))
        check("a damaged object", 1, "verify", x, "--against", y, "--assets", hf, words=(EXTRA,))
    out = os.path.join(scratch, "out")
    run = run_mckpt("convert", "to-mcore", one, out, "--tp", "1", "--assets", hf, "-q", "--no-sync")
    expect(run.returncode == 0, run.stderr)
    check("a conversion", 0, "verify", out, "--against", one, words=(EXTRA, RANDOM, "which a conversion leaves out"))
    check("a conversion", 1, "diff", out, one, words=(f"object   {RANDOM}",))
    # Extra states of None, which the conversion writes of every module, are none.
    plain = os.path.join(scratch, "plain")
    run = run_mckpt("convert", "to-mcore", source, plain, "--tp", "1", "--assets", hf, "-q", "--no-sync")
    for x, y in ((plain, source), (source, plain)):
        check("extra states of None", 0, "diff", x, y)
finish(40)
