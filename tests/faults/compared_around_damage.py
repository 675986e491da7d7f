"""`verify --against` where records cannot be read, or are not what was written: each is named with its side, file and tensor, as plain
`verify` tells it, all others are compared, and the counts say what was not.
"""

import glob
import json
import os
import shutil

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import data_offset, scratch
from mckpt_tests.models import make_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import FAULTY_IO

folder = scratch()


def path(name):
    return os.path.join(folder.name, name)


def done(*args):
    """Its result is then as others write it: without a manifest, which would tell of all damage once more."""
    result = run_mckpt(*args, "-q", "--no-sync")
    expect(result.returncode == 0, f"{args}: {result.stderr[:500]}")
    for manifest in glob.glob(path("*/**/mckpt_manifest.json"), recursive=True):
        os.remove(manifest)


def fresh(name):
    """A copy of it, to be damaged."""
    copy = path("damaged_" + name)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path(name), copy) if os.path.isdir(path(name)) else shutil.copy(path(name), copy)
    return copy


def chunks(checkpoint, tensor):
    listed = json.loads(run_mckpt("ls", checkpoint, "--json").stdout)["tensors"]
    return next(t for t in listed if t["name"] == tensor)["chunks"]


def spoil(checkpoint, chunk, at, size=1):
    """Bytes of a record; `at` counts from its beginning, or with "data" from the beginning of its data."""
    file = os.path.join(checkpoint, "release", chunk["file"])
    begin = data_offset(file, chunk["offset"]) + 1000 if at == "data" else chunk["offset"] + at
    with open(file, "r+b") as f:
        f.seek(begin)
        old = f.read(size)
        f.seek(begin)
        f.write(bytes(b ^ 0x55 for b in old))


class Answer:
    """The answer of verify PATH --against SRC, as JSON and as text."""

    def __init__(self, what, target, source, total):
        self.what = what
        result = run_mckpt("verify", target, "--against", source, "--json")
        self.text = run_mckpt("verify", target, "--against", source, "-v").stdout
        expect(result.returncode == 1, f"{what}: exit status {result.returncode}: {result.stderr[:300]}")
        told = json.loads(result.stdout)
        self.findings, self.differences = told.get("findings", []), told.get("differences", [])
        self.checks = {c["name"]: c for c in told.get("checks", []) if c["name"] != "objects"}
        against = self.checks.get("against", {"count": 0, "unseen": 0})
        expect(told.get("equal") is False and against["count"] + against["unseen"] == total, f"{what}: {told.get('equal')} {against}")

    def unseen(self, number):
        expect(self.checks["against"]["unseen"] == number, f"{self.what}: {self.checks['against']}")
        expect((f", {number} could not be compared" in self.text) == (number > 0), f"{self.what}: {self.text}")

    def codes(self, side, wanted):
        """(code, tensor, file) of all findings, in any order; the findings of "side" without the
        differences."""
        got = sorted((f["code"], f["tensor"], f["file"]) for f in self.findings)
        expect(got == sorted(wanted), f"{self.what}: {got}")
        damage = any(code != "MC1010" for code, _, _ in wanted)
        expect(damage == (side in self.checks), f"{self.what}: {list(self.checks)}")
        expect({"path": "source", "source": "path"}[side] not in self.checks, f"{self.what}: {list(self.checks)}")


def each_way(name, damage, wanted, differs, unseen):
    """The damaged checkpoint against what it was made of and what was made of it, as PATH and as SRC."""
    damaged = fresh("ck")
    damage(damaged)
    plain = {
        (f["code"], f["tensor"], f["file"], f["offset"])
        for f in json.loads(run_mckpt("verify", damaged, "--json").stdout)["findings"]
        if not f["warning"]
    }
    for what, target, source, side, total in (
        ("against the model", damaged, model, "path", TENSORS),
        ("against another grid", damaged, path("rs"), "path", TENSORS),
        ("another grid against it", path("rs"), damaged, "source", TENSORS),
        ("the export against it", path("back"), damaged, "source", EXPORTED),
    ):
        answer = Answer(f"{name}: {what}", target, source, total)
        told = {(f["code"], f["tensor"], f["file"], f["offset"]) for f in answer.findings if f["code"] != "MC1010"}
        expect(told == plain, f"{name}: {what}: plain verify tells {sorted(map(str, plain))}, this {sorted(map(str, told))}")
        others = [f for f in answer.findings if f["code"] == "MC1010"]
        expect(len(others) == differs[what == "the export against it"], f"{name}: {what}: {others}")
        if side == "path":
            expect({f["tensor"] for f in others} <= {t for t in (FC1, PROJ)}, f"{name}: {what}: {others}")
        expect(side in answer.checks and len(answer.checks.keys() - {"assets"}) == 2, f"{name}: {what}: {list(answer.checks)}")
        answer.unseen(unseen[what == "the export against it"])
    for code, tensor in wanted:
        expect(any(p[0] == code and p[1] == tensor for p in plain), f"{name}: no {code} {tensor} in {plain}")


model = make_model(path("model"), layers=2, hidden=256, heads=8, kv=4, head_dim=32, ffn=640, vocab=4096, shard_bytes=3_000_000)
done("convert", "hf-to-fsdp", model, path("ck"), "--tp", "2", "--dp", "2")
done("convert", "reshard", path("ck"), path("rs"), "--dp", "3")
done("export", path("ck"), path("back"))
TENSORS = len(json.loads(run_mckpt("ls", path("ck"), "--json").stdout)["tensors"])
EXPORTED = len(json.loads(run_mckpt("ls", path("back"), "--json").stdout)["tensors"])
FC1, PROJ = "model.module.decoder.layers.0.mlp.linear_fc1.weight_v", "model.module.decoder.layers.1.self_attention.linear_proj.weight"
first, last = chunks(path("ck"), FC1)[0], chunks(path("ck"), FC1)[-1]
other = chunks(path("ck"), PROJ)[0]
expect(first["file"] != last["file"], "the tensor lies in one file")

each_way("data", lambda d: spoil(d, last, "data"), [("MC1203", FC1)], (1, 1), (0, 0))
each_way("the header", lambda d: spoil(d, last, 0, 40), [("MC1310", FC1)], (0, 0), (1, 1))
each_way("the directory", lambda d: spoil(d, last, last["bytes"] - 60, 50), [("MC1201", FC1)], (0, 0), (1, 1))


def two(damaged):
    spoil(damaged, last, 0, 40)
    spoil(damaged, other, "data")


each_way("one header, data of another tensor", two, [("MC1310", FC1), ("MC1203", PROJ)], (1, 1), (1, 1))
gone = json.loads(run_mckpt("ls", path("ck"), "--json").stdout)["tensors"]
lost = sum(any(c["file"] == last["file"] for c in t["chunks"]) for t in gone)
each_way(
    "a file that is cut short",
    lambda d: os.truncate(os.path.join(d, "release", last["file"]), last["offset"] + 100),
    [("MC1308", FC1), ("MC1002", FC1)],
    (0, 0),
    (3, 3),
)


def without_file(damaged):
    os.remove(os.path.join(damaged, "release", last["file"]))


damaged = fresh("ck")
without_file(damaged)
answer = Answer("a file is gone", damaged, model, TENSORS)
answer.unseen(lost)
expect({"MC1302", "MC1001"} == {f["code"] for f in answer.findings}, f"a file is gone: {answer.findings}")

# The rest of a tensor with a damaged record is compared.
damaged = fresh("ck")
spoil(damaged, last, 0, 40)
spoil(damaged, first, "data")
answer = Answer("the rest of a tensor", damaged, path("rs"), TENSORS)
answer.codes("path", [("MC1310", FC1, last["file"]), ("MC1203", FC1, first["file"]), ("MC1010", FC1, first["file"])])
answer.unseen(1)

# Files of torch.save and tensors that one side alone has.
done("convert", "safetensors-to-pt", path("back"), path("whole.pt"))
done("convert", "safetensors-to-pt", path("back"), path("some.pt"), "--exclude", "*.0.*norm*")
damaged = fresh("whole.pt")
with open(damaged, "r+b") as f:
    f.seek(3_000_000)
    byte = f.read(1)[0]
    f.seek(3_000_000)
    f.write(bytes([byte ^ 1]))
answer = Answer(".pt", damaged, path("back"), EXPORTED)
answer.codes(
    "path", [("MC1203", "model.embed_tokens.weight", "damaged_whole.pt"), ("MC1010", "model.embed_tokens.weight", "damaged_whole.pt")]
)
(d,) = answer.differences
expect(d["items"] == 1 and d["expected"] != d["found"] and d["at"].startswith("[") and (d["largest"] or 0) > 0, f".pt: {d}")
expect(f"differs at {d['at']}: expected {d['expected']}, found {d['found']}; 1 item differs, by " in answer.text, f".pt: {answer.text}")
Answer(".pt as the source", path("back"), damaged, EXPORTED).codes(
    "source", [("MC1010", "model.embed_tokens.weight", "model-00001-of-00003.safetensors"), ("MC1203", "model.embed_tokens.weight", "damaged_whole.pt")]
)
answer = Answer("tensors that are missing", damaged, path("some.pt"), EXPORTED)
missing = [f["tensor"] for f in answer.findings if f"only {damaged} has this tensor" in f["message"]]
answer.unseen(len(missing))
expect(len(missing) == 4 and any("differs at [" in f["message"] for f in answer.findings), f"tensors that are missing: {answer.findings}")
os.truncate(damaged, 1_000_000)
answer = Answer("a .pt file that does not open", damaged, path("back"), 0)
expect(
    [f["code"] for f in answer.findings] == ["MC1201"] and "nothing could be compared" in answer.text,
    f"a .pt file that does not open: {answer.text}",
)

# A read that the system refuses, wherever: an error where nothing can be said without it, else a finding.
ways = []
for n in range(1, 90, 2):
    result = run_mckpt(
        "verify", path("ck"), "--against", path("rs"), "--json", "-j1", env={"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": f"pread:{n}:EIO"}
    )
    told = json.loads(result.stdout)
    if result.returncode == 0:
        continue  # of something that may be missing, or behind the last read
    ways.append(result.returncode)
    expect(result.returncode in (1, 3) and "Input/output error" in result.stdout, f"pread {n}: {result.returncode} {result.stdout[:500]}")
    if result.returncode == 1:
        against = told["checks"][-1]
        expect(
            against["count"] + against["unseen"] == TENSORS and sum(c["unseen"] for c in told["checks"]) > 0 and len(told["findings"]) >= 1,
            f"pread {n}: {told['checks']}",
        )
expect(ways.count(1) > 10, f"few reads were left out: {ways}")
finish(150)
