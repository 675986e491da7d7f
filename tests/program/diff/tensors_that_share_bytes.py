"""Two names of one storage against two tensors of their own: each name is compared with the values of its own tensor, in both orders
and by every comparison, as torch.equal says.
"""

import itertools
import json
import os

import torch

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt

temporary = scratch()
x = torch.arange(60.0).reshape(12, 5)
y, z = x + 1, x.clone()
FILES = {
    "tied": {"a": x, "b": x},
    "apart": {"a": z, "b": y},
    "other_order": {"b": z, "a": y},
    "a_view": {"a": x, "b": x[:6]},
    "parts": {"a": x[:6], "b": x[3:9]},
    "of_parts": {"a": z[:6], "b": y[3:9]},
    "rounded": {"a": x.bfloat16(), "b": x.bfloat16()},
}


def path(name):
    return os.path.join(temporary.name, f"{name}.pt")


def main():
    for name, tensors in FILES.items():
        torch.save(tensors, path(name))
    for a, b in itertools.product(FILES, FILES):
        ours, theirs = FILES[a], FILES[b]
        unlike = {k for k in ours if ours[k].shape == theirs[k].shape and not torch.equal(ours[k].float(), theirs[k].float())}
        answer = json.loads(run_mckpt("diff", path(a), path(b), "--json").stdout)
        expect_equal(f"{a} and {b}", sorted(r["name"] for r in answer["rows"] if r["kind"] == "values"), sorted(unlike))
        for row in answer["rows"]:
            if row["kind"] == "values":
                expect(row["a"] != row["b"], f"{a} and {b}: {row}")
    for a, b in (("tied", "apart"), ("apart", "tied"), ("tied", "other_order"), ("parts", "of_parts")):
        answer = json.loads(run_mckpt("verify", path(a), "--against", path(b), "--json").stdout)
        named = sorted({f["tensor"] for f in answer["findings"] if f["code"] == "MC1010"})
        expect_equal(f"verify {a} {b}", named, [k for k in sorted(FILES[a]) if not torch.equal(FILES[a][k], FILES[b][k])])


main()
finish(40)
