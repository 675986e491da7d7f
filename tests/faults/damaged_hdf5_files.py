"""HDF5 files with damage, read by the program: files cut anywhere, files with random bytes changed, and files mutated by their structure
(mckpt_tests/mutated_hdf5.py), always the same ones. The HDF5 library works in a confined process, so the promise is about the program: each file is read right, or
refused by an error that names it, in time, whatever the library makes of it; also where the library crashes or takes too long.

Read right: what `verify` calls sound has the tensors that h5py reads, if h5py reads it. A changed archive is never sound, and gives back the file that it was made of, or nothing."""
import hashlib
import json
import os
import random
import re
import select
import shutil
import signal
import sys
import tempfile
import time

from mckpt_tests import mutated_hdf5, setting
from mckpt_tests.checks import expect, finish
from mckpt_tests.figures import counted, so_many, time_is_left
from mckpt_tests.program import run_mckpt

try:
    import h5py
    import numpy as np
except ImportError:
    h5py = None

DATA = os.path.join(setting.DATA, "hdf5")
ARCHIVED = os.path.join(setting.DATA, "pt", "training.pt")
CHANGED, CUT = so_many(1000, 150), so_many(300, 40)
MUTATED = so_many(4000, 100)
SLOWEST = 60
CODE = re.compile(r"(?:problem|error)\[(MC\d+)\]")


def damaged(data, rng):
    for _ in range(CHANGED):
        out = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8, 64))):
            # Mostly where the structures are; any byte, one bit, or the values that readers trip over.
            at = rng.randrange(len(out))
            out[at] = rng.choice((rng.randrange(256), out[at] ^ 1 << rng.randrange(8), 0, 0xff))
        yield bytes(out)
    for _ in range(CUT):
        yield data[:rng.randrange(len(data))]


def mutants(data, rng):
    file = mutated_hdf5.File(data)
    for _ in range(MUTATED):
        yield file.mutate(rng)


# ---- What h5py reads


def rows_of(path):
    rows = {}

    def add(name, d):
        if isinstance(d, h5py.Dataset) and d.dtype.kind in "biufc":
            data = np.asarray(d[()])
            little = np.ascontiguousarray(data.astype(data.dtype.newbyteorder("<")))
            rows[name] = [str(little.dtype), list(d.shape), hashlib.sha256(little.tobytes()).hexdigest()]

    with h5py.File(path) as f:
        f.visititems(add)
    return rows


def as_h5py_reads(path):
    """name -> row; None where h5py refuses the file, crashes or takes longer than a few seconds. In a process of its own."""
    ours, theirs = os.pipe()
    if (child := os.fork()) == 0:
        try:
            signal.alarm(5)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            answer = json.dumps(rows_of(path)).encode()
            while answer:
                answer = answer[os.write(theirs, answer):]
            os._exit(0)
        finally:
            os._exit(1)
    os.close(theirs)
    said = b""
    while select.select([ours], [], [], 20)[0] and (more := os.read(ours, 1 << 16)):
        said += more
    os.close(ours)
    return json.loads(said) if os.waitpid(child, 0)[1] == 0 else None


# ---- What mckpt makes of a file


class Judge:
    def __init__(self):
        self.said, self.refused, self.by_h5py, self.warned, self.archives, self.helper = {}, 0, 0, 0, 0, 0

    def faults(self, path, archived):
        run = run_mckpt("verify", path, timeout=SLOWEST)
        text = run.stdout + run.stderr
        for code in set(CODE.findall(text)):
            self.said[code] = self.said.get(code, 0) + 1
        if run.returncode not in (0, 1, 3) or "Sanitizer" in text or "runtime error" in text or "error[MC99" in text:
            yield f"exit status {run.returncode}: {text[:1500]}"
        elif run.returncode != 0:
            self.refused += 1
            self.helper += "MC1403" in text
            if not CODE.search(text) or os.path.basename(path) not in text:
                yield f"refused, without a code or the name of the file: {text[:500]}"
        elif archived:
            yield "a changed archive is sound"  # its sums are over all bytes of it
        else:
            yield from self.reading_faults(path, "warning[" in text)
        if archived:
            yield from self.archive_faults(path, archived)

    def reading_faults(self, path, warned):
        """Faults of a sound file: `ls` has other tensors than h5py. A warning names what was left out."""
        run = run_mckpt("ls", path, "--json", "--digest", "-j1", timeout=SLOWEST)
        if run.returncode:
            yield f"verify takes it, ls ends with {run.returncode}: {run.stderr[:500]}"
            return
        self.warned += warned
        want = as_h5py_reads(path) if h5py else None
        if want is None:
            return
        self.by_h5py += 1
        got = {row["name"]: [row["dtype"], row["shape"], row.get("sha256")] for row in json.loads(run.stdout)["tensors"]}
        for name, row in want.items():
            if name not in got:
                if not warned:
                    yield f"sound without a warning, and lacks {name}: {row}"
            elif got[name] != row and not got[name][0].startswith(("bfloat16", "float8")):  # numpy has no such types
                yield f"{name}: h5py reads {row}, mckpt {got[name]}"

    def archive_faults(self, path, archived):
        """Faults of an archive: from-hdf5 gives another file than it was made of, or refuses without a code."""
        target = os.path.join(os.path.dirname(path), "back")
        run = run_mckpt("convert", "from-hdf5", path, target, "--no-sync", timeout=SLOWEST)
        if run.returncode not in (0, 3) or (run.returncode and not CODE.search(run.stderr)):
            yield f"from-hdf5 ends with {run.returncode}: {run.stderr[:500]}"
        if run.returncode == 0:
            self.archives += 1
            made = target if os.path.isfile(target) else os.path.join(target, os.listdir(target)[0])
            with open(made, "rb") as f:
                if f.read() != archived:
                    yield "an archive gives another file than it was made of"
        shutil.rmtree(target, ignore_errors=True) if os.path.isdir(target) else os.path.exists(target) and os.remove(target)


def one_after_the_other(seeds, rng):
    """A case of each seed in turn, so that a walk whose time is over has seen all of them."""
    streams = []
    for seed, archived in seeds:
        with open(seed, "rb") as f:
            data = f.read()
        streams += [(seed, archived, how, data, made(data, random.Random(rng.random()))) for how, made in (("changed", damaged), ("mutated", mutants))]
    for i in range(CHANGED + CUT + MUTATED):
        for seed, archived, how, data, cases in streams:
            if (case := next(cases, None)) is not None:
                yield seed, archived, how, i, data, case


def main():
    rng, judge = random.Random(4), Judge()
    with tempfile.TemporaryDirectory() as folder:
        archive = os.path.join(folder, "archive.h5")
        made = run_mckpt("convert", "to-hdf5", ARCHIVED, archive, "--no-sync")
        assert made.returncode == 0, made.stderr
        path, begin = os.path.join(folder, "x.h5"), time.time()
        seeds = [(os.path.join(DATA, "sample.h5"), None), (os.path.join(DATA, "old.h5"), None), (archive, open(ARCHIVED, "rb").read())]
        with counted("P4", "HDF5 files with damage: read right, or refused by an error that names the file", so_many(15_000, None)) as count:
            for seed, archived, how, i, data, case in one_after_the_other(seeds, rng):
                if not time_is_left():
                    break
                if case == data:
                    continue
                with open(path, "wb") as out:
                    out.write(case)
                faults = list(judge.faults(path, archived))
                count.one(expect(not faults, f"{os.path.basename(seed)}, {how}, case {i}: {faults[:2]}"))
                if faults and (keep := os.environ.get("MCKPT_KEEP")):
                    shutil.copy(path, os.path.join(keep, f"{os.path.basename(seed)}.{how}.{i}.h5"))
            count.also = f"{judge.refused:,} refused, {judge.helper:,} of them since the helper was ended or failed; {judge.by_h5py:,} compared with h5py, {judge.archives:,} archives give their file back"
    print(f"{judge.said} in {time.time() - begin:.0f} s; {count.also}; {judge.warned} with warnings")
    for code in ("MC1401", "MC1402", "MC1403"):
        expect(judge.said.get(code), f"no case meets {code} any more")
    expect(judge.archives, "no archive is given back any more")
    expect(judge.by_h5py or not h5py, "nothing is compared with h5py any more")
    finish(500)


main()
