"""Shards of torch DCP's Hugging Face writer say nowhere how many ranks there were or how large a tensor is: the config.json of the
model judges whether the last ones are there, in verify and in every conversion; without one, that it cannot be known is said.
"""

import json
import os
import pathlib
import shutil
import struct

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

temporary = scratch()
MODEL = pathlib.Path(DATA, "models", "tiny_qwen3_moe")
UNKNOWN = "whether the shards of the last ranks are there cannot be known"


def tensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    for name, t in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            yield name, t, data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]]


def write_shards(folder, ranks):
    """Rows are split over the ranks; what has no two rows for each is of rank 0."""
    pieces = [({}, {}, []) for _ in range(ranks)]
    for path in sorted(MODEL.glob("*.safetensors")):
        for name, t, data in tensors(path):
            rows = t["shape"][0]
            for r, (header, info, parts) in enumerate(pieces):
                begin, end = (rows * r // ranks, rows * (r + 1) // ranks) if rows >= 2 * ranks else (0, rows if r == 0 else 0)
                if begin == end:
                    continue
                part = data[len(data) // rows * begin:len(data) // rows * end]
                at = sum(map(len, parts))
                header[name] = {"dtype": t["dtype"], "shape": [end - begin, *t["shape"][1:]], "data_offsets": [at, at + len(part)]}
                info[name] = {"saved_offsets": [begin] + [0] * (len(t["shape"]) - 1)}
                parts.append(part)
    folder.mkdir(parents=True)
    for r, (header, info, parts) in enumerate(pieces):
        text = json.dumps({"__metadata__": {"DCP_SHARDING_INFO": json.dumps(info), "DCP_VERSION": "1.0"}, **header}).encode()
        name = f"shard-{r + 1:05d}-model-00001-of-00001.safetensors"
        (folder / name).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def mckpt(*args):
    run = run_mckpt(*args)
    return run.returncode, run.stdout, run.stderr


def conversions(source, *more):
    """The answer of each command: exit status and stderr."""
    for command, target in ((["export"], "hf"), (["convert", "to-safetensors"], "one.safetensors"), (["convert", "to-dcp"], "dcp")):
        out = pathlib.Path(temporary.name, "out", target)
        shutil.rmtree(out.parent, ignore_errors=True)
        out.parent.mkdir()
        status, _, err = mckpt(*command, source, out, "--no-sync", "-q", *more)
        yield command[-1], status, err, out.exists()


def main():
    whole = pathlib.Path(temporary.name, "whole")
    write_shards(whole, 3)
    shutil.copy(MODEL / "config.json", whole)
    status, out, _ = mckpt("verify", whole)
    expect(status == 0 and "pass  model    45 tensors" in out and "warn" not in out, out)
    for command, status, err, there in conversions(whole):
        expect((status, there) == (0, True) and UNKNOWN not in err, f"{command}: {err}")

    cut = pathlib.Path(temporary.name, "cut")
    shutil.copytree(whole, cut)
    os.remove(cut / "shard-00003-model-00001-of-00001.safetensors")
    for more in ([], ["--assets", cut], ["--assets", f"{cut}/"]):
        status, out, _ = mckpt("verify", cut, *more)
        expect(status == 1 and "problem[MC2005]" in out and ": expected [32, 16], found [21, 16]" in out, out)
    answer = json.loads(mckpt("verify", cut, "--json")[1])
    check = [c for c in answer["checks"] if c["name"] == "model"][0]
    expect((answer["ok"], check["status"]) == (False, "fail"), f"{answer}")
    for command, status, err, there in conversions(cut):
        expect((status, there) == (3, False) and "error[MC2005]" in err, f"{command}: {err}")

    # A config beside the folder counts as well, as one in it does.
    inside = pathlib.Path(temporary.name, "outside", "sharded")
    shutil.copytree(cut, inside)
    shutil.move(inside / "config.json", inside.parent)
    expect(mckpt("verify", inside)[0] == 1, "a config around the folder")

    # Without a config, and with one of a model that no table has.
    unknown = pathlib.Path(temporary.name, "unknown")
    shutil.copytree(cut, unknown)
    (unknown / "config.json").write_text('{"model_type": "unheard_of", "architectures": ["UnheardOf"]}')
    status, out, _ = mckpt("verify", unknown)
    expect(status == 0 and UNKNOWN in out and "with warnings" in out, out)
    for command, status, err, there in conversions(unknown):
        expect((status, there) == (0, True) and UNKNOWN in err, f"{command}: {err}")
    os.remove(unknown / "config.json")
    status, out, _ = mckpt("verify", unknown)
    expect(status == 0 and UNKNOWN + ": no shard says how large a tensor is, and no config.json is beside them" in out, out)
    for command, status, err, there in conversions(unknown):
        expect(status == 2 or status == 4 if command == "export" else status == 0 and UNKNOWN in err, f"{command}: {status} {err}")


main()
finish(20)
