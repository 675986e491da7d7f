"""Files that torch 1.13 to the newest release wrote (test_data/torch_versions): mckpt lists names, types, shapes and bytes that the values had before they
were saved, calls the files sound, and converts them to the same values; the torch that is installed reads them equally.

    torch_versions.py [VERSION...]"""

import glob
import hashlib
import json
import os
import sys
import tarfile
import tempfile
import warnings

from mckpt_tests.checks import expect, fail, finish
from mckpt_tests.figures import counted
from mckpt_tests.folders import safetensors
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

try:
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.api import CheckpointException
except ImportError:
    torch = None

VERSIONS = [os.path.basename(path).removesuffix(".tar.xz") for path in glob.glob(os.path.join(DATA, "torch_versions", "*.tar.xz"))]
OF_SAFETENSORS = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8",
                  "bool": "BOOL", "uint16": "U16", "uint32": "U32", "uint64": "U64", "complex64": "C64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
                  "float8_e8m0fnu": "F8_E8M0", "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ"}

# Files that torch itself reads no longer, or never could: (beginning of the version, beginning of the name): why.
NOT_READ_BY_TORCH = {
    ("1.13.", "dcp_"): "newer releases look for the pieces by an index that this one did not store",
    ("2.", "small_floats_legacy"): "the older form is written without the type of these storages",
    ("2.", "unsigned_legacy"): "as the small floats",
}


def numbers(version):
    return [int(number) for number in version.split("+")[0].split(".")[:2]]


VERSIONS.sort(key=numbers)


def difference(got, want):
    """The first differences of two answers; "" where they are equal."""
    unlike = sorted(name for name in want.keys() | got.keys() if want.get(name) != got.get(name))
    return "; ".join(f"{name}: {got.get(name)}, and torch had {want.get(name)}" for name in unlike[:3])


def listed(path):
    """(tensors with their digests, the run) of `ls`."""
    run = run_mckpt("ls", path, "--digest", "--json", "-j1")
    rows = json.loads(run.stdout)["tensors"] if run.returncode in (0, 1) else []
    return {row["name"]: (row["dtype"], row["shape"], row.get("sha256")) for row in rows}, run


def said(run):
    return f"exit status {run.returncode}: " + " ".join((run.stderr + run.stdout).split())[:400]


def converted(kind, path, out):
    """The tensors of a safetensors file that is made of the source, or a refusal."""
    mode = ["pt-to-safetensors", "--tensors-only"] if kind == "pt" else ["to-safetensors"]
    run = run_mckpt("convert", *mode, path, out, "--no-sync")
    if run.returncode:
        return None, run
    target = os.path.join(out + ".folder")
    os.makedirs(target)
    os.rename(out, os.path.join(target, "model.safetensors"))
    return {name: (dtype, shape, hashlib.sha256(data).hexdigest()) for name, (dtype, shape, data) in safetensors(target).items()}, run


def faults_of(kind, path, want, out):
    """Faults of mckpt's answers about a source whose tensors are all plain."""
    for command in (["inspect"], ["verify"]):
        run = run_mckpt(*command, path)
        if run.returncode:
            yield f"{command[0]}: {said(run)}"
    got, run = listed(path)
    if run.returncode or got != want:
        yield f"ls: {difference(got, want) if run.returncode == 0 else said(run)}"
    if kind != "pt" and any(name.startswith("model.") for name in want):  # the result is the model under its own names
        want = {name.removeprefix("model."): row for name, row in want.items() if name.startswith("model.")}
    storable = {name: (OF_SAFETENSORS[dtype], shape, digest) for name, (dtype, shape, digest) in want.items() if dtype in OF_SAFETENSORS}
    got, run = converted(kind, path, out)
    if not want:
        return  # objects alone
    if len(storable) < len(want):
        if run.returncode != 3 and run.returncode != 4 or "complex" not in run.stderr:
            yield f"a type that safetensors does not have: {said(run)}"
    elif got != storable:
        yield f"convert: {said(run) if got is None else difference(got, storable)}"


def faults_of_odd(path, plain, others):
    """Faults of mckpt's answers about a file whose values are not all plain tensors: the plain ones are listed as they are, or the file is refused by name."""
    run = run_mckpt("verify", path)
    if run.returncode and not any(word in run.stdout + run.stderr for word in ("unsupported", "does not know", "TorchScript")):
        yield f"verify: {said(run)}"
    got, run = listed(path)
    if run.returncode == 3:  # nothing of it is read
        if "error[MC12" not in run.stderr:
            yield f"ls: {said(run)}"
    elif (same := {name: row for name, row in got.items() if name in plain}) != plain:
        yield f"ls: {difference(same, plain)}"
    for name in others:
        if got.get(name, (0, 0, None))[2]:
            yield f"ls: {name} is listed with bytes, which are not its values"


def as_torch_reads(kind, path, want):
    if kind == "pt":
        return dict(rows_of(torch.load(path, map_location="cpu", weights_only=False)))
    if kind == "dcp":
        types = {name: getattr(torch, dtype) for name, (dtype, _, _) in want.items()}
        state = {name: torch.zeros(want[name][1], dtype=types[name]) for name in want}
        dcp.load(state, storage_reader=dcp.FileSystemReader(path), no_dist=True)
        return dict(rows_of(state))
    return want  # files of ranks need the ranks


def rows_of(value, path=()):
    if isinstance(value, torch.Tensor):
        path = path or ("tensor",)  # as mckpt names a tensor that is the whole file
        plain = value.detach().clone(memory_format=torch.contiguous_format)
        data = plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""
        yield ".".join(path), (str(value.dtype).removeprefix("torch."), list(value.shape), hashlib.sha256(data).hexdigest())
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from rows_of(item, (*path, str(key)))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from rows_of(item, (*path, str(i)))


def judge(folder, version, name, entry):
    path, label = os.path.join(folder, name), f"torch {version}, {name}"
    want = {key: (t["dtype"], t["shape"], t["sha256"]) for key, t in entry["tensors"].items()}
    if entry["kind"] == "odd":
        faults = list(faults_of_odd(path, want, entry["others"]))
    else:
        faults = list(faults_of(entry["kind"], path, want, os.path.join(folder, f"out_{name}.safetensors")))
        if torch and numbers(version) <= numbers(torch.__version__):  # an older release need not read what a newer one wrote
            try:
                got = as_torch_reads(entry["kind"], path, want)
                faults += [f"torch {torch.__version__} reads {difference(got, want)}"] if got != want else []
            except (Exception, CheckpointException) as e:  # noqa: BLE001
                if not any(version.startswith(v) and name.startswith(n) for v, n in NOT_READ_BY_TORCH):
                    faults.append(f"torch {torch.__version__} cannot read it: {type(e).__name__}: {str(e)[:300]}")
    for fault in faults:
        fail(f"{label}: {fault}")
    return expect(not faults, f"{label}: see above")


def main():
    warnings.simplefilter("ignore")
    chosen = sys.argv[1:] or VERSIONS
    with counted("P3", f"files that torch {VERSIONS[0]} to {VERSIONS[-1]} wrote, {len(VERSIONS)} releases: the same values", None) as count:
        for version in chosen:
            with tempfile.TemporaryDirectory(prefix="mckpt_versions_") as work:
                with tarfile.open(os.path.join(DATA, "torch_versions", version + ".tar.xz")) as tar:
                    tar.extractall(work, filter="data")
                folder = os.path.join(work, version)
                with open(os.path.join(folder, "manifest.json")) as f:
                    manifest = json.load(f)
                for name, entry in sorted(manifest["sources"].items()):
                    count.one(judge(folder, version, name, entry))
    finish(45 * len(chosen))


if __name__ == "__main__":
    main()
