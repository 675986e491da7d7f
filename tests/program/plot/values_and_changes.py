"""The numbers in pages are the commands' numbers: --stats has the numbers of mckpt stats, tensor by tensor
and summed over experts, and the page of a diff has the numbers of mckpt diff, with the largest change of
each kind in each layer."""
import json
import math
import os
import struct
import tempfile

from mckpt_tests import pages
from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import TINY_MODEL

LAYER, TENSORS, NUMBERS, FINITE, ZEROS, NANS, INFINITIES, MIN, MAX, MEAN, DEVIATION, L2, HISTOGRAM = range(13)


def near(a, b):
    return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-30)


def write(path, tensors):
    entries, data = {}, b""
    for name, values in tensors.items():
        entries[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += struct.pack(f"<{len(values)}f", *values)
    header = json.dumps(entries).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + data)


with tempfile.TemporaryDirectory(prefix="mckpt_plot_") as folder:
    os.chdir(folder)
    run_mckpt("plot", TINY_MODEL, "--stats", "-o", "tiny.html", "-q")
    made = pages.data("tiny.html")
    stats = {t["name"]: t for t in json.loads(run_mckpt("stats", TINY_MODEL, "--json", "--bins", "32").stdout)["tensors"]}
    single = 0
    for kind in made["values"]["kinds"]:
        for cell in kind["cells"]:
            if "*" in kind["kind"]:
                continue
            name = (f'{kind["section"]}.{cell[LAYER]}.' if kind["section"] else "") + kind["kind"]
            s = stats.pop(name)
            single += 1
            got = [cell[MIN], cell[MAX], cell[MEAN], cell[DEVIATION], cell[L2]]
            expect(all(near(a, b) for a, b in zip(got, [s["min"], s["max"], s["mean"], s["std"], s["l2"]])), f"{name}: {got}, {s}")
            expect_equal(name + ": histogram", cell[HISTOGRAM], s["histogram"])
    expect(single == 21 and all("experts" in name for name in stats), f"{single} kinds, left: {list(stats)[:3]}")

    # Experts are summed: exactly, but for the histogram, which keeps all numbers.
    values = {f"m.layers.3.experts.{e}.up.weight": [e, -e, 2 * e + 1, 0.5] for e in range(5)}
    values["m.layers.3.experts.2.up.weight"] = [math.nan, 0, math.inf, 7]
    values["m.layers.4.experts.0.up.weight"] = [1, 1, 1, 1]
    write("experts.safetensors", values)
    run_mckpt("plot", "experts.safetensors", "--stats", "-o", "experts.html", "-q")
    kinds = pages.data("experts.html")["values"]["kinds"]
    expect(len(kinds) == 1 and [c[LAYER] for c in kinds[0]["cells"]] == [3, 4], f"kinds: {kinds}")
    cell = kinds[0]["cells"][0]
    finite = [x for e in range(5) for x in values[f"m.layers.3.experts.{e}.up.weight"] if math.isfinite(x)]
    mean = sum(finite) / len(finite)
    want = [min(finite), max(finite), mean, math.sqrt(sum((x - mean) ** 2 for x in finite) / len(finite)), math.sqrt(sum(x * x for x in finite))]
    expect(all(near(a, b) for a, b in zip(cell[MIN:HISTOGRAM], want)), f"summed: {cell}, {want}")
    expect_equal("counts", cell[TENSORS:MIN], [5, 20, 18, finite.count(0), 1, 1])
    expect(abs(sum(cell[HISTOGRAM]) - 18) <= 4 and len(cell[HISTOGRAM]) == 32, f"histogram: {cell[HISTOGRAM]}")

    # A diff: three kinds of change in known layers.
    a = {f"m.layers.{l}.{k}.weight": [1.0 + l, 2.0, 3.0, 4.0] for l in range(4) for k in ("q", "up")}
    a |= {f"m.layers.{l}.experts.{e}.w": [float(e), float(l), 1.0] for l in range(4) for e in range(3)}
    a["m.norm"] = [1.0, 1.0]
    b = {name: list(values) for name, values in a.items()}
    b["m.layers.1.q.weight"][0] = 2.5
    b["m.layers.2.experts.1.w"][2] = 4.0
    b["m.layers.2.experts.2.w"][2] = 1.25
    b["m.layers.3.up.weight"][1] = math.nan
    del b["m.layers.0.up.weight"]
    write("a.safetensors", a), write("b.safetensors", b)
    run = run_mckpt("diff", "a.safetensors", "b.safetensors", "--html", "change.html", "--json")
    said, made = json.loads(run.stdout), pages.data("change.html")
    expect(run.returncode == 1 and all(said[k] == made[k] for k in ("equal", "alike", "tensors", "bit_equal", "within", "differ", "casts")), f"counts: {said} {made}")
    expect_equal("rows", [(r["kind"], r["name"], r.get("relative_l2")) for r in made["rows"]], [(r["kind"], r["name"], r["relative_l2"]) for r in said["rows"]])
    cells = {(k["kind"], c[0]): c for k in made["changes"]["kinds"] for c in k["cells"]}
    expect(cells["q.weight", 1][2] == 1 and near(cells["q.weight", 1][9], 0.5 / math.sqrt(2.5**2 + 29)), f'q: {cells["q.weight", 1]}')
    expect(cells["experts.*.w", 2][1:3] == [3, 2] and near(cells["experts.*.w", 2][9], 3 / math.sqrt(1 + 4 + 16)), f'experts: {cells["experts.*.w", 2]}')
    expect(cells["up.weight", 3][7] == 1 and cells["up.weight", 0][4] == 1, f'NaN and lost: {cells["up.weight", 3]} {cells["up.weight", 0]}')
    same = [c for key, c in cells.items() if key not in {("q.weight", 1), ("experts.*.w", 2), ("up.weight", 3), ("up.weight", 0)}]
    expect(len(same) == 9 and all(sum(c[2:9]) == 0 and c[9] is None for c in same), f"equal: {same}")
    kinds = made["changes"]["kinds"]
    expect([k["kind"] for k in kinds] == ["m.norm", "experts.*.w", "q.weight", "up.weight"] and all(k["cells"] for k in kinds) and not made["changes"]["kinds_left_out"], f"kinds: {kinds}")
    expect("tensors differ" in made["verdict"], made["verdict"])
finish(60)
