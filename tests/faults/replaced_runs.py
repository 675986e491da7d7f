"""--overwrite, killed or failing at any of its calls: under the name is the old folder or the new one, each whole, and the same
command with --resume in place of --overwrite ends the work, on file systems that can swap two names and on those that cannot.
A folder that came under the name meanwhile is not replaced. A call that a signal breaks off is made again.
"""

import os
import shutil
import signal

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import difference, scratch
from mckpt_tests.models import make_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import FAULTY_IO

folder = scratch()
TRACKER = "latest_checkpointed_iteration.txt"
MARKS = [".boot", ".done", ".plan", ".replaces"]


def path(*names):
    return os.path.join(folder.name, *names)


def faulty(*wishes):
    return {"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": ",".join(wishes)}


class Job:
    def __init__(self, name, command, source, place):
        self.name, self.place = name, place  # of the folder that is made, below what is named
        self.command = [*command, source]
        for which, more in (("old", ["--dtype", "fp16"]), ("new", [])):
            self.run(path(name, which), more)
        self.old, self.new = self.made(path(name, "old")), self.made(path(name, "new"))

    def made(self, target):
        return os.path.join(target, self.place) if self.place else target

    def run(self, target, more, env=None):
        return run_mckpt(*self.command, target, "-q", "-j2", *more, env=env)

    def begin(self):
        """A folder with the old result; its tracker is not the new one's."""
        runs = path(self.name, "runs")
        shutil.rmtree(runs, ignore_errors=True)
        os.makedirs(runs)
        shutil.copytree(path(self.name, "old"), os.path.join(runs, "ck"), symlinks=True)
        if self.place:
            with open(os.path.join(runs, "ck", TRACKER), "w") as f:
                f.write("3")
        return os.path.join(runs, "ck")

    def staging(self, target):
        made = self.made(target)
        return os.path.join(os.path.dirname(made), f".{os.path.basename(made)}.mckpt-tmp")

    def left_over(self, target):
        return [
            os.path.join(root, name)
            for root, folders, files in os.walk(os.path.dirname(target))
            for name in folders + files
            if ".mckpt-" in name or name in MARKS
        ]

    def check_resumed(self, what, target):
        again = self.run(target, ["--resume"])
        if not expect(again.returncode == 0, f"{what}: --resume: exit status {again.returncode}: {again.stderr[-500:]}"):
            return
        made = self.made(target)
        expect(difference(made, self.new) == "", f"{what}: --resume made something else: {difference(made, self.new)}")
        expect(not self.left_over(target), f"{what}: left behind: {self.left_over(target)}")
        if self.place:
            with open(os.path.join(target, TRACKER)) as f:
                expect(f.read() == "release", f"{what}: --resume left the tracker as it was")

    def state(self, target):
        """The contents under the name now."""
        made = self.made(target)
        for name, reference in (("old", self.old), ("new", self.new)):
            if os.path.exists(made) and difference(made, reference, MARKS) == "":
                return name
        return "none" if not os.path.exists(made) else "a mixture"

    def walk(self, call, what, status, also=()):
        seen = set()
        for n in range(1, 1000):
            target = self.begin()
            result = self.run(target, ["--overwrite"], env=faulty(f"{call}:{n}:{what}", *also))
            label = f"{self.name}: {what} at {call} {n} {' '.join(also)}"
            if result.returncode == 0:
                expect(
                    self.state(target) == "new" and not self.left_over(target),
                    f"{label}: done: {self.state(target)}, {self.left_over(target)}",
                )
                break
            state = self.state(target)
            seen.add(state)
            # Where names cannot be swapped the old folder has none for a moment.
            expect(state in ("old", "new") or also and state == "none" and what == "KILL", f"{label}: under the name is {state}")
            expect(result.returncode == status, f"{label}: exit status {result.returncode}: {result.stderr[:300]}")
            if what != "KILL":
                expect((state == "new") == ("is published as" in result.stderr), f"{label}: {state}: {result.stderr[:300]}")
            begun = any(os.path.exists(os.path.join(where, ".plan")) for where in (self.made(target), self.staging(target)))
            expect(begun or state == "old", f"{label}: nothing to resume, and under the name is {state}")
            if not begun or n % 3 == 0 and what == "KILL":  # begun anew in place of resumed
                anew = self.run(target, ["--overwrite"])
                expect(
                    anew.returncode == 0 and self.state(target) == "new" and not self.left_over(target),
                    f"{label}: --overwrite again: {anew.stderr[-300:]} {self.left_over(target)}",
                )
            else:
                self.check_resumed(label, target)
        return seen

    def others_stay(self):
        """--resume replaces the folder that --overwrite was to replace, and no other that has its name by now."""
        target = self.begin()
        self.run(target, ["--overwrite"], env=faulty("rename:1:KILL"))
        made = self.made(target)
        shutil.move(made, made + "_aside")
        shutil.copytree(made + "_aside", made)
        again = self.run(target, ["--resume"])
        expect(
            again.returncode == 4 and "error[MC3003]" in again.stderr,
            f"{self.name}: another folder of the name: {again.returncode} {again.stderr[:300]}",
        )
        expect(self.state(target) == "old", f"{self.name}: another folder of the name was replaced")
        with open(os.path.join(made, "notes.txt"), "w") as f:
            f.write("mine")
        anew = self.run(target, ["--overwrite"])
        expect(
            anew.returncode == 4 and "notes.txt" in anew.stderr,
            f"{self.name}: a file came meanwhile: {anew.returncode} {anew.stderr[:300]}",
        )
        # Something is put beside the result while the new one is made.
        target = self.begin()
        self.run(target, ["--overwrite"], env=faulty("rename:1:KILL"))
        with open(os.path.join(target, self.place, "notes.txt"), "w") as f:
            f.write("mine")
        again = self.run(target, ["--resume"])
        expect(
            again.returncode == 4 and "notes.txt" in again.stderr,
            f"{self.name}: --resume over a file that came: {again.returncode} {again.stderr[:300]}",
        )

    def broken_off(self):
        for call in ("fsync", "open", "flock", "fallocate", "create", "write"):
            for n in (1, 2, 3, 5, 8):
                target = self.begin()
                result = self.run(target, ["--overwrite"], env=faulty(f"{call}:{n}:EINTR"))
                expect(result.returncode == 0, f"{self.name}: EINTR at {call} {n}: exit status {result.returncode}: {result.stderr[:300]}")


model = make_model(path("model"), layers=1, hidden=64, heads=4, kv=2, head_dim=16, ffn=96, vocab=256, shard_bytes=40_000)
convert = Job("convert", ["convert", "hf-to-fsdp", "--tp", "2"], model, "release")
export = Job("export", ["export"], path("convert", "new"), "")
for job in (convert, export):
    seen = set()
    for call in ("rename", "fsync", "unlink", "mkdir", "flock"):
        seen |= job.walk(call, "KILL", -signal.SIGKILL)
        job.walk(call, "EIO", 5)
    expect(seen == {"old", "new"}, f"{job.name}: seen {seen}")
    seen = job.walk("rename", "KILL", -signal.SIGKILL, also=["exchange:1:EINVAL"])
    expect(seen == {"old", "none"} | ({"new"} if job is convert else set()), f"{job.name}: without swapping, seen {seen}")
    job.walk("rename", "EIO", 5, also=["exchange:1:EINVAL"])
    job.walk("unlink", "KILL", -signal.SIGKILL, also=["exchange:1:EINVAL"])
    job.others_stay()
    job.broken_off()
finish(300)
