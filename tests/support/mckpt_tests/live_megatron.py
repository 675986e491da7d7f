"""Live ranks of Megatron-Core (megatron.core of PyPI) on the CPU: models built by its own code on gloo ranks, with values that plain code cuts
out of the tensors of a Hugging Face folder, and dumped by the product's rank_dump.py. Parts that need a GPU or TransformerEngine, and have
nothing to do with names, shapes and attributes, are replaced."""

import contextlib
import glob
import importlib.util
import json
import os
import re
import sys
import types
from unittest import mock

from mckpt_tests.setting import SOURCE

import logging  # noqa: E402
import warnings  # noqa: E402

warnings.simplefilter("ignore")
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402


class BareNorm(torch.nn.Module):
    """The norm of mamba_ssm, which needs a GPU to run; its parameters are all that is asked for."""

    def __init__(self, size, **_):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size, dtype=torch.bfloat16))


def stand_in_for_mamba_ssm():
    for name in ("mamba_ssm", "mamba_ssm.ops", "mamba_ssm.ops.triton", "mamba_ssm.ops.triton.layernorm_gated", "mamba_ssm.ops.triton.ssd_combined",
                 "mamba_ssm.ops.triton.selective_state_update"):
        module = sys.modules.setdefault(name, types.ModuleType(name))
        module.__path__ = []
        module.__getattr__ = lambda attribute: mock.MagicMock() if not attribute.startswith("__") else None
    sys.modules["mamba_ssm.ops.triton.layernorm_gated"].RMSNorm = BareNorm


if importlib.util.find_spec("mamba_ssm") is None:
    stand_in_for_mamba_ssm()
from megatron.core import parallel_state, tensor_parallel  # noqa: E402
from megatron.core.models.gpt import GPTModel  # noqa: E402
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec  # noqa: E402
from megatron.core.transformer import TransformerConfig  # noqa: E402

logging.disable(logging.WARNING)
spec = importlib.util.spec_from_file_location("rank_dump", os.path.join(SOURCE, "tools", "python", "mckpt", "rank_dump.py"))
rank_dump = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rank_dump)


# ---- In a rank: Megatron's model, and the values that it has there


def experts_of(c):
    return c.get("num_experts") or c.get("num_local_experts") or 0


def config_of(c, **more):
    """The TransformerConfig of a config.json."""
    return TransformerConfig(num_layers=c["num_hidden_layers"] if "num_hidden_layers" in c else len(c["layers_block_type"]), hidden_size=c["hidden_size"],
                             num_attention_heads=c["num_attention_heads"], num_query_groups=c["num_key_value_heads"], kv_channels=c["head_dim"],
                             ffn_hidden_size=c["intermediate_size"], add_bias_linear=False, normalization="RMSNorm", use_cpu_initialization=True,
                             params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16, bf16=True, **more)


def gpt(c, tp, ep):
    experts = experts_of(c) or None
    more = dict(gated_linear_unit=True, activation_func=torch.nn.functional.silu, qk_layernorm=True, tensor_model_parallel_size=tp)
    if experts:
        more |= dict(num_moe_experts=experts, moe_ffn_hidden_size=c["moe_intermediate_size"], moe_router_topk=2, expert_model_parallel_size=ep,
                     expert_tensor_parallel_size=1, moe_token_dispatcher_type="allgather")
    layer = get_gpt_layer_local_spec(experts, qk_layernorm=True, normalization="RMSNorm")
    return GPTModel(config_of(c, **more), layer, -(-c["vocab_size"] // tp) * tp, 64, share_embeddings_and_output_weights=False, position_embedding_type="rope")


def hybrid(c, tp, ep):
    from megatron.core.fusions.fused_bias_dropout import get_bias_dropout_add
    from megatron.core.models.mamba import MambaModel
    from megatron.core.ssm import mamba_block, mamba_mixer
    from megatron.core.ssm.mamba_block import MambaStack, MambaStackSubmodules
    from megatron.core.ssm.mamba_layer import MambaLayer, MambaLayerSubmodules
    from megatron.core.ssm.mamba_mixer import MambaMixer, MambaMixerSubmodules
    from megatron.core.ssm.mlp_layer import MLPLayer
    from megatron.core.tensor_parallel import ColumnParallelLinear, RowParallelLinear
    from megatron.core.transformer.attention import SelfAttention, SelfAttentionSubmodules
    from megatron.core.transformer.dot_product_attention import DotProductAttention
    from megatron.core.transformer.mlp import MLP, MLPSubmodules
    from megatron.core.transformer.spec_utils import ModuleSpec
    from megatron.core.transformer.torch_norm import WrappedTorchNorm
    from megatron.core.transformer.transformer_layer import TransformerLayer, TransformerLayerSubmodules

    # Parts that need a GPU or TransformerEngine are replaced.
    mamba_mixer.get_cuda_rng_tracker = lambda: types.SimpleNamespace(fork=contextlib.nullcontext)
    mamba_block.TENorm = WrappedTorchNorm
    mixer = ModuleSpec(module=MambaMixer, submodules=MambaMixerSubmodules(in_proj=ColumnParallelLinear, out_proj=RowParallelLinear))
    attention = ModuleSpec(module=SelfAttention, params={"attn_mask_type": None}, submodules=SelfAttentionSubmodules(
        linear_qkv=ColumnParallelLinear, core_attention=DotProductAttention, linear_proj=RowParallelLinear))
    mlp = ModuleSpec(module=MLP, submodules=MLPSubmodules(linear_fc1=ColumnParallelLinear, linear_fc2=RowParallelLinear))
    stack = ModuleSpec(module=MambaStack, submodules=MambaStackSubmodules(
        mamba_layer=ModuleSpec(module=MambaLayer, submodules=MambaLayerSubmodules(norm=WrappedTorchNorm, mixer=mixer, mamba_bda=get_bias_dropout_add)),
        attention_layer=ModuleSpec(module=TransformerLayer, submodules=TransformerLayerSubmodules(
            input_layernorm=WrappedTorchNorm, self_attention=attention, self_attn_bda=get_bias_dropout_add)),
        mlp_layer=ModuleSpec(module=MLPLayer, submodules=TransformerLayerSubmodules(pre_mlp_layernorm=WrappedTorchNorm, mlp=mlp, mlp_bda=get_bias_dropout_add))))
    size = config_of(c, gated_linear_unit=False, tensor_model_parallel_size=tp, mamba_state_dim=c["ssm_state_size"], mamba_head_dim=c["mamba_head_dim"],
                     mamba_num_groups=c["n_groups"], mamba_num_heads=c["mamba_num_heads"], is_hybrid_model=True)
    pattern = "".join({"mamba": "M", "mlp": "-", "attention": "*"}[kind] for kind in c["layers_block_type"])
    return MambaModel(size, stack, -(-c["vocab_size"] // tp) * tp, 64, hybrid_override_pattern=pattern, share_embeddings_and_output_weights=False)


def rows(whole, sizes, at, parts):
    """The rows of one of so many parts, of each section by itself."""
    return torch.cat([section.chunk(parts)[at] for section in whole.split(sizes)])


def padded(whole, parts):
    return torch.nn.functional.pad(whole, (0, 0, 0, -len(whole) % parts))


class Values:
    """The part of a model that a tensor-parallel rank holds, by names of parameters: plain cuts of whole tensors."""

    def __init__(self, folder, c, tp, at, experts):
        from safetensors.torch import load_file

        self.t, self.c, self.tp, self.at, self.experts = {}, c, tp, at, experts
        for file in glob.glob(os.path.join(folder, "*.safetensors")):
            self.t |= load_file(file)

    def half(self, name, dim=0):
        return self.t[name].chunk(self.tp, dim)[self.at]

    def qkv(self, at):
        q, k, v = (self.t[f"{at}.{x}_proj.weight"].reshape(self.c["num_key_value_heads"], -1, self.c["hidden_size"]) for x in "qkv")
        return torch.cat([q, k, v], 1).reshape(-1, self.c["hidden_size"]).chunk(self.tp)[self.at]

    def gated(self, at):
        return torch.cat([self.half(f"{at}.gate_proj.weight"), self.half(f"{at}.up_proj.weight")])

    def of(self, name):
        c, hybrid_model = self.c, "layers_block_type" in self.c
        head = "backbone" if hybrid_model else "model"
        if name == "embedding.word_embeddings.weight":
            return padded(self.t[f"{head}.embeddings.weight" if hybrid_model else f"{head}.embed_tokens.weight"], self.tp).chunk(self.tp)[self.at]
        if name == "output_layer.weight":
            return padded(self.t["lm_head.weight"], self.tp).chunk(self.tp)[self.at]
        if name.startswith("decoder.final_"):
            return self.t[f"{head}.norm_f.weight" if hybrid_model else f"{head}.norm.weight"]
        _, _, number, rest = name.split(".", 3)
        return self.of_mixer(f"{head}.layers.{number}", rest) if hybrid_model else self.of_layer(f"{head}.layers.{number}", rest)

    def of_layer(self, at, rest):
        if expert := re.fullmatch(r"mlp\.experts\.local_experts\.(\d+)\.linear_fc([12])\.weight", rest):
            mine = f"{at}.mlp.experts.{self.experts + int(expert[1])}"  # whole: there is one expert-tensor-parallel rank
            return torch.cat([self.t[f"{mine}.gate_proj.weight"], self.t[f"{mine}.up_proj.weight"]]) if expert[2] == "1" else self.t[f"{mine}.down_proj.weight"]
        return {"input_layernorm.weight": lambda: self.t[f"{at}.input_layernorm.weight"],
                "pre_mlp_layernorm.weight": lambda: self.t[f"{at}.post_attention_layernorm.weight"],
                "self_attention.linear_qkv.weight": lambda: self.qkv(f"{at}.self_attn"),
                "self_attention.linear_proj.weight": lambda: self.half(f"{at}.self_attn.o_proj.weight", 1),
                "self_attention.q_layernorm.weight": lambda: self.t[f"{at}.self_attn.q_norm.weight"],
                "self_attention.k_layernorm.weight": lambda: self.t[f"{at}.self_attn.k_norm.weight"],
                "mlp.router.weight": lambda: self.t[f"{at}.mlp.gate.weight"],
                "mlp.linear_fc1.weight": lambda: self.gated(f"{at}.mlp"),
                "mlp.linear_fc2.weight": lambda: self.half(f"{at}.mlp.down_proj.weight", 1)}[rest]()

    def of_mixer(self, at, rest):
        c, m = self.c, f"{at}.mixer"
        inner, groups, heads = c["mamba_num_heads"] * c["mamba_head_dim"], c["n_groups"] * c["ssm_state_size"], c["mamba_num_heads"]
        conv = [inner, groups, groups]
        return {"norm.weight": lambda: self.t[f"{at}.norm.weight"], "input_layernorm.weight": lambda: self.t[f"{at}.norm.weight"],
                "pre_mlp_layernorm.weight": lambda: self.t[f"{at}.norm.weight"],
                "mixer.in_proj.weight": lambda: rows(self.t[f"{m}.in_proj.weight"], [inner, *conv, heads], self.at, self.tp),
                "mixer.conv1d.weight": lambda: rows(self.t[f"{m}.conv1d.weight"], conv, self.at, self.tp),
                "mixer.conv1d.bias": lambda: rows(self.t[f"{m}.conv1d.bias"], conv, self.at, self.tp),
                "mixer.dt_bias": lambda: self.half(f"{m}.dt_bias"), "mixer.A_log": lambda: self.half(f"{m}.A_log"), "mixer.D": lambda: self.half(f"{m}.D"),
                "mixer.norm.weight": lambda: self.half(f"{m}.norm.weight"), "mixer.out_proj.weight": lambda: self.half(f"{m}.out_proj.weight", 1),
                "self_attention.linear_qkv.weight": lambda: self.qkv(m), "self_attention.linear_proj.weight": lambda: self.half(f"{m}.o_proj.weight", 1),
                "mlp.linear_fc1.weight": lambda: self.half(f"{m}.up_proj.weight"), "mlp.linear_fc2.weight": lambda: self.half(f"{m}.down_proj.weight", 1)}[rest]()


def filled(model, folder, c, tp, ep, rank):
    experts = rank % ep * (experts_of(c) // ep)
    values = Values(folder, c, tp, rank % tp, experts)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.data = p.data.to(torch.bfloat16)  # Mamba's fp32 parameters too: golden/ranks has them so
            p.copy_(values.of(name))
    return model


def take_the_cpu():
    torch.cuda.current_device = lambda: "cpu"


def in_rank(rank, world, meeting, folder, c, tp, ep, out):
    take_the_cpu()
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    parallel_state.initialize_model_parallel(tp, expert_model_parallel_size=ep, expert_tensor_parallel_size=1 if experts_of(c) else None)
    tensor_parallel.random.initialize_rng_tracker()
    model = filled((hybrid if "layers_block_type" in c else gpt)(c, tp, ep), folder, c, tp, ep, rank)
    rank_dump.dump_rank(model, f"{out}.{rank}.json")
    if ep == 1 and world > tp:
        shard_v1(folder, c, tp, rank, out)
    if tp == 1:
        shard(model, folder, c, rank, out)
    dist.barrier()
    os._exit(0)  # the end of torch in a process aborts from time to time


def shard(model, folder, c, rank, out):
    """The same model under torch's FSDP, and under Megatron-FSDP v2."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model.decoder.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    rank_dump.dump_rank(model, f"{out}.torch.{rank}.json")
    if importlib.util.find_spec("megatron_fsdp") is None:
        return
    from megatron_fsdp.experimental import Flat, Placements
    from megatron_fsdp.experimental import fully_shard as fully_shard_v2

    flat = Placements(dp_axes=[0], parameter=[Flat()], gradient=[Flat()], optimizer=[Flat()])
    again = filled(gpt(c, 1, 1), folder, c, 1, 1, rank)
    for layer in reversed(again.decoder.layers):
        fully_shard_v2(layer, mesh=mesh, placements=flat)
    fully_shard_v2(again, mesh=mesh, placements=flat)
    rank_dump.dump_rank(again, f"{out}.v2.{rank}.json")


def without_gpu():
    """The calls of a GPU that Megatron-FSDP v1 makes while it wraps a model."""
    from megatron.core.distributed.fsdp.src.megatron_fsdp import megatron_fsdp

    class NoStream:
        def __init__(self, *_, **__):
            pass

        def __getattr__(self, _):
            return lambda *_, **__: None

    for name in ("Stream", "Event", "current_stream", "default_stream"):
        setattr(torch.cuda, name, NoStream)
    for name in ("synchronize", "empty_cache", "set_device"):
        setattr(torch.cuda, name, lambda *_: None)
    torch.cuda.stream = lambda _: contextlib.nullcontext()
    torch.Tensor.cuda = lambda self, *_, **__: self
    shim = types.ModuleType("torch")
    shim.__dict__.update(torch.__dict__, device=lambda _: torch.device("cpu"))
    megatron_fsdp.torch = shim


def shard_v1(folder, c, tp, rank, out):
    """The same model under Megatron-FSDP v1, each layer a unit."""
    from megatron.core.distributed.fsdp.src.megatron_fsdp.fully_shard import fully_shard_model
    from megatron.core.transformer.transformer_layer import TransformerLayer
    from torch.distributed.device_mesh import init_device_mesh

    without_gpu()
    mesh = init_device_mesh("cpu", (dist.get_world_size() // tp, tp), mesh_dim_names=("dp", "tp"))
    hybrid_model, units = "layers_block_type" in c, [TransformerLayer]
    if hybrid_model:
        from megatron.core.ssm.mamba_layer import MambaLayer

        units.append(MambaLayer)
    model = filled((hybrid if hybrid_model else gpt)(c, tp, 1), folder, c, tp, 1, rank)
    for p in model.parameters():  # Mamba's, as newer versions set it: Megatron-FSDP 0.16 cannot wrap them without
        if getattr(p, "tensor_model_parallel", False) and not hasattr(p, "partition_dim"):
            p.partition_dim, p.partition_stride = 0, 1
    wrapped = fully_shard_model(model, device_mesh=mesh, dp_shard_dim="dp", tp_dim="tp", fsdp_unit_modules=units, zero_dp_strategy=3, device=torch.device("cpu"))
    rank_dump.dump_rank(wrapped, f"{out}.v1.{rank}.json")


def live(folder, out, tp, ep, world):
    """The dumps of all ranks of a run of the model in the folder; without tensor parallelism the ranks dump sharded models, too (shard())."""
    with open(os.path.join(folder, "config.json")) as f:
        c = json.load(f)
    mp.start_processes(in_rank, (world, out + ".meeting", folder, c, tp, ep, out), nprocs=world, start_method="fork")
    return [f"{out}.{rank}.json" for rank in range(world)]
