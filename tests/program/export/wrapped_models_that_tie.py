"""A model that was saved with PEFT's wrappers around it is what its adapter's own folder makes of the base: ties of the vocabulary by the
class in config.json, one pair of factors for both (ensure_weight_tying), modules that are saved whole, rows of tokens. The answers are those
of test_data/adapters/peft."""
from mckpt_tests.checks import need

need("torch")
import hashlib
import json
import os
import shutil
import tempfile

import torch

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.folders import safetensors
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SOURCE

DATA = os.path.join(SOURCE, "test_data/adapters/peft")
PREFIX = "base_model.model."
TYPES = {"BF16": torch.bfloat16, "F32": torch.float32}
HEADS = {"qwen3": ("model.embed_tokens", "lm_head"), "gpt2": ("transformer.wte", "lm_head"), "whisper": ("model.decoder.embed_tokens", "proj_out")}
CASES = ("tied_factors", "tied_head", "tied_embedding", "tied_ensured", "tied_wte_ensured", "saved_both", "saved_head", "saved_embedding", "saved_ensured",
         "saved_wte", "saved_wte_ensured", "saved_word", "tokens", "tokens_tied", "tokens_of_both", "tokens_of_both_alike", "whisper_factors",
         "whisper_saved_embedding", "whisper_saved_head")


def tensors(folder):
    return {name: torch.frombuffer(bytearray(data), dtype=TYPES[dtype]).reshape(shape) for name, (dtype, shape, data) in safetensors(folder).items()}


def wrapped(case):
    """The state dict of the model in memory, from the folders of base and adapter."""
    base, adapter = tensors(case + "/base"), {n.removeprefix(PREFIX): t for n, t in tensors(case + "/adapter").items()}
    with open(case + "/base/config.json") as f:
        embedding, head = HEADS[json.load(f)["model_type"]]
    base.setdefault(head + ".weight", base[embedding + ".weight"])
    out, around = {}, {}  # around: the wrapper of a module
    for name, t in adapter.items():
        module, mark, part = name.partition(".lora_")
        if mark:
            around[module] = ".base_layer"
            ending = "" if part.startswith("embedding_") else ".weight"
            out[f"{module}.lora_{part.removesuffix('.weight')}.default{ending}"] = t
        elif name.endswith(".token_adapter.trainable_tokens_delta"):
            around[name.removesuffix(".token_adapter.trainable_tokens_delta")] = ".token_adapter.base_layer"
            out[name + ".default"] = t
        elif ".base_layer." not in name:
            module = name.rpartition(".")[0]
            around[module] = ".original_module"
            out[module + ".modules_to_save.default." + name.rpartition(".")[2]] = t
    rows = embedding + ".token_adapter.trainable_tokens_delta.default"
    if rows in out and head not in around and "lm_head.weight" not in tensors(case + "/base"):  # the output layer follows
        around[head], out[head + rows.removeprefix(embedding)] = ".token_adapter.base_layer", out[rows]
    for name, t in base.items():
        module, _, part = name.rpartition(".")
        out[f"{module}{around.get(module, '')}.{part}"] = t
    return {PREFIX + n: t for n, t in out.items()}


def judge(name, scratch):
    case, source, out = os.path.join(DATA, name), os.path.join(scratch, name), os.path.join(scratch, name + "_out")
    os.makedirs(source)
    torch.save(wrapped(case), source + "/model.pt")
    shutil.copy(case + "/base/config.json", source)
    shutil.copy(case + "/adapter/adapter_config.json", source)
    run = run_mckpt("export", source, out)
    if not expect(run.returncode == 0, f"{name}: {run.stderr}"):
        return
    with open(case + "/expected.json") as f:
        answer = json.load(f)
    found = safetensors(out)
    expect_equal(f"names of {name}", sorted(found), sorted(answer["bf16"]))
    for tensor, wanted in answer["bf16"].items():
        expect(hashlib.sha256(found[tensor][2]).hexdigest() == wanted["sha256"], f"{name}: {tensor} is not PEFT's")
    with open(out + "/config.json") as f:
        tied = json.load(f).get("tie_word_embeddings")
    expect(tied == answer["config"]["tie_word_embeddings"] or tied is None, f"{name}: tie_word_embeddings {tied}")
    folder = os.path.join(scratch, name + "_folder")
    run = run_mckpt("export", case + "/adapter", folder, "--base", case + "/base")
    expect(run.returncode == 0, f"{name}: {run.stderr}")
    for pair in ((source, folder), (folder, source)):
        for command in ("diff",), ("verify", "--against"):
            run = run_mckpt(command[0], pair[0], *command[1:], pair[1])
            expect(run.returncode == 0, f"{command} {pair}: {run.stdout} {run.stderr}")


with tempfile.TemporaryDirectory() as work:
    for each in CASES:
        judge(each, work)
finish(19 * 20)
