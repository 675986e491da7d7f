"""Tiny models of the families, for transformers to build: the configs of test_data/golden, and configs written here for families
of which there is no golden data.
"""
import copy
import json
import os

from mckpt_tests.setting import DATA

# Families whose code is on the hub beside their weights, and the class that transformers would need.
# transformers' own class of qwen3_asr has other names, without a thinker; its class for Kimi K2.5 has another name, and
# transformers 5.23 saves it with `blocks` for `layers` in the language model, which no program reads. From 5.24 on transformers
# loads sarvam_moe and sarvam_mla as classes of other families.
NO_CLASS = {
    "bailing_moe_v2": "BailingMoeV2ForCausalLM", "sarvam_moe": "SarvamMoEForCausalLM", "sarvam_mla": "SarvamMLAForCausalLM", "mimo": "MiMoForCausalLM", "llama_nemotron": "DeciLMForCausalLM",
    "step3p5": "Step3p5ForCausalLM", "kimi_k25": "KimiK25ForConditionalGeneration", "nemotron_vl": "NemotronH_Nano_VL_V2", "nemotron_omni": "NemotronH_Nano_Omni_Reasoning_V3", "qwen3_asr": "Qwen3ASRThinkerForConditionalGeneration",
}

# The models of test_data/golden/families that transformers has. kimi_k2 is a type of the hub alone; glm4_moe with prediction
# layers is not built by transformers.
GOLDEN_FAMILIES = (
    "mistral", "gemma", "gemma2", "gemma3", "gemma3_vl", "exaone4", "nemotron", "olmoe", "minimax_m2", "minimax_m3_vl", "hy_v3", "exaone_moe",
    "ernie4_5_moe", "deepseek_v2", "glm4_moe", "glm4_moe_lite", "glm4v_moe", "glm_moe_dsa", "falcon_h1", "ministral3", "qwen2_5_vl", "qwen2_audio",
    "qwen3_omni_moe", "qwen2_5_omni_a", "exaone4_5_a", "ernie4_5_vl_moe_a", "nemotron3_latent", "qwen3_5_moe_text", "gemma4_moe", "gemma4_ple", "gemma4_vl",
    "gemma4_audio_a", "gemma4_audio_e",
    "internvl_a", "internvl_b", "internvl_moe_a", "llama4_a", "llama4_b", "muse_glimmer_a", "qwen4_exp_a", "qwen4_exp_b",
)

# The models of test_data/golden/models that transformers builds.
BUILT = (
    "llama3", "qwen2_bias", "qwen3_dense", "qwen3_moe", "qwen3_vl", "qwen3_vl_moe", "qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen3_5_mtp", "nemotron_h",
    "nemotron_h_moe", "deepseek_v3", "deepseek_v3_noq", "gpt_oss", "gpt_oss_square", "gpt_oss_2i", "qwen3_moe_mlponly", "qwen3_moe_sparse2",
)

# Entries that transformers takes for another number of experts, or writes and does not take back.
LEFT_OUT = {("glm_moe_dsa", "num_experts"), ("glm_moe_dsa", "layer_types")}


def golden_config(model):
    models, families = (os.path.join(DATA, "golden", kind, model, "config.json") for kind in ("models", "families"))
    with open(models if os.path.exists(models) else families) as f:
        return {k: v for k, v in json.load(f).items() if (model, k) not in LEFT_OUT}


def changed(model, **changes):
    config = copy.deepcopy(golden_config(model))
    for key, value in changes.items():
        section = config["text_config"] if key in config.get("text_config", {}) and key not in config else config
        section[key] = value
    return config


def tiny(architecture, model_type, **entries):
    sizes = dict(hidden_size=48, intermediate_size=88, num_hidden_layers=3, num_attention_heads=8, num_key_value_heads=4, vocab_size=264)
    return {"architectures": [architecture], "model_type": model_type, "tie_word_embeddings": False, "pad_token_id": 0, **sizes, **entries}


# Families that Megatron-Bridge does not know have no golden data.
LATENT = dict(q_lora_rank=28, kv_lora_rank=20, qk_nope_head_dim=10, qk_rope_head_dim=4, v_head_dim=6, num_key_value_heads=8)
EXPERTS = dict(n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=20, n_shared_experts=1, n_group=1, topk_group=1)
TINY = [
    tiny("MixtralForCausalLM", "mixtral", num_local_experts=8, intermediate_size=20, head_dim=10),
    tiny("Qwen2MoeForCausalLM", "qwen2_moe", num_experts=8, moe_intermediate_size=20, shared_expert_intermediate_size=24),
    tiny("Qwen2MoeForCausalLM", "qwen2_moe", num_experts=8, moe_intermediate_size=20, shared_expert_intermediate_size=24, mlp_only_layers=[1]),
    tiny("Olmo2ForCausalLM", "olmo2"),
    tiny("Olmo3ForCausalLM", "olmo3", sliding_window=32),
    tiny("SeedOssForCausalLM", "seed_oss", head_dim=10),
    tiny("SeedOssForCausalLM", "seed_oss", head_dim=10, attention_out_bias=True),
    tiny("Glm4ForCausalLM", "glm4", head_dim=10),
    tiny("DeepseekV32ForCausalLM", "deepseek_v32", first_k_dense_replace=1, index_n_heads=4, index_head_dim=8, index_topk=16, **LATENT, **EXPERTS),
    tiny("DeepseekV2ForCausalLM", "deepseek_v2", first_k_dense_replace=1, **EXPERTS, **{**LATENT, "q_lora_rank": None}),
    tiny("GlmMoeDsaForCausalLM", "glm_moe_dsa", num_hidden_layers=6, first_k_dense_replace=1, index_n_heads=4, index_head_dim=8, index_topk=16,
         index_topk_freq=2, index_skip_topk_offset=2, **LATENT, **EXPERTS),
    tiny("DeepseekV4ForCausalLM", "deepseek_v4", num_hidden_layers=4, num_key_value_heads=1, head_dim=16, qk_rope_head_dim=4, q_lora_rank=20, n_routed_experts=8, num_experts_per_tok=3,
         moe_intermediate_size=20, o_groups=4, o_lora_rank=12, index_n_heads=6, index_head_dim=8, index_topk=4, num_nextn_predict_layers=0, sliding_window=16,
         layer_types=["sliding_attention", "heavily_compressed_attention", "compressed_sparse_attention", "heavily_compressed_attention"],
         mlp_layer_types=["hash_moe", "hash_moe", "moe", "moe"]),
    # Their golden configs have the hub's entries, of which transformers takes other sizes.
    tiny("MiMoV2FlashForCausalLM", "mimo_v2_flash", head_dim=12, v_head_dim=8, **{**EXPERTS, "n_shared_experts": None}, num_key_value_heads=2,
         layer_types=["full_attention", "sliding_attention", "sliding_attention"]),
    tiny("Step3p7ForConditionalGeneration", "step3p7", vision_config=dict(width=16, layers=2, heads=2, image_size=16, patch_size=4, mlp_ratio=2.5),
         text_config=tiny("Step3p5ForCausalLM", "step3p5", head_dim=8, num_attention_groups=4, moe_intermediate_size=20, share_expert_dim=28, moe_num_experts=8,
                          moe_top_k=2, moe_layers_enum="1,2", use_moe_router_bias=True, sliding_window=32, rope_theta=[5e6, 1e4, 1e4], partial_rotary_factors=[0.5, 1.0, 1.0],
                          layer_types=["full_attention", "sliding_attention", "sliding_attention"], attention_other_setting={
                              "attention_type": "sliding_attention", "num_attention_heads": 16, "num_attention_groups": 4, "head_dim": 8})),
]


def tiny_name(config):
    return " ".join(f"{k}={v}" for k, v in config.items() if k in ("model_type", "mlp_only_layers", "attention_out_bias", "index_topk_freq"))
