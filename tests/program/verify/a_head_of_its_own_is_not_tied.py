"""A model whose config ties the output layer to the embedding, and that has an output layer with values of its own: releases of
transformers read it in two ways, so `verify` warns with both, in a Hugging Face folder and in a checkpoint of a run with a config
beside it. Everything that has to choose one way refuses the model in the same words; what copies tensors by name copies both, and
is then equal to its source. Nobody remarks an output layer that has the bytes of the embedding."""

import json
import os
import shutil

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.folders import scratch_paths
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL
from safetensors.torch import load_file, save_file

path = scratch_paths()
UNLIKE = "lm_head.weight differs from model.embed_tokens.weight"


def set_tied(folder, tied):
    at = os.path.join(folder, "config.json")
    with open(at, encoding="utf-8") as f:
        config = json.load(f)
    with open(at, "w", encoding="utf-8") as f:
        json.dump({**config, "tie_word_embeddings": tied}, f)


def told(place, *flags):
    """The exit status of verify, and its findings about the output layer."""
    run = run_mckpt("verify", place, "--json", *flags)
    found = [f for f in json.loads(run.stdout)["findings"] if "lm_head.weight" in f["message"] + (f["tensor"] or "")]
    expect(all(f["code"] == "MC2005" and UNLIKE in f["message"] and "tie_word_embeddings" in f["help"] for f in found), f"{place}: {found}")
    return run.returncode, [f["warning"] for f in found]


folder, bin_folder, run_folder = path("folder"), path("bin"), path("run")
shutil.copytree(TINY_MODEL, folder)
os.mkdir(bin_folder)
shutil.copy(os.path.join(TINY_MODEL, "config.json"), bin_folder)
expect(run_mckpt("convert", "safetensors-to-pt", TINY_MODEL, os.path.join(bin_folder, "pytorch_model.bin"), "-q").returncode == 0, "bin")
shutil.copytree(os.path.join(DATA, "own_names", "fsdp2_tp", "checkpoint"), run_folder)
shutil.copy(os.path.join(DATA, "own_names", "fsdp2_tp", "config.json"), run_folder)
for place in (folder, bin_folder, run_folder):
    for tied in (False, True):
        set_tied(place, tied)
        expect_equal(f"{place}: tied {tied}", told(place), (0, [True] * tied))
        expect_equal(f"{place}: tied {tied}, --strict", told(place, "--strict"), (int(tied), [False] * tied))
    text = run_mckpt("verify", place).stdout
    expect(text.count(UNLIKE) == 1 and "warn  model" in text and "sound, with warnings" in text, text)
    expect("transformers 5 loads both" in text and "transformers 4 takes the embedding for both" in text, text)

# Commands that have to choose refuse.
out = path("out")
CHOOSE = (
    ("convert", "hf-to-fsdp", folder, out),
    ("convert", "hf-to-fsdp", folder, out, "--dry-run"),
    ("convert", "to-mcore", folder, out),
    ("convert", "to-pt", folder, out),
    ("export", run_folder, out),
    ("ls", folder, "--as", "megatron"),
    ("ls", folder, "--as", "fsdp"),
    ("layout", folder, "--dp", "2"),
    ("plot", folder, "--as", "fsdp", "-o", out + ".html"),
    ("plot", folder, "--as", "fsdp", "--memory", "-o", out + ".svg"),
)
for line in CHOOSE:
    run = run_mckpt(*line)
    expect(run.returncode == 3 and "error[MC2005]" in run.stderr and UNLIKE in run.stderr, f"{line}: {run.returncode} {run.stdout}{run.stderr}")
    expect("tie_word_embeddings to false" in run.stderr and not os.path.exists(out), f"{line}: {run.stderr}")
check = run_mckpt("mappings", "check", folder)
expect(check.returncode == 0 and "warning: " + UNLIKE in check.stderr, check.stderr)

# Conversions that copy tensors by name have both, whatever the container.
for place, count in ((folder, 45), (bin_folder, 45), (run_folder, 21)):
    for kind in ("to-dcp", "to-safetensors"):
        made = path(f"{os.path.basename(place)}_{kind}")
        run = run_mckpt("convert", kind, place, made, "-q")
        expect(run.returncode == 0, f"{kind} {place}: {run.stderr}")
        for line in (("verify", made, "--against", place), ("diff", made, place), ("diff", place, made)):
            run = run_mckpt(*line)
            expect(run.returncode == 0 and f"{count} " in run.stdout, f"{line}: {run.stdout}{run.stderr}")

# The bytes of the embedding: tied in every release.
with open(os.path.join(folder, "model.safetensors.index.json"), encoding="utf-8") as f:
    places = json.load(f)["weight_map"]
files = {name: load_file(os.path.join(folder, name)) for name in set(places.values())}
files[places["lm_head.weight"]]["lm_head.weight"] = files[places["model.embed_tokens.weight"]]["model.embed_tokens.weight"].clone()
for name, tensors in files.items():
    save_file(tensors, os.path.join(folder, name), {"format": "pt"})
expect_equal("equal", told(folder, "--strict"), (0, []))
for line in CHOOSE[1:2] + CHOOSE[5:8]:
    run = run_mckpt(*line)
    expect(run.returncode == 0, f"{line}: {run.stderr}")
finish(95)
