"""Small files that describe much: grids of a million chunks, one dataset under thousands of names with thousands of
attributes, long paths. mckpt says what is beyond its limits, within a second of processor time and one more for each
MiB of the file. A file of many small datasets stays readable. Ends with 77 without h5py."""
import os
import subprocess
import sys
import tempfile

try:
    import h5py
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

MCKPT = os.environ["MCKPT"]
SLOWED = 5 if os.environ.get("MCKPT_SANITIZE") else 1


def sparse_grids(f):
    for i in range(7):
        d = f.create_dataset(f"d{i}", shape=(1 << 20,), chunks=(1,), dtype="u1")
        d[5] = d[1 << 19] = 1
    for i in range(60):
        f[f"again{i}"] = f["d0"]


def attributes_under_many_names(f):
    d = f.create_dataset("d", shape=(4,), dtype="u1")
    for i in range(1500):
        d.attrs[f"a{i}"] = i
    for i in range(6000):
        f[f"again{i}"] = d


def long_paths(f):
    for _ in range(200):
        f = f.create_group("n" * 250)
    d = f.create_dataset("d", shape=(4,), dtype="u1")
    for i in range(10000):
        f[f"again{i}"] = d


def honest(f):
    for i in range(3000):
        f.create_dataset(f"layers.{i}.weight", data=[1.0, 2.0])
    many = f.create_dataset("many", data=[1.0])
    for i in range(1500):
        many.attrs[f"a{i}"] = i


# Exit status, the code of what is said.
CASES = [(sparse_grids, 1, "MC1402"), (attributes_under_many_names, 3, "MC1403"), (long_paths, 3, "MC1403"), (honest, 0, None)]

with tempfile.TemporaryDirectory() as folder:
    for make, status, code in CASES:
        path = os.path.join(folder, make.__name__ + ".h5")
        with h5py.File(path, "w", libver=("earliest", "v110")) as f:
            make(f)
        with open(os.path.join(folder, "out"), "w+b") as out:
            child = subprocess.Popen([MCKPT, "inspect", path], stdout=out, stderr=out)
            _, ended, used = os.wait4(child.pid, 0)
            out.seek(0)
            words = out.read().decode()
        seconds = used.ru_utime + used.ru_stime
        most = (1 + os.path.getsize(path) / (1 << 20)) * SLOWED
        print(f"{make.__name__}: {os.path.getsize(path)} bytes, {seconds:.2f} s, status {os.waitstatus_to_exitcode(ended)}")
        if os.waitstatus_to_exitcode(ended) != status or (code and code not in words):
            sys.exit(f"FAILED: {make.__name__}: {words[:2000]}")
        if seconds > most:
            sys.exit(f"FAILED: {make.__name__}: {seconds:.2f} s, at most {most:.2f} s")
