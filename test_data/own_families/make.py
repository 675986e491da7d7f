"""Writes tiny models of families that no table of mckpt has, as transformers itself saves them: what `mckpt mappings draft` is
shown with (docs/adding_a_model.md, tests/judges/own_families.py). The map files in maps/ are written by hand, from drafts.

usage: make.py        needs torch and transformers (5.23 made the files that are stored)

phi3         queries, keys and values in one tensor, and gate and up in one
starcoder2   biases everywhere, norms with biases, an MLP without a gate, a tied output layer
gpt_neox     other names throughout, and queries, keys and values of each head together
granitemoe   experts in one tensor, their router under another name
"""
import os

import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = dict(vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0)
MODELS = {
    "phi3": ("Phi3", dict(num_key_value_heads=2)),
    "starcoder2": ("Starcoder2", dict(num_key_value_heads=2)),
    "gpt_neox": ("GPTNeoX", {}),
    "granitemoe": ("GraniteMoe", dict(num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2)),
}

for name, (architecture, more) in MODELS.items():
    torch.manual_seed(len(name))
    model = getattr(transformers, architecture + "ForCausalLM")(
        getattr(transformers, architecture + "Config")(**SIZES, **more)).to(torch.bfloat16)
    with torch.no_grad():  # norms and biases are made as ones and zeros, which would hide a mix-up
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) / 8)
    model.save_pretrained(os.path.join(HERE, name))
    os.remove(os.path.join(HERE, name, "generation_config.json"))
