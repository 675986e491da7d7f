"""Damage gives one answer in both orders of the two sides, of `diff` and of `verify --against`: a file of a rank that is lost, cut short or
another rank's is refused; a file of DCP that is lost is a problem, and its tensors are not counted as equal."""
import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

RANKS = os.path.join(DATA, "own_names", "verl_fsdp2", "checkpoint")
RANK = "model_world_size_3_rank_{}.pt"
MODEL = os.path.join(DATA, "models", "tiny_qwen3_moe")


def lost(folder):
    os.remove(os.path.join(folder, RANK.format(2)))


def cut(folder):
    os.truncate(os.path.join(folder, RANK.format(1)), 30_000)


def doubled(folder):
    shutil.copy(os.path.join(folder, RANK.format(0)), os.path.join(folder, RANK.format(1)))


def without_shard(folder):
    os.remove(os.path.join(folder, "model-00002-of-00002.safetensors"))


REFUSED = [("MC1106", RANKS, lost), ("MC1201", RANKS, cut), ("MC1113", RANKS, doubled), ("MC1106", MODEL, without_shard)]


def damaged(scratch, source, damage):
    folder = os.path.join(scratch, damage.__name__)
    shutil.copytree(source, folder)
    damage(folder)
    return folder


def check_refusals(scratch):
    for code, sound, damage in REFUSED:
        bad = damaged(scratch, sound, damage)
        for a, b in ((bad, sound), (sound, bad)):
            for words in (("diff", a, b), ("verify", a, "--against", b)):
                run = run_mckpt(*words)
                expect(run.returncode == 3 and f"error[{code}]" in run.stderr, f"{damage.__name__}: {words}: {run.returncode} {run.stderr}")
            run = run_mckpt("diff", a, b, "--json")
            expect(run.returncode == 3 and json.loads(run.stdout)["error"]["code"] == code, f"{damage.__name__}: {run.stdout}")


def without_file(folder):
    os.remove(os.path.join(folder, "__1_0.distcp"))


def check_counts(scratch):
    sound = os.path.join(DATA, "dcp", "fsdp2")
    bad = damaged(scratch, sound, without_file)
    listed = json.loads(run_mckpt("ls", sound, "--json").stdout)["tensors"]
    in_file = {t["name"] for t in listed if any(c["file"] == "__1_0.distcp" for c in t["chunks"])}
    expect(0 < len(in_file) < len(listed), f"of all {len(listed)} tensors {len(in_file)} are in the file")
    for a, b, side in ((bad, sound, "a"), (sound, bad, "b")):
        run = run_mckpt("diff", a, b)
        expect(run.returncode == 1 and f"found in {bad}" in run.stderr and f"found in {sound}" not in run.stderr, f"{side}: {run.stderr}")
        expect(f"not compared: {len(in_file)} tensors" in run.stdout, f"{side}: {run.stdout}")
        told = json.loads(run_mckpt("diff", a, b, "--json").stdout)
        counts = [told[k] for k in ("tensors", "bit_equal", "not_read", "differ")]
        expect(counts == [len(listed), len(listed) - len(in_file), len(in_file), 0] and not told["equal"], f"{side}: {counts}")
        expect(told["problems_of"] == {"a": len(told["findings"]) if side == "a" else 0, "b": len(told["findings"]) if side == "b" else 0}, f"{side}: {told['problems_of']}")
        equal = run_mckpt("diff", a, b, "--only", "equal").stdout.split()
        expect(set(equal) == {t["name"] for t in listed} - in_file, f"{side}: {equal}")


def check_hole():
    """A part that is stored nowhere was compared with nothing, and is not equal."""
    folder = os.path.join(DATA, "dcp", "variations", "hole")
    told = json.loads(run_mckpt("diff", folder, folder, "--json").stdout)
    counts = [told[k] for k in ("tensors", "bit_equal", "not_read", "differ")]
    expect(counts == [1, 0, 1, 0] and not told["equal"] and not told["alike"], f"a hole: {counts}")
    expect([f["code"] for f in told["findings"]] == ["MC1304"] * 2 and told["problems_of"] == {"a": 1, "b": 1}, f"a hole: {told['findings']}")
    expect(run_mckpt("diff", folder, folder).stdout.startswith("no tensor could be compared"), "a hole in words")


with tempfile.TemporaryDirectory() as scratch:
    check_hole()
    check_refusals(scratch)
    check_counts(scratch)
finish(30)
