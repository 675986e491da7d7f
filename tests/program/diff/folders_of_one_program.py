"""Two DCP folders of one program are compared by the names that they have, also where a tensor that one side has beside the model makes another
dialect of it: nothing of the optimizer is left out, and what one side lacks is a difference, in both orders."""
import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

SAVED = os.path.join(DATA, "dcp", "fsdp2")
STATE = "optimizer.state.layers.0.bias.step"
RANDOM = "rng_of_some_program_of_ones_ownsel"  # as long as that, so that all else of the table stays


def formats(*folders):
    return [json.loads(run_mckpt("inspect", f, "--json").stdout)["format"] for f in folders]


with tempfile.TemporaryDirectory() as scratch:
    other = os.path.join(scratch, "other")
    shutil.copytree(SAVED, other)
    path = os.path.join(other, ".metadata")
    with open(path, "rb") as f:
        table = f.read()
    expect(len(STATE) == len(RANDOM) and STATE.encode() in table, "the table has the state")
    with open(path, "wb") as f:
        f.write(table.replace(STATE.encode(), RANDOM.encode()))
    expect(formats(SAVED, other) == ["DCP state_dict", "DCP"], f"two dialects: {formats(SAVED, other)}")
    for a, b, only_a, only_b in ((SAVED, other, STATE, RANDOM), (other, SAVED, RANDOM, STATE)):
        run = run_mckpt("diff", a, b, "--json")
        told = json.loads(run.stdout)
        rows = {(r["kind"], r["name"]) for r in told["rows"]}
        expect(run.returncode == 1 and rows == {("only_a", only_a), ("only_b", only_b)}, f"{a} {b}: {rows}")
        expect(told["compared"] == "tensors of the same names" and told["bit_equal"] == told["tensors"] - 2 > 20, f"{a} {b}: {told}")
        run = run_mckpt("diff", a, b)
        expect(f"only A   {only_a}" in run.stdout and f"only B   {only_b}" in run.stdout, run.stdout)
        run = run_mckpt("verify", a, "--against", b)
        expect(run.returncode == 1 and only_a in run.stdout and only_b in run.stdout and "not equal" in run.stdout, run.stdout)
    same = os.path.join(scratch, "same")
    shutil.copytree(other, same)
    expect(run_mckpt("diff", other, same).returncode == 0, "equal folders")
finish(11)
