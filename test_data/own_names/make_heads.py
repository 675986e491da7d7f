"""Writes heads.json: for each class of transformers with another head than its family's table has, config.json and the names and
shapes of the tensors, as save_pretrained() writes them.

usage: make_heads.py [FILE]     default: heads.json beside this program; needs torch, transformers 5.23
"""
import json
import os
import pathlib
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers
from safetensors import safe_open

HERE = pathlib.Path(__file__).resolve().parent
SMALL = dict(vocab_size=20, hidden_size=8, intermediate_size=10, num_hidden_layers=1, num_attention_heads=2,
             num_key_value_heads=1, head_dim=4, pad_token_id=None, eos_token_id=1, bos_token_id=0)
MOE = dict(num_experts=3, num_experts_per_tok=2, moe_intermediate_size=6)
# Class, sizes beside SMALL, labels.
CLASSES = [
    ("LlamaForSequenceClassification", {}, 1),
    ("LlamaForTokenClassification", {}, 3),
    ("LlamaForQuestionAnswering", {}, 2),
    ("LlamaModel", {}, 2),
    ("MistralForQuestionAnswering", {}, 2),
    ("MistralForTokenClassification", {}, 5),
    ("MixtralForQuestionAnswering", dict(num_local_experts=3), 2),
    ("Qwen2ForSequenceClassification", dict(tie_word_embeddings=True), 2),
    ("Qwen2MoeForQuestionAnswering", {**MOE, "shared_expert_intermediate_size": 7}, 2),
    ("Qwen3ForTokenClassification", {}, 1),
    ("Qwen3Model", dict(tie_word_embeddings=True), 2),
    ("Qwen3MoeForSequenceClassification", MOE, 4),
    ("Qwen3MoeModel", MOE, 2),
    ("Gemma2ForSequenceClassification", {}, 3),
    ("Gemma3TextForSequenceClassification", {}, 3),
    ("Gemma3TextModel", {}, 2),
]


def saved(name, sizes, labels):
    """config.json without what all configs have, and the tensors."""
    model_class = getattr(transformers, name)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        model_class(model_class.config_class(**SMALL, **sizes, num_labels=labels)).save_pretrained(folder)
        config = json.loads(pathlib.Path(folder, "config.json").read_text())
        with safe_open(pathlib.Path(folder, "model.safetensors"), "pt") as file:
            tensors = {n: list(file.get_slice(n).get_shape()) for n in sorted(file.keys())}
    return config, tensors


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "heads.json"
    rows = []
    for name, sizes, labels in CLASSES:
        config, tensors = saved(name, sizes, labels)
        rows.append(f' {{"config": {json.dumps(config)},\n  "tensors": {json.dumps(tensors)}}}')
    out.write_text("[\n" + ",\n".join(rows) + "\n]\n")


main()
