"""A model that nobody changed is exported to the files that it had: whatever program wrote their headers and their index, for
every golden model, from a checkpoint of Megatron that mckpt made and from one with the model's own names. Where types, tensors or
sizes are to be others, the files are laid out anew.
"""

import filecmp
import json
import os
import random
import shutil
import struct
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish, in_parallel
from mckpt_tests.folders import safetensors, scratch
from mckpt_tests.models import GOLDEN, Models
from mckpt_tests.program import run_mckpt

models = Models()
temporary = scratch()
reshardings = []
TINY = os.path.join(os.path.dirname(GOLDEN), "models", "tiny_qwen3_moe")


def mckpt(*args, status=0):
    run = run_mckpt(*args, "--no-sync", "-j1")
    expect(run.returncode == status, f"{args}: exit status {run.returncode}: {run.stderr}")
    return run.stderr


def rewrite(source, folder, seed):
    """The model in files that mckpt itself would not write: tensors in any order in any of three files, other metadata,
    headers with spaces and with padding of any length, an index with another indentation."""
    r = random.Random(seed)
    os.mkdir(folder)
    shutil.copy(os.path.join(source, "config.json"), folder)
    tensors = list(safetensors(source).items())
    r.shuffle(tensors)
    count = min(3, len(tensors))
    files = {f"model-{i + 1:05}-of-{count:05}.safetensors": tensors[i::count] for i in range(count)}
    weight_map = {}
    for name, own in files.items():
        header, data = {"__metadata__": {"format": "pt", "by": "a ünusual program"}}, b""
        for tensor, (dtype, shape, block) in own:
            header[tensor] = {"shape": shape, "dtype": dtype, "data_offsets": [len(data), len(data) + len(block)]}
            data += block
            weight_map[tensor] = name
        text = json.dumps(header, ensure_ascii=r.random() < 0.5).encode() + b" " * r.randrange(40)
        with open(os.path.join(folder, name), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + data)
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"weight_map": weight_map, "metadata": {"total_size": sum(len(t[2]) for _, t in tensors)}}, f, indent=r.choice([None, 1, 7]))
    return folder


def unlike(made, model):
    """The files of the model that the result has not, byte for byte."""
    names = sorted(os.listdir(model))
    return [name for name in names if not os.path.exists(os.path.join(made, name))
            or not filecmp.cmp(os.path.join(made, name), os.path.join(model, name), shallow=False)]


def back_again(name):
    with tempfile.TemporaryDirectory(dir=temporary.name) as folder:
        model = rewrite(models.path(name), os.path.join(folder, "model"), name)
        run, resharded, out = (os.path.join(folder, part) for part in ("run", "resharded", "out"))
        mckpt("convert", "hf-to-fsdp", model, run, "--dp", "1")
        text = mckpt("export", run, out)
        # A tensor that the program computes, or that repeats another, is not in every result.
        same = "files   with the names" in text
        expect_equal(name, [same, unlike(out, model)], [True, []])
        cut = run_mckpt("convert", "reshard", run, resharded, "--dp", "3", "--no-sync", "-j1")
        if "MC0204" not in cut.stderr:  # three ranks cannot share the rows of two of the models
            mckpt("export", resharded, out, "--overwrite")
            expect_equal(f"{name}, resharded", [unlike(out, model)], [[]])
            reshardings.append(name)
        own = os.path.join(folder, "own")
        mckpt("convert", "to-dcp", model, own, "--dp", "2")
        text = mckpt("export", own, out, "--assets", model, "--overwrite")
        expect_equal(f"{name}, own names", ["files   with the names" in text, unlike(out, model)], [True, []])


def laid_out_anew():
    folder = os.path.join(temporary.name, "anew")
    os.mkdir(folder)
    run, out, own = (os.path.join(folder, part) for part in ("run", "out", "own"))
    mckpt("convert", "hf-to-fsdp", TINY, run)
    mckpt("export", run, out)
    expect_equal("tiny_qwen3_moe", [unlike(out, TINY)], [[]])
    for flags in (["--dtype", "fp32"], ["--max-shard-size", "5GB"], ["--dtype-rule", "lm_head.weight=fp32"]):
        text = mckpt("export", run, out, "--overwrite", *flags)
        expect("files   with" not in text and "model.safetensors" in os.listdir(out), f"{flags}: {os.listdir(out)}")
        mckpt("convert", "to-dcp", TINY, own, "--overwrite")
        text = mckpt("export", own, out, "--overwrite", "--assets", TINY, *flags)
        expect("files   with" not in text and "model.safetensors" in os.listdir(out), f"{flags}: {os.listdir(out)}")
    # The list of mckpt is not trusted.
    table = os.path.join(run, "release", "hf_assets", "mckpt_tensors.json")
    os.remove(os.path.join(run, "release", "mckpt_manifest.json"))  # which has the digest of the list
    with open(table) as f:
        sound = json.load(f)

    def kept(**changed):
        with open(table, "w") as f:
            json.dump({**sound, **changed}, f)

    first, *others = sound["files"]
    for name in ("../model.safetensors", "/tmp/model.safetensors", ".safetensors", "a/b.safetensors", "config.json", others[0][0]):
        kept(files=[[name, *first[1:]], *others])
        text = mckpt("export", run, out, "--overwrite")
        expect("files   with" not in text and "model.safetensors" in os.listdir(out), f"{name}: {text}")
    kept(index=["model.safetensors.index.json", sound["index"][1].replace("00001-of", "00002-of", 1)])
    expect("files   with" not in mckpt("export", run, out, "--overwrite"), "an index of other files was taken")
    kept(files=[[first[0], first[1] + 1, first[2]], *others])
    mckpt("export", run, out, "--overwrite", status=3)
    kept(files=[[first[0], first[1], first[2][:-9]], *others])
    mckpt("export", run, out, "--overwrite", status=3)
    kept(files=[[first[0]]])
    expect(table in mckpt("export", run, out, "--overwrite", status=3), "the list is not named")
    kept(files=others)
    expect("files   with" not in mckpt("export", run, out, "--overwrite"), "files without a tensor were taken")
    kept()
    expect("files   with" in mckpt("export", run, out, "--overwrite"), "the list as it was is not taken")


laid_out_anew()
in_parallel(back_again, [(name,) for name in sorted(os.listdir(models.root.name))])
expect(len(reshardings) >= 25, f"only {len(reshardings)} were resharded")
finish(least=100)
