"""Megatron-Core: a GPT of its local layers on tensor-parallel CPU ranks, saved as torch_dist by its
dist_checkpointing. Weights are from a Qwen3 of transformers, which `export` has to give."""

import argparse
import os

import torch
import torch.distributed as dist
from common import Case, main, run_ranks, tiny_model, values

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
    """The part of a tensor that a tensor-parallel rank has."""
    if name.endswith(("linear_proj.weight", "linear_fc2.weight")):
        return whole.chunk(tp, 1)[rank]
    if name.endswith("linear_fc1.weight"):
        return torch.cat([half.chunk(tp)[rank] for half in whole.chunk(2)])
    return whole.chunk(tp)[rank] if name.endswith(("linear_qkv.weight", "word_embeddings.weight", "output_layer.weight")) else whole


def model_of(tp):
    """The rank's part of the model, and the whole tensors by Megatron's names."""
    from megatron.core import parallel_state, tensor_parallel
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer import TransformerConfig
    on_cpu()
    parallel_state.initialize_model_parallel(tp)
    size = TransformerConfig(num_layers=LAYERS, hidden_size=HIDDEN, num_attention_heads=HEADS, num_query_groups=GROUPS, kv_channels=HEAD, ffn_hidden_size=FFN,
                             gated_linear_unit=True, activation_func=torch.nn.functional.silu, add_bias_linear=False, normalization="RMSNorm", use_cpu_initialization=True,
                             params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16, bf16=True, qk_layernorm=True, tensor_model_parallel_size=tp)
    tensor_parallel.random.initialize_rng_tracker()
    layer = get_gpt_layer_local_spec(None, qk_layernorm=True, normalization="RMSNorm")
    model = GPTModel(size, layer, VOCAB, 64, share_embeddings_and_output_weights=False, position_embedding_type="rope").to(torch.bfloat16)
    wholes = whole_tensors()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(part(name, wholes[name], dist.get_rank() % tp, tp))
    return size, model


def whole_tensors():
    state = tiny_model(**SIZES).state_dict()
    wholes = {"embedding.word_embeddings.weight": state["model.embed_tokens.weight"], "output_layer.weight": state["lm_head.weight"],
              "decoder.final_layernorm.weight": state["model.norm.weight"]}
    for i in range(LAYERS):
        wholes.update((f"decoder.layers.{i}.{name}", tensor) for name, tensor in fused(state, i).items())
    return wholes


def on_cpu():
    """Megatron asks for a GPU by name, and knows its tensors by their types."""
    def moved(function):
        def call(*args, **how):
            return function(*args, **{**how, "device": "cpu"} if str(how.get("device")).startswith("cuda") else how)
        return call
    torch.cuda.current_device, torch.cuda.synchronize, torch.cuda.empty_cache = lambda: "cpu", lambda *a: None, lambda: None
    torch.tensor, torch.empty, torch.zeros = moved(torch.tensor), moved(torch.empty), moved(torch.zeros)
    torch.Tensor.cuda = lambda self, *args, **how: self
    type_of = torch.Tensor.type
    torch.Tensor.type = lambda self, *args, **how: type_of(self, *args, **how) if args or how else type_of(self).replace("torch.", "torch.cuda.")


def args_of(tp):
    return argparse.Namespace(tensor_model_parallel_size=tp, pipeline_model_parallel_size=1, num_layers=LAYERS, hidden_size=HIDDEN, num_attention_heads=HEADS,
                              num_query_groups=GROUPS, kv_channels=HEAD, ffn_hidden_size=FFN, swiglu=True, padded_vocab_size=VOCAB, params_dtype=torch.bfloat16)


def save(folder, tp, more=lambda size, model: {}):
    from megatron.core import dist_checkpointing
    size, model = model_of(tp)
    os.makedirs(folder, exist_ok=True)
    states = more(size, model)
    dist_checkpointing.save({"model": model.sharded_state_dict(), "iteration": 5, "checkpoint_version": 3.0, "args": args_of(tp), **states}, folder)


def state_of(name, kind):
    """A moment of a parameter, whole."""
    return values(f"{kind} of {name}", whole_tensors()[name].shape, torch.float32)


def optimizer_of(size, model):
    """The states of Megatron's distributed optimizer after one step, whose weights and moments are then set, as fully_reshardable states."""
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    tp, rank = size.tensor_model_parallel_size, dist.get_rank()
    names = {id(p): name for name, p in model.named_parameters()}
    ddp = DistributedDataParallel(size, DistributedDataParallelConfig(use_distributed_optimizer=True), model)
    optimizer = get_megatron_optimizer(OptimizerConfig(optimizer="adam", lr=1e-3, bf16=True, params_dtype=torch.bfloat16, use_distributed_optimizer=True), [ddp])
    inner = getattr(optimizer, "chained_optimizers", [optimizer])[0]
    inner.init_state_fn(inner.optimizer, inner.config)
    with torch.no_grad():
        for groups, mains in zip(inner.model_float16_groups, inner.shard_fp32_from_float16_groups):
            for p, main in zip(groups, mains):
                items = inner._get_model_param_range_map(p)["param"]
                for kind in ("exp_avg", "exp_avg_sq"):
                    mine = part(names[id(p)], state_of(names[id(p)], kind), rank % tp, tp).reshape(-1)
                    inner.optimizer.state[main][kind].copy_(mine[items.start:items.end])
                inner.optimizer.state[main]["step"] = torch.tensor(3.0)  # torch's AdamW counts for each parameter
    shared = model.sharded_state_dict()
    return {"optimizer": optimizer.sharded_state_dict(shared, metadata={"distrib_optim_sharding_type": "fully_reshardable"})}


OF_TE = {"input_layernorm.weight": "self_attention.linear_qkv.layer_norm_weight", "pre_mlp_layernorm.weight": "mlp.linear_fc1.layer_norm_weight"}


def expected_states():
    """By the keys of torch_dist, in which the layers of a parameter are one tensor. `to-mcore` writes the names that layers of TransformerEngine have."""
    out, wholes = {}, whole_tensors()
    for name in wholes:
        for kind in ("param", "exp_avg", "exp_avg_sq"):
            of = [name.replace("layers.0.", f"layers.{i}.") for i in range(LAYERS)] if "layers.0." in name else [name]
            tensors = [wholes[n].to(torch.float32) if kind == "param" else state_of(n, kind) for n in of]
            if len(of) == LAYERS or ".layers." not in name:
                key = f"optimizer.state.{kind}.{name.replace('layers.0.', 'layers.')}"
                for local, te in OF_TE.items():
                    key = key.replace(local, te)
                out[key] = torch.stack(tensors) if len(of) > 1 else tensors[0]
    return out


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


def with_optimizer(out):
    case = Case(out, "with_optimizer", src="ckpt/iter_0000005", form="torch_dist of tp2 dp2 with fully_reshardable states")
    run_ranks(4, save, case.at("ckpt/iter_0000005"), 2, optimizer_of)
    with open(case.at("ckpt/latest_checkpointed_iteration.txt"), "w") as f:
        f.write("5")
    case.expect_folder(tiny_model(**SIZES))
    case.answer("expected_states", expected_states())


if __name__ == "__main__":
    main(["megatron-core", "torch"], tp2, tp2_dp2, with_optimizer)
