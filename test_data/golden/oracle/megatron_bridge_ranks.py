#!/usr/bin/env python3
"""Writes what each rank of Megatron-Bridge holds of a tiny model. usage: megatron_bridge_ranks.py OUT MODEL... [--grids TP,EP,PP,ETP[,WORLD]...]"""
from oracle_ranks import main_of_ranks  # isort: skip  (before torch's users)
import os

import torch
from megatron.bridge import AutoBridge
from megatron.bridge.models.model_provider import _apply_mixed_precision_wrapper
from megatron.core import mpu
from megatron.core.transformer.module import Float16Module
from megatron.core.transformer.multi_latent_attention import MLASelfAttention
from transformers import AutoConfig, PretrainedConfig

import tiny_models

real_choice = getattr(MLASelfAttention, "_resolve_qk_norm_config", None)


def plain_choice(attention, submodules):
    """Megatron-Core 0.19.2 norms whatever linear_q_proj reads once more if the latent keys have a norm, and no bridge has a tensor for that. A model
    without low-rank queries has the projection of its spec here, as Megatron-Bridge's main has it since (MLASelfAttentionWithoutQueryNorm)."""
    chosen = real_choice(attention, submodules)
    if attention.config.q_lora_rank is None:
        chosen["linear_q_proj"] = submodules.linear_q_proj
    return chosen


def prepare(name):
    """Gives the releases the two things that they lack: the config class of the hub, an object of its entries; and plain queries."""
    model = tiny_models.MODELS[name]
    if model.same_tensors:
        model_type = model.config["model_type"]
        AutoConfig.register(model_type, type("HubConfig", (PretrainedConfig,), {"model_type": model_type}), exist_ok=True)
    if model.plain_queries and real_choice:
        MLASelfAttention._resolve_qk_norm_config = plain_choice


def built(model_dir, grid, opts):
    prepare(os.path.basename(os.path.dirname(model_dir)))
    bridge = AutoBridge.from_hf_pretrained(model_dir, torch_dtype=torch.bfloat16)
    provider = bridge.to_megatron_provider(load_weights=False)
    sizes = {"tensor_model_parallel_size": grid["tp"], "pipeline_model_parallel_size": grid["pp"], "context_parallel_size": grid["cp"], "expert_model_parallel_size": grid["ep"],
             "expert_tensor_parallel_size": grid["etp"], "sequence_parallel": grid["tp"] > 1}
    host = {"use_cpu_initialization": True, "gradient_accumulation_fusion": False, "params_dtype": torch.bfloat16, "bf16": True, "pipeline_dtype": torch.bfloat16}
    padded = {"should_pad_vocab": provider.vocab_size % grid["tp"] != 0}  # on one rank the Bridge cannot load what it padded
    for name, value in {**sizes, **host, **padded, **opts}.items():
        setattr(provider, name, value)
    provider.finalize()
    model = provider.provide(pre_process=mpu.is_pipeline_first_stage(), post_process=mpu.is_pipeline_last_stage())
    bridge.load_hf_weights([model])
    (wrapped,) = _apply_mixed_precision_wrapper([model], provider, Float16Module)  # the Bridge's own; it keeps the digits of the routers' biases
    return bridge, [wrapped.module]


def exported(bridge, models):
    return {name: t for name, t in bridge.export_hf_weights(models, cpu=True, show_progress=False)}


if __name__ == "__main__":
    main_of_ranks(built, exported)
