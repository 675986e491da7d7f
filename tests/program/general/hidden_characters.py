"""Characters of which nothing is seen, or that turn the direction of text, are shown as escapes: in text, in JSON, and in the HTML and SVG that are drawn."""
import json
import os
import struct
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt

HIDDEN = [0xAD, 0x34F, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF, 0xFFF9, 0xE0001, 0xE0041]
SHOWN = [0xE4, 0x3B1, 0x65E5, 0x1F600]  # what has a form stays


def write(path, names):
    header = json.dumps({n: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i, n in enumerate(names)}, ensure_ascii=False).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + bytes(len(names)))


with tempfile.TemporaryDirectory() as scratch:
    path, other = os.path.join(scratch, "w.safetensors"), os.path.join(scratch, "v.safetensors")
    names = [f"a{chr(c)}b.weight" for c in HIDDEN + SHOWN]
    write(path, names), write(other, ["x"])
    answers = {" ".join(w): run_mckpt(*w) for w in (("ls", path), ("inspect", path), ("diff", path, other, "-v"), ("verify", path), ("ls", path, "--json"),
                                                    ("inspect", path, "--json"), ("diff", path, other, "--json"), ("verify", path, "--json"))}
    for words, run in answers.items():
        raw = [hex(c) for c in HIDDEN if chr(c) in run.stdout + run.stderr]
        expect(not raw, f"{words}: raw {raw}")
    listed = {t["name"] for t in json.loads(answers[f"ls {path} --json"].stdout)["tensors"]}
    expect(listed == set(names), f"a reader of the JSON has the names: {listed ^ set(names)}")
    expect(all(chr(c) in answers[f"ls {path}"].stdout for c in SHOWN), "what has a form is shown")
    for kind in ("html", "svg"):
        page = os.path.join(scratch, f"map.{kind}")
        run = run_mckpt("plot", path, "-o", page)
        if not expect(run.returncode == 0, f"{kind}: {run.stderr}"):
            continue
        with open(page, encoding="utf8") as f:
            text = f.read()
        raw = [hex(c) for c in HIDDEN if chr(c) in text]
        expect(not raw, f"{kind}: raw {raw}")
finish(13)
