"""The power is cut at random moments of `--overwrite`, on file systems of their own: under the name is the old checkpoint or the new one, each
whole; after "done" it is the new one; and the same command makes it the new one where it is not.

    ext4 (data=ordered, data=writeback), XFS     the shutdown ioctl: what is not on the disk is lost
    btrfs, which has none                        the bytes that the disk has at one moment, cloned while the command goes on
"""

import os
import random
import subprocess
import sys
import time

from mckpt_tests.checks import expect, finish, skip
from mckpt_tests.figures import counted, not_measured, so_many, time_is_left
from mckpt_tests.folders import difference, scratch
from mckpt_tests.models import make_model
from mckpt_tests.mounts import image, in_own_namespace
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import MCKPT
from mckpt_tests.small_runs import MARKS, TRACKER

in_own_namespace(as_root=True)
CUTS = so_many(100, 4)
MODES = [("ext4", "data=ordered"), ("ext4", "data=writeback"), ("xfs", ""), ("btrfs", "")]


class Job:
    """A conversion that is made over its older result by turns in two types. `place`: of what gets the name, below what is named."""

    def __init__(self, name, words, source, place, folder):
        self.name, self.words, self.source, self.place = name, words, source, place
        self.references = {}
        for dtype in ("bf16", "fp16"):
            to = os.path.join(folder, name, dtype)
            done = run_mckpt(*self.command(to, dtype))
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
            self.references[dtype] = to

    def command(self, to, dtype, *more):
        return [*self.words, self.source, to, "-q", "-j2", "--dtype", dtype, *more]

    def made(self, to):
        return os.path.join(to, self.place) if self.place else to

    def state(self, to):
        """The type of the checkpoint under the name: which of both it is, or "" for a mixture."""
        for dtype, reference in self.references.items():
            if os.path.exists(self.made(to)) and difference(self.made(to), self.made(reference), MARKS) == "":
                return dtype
        return ""


def cut(disk, job, before, moment, spare):
    """One power cut. Returns what is wrong, and the type that is under the name at the end."""
    after = "fp16" if before == "bf16" else "bf16"
    to = os.path.join(disk.at, job.name)
    process = subprocess.Popen([MCKPT, *job.command(to, after, "--overwrite")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    if moment is None:  # right after "done"
        process.wait()
    else:
        time.sleep(moment)
    if disk.kind == "btrfs":
        done = process.poll() == 0
        disk.clone_disk(spare)
    else:
        done = process.poll() == 0
        disk.cut_power()
    process.kill()
    process.wait()
    disk.start_again(spare if disk.kind == "btrfs" else None)
    state = job.state(to)
    if state == "":
        return f"under the name is {'a mixture' if os.path.exists(job.made(to)) else 'nothing'}", before
    if done and state != after:
        return "it was done, and the old one is there", before
    if job.place:
        with open(os.path.join(to, TRACKER)) as f:
            if f.read() != job.place:
                return "the tracker does not name it", before
    if state == after and not MARKS & set(os.listdir(job.made(to))):
        return "", after
    again = run_mckpt(*job.command(to, after, "--overwrite"))
    if again.returncode != 0 or difference(job.made(to), job.made(job.references[after])):
        return f"the same command again: {again.returncode} {again.stderr[:300]}", before
    left = [name for name in os.listdir(os.path.dirname(job.made(to))) if ".mckpt-" in name]
    return left and f"left behind: {left}" or "", after


def cuts_of(kind, options, jobs, folder):
    what = f"power cuts on {kind}{' ' + options if options else ''}: the old or the new checkpoint, after \"done\" the new one"
    outer = None
    try:
        # A file system that shares extents holds the image that is cloned.
        outer = image("xfs", folder, "outer", megabytes=1400) if kind == "btrfs" else None
        where = outer.__enter__().at if outer else folder
        with image(kind, where, f"disk_{kind}_{options.rpartition(chr(61))[2]}", options, megabytes=200) as disk, counted("P9", what, CUTS) as count:
            r, states, usual, news = random.Random(7), {}, {}, 0
            for job in jobs:
                to = os.path.join(disk.at, job.name)
                run_mckpt(*job.command(to, "bf16"))
                begin = time.time()
                run_mckpt(*job.command(to, "fp16", "--overwrite"))
                usual[job.name], states[job.name] = time.time() - begin, "fp16"
            subprocess.run(["sync", "-f", disk.at], check=True)
            for i in range(CUTS):
                if not time_is_left():
                    break
                job = jobs[i % len(jobs)]
                moment = None if i % 5 == 4 else r.uniform(0, usual[job.name])
                old = states[job.name]
                wrong, states[job.name] = cut(disk, job, old, moment, os.path.join(where, "spare.img"))
                count.one(expect(not wrong, f"{kind} {options}, cut {i} of {job.name}: {wrong}"))
                if wrong:  # begin anew
                    to = os.path.join(disk.at, job.name)
                    subprocess.run(["rm", "-rf", to])
                    run_mckpt(*job.command(to, "bf16"))
                    subprocess.run(["sync", "-f", disk.at], check=True)
                    states[job.name] = "bf16"
    except OSError as error:
        not_measured("P9", what, str(CUTS), str(error))
        return False
    finally:
        if outer:
            outer.__exit__(None, None, None)
    return True


with scratch() as folder:
    model = make_model(os.path.join(folder, "model"), layers=2, hidden=256, heads=8, kv=4, head_dim=32, ffn=640, vocab=4096, shard_bytes=3_000_000)
    convert = Job("runs", ["convert", "hf-to-fsdp", "--tp", "2"], model, "release", folder)
    export = Job("hf", ["export"], convert.references["bf16"], "", folder)
    only = sys.argv[1:]
    measured = [cuts_of(kind, options, (convert, export), folder) for kind, options in MODES if not only or kind in only]
    if not any(measured):
        skip("no file system can be made on an image here")
finish(4)
