#!/usr/bin/env python3
"""Writes what each rank of Megatron-Bridge holds of a tiny model. usage: megatron_bridge_ranks.py OUT MODEL... [--grids TP,EP,PP,ETP[,WORLD]...]"""
from oracle_ranks import main  # isort: skip  (before torch's users)
import torch
from megatron.bridge import AutoBridge
from megatron.core import mpu
from megatron.core.transformer.module import Float16Module


def built(model_dir, grid, opts):
    bridge = AutoBridge.from_hf_pretrained(model_dir, torch_dtype=torch.bfloat16)
    provider = bridge.to_megatron_provider(load_weights=False)
    sizes = {"tensor_model_parallel_size": grid["tp"], "pipeline_model_parallel_size": grid["pp"], "context_parallel_size": grid["cp"], "expert_model_parallel_size": grid["ep"],
             "expert_tensor_parallel_size": grid["etp"], "sequence_parallel": grid["tp"] > 1}
    host = {"use_cpu_initialization": True, "gradient_accumulation_fusion": False, "params_dtype": torch.bfloat16, "bf16": True, "pipeline_dtype": torch.bfloat16}
    for name, value in {**sizes, **host, **opts}.items():
        setattr(provider, name, value)
    provider.finalize()
    model = provider.provide(pre_process=mpu.is_pipeline_first_stage(), post_process=mpu.is_pipeline_last_stage())
    bridge.load_hf_weights([model])
    return bridge, [Float16Module(provider, model).module]


def exported(bridge, models):
    return {name: t for name, t in bridge.export_hf_weights(models, cpu=True, show_progress=False)}


if __name__ == "__main__":
    main(built, exported)
