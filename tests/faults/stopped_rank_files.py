"""convert to-pt that is killed at one of its writes: nothing has the final name that is not whole, and the same command with
--resume makes the files that a run which was left alone makes, byte for byte: the checksums in the archives are of data that
the killed run wrote, too."""
import os
import shutil

from mckpt_tests.checks import expect, finish, in_parallel
from mckpt_tests.folders import difference, scratch
from mckpt_tests.models import make_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import FAULTY_IO

folder = scratch()


def path(name):
    return os.path.join(folder.name, name)


model = make_model(path("model"), layers=4, hidden=64, heads=4, kv=2, head_dim=16, ffn=96, vocab=512, experts=4, moe_ffn=32)
command = ["convert", "to-pt", model]
grid = ["--tp", "2", "--ep", "2", "--pp", "2", "-q", "-j2"]
expect(run_mckpt(*command, path("alone"), *grid).returncode == 0, "left alone")
reference = path("alone/release")


def killed(call, n):
    target = path(f"{call}_{n}")
    run = run_mckpt(*command, target, *grid, env={"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": f"{call}:{n}:KILL"})
    published = os.path.exists(os.path.join(target, "release"))
    if published:
        differs = difference(os.path.join(target, "release"), reference, [".boot", ".done", ".plan", ".replaces"])
        expect(differs == "", f"{call} {n}: published and not whole: {differs}")
    if run.returncode == 0:  # it made fewer calls
        return False
    again = run_mckpt(*command, target, *grid, "--resume")
    if expect(again.returncode == 0, f"{call} {n}: --resume: {again.stderr}"):
        differs = difference(os.path.join(target, "release"), reference)
        expect(differs == "", f"{call} {n}: --resume made something else: {differs}")
        expect(os.listdir(target) and not any(".mckpt-" in name for name in os.listdir(target)), f"{call} {n}: left behind")
    shutil.rmtree(target)
    return run.returncode < 0


stopped = []
in_parallel(lambda call, n: stopped.append(killed(call, n)),
            [("pwrite", n) for n in (1, 2, 9, 30, 60, 100, 150, 200, 250)] + [("fsync", n) for n in (1, 3, 9)] + [("rename", 1)])
expect(sum(stopped) >= 9, f"only {sum(stopped)} of {len(stopped)} runs were killed")
finish(20)
