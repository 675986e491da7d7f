"""Two folders of which one has names without the front `model.` of its class, or with one more: each side whose config.json says the class is compared under
the names of the class, as conversions read it, in both orders. A difference is found under these names; nothing is renamed where both have the same names, or
where no config.json says the class."""
import json
import os

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import safetensors, scratch, write_safetensors
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import TINY_MODEL

temporary = scratch()
FRONT = "model."
LACK, MORE = "lack the 'model.' in front that the class has", "have one 'model.' more in front than the class has"
SAID = ": read as transformers loads them, under the names of the class"
NORM = "model.norm.weight"


def lacking(name):
    return name.removeprefix(FRONT)


def twice(name):
    return FRONT + name


def folder(name, renamed=str, change=None, config=True):
    out = os.path.join(temporary.name, name)
    os.mkdir(out)
    tensors = safetensors(TINY_MODEL)
    if change:
        change(tensors)
    write_safetensors(os.path.join(out, "model.safetensors"), {renamed(key): value for key, value in tensors.items()})
    if config:
        with open(os.path.join(TINY_MODEL, "config.json")) as file, open(os.path.join(out, "config.json"), "w") as copy:
            copy.write(file.read())
    return out


def other_norm(tensors):
    kind, shape, data = tensors[NORM]
    tensors[NORM] = (kind, shape, bytes([data[0] ^ 1]) + data[1:])


def check(what, a, b, renamed, differ=(), only=0):
    """`renamed`: the sides under other names than in their files, with how their names differ; one sentence has all. `differ`: names of the tensors that differ; `only`: how many tensors each side has alone."""
    for x, y in ((a, b), (b, a)):
        run, told = run_mckpt("diff", x, y), json.loads(run_mckpt("diff", x, y, "--json").stdout)
        expect((run.returncode, told["equal"]) == (int(bool(differ or only)), not (differ or only)), f"{what}: {run.stdout}")
        rows = [(row["kind"], row["name"]) for row in told["rows"]]
        expect([name for kind, name in rows if kind == "values"] == list(differ), f"{what}: {rows}")
        expect(sum(kind == "only_a" for kind, name in rows) == sum(kind == "only_b" for kind, name in rows) == only, f"{what}: {rows}")
        names = ", ".join(f"names in {side} {renamed[side]}" for side in (x, y) if side in renamed)
        expect(told["compared"].count(SAID) == bool(renamed) and (not renamed or told["compared"].endswith(f"; {names}{SAID}")), f"{what}: {told['compared']}")
        expect(run.stdout.count(SAID) == bool(renamed), f"{what}: {run.stdout}")
        against = run_mckpt("verify", x, "--against", y)
        said = against.stdout + against.stderr
        expect(against.returncode == int(bool(differ or only)) and f"{x}: {'not equal' if differ or only else 'equal'}" in said, f"{what}: {said}")
        expect(said.count(f"{names}{SAID}" if renamed else SAID) == bool(renamed) and all(name in said for name in differ), f"{what}: {said}")
        report = json.loads(run_mckpt("verify", x, "--against", y, "--json").stdout)
        expect(report["ok"] == (not (differ or only)) and sorted({f["tensor"] for f in report["findings"] if not only}) == sorted(differ), f"{what}: {report['findings'][:3]}")


plain, other = folder("plain"), folder("other", change=other_norm)
front, more = folder("front", lacking), folder("more", twice)
check("without the front", front, plain, {front: LACK})
check("with one more", more, plain, {more: MORE})
check("without it and with one more", front, more, {front: LACK, more: MORE})
check("a value", front, other, {front: LACK}, differ=[NORM])
check("the same names", front, folder("front_too", lacking), {})
alone = folder("alone", config=False)
for x, y in ((front, alone), (alone, front)):
    run, against = run_mckpt("diff", x, y), run_mckpt("verify", x, "--against", y)
    expect(run.stdout.startswith("no tensor differs: 45 are bit-equal; 1 difference in objects and files") and run.stdout.count(SAID) == 1, f"no config on the other side: {run.stdout}")
    expect(against.returncode == 0 and f"{x}: equal, but 1 file differs" in against.stdout, f"no config on the other side: {against.stdout}")
check("no config that says the class", folder("unsaid", lacking, config=False), plain, {}, only=44)
run = run_mckpt("diff", front, other, NORM)
expect(run.returncode == 1 and run.stdout.startswith(f"1 of 1 tensor that matches '{NORM}' differs"), run.stdout + run.stderr)
finish(40)
