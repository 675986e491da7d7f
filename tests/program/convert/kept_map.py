"""A checkpoint that was made with --map-file keeps the map beside its data, and an exported folder has it as
mckpt_map.json: export, verify, reshard, roundtrip and a second conversion need the file no more, and another one is refused.
"""

import json
import os
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import difference
from mckpt_tests.models import example, renamed_models
from mckpt_tests.program import run_mckpt

models, source, mine = renamed_models()
folder = tempfile.TemporaryDirectory(prefix="mckpt_kept_map_")


def place(name):
    return os.path.join(folder.name, name)


def run(*args):
    return run_mckpt(*args, timeout=100)


def ends(status, *args, word=""):
    result = run(*args)
    expect(
        result.returncode == status, f"{args}: exit status {result.returncode}, not {status}: {result.stdout[-500:]}{result.stderr[-500:]}"
    )
    expect(word in result.stdout + result.stderr, f"{args}: nothing of '{word}': {result.stderr[-500:]}")


def write(name, text):
    with open(place(name), "w") as f:
        f.write(text)
    return place(name)


rows = write("rows.json", example())
same = write("same.json", json.dumps(json.loads(example()), indent=7))  # other bytes, the same map
other = json.loads(example())
other["unread"][0]["reason"] = "of another map"
other = write("other.json", json.dumps(other))
ckpt, moved = place("ckpt"), place("moved")
ends(0, "convert", "hf-to-fsdp", mine, ckpt, "--map-file", rows, "--tp", 2, "--vocab-size", "auto", "--no-sync")
ends(0, "convert", "reshard", ckpt, moved, "--dp", 3, "--no-sync")
for at in (ckpt, moved):
    back = f"{at}_back"
    ends(0, "export", at, back, "--no-sync")
    ours = sorted(name for name in os.listdir(back) if "map" in name or "mckpt" in name)
    expect(ours == ["mckpt_manifest.json", "mckpt_map.json"], f"{back} has other files of ours: {ours}")
    with open(os.path.join(back, "mckpt_map.json")) as f:
        expect(f.read() == example(), f"the map of {back} is another one")
    ends(0, "verify", at, "--against", mine)
    ends(0, "verify", back, "--against", at)
    ends(0, "verify", back, "--against", mine)
    again = f"{at}_again"
    ends(0, "convert", "hf-to-fsdp", back, again, "--vocab-size", "auto", "--no-sync")
    ends(0, "verify", again, "--against", mine)
    ends(0, "export", again, f"{at}_back_again", "--no-sync")
    expect(difference(back, f"{at}_back_again") == "", f"the second export of {at} is another one")
    ends(0, "export", at, f"{at}_assets", "--assets", mine, "--no-sync")
    expect(difference(back, f"{at}_assets") == "", f"--assets changes the result of {at}")
    ends(0, "export", at, f"{at}_same", "--map-file", same, "--no-sync")
ends(0, "verify", moved, "--against", ckpt)
for command in (
    ["export", ckpt, place("out")],
    ["export", ckpt, place("out"), "--assets", mine],
    ["convert", "reshard", moved, place("out")],
    ["verify", ckpt, "--against", mine],
    ["verify", place("ckpt_back"), "--against", ckpt],
    ["convert", "hf-to-fsdp", place("ckpt_back"), place("out")],
):
    ends(4, *command, "--map-file", other, word="MC2015")
expect(not os.path.exists(place("out")), "what was refused was written")
# One that was made without a map may get one.
plain = place("plain")
ends(0, "convert", "hf-to-fsdp", source, plain, "--vocab-size", "auto", "--no-sync")
ends(0, "export", plain, place("plain_back"), "--no-sync")

live = run("roundtrip", mine, "--map-file", rows, "--checkpoint", place("live"), "--no-sync")
if "MC0004" not in live.stderr:
    expect(live.returncode == 0, f"roundtrip: {live.stderr[-500:]}")
    ends(0, "export", place("live"), place("live_back"), "--no-sync")
    ends(0, "verify", place("live_back"), "--against", mine)
    ends(0, "roundtrip", place("live_back"), "--no-sync")
finish(49)
