"""The facts of a checkpoint about its run hold: options that say something else are refused before anything
is written, and options of one side of a comparison are not applied to the other.
"""
import os
import subprocess
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import difference
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt

models = Models()
folder = tempfile.TemporaryDirectory(prefix="mckpt_contradictions_")


def place(name):
    return os.path.join(folder.name, name)


def ends(status, *args, words=()):
    run = run_mckpt(*args, timeout=60)
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout[-500:]}{run.stderr[-500:]}")
    for word in words:
        expect(word in run.stdout + run.stderr, f"{args}: nothing of '{word}': {run.stderr[-500:]}")


def without_args(source, name):
    """A copy that does not say how many ranks wrote it."""
    subprocess.run(["cp", "-r", source, place(name)], check=True)
    metadata = os.path.join(place(name), "release", ".metadata")
    with open(metadata, "rb") as f:
        blob = f.read()
    with open(metadata, "wb") as f:
        f.write(blob.replace(b"args", b"argz"))
    os.remove(os.path.join(place(name), "release", "mckpt_manifest.json"))
    return place(name)


model = models.path("nemotron_h")  # its Mamba tensors are stored rank after rank
two, four = place("two"), place("four")
ends(0, "convert", "hf-to-fsdp", model, two, "--tp", 2, "--vocab-size", 520, "--no-sync")
ends(0, "convert", "reshard", two, four, "--tp", 4, "--no-sync")

for option in ("--source-tp", "--source-etp"):
    said = 4 if option == "--source-tp" else 2
    for command in (["export"], ["convert", "reshard"]):
        ends(4, *command, two, place("out"), option, said, "--no-sync", words=["MC2015", f"{option} {said}", "leave"])
        expect(not os.path.exists(place("out")), f"{command} {option} wrote something")
ends(0, "export", two, place("said"), "--source-tp", 2, "--source-etp", 1, "--no-sync")
ends(0, "export", two, place("silent"), "--no-sync")
expect(difference(place("said"), place("silent")) == "", "saying what the checkpoint says changes the result")

# With two checkpoints --source-tp describes SRC alone.
ends(0, "verify", four, "--against", two, "--source-tp", 2)
ends(4, "verify", four, "--against", two, "--source-tp", 4, words=["MC2015"])
ends(0, "verify", four, "--against", two, "--source-tp", 2, "--path-tp", 4)
ends(4, "verify", four, "--against", two, "--path-tp", 2, words=["MC2015", "--path-tp"])
unknown_two, unknown_four = without_args(two, "unknown_two"), without_args(four, "unknown_four")
ends(0, "verify", four, "--against", unknown_two, "--source-tp", 2)
ends(1, "verify", four, "--against", unknown_two, "--source-tp", 1)
ends(4, "verify", unknown_four, "--against", two, words=["MC2013", "--path-tp"])
ends(0, "verify", unknown_four, "--against", two, "--path-tp", 4)
# Their args, under another name, differ; their tensors do not.
ends(1, "verify", unknown_four, "--against", unknown_two, "--source-tp", 2, "--path-tp", 4, words=["pass  against"])
# A Hugging Face folder has no ranks: PATH, or SRC, is the one checkpoint.
ends(0, "verify", unknown_two, "--against", model, "--source-tp", 2)
ends(0, "verify", unknown_two, "--against", model, "--path-tp", 2)
ends(4, "verify", two, "--against", model, "--source-tp", 1, words=["MC2015"])
ends(0, "verify", place("silent"), "--against", unknown_two, "--source-tp", 2)
finish(45)
