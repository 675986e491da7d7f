"""Checkpoints of one model in every kind, each against each: equal in both orders, and a value that differs is found in both. `diff` gives mirror images:
the same tensors under the same names, the same counts, and rows with the two sides exchanged, in JSON, in text and as a page."""
import itertools
import json
import os
import re
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

MAKE = {"fsdp": ("to-fsdp", "--tp", "2"), "v2": ("to-fsdp", "--engine", "v2", "--dp", "2"), "core": ("to-mcore", "--tp", "2"), "ranks": ("to-pt", "--tp", "2"),
        "dcp": ("to-dcp", "--dp", "3"), "file": ("to-safetensors",), "torch": ("safetensors-to-pt",), "archive": ("to-hdf5",)}
SUFFIX = {"file": ".safetensors", "torch": ".pt"}
TURNED = {"only_a": "only_b", "only_b": "only_a"}
# Fields of a row with values that are the same in both orders: the distance is by the length of b.
SAME = ("items", "beyond", "largest", "cosine", "most_ulps", "not_finite")
TOTALS = ("equal", "alike", "compared", "tensors", "bit_equal", "equal_values", "not_read", "within", "differ", "casts", "groups")


def changed(folder):
    """The model with one item of its first tensor changed: the bits of its last byte are turned."""
    shutil.copytree(TINY_MODEL, folder)
    name = sorted(n for n in os.listdir(folder) if n.endswith(".safetensors"))[0]
    with open(os.path.join(folder, name), "r+b") as f:
        size = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(size))
        tensor, end = min(((n, e["data_offsets"][1]) for n, e in header.items() if n != "__metadata__"), key=lambda e: e[1])
        place = 8 + size + end - 1
        f.seek(place)
        last = f.read(1)[0]
        f.seek(place)
        f.write(bytes([last ^ 0x01]))
    return tensor


def made(model, scratch):
    kinds = {"model": model}
    for kind, (mode, *grid) in MAKE.items():
        kinds[kind] = os.path.join(scratch, kind + SUFFIX.get(kind, ""))
        done = run_mckpt("convert", mode, model, kinds[kind], *grid, "-q", "--no-sync")
        expect(done.returncode == 0, f"{mode}: {done.stderr[:300]}")
    return kinds


def name_of(row):
    """A file has the name that the first side gives it: hf_assets/config.json beside the shards of a run."""
    return os.path.basename(row["name"]) if row["kind"] == "file" else row["name"]


def rows_of(told, turned):
    """The rows without hints and files, as the answer of the other order has them if `turned`."""
    out = []
    for row in told["rows"]:
        a, b = (row["b"], row["a"]) if turned else (row["a"], row["b"])
        out.append((TURNED.get(row["kind"], row["kind"]) if turned else row["kind"], name_of(row), row["at"], a, b, *(row[key] for key in SAME)))
    return sorted(out, key=str)


def page_of(a, b, *words):
    """The data of the page that diff draws."""
    with tempfile.TemporaryDirectory() as folder:
        run_mckpt("diff", a, b, "-q", *words, "--html", f"{folder}/page.html")
        with open(f"{folder}/page.html") as f:
            page = json.loads(re.search(r'id="data">(.*?)</script>', f.read(), re.DOTALL)[1])
    # A square has a layer, the number of its tensors, and how many differ.
    page["squares"] = [(k["section"], k["kind"], [cell[:3] for cell in k["cells"]]) for k in page["changes"]["kinds"]]
    return page


def mirrored(a, b, what, *words):
    """The answers of both orders, which are mirror images. The line `compared` may name the two sides in their order."""
    ends = [run_mckpt("diff", x, y, "--json", *words) for x, y in ((a, b), (b, a))]
    told = [json.loads(e.stdout) for e in ends]
    expect(ends[0].returncode == ends[1].returncode and ends[0].returncode < 2, f"{what}: {[(e.returncode, e.stderr[:300]) for e in ends]}")
    if ends[0].returncode > 1 or ends[1].returncode > 1:
        return told
    unlike = [(key, told[0][key], told[1][key]) for key in TOTALS if told[0][key] != told[1][key]]
    expect(not unlike or [key for key, *_ in unlike] == ["compared"] and "folder" in unlike[0][1], f"{what}: {str(unlike)[:600]}")
    here, there = rows_of(told[0], False), rows_of(told[1], True)
    expect(here == there, f"{what}: {here[:2]} {there[:2]}")
    texts = [run_mckpt("diff", x, y, *words).stdout.splitlines() for x, y in ((a, b), (b, a))]
    first = [text[0].split("; the largest")[0] for text in texts]  # distances are by the length of the second side
    expect(first[0] == first[1], f"{what}: {first}")
    drawn = [page_of(x, y, *words) for x, y in ((a, b), (b, a))]
    unlike = [key for key in ("tensors", "bit_equal", "differ", "casts", "squares", "rows_in_all") if drawn[0][key] != drawn[1][key]]
    expect(not unlike and all(page["verdict"] == text[0] for page, text in zip(drawn, texts)), f"{what}: {unlike} of the page")
    expect(sorted((name_of(r), r["at"], r["a"], r["b"]) for r in drawn[0]["rows"]) == sorted((name_of(r), r["at"], r["b"], r["a"]) for r in drawn[1]["rows"]), f"{what}: rows of the page")
    return told


with tempfile.TemporaryDirectory() as scratch:
    one, other = (os.path.join(scratch, name) for name in ("one", "other"))
    os.mkdir(one), os.mkdir(other)
    tensor = changed(os.path.join(scratch, "model"))
    same, unlike = made(TINY_MODEL, one), made(os.path.join(scratch, "model"), other)
    for a, b in itertools.permutations(same, 2):
        # v2 saves main weights in float32, which no other checkpoint is made of without a cast that verify would have to be told of.
        if b == "v2" and a == "fsdp":
            continue
        against = run_mckpt("verify", same[a], "--against", same[b], "--json")
        expect(against.returncode == 0 and json.loads(against.stdout)["equal"], f"{a} {b}: {against.stdout[:300]} {against.stderr[:300]}")
        differs = run_mckpt("verify", same[a], "--against", unlike[b], "--json")
        checks = {c["name"]: c for c in json.loads(differs.stdout)["checks"]}
        expect(differs.returncode == 1 and checks["against"]["status"] == "fail", f"{a} {b}: {tensor} differs: {differs.stdout[:300]}")
    for a, b in itertools.combinations(same, 2):
        for left, right, end in ((same, same, "tensors"), (same, unlike, "values")):
            told = mirrored(left[a], right[b], f"{a} {b} {end}")
            items = sum(r["items"] for r in told[0]["rows"] if r["kind"] == "values")
            expect((end == "values") == (items > 0), f"{a} {b}: {items} items")
    # The folder of a model has its own names in both orders, whatever is beside it, and a GLOB chooses by these.
    for kind in ("fsdp", "v2", "core", "ranks"):
        told = mirrored(same[kind], unlike["model"], f"{kind} model, chosen", "model.*")
        expect({r["name"] for r in told[0]["rows"] if r["kind"] == "values"} == ({tensor} if tensor.startswith("model.") else set()), f"{kind}: {told[0]['rows']}")
        expect(told[0]["tensors"] == 44 and "tensor of the Hugging Face model" in told[0]["compared"], f"{kind}: {told[0]['compared']} {told[0]['tensors']}")
        refused = [run_mckpt("diff", x, y, "decoder.*") for x, y in ((same[kind], same["model"]), (same["model"], same[kind]))]
        expect(all(r.returncode == 1 and "MC1007" in r.stderr for r in refused), f"{kind}: {[r.stderr for r in refused]}")
        # The file with the first difference is the model's in both orders: relative to A, or with the path of B.
        rows = [[r for r in json.loads(run_mckpt("diff", x, y, "--json").stdout)["rows"] if r["kind"] == "values"] for x, y in ((unlike["model"], same[kind]), (same[kind], unlike["model"]))]
        expect(rows[0][0]["file"] and rows[1][0]["file"] == os.path.join(unlike["model"], rows[0][0]["file"]), f"{kind}: {[r[0]['file'] for r in rows]}")
    # One of the two is a checkpoint: the ranks of either side are its ranks, and no setting is passed over.
    for (x, y), setting in itertools.product(((same["model"], same["core"]), (same["core"], same["model"])), ("--path-tp", "--source-tp")):
        run = run_mckpt("diff", x, y, setting, "4")
        expect(run.returncode == 4 and f"{setting} contradicts" in run.stderr, f"{setting}: {run.returncode} {run.stdout} {run.stderr}")
    # A model in codes, and one with an adapter in it.
    quantised, adapters = os.path.join(scratch, "quantised"), os.path.join(DATA, "adapters", "target_parameters")
    expect(run_mckpt("convert", "quantize", TINY_MODEL, quantised, "--scheme", "fp8-block", "-q", "--no-sync").returncode == 0, "quantize")
    merged = os.path.join(scratch, "merged")
    expect(run_mckpt("convert", "to-mcore", os.path.join(adapters, "base"), merged, "-q", "--no-sync").returncode == 0, "to-mcore")
    for b in same:
        mirrored(quantised, same[b], f"quantised {b}")
    for words in ((), ("--base", os.path.join(adapters, "base"))):
        told = mirrored(os.path.join(adapters, "adapter"), merged if words else os.path.join(adapters, "base"), f"adapter {words}", *words)
        expect((told[0]["tensors"], told[0]["differ"]) == (45, 26), f"adapter: {told[0]['tensors']} {told[0]['differ']}")
finish(776)
