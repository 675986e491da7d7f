"""What the tests of whole runs share: models of some size, folders compared byte by byte, runs alone and as ranks."""
import filecmp
import os
import subprocess
import sys
import tempfile

from mckpt_tests.setting import HAS_MPI, MCKPT, MPIRUN, SOURCE

MODEL_MAKER = os.path.join(SOURCE, "tests", "bench", "make_model.py")
failures = []
checked = 0


def expect(ok, what):
    global checked
    checked += 1
    if not ok:
        failures.append(what)
        if len(failures) <= 20:
            print("FAIL", what)
    return ok


def finish(least):
    """Ends the test; at least so many things must have been looked at."""
    print(f"{checked} checked, {len(failures)} failures")
    sys.exit(1 if failures or checked < least else 0)


def make_model(folder, **sizes):
    flags = [text for name, value in sizes.items() for text in ([f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)]))]
    subprocess.run([sys.executable, MODEL_MAKER, folder, *flags], check=True)
    return folder


def files_of(folder):
    return sorted(os.path.relpath(os.path.join(root, name), folder) for root, _, names in os.walk(folder) for name in names)


def difference(a, b, but=()):
    """The first thing in which two folders differ; "" where they hold the same bytes under the same names, but for files of
    some names that `a` may have."""
    names = [name for name in files_of(a) if name not in but]
    if names != files_of(b):
        return f"other files: {sorted(set(names) ^ set(files_of(b)))[:5]}"
    for name in names:
        if not filecmp.cmp(os.path.join(a, name), os.path.join(b, name), shallow=False):
            return name
    return ""


def snapshot(folder):
    """Every name below a folder with what tells that it was touched."""
    out = {}
    for root, folders, names in os.walk(folder):
        for name in folders + names:
            st = os.lstat(os.path.join(root, name))
            out[os.path.relpath(os.path.join(root, name), folder)] = (st.st_ino, st.st_mtime_ns, st.st_size if name in names else 0)
    return out


def data_offset(file, record):
    """Where the bytes of the tensor lie whose record in a .distcp file begins at `record`."""
    with open(file, "rb") as f:
        f.seek(record)
        head = f.read(4096)
    name = b"archive/data/0"
    at = head.index(name)
    extra = int.from_bytes(head[at - 2:at], "little")  # the last field of the local header is the length of what follows the name
    return record + at + len(name) + extra


class Program:
    def __init__(self):
        self.mckpt, self.with_ranks = MCKPT, HAS_MPI

    def run(self, *args, ranks=1, env=None, timeout=120):
        start = [MPIRUN, "-n", str(ranks), "--timeout", "100"] if ranks > 1 else []
        return subprocess.run([*start, self.mckpt, *map(str, args)], capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})


def scratch():
    """A folder in memory where there is one: these tests write much and keep nothing."""
    memory = "/dev/shm"
    return tempfile.TemporaryDirectory(prefix="mckpt_made_", dir=memory if os.access(memory, os.W_OK) else None)
