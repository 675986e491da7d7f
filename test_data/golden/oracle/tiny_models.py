"""Tiny models for oracles: a class of transformers with sizes that differ from each other, saved as transformers saves it; then each
tensor's bits are drawn by its name (pack.py's recipes), so that no two items of a tensor are equal."""
import dataclasses
import json
import os
import re
import zlib

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

# bf16 bit patterns with middling exponents, in ascending order.
PATTERNS = np.array([x for x in range(65536) if 27 <= ((x >> 7) & 255) <= 226], dtype=np.uint16)


@dataclasses.dataclass
class Model:
    architecture: str
    config: dict
    grids: list
    fsdp: list = dataclasses.field(default_factory=list)  # grids of megatron_fsdp_saves.py
    opts: dict = dataclasses.field(default_factory=dict)
    # Where transformers has no class of that name: the one with the same tensors, and the entries of config.json that have another name there.
    same_tensors: str = ""
    words: dict = dataclasses.field(default_factory=dict)
    plain_queries: bool = False  # see megatron_bridge_ranks.py
    # The release has all experts of a layer in one tensor, and transformers saves one for each.
    stacked_experts: bool = False
    # Names and shapes of tensors that the release has and the class has not, of the tensors that it has.
    more_tensors: object = None


def drawn(seed, shape):
    n = int(np.prod(shape))
    generator = torch.Generator().manual_seed(zlib.crc32(seed.encode()))
    if n > len(PATTERNS):
        each = n // shape[0]
        return np.concatenate([drawn(f"{seed}[{e}]", [each]) for e in range(shape[0])])
    return PATTERNS[torch.randperm(len(PATTERNS), generator=generator)[:n].numpy()]


def text_config(config):
    for name in ("text_config", "llm_config", "thinker_config"):
        if getattr(config, name, None) is not None:
            return text_config(getattr(config, name))
    return config


def write(name, folder):
    import transformers
    model = MODELS[name]
    cls = getattr(transformers, model.same_tensors or model.architecture)
    config = cls.config_class(**{model.words.get(key, key): value for key, value in model.config.items() if key != "model_type"})
    config.architectures = [model.architecture]
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(0)
    made = cls(config).to(torch.bfloat16)
    made.save_pretrained(folder, max_shard_size="1GB")
    if model.same_tensors:
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump({"architectures": [model.architecture], "torch_dtype": "bfloat16", **model.config}, f, indent=2)
    path = os.path.join(folder, "model.safetensors")
    with safe_open(path, "pt") as f:
        tensors = {key: f.get_tensor(key) for key in f.keys()}
        metadata = f.metadata()
    if model.stacked_experts:
        stack_experts(tensors)
    if model.more_tensors:
        tensors |= {key: torch.zeros(shape, dtype=torch.bfloat16) for key, shape in model.more_tensors(tensors).items()}
    for key, tensor in tensors.items():
        if key.endswith("e_score_correction_bias"):
            tensor = tensor.float()  # which no run has in another type
        if tensor.dtype == torch.bfloat16:
            bits = drawn(f"{name}:{key}", list(tensor.shape))
            tensors[key] = torch.from_numpy(bits.astype(np.int16)).view(torch.bfloat16).reshape(tensor.shape)
        elif tensor.dtype == torch.float32:
            tensors[key] = torch.from_numpy(np.random.default_rng(zlib.crc32(f"{name}:{key}".encode())).standard_normal(tensor.shape, dtype=np.float32))
    save_file(tensors, path, metadata)
    with open(os.path.join(folder, "..", "opts.json"), "w") as f:
        json.dump({k: str(v) for k, v in model.opts.items()}, f)


def stack_experts(tensors):
    """gate above up, [experts, 2 * width, hidden], and down, [experts, hidden, width]."""
    groups = {}
    for key in list(tensors):
        layer, expert, part = re.fullmatch(r"(.*\.mlp\.experts\.)(\d+)\.(\w+)_proj\.weight", key).groups() if ".mlp.experts." in key else ("", "", "")
        if layer:
            groups.setdefault(layer, {})[int(expert), part] = tensors.pop(key)
    for layer, parts in groups.items():
        experts = range(1 + max(expert for expert, _ in parts))
        tensors[layer + "gate_up_proj"] = torch.stack([torch.cat([parts[e, "gate"], parts[e, "up"]]) for e in experts])
        tensors[layer + "down_proj"] = torch.stack([parts[e, "down"] for e in experts])


def qwen4_mtp(tensors):
    """The layer that predicts: the last layer's tensors, and what is around it."""
    last = max(int(key.split(".")[3]) for key in tensors if key.startswith("model.language_model.layers."))
    prefix, mixer = f"model.language_model.layers.{last}.", "model.language_model.hyper_connection_mixer."
    out = {"mtp.layers.0." + key.removeprefix(prefix): t.shape for key, t in tensors.items() if key.startswith(prefix) and ".ple." not in key}
    out |= {"mtp.hyper_connection_mixer." + key.removeprefix(mixer): t.shape for key, t in tensors.items() if key.startswith(mixer)}
    hidden, streams = tensors["model.language_model.embed_tokens.weight"].shape[1], tensors[mixer + "hc_norm.weight"].shape[0]
    return out | {"mtp.pre_fc_norm_embedding.weight": [hidden], "mtp.pre_fc_norm_hidden.weight": [streams],
                  "mtp.fc_embedding.weight": [hidden, hidden], "mtp.fc_hidden.weight": [hidden, hidden]}


VISION = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3)
ROPE = {"rope_theta": 10000.0, "rope_type": "default"}
QWEN4 = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, num_experts_per_tok=2, indexer_kv_heads=1, indexer_budget=16, indexer_compress_ratio=4)

MODELS = {
    "internvl_a": Model("InternVLForConditionalGeneration", dict(
        vision_config=VISION | dict(intermediate_size=40, image_size=[28, 28], patch_size=[14, 14], attention_bias=True, use_qk_norm=False),
        text_config=dict(model_type="qwen2", vocab_size=136, hidden_size=48, intermediate_size=88, num_hidden_layers=4, num_attention_heads=8,
                         num_key_value_heads=4, max_position_embeddings=128, tie_word_embeddings=False),
        image_token_id=5, tie_word_embeddings=False), ["1,1,1,1", "2,1,1,1", "4,1,1,1", "1,1,2,1"], ["1,1,1,1,3"]),
    "internvl_b": Model("InternVLForConditionalGeneration", dict(
        vision_config=VISION | dict(intermediate_size=56, image_size=[42, 42], patch_size=[14, 14], attention_bias=False, use_qk_norm=True,
                                    use_mean_pooling=False, norm_type="rms_norm", num_hidden_layers=3),
        text_config=dict(model_type="qwen3", vocab_size=132, hidden_size=40, intermediate_size=72, num_hidden_layers=2, num_attention_heads=8,
                         num_key_value_heads=4, head_dim=12, max_position_embeddings=128, tie_word_embeddings=True),
        image_token_id=5, tie_word_embeddings=True), ["1,1,1,1", "2,1,1,1", "1,1,2,1"]),
    # Megatron-FSDP can hold this one under tensor parallelism: its shards begin at rows of every parameter.
    "internvl_c": Model("InternVLForConditionalGeneration", dict(
        vision_config=dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=2, intermediate_size=40, image_size=[12, 12], patch_size=[4, 4], attention_bias=False,
                           use_qk_norm=True, use_mean_pooling=False, norm_type="rms_norm"),
        text_config=dict(model_type="qwen3", vocab_size=132, hidden_size=48, intermediate_size=72, num_hidden_layers=2, num_attention_heads=8,
                         num_key_value_heads=4, head_dim=10, max_position_embeddings=128, tie_word_embeddings=True),
        image_token_id=5, tie_word_embeddings=True), ["1,1,1,1", "2,1,1,1"], ["2,1,1,1,4"]),
    "internvl_moe_a": Model("InternVLForConditionalGeneration", dict(
        vision_config=VISION | dict(intermediate_size=40, image_size=[28, 28], patch_size=[14, 14], attention_bias=True, use_qk_norm=False),
        text_config=dict(model_type="qwen3_moe", vocab_size=136, hidden_size=48, intermediate_size=88, moe_intermediate_size=28, num_experts=8,
                         num_experts_per_tok=2, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=4, head_dim=10,
                         max_position_embeddings=128, tie_word_embeddings=False),
        image_token_id=5, tie_word_embeddings=False), ["1,1,1,1", "2,4,1,1", "2,2,1,2"]),
    "internvl_moe_b": Model("InternVLForConditionalGeneration", dict(
        vision_config=dict(hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=40, image_size=[24, 24], patch_size=[8, 8], attention_bias=True,
                           use_qk_norm=False),
        text_config=dict(model_type="qwen3_moe", vocab_size=140, hidden_size=48, intermediate_size=64, moe_intermediate_size=32, num_experts=8,
                         num_experts_per_tok=2, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=4, head_dim=12,
                         max_position_embeddings=128, tie_word_embeddings=False),
        image_token_id=5, tie_word_embeddings=False), ["1,1,1,1", "2,2,1,1"], ["1,2,1,1,4"]),
    "llama4_a": Model("Llama4ForConditionalGeneration", dict(
        vision_config=VISION | dict(intermediate_size=96, image_size=28, patch_size=14, vision_output_dim=56, projector_input_dim=56,
                                    projector_output_dim=56, pixel_shuffle_ratio=0.5),
        text_config=dict(vocab_size=136, hidden_size=48, intermediate_size=40, intermediate_size_mlp=88, num_hidden_layers=4, num_attention_heads=8,
                         num_key_value_heads=4, head_dim=10, num_local_experts=8, num_experts_per_tok=1, interleave_moe_layer_step=2, use_qk_norm=True,
                         max_position_embeddings=128, tie_word_embeddings=False, attn_temperature_tuning=False, attention_chunk_size=64)),
        ["1,1,1,1", "2,4,1,1", "2,2,2,1", "2,2,1,2"], ["2,1,1,1,4"]),
    "llama4_b": Model("Llama4ForConditionalGeneration", dict(
        vision_config=VISION | dict(intermediate_size=96, image_size=42, patch_size=14, vision_output_dim=64, projector_input_dim=64,
                                    projector_output_dim=64, pixel_shuffle_ratio=0.5, num_hidden_layers=3),
        text_config=dict(vocab_size=132, hidden_size=40, intermediate_size=24, intermediate_size_mlp=72, num_hidden_layers=4, num_attention_heads=8,
                         num_key_value_heads=4, head_dim=12, num_local_experts=8, num_experts_per_tok=1, interleave_moe_layer_step=1, use_qk_norm=False,
                         max_position_embeddings=128, tie_word_embeddings=False, attn_temperature_tuning=False, attention_chunk_size=64)),
        ["1,1,1,1", "2,2,1,1"]),
    "llama4_c": Model("Llama4ForConditionalGeneration", dict(
        vision_config=dict(hidden_size=24, num_hidden_layers=3, num_attention_heads=2, intermediate_size=96, image_size=8, patch_size=4, vision_output_dim=32,
                           projector_input_dim=32, projector_output_dim=32, pixel_shuffle_ratio=0.5),
        text_config=dict(vocab_size=132, hidden_size=48, intermediate_size=16, intermediate_size_mlp=64, num_hidden_layers=4, num_attention_heads=8,
                         num_key_value_heads=4, head_dim=10, num_local_experts=8, num_experts_per_tok=1, interleave_moe_layer_step=1, use_qk_norm=False,
                         max_position_embeddings=128, tie_word_embeddings=False, attn_temperature_tuning=False, attention_chunk_size=64)),
        ["1,1,1,1", "2,2,1,1"], ["2,2,1,1,8"]),
    "muse_glimmer_a": Model("MuseGlimmerForConditionalGeneration", dict(
        vision_config=VISION | dict(intermediate_size=40, patch_size=14, pos_emb_height=4, pos_emb_width=5, max_position_embeddings=20),
        text_config=dict(vocab_size=136, hidden_size=48, intermediate_size=88, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4,
                         head_dim=10, max_position_embeddings=128, sliding_window=16, rope_parameters=dict(ROPE)),
        out_hidden_size=96, projector_hidden_size=56), ["1,1,1,1", "2,1,1,1", "4,1,1,1", "2,1,2,1"], ["2,1,1,1,4", "1,1,1,1,3"]),
    # The config and its class are on the hub; transformers' DeepSeek-V3 has the same tensors. The second has experts in all layers, and a vocabulary that tp 2 pads.
    **{name: Model("SarvamMLAForCausalLM", dict(
        model_type="sarvam_mla", vocab_size=vocabulary, hidden_size=40, intermediate_size=72, moe_intermediate_size=28, num_hidden_layers=4, num_attention_heads=12,
        num_key_value_heads=12, q_lora_rank=None, kv_lora_rank=36, qk_nope_head_dim=6, qk_rope_head_dim=10, v_head_dim=14, num_experts=8, num_experts_per_tok=2,
        num_shared_experts=2, first_k_dense_replace=dense, max_position_embeddings=512, rms_norm_eps=1e-6, rope_theta=10000.0, rope_scaling=None, hidden_act="silu",
        moe_router_enable_expert_bias=True, tie_word_embeddings=False, attention_dropout=0.0), grids, fsdp,
        same_tensors="DeepseekV3ForCausalLM", words=dict(num_experts="n_routed_experts", num_shared_experts="n_shared_experts"), plain_queries=True)
       for name, vocabulary, dense, grids, fsdp in (("sarvam_mla_a", 264, 1, ["1,1,1,1", "2,4,1,1", "4,2,1,1", "2,2,2,1", "2,2,1,2"], ["1,2,1,1,4"]),
                                                    ("sarvam_mla_b", 131, 0, ["1,1,1,1", "1,8,1,1", "2,1,1,1"], ["2,1,1,1,4"]))},
    # mcore-bridge needs flash-linear-attention for these. Several residual streams, n-gram tables whose last part is
    # shorter, and in the last one a layer that predicts (mcore_bridge_ranks.py: two_projections).
    "qwen4_exp_a": Model("Qwen4ExpForConditionalGeneration", dict(
        vision_config=dict(depth=2, hidden_size=24, intermediate_size=40, num_heads=2, patch_size=4, temporal_patch_size=2, spatial_merge_size=2, out_hidden_size=48,
                           num_position_embeddings=16),
        text_config=QWEN4 | dict(vocab_size=136, hidden_size=48, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4, head_dim=10, num_experts=8,
                                 moe_intermediate_size=20, shared_expert_intermediate_size=24, linear_key_head_dim=6, linear_value_head_dim=10, linear_num_key_heads=4,
                                 linear_num_value_heads=8, hc_lowrank=14, hc_count=3, ple_layer_ids=[1, 3], ple_embed_dim=20, ngram_vocab_size_base=50,
                                 make_ngram_vocab_size_divisible_by=4, split_ngram_parts=3, heads_per_ngram=2, indexer_n_heads=4, indexer_head_dim=12,
                                 layer_types=["linear_attention", "full_attention"] * 2)),
        ["1,1,1,1", "2,2,1,1", "4,1,1,1", "2,4,2,1", "2,2,1,2"], stacked_experts=True),
    "qwen4_exp_b": Model("Qwen4ExpForConditionalGeneration", dict(
        tie_word_embeddings=True,
        vision_config=dict(depth=1, hidden_size=20, intermediate_size=36, num_heads=2, patch_size=2, temporal_patch_size=2, spatial_merge_size=2, out_hidden_size=40,
                           num_position_embeddings=9),
        text_config=QWEN4 | dict(vocab_size=132, hidden_size=40, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=2, head_dim=12, num_experts=8,
                                 moe_intermediate_size=28, shared_expert_intermediate_size=12, linear_key_head_dim=10, linear_value_head_dim=8, linear_num_key_heads=4,
                                 linear_num_value_heads=12, hc_lowrank=6, hc_count=2, ple_layer_ids=[2, 5], ple_embed_dim=24, ple_conv_kernel_size=3, ngram_size=2,
                                 ngram_vocab_size_base=30, make_ngram_vocab_size_divisible_by=12, split_ngram_parts=4, heads_per_ngram=3, indexer_n_heads=2, indexer_head_dim=16,
                                 tie_word_embeddings=True,
                                 layer_types=["linear_attention", "linear_attention", "full_attention"] * 2)),
        ["1,1,1,1", "2,1,1,1", "1,2,2,1", "4,1,1,1"], stacked_experts=True),
    "qwen4_exp_mtp": Model("Qwen4ExpForConditionalGeneration", dict(
        vision_config=dict(depth=1, hidden_size=12, intermediate_size=28, num_heads=3, patch_size=3, temporal_patch_size=1, spatial_merge_size=1, out_hidden_size=32,
                           num_position_embeddings=4),
        text_config=QWEN4 | dict(vocab_size=140, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=4, head_dim=14, num_experts=8,
                                 moe_intermediate_size=12, shared_expert_intermediate_size=20, linear_key_head_dim=4, linear_value_head_dim=6, linear_num_key_heads=4,
                                 linear_num_value_heads=4, hc_lowrank=10, hc_count=4, ple_layer_ids=[2], ple_embed_dim=8, ngram_vocab_size_base=20,
                                 make_ngram_vocab_size_divisible_by=12, split_ngram_parts=5, heads_per_ngram=2, indexer_n_heads=3, indexer_head_dim=18,
                                 mtp_num_hidden_layers=1, layer_types=["linear_attention", "linear_attention", "linear_attention", "full_attention"])),
        ["1,1,1,1", "2,2,1,1", "1,1,2,1"], opts={"mtp_num_layers": 1}, stacked_experts=True, more_tensors=qwen4_mtp),
    # Megatron-Bridge needs transformers 5.12 for these.
    "gemma4_audio_a": Model("Gemma4ForConditionalGeneration", dict(
        vision_config=dict(hidden_size=24, intermediate_size=40, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, head_dim=12, patch_size=4, pooling_kernel_size=2,
                           position_embedding_size=16),
        audio_config=dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, subsampling_conv_channels=[6, 4], output_proj_dims=20, conv_kernel_size=3,
                          use_clipped_linears=False),
        text_config=dict(vocab_size=128, vocab_size_per_layer_input=128, hidden_size=48, intermediate_size=88, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4,
                         head_dim=10, global_head_dim=16, num_global_key_value_heads=4, num_kv_shared_layers=3, hidden_size_per_layer_input=12, max_position_embeddings=128,
                         sliding_window=16, use_double_wide_mlp=True, layer_types=["sliding_attention", "sliding_attention", "full_attention"] * 2)), ["1,1,1,1", "2,1,1,1", "4,1,1,1"], ["2,1,1,1,4"]),
    # Ranges of the linear layers of both towers, as E2B and E4B have them; no layer shares keys.
    "gemma4_audio_e": Model("Gemma4ForConditionalGeneration", dict(
        vision_config=dict(hidden_size=20, intermediate_size=36, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=6, patch_size=2, pooling_kernel_size=2,
                           position_embedding_size=12, use_clipped_linears=True, standardize=True),
        audio_config=dict(hidden_size=18, num_hidden_layers=3, num_attention_heads=3, subsampling_conv_channels=[9, 5], output_proj_dims=28, conv_kernel_size=4, use_clipped_linears=True),
        text_config=dict(vocab_size=128, vocab_size_per_layer_input=128, hidden_size=40, intermediate_size=56, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
                         head_dim=12, global_head_dim=18, num_kv_shared_layers=0, hidden_size_per_layer_input=8, max_position_embeddings=128, sliding_window=16,
                         num_global_key_value_heads=2)), ["1,1,1,1", "2,1,1,1"]),
}
