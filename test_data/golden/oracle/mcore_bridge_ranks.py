#!/usr/bin/env python3
"""Writes what each rank of mcore-bridge (ms-swift) holds of a tiny model. usage: mcore_bridge_ranks.py OUT MODEL... [--grids TP,EP,PP,ETP[,WORLD]...]"""
from oracle_ranks import main_of_ranks  # isort: skip  (before torch's users)
import sys

import torch
from megatron.core.transformer import multi_token_prediction
from megatron.core.transformer.module import Float16Module
from transformers import AutoConfig

import tiny_models
from mcore_bridge import ModelConfig, get_mcore_model, hf_to_mcore_config


def two_projections(real_build):
    """The bridge's layer for prediction of Qwen4-Exp has e_proj and h_proj in place of eh_proj. Megatron's development branch has slots for them, the released
    Megatron-Core has not, and the bridge refuses to build it. A build_module with the two slots, where the spec says that there is no eh_proj."""
    def build(spec, *args, **kwargs):
        if spec is not None:
            return real_build(spec, *args, **kwargs)
        layer = sys._getframe(1).f_locals["self"]
        _, *rest = args
        for name in ("e_proj", "h_proj"):
            setattr(layer, name, real_build(getattr(layer.submodules, name), layer.config.hidden_size, *rest, **kwargs))
    return build


def give_slots():
    slots = multi_token_prediction.MultiTokenPredictionLayerSubmodules
    if not hasattr(slots, "e_proj"):
        slots.e_proj = slots.h_proj = None
        multi_token_prediction.build_module = two_projections(multi_token_prediction.build_module)


def built(model_dir, grid, opts):
    hf_config = AutoConfig.from_pretrained(model_dir, trust_remote_code=True)
    fields = hf_to_mcore_config(hf_config)
    if "mtp_num_layers" in opts:
        give_slots()
    vocabulary = fields.get("padded_vocab_size") or tiny_models.text_config(hf_config).vocab_size
    fields["padded_vocab_size"] = -(-vocabulary // grid["tp"]) * grid["tp"]
    config = ModelConfig(params_dtype=torch.bfloat16, bf16=True, tensor_model_parallel_size=grid["tp"], pipeline_model_parallel_size=grid["pp"],
                         expert_model_parallel_size=grid["ep"], expert_tensor_parallel_size=grid["etp"], context_parallel_size=grid["cp"],
                         sequence_parallel=grid["tp"] > 1, use_cpu_initialization=True, gradient_accumulation_fusion=False, **{**fields, **opts})
    models = get_mcore_model(config)
    config.bridge.load_weights(models, model_dir)
    return config.bridge, [Float16Module(config, m).module for m in models]


def exported(bridge, models):
    return {name: t for name, t in bridge.export_weights(models, target_device="cpu") if t is not None}


if __name__ == "__main__":
    main_of_ranks(built, exported)
