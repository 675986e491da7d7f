#!/usr/bin/env python3
"""Makes NAME_rounding of the cases NAME here in which PEFT rounds the product of the factors before it adds it: the same base and
config with factors whose products do not fit bfloat16, though every order of summation gives the same
float32. Needs torch, transformers, safetensors and peft; the answers come from merge_and_unload().

    test_data/adapters/make_rounding.py REFERENCE_DIR          REFERENCE_DIR has D_lora/embedding, ..."""
import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from pack import HERE

REFERENCE = Path(sys.argv[1]) / "D_lora"
KEPT = {"embedding": ("embed_tokens", "lm_head"), "target_parameters": ("layers.0.mlp.experts",), "plain": ("layers.0.self_attn",),
        "lora_bias": ("layers.1.self_attn.q_proj",)}
TYPES = {torch.bfloat16: "BF16", torch.float32: "F32"}


def facts(t):
    t = t.contiguous()
    return {"dtype": TYPES[t.dtype], "shape": list(t.shape), "sha256": hashlib.sha256(t.view(torch.uint8).numpy().tobytes()).hexdigest()}


def merged(base, adapter, dtype):
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base, dtype=dtype), adapter).merge_and_unload()
    with tempfile.TemporaryDirectory() as out:
        model.save_pretrained(out)
        return load_file(out + "/model.safetensors")


def make(name, seed, stored):
    source, target = REFERENCE / name, HERE / f"{name}_rounding"
    generator = torch.Generator().manual_seed(seed)
    shutil.rmtree(target, ignore_errors=True)
    for part in ("base", "adapter"):
        (target / part).mkdir(parents=True)
    kept = lambda n: any(k in n for k in KEPT[name])
    with tempfile.TemporaryDirectory() as whole:
        adapter = load_file(source / "adapter/adapter_model.safetensors")
        for n, t in adapter.items():
            if "lora_" in n:
                adapter[n] = torch.randint(-60, 61, t.shape, generator=generator).float() / 64
        adapter = {n: t.to(stored) for n, t in adapter.items()}
        shutil.copy(source / "adapter/adapter_config.json", whole)
        save_file(adapter, whole + "/adapter_model.safetensors", metadata={"format": "pt"})
        results = {kind: merged(source / "base", whole, dtype) for kind, dtype in (("bf16", torch.bfloat16), ("f32", torch.float32))}
    base = {n: t for n, t in load_file(source / "base/model.safetensors").items() if kept(n)}
    save_file(base, target / "base/model.safetensors", metadata={"format": "pt"})
    save_file({n: t for n, t in adapter.items() if kept(n)}, target / "adapter/adapter_model.safetensors", metadata={"format": "pt"})
    shutil.copy(source / "adapter/adapter_config.json", target / "adapter")
    changed = sorted(n for n in base if not torch.equal(results["bf16"][n], base[n]))
    text = f'{{"exact": true, "changed": {json.dumps(changed)}'
    for kind, tensors in results.items():
        rows = [f'   {json.dumps(n)}: {json.dumps(facts(tensors[n]), separators=(",", ":"))}' for n in sorted(base)]
        text += f',\n "{kind}": {{\n' + ",\n".join(rows) + "\n }"
    (HERE / f"{name}_rounding.expected.json").write_text(text + "}\n")


make("embedding", 1, torch.float32)
make("target_parameters", 2, torch.float32)
make("plain", 3, torch.bfloat16)  # PEFT loads such an adapter as float32
make("lora_bias", 4, torch.float32)
