"""Files whose names lack the front of the base model, or have it once more than the class, are loaded by transformers (base_model_prefix) and
mean the same to mckpt: verify passes them and says so, and conversions give what the folder with the names of the class gives."""
from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt

need("transformers")
import json
import os
import shutil
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()
FRONT = "model."
SIZES = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=8, vocab_size=32, pad_token_id=0)
MODELS = {
    "dense": (transformers.Qwen3ForCausalLM, transformers.Qwen3Config(**SIZES, tie_word_embeddings=False)),
    "tied": (transformers.Qwen3ForCausalLM, transformers.Qwen3Config(**SIZES, tie_word_embeddings=True)),
    "base": (transformers.Qwen3Model, transformers.Qwen3Config(**SIZES)),
    "experts": (transformers.Qwen3MoeForCausalLM, transformers.Qwen3MoeConfig(**SIZES, num_experts=4, moe_intermediate_size=8, num_experts_per_tok=2))}
SAID = {"without": "lack the 'model.'", "once more": "have one 'model.' more", "some without": "lack the 'model.'"}
FORMS = {"without": lambda n: n.removeprefix(FRONT), "once more": lambda n: FRONT + n,
         "some without": lambda n: n.removeprefix(FRONT) if ".0." in n or "norm" in n else n}


def folder(source, path, tensors):
    shutil.copytree(source, path)
    save_file(tensors, path + "/model.safetensors", {"format": "pt"})
    return path


def model_check(path):
    return [c for c in json.loads(run_mckpt("verify", path, "--json").stdout)["checks"] if c["name"] == "model"][0]


def loads(kind, path, wanted):
    """Whether transformers loads the folder whole, with these values."""
    model, info = kind.from_pretrained(path, output_loading_info=True)
    found = model.state_dict()
    return not any(info.values()) and all(torch.equal(found[n], t) for n, t in wanted.items())


def judge(name, kind, config, work):
    torch.manual_seed(1)
    model = kind(config)
    source = f"{work}/{name}"
    model.save_pretrained(source)
    tensors, values = load_file(source + "/model.safetensors"), model.state_dict()
    expect(model.base_model_prefix == FRONT[:-1] and not model_check(source)["note"], f"{name}: {model_check(source)}")
    whole = f"{source}_whole"
    converted = run_mckpt("convert", "hf-to-fsdp", source, whole, "--dp", "2").returncode
    expect(converted == 0 or kind is transformers.Qwen3Model, f"{name}: not converted")
    for form, rename in FORMS.items():
        path = folder(source, f"{source}_{form}", {rename(n): t for n, t in tensors.items()})
        expect(loads(kind, path, values), f"{name} {form}: transformers does not load it")
        check = model_check(path)
        plain = name == "base" and form != "once more"
        expect(check["status"] == "pass" and ((SAID[form] in (check["note"] or "")) != plain), f"{name} {form}: {check}")
        if converted == 0:
            out = path + "_out"
            run = run_mckpt("convert", "hf-to-fsdp", path, out, "--dp", "2")
            expect(run.returncode == 0 and SAID[form] in run.stdout + run.stderr, f"{name} {form}: {run.stderr}")
            expect(run_mckpt("diff", out, whole).returncode == 0, f"{name} {form}")
            expect(run_mckpt("verify", out, "--against", path).returncode == 0, f"{name} {form}")
    # A tensor that is missing under any name, and one that is there under both.
    short = {FORMS["without"](n): t for n, t in tensors.items() if not n.endswith("layers.1.input_layernorm.weight")}
    path = folder(source, source + "_short", short)
    expect(not loads(kind, path, values), f"{name} without a norm: transformers loads it")
    expect(model_check(path)["status"] == "fail", f"{name} without a norm")
    if name != "base":
        twice = {FORMS["without"](n): t for n, t in tensors.items()} | {"model.norm.weight": tensors["model.norm.weight"] + 1}
        expect(model_check(folder(source, source + "_twice", twice))["status"] == "fail", f"{name} with two norms")


with tempfile.TemporaryDirectory() as scratch:
    for each, (cls, made_of) in MODELS.items():
        judge(each, cls, made_of, scratch)
finish(50)
