"""torchtitan: its state-dict adapters name the tensors, which DCP saves sharded over ranks. The model is that of transformers; the adapters read a few numbers of
a config of torchtitan, for which an object with these numbers stands."""

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


def make(out, name, adapter, model, world, titan_config, more={}, before=lambda state: state):
    """`before`: of the tensors that save_pretrained writes, what the adapter takes."""
    case = Case(out, name, src="ckpt/step-5", form=name)
    with torch.no_grad():
        adapter = adapter(titan_config, None)
        adapter._validate_hf_rope_config = lambda *a: None  # there is no folder whose config it could compare
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            state = adapter.from_hf(before(read_folder(folder)))
    state = {key: t.contiguous() for key, t in state.items()} | more
    run_ranks(world, save, case.at("ckpt/step-5"), state, 5)
    case.expect_folder(model)


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


if __name__ == "__main__":
    main(["torchtitan", "torch"], llama3, qwen3, qwen3_moe, deepseek_v3, gpt_oss, muse_glimmer)
