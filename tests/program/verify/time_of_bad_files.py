"""Nothing hangs: a command takes at most one second, and one more second for each MB of the input (P6). Every case of test_data/bad_files, files
made to cost much, and large headers that are sound: commands that look, with and without --json, and the conversion that takes the file.

The figure is the largest share of its time that a command took: of processors, the command's and its helper's together, the least of a few runs.
Where the machine does nothing else (scripts/trust), the time on the clock is a figure, too. A command that waits for ever takes no processor time, and is ended
after STUCK seconds beyond its bound."""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from mckpt_tests import bad_files
from mckpt_tests.bombs import INDEXES, METADATA, PICKLES, SAFETENSORS, apart, folder_of_ranks, indexed, written, zipped
from mckpt_tests.checks import expect, finish, skip
from mckpt_tests.figures import AT_LENGTH, bounded, time_is_left
from mckpt_tests.setting import MCKPT, SANITIZED

LOOKS = [["verify"], ["verify", "--json"], ["inspect", "--args"], ["inspect", "--json"], ["ls"], ["ls", "--json"], ["ls", "--digest"], ["stats"]]
AGAIN = 3  # runs of a command that took more than this share of its bound, of which the best counts
DOUBTFUL = 0.2
STUCK = 60
SAMPLE_CASES, SAMPLE_BOMBS = 40, 6


def size_of(path):
    """Bytes of a file, or of the files of a folder; links are not followed, and so a link to /dev/zero is a short input."""
    if not os.path.isdir(path):
        return os.lstat(path).st_size
    return sum(os.lstat(os.path.join(root, name)).st_size for root, _, names in os.walk(path) for name in names)


def run(args, folder, most):
    """Seconds of processors and on the clock. A command that is still running after `most` is killed: None."""
    out = os.path.join(folder, "out")
    shutil.rmtree(out, ignore_errors=True)
    with open(os.devnull, "r+b") as null:
        begin = time.monotonic()
        child = subprocess.Popen([MCKPT, *args], stdin=null, stdout=null, stderr=null, cwd=folder)
        # `wait` of subprocess does not tell the processor time, and os.wait4 has no limit.
        while (ended := os.wait4(child.pid, os.WNOHANG))[0] == 0:
            if time.monotonic() > begin + most:
                child.kill()
                os.wait4(child.pid, 0)
                child.returncode = -9
                return None
            time.sleep(0.0005)
        child.returncode = ended[1]
        used = ended[2]
        return used.ru_utime + used.ru_stime, time.monotonic() - begin


class Measured:
    """The largest shares, and which command took them."""

    def __init__(self):
        self.runs, self.worst = 0, {"processor": (0.0, ""), "clock": (0.0, "")}

    def measure(self, what, args, size, folder):
        bound = 1 + size / 1e6
        best = {"processor": float("inf"), "clock": float("inf")}
        for _ in range(AGAIN):
            times = run(args, folder, bound + STUCK)
            if not expect(times is not None, f"{what}: {args[0]} still runs after {bound + STUCK:.0f} s"):
                return
            for kind, seconds in zip(best, times):
                best[kind] = min(best[kind], seconds / bound)
            if max(best.values()) < DOUBTFUL:
                break
        self.runs += 1
        said = f"{what}: {' '.join(word for word in args if not os.path.isabs(word))}, {size:,} bytes"
        expect(best["processor"] <= 1, f"{said}: {best['processor'] * bound:.2f} s of processors, {bound:.2f} are the bound")
        for kind, share in best.items():
            self.worst[kind] = max(self.worst[kind], (share, said))


def look_at_bad_files(measured):
    chosen = bad_files.cases()
    if not AT_LENGTH:
        chosen = random.Random(6).sample(chosen, SAMPLE_CASES)
    with bad_files.unpacked() as files:
        for case in chosen:
            with tempfile.TemporaryDirectory(prefix="mckpt_time_") as folder:
                copy, path = bad_files.copied(case, files, folder)
                commands = [*LOOKS, ["ls", "--as", "megatron"]] if bad_files.kind(case) == "config" else LOOKS
                for command in commands:
                    measured.measure(case["id"], [*command, path], size_of(copy), folder)
                if bad_files.kind(case) in bad_files.CONVERTERS:
                    mode, *options = bad_files.CONVERTERS[bad_files.kind(case)]
                    measured.measure(case["id"], ["convert", mode, path, "out", "--no-sync", *options], size_of(copy), folder)


def bombs():
    """(name, file name, what makes it there, the conversion)"""
    for name, (make, _, _) in SAFETENSORS.items():
        yield name, "x.safetensors", lambda path, make=make: written(path, make()), "safetensors-to-pt"
    for name, make in PICKLES.items():
        yield f"deflated {name}", "x.pt", lambda path, make=make: zipped(path, make()), "pt-to-safetensors"
        yield f"plain {name}", "x.pt", lambda path, make=make: written(path, make()), "pt-to-safetensors"
    for name in INDEXES:
        yield name, "model", lambda path, name=name: indexed(path, name), "safetensors-to-pt"
    for name in METADATA:
        yield name, "model", lambda path, name=name: folder_of_ranks(path, name), "to-safetensors"


def look_at_bombs(measured):
    chosen = list(bombs())
    if not AT_LENGTH:
        chosen = random.Random(6).sample(chosen, SAMPLE_BOMBS)
    for name, file, make, mode in chosen:
        if not time_is_left():
            return
        with tempfile.TemporaryDirectory(prefix="mckpt_time_") as folder:
            path = os.path.join(folder, file)
            apart(lambda: make(path))
            for command in LOOKS:
                measured.measure(name, [*command, path], size_of(path), folder)
            measured.measure(name, ["convert", mode, path, "out", "--no-sync"], size_of(path), folder)


def main():
    if SANITIZED:
        skip("the sanitizers take time of their own")
    begin = time.time()
    for what, look in (("bad files", look_at_bad_files), ("files made to cost much", look_at_bombs)):
        measured = Measured()
        look(measured)
        for kind, words in (("processor", "of processors"), ("clock", "on the clock")):
            share, which = measured.worst[kind]
            print(f"{what}: {measured.runs} commands; at most {share:.3f} of the time {words}: {which}")
            if kind == "processor" or AT_LENGTH:
                bounded("P6", f"share of 1 s + 1 s/MB {words}, {measured.runs:,} commands over {what}", at_most=1, worst=share, seconds=time.time() - begin)
    finish(300)


if __name__ == "__main__":
    sys.exit(main())
