"""Two .pt files of the same names and values, whose dicts and lists are nested otherwise, are equal by name, and the nesting is named as not compared:
in both orders, by `diff` and by `verify --against`, in text and JSON. Copies, and dicts in another order, have no such line."""

import json
import os

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt

need("torch")
import torch  # noqa: E402

temporary = scratch()
x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0])
UNLIKE = {
    "a number and its text": ({1: 5}, {"1": 5}),
    "keys of tensors": ({1: x, "k": y}, {"1": x, "k": y}),
    "a list and a dict": ([x, y], {"0": x, "1": y}),
    "a list and a tuple": ({"l": [x, y]}, {"l": (x, y)}),
    "a dot and a dict": ({"a.b": x}, {"a": {"b": x}}),
    "a flag and its text": ({"s": {True: x}}, {"s": {"True": x}}),
}
ALIKE = {
    "a copy": ({1: x, "l": [x, {2: y}]}, {1: x, "l": [x, {2: y}]}),
    "another order": ({"a.b": x, 2: y, "c.d": y}, {"c.d": y, 2: y, "a.b": x}),
}
WORDS = "not compared: how dicts and lists lead to the values"


def saved(name, value):
    path = os.path.join(temporary.name, name)
    torch.save(value, path)
    return path


for told, pairs in ((True, UNLIKE), (False, ALIKE)):
    for what, sides in pairs.items():
        for a, b in (sides, sides[::-1]):
            a, b = saved("a.pt", a), saved("b.pt", b)
            diff, against = run_mckpt("diff", a, b), run_mckpt("verify", a, "--against", b)
            notes = json.loads(run_mckpt("diff", a, b, "--json").stdout)["not_compared"]
            checks = {check["name"] for check in json.loads(run_mckpt("verify", a, "--against", b, "--json").stdout)["checks"]}
            shown = f"{what}: {diff.stdout}{diff.stderr} {against.stdout}{against.stderr} {notes} {checks}"
            expect(diff.returncode == 0 and against.returncode == 0, shown)
            expect((WORDS in diff.stdout) == told, shown)
            expect(("equal, but the nesting of the values was not compared" in against.stdout) == told, shown)
            expect(any(WORDS in note for note in notes) == told and ("nesting" in checks) == told, shown)
finish(60)
