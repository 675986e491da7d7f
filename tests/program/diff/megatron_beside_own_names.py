"""A checkpoint of Megatron's and one with the model's own names: the same answer in both orders, where both can be compared and where they are refused."""
import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

OWN = [os.path.join(DATA, *p) for p in (("own_names", "fsdp2_app", "checkpoint"), ("own_names", "verl_fsdp2", "checkpoint"), ("dcp", "fsdp2"),
                                        ("zero", "zero2_tied_w2"), ("zero", "zero1_tied_w2"), ("rank_files", "rows"))]
TURNED = {"only_a": "only_b", "only_b": "only_a"}


def rows(told, turned):
    """The rows about the two sides, in the first order."""
    out = []
    for r in told["rows"]:
        a, b = (r["b"], r["a"]) if turned else (r["a"], r["b"])
        out.append((TURNED.get(r["kind"], r["kind"]) if turned else r["kind"], r["name"], r["at"], a, b, r["items"]))
    return sorted(out)


with tempfile.TemporaryDirectory() as scratch:
    runs = {}
    for mode in ("to-mcore", "hf-to-fsdp"):
        runs[mode] = os.path.join(scratch, mode)
        expect(run_mckpt("convert", mode, TINY_MODEL, runs[mode], *(("--tp", "1") if mode == "hf-to-fsdp" else ()), "-q").returncode == 0, mode)
    bare = os.path.join(scratch, "bare")
    shutil.copytree(os.path.join(runs["to-mcore"], "release"), bare)
    shutil.rmtree(os.path.join(bare, "hf_assets"))
    # The model's own tensors, as a training run saves them.
    own = os.path.join(scratch, "own")
    expect(run_mckpt("convert", "to-dcp", TINY_MODEL, own, "-q").returncode == 0, "to-dcp")
    # Without a config no import can be planned: tensors are compared by their names, in either order.
    unknown = [os.path.join(DATA, "dcp", name) for name in ("uneven_tp2dp2", "uneven_4")]
    ends = [run_mckpt("diff", a, b, "--json") for a, b in (unknown, unknown[::-1])]
    expect([e.returncode for e in ends] == [1, 1], f"{[e.stderr[:300] for e in ends]}")
    told = [json.loads(e.stdout) for e in ends]
    expect(rows(told[0], False) == rows(told[1], True), f"{rows(told[0], False)[:3]} {rows(told[1], True)[:3]}")
    expect(told[0]["tensors"] == told[1]["tensors"] and told[0]["not_read"] == told[1]["not_read"], f"{told[0]['tensors']} {told[1]['tensors']}")
    ends = [run_mckpt("verify", a, "--against", b, "--json") for a, b in (unknown, unknown[::-1])]
    expect([e.returncode for e in ends] == [1, 1], f"{[e.stderr[:300] for e in ends]}")
    alone = os.path.join(DATA, "pt", "one_tensor.pt")
    ends = [run_mckpt("diff", a, b) for a, b in ((alone, unknown[1]), (unknown[1], alone))]
    expect(all(e.returncode == 3 and "MC1112" in e.stderr for e in ends), f"{[e.stderr[:300] for e in ends]}")
    compared = 0
    for run in (*runs.values(), bare):
        for other in (*OWN, own):
            ends = [run_mckpt("diff", a, b, "--json") for a, b in ((run, other), (other, run))]
            told = [json.loads(e.stdout) for e in ends]
            codes = [t.get("error", {}).get("code") if t.get("error") else None for t in told]
            expect(ends[0].returncode == ends[1].returncode and codes[0] == codes[1], f"{run} {other}: {[e.returncode for e in ends]} {codes}")
            if codes == [None, None]:
                compared += 1
                expect(rows(told[0], False) == rows(told[1], True), f"{run} {other}: {rows(told[0], False)[:3]} {rows(told[1], True)[:3]}")
    expect(compared > 0, f"{compared} pairs could be compared")
finish(29)
