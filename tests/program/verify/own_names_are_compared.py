"""verify --against of what to-dcp and to-safetensors make of the files of training programs: both sides have the model's own names, so no
config is needed; states of the optimizer are named as not compared; and a value that differs, a tensor that is missing and a head
that the model ties are told apart.
"""

import json
import os
import re
import struct

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.models import GOLDEN
from mckpt_tests.program import run_mckpt

DATA = os.path.dirname(GOLDEN)
temporary = scratch()

# A source, and a tensor that is beside its model.
SOURCES = (
    ("rank_files/verl2_w3", None),
    ("rank_files/accelerate", None),
    ("own_names/accelerate_fsdp1_local/checkpoint", None),
    ("zero/zero1_groups_fp32_w3", "optimizer.state.model.embed_tokens.weight.step"),
    ("zero/zero3_tied_w2", "optimizer.state.model.embed_tokens.weight.step"),
    ("own_names/fsdp2_app/checkpoint", "app.optim.state.model.embed_tokens.weight.momentum_buffer"),
)


def place(name):
    return os.path.join(temporary.name, name)


def mckpt(*args, status=0):
    run = run_mckpt(*args, *(["--no-sync"] if args[0] not in ("verify", "diff") else []), "-j1")
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout}{run.stderr}")
    return run.stdout


def unlike(tested, source, *more):
    """The tensors that verify reports, by kind of finding."""
    answer = json.loads(mckpt("verify", tested, "--against", source, "--json", *more, status=1))
    return [(f["code"], f["tensor"], f["message"]) for f in answer["findings"]]


def read(path):
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header, data = json.loads(f.read(size)), f.read()
    return header, data


def write(path, header, data):
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def without(header, data, name):
    begin, end = header.pop(name)["data_offsets"]
    for entry in header.values():
        if "data_offsets" in entry and entry["data_offsets"][0] >= end:
            entry["data_offsets"] = [at - (end - begin) for at in entry["data_offsets"]]
    return header, data[:begin] + data[end:]


def both_ways(number, source, beside):
    results = [place(f"dcp{number}")]
    mckpt("convert", "to-dcp", source, results[0], "--dp", 2)
    file = place(f"file{number}.safetensors")
    if run_mckpt("convert", "to-safetensors", source, file, "--no-sync").returncode == 0:
        results.append(file)
    # A DCP folder with states of the optimizer keeps them.
    keeps = source.endswith("checkpoint")
    for result in results:
        for tested, other in ((result, source), (source, result)):
            text = mckpt("verify", tested, "--against", other)
            copies = ", but [0-9]+ weights that DeepSpeed saves beside their float32 parts were not compared" if "zero1" in source else ""  # ZeRO 3 has none
            expect(re.search(f": equal{copies}\n$", text), f"{tested} against {other}: {text}")
            named = beside is None or (keeps and result != file) or ("not compared: " in text and f"{beside}" in text)
            expect(named, f"{beside} is not named: {text}")
    # The file has single experts, which the config beside the source made of the stacks that the DCP folder has.
    config = os.path.join(source, "huggingface")
    assets = ["--assets", config] if os.path.exists(config) else []
    if file in results:
        mckpt("verify", results[0], "--against", file, *assets)
        mckpt("verify", file, "--against", results[0], *assets)


def faults(source):
    """A changed value, a lost tensor and a lost shape, in a file and in a DCP folder, each with its name alone."""
    file = place("whole.safetensors")
    mckpt("convert", "to-safetensors", source, file)
    header, data = read(file)
    name = "model.layers.1.self_attn.k_proj.weight"
    begin, end = header[name]["data_offsets"]
    write(place("changed.safetensors"), header, data[:end - 1] + bytes([data[end - 1] ^ 1]) + data[end:])
    write(place("lost.safetensors"), *without(json.loads(json.dumps(header)), data, name))
    turned = json.loads(json.dumps(header))
    turned[name]["shape"] = [size for size in reversed(turned[name]["shape"])]
    expect(turned[name]["shape"] != header[name]["shape"], "a square tensor shows nothing")
    write(place("turned.safetensors"), turned, data)
    for fault, said in (("changed", "1 item differs"), ("lost", f"only {source}"), ("turned", f", in {source}")):
        path = place(f"{fault}.safetensors")
        dcp = place(f"{fault}_dcp")
        mckpt("convert", "to-dcp", path, dcp, "--dp", 3)
        for tested in (path, dcp):
            got = unlike(tested, source)
            expect(len(got) == 1 and got[0][:2] == ("MC1010", name) and said in got[0][2], f"{tested}: {got}")


def tied_head(source, assets):
    """A head that the config ties is left out and named as a copy; without the config it is a tensor that is missing."""
    whole, file = place("tied_dcp"), place("tied.safetensors")
    mckpt("convert", "to-dcp", source, whole)
    mckpt("convert", "to-safetensors", source, file, "--assets", assets)
    expect("lm_head.weight" not in read(file)[0], "the head was written")
    text = mckpt("verify", file, "--against", whole, "--assets", assets)
    expect("lm_head.weight (a copy of the tensor that the model ties it to)" in text, text)
    mckpt("verify", whole, "--against", file, "--assets", assets)
    got = unlike(file, whole)
    expect([g[:2] for g in got] == [("MC1010", "lm_head.weight")], f"without a config: {got}")


def cast(source, file):
    """A result of other types is equal to the cast of its source, whether the types were asked for or not; with other values it is not."""
    mckpt("convert", "to-safetensors", source, file, "--dtype", "fp16", "--allow-overflow")
    expect({entry["dtype"] for entry in read(file)[0].values() if "dtype" in entry} == {"F16"}, "not all tensors were cast")
    for types in ((), ("--dtype", "fp16")):
        text = mckpt("verify", file, "--against", source, *types)
        expect(text.splitlines()[-1].startswith(f"{file}: equal"), text)
    mckpt("verify", file, "--against", source, "--dtype", "fp32", status=1)
    header, data = read(file)
    write(file, header, data[:-1] + bytes([data[-1] ^ 1]))
    expect(["1 item differs" in message for _, _, message in unlike(file, source)].count(True) == 1, "a changed value is equal")


def file_of_one_rank(folder):
    """Its tensors have holes where other ranks have their pieces, so nothing is equal to it."""
    for pair in ((f"{folder}/model_world_size_3_rank_0.pt", folder), (folder, f"{folder}/model_world_size_3_rank_0.pt")):
        for done in (run_mckpt("diff", *pair), run_mckpt("verify", pair[0], "--against", pair[1])):
            expect(done.returncode == 3 and "MC1225" in done.stderr, f"{pair}: {done.returncode} {done.stdout} {done.stderr}")


for number, (source, beside) in enumerate(SOURCES):
    both_ways(number, os.path.join(DATA, source), beside)
faults(os.path.join(DATA, "zero/zero1_groups_fp32_w3"))
cast(os.path.join(DATA, "rank_files/rows"), place("cast_ranks.safetensors"))
cast(os.path.join(DATA, "own_names/fsdp2_bare/checkpoint"), place("cast_dcp.safetensors"))
tied_head(os.path.join(DATA, "own_names/wrapped_compile_per_layer_tied/checkpoint.bin"), os.path.join(DATA, "own_names/wrapped_compile_per_layer_tied"))
file_of_one_rank(os.path.join(DATA, "own_names/verl_fsdp2/checkpoint"))
# Two DCP folders of one model in different sections; the second has other values.
saved = os.path.join(DATA, "saved_dicts", "model_and_more")
alone = place("net")
mckpt("convert", "to-dcp", saved + ".pt", alone, "--section", "net.")
said = mckpt("diff", alone, saved)
expect("equal: all 3 tensors" in said and "ema.bert.embeddings.weight" in said, f"sections: {said}")
said = mckpt("verify", alone, "--against", saved)
expect("equal, but 4 tensors beside the model were not compared" in said, f"an average beside the model: {said}")
path = os.path.join(alone, "__0_0.distcp")
with open(path, "rb") as f:
    data = bytearray(f.read())
at = data.index(struct.pack("<3f", 100, 101, 102))
data[at : at + 4] = struct.pack("<f", 99)
with open(path, "wb") as f:
    f.write(data)
said = mckpt("diff", alone, saved, status=1)
expect("1 of 3 tensors differ" in said and "bert.pooler.dense.bias" in said, f"a changed value: {said}")

finish(least=90)
