"""Disks that are too small, from 64 KiB on in steps of 64 KiB until the result fits, with too few inodes, with a quota, and a disk that
takes writes and fails when they are made durable: each time the command ends with an error that names the file, an older file is as it
was, nothing has the final name; and once there is room, the same command makes the right result.
"""

import os
import re
import shutil
import subprocess

from mckpt_tests.checks import expect, finish
from mckpt_tests.figures import counted, not_measured, so_many, time_is_left
from mckpt_tests.folders import difference, scratch
from mckpt_tests.models import make_model
from mckpt_tests.mounts import image, in_own_namespace, mount, mounted
from mckpt_tests.small_runs import small_runs

in_own_namespace()
KINDS = ["hf-to-fsdp", "export", "to-mcore", "to-pt", "to-dcp", "pt-to-safetensors", "safetensors-to-pt", "to-hdf5", "from-hdf5", "quantize"]
STEP = 64 << 10
OLD = b"old" * 100


class Disk:
    """A run into a folder of a small file system, beside an older file."""

    def __init__(self, run, disk):
        self.run, self.at, self.old = run, os.path.join(disk, "place"), os.path.join(disk, "old.bin")
        os.mkdir(self.at)
        with open(self.old, "wb") as f:
            f.write(OLD)

    def problems(self):
        """"" or what is wrong; and whether the result fits."""
        result = self.run.start(self.at)
        wrong = self.run.problems(self.at, result)
        with open(self.old, "rb") as f:
            if f.read() != OLD:
                wrong = "the older file was touched"
        if result.returncode == 0:
            return wrong, True
        if not wrong and "--> " not in result.stderr:
            wrong = f"the error names no file: {result.stderr[:300]}"
        if not wrong and "error[MC3006]" in result.stderr and not re.search(r"expected.* ([KMG]?i?B|files?)\b", result.stderr):
            wrong = f"the error does not say how much is needed: {result.stderr[:300]}"
        return wrong, False

    def problems_with_room(self):
        return self.run.problems_again(self.at)


def steps_in_memory(run, count, step, option, first, most, more):
    """tmpfs with `option` from `first` on, until the result fits. `more` is what gives it room again."""
    size, fits = first, False
    while not fits and size <= most and time_is_left():
        with mounted("tmpfs", "none", disk_at, option.format(size)):
            try:
                disk = Disk(run, disk_at)
            except OSError:  # not even the older file
                size += step
                continue
            wrong, fits = disk.problems()
            if not wrong and not fits:
                mount("tmpfs", "none", disk_at, "remount," + more)
                wrong = disk.problems_with_room()
            count.one(expect(not wrong, f"{run.name} on tmpfs with {option.format(size)}: {wrong}"))
        size += step
    expect(fits or not time_is_left(), f"{run.name}: tmpfs with {option.format(size)} is still too small")


def quotas(runs, folder):
    """EDQUOT: btrfs counts what a subvolume takes."""
    try:
        with image("btrfs", folder, "quota", megabytes=300) as disk, counted("P10", "quotas (btrfs) in steps of 1 MiB", None) as count:
            def btrfs(*words):
                done = subprocess.run(["btrfs", *words], capture_output=True, text=True)
                if done.returncode != 0:
                    raise OSError(f"btrfs {' '.join(words)}: {done.stderr.strip()}")

            btrfs("quota", "enable", disk.at)
            for number, run in enumerate(runs):
                fits, limit = False, 1
                while not fits and limit < 64 and time_is_left():
                    at = os.path.join(disk.at, f"sub_{number}_{limit}")
                    btrfs("subvolume", "create", at)
                    btrfs("qgroup", "limit", f"{limit}M", at)
                    small = Disk(run, at)
                    wrong, fits = small.problems()
                    if not wrong and not fits:
                        btrfs("qgroup", "limit", "none", at)
                        wrong = small.problems_with_room()
                    count.one(expect(not wrong, f"{run.name} with a quota of {limit} MiB: {wrong}"))
                    btrfs("subvolume", "delete", "-c", at)
                    limit += 1
                expect(fits or not time_is_left(), f"{run.name}: a quota of {limit} MiB is still too small")
    except OSError as error:
        not_measured("P10", "quotas", "each step", str(error))


def late_errors(runs, folder):
    """A disk that has less than it says: writes go well, and making them durable fails. A few MB of 64."""
    try:
        sizes = so_many(range(8, 26, 2), (8, 12, 16))
        with counted("P10", "disks that fail when writes are made durable", None) as count:
            for run in runs:
                for size in sizes:
                    if not time_is_left():
                        return
                    inner = os.path.join(folder, f"late_{run.name}_{size}")
                    with mounted("tmpfs", "none", inner, f"size={size}M"):
                        try:
                            with image("ext4", inner, "disk", megabytes=64) as disk:
                                result = run.start(disk.at)
                                shutil.rmtree(os.path.join(disk.at, "lost+found"), ignore_errors=True)
                                if result.returncode == 0:
                                    wrong = difference(disk.at, run.reference)
                                else:
                                    wrong = "" if result.stderr.startswith("error[MC3") and not run.is_published(disk.at) else result.stderr[:300]
                                count.one(expect(not wrong, f"{run.name} on a disk that has {size} MB: {wrong}"))
                        except subprocess.CalledProcessError:
                            pass  # the image could not even be unmounted in order
    except OSError as error:
        not_measured("P10", "disks that fail when writes are made durable", "each size", str(error))


with scratch() as folder:
    model = make_model(os.path.join(folder, "model"), layers=2, hidden=128, heads=4, kv=2, head_dim=32, ffn=256, vocab=2048, experts=2, moe_ffn=64,
                       shard_bytes=700_000)
    disk_at = os.path.join(folder, "disk")
    with small_runs(so_many(KINDS, KINDS[:3]), model=model) as runs:
        with counted("P10", "tmpfs in steps of 64 KiB, then room", None) as count:
            for run in runs:
                steps_in_memory(run, count, so_many(STEP, 5 * STEP), "size={}", STEP, 64 << 20, "size=128M")
        with counted("P10", "tmpfs with too few inodes, then more", None) as count:
            for run in runs:
                steps_in_memory(run, count, 1, "size=64M,nr_inodes={}", 2, 100, "nr_inodes=1000")
        if os.geteuid() == 0:
            quotas(runs[: so_many(None, 1)], folder)
            late_errors(runs[: so_many(None, 1)], folder)
        else:
            not_measured("P10", "quotas and late errors", "each step", "only root can mount images")
finish(30)
