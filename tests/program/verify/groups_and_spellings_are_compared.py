"""verify --against of checkpoints of one hybrid model that name its layers differently, by groups of layers and by spelling: they are
equal, tensor by tensor, in every pair; and one value that is another one is found."""

import glob
import os
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt

models = Models()
scratch = tempfile.TemporaryDirectory(prefix="mckpt_groups_")
SIDES = {
    "flat": [],
    "grouped": ["--hybrid-pattern", "[M-]M[*-]"],
    "respelt": ["--hybrid-pattern", "[M-]M[*-]", "--spelling", "submodule-conv,unfused-norms"],
    "regrouped": ["--hybrid-pattern", "[M-M][*-]", "--spelling", "submodule-conv"],
}


def place(name):
    return os.path.join(scratch.name, name)


def verify(tested, source):
    return run_mckpt("verify", place(tested), "--against", place(source))


for name, flags in SIDES.items():
    run = run_mckpt("convert", "hf-to-fsdp", models.path("nemotron_h"), place(name), "--dp", "2", "--no-sync", "-q", *flags)
    expect(run.returncode == 0, f"{name}: {run.stderr}")
for tested in SIDES:
    for source in SIDES:
        if tested != source:
            run = verify(tested, source)
            expect_equal(f"{tested}, {source}: {run.stdout}", [run.returncode, "pass  against  30 tensors" in run.stdout], [0, True])

# The last byte of the data of a tensor, in a folder whose names are translated twice.
os.remove(os.path.join(place("regrouped"), "release", "mckpt_manifest.json"))
file = sorted(glob.glob(os.path.join(place("regrouped"), "release", "*.distcp")))[0]
with open(file, "r+b") as f:
    data = f.read()
    at = data.index(b"/data/0") + 256
    f.seek(at)
    f.write(bytes([data[at] ^ 0x10]))
run = verify("regrouped", "grouped")
expect_equal(f"damaged: {run.stdout}", [run.returncode, "regrouped: equal" in run.stdout], [1, False])
finish(17)
