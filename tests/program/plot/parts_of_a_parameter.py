"""mckpt plot --parts: the picture of one fused parameter. Each rank has the items in each part that the boxes of `ls --as fsdp` give
it; the rule of local counts is applied here item by item. The drawing is looked at in a browser, where one is
installed."""
import os
import re
import tempfile
import xml.dom.minidom

from mckpt_tests.browser import Browser
from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.golden import listing
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

MODELS = os.path.join(DATA, "golden", "models")
LABELS = {"_w": "W", "_v": "V"}


def plot(model, name, out, *flags, status=0):
    run = run_mckpt("plot", os.path.join(MODELS, model), name, "--as", "fsdp", "--parts", "-o", out, *flags)
    expect(run.returncode == status, f"{name} {flags}: {run.returncode} {run.stdout}{run.stderr}")
    return run.stderr


def boxes(model, name, rank, *flags):
    """Part -> the items that the rank has of it, by the boxes of its keys."""
    out = {}
    for row in listing(os.path.join(MODELS, model), "--as", "fsdp", *flags, "--rank", rank, digest=False):
        if row["name"].startswith(f"model.module.{name}"):
            part = row["name"].removeprefix(f"model.module.{name}").removeprefix(".")
            items = sum(c["sizes"][0] for c in row["chunks"]) * row["shape"][1]
            out[LABELS.get(part, part)] = items
    return out


def number(text):
    return int(text.replace(",", ""))


def shown(text):
    """Rank -> (part -> items, [right, wrong, lost]) of a picture in text."""
    out, ranks = {}, re.findall(r"^rank (\d+) .*?  ((?:\w+ [\d,]+(?:, )?)+)\n  by count .*?  ([\d,]+) right, ([\d,]+) wrong, ([\d,]+) lost$", text, re.M)
    for rank, parts, *counts in ranks:
        out[int(rank)] = {p: number(n) for p, n in re.findall(r"(\w+) ([\d,]+)", parts)}, [number(n) for n in counts]
    return out


def by_local_count(parts, begin, end):
    """Items of [begin, end) in their part, in another one, in none; `parts`: the ends of all parts."""
    starts, right, wrong = [0, *parts[:-1]], 0, 0
    local, whole = end - begin, parts[-1]
    for item in range(begin, end):
        own = next(p for p, stop in enumerate(parts) if item < stop)
        rule = next((p for p, (start, stop) in enumerate(zip(starts, parts)) if start * local // whole <= item < stop * local // whole), None)
        right, wrong = right + (rule == own), wrong + (rule not in (None, own))
    return [right, wrong, local - right - wrong]


with tempfile.TemporaryDirectory(prefix="mckpt_parts_") as folder:
    os.chdir(folder)
    for model, name, ranks, flags in [
        ("qwen3_dense", "decoder.layers.1.mlp.linear_fc1.weight", range(5), ["--dp", 5]),
        ("qwen3_dense", "decoder.layers.0.mlp.linear_fc1.weight", range(0, 6, 2), ["--tp", 2, "--dp", 3]),
        ("qwen3_5", "language_model.decoder.layers.0.self_attention.in_proj.weight", range(6), ["--dp", 6]),
        ("qwen3_moe", "decoder.layers.2.mlp.experts.linear_fc1.weight5", range(1, 8, 4), ["--ep", 4, "--dp", 8]),
    ]:
        plot(model, name, "parts.txt", *flags)
        with open("parts.txt") as f:
            text = f.read()
        have, at = shown(text), 0
        ends = [number(end) for end in re.findall(r"\[\d+, (\d+)\)", text.split("\n\n")[1].splitlines()[1])]
        for rank in ranks:
            want = {part: items for part, items in boxes(model, name, rank, *flags).items() if items}
            items = sum(want.values())
            if not want:
                expect(rank not in have, f"{name}: rank {rank} has nothing of it")
                continue
            got = have.get(rank, ({}, []))
            expect_equal(f"{name}: rank {rank}", sorted(got[0].items()), sorted(want.items()))
            expect_equal(f"{name}: rank {rank} by count", got[1], by_local_count(ends, at, at + items))
            at += items
        expect(at == ends[-1], f"{name}: {at} of {ends[-1]} items are shown")

    # Copies do not count: ranks that have all of it, and HSDP instances that repeat each other.
    name, totals = "decoder.layers.1.mlp.linear_fc1.weight", set()
    for flags in (["--strategy", "no_shard"], ["--strategy", "no_shard", "--hsdp", 2], ["--hsdp", 4], ["--hsdp", 2], ["--hsdp", 2, "--hsdp-outer", "shard"], []):
        plot("qwen3_dense", name, "parts.txt", "--dp", 4, *map(str, flags))
        with open("parts.txt") as f:
            text = f.read()
        items = [number(n) for n in re.search(r"All ranks, of\s([\d,]+) items: ([\d,]+)\s+right, ([\d,]+) wrong, ([\d,]+)", " ".join(text.split())).groups()]
        expect(sum(items[1:]) == items[0], f"{flags}: {items}")
        totals.add(items[0])
    expect(len(totals) == 1, f"{totals}")

    # Drawings: of few ranks, of many, of narrow parts; as XML, and in a browser.
    plot("qwen3_5", "*layers.0.self_attention.in_proj.weight", "six.svg", "--dp", 6)
    plot("qwen3_dense", "*layers.0.mlp.linear_fc1.weight", "one.svg", "--dp", 1)
    plot("qwen3_dense", "*layers.0.mlp.linear_fc1.weight", "many.svg", "--dp", 400)
    for name in ("six", "one", "many"):
        drawing = xml.dom.minidom.parse(name + ".svg")
        wide = float(drawing.documentElement.getAttribute("width"))
        for rect in drawing.getElementsByTagName("rect"):
            if not rect.getAttribute("width").endswith("%") and rect.parentNode.tagName == "svg":
                expect(float(rect.getAttribute("x")) + float(rect.getAttribute("width")) <= wide, f"{name}: a bar is outside")
    browser = Browser.find()
    if browser:
        with browser:
            for name in ("six", "one", "many"):
                for dark in (False, True):
                    browser.open(name + ".svg", width=1200, height=800, dark=dark)
                    expect(not browser.errors and browser.requests == ["file://" + os.path.abspath(name + ".svg")], f"{name}: {browser.errors} {browser.requests}")
                    ends = browser.run("Math.max(...[...document.querySelectorAll('text')].map((t) => t.getBBox().x + t.getBBox().width))")
                    expect(ends <= 1200, f"{name}: a text ends at {ends}")
                    labels = "[...document.querySelectorAll('text.middle')].map((t) => t.getBBox()).map((b) => [b.x, b.x + b.width])"
                    places = sorted(browser.run(labels))
                    expect(all(a[1] <= b[0] for a, b in zip(places, places[1:])), f"{name}: labels of parts are over each other: {places}")
                    ground = browser.run("getComputedStyle(document.querySelector('rect.ground[width=\"100%\"]')).fill")
                    expect(ground == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)"), f"{name}: {ground}")

    for name, out, flags, says in [("*linear_fc1.weight", "a.svg", [], "3 match"), ("*linear_fc2.weight", "a.svg", [], "has no parts"), ("*layers.0*fc1.weight", "a.html", [], "SVG"),
                                   ("*layers.0*fc1.weight", "a.png", [], ".svg"), ("*layers.0*fc1.weight", "a.svg", ["--memory"], "two pictures")]:
        expect(says in plot("qwen3_dense", name, out, *flags, status=2), f"{name} {out} {flags}")
    expect("MC1007" in plot("qwen3_dense", "*fc9.weight", "a.svg", status=1), "no such parameter")
    expect("--freeze: no name matches" in plot("qwen3_dense", "*layers.0*fc1.weight", "a.svg", "--freeze", "nosuch", status=1), "a name that nothing has")
    expect("MC0001" in plot("qwen3_dense", "*layers.0*fc1.weight", "a.svg", "--spelling", "submodule-conv", status=2), "a spelling without effect")
    run = run_mckpt("plot", os.path.join(MODELS, "qwen3_dense"), "-o", "a.txt")
    expect(run.returncode == 2 and "--parts" in run.stderr, run.stderr)
    explained = run_mckpt("explain", "MC1311").stdout
    expect("rank 1                      WWWWVVVVVVVVVVVV" in explained and "of 40 items: 8 right, 8 wrong, 24 lost" in explained, explained)
finish(80)
