"""--resume does not go on where an asset was changed, became shorter or was removed; with the same ones it makes what
a run that was left alone makes.
"""

import os
import shutil

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import difference, scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import FAULTY_IO

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test_data", "models", "tiny_qwen3_moe")
folder = scratch()
TEXT = "the first state of a text that is copied\n"


def path(*names):
    return os.path.join(folder.name, *names)


def write(name, text):
    with open(path("model", name), "w") as f:
        f.write(text)


def stopped(command, target, asset):
    """Kills the command at its nth fsync, the first at which the asset is there but the result is not."""
    for n in range(1, 100):
        shutil.rmtree(path(target.split("/")[0]), ignore_errors=True)
        os.mkdir(path(target.split("/")[0]))
        run_mckpt(*command, env={"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": f"fsync:{n}:KILL"})
        if os.path.exists(path(asset)):
            return not os.path.exists(path(target))
    return False


def check(what, command, target, asset):
    changes = {
        "unchanged": lambda: None,
        "shorter": lambda: write("notes.txt", TEXT[:9]),
        "longer": lambda: write("notes.txt", 2 * TEXT),
        "other": lambda: write("notes.txt", TEXT.replace("first", "third")),
        "removed": lambda: os.remove(path("model", "notes.txt")),
        "added": lambda: write("more.txt", TEXT),
    }
    for name, change in changes.items():
        shutil.rmtree(path("model"), ignore_errors=True)
        shutil.copytree(MODEL, path("model"))
        write("notes.txt", TEXT)
        if not expect(stopped(command, target, asset), f"{what}, {name}: it was not stopped where it should be"):
            continue
        change()
        again = run_mckpt(*command, "--resume")
        if name == "unchanged":
            expect(again.returncode == 0 and difference(path(target), path(what)) == "", f"{what}, {name}: {again.stderr}")
            expect(run_mckpt("verify", path(target)).returncode == 0, f"{what}, {name}: not sound")
        else:
            expect(again.returncode == 4 and "MC3007" in again.stderr, f"{what}, {name}: exit status {again.returncode}: {again.stderr}")
            expect(not os.path.exists(path(target)), f"{what}, {name}: published")


shutil.copytree(MODEL, path("model"))
write("notes.txt", TEXT)
run_mckpt("convert", "hf-to-fsdp", path("model"), path("whole"), "--tp", "2")
shutil.copytree(path("whole", "release"), path("convert"))
run_mckpt("export", path("whole"), path("export"), "--assets", path("model"))
check(
    "convert",
    ["convert", "hf-to-fsdp", path("model"), path("run"), "--tp", "2"],
    "run/release",
    "run/.release.mckpt-tmp/hf_assets/notes.txt",
)
check("export", ["export", path("whole"), path("out/hf"), "--assets", path("model")], "out/hf", "out/.hf.mckpt-tmp/notes.txt")
finish(30)
