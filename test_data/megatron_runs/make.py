"""Small runs of Megatron-Core on the CPU, each saved twice by its own code: as files of ranks with the optimizer of each
rank (`--ckpt-format torch`, no distributed optimizer), and as torch_dist with the same states.

    python make.py OUT [CASE]...     OUT/CASE/iter_0000003/mp_rank_*/model_optim_rng.pt
                                     OUT/CASE/torch_dist/iter_0000003/.metadata, __*.distcp, common.pt, metadata.json
                                     OUT/CASE/hf/config.json, OUT/CASE/options.json
                                     OUT/CASE.tar.xz, all of these

Real are the model with its specs, the optimizers and their groups, Adam's states after three steps, the schedule and both
state dicts. Then every item of every tensor gets a value of its own. The optimizer asks for GPUs by name; a few functions of torch are
replaced so that it takes those on the CPU. The args are made here, as Megatron-LM's training program has them.
"""

import argparse
import json
import os
import sys
import tarfile
import tempfile
import warnings

warnings.simplefilter("ignore")
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402
from megatron.core import dist_checkpointing, parallel_state, tensor_parallel  # noqa: E402
from megatron.core.distributed import DistributedDataParallelConfig  # noqa: E402
from megatron.core.models.gpt import GPTModel  # noqa: E402
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec, get_gpt_mtp_block_spec  # noqa: E402
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer, get_standard_config_overrides  # noqa: E402
from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler  # noqa: E402
from megatron.core.transformer import TransformerConfig  # noqa: E402

STEP = 3
# The metadata that the training program gives to a save without a distributed optimizer.
METADATA = {"singleton_local_shards": False, "chained_optim_avoid_prefix": True}
HIDDEN, HEADS, GROUPS, HEAD, FFN, VOCAB = 8, 4, 2, 4, 10, 24
CASES = {
    # Stages of 2 and 3 layers; the embedding and the output layer learn at a rate of their own.
    "dense": dict(tp=2, pp=2, layers=5, first=2, apart=True),
    # Experts on two ranks: an optimizer for them beside the other one.
    "experts": dict(tp=2, ep=2, layers=2, experts=4),
    # Two chunks a stage, weights in fp32, the output layer tied to the embedding.
    "chunks": dict(pp=2, vpp=2, layers=4, tied=True, dtype=torch.float32),
    # MTP and the output layer have stages of their own.
    "stages": dict(pp=4, layers=3, layout="Et|tt|m|L", mtp=1),
    # The same with the embedding alone on its stage, and an output layer that is tied to it.
    "ends": dict(pp=4, layers=2, layout="E|tt|m|L", mtp=1, tied=True),
}


def config(case):
    out = dict(hidden_size=HIDDEN, intermediate_size=FFN, num_attention_heads=HEADS, num_key_value_heads=GROUPS, head_dim=HEAD,
               num_hidden_layers=case["layers"], vocab_size=VOCAB, rms_norm_eps=1e-6, rope_theta=10000.0, max_position_embeddings=64,
               hidden_act="silu", attention_bias=False, tie_word_embeddings=case.get("tied", False),
               torch_dtype="float32" if case.get("dtype") else "bfloat16")
    if experts := case.get("experts"):
        return dict(architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", num_experts=experts, num_experts_per_tok=2,
                    moe_intermediate_size=FFN - 4, decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True, **out)
    if mtp := case.get("mtp"):
        out["mtp_num_hidden_layers"] = mtp
    return dict(architectures=["Qwen3ForCausalLM"], model_type="qwen3", **out)


def take_the_cpu():
    """The functions that the optimizer asks of a GPU, answered by the CPU."""
    type_of, tensor_of = torch.Tensor.type, torch.tensor

    def as_on_gpu(self, *args, **kwargs):
        out = type_of(self, *args, **kwargs)
        return out.replace("torch.", "torch.cuda.", 1) if isinstance(out, str) else out

    torch.Tensor.type = as_on_gpu
    torch.Tensor.cuda = lambda self, *args, **kwargs: self
    torch.cuda.synchronize, torch.cuda.current_device = lambda *args: None, lambda: "cpu"
    torch.tensor = lambda *args, **kwargs: tensor_of(*args, **{k: v for k, v in kwargs.items() if k != "device"})


class Values:
    """Which number each item of the model has: the number of its parameter, and of its place in the parameter
    on the tensor-parallel rank. Ranks with the same parameter have the same numbers."""

    def __init__(self, names, tp):
        self.code = {name: i for i, name in enumerate(sorted(names))}
        self.tp = tp

    def of(self, name, parameter):
        split = getattr(parameter, "tensor_model_parallel", False) or getattr(parameter, "partition_dim", -1) >= 0
        first = self.code[name] * 1024 + (self.tp * 512 if split else 0)
        assert parameter.numel() <= 512 and first < 1 << 23
        return first + torch.arange(parameter.numel()).reshape(parameter.shape)

    def main(self, number):
        """fp32 numbers that round to bf16 numbers which differ among themselves in every tensor."""
        bits = ((number * 37 % 0x7F00) << 16) | (number * 5 % 0x7FFF)
        return bits.to(torch.int32).view(torch.float32)


def args_of(case):
    number = dict(tensor_model_parallel_size=case.get("tp", 1), pipeline_model_parallel_size=case.get("pp", 1),
                  virtual_pipeline_model_parallel_size=case.get("vpp"), expert_model_parallel_size=case.get("ep", 1),
                  expert_tensor_parallel_size=1 if case.get("ep") else case.get("tp", 1), context_parallel_size=1,
                  decoder_first_pipeline_num_layers=case.get("first"), pipeline_model_parallel_layout=case.get("layout"), mtp_num_layers=case.get("mtp"), num_layers=case["layers"], hidden_size=HIDDEN, ffn_hidden_size=FFN,
                  num_attention_heads=HEADS, num_query_groups=GROUPS, kv_channels=HEAD, num_experts=case.get("experts"), padded_vocab_size=VOCAB,
                  use_distributed_optimizer=False, ckpt_format="torch", swiglu=True, iteration=STEP, lr=0.25, weight_decay=0.125,
                  decoupled_lr=0.5 if case.get("apart") else None, decoupled_min_lr=0.0625 if case.get("apart") else None,
                  params_dtype=case.get("dtype", torch.bfloat16))
    return argparse.Namespace(**number)


def in_rank(rank, world, meeting, out, case):
    take_the_cpu()
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    parallel_state.initialize_model_parallel(case.get("tp", 1), case.get("pp", 1), case.get("vpp"), expert_model_parallel_size=case.get("ep", 1),
                                             expert_tensor_parallel_size=1 if case.get("ep") else None)
    dtype = case.get("dtype", torch.bfloat16)
    size = TransformerConfig(num_layers=case["layers"], hidden_size=HIDDEN, num_attention_heads=HEADS, num_query_groups=GROUPS, kv_channels=HEAD,
                             ffn_hidden_size=FFN, moe_ffn_hidden_size=FFN - 4 if case.get("experts") else None, gated_linear_unit=True, activation_func=torch.nn.functional.silu,
                             add_bias_linear=False, normalization="RMSNorm", num_moe_experts=case.get("experts"), moe_router_topk=2,
                             num_layers_in_first_pipeline_stage=case.get("first"), pipeline_model_parallel_layout=case.get("layout"),
                             mtp_num_layers=case.get("mtp"), use_cpu_initialization=True, params_dtype=dtype,
                             tensor_model_parallel_size=case.get("tp", 1), pipeline_model_parallel_size=case.get("pp", 1), pipeline_dtype=dtype,
                             virtual_pipeline_model_parallel_size=case.get("vpp"), expert_model_parallel_size=case.get("ep", 1),
                             expert_tensor_parallel_size=1, bf16=dtype == torch.bfloat16)
    tensor_parallel.random.initialize_rng_tracker()
    chunks = []
    for vp in range(case.get("vpp", 1)):
        ends = dict(ignore_virtual=False, vp_stage=vp) if case.get("vpp") else {}
        layer = get_gpt_layer_local_spec(case.get("experts"), qk_layernorm=True, normalization="RMSNorm")
        mtp_layers = get_gpt_mtp_block_spec(size, layer, use_transformer_engine=False, vp_stage=vp if case.get("vpp") else None) if case.get("mtp") else None
        model = GPTModel(size, layer, VOCAB, 64, mtp_block_spec=mtp_layers,
                         pre_process=parallel_state.is_pipeline_first_stage(**ends), post_process=parallel_state.is_pipeline_last_stage(**ends),
                         share_embeddings_and_output_weights=case.get("tied", False), position_embedding_type="rope",
                         vp_stage=vp if case.get("vpp") else None)
        model.to(dtype)
        model.ddp_config = DistributedDataParallelConfig()
        chunks.append(model)

    # The names that the parameters have in the whole model.
    named = []
    for model in chunks:
        for name, parameter in model.named_parameters():
            parts = name.split(".")
            if name.startswith("decoder.layers."):
                parts[2] = str(model.decoder.layers[int(parts[2])].layer_number - 1)
            if "local_experts" in parts:
                at = parts.index("local_experts") + 1
                parts[at] = str(int(parts[at]) + parallel_state.get_expert_model_parallel_rank() * case["experts"] // case["ep"])
            if name == "output_layer.weight" and case.get("tied"):
                parts = ["embedding", "word_embeddings", "weight"]
            named.append((".".join(parts), parameter))
    everywhere = [None] * world
    dist.all_gather_object(everywhere, [name for name, _ in named])
    values = Values({name for names in everywhere for name in names}, parallel_state.get_tensor_model_parallel_rank())

    settings = OptimizerConfig(optimizer="adam", lr=0.25, min_lr=0.0, weight_decay=0.125, adam_beta1=0.5, adam_beta2=0.75, bf16=dtype == torch.bfloat16,
                               params_dtype=dtype, use_distributed_optimizer=False, decoupled_lr=0.5 if case.get("apart") else None, decoupled_min_lr=0.0625)
    optimizer = get_megatron_optimizer(settings, chunks, get_standard_config_overrides(settings))
    schedule = OptimizerParamScheduler(optimizer, 0.0, 0.25, 0.0, 2, 10, "linear", 0.125, 0.125, 10, "constant")
    options = {}
    for _ in range(STEP):
        schedule.step(1)
        for name, parameter in named:
            main = getattr(parameter, "main_param", parameter)
            main.grad = torch.zeros_like(main)
        for one in getattr(optimizer, "chained_optimizers", [optimizer]):
            one.optimizer.step()
    for one in getattr(optimizer, "chained_optimizers", [optimizer]):
        owner = {id(p): group for group in one.optimizer.param_groups for p in group["params"]}
        for name, parameter in named:
            main = getattr(parameter, "main_param", parameter)
            if id(main) not in owner:
                continue
            number = values.of(name, parameter)
            with torch.no_grad():
                main.copy_(values.main(number))
                parameter.copy_(main)
            state = one.optimizer.state[main]
            assert state["step"] == STEP
            state["exp_avg"] = number.float() / 2**10
            state["exp_avg_sq"] = number.float() / 2**20
            options[name] = {key: value for key, value in owner[id(main)].items() if key in ("wd_mult", "lr_mult", "lr", "is_expert_parallel", "max_lr")}
    assert len(options) == len({name for name, _ in named})

    keys = ["model"] if len(chunks) == 1 else [f"model{i}" for i in range(len(chunks))]
    saved = {"args": args_of(case), "checkpoint_version": 3.0, "iteration": STEP}
    saved |= {key: model.state_dict_for_save_checkpoint() for key, model in zip(keys, chunks)}
    saved |= {"optimizer": optimizer.state_dict(), "opt_param_scheduler": schedule.state_dict(), "num_floating_point_operations_so_far": 7}
    folder = f"mp_rank_{parallel_state.get_tensor_model_parallel_rank():02d}"
    folder += f"_{parallel_state.get_pipeline_model_parallel_rank():03d}" if case.get("pp", 1) > 1 else ""
    folder += f"_{parallel_state.get_expert_model_parallel_rank():03d}" if case.get("ep", 1) > 1 else ""
    os.makedirs(os.path.join(out, f"iter_{STEP:07d}", folder))
    torch.save(saved, os.path.join(out, f"iter_{STEP:07d}", folder, "model_optim_rng.pt"))

    whole = {key: model.sharded_state_dict(metadata=METADATA) for key, model in zip(keys, chunks)}
    state = {"args": args_of(case), "checkpoint_version": 3.0, "iteration": STEP, **whole, "optimizer": optimizer.sharded_state_dict(whole, metadata=METADATA),
             "opt_param_scheduler": schedule.state_dict(), "num_floating_point_operations_so_far": 7}
    target = os.path.join(out, "torch_dist", f"iter_{STEP:07d}")
    if rank == 0:
        os.makedirs(target)
    dist.barrier()
    dist_checkpointing.save(state, target, content_metadata=METADATA)
    gathered = [None] * world
    dist.all_gather_object(gathered, options)
    if rank == 0:
        merged = {name: value for one in gathered for name, value in one.items()}
        assert all(merged[name] == value for one in gathered for name, value in one.items())
        with open(os.path.join(out, "options.json"), "w") as f:
            json.dump(merged, f, indent=0, sort_keys=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    out, cases = sys.argv[1], sys.argv[2:] or list(CASES)
    for name in cases:
        case, folder = CASES[name], os.path.join(out, name)
        world = case.get("tp", 1) * case.get("pp", 1)
        os.makedirs(os.path.join(folder, "hf"))
        with open(os.path.join(folder, "hf", "config.json"), "w") as f:
            json.dump(config(case), f, indent=1)
        with tempfile.TemporaryDirectory() as meet:
            ranks = [mp.get_context("fork").Process(target=in_rank, args=(r, world, os.path.join(meet, "m"), folder, case)) for r in range(world)]
            for process in ranks:
                process.start()
            for process in ranks:
                process.join()
                assert process.exitcode == 0
        with tarfile.open(os.path.join(out, name + ".tar.xz"), "w:xz") as archive:
            archive.add(folder, name)


if __name__ == "__main__":
    main()
