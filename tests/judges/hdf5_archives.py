"""h5py reads every tensor of an archive, whole and as numbers, as torch has it: every data type, shards of uneven and no rows by 1 to 8
ranks, shards that are columns, scalars, from a folder and from a single file. The archive gives back the files that it was made of, and
commands read it as they read the checkpoint. Every byte that is changed is found.
"""

import filecmp
import json
import os
import random
import re
import shutil
import struct
import zlib

from mckpt_tests.checks import expect, expect_equal, finish, need
from mckpt_tests.folders import difference, scratch
from mckpt_tests.models import GOLDEN, Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SANITIZED, TINY_MODEL

need("torch", "numpy", "h5py", "safetensors")
import h5py  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from mckpt_tests.ranks import Shards, cuts, save_as_ranks  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

temporary = scratch()


def new(name):
    path = os.path.join(temporary.name, name)
    shutil.rmtree(path, ignore_errors=True)
    if os.path.isfile(path):
        os.remove(path)
    return path


def mckpt(*args, status=0):
    run = run_mckpt(*args, *(["--no-sync"] if args[0] in ("convert", "export") else []))
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout}{run.stderr}")
    return run.stdout + run.stderr


def values(t):
    """A tensor as what HDF5 can show of it: numbers, or codes where HDF5 has no such numbers."""
    if t.dtype in (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu):
        t = t.view(torch.uint8)
    if t.dtype == torch.float8_e4m3fn:  # HDF5 knows no float without infinities: the largest exponent is inf or NaN for it
        top, code = torch.tensor(float("nan")), t.view(torch.uint8)
        shown = torch.where((code & 0x78) == 0x78, top, t.float())
        return torch.where((code & 0x7F) == 0x78, torch.copysign(torch.tensor(float("inf")), t.float()), shown).numpy()
    return (t.float() if t.is_floating_point() and t.dtype != torch.float64 else t).numpy()


def check_values(what, archive, tensors):
    file = os.path.join(archive, "archive.h5") if os.path.isdir(archive) else archive
    with h5py.File(file) as f:
        for name, t in tensors.items():
            d, want = f[name], values(t)
            got = d[()]
            expect_equal(f"{what}: {name}: shape", tuple(d.shape), tuple(t.shape))
            same = np.array_equal(np.asarray(got).astype(want.dtype), want, equal_nan=want.dtype.kind in "fc")
            expect(same, f"{what}: {name}: {got} is not {want}")
            expect_equal(f"{what}: {name}: dtype", d.attrs["dtype"], str(t.dtype).removeprefix("torch."))


def both(what, source, tensors, is_file=False):
    """A folder and a single file of the checkpoint, read by h5py, verified and turned back."""
    for archive in (new("archive"), new("archive.h5")):
        single = archive.endswith(".h5")
        mckpt("convert", "to-hdf5", source, archive, *(["--single-file"] if single else []))
        check_values(what, archive, tensors)
        verified = run_mckpt("verify", archive).stdout  # some tensors have NaN on purpose
        expect("pass  archive" in verified, f"{what}: {verified}")
        back = new("back.pt" if is_file else "back")
        account = run_mckpt("convert", "from-hdf5", archive, back).stderr
        expect(re.search(r"plan +(\d+) files in -> \1 out: \1 copied", account), f"{what}: {account}")
        if is_file:
            expect(filecmp.cmp(source, back, shallow=False), f"{what}: the file is another one")
        else:
            expect_equal(f"{what}: files", difference(back, source, but=("mckpt_manifest.json",)), "")
        listed, there = mckpt("ls", archive, "--digest", "--json"), mckpt("ls", source, "--digest", "--json")
        expect_equal(f"{what}: digests", digests(listed), digests(there))
    return archive


def digests(listing):
    return {t["name"]: (t["dtype"], t["shape"], t["sha256"]) for t in json.loads(listing)["tensors"]}


def every_type():
    out = {}
    for i, dtype in enumerate((torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
                               torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool)):
        whole = torch.arange(i, i + 35)
        out[f"layers.{i}.{dtype}"] = (whole % 2 if dtype == torch.bool else whole).to(dtype).reshape(5, 7)
    for bits, of in ((torch.float8_e4m3fn, 256), (torch.float8_e5m2, 256), (torch.float8_e8m0fnu, 256)):
        out[f"every.{bits}"] = torch.arange(of, dtype=torch.int16).to(torch.uint8).view(bits).reshape(8, 32)
    out["every.bf16"] = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.bfloat16).reshape(256, 256)
    out["every.f16"] = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.float16).reshape(64, 1024)
    out["complex"] = torch.complex(torch.arange(6.0), -torch.arange(6.0)).reshape(2, 3)
    out["scalar"], out["empty"], out["none"] = torch.tensor(2.5), torch.zeros(0, 4), torch.zeros(3, 0, dtype=torch.bfloat16)
    out["one/two.weight"], out["50%b.%%"] = torch.arange(8.0), torch.arange(40000.0).reshape(100, 400)
    return out


def types_of_safetensors():
    folder = new("model")
    os.mkdir(folder)
    tensors = every_type()
    save_file({name: t for name, t in tensors.items() if not t.is_complex()}, os.path.join(folder, "model.safetensors"))
    with open(os.path.join(folder, "config.json"), "w") as f:
        f.write('{"model_type": "nobody_knows"}\n')
    both("types", folder, {name: t for name, t in tensors.items() if not t.is_complex()})


def types_of_torch_save():
    tensors = every_type()
    tensors["transposed"] = torch.arange(60.0).reshape(5, 12).t()
    tensors["shared"], tensors["rows"] = tensors["layers.1.torch.float32"], tensors["layers.1.torch.float32"][1:3]
    tensors["turned"], tensors["first"] = tensors["shared"].t(), tensors["shared"][:2]
    path = new("model.pt")
    torch.save(tensors, path)
    both("torch.save", path, tensors, is_file=True)


def shards():
    """Rows of 1 to 8 ranks, some of none; columns; blocks; objects beside them."""
    r = random.Random(25)
    for ranks in (1, 2, 3, 5, 8):
        tensors = {f"w{i}": torch.arange(i * 1000, i * 1000 + rows * width, dtype=torch.float32).reshape(rows, width).to(dtype)
                   for i, (rows, width, dtype) in enumerate(((11, 7, torch.float32), (4, 5, torch.bfloat16), (130, 300, torch.float32),
                                                             (60, 800, torch.bfloat16), (1, 3, torch.float16)))}
        held = [{} for _ in range(ranks)]
        for name, t in tensors.items():
            for rank, (begin, end) in enumerate(cuts(r, t.shape[0], ranks)):
                held[rank][name] = Shards.rows(t, begin, end)
        columns = torch.arange(90 * 500, dtype=torch.float32).reshape(90, 500)
        for rank, (begin, end) in enumerate(cuts(r, 500, ranks)):
            boxes = [([0, begin], [40, end - begin]), ([40, begin], [50, end - begin])] if end > begin else []
            held[rank]["columns"] = Shards(columns, boxes)
        for state in held:
            state |= {"plain": torch.tensor(7.0), "step": 12, "nested": {"list": [1, 2], "text": "so"}}
        folder = new("dcp")
        save_as_ranks(held, lambda: dcp.FileSystemWriter(folder, sync_files=False))
        archive = both(f"{ranks} ranks", folder, tensors | {"columns": columns, "plain": torch.tensor(7.0)})
        mckpt("verify", archive, "--against", folder)  # objects too


def of_megatron():
    """An archive of what a run saved is read as the checkpoint itself: exported, resharded, compared."""
    models = Models()
    for model in ("qwen3_moe", "nemotron_h_moe") if not SANITIZED else ("qwen3_moe",):
        hf, out = models.path(model), new("out")
        for to, grid in (("to-fsdp", ("--tp", "2", "--dp", "3")), ("to-mcore", ("--tp", "2", "--ep", "2")), ("to-pt", ("--tp", "2"))):
            run, archive = new("run"), new("archive")
            mckpt("convert", to, hf, run, *grid)
            mckpt("convert", "to-hdf5", run, archive)
            mckpt("verify", archive)
            mckpt("verify", archive, "--against", hf)
            out = new("out")
            mckpt("export", archive, out)
            expect_equal(f"{model} {to}: exported", difference(out, hf, but=("mckpt_manifest.json",)), "")
        again, wanted = new("again"), new("wanted")
        single = new("hf.h5")
        mckpt("convert", "to-hdf5", hf, single, "--single-file")
        mckpt("convert", "to-fsdp", single, again, "--tp", "1", "--dp", "2")
        mckpt("convert", "to-fsdp", hf, wanted, "--tp", "1", "--dp", "2")
        expect_equal(f"{model}: of the archive", difference(again, wanted), "")


def damage():
    """Bits of a single file and of the files of a folder: each is found, whatever is there."""
    r = random.Random(7)
    single, folder, source = new("tiny.h5"), new("two_ranks"), new("dcp")
    w = torch.arange(200 * 100, dtype=torch.float32).reshape(200, 100)
    save_as_ranks([{"w": Shards.rows(w, *rows)} for rows in ((0, 150), (150, 200))], lambda: dcp.FileSystemWriter(source, sync_files=False))
    mckpt("convert", "to-hdf5", TINY_MODEL, single, "--single-file")
    mckpt("convert", "to-hdf5", source, folder)
    for path in [single] + sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".h5")):
        size, archive = os.path.getsize(path), single if path == single else folder
        for at in [3, 20, 57, 100, 511, 520, size - 1] + [r.randrange(size) for _ in range(8 if SANITIZED else 20)]:
            with open(path, "r+b") as f:
                f.seek(at)
                byte = f.read(1)[0]
                f.seek(at)
                f.write(bytes([byte ^ 1 << r.randrange(8)]))
                f.flush()
                run = run_mckpt("verify", archive)
                expect(run.returncode != 0, f"{path}: a bit of byte {at} is changed: {run.stdout}")
                f.seek(at)
                f.write(bytes([byte]))
    mckpt("verify", single)
    mckpt("verify", folder)
    part = next(os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".h5") and name != "archive.h5")
    os.rename(part, part + ".away")
    run = run_mckpt("convert", "from-hdf5", folder, new("back"), "--no-sync", "--dry-run")
    expect(run.returncode == 3 and os.path.basename(part) in run.stderr, f"a part is missing: {run.stderr}")
    run = run_mckpt("verify", folder)
    expect(run.returncode == 1 and run.stdout.count(f"{os.path.basename(part)}: cannot be compared") == 1, f"a part is missing: {run.stdout}")
    os.rename(part + ".away", part)


def refusals():
    """Names that HDF5 cannot have; an archive of an archive; damage that a copy meets."""
    folder = new("names")
    os.mkdir(folder)
    for names in (("a", "a/b"), ("/a",), ("a//b",), ("a/./b",), ("__mckpt__/names",)):
        save_file({name: torch.ones(2) for name in names}, os.path.join(folder, "model.safetensors"))
        run = run_mckpt("convert", "to-hdf5", folder, new("refused"))
        expect("MC3005" in run.stderr and not os.path.exists(os.path.join(temporary.name, "refused")), f"{names}: {run.stderr}")
    single = new("tiny.h5")
    mckpt("convert", "to-hdf5", TINY_MODEL, single, "--single-file")
    expect(run_mckpt("convert", "to-hdf5", single, new("refused")).returncode != 0, "an archive of an archive")
    expect(run_mckpt("convert", "from-hdf5", TINY_MODEL, new("refused")).returncode != 0, "no archive")
    folder = new("again")
    for _ in range(2):
        mckpt("convert", "to-hdf5", TINY_MODEL, folder, "--overwrite")
    with h5py.File(single) as f:
        at = f["model.norm.weight"].id.get_offset()
    with open(single, "r+b") as f:
        f.seek(at + 3)
        f.write(b"\xff")
    for args in (("convert", "from-hdf5"), ("convert", "to-fsdp")):
        run = run_mckpt(*args, single, new("refused"), "--no-sync")
        expect("MC1203" in run.stderr and not os.path.exists(os.path.join(temporary.name, "refused", "release")), f"{args}: {run.stderr}")


def with_name(archive, to, name):
    """A copy of a single-file archive in which config.json has another name, which is not longer; all sums fit."""
    with open(archive, "rb") as f:
        data = bytearray(f.read())
    rows_at, rows, at, size = struct.unpack_from("<4Q", data, 16)
    names = bytes(data[at:at + size])
    assert names.count(b"config.json") == 1 and len(name) <= 11
    names = names.replace(b"config.json", name.encode())
    data[at:at + len(names)] = names
    struct.pack_into("<4Q", data, 16, rows_at, rows, at, len(names))
    struct.pack_into("<I", data, 52, zlib.crc32(names))
    struct.pack_into("<I", data, 56, zlib.crc32(data[:56]))
    with open(to, "wb") as f:
        f.write(data)
    return to


def names_of_mckpt():
    """A file that has the name of a mark of a staging folder is refused before anything is written; deeper it is a file like any other."""
    model, single = new("model"), new("model.h5")
    shutil.copytree(TINY_MODEL, model)
    mckpt("convert", "to-hdf5", model, single, "--single-file")
    for name in (".done", ".plan", ".boot", ".replaces", ".done/a", ".replaces/x"):
        for more in ((), ("--dry-run",)):
            back = new("back")
            run = run_mckpt("convert", "from-hdf5", with_name(single, new("named.h5"), name), back, "--no-sync", *more)
            left = [f for f in os.listdir(temporary.name) if f in ("back", ".back.mckpt-tmp")]
            expect(run.returncode == 3 and "MC1004" in run.stderr and f"'{name}'" in run.stderr and not left, f"{name}: {run.returncode} {run.stderr} {left}")
    for name in ("a/.done", ".donee", ".plan.json"):
        back = new("back")
        mckpt("convert", "from-hdf5", with_name(single, new("named.h5"), name), back)
        expect(filecmp.cmp(os.path.join(back, name), os.path.join(model, "config.json"), shallow=False), f"{name} is not what config.json was")


def what_is_not_archived():
    """Hidden files and folders beside the checkpoint are named, and only these are missing."""
    model = new("with_more")
    shutil.copytree(TINY_MODEL, model)
    for name in (".gitattributes", "notes.txt", ".cache/x", "logs/x"):
        os.makedirs(os.path.dirname(os.path.join(model, name)), exist_ok=True)
        with open(os.path.join(model, name), "w") as f:
            f.write(name)
    said, back = mckpt("convert", "to-hdf5", model, new("more.h5"), "--single-file"), new("back")
    expect("not in the archive: .cache/, .gitattributes, logs/\n" in said, said)
    mckpt("convert", "from-hdf5", os.path.join(temporary.name, "more.h5"), back)
    missing = {".gitattributes", ".cache", "logs", "mckpt_manifest.json"}
    expect_equal("what is back", set(os.listdir(model)) - missing, set(os.listdir(back)) - missing)
    expect("notes.txt" in os.listdir(back), "notes.txt is not back")


types_of_safetensors()
types_of_torch_save()
shards()
of_megatron()
damage()
refusals()
names_of_mckpt()
what_is_not_archived()
finish(420)
