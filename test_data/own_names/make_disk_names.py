"""Writes disk_names.json: for each model, by its model_type and class, the tensors that have other names in memory than in the folder
that transformers saves, as transformers itself has them, without a head that is a copy of the embedding. All other tensors have the same
name and bytes, which is checked here. Only layers and blocks with the numbers 0 and 1 occur.

usage: make_disk_names.py [FILE]     default: disk_names.json beside this program; needs torch, transformers 5.23
"""
import json
import os
import pathlib
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers
from safetensors.torch import load_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "support"))
from mckpt_tests import disk_families

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden" / "models"
EXPERTS = 3

# Configs of their own, where golden/models has none.
SMALL = dict(vocab_size=20, hidden_size=8, intermediate_size=10, num_hidden_layers=1, num_attention_heads=2,
             num_key_value_heads=2, pad_token_id=None, eos_token_id=1, bos_token_id=0, num_experts_per_tok=2)
OWN = {
    "qwen2_moe": ("Qwen2MoeForCausalLM", dict(num_experts=EXPERTS, moe_intermediate_size=6, shared_expert_intermediate_size=4)),
    "olmoe": ("OlmoeForCausalLM", dict(num_experts=EXPERTS)),
    "glm4_moe": ("Glm4MoeForCausalLM", dict(n_routed_experts=EXPERTS, moe_intermediate_size=6, first_k_dense_replace=0, head_dim=4)),
    "deepseek_v2": ("DeepseekV2ForCausalLM", dict(n_routed_experts=EXPERTS, moe_intermediate_size=6, first_k_dense_replace=0, q_lora_rank=4,
                                                  kv_lora_rank=4, qk_rope_head_dim=2, qk_nope_head_dim=2, v_head_dim=4, n_group=1,
                                                  topk_group=1)),
}
FROM_GOLDEN = ("deepseek_v3", "gpt_oss", "nemotron_h_moe", "qwen3_5_moe", "qwen3_moe", "qwen3_next", "qwen3_vl_moe")


def fewer_experts(config):
    for part in (config, getattr(config, "text_config", None)):
        for key in ("num_experts", "n_routed_experts", "num_local_experts"):
            if getattr(part, key, None):
                setattr(part, key, EXPERTS)
        for key in ("n_group", "topk_group"):
            if getattr(part, key, None):
                setattr(part, key, 1)
        if getattr(part, "num_experts_per_tok", None):
            part.num_experts_per_tok = 2
    return config


def models():
    for model_type, (name, sizes) in OWN.items():
        model_class = getattr(transformers, name)
        yield model_type, model_class, model_class.config_class(**SMALL, **sizes)
    for folder in FROM_GOLDEN:
        config = fewer_experts(transformers.AutoConfig.from_pretrained(GOLDEN / folder))
        yield config.model_type, getattr(transformers, config.architectures[0]), config
        if folder == "qwen3_5_moe":
            yield config.text_config.model_type, transformers.Qwen3_5MoeForCausalLM, config.text_config


def sides(model):
    """The state dict in memory, and the tensors of the folder."""
    disk = {}
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        for file in pathlib.Path(folder).glob("*.safetensors"):
            disk.update(load_file(file))
    memory = dict(model.state_dict())
    if getattr(model.config, "tie_word_embeddings", False):
        memory.pop("lm_head.weight", None)
    return memory, disk


# The families of disk_families that differ in kind; tests/judges/disk_names.py has all.
FEW = ("AriaForConditionalGeneration", "Dinov2Model", "GPTNeoXForCausalLM", "LlavaForConditionalGeneration", "LlavaModel",
       "Qwen2_5_VLForConditionalGeneration", "ViTForImageClassification")


def built():
    for model_type, model_class, config in models():
        torch.manual_seed(0)
        model = model_class(config)
        for p in model.parameters():
            torch.nn.init.normal_(p)
        yield f"{model_type}/{model_class.__name__}", model
    for name, entries in disk_families.MIXTURES + disk_families.OTHERS:
        if (name, entries) in disk_families.MIXTURES or name in FEW:
            model = disk_families.made(name, entries)
            yield f"{model.config.model_type}/{name}", model


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "disk_names.json"
    lines = []
    for name, model in built():
        memory, disk = sides(model)
        for same in sorted(set(memory) & set(disk)):
            assert torch.equal(memory[same], disk[same]), same
        stacks = {n for n in memory if n.endswith((".experts.gate_up_proj", ".experts.up_proj", ".experts.down_proj"))}
        shapes = [{n: list(side[n].shape) for n in sorted(side) if n not in other or n in stacks}
                  for side, other in ((memory, disk), (disk, memory))]
        lines.append(f' "{name}": {{\n  "memory": {json.dumps(shapes[0])},\n  "disk": {json.dumps(shapes[1])}\n }}')
    out.write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
