"""The common part of the judges: they write files with the real libraries, and mckpt must list names, data
types, shapes and the SHA-256 of every tensor as the libraries themselves have them.

A judge writes in one process while a few mckpt run beside it, and ends with 77 where a library is missing.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile

from mckpt_tests.checks import need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SHARE

need("torch", "numpy")
import torch  # noqa: E402


# Those that have a storage class of their own, and those that do not.
OLDER = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64,
         torch.uint8, torch.bool, torch.complex64, torch.complex128]
NEWER = [torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu,
         torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]


def raw_bytes(tensor):
    """Contiguous, little endian."""
    tensor = tensor.detach().clone(memory_format=torch.contiguous_format)
    return tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def row(tensor):
    return (str(tensor.dtype).removeprefix("torch."), list(tensor.shape), hashlib.sha256(raw_bytes(tensor)).hexdigest())


def random_tensor(r, dtypes, shape=None):
    """Random bits: every value of the type, NaN included."""
    if shape is None:
        shape = [r.choice([0, 1, 2, 3, 5, 8, 17]) for _ in range(r.choice([0, 1, 1, 2, 2, 2, 3, 4]))]
    dtype = r.choice(dtypes)
    count = dtype.itemsize
    for n in shape:
        count *= n
    bits = torch.frombuffer(bytearray(r.randbytes(count)), dtype=torch.uint8) if count else torch.empty(0, dtype=torch.uint8)
    return (bits % 2 if dtype == torch.bool else bits).view(dtype).reshape(shape)


def random_view(r, tensor):
    """Transposed, narrowed, stepped, expanded or selected, or several of them."""
    for _ in range(r.randrange(4)):
        if tensor.dim() == 0:
            break
        d, kind = r.randrange(tensor.dim()), r.randrange(5)
        if kind == 0:
            tensor = tensor.transpose(d, r.randrange(tensor.dim()))
        elif kind == 1 and tensor.shape[d] > 1:
            begin = r.randrange(tensor.shape[d])
            tensor = tensor.narrow(d, begin, r.randrange(tensor.shape[d] - begin + 1))
        elif kind == 2 and tensor.shape[d] > 2:
            tensor = tensor[(slice(None),) * d + (slice(None, None, 2),)]
        elif kind == 3:
            tensor = tensor.unsqueeze(d).expand(*tensor.shape[:d], r.choice([1, 3]), *tensor.shape[d:])
        elif kind == 4 and tensor.shape[d] > 0:
            tensor = tensor.select(d, r.randrange(tensor.shape[d]))
    return tensor


class Judge:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mckpt_interop_"))
        self.pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
        self.runs, self.files, self.tensors = [], 0, 0

    def path(self, suffix=""):
        """A new name in the judge's folder."""
        self.files += 1
        return self.folder / f"{self.files:05d}{suffix}"

    def repeat(self, count):
        return range(max(1, count * SHARE // 100))

    def expect(self, path, want, label=""):
        """That mckpt lists the path as {name: row(tensor)}; the path is removed when it does."""
        self.tensors += len(want)
        self.runs.append(self.pool.submit(self._compare, path, want, label or path.name))

    def _compare(self, path, want, label):
        run = run_mckpt("ls", path, "--json", "--digest", "-j1", timeout=60)
        rows = json.loads(run.stdout)["tensors"] if run.returncode == 0 else []
        got = {t["name"]: (t["dtype"], t["shape"], t["sha256"]) for t in rows}
        differ = sorted(n for n in want.keys() | got.keys() if want.get(n) != got.get(n))
        if run.returncode or differ:
            lines = [f"  {n}: the library has {want.get(n)}, mckpt {got.get(n)}" for n in differ[:5]]
            return "\n".join([f"FAIL {label} ({path}): exit status {run.returncode}", run.stderr[:2000], *lines])
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        return ""

    def finish(self, least):
        """Ends the judge. Broken files stay, to be looked at; `least`: of so many files it must have judged (at SHARE 100)."""
        failures = [text for text in (run.result() for run in self.runs) if text]
        for text in failures[:10]:
            print(text)
        print(f"{len(self.runs)} judged, {self.tensors} tensors, {len(failures)} failures")
        if not failures:
            shutil.rmtree(self.folder)
        sys.exit(bool(failures) or len(self.runs) < least * SHARE // 100)
