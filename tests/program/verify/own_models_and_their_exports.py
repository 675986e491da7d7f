"""verify and diff of a training program's file or DCP folder and of what was converted from it: a dict around the model, a head that
config.json ties, assets without weights, and types that were asked for. Equal sides are called equal in both
directions, and a changed value is found in each of them.
"""

import json
import os
import shutil
import struct

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.models import GOLDEN
from mckpt_tests.program import run_mckpt

DATA = os.path.dirname(GOLDEN)
temporary = scratch()


def place(name):
    return os.path.join(temporary.name, name)


def mckpt(*args, status=0):
    run = run_mckpt(*args, *(["--no-sync"] if args[0] not in ("verify", "diff") else []), "-j1")
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout}{run.stderr}")
    return run.stdout


def both_ways(one, other, *more, status=0):
    """The answers of verify and diff, in both directions."""
    return [mckpt(*words, *more, status=status) for a, b in ((one, other), (other, one)) for words in (("verify", a, "--against", b), ("diff", a, b))]


def read(path):
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        return json.loads(f.read(size)), f.read()


def write(path, header, data):
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def with_last_bit_changed(path, to):
    header, data = read(path)
    write(to, header, data[:-1] + bytes([data[-1] ^ 1]))
    return to


def dict_around_the_model():
    saved, file = os.path.join(DATA, "saved_dicts", "model_and_more.pt"), place("alone.safetensors")
    mckpt("convert", "to-safetensors", saved, file)
    expect("bert.pooler.dense.bias" in read(file)[0], "the names have the dict in front")
    for said in both_ways(file, saved):
        expect("equal" in said and "ema." in said, f"an average is beside the model: {said}")
    both_ways(with_last_bit_changed(file, place("other.safetensors")), saved, status=1)


def tied_head():
    """An export leaves out the head that the config ties."""
    folder = os.path.join(DATA, "own_names", "wrapped_compile_per_layer_tied")
    config, file, dcp, out = place("config"), os.path.join(folder, "checkpoint.bin"), place("dcp"), place("exported")
    os.mkdir(config)
    shutil.copy(os.path.join(folder, "config.json"), config)
    mckpt("convert", "to-dcp", file, dcp)
    mckpt("export", file, out, "--assets", config)
    weights = os.path.join(out, "model.safetensors")
    expect("lm_head.weight" not in read(weights)[0], "the head was written")
    for saved in (file, dcp):
        for said in both_ways(out, saved):
            expect("equal" in said and "only B" not in said, said)
    return out, config


def config_alone():
    """A bias that every BERT has twice: the folder that was made lists one, whatever other folder its config is from."""
    dcp, model, config = place("bert_dcp"), place("bert"), place("bert_config")
    data = struct.pack("<5f", 1, 2, 3, 4, 5)
    bias = {"dtype": "F32", "shape": [5], "data_offsets": [0, 20]}
    write(place("bert.safetensors"), {"cls.predictions.bias": bias, "cls.predictions.decoder.bias": dict(bias, data_offsets=[20, 40])}, data + data)
    mckpt("convert", "to-dcp", place("bert.safetensors"), dcp)
    for folder in (model, config):
        os.mkdir(folder)
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump({"model_type": "bert"}, f)
    write(os.path.join(model, "model.safetensors"), {"cls.predictions.bias": bias}, data)
    mckpt("verify", model, "--against", dcp)
    mckpt("verify", model, "--against", dcp, "--assets", config)
    write(os.path.join(model, "model.safetensors"), {"cls.predictions.bias": bias}, data[::-1])
    mckpt("verify", model, "--against", dcp, "--assets", config, status=1)


def made_head(exported, config):
    """A checkpoint without the head, and the folder of a model that has it: an export makes it of the embedding."""
    weights, dcp, model, out = os.path.join(exported, "model.safetensors"), place("headless"), place("model"), place("made")
    mckpt("convert", "to-dcp", weights, dcp)
    os.mkdir(model)
    shutil.copy(os.path.join(config, "config.json"), model)
    header, data = read(weights)
    first, last = header["model.embed_tokens.weight"]["data_offsets"]
    header["lm_head.weight"] = dict(header["model.embed_tokens.weight"], data_offsets=[len(data), len(data) + last - first])
    write(os.path.join(model, "model.safetensors"), header, data + data[first:last])
    mckpt("export", dcp, out, "--assets", model)
    expect("lm_head.weight" in read(os.path.join(out, "model.safetensors"))[0], "the head was not made")
    both_ways(out, dcp)
    with_last_bit_changed(os.path.join(model, "model.safetensors"), os.path.join(model, "model.safetensors"))
    for said in both_ways(model, dcp, status=1):
        expect("lm_head.weight" in said, f"the head is another one: {said}")


def after_a_cast():
    """torch's cast gives a NaN other bits than mckpt's, and any NaN is one; a finite value that became
    infinite is not a silent loss."""
    wide, narrow = place("wide.safetensors"), place("narrow.safetensors")
    values = struct.pack("<4f", 1, float("nan"), 70000, 2)
    entry = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
    write(wide, {"w": entry}, values)
    half = {"w": dict(entry, dtype="F16", data_offsets=[0, 8])}
    # A NaN with the sign and all bits.
    write(narrow, half, struct.pack("<4H", 0x3C00, 0xFFFF, 0x7C00, 0x4000))
    lost = ", but 1 tensor has values that a cast made infinite"
    said = mckpt("verify", narrow, "--against", wide)
    expect("equal after a cast that rounds" in said and lost in said, said)
    expect(mckpt("verify", narrow, "--against", wide, "--dtype", "fp16").endswith(f"equal{lost}\n"), "a type that was asked for")
    answer = json.loads(mckpt("verify", narrow, "--against", wide, "--json"))
    expect([c["count"] for c in answer["checks"] if c["name"] == "overflow"] == [1], f"{answer['checks']}")
    card = place("narrow.md")
    mckpt("verify", narrow, "--against", wide, "--report", card)
    with open(card, encoding="utf-8") as f:
        expect(lost in f.read(), "the card does not say it")
    # None of the other differences is hidden, and no NaN is counted.
    write(narrow, half, struct.pack("<4H", 0x3C00, 0xFFFF, 0x7C00, 0x4001))
    said = mckpt("verify", narrow, "--against", wide, status=1)
    expect("differs at [3]: expected 2, found 2.0019531; 1 item differs" in said, said)
    write(narrow, half, struct.pack("<4H", 0xFFFF, 0xFFFF, 0x7C00, 0x4000))
    said = mckpt("verify", narrow, "--against", wide, status=1)
    expect("differs at [0]: expected 1, found NaN; 1 item differs" in said, said)
    # Without a cast a NaN has the bits of the source.
    write(place("copy.safetensors"), {"w": entry}, values.replace(struct.pack("<f", float("nan")), struct.pack("<I", 0xFFFFFFFF)))
    mckpt("verify", place("copy.safetensors"), "--against", wide, status=1)


def type_of_the_model_alone():
    """A type is for the model: an average, a loss and states of the optimizer, which are copied beside it, keep theirs."""
    saved, out, copy = os.path.join(DATA, "saved_dicts", "model_and_more"), place("bf16"), place("copied")
    mckpt("convert", "to-dcp", saved, out, "--dtype", "bf16")
    mckpt("convert", "to-dcp", saved, copy)
    said = mckpt("verify", out, "--against", saved, "--dtype", "bf16")
    expect("types    8 tensors       as asked for" in said and said.endswith(": equal\n"), said)
    said = mckpt("verify", copy, "--against", saved, "--dtype", "bf16", status=1)
    expect("3 tensors, model." in said and "stored as float32, and bfloat16 was asked for" in said, said)


dict_around_the_model()
type_of_the_model_alone()
after_a_cast()
config_alone()
made_head(*tied_head())

finish(least=20)
