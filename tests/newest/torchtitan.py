"""torchtitan: its state-dict adapters name the tensors, which DCP saves sharded over ranks. The model is
transformers'; the adapters read a few numbers of a config of torchtitan, for which an object with these
numbers stands."""

import sys
import tempfile
import types

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from common import Case, fill, main, read_folder, run_ranks, tiny_model, values
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


def numbers(config, **more):
    moe = types.SimpleNamespace(num_experts=getattr(config, "num_experts", 0) or getattr(config, "n_routed_experts", 0))
    attention = types.SimpleNamespace(n_heads=config.num_attention_heads, n_kv_heads=config.num_key_value_heads, head_dim=getattr(config, "head_dim", None),
                                      q_lora_rank=getattr(config, "q_lora_rank", 0))
    layer = types.SimpleNamespace(attention=attention, moe=moe)
    return types.SimpleNamespace(layers=[layer] * config.num_hidden_layers, dim=config.hidden_size, enable_weight_tying=False, mtp_layers=[], **more)


def save(folder, state, step):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    sharded = {name: distribute_tensor(t, mesh, [Shard(0)]) if t.dim() else t for name, t in state.items()}
    dcp.save({**sharded, "train_state.step": torch.tensor(step)}, checkpoint_id=folder)


def saved_by(model):
    """The folder that save_pretrained writes of it."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return read_folder(folder)


def save_case(out, name, adapter, world, titan_config, tensors, more={}):
    case = Case(out, name, src="ckpt/step-5", form=name)
    with torch.no_grad():
        adapter = adapter(titan_config, None)
        adapter._validate_hf_rope_config = lambda *a: None  # there is no folder whose config it could compare
        state = adapter.from_hf(tensors)
    state = {key: t.contiguous() for key, t in state.items()} | more
    run_ranks(world, save, case.at("ckpt/step-5"), state, 5)
    return case


def make(out, name, adapter, model, world, titan_config, more={}, before=lambda state: state):
    """`before`: of the tensors that save_pretrained writes, what the adapter takes."""
    save_case(out, name, adapter, world, titan_config, before(saved_by(model)), more).expect_folder(model)


def llama3(out):
    import transformers
    from torchtitan.models.llama3.state_dict_adapter import Llama3StateDictAdapter
    config = transformers.LlamaConfig(vocab_size=53, hidden_size=24, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2, head_dim=4,
                                      intermediate_size=34, dtype=torch.bfloat16)
    make(out, "llama3", Llama3StateDictAdapter, fill(transformers.LlamaForCausalLM(config).to(torch.bfloat16)), 2, numbers(config))


def qwen3(out):
    from torchtitan.models.qwen3.state_dict_adapter import Qwen3StateDictAdapter
    model = tiny_model()
    make(out, "qwen3", Qwen3StateDictAdapter, model, 3, numbers(model.config))


def qwen3_moe(out):
    from torchtitan.models.qwen3.state_dict_adapter import Qwen3StateDictAdapter
    model = tiny_model("moe")
    # A buffer of its router for the load of experts, which no folder has a place for.
    bias = {f"layers.{i}.moe.expert_bias_E": values(f"bias {i}", (5,), torch.float32) for i in range(3)}
    make(out, "qwen3_moe", Qwen3StateDictAdapter, model, 2, numbers(model.config), bias)


def deepseek_v3(out):
    import transformers
    from torchtitan.models.deepseek_v3.state_dict_adapter import DeepSeekV3StateDictAdapter
    config = transformers.DeepseekV3Config(vocab_size=53, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3, n_routed_experts=4,
                                           n_shared_experts=1, moe_intermediate_size=10, intermediate_size=38, kv_lora_rank=14, q_lora_rank=12, qk_nope_head_dim=6,
                                           qk_rope_head_dim=4, v_head_dim=8, first_k_dense_replace=1, n_group=1, topk_group=1, num_experts_per_tok=2,
                                           num_nextn_predict_layers=0, dtype=torch.bfloat16)
    model = fill(transformers.DeepseekV3ForCausalLM(config).to(torch.bfloat16))
    make(out, "deepseek_v3", DeepSeekV3StateDictAdapter, model, 2, numbers(config))


def gpt_oss(out):
    import transformers
    from torchtitan.models.gpt_oss.state_dict_adapter import GptOssStateDictAdapter
    config = transformers.GptOssConfig(vocab_size=53, hidden_size=24, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2, head_dim=4,
                                       intermediate_size=20, num_local_experts=4, num_experts_per_tok=2, dtype=torch.bfloat16)
    model = fill(transformers.GptOssForCausalLM(config).to(torch.bfloat16))

    def as_codes(state):
        """The adapter calls the stacks by the names of their codes, and has their dimensions in the order of the codes."""
        stacks = (".gate_up_proj", ".down_proj")
        return {key + "_blocks" if key.endswith(stacks) else key: t.transpose(1, 2) if key.endswith(stacks) else t for key, t in state.items()}
    make(out, "gpt_oss", GptOssStateDictAdapter, model, 2, numbers(config), before=as_codes)


def muse_glimmer(out):
    import transformers
    from torchtitan.models.muse_glimmer.state_dict_adapter import MuseGlimmerStateDictAdapter
    text = {"vocab_size": 53, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 34,
            "layer_types": ["sliding_attention", "full_attention"], "layer_rope_theta": [10000.0, 0], "pad_token_id": 0}
    vision = {"hidden_size": 16, "intermediate_size": 26, "num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": 4, "pos_emb_height": 4, "pos_emb_width": 4,
              "layer_types": ["window_attention", "full_attention"]}
    config = transformers.MuseGlimmerConfig(text_config=text, vision_config=vision, projector_hidden_size=18, out_hidden_size=20, dtype=torch.bfloat16)
    model = fill(transformers.MuseGlimmerForConditionalGeneration(config).to(torch.bfloat16))
    vision_encoder = types.SimpleNamespace(num_heads=2)
    make(out, "muse_glimmer", MuseGlimmerStateDictAdapter, model, 2, numbers(config.text_config, vision_encoder=vision_encoder))


def without_kernels():
    """torchtitan's model of qwen3_5 imports kernels of flash-linear-attention, which are for GPUs. The names of its tensors need none of them."""
    for name in ("fla", "fla.modules", "fla.modules.conv", "fla.modules.conv.triton", "fla.modules.conv.triton.ops", "fla.ops", "fla.ops.gated_delta_rule",
                 "fla.ops.gated_delta_rule.chunk", "fla.ops.gated_delta_rule.fused_recurrent"):
        module = types.ModuleType(name)
        module.__path__, module.__getattr__ = [], lambda attribute: None
        sys.modules.setdefault(name, module)


def qwen3_5(out):
    import transformers
    without_kernels()
    from torchtitan.models.qwen3_5.state_dict_adapter import Qwen35StateDictAdapter
    text = {"vocab_size": 53, "hidden_size": 24, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 34,
            "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"], "linear_key_head_dim": 6, "linear_num_key_heads": 2,
            "linear_num_value_heads": 4, "linear_value_head_dim": 10}
    vision = {"depth": 2, "hidden_size": 16, "intermediate_size": 26, "num_heads": 2, "num_position_embeddings": 16, "out_hidden_size": 24, "patch_size": 4,
              "spatial_merge_size": 2, "temporal_patch_size": 2, "in_channels": 3}
    config = transformers.Qwen3_5Config(text_config=text, vision_config=vision, tie_word_embeddings=False, dtype=torch.bfloat16)
    model = fill(transformers.Qwen3_5ForConditionalGeneration(config).to(torch.bfloat16))
    rows = types.SimpleNamespace(in_proj_q=types.SimpleNamespace(out_features=12), in_proj_v=types.SimpleNamespace(out_features=40))
    encoder = types.SimpleNamespace(in_channels=3, temporal_patch_size=2, patch_size=4)
    titan = types.SimpleNamespace(layers=[types.SimpleNamespace(delta_net=rows)] * 4, enable_weight_tying=False, vision_encoder=encoder)
    make(out, "qwen3_5", Qwen35StateDictAdapter, model, 2, titan)


def kimi_k2_7(out):
    """The language model is DeepSeek's; the vision tower has the names of the release, which transformers
    5.24 does not write."""
    import transformers
    from torchtitan.models.kimi_k2_7.state_dict_adapter import KimiK25StateDictAdapter
    text = {"vocab_size": 53, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3, "num_key_value_heads": 3, "n_routed_experts": 4, "n_shared_experts": 1,
            "moe_intermediate_size": 10, "intermediate_size": 38, "kv_lora_rank": 14, "q_lora_rank": 12, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 8,
            "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 2, "num_nextn_predict_layers": 0}
    vision = {"hidden_size": 16, "intermediate_size": 26, "num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": 4, "pos_emb_height": 4, "pos_emb_width": 4,
              "merge_kernel_size": [2, 2]}
    language = transformers.DeepseekV3Config(**text, dtype=torch.bfloat16)
    tensors = {f"language_model.{key}": t for key, t in saved_by(fill(transformers.DeepseekV3ForCausalLM(language).to(torch.bfloat16))).items()}
    linear = {"mlp.fc0": (26, 16), "mlp.fc1": (16, 26), "wo": (16, 16), "wqkv": (48, 16), "norm0": (16,), "norm1": (16,)}
    shapes = {f"vision_tower.encoder.blocks.{i}.{module}": shape for i in range(2) for module, shape in linear.items()}
    shapes |= {"vision_tower.encoder.final_layernorm": (16,), "vision_tower.patch_embed.proj": (16, 3, 4, 4), "mm_projector.pre_norm": (16,),
               "mm_projector.proj.0": (64, 64), "mm_projector.proj.2": (24, 64)}
    for module, shape in shapes.items():
        for name, of in (("weight", shape), ("bias", shape[:1])):
            tensors[f"{module}.{name}"] = values(f"{module}.{name}", of, torch.bfloat16)
    tensors["vision_tower.patch_embed.pos_emb.weight"] = values("pos_emb", (4, 4, 16), torch.bfloat16)
    encoder = types.SimpleNamespace(patch_size=4, in_channels=3)
    case = save_case(out, "kimi_k2_7", KimiK25StateDictAdapter, 2, numbers(language, vision_encoder=encoder), dict(tensors))
    case.answer("expected", tensors)
    case.answer("expected_bf16", tensors)
    config = transformers.AutoConfig.for_model("kimi_k25", text_config={**text, "model_type": "deepseek_v3"}, vision_config=vision, projection_hidden_size=16,
                                               dtype=torch.bfloat16, architectures=["Kimi_K25ForConditionalGeneration"], tie_word_embeddings=False)
    config.save_pretrained(case.at("assets"))


if __name__ == "__main__":
    main(["torchtitan", "torch"], llama3, qwen3, qwen3_moe, deepseek_v3, gpt_oss, muse_glimmer, qwen3_5, kimi_k2_7)
