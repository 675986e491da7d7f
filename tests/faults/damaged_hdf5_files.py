"""Files cut anywhere and files with random bytes changed (always the same ones): mckpt answers, by itself and in time,
whatever the HDF5 library makes of them."""
import os
import random
import sys
import tempfile

from mckpt_tests import setting
from mckpt_tests.program import run_mckpt

DATA = os.path.join(setting.DATA, "hdf5")
CHANGED, CUT = 150, 40


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


def main():
    rng = random.Random(4)
    ends, said = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.h5")
        for name in ("sample.h5", "old.h5"):
            for i, data in enumerate(damaged(open(os.path.join(DATA, name), "rb").read(), rng)):
                with open(path, "wb") as out:
                    out.write(data)
                done = run_mckpt("verify", path, timeout=60)
                ends[done.returncode] = ends.get(done.returncode, 0) + 1
                if done.returncode not in (0, 1, 3) or "Sanitizer" in done.stderr or "runtime error" in done.stderr:
                    sys.exit(f"FAILED: {name}, case {i}: {done.returncode}\n{done.stderr[:2000]}")
                for code in ("MC1401", "MC1402", "MC1403"):
                    here = f"problem[{code}]" in done.stdout
                    said[code] = said.get(code, 0) + here
    print(f"exit statuses {ends}, problems {said}")
    if not said["MC1401"] or not said["MC1402"] or not ends.get(0):
        sys.exit("FAILED: the cases no longer meet what they should")


main()
