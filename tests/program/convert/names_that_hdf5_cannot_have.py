"""to-hdf5 refuses names that HDF5, or the program that reads its files, cannot have: long paths, deep ones, empty parts. Each archive that it
makes is sound, up to the longest path and the deepest groups."""
import os

from mckpt_tests.checks import expect, finish, need, skip
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import BUILD

need("torch")
if not os.path.exists(os.path.join(BUILD, "mckpt-hdf5")):
    skip("mckpt-hdf5 is not built")
import torch  # noqa: E402

temporary = scratch()
source, result = (os.path.join(temporary.name, name) for name in ("names.pt", "names.h5"))


def is_made(name, what):
    """False: the name is refused, and nothing is left."""
    torch.save({name: torch.arange(2.0), "z": torch.arange(3.0)}, source)
    run = run_mckpt("convert", "to-hdf5", source, result, "-q", "--no-sync")
    if run.returncode != 0:
        expect("MC3005" in run.stderr and not os.path.exists(result), f"{what}: {run.stderr[:400]}")
        return False
    verdict = run_mckpt("verify", result)
    expect(verdict.returncode == 0, f"{what}: {verdict.stdout[:400]}{verdict.stderr[:400]}")
    os.remove(result)
    return True


for what, name_of, most in (("letters", lambda n: "k" * n, 65536), ("groups", lambda n: "g/" * n + "w", 511)):
    made = [n for n in range(most - 2, most + 3) if is_made(name_of(n), f"{n} {what}")]
    expect(made == [most - 2, most - 1, most], f"{what}: {made}")
for name in ("a//b", "./w", "a/./b", "w/", "a\0b"):
    expect(not is_made(name, repr(name)), f"{name!r} is made")
finish(17)
