"""Answers that say the cause in one sentence: a config of another depth, sizes that fit, downloads that did not finish, files
that are packed or were never written; and answers that say each thing once.
"""
import gzip
import json
import os
import pathlib
import shutil

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

folder = scratch()
SECOND = "model-00002-of-00002.safetensors"


def copied(name, **config):
    out = pathlib.Path(folder.name, name)
    shutil.copytree(TINY_MODEL, out)
    path = out / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    return out


def says(args, *texts, without=(), status=None):
    run = run_mckpt(*args)
    text = run.stdout + run.stderr
    for wanted in texts:
        expect(wanted in text, f"{args}: {wanted!r} is not in {text}")
    for other in without:
        expect(other not in text, f"{args}: {other!r} is in {text}")
    expect(status is None or run.returncode == status, f"{args}: {run.returncode}")
    return text


def of_layers():
    target = os.path.join(folder.name, "none")
    for layers, sentence, least in ((6, "the config says 6 layers, the tensors are of layers 0, 1: 84 missing", "missing: model.layers.2."),
                                    (1, "the config says 1 layer, the tensors are of layers 0, 1: 21 unmatched", "unmatched: model.layers.1.")):
        text = says(["convert", "hf-to-fsdp", copied(f"layers{layers}", num_hidden_layers=layers), target], sentence, least, "more", status=3)
        expect(text.startswith("error[MC2005]: the config says") and len(text.splitlines()) < 12, f"the sentence does not come first: {text}")
    # Where no layer is whole away, what is missing is named as before.
    text = says(["convert", "hf-to-fsdp", copied("wider", num_experts=5), target], "do not match: ", status=3)
    expect("the config says" not in text, text)
    # Experts beyond the last one are not layers.
    fewer = copied("fewer", num_experts=1, num_experts_per_tok=1)
    for command in (["convert", "hf-to-fsdp", fewer, target], ["verify", fewer], ["verify", fewer, "--json"]):
        text = says(command, "mlp.experts.", without=("the config says", "the tensors are of"))
        expect("is read by no parameter" in text, f"{command}: {text}")


def of_sizes():
    target = os.path.join(folder.name, "none")
    for flags, fit in ((["--tp", "3"], "sizes that fit: --tp 1, 2, 4"), (["--ep", "3"], "sizes that fit: --ep 1, 2, 4"),
                       (["--etp", "3"], "sizes that fit: --etp 1, 2, 4, 8")):
        for mode in ("hf-to-fsdp", "to-pt"):
            says(["convert", mode, TINY_MODEL, target, "-n", *flags], "MC2007", fit, status=4)
    says(["convert", "to-pt", TINY_MODEL, target, "-n", "--pp", "3"], "MC2007", "sizes that fit: --pp 1, 2;", status=4)
    # All that are named work, and no other.
    for tp in range(1, 9):
        run = run_mckpt("convert", "hf-to-fsdp", TINY_MODEL, target, "-n", "--tp", str(tp))
        expect((run.returncode == 0) == (tp in (1, 2, 4)), f"--tp {tp}: {run.returncode}")


def of_downloads():
    left = copied("left")
    os.remove(left / SECOND)
    says(["verify", left], f"{SECOND}: the shard is missing\n", status=1)
    (left / (SECOND + ".incomplete")).write_bytes(bytes(1000))
    for command in (["verify", left], ["inspect", left], ["convert", "hf-to-fsdp", left, os.path.join(folder.name, "none")]):
        says(command, f"the shard is missing: the download did not finish: {SECOND}.incomplete has 1,000 bytes of it",
             without=("not found in the folder",))
    local = copied("local")
    os.remove(local / SECOND)
    (local / ".cache/huggingface/download").mkdir(parents=True)
    (local / ".cache/huggingface/download" / f"{SECOND}.abc.incomplete").write_bytes(bytes(70))
    says(["verify", local], f"did not finish: .cache/huggingface/download/{SECOND}.abc.incomplete has 70 bytes of it", status=1)
    hub = pathlib.Path(folder.name, "models--a--b")
    snapshot, blobs = hub / "snapshots/abc", hub / "blobs"
    for path in (snapshot, blobs, hub / "refs"):
        path.mkdir(parents=True)
    (hub / "refs/main").write_text("abc")
    for file in os.listdir(TINY_MODEL):
        shutil.copy(os.path.join(TINY_MODEL, file), blobs / f"of_{file}")
        os.symlink(f"../../blobs/of_{file}", snapshot / file)
    os.rename(blobs / f"of_{SECOND}", blobs / f"of_{SECOND}.incomplete")
    text = says(["verify", hub], f"the shard is missing: the download did not finish: of_{SECOND}.incomplete has", status=1)
    expect(text.count("problem[") == 1, f"one cause is told more than once: {text}")
    os.remove(blobs / f"of_{SECOND}.incomplete")
    says(["verify", hub], f"the shard is missing: it is a link to ../../blobs/of_{SECOND}, which is not there", status=1)


def of_files():
    zeros = copied("zeros")
    (zeros / SECOND).write_bytes(bytes(7000))
    for path in (zeros, zeros / SECOND):
        says(["verify", path], "zeros from its first byte on: its place was reserved, and the data were not written",
             without=("header length",))
    for name, unpack in (("a.safetensors.gz", "gunzip -k "), ("a.tar.gz", "tar xzf ")):
        path = os.path.join(folder.name, name)
        with gzip.open(path, "wb") as f:
            f.write(bytes(100))
        says(["inspect", path], "the file is packed (gzip)", f"help: unpack it first: {unpack}{path}", status=3)
    page = copied("page")
    (page / SECOND).write_text("<!DOCTYPE html><html>" + "x" * 100)
    says(["verify", page], "this is not a safetensors file: it is an HTML page, so the download was an error page", without=("found ",))


def of_inspect():
    says(["inspect", os.path.join(DATA, "dcp/fsdp_dtensor_optim")], "linear_fc2.weight.{exp_avg,exp_avg_sq}",
         "other objects  (-v and --args show their values)", without=("weight.exp_avg ",))
    says(["inspect", "--tree", os.path.join(DATA, "dcp/fsdp_dtensor_optim")], "linear_fc2.weight.exp_avg ")
    says(["inspect", "-v", os.path.join(DATA, "dcp/fsdp_dtensor_optim")], "checkpoint_version  3.0", without=("other objects",))
    ranks = os.path.join(folder.name, "ranks")
    text = says(["convert", "to-pt", TINY_MODEL, ranks, "--tp", "2", "--ep", "2"], "11 are copies of what an earlier rank holds", status=0)
    text = says(["inspect", ranks], "mp_rank_{00_000,01_001}/model", "x2")
    expect(text.count("embedding.word_embeddings.weight") == 1, text)
    text = says(["inspect", os.path.join(DATA, "quantized/deepseek_v3_128")], "scales  36 tensors",
                "| quantized modules fp8 blocks 128x128, 36 of 43 modules")
    expect(text.splitlines()[1].count("fp8") == 1, text)
    says(["inspect", os.path.join(DATA, "quantized/kimi_k2_int4")], "| quantized compressed-tensors pack-quantized |", without=("packed bits",))


def of_words():
    dense = os.path.join(DATA, "own_names/fsdp2_bare")
    text = run_mckpt("explain", "MC1315").stdout
    expect(text.count("--accept") == 1, text)
    out = os.path.join(folder.name, "q")
    for name in ("--scheme", "--to", "--quantize"):
        says(["convert", "quantize", TINY_MODEL, out, name, "int3"], "fp8-block, mxfp4 or like-source", status=2)
        says(["export", TINY_MODEL, out, name, "int3"], "fp8-block, mxfp4 or like-source", status=2)
    for mode in "hf-to-fsdp", "to-pt", "to-mcore":
        says(["convert", mode, dense, out, "-n", "--ep", "2"], "the model has no experts, so --ep 2 divides nothing", status=0)
        says(["convert", mode, dense, out, "-n"], without=("no experts",), status=0)


of_layers()
of_sizes()
of_downloads()
of_files()
of_inspect()
of_words()
finish(80)
