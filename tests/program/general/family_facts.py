"""The facts about families: every family has them, the grids are the grids of test_data/golden,
docs/families.md has the table that `mckpt mappings list` prints, and README.md names the models that
people look for.

usage: family_facts.py [--update]      --update writes the grids into the tables of mappings/models, and the list into docs/families.md
"""
import collections
import json
import os
import re
import sys

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, SOURCE

GOLDEN = os.path.join(DATA, "golden")
README = os.path.join(SOURCE, "README.md")
PAGE = os.path.join(SOURCE, "docs", "families.md")
TABLES = os.path.join(SOURCE, "mappings", "models")
TABLE = re.compile(r"(?<=<!-- families -->\n).*?(?=<!-- end of families -->)", re.S)
NAMES = re.compile(r"(?<=<!-- models -->\n).*?(?=<!-- end of models -->)", re.S)


def grid(run):
    """tp2_cp1_ep4_world4 -> tp2 ep4"""
    sizes = {name: int(n) for name, n in re.findall(r"(?<![a-z])(tp|cp|pp|ep|etp)(\d+)", run)}
    return " ".join(f"{name}{sizes[name]}" for name in ("tp", "cp", "pp", "ep", "etp") if sizes.get(name, 1) > 1) or "1"


def model_type(folder):
    with open(os.path.join(folder, "config.json")) as f:
        return json.load(f)["model_type"]


def golden_grids():
    """The grids of each model type whose ranks real Megatron had."""
    grids = collections.defaultdict(set)
    for kind in ("ranks", "fsdp", "torch_dist"):
        for name in os.listdir(os.path.join(GOLDEN, kind)):
            model, run = name.split(".", 1)
            grids[model_type(os.path.join(GOLDEN, "models", model))].add(grid(run))
    families = os.path.join(GOLDEN, "families")
    with open(os.path.join(families, "pending.txt")) as f:
        pending = f.read().split()
    for model in os.listdir(families):
        folder = os.path.join(families, model)
        if model in pending or not os.path.isdir(folder):
            continue
        with open(os.path.join(folder, "ranks.txt")) as f:
            runs = [line.replace("=", "") for line in f if line.startswith("run ")]
        runs += [name for name in os.listdir(folder) if name.startswith(("fsdp.", "torch_dist."))]
        grids[model_type(folder)].update(grid(run) for run in runs)
    return grids


def write_grids(tested):
    """.facts = {"examples", "quantised", "grids"} of the family that was named last."""
    place = re.compile(r'(\.name = "(\w+)"(?:(?!\.name = ).)*?\.facts = \{\s*(?:"[^"]*"\s*)+,\s*"[^"]*",\s*)"[^"]*"', re.S)
    for name in sorted(os.listdir(TABLES)):
        path = os.path.join(TABLES, name)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        changed = place.sub(lambda m: f'{m[1]}"{tested.get(m[2], "")}"', text)
        if changed != text:
            with open(path, "w", encoding="utf-8") as f:
                f.write(changed)


answer = run_mckpt("mappings", "list", "--json", timeout=60)
expect_equal("mappings list", [answer.returncode, answer.stderr], [0, ""])
families = json.loads(answer.stdout)["families"]
grids = golden_grids()
tested = {f["name"]: ", ".join(sorted(set().union(*(grids[t] for t in f["model_types"])))) for f in families}
if "--update" in sys.argv:
    write_grids(tested)
for family in families:
    name = family["name"]
    expect(family["examples"], f"{name} has no facts in its table of mappings/models")
    if "--update" not in sys.argv:
        expect_equal(f"grids of {name}", [family["tested"]], [tested[name]])


def cell(text):
    return text or "-"


rows = ["| family | on the hub | quantised as | compared with real ranks on |", "|---|---|---|---|"]
rows += [f"| `{f['name']}` | {cell(f['examples'])} | {cell(f['quantised'])} | {cell(tested[f['name']])} |" for f in families]
want = "\n" + "\n".join(rows) + "\n\n"
with open(PAGE, encoding="utf-8") as f:
    page = f.read()
found = TABLE.search(page)
if expect(found, "docs/families.md has no place for the table of families") and "--update" in sys.argv:
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(page[:found.start()] + want + page[found.end():])
elif found:
    expect(found[0] == want, "docs/families.md has another table of families: tests/program/general/family_facts.py --update writes it")


def plain(text):
    """Text without what people write in several ways: "Gemma 4", "gemma-4"."""
    return re.sub(r"[\s_-]", "", text.lower())


with open(README, encoding="utf-8") as f:
    named = NAMES.search(f.read())
names = [plain(name) for name in re.split(r"[,;]", named[0])] if expect(named, "README.md has no place for the names of models") else []
for family in families:
    expect(any(name in plain(family["examples"]) for name in names), f"README.md names no model of the family {family['name']}: {family['examples']}")
for name in names:
    expect(any(name in plain(family["examples"]) for family in families), f"README.md names a model of no family: {name}")
finish(3 * len(families) + len(names) + 3)
