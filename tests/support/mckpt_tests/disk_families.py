"""Tiny models of transformers whose tensors have other names in memory than in the folder that save_pretrained() writes: the class and
its config, for each row of lib/convert/own/disk_rules.cc that test_data/golden has no model of.
"""
import transformers as T

TEXT = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=40,
            pad_token_id=0, bos_token_id=1, eos_token_id=2)
ALL_HEADS = {k: v for k, v in TEXT.items() if k != "num_key_value_heads"}
ROPE3 = dict(rope_parameters=dict(rope_type="default", mrope_section=[1, 1, 0], rope_theta=1e4, partial_rotary_factor=1.0))
IMAGES = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=8)
QWEN_IMAGES = dict(depth=1, hidden_size=16, num_heads=2, patch_size=4, spatial_merge_size=2, temporal_patch_size=2)
LLAMA = dict(model_type="llama", **TEXT)
QWEN2 = dict(model_type="qwen2", **TEXT)
CLIP = dict(model_type="clip_vision_model", projection_dim=8, **IMAGES)
SIGLIP = dict(model_type="siglip_vision_model", **IMAGES)
EXPERTS = dict(num_experts=3, num_experts_per_tok=2, moe_intermediate_size=6)
ROUTED = dict(n_routed_experts=3, num_experts_per_tok=2, moe_intermediate_size=6, n_group=1, topk_group=1)
LATENT = dict(q_lora_rank=4, kv_lora_rank=4, qk_rope_head_dim=2, qk_nope_head_dim=2, v_head_dim=4)
INDEXED = dict(index_n_heads=2, index_head_dim=4, index_topk=4)
FULL = dict(layer_types=["full_attention", "full_attention"])
SOUND = dict(num_mel_bins=8, max_source_positions=8)


def with_images(text, images, **entries):
    return dict(text_config=text, vision_config=images, **{"image_token_index": 3, **entries})


LLAVA, GEMMA3 = with_images(LLAMA, CLIP), with_images(dict(**TEXT, head_dim=4), SIGLIP, mm_tokens_per_image=4)
QWEN2_VL = dict(text_config=dict(**TEXT, **ROPE3), vision_config=dict(embed_dim=16, mlp_ratio=2, **QWEN_IMAGES))
QWEN2_5_VL = dict(text_config=dict(**TEXT, **ROPE3),
                  vision_config=dict(intermediate_size=24, out_hidden_size=16, fullatt_block_indexes=[0], window_size=16, **QWEN_IMAGES))
GRANITE = dict(**TEXT, num_local_experts=3)

# Class, entries of its config.
MIXTURES = [
    ("AfmoeForCausalLM", dict(**TEXT, **EXPERTS, **FULL, num_dense_layers=1)),
    ("DeepseekV32ForCausalLM", dict(**TEXT, **ROUTED, **LATENT, **INDEXED, first_k_dense_replace=1)),
    ("Dots1ForCausalLM", dict(**TEXT, **ROUTED, first_k_dense_replace=1, n_shared_experts=1)),
    ("Ernie4_5_MoeForCausalLM", dict(**TEXT, moe_num_experts=3, moe_k=2, moe_intermediate_size=6, moe_num_shared_experts=1)),
    ("ExaoneMoeForCausalLM", dict(**TEXT, **EXPERTS, num_shared_experts=1, n_group=1, topk_group=1, first_k_dense_replace=1)),
    ("FlexOlmoForCausalLM", dict(**TEXT, num_experts=3, num_experts_per_tok=2)),
    ("Glm4MoeLiteForCausalLM", dict(**TEXT, **ROUTED, **LATENT, first_k_dense_replace=1)),
    ("Glm4vMoeForConditionalGeneration",
     dict(text_config=dict(**TEXT, **ROUTED, **ROPE3, first_k_dense_replace=1),
          vision_config=dict(depth=1, hidden_size=16, num_heads=4, intermediate_size=24, out_hidden_size=16, patch_size=4, image_size=16,
                             spatial_merge_size=2, temporal_patch_size=2))),
    ("GlmMoeDsaForCausalLM", dict(**TEXT, **ROUTED, **LATENT, **INDEXED, first_k_dense_replace=1)),
    ("GraniteMoeForCausalLM", GRANITE),
    ("GraniteMoeSharedForCausalLM", dict(**GRANITE, shared_intermediate_size=12)),
    ("GraniteMoeHybridForCausalLM", dict(**GRANITE, shared_intermediate_size=12, layer_types=["attention", "attention"], mamba_n_heads=4,
                                         mamba_d_head=8)),
    ("HunYuanMoEV1ForCausalLM", dict(**TEXT, head_dim=4, num_experts=3, moe_topk=2)),
    ("HYV3ForCausalLM", dict(**TEXT, **EXPERTS, first_k_dense_replace=1, num_shared_experts=1)),
    ("JambaForCausalLM", dict(**TEXT, num_experts=3, use_mamba_kernels=False, attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2,
                              expert_layer_offset=1)),
    ("Lfm2MoeForCausalLM", dict(**TEXT, **EXPERTS, **FULL, num_dense_layers=1)),
    ("MiniMaxForCausalLM", dict(**TEXT, num_local_experts=3, layer_types=["full_attention", "linear_attention"])),
    ("MiniMaxM2ForCausalLM", dict(**TEXT, num_local_experts=3)),
    ("MixtralForCausalLM", dict(**TEXT, num_local_experts=3)),
    ("MixtralForSequenceClassification", dict(**TEXT, num_local_experts=3, num_labels=1)),
    ("PhimoeForCausalLM", dict(**TEXT, num_local_experts=3)),
    ("SolarOpenForCausalLM", dict(**TEXT, **ROUTED)),
]
OTHERS = [
    ("AriaForConditionalGeneration", with_images(dict(**TEXT, moe_num_experts=3, moe_topk=2, moe_num_shared_experts=1),
                                                 dict(model_type="idefics3_vision", **IMAGES))),
    ("AyaVisionForConditionalGeneration", with_images(dict(model_type="cohere2", **TEXT), SIGLIP)),
    ("BeitForImageClassification", IMAGES),
    ("DeiTForImageClassification", IMAGES),
    ("Dinov2Model", IMAGES),
    ("FuyuForCausalLM", dict(**ALL_HEADS, text_config=dict(model_type="persimmon", **ALL_HEADS), image_size=16, patch_size=8)),
    ("Gemma3ForConditionalGeneration", GEMMA3),
    ("Gemma3ForSequenceClassification", GEMMA3),
    ("Gemma3Model", GEMMA3),
    ("GPTNeoXForCausalLM", ALL_HEADS),
    ("InternVLForConditionalGeneration", with_images(QWEN2, {**IMAGES, "image_size": [16, 16], "patch_size": [8, 8]}, image_token_id=3)),
    ("LlavaForConditionalGeneration", LLAVA),
    ("LlavaModel", LLAVA),
    ("LlavaNextForConditionalGeneration", LLAVA),
    ("LlavaNextVideoForConditionalGeneration", with_images(LLAMA, CLIP, video_token_index=4)),
    ("LlavaOnevisionForConditionalGeneration", with_images(LLAMA, SIGLIP, video_token_index=4)),
    ("Mistral3ForConditionalGeneration", with_images(dict(model_type="mistral", **TEXT), dict(model_type="pixtral", **IMAGES))),
    ("MllamaForConditionalGeneration",
     dict(text_config=dict(**TEXT, cross_attention_layers=[1]),
          vision_config=dict(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_global_layers=1, attention_heads=4, image_size=16,
                             patch_size=8, vision_output_dim=32, intermediate_layers_indices=[0], supported_aspect_ratios=[[1, 1]],
                             max_num_tiles=1))),
    ("PaliGemmaForConditionalGeneration", with_images(dict(model_type="gemma", **TEXT, head_dim=4), SIGLIP, projection_dim=16, hidden_size=16)),
    ("Qwen2_5_VLForConditionalGeneration", QWEN2_5_VL),
    ("Qwen2_5_VLModel", QWEN2_5_VL),
    ("Qwen2AudioForConditionalGeneration",
     dict(text_config=QWEN2, audio_config=dict(d_model=16, encoder_layers=1, encoder_attention_heads=4, encoder_ffn_dim=24, **SOUND))),
    ("Qwen2VLForConditionalGeneration", QWEN2_VL),
    ("Qwen2VLModel", QWEN2_VL),
    ("ViTForImageClassification", IMAGES),
    ("ViTModel", IMAGES),
    ("VipLlavaForConditionalGeneration", LLAVA),
    ("VoxtralForConditionalGeneration",
     dict(text_config=LLAMA, audio_config=dict(hidden_size=16, intermediate_size=96, num_hidden_layers=1, num_attention_heads=4, **SOUND))),
]
# Those whose items change places when they are saved: transposed, permuted for rotary embeddings, of text and vision; and models
# with attention that is called as Megatron's.
HEADS4 = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4)
MOVED = [
    ("Kimi_K25ForConditionalGeneration",
     dict(text_config=dict(model_type="deepseek_v3", **TEXT, **ROUTED, **LATENT, first_k_dense_replace=1, n_shared_experts=1),
          vision_config=dict(**HEADS4, patch_size=4, pos_emb_height=4, pos_emb_width=4), projection_hidden_size=24)),
    ("MistralLarge4ForConditionalGeneration",
     dict(text_config=dict(**TEXT, **ROUTED, **LATENT, first_k_dense_replace=1, n_shared_experts=1, index_n_heads=2, index_head_dim=8, index_topk=4),
          vision_config=dict(model_type="pixtral", **HEADS4, image_size=16, patch_size=4))),
    ("Ernie4_5_VLMoeForConditionalGeneration",
     dict(text_config=dict(**TEXT, moe_intermediate_size=[10, 6], moe_k=2, moe_num_experts=3, moe_num_shared_experts=1, mlp_layer_types=["dense", "sparse"],
                           rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[0, 1, 1])),
          vision_config=dict(depth=1, hidden_size=24, num_heads=4, intermediate_size=40, patch_size=4))),
    ("DiaForConditionalGeneration",
     dict(encoder_config=dict(**HEADS4, num_key_value_heads=4, head_dim=6, vocab_size=40),
          decoder_config=dict(**HEADS4, num_key_value_heads=2, head_dim=6, cross_num_attention_heads=4, cross_num_key_value_heads=4, cross_head_dim=6,
                              cross_hidden_size=24, vocab_size=50, num_channels=3), delay_pattern=[0, 1, 2])),
    ("NllbMoeForConditionalGeneration",
     dict(d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=36,
          decoder_ffn_dim=44, num_experts=3, encoder_sparse_step=2, decoder_sparse_step=2, vocab_size=40, max_position_embeddings=20)),
    ("BartForConditionalGeneration",
     dict(d_model=24, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=36,
          decoder_ffn_dim=44, vocab_size=40, max_position_embeddings=20)),
]


def made(name, entries, seed=0):
    """The model, each of its tensors with values of its own."""
    import torch

    torch.manual_seed(seed)
    model = getattr(T, name)(getattr(T, name).config_class(**entries))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    return model
