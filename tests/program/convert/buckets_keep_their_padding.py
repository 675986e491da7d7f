"""Buckets of Megatron's distributed optimizer (dp_reshardable) have NaN between parameters, which their chunks show: `to-dcp` keeps what shows it, on any
number of ranks, and `verify` of the result finds a NaN in a parameter all the same."""
import json
import os
import struct
import tarfile
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

NAMES = ("M_dp2_w2", "M_dp3_buckets_w3", "M_dp2_local_w2", "M_moe_ep2_w2")


def verify(what, folder, status):
    run = run_mckpt("verify", folder)
    expect(run.returncode == status, f"{what}: {run.returncode} {run.stdout[-900:]}")
    return run.stdout


def buckets(folder):
    told = json.loads(run_mckpt("ls", folder, "*.bucket_idx_*.param", "--json").stdout)
    return told["tensors"]


def plant(folder):
    """A NaN at the first item of a bucket, which is a parameter's."""
    bucket = buckets(folder)[0]
    chunk = min(bucket["chunks"], key=lambda c: c["offsets"])
    with open(os.path.join(folder, chunk["file"]), "r+b") as f:
        f.seek(chunk["offset"])
        f.write(struct.pack("<f", float("nan")))
    return bucket["name"]


with tempfile.TemporaryDirectory() as scratch:
    with tarfile.open(os.path.join(DATA, "newest", "M.tar.xz")) as archive:
        archive.extractall(scratch, filter="data")
    for name in NAMES:
        source = os.path.join(scratch, name, "ckpt")
        verify(name, source, 0)
        expect(len(buckets(source)) > 0, f"{name} has buckets")
        for dp in ("1", "3"):
            out = os.path.join(scratch, f"{name}_{dp}")
            run = run_mckpt("convert", "to-dcp", source, out, "--dp", dp, "-q", "--no-sync")
            expect(run.returncode == 0, f"{name}: {run.stderr}")
            verify(f"{name} on {dp} ranks", out, 0)
            run = run_mckpt("verify", out, "--against", source)
            expect(run.returncode == 0, f"{name} on {dp} ranks: {run.stdout}")
            again = os.path.join(scratch, f"{name}_{dp}_again")
            run_mckpt("convert", "to-dcp", out, again, "--dp", "2", "-q", "--no-sync")
            verify(f"{name} on {dp} ranks, then on 2", again, 0)
            bad = plant(out)
            expect(bad in verify(f"{name} on {dp} ranks with a NaN", out, 1), f"{name}: {bad}")
finish(56)
