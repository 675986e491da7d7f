"""inspect looks for who packed a save in a time that follows the number of its tensors, whatever numbers and shapes strangers
wrote: an expert number of many digits, a rank number far beyond all others, ten thousand fused parameters, ten thousand shapes."""
import glob
import itertools
import json
import math
import os
import pickle
import resource
import shutil
import struct
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SANITIZED, TINY_MODEL

need("torch")
WORK = tempfile.TemporaryDirectory(prefix="mckpt_strangers_")


def at(name):
    return os.path.join(WORK.name, name)


def inspect(what, path, seconds):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    run = run_mckpt("inspect", path, "--json", timeout=60)
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    expect(run.returncode in (0, 1), f"{what}: {run.stderr}")
    expect(SANITIZED or took < seconds, f"{what}: {took:.2f} s")
    return json.loads(run.stdout)["packing"]


def edited(name, change):
    folder = shutil.copytree(at("saved"), at(name))
    index = glob.glob(f"{folder}/*/.metadata")[0]
    with open(index, "rb") as f:
        metadata = pickle.load(f)
    change(metadata, os.path.dirname(index))
    with open(index, "wb") as f:
        pickle.dump(metadata, f)
    return folder


run = run_mckpt("convert", "hf-to-fsdp", TINY_MODEL, at("saved"), "--tp", "2", "--ep", "2", "--dp", "4", "--no-sync", "-q")
expect(run.returncode == 0, run.stderr)
whole = inspect("as written", at("saved"), 1)
expect(whole is not None and whole["fits"] and whole["ep"] == 2, f"as written: {whole}")


def expert(number):
    def change(metadata, folder):
        stem = "mlp.experts.linear_fc2.weight"
        tensors = metadata.state_dict_metadata
        names = [n for n in tensors if n.endswith(f"{stem}3")]
        expect(len(names) == 2, f"experts: {names}")
        for name in names:
            tensors[name[:-1] + number] = tensors.pop(name)
        for place in list(metadata.storage_data):
            if place.fqn in names:
                value = metadata.storage_data.pop(place)
                object.__setattr__(place, "fqn", place.fqn[:-1] + number)
                metadata.storage_data[place] = value

    return change


for digits in (7, 12, 18, 19, 23, 400):
    inspect(f"an expert number of {digits} digits", edited(f"expert{digits}", expert("9" * digits)), 1)


def far_rank(number):
    def change(metadata, folder):
        os.rename(f"{folder}/__7_0.distcp", f"{folder}/__{number}_0.distcp")
        for info in metadata.storage_data.values():
            info.relative_path = info.relative_path.replace("__7_0.", f"__{number}_0.")

    return change


for number in (1000, 999_999, 20_000_000, 2_000_000_000):
    inspect(f"rank {number}", edited(f"rank{number}", far_rank(number)), 2)


def written(name, tensors):
    header, end = {}, 0
    for tensor, shape in tensors:
        header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + 2 * math.prod(shape)]}
        end = header[tensor]["data_offsets"][1]
    text = json.dumps(header).encode()
    with open(at(f"{name}.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + bytes(end))
    run = run_mckpt("convert", "to-dcp", at(f"{name}.safetensors"), at(name), "--dp", "2", "--no-sync", "-q")
    expect(run.returncode == 0, f"{name}: {run.stderr}")
    return at(name)


COUNT = 10_000
fused = [(f"model.module.x{i}.linear_fc1.weight_{half}", [2, 2]) for i in range(COUNT) for half in "wv"]
inspect("fused parameters", written("fused", fused + [(f"model.module.x{i}.linear_fc2.weight", [2, 2]) for i in range(COUNT)]), 1.5)
# Each a different one: 64 dimensions, of which three are 2.
shapes = [[2 if d in where else 1 for d in range(64)] for where in itertools.islice(itertools.combinations(range(64), 3), COUNT)]
inspect("shapes", written("shapes", [(f"w{i}", shape) for i, shape in enumerate(shapes)]), 1.5)
finish(13)
