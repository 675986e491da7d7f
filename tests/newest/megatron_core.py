"""Megatron-Core: a GPT of its local layers on tensor-parallel CPU ranks, saved as torch_dist by its dist_checkpointing. Weights are those of a Qwen3 of transformers, which is
what `export` has to give."""

import argparse
import os

import torch
import torch.distributed as dist
from common import Case, main, run_ranks, tiny_model

LAYERS, HIDDEN, HEADS, GROUPS, HEAD, FFN, VOCAB = 3, 24, 6, 2, 10, 34, 56
SIZES = {"vocab_size": VOCAB, "num_hidden_layers": LAYERS}


def fused(state, i):
    """Megatron's tensors of a layer: queries, keys and values group by group, gate rows above up rows."""
    at = f"model.layers.{i}."
    q, k, v = (state[f"{at}self_attn.{x}_proj.weight"].reshape(GROUPS, -1, HIDDEN) for x in "qkv")
    return {"self_attention.linear_qkv.weight": torch.cat([q, k, v], 1).reshape(-1, HIDDEN),
            "self_attention.linear_proj.weight": state[at + "self_attn.o_proj.weight"], "mlp.linear_fc2.weight": state[at + "mlp.down_proj.weight"],
            "mlp.linear_fc1.weight": torch.cat([state[at + "mlp.gate_proj.weight"], state[at + "mlp.up_proj.weight"]]),
            "self_attention.q_layernorm.weight": state[at + "self_attn.q_norm.weight"], "self_attention.k_layernorm.weight": state[at + "self_attn.k_norm.weight"],
            "input_layernorm.weight": state[at + "input_layernorm.weight"], "pre_mlp_layernorm.weight": state[at + "post_attention_layernorm.weight"]}


def part(name, whole, rank, tp):
    """What a tensor-parallel rank has of a tensor."""
    if name.endswith(("linear_proj.weight", "linear_fc2.weight")):
        return whole.chunk(tp, 1)[rank]
    if name.endswith("linear_fc1.weight"):
        return torch.cat([half.chunk(tp)[rank] for half in whole.chunk(2)])
    return whole.chunk(tp)[rank] if name.endswith(("linear_qkv.weight", "word_embeddings.weight", "output_layer.weight")) else whole


def save(folder, tp):
    from megatron.core import dist_checkpointing, parallel_state, tensor_parallel
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer import TransformerConfig
    torch.cuda.current_device, torch.cuda.synchronize = lambda: "cpu", lambda *a: None
    parallel_state.initialize_model_parallel(tp)
    size = TransformerConfig(num_layers=LAYERS, hidden_size=HIDDEN, num_attention_heads=HEADS, num_query_groups=GROUPS, kv_channels=HEAD, ffn_hidden_size=FFN,
                             gated_linear_unit=True, activation_func=torch.nn.functional.silu, add_bias_linear=False, normalization="RMSNorm", use_cpu_initialization=True,
                             params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16, bf16=True, qk_layernorm=True, tensor_model_parallel_size=tp)
    tensor_parallel.random.initialize_rng_tracker()
    layer = get_gpt_layer_local_spec(None, qk_layernorm=True, normalization="RMSNorm")
    model = GPTModel(size, layer, VOCAB, 64, share_embeddings_and_output_weights=False, position_embedding_type="rope").to(torch.bfloat16)
    state = tiny_model(**SIZES).state_dict()
    wholes = {"embedding.word_embeddings.weight": state["model.embed_tokens.weight"], "output_layer.weight": state["lm_head.weight"],
              "decoder.final_layernorm.weight": state["model.norm.weight"]}
    for i in range(LAYERS):
        wholes.update((f"decoder.layers.{i}.{name}", tensor) for name, tensor in fused(state, i).items())
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(part(name, wholes[name], dist.get_rank() % tp, tp))
    os.makedirs(folder, exist_ok=True)
    args = argparse.Namespace(tensor_model_parallel_size=tp, pipeline_model_parallel_size=1, num_layers=LAYERS, hidden_size=HIDDEN, num_attention_heads=HEADS,
                              num_query_groups=GROUPS, kv_channels=HEAD, ffn_hidden_size=FFN, swiglu=True, padded_vocab_size=VOCAB, params_dtype=torch.bfloat16)
    dist_checkpointing.save({"model": model.sharded_state_dict(), "iteration": 5, "checkpoint_version": 3.0, "args": args}, folder)


def make(out, name, world, tp):
    case = Case(out, name, src="ckpt/iter_0000005", form=f"torch_dist of {name.replace('_', ' ')}")
    run_ranks(world, save, case.at("ckpt/iter_0000005"), tp)
    with open(case.at("ckpt/latest_checkpointed_iteration.txt"), "w") as f:
        f.write("5")
    case.expect_folder(tiny_model(**SIZES))


def tp2(out):
    make(out, "tp2", 2, 2)


def tp2_dp2(out):
    make(out, "tp2_dp2", 4, 2)


if __name__ == "__main__":
    main(["megatron-core", "torch"], tp2, tp2_dp2)
