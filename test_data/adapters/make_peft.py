#!/usr/bin/env python3
"""Makes peft/NAME: tiny models with adapters of PEFT that change more than matrices, and what merge_and_unload() makes of them, for the
base as it is (bfloat16) and for the same base loaded in float32. Needs torch, transformers, safetensors and peft.

    test_data/adapters/make_peft.py [NAME...]

Values are on a grid, so that every order of summation gives the same bits, but for magnitudes (DoRA), whose norms are roots."""
import copy
import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

import torch
import transformers as tf
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors import safe_open
from safetensors.torch import save_file

HERE = Path(__file__).parent / "peft"
TYPES = {torch.bfloat16: "BF16", torch.float32: "F32", torch.int64: "I64"}
SIZES = dict(hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=4, vocab_size=11,
             max_position_embeddings=16, pad_token_id=0, bos_token_id=1, eos_token_id=2)


def qwen3(tied):
    return tf.Qwen3ForCausalLM(tf.Qwen3Config(**SIZES, tie_word_embeddings=tied))


def mixtral():
    return tf.MixtralForCausalLM(tf.MixtralConfig(**SIZES, num_local_experts=3))


def gpt2():
    return tf.GPT2LMHeadModel(tf.GPT2Config(n_embd=8, n_layer=1, n_head=2, n_positions=8, vocab_size=11, bos_token_id=1, eos_token_id=2))


def gemma3():
    text = {**SIZES, "num_hidden_layers": 1, "model_type": "gemma3_text"}
    vision = dict(hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=4,
                  model_type="siglip_vision_model")
    return tf.Gemma3ForConditionalGeneration(tf.Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4))


def whisper():
    return tf.WhisperForConditionalGeneration(tf.WhisperConfig(
        d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=12, decoder_ffn_dim=12,
        vocab_size=11, num_mel_bins=4, max_source_positions=4, max_target_positions=4, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1))


def bert():
    return tf.BertForMaskedLM(tf.BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12, vocab_size=11, max_position_embeddings=8))


def bart():
    return tf.BartForConditionalGeneration(tf.BartConfig(
        d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=12, decoder_ffn_dim=12,
        vocab_size=11, max_position_embeddings=8, bos_token_id=1, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2))


def deepseek_v4():
    return tf.DeepseekV4ForCausalLM(tf.DeepseekV4Config(
        hidden_size=16, moe_intermediate_size=8, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=8, qk_rope_head_dim=4, q_lora_rank=8, n_routed_experts=4,
        num_experts_per_tok=2, vocab_size=11, max_position_embeddings=16, index_n_heads=2, index_head_dim=8, index_topk=4, o_groups=2, o_lora_rank=4, hc_mult=2,
        num_hash_layers=1, pad_token_id=0, bos_token_id=1, eos_token_id=2))


def minimax_m3():
    text = dict(hidden_size=16, head_dim=8, intermediate_size=6, dense_intermediate_size=10, shared_intermediate_size=6, num_attention_heads=2, num_key_value_heads=1,
                num_hidden_layers=2, num_local_experts=3, num_experts_per_tok=2, rotary_dim=4, vocab_size=11, max_position_embeddings=16, index_block_size=4,
                index_head_dim=8, index_local_blocks=1, index_n_heads=2, index_topk_blocks=2, layer_types=["full_attention", "minimax_m3_sparse"],
                mlp_layer_types=["dense", "sparse"], pad_token_id=0, bos_token_id=1, eos_token_id=2, model_type="minimax_m3_vl_text")
    vision = dict(hidden_size=12, image_size=8, intermediate_size=10, num_attention_heads=2, num_hidden_layers=1, patch_size=4, spatial_merge_size=2,
                  temporal_patch_size=2, model_type="minimax_m3_vl_vision")
    return tf.MiniMaxM3SparseForConditionalGeneration(tf.AutoConfig.for_model(
        "minimax_m3_vl", text_config=text, vision_config=vision, merged_hidden_size=16, projector_hidden_size=16, image_token_index=9, video_token_index=10))


def qwen3_without_head():
    return tf.Qwen3Model(tf.Qwen3Config(**SIZES, tie_word_embeddings=True))


Q = ["q_proj"]
CASES = {  # name: (base, what LoraConfig gets, rows of a resized vocabulary)
    "alpha_zero": (lambda: qwen3(False), dict(lora_alpha=0, target_modules=Q), None),
    "alpha_negative": (lambda: qwen3(False), dict(lora_alpha=-3, target_modules=Q), None),
    "tied_factors": (lambda: qwen3(True), dict(target_modules=["embed_tokens", "lm_head", "q_proj"]), None),
    "tied_head": (lambda: qwen3(True), dict(target_modules=["lm_head"]), None),
    "tied_embedding": (lambda: qwen3(True), dict(target_modules=["embed_tokens", "v_proj"]), None),
    "tied_ensured": (lambda: qwen3(True), dict(target_modules=["embed_tokens", "q_proj"], ensure_weight_tying=True), None),
    "tied_wte_ensured": (gpt2, dict(target_modules=["lm_head"], ensure_weight_tying=True), None),
    "saved_both": (lambda: qwen3(True), dict(target_modules=Q, modules_to_save=["embed_tokens", "lm_head"]), None),
    "saved_head": (lambda: qwen3(True), dict(target_modules=Q, modules_to_save=["lm_head"]), None),
    "saved_embedding": (lambda: qwen3(True), dict(target_modules=Q, modules_to_save=["embed_tokens"]), None),
    "saved_ensured": (lambda: qwen3(True), dict(target_modules=Q, modules_to_save=["embed_tokens"], ensure_weight_tying=True), None),
    "saved_wte": (gpt2, dict(target_modules=["c_attn"], fan_in_fan_out=True, modules_to_save=["wte"]), None),
    "saved_wte_ensured": (gpt2, dict(target_modules=["c_attn"], fan_in_fan_out=True, modules_to_save=["wte"], ensure_weight_tying=True), None),
    "saved_without_head": (qwen3_without_head, dict(target_modules=Q, modules_to_save=["embed_tokens"]), None),
    "saved_word": (lambda: qwen3(True), dict(target_modules=Q, modules_to_save=["shared", "norm"], trainable_token_indices=[1, 3]), None),
    "whisper_saved_embedding": (whisper, dict(target_modules=Q, modules_to_save=["embed_tokens"]), None),
    "whisper_saved_head": (whisper, dict(target_modules=Q, modules_to_save=["proj_out"]), None),
    "whisper_factors": (whisper, dict(target_modules=["embed_tokens", "proj_out"]), None),
    "bert_saved_embedding": (bert, dict(target_modules=["query"], modules_to_save=["word_embeddings"]), None),
    "bert_saved_head": (bert, dict(target_modules=["query"], modules_to_save=["decoder"]), None),
    "bert_lora_bias": (bert, dict(target_modules=["decoder"], lora_bias=True), None),
    "bert_stored_twice": (bert, dict(target_modules=["decoder"], lora_bias=True), None),
    "bart_saved_embedding": (bart, dict(target_modules=Q, modules_to_save=["shared"]), None),
    "bart_saved_head": (bart, dict(target_modules=Q, modules_to_save=["lm_head"]), None),
    "stored_twice": (lambda: qwen3(True), dict(target_modules=["embed_tokens", "q_proj"]), None),
    "bart_factors": (bart, dict(target_modules=["shared", "embed_tokens", "lm_head"]), None),
    "resized": (lambda: qwen3(False), dict(target_modules=Q), 14),
    "resized_tied": (lambda: qwen3(True), dict(target_modules=Q), 14),
    "resized_saved": (lambda: qwen3(False), dict(target_modules=Q, modules_to_save=["embed_tokens", "lm_head"]), 13),
    "tokens": (lambda: qwen3(False), dict(target_modules=Q, trainable_token_indices={"embed_tokens": [9, 2], "lm_head": [4]}), None),
    "tokens_tied": (lambda: qwen3(True), dict(target_modules=Q, trainable_token_indices=[3, 7, 10]), None),
    "tokens_of_both": (lambda: qwen3(True), dict(target_modules=Q, trainable_token_indices={"embed_tokens": [3, 7], "lm_head": [2, 7]}), None),
    "tokens_of_both_alike": (lambda: qwen3(True), dict(target_modules=Q, trainable_token_indices={"embed_tokens": [3, 7], "lm_head": [3, 7]}), None),
    "tokens_resized": (lambda: qwen3(True), dict(target_modules=Q, trainable_token_indices=[3, 12]), 14),
    "matrix_parameter": (lambda: qwen3(False), dict(target_modules=[], target_parameters=["self_attn.q_proj.weight"]), None),
    "mixtral_stacks": (mixtral, dict(target_modules=Q, target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]), None),
    "experts_all_linear": (mixtral, dict(target_modules="all-linear"), None),
    "experts_of_ranks": (mixtral, dict(target_modules=Q, use_rslora=True, rank_pattern={"experts.down_proj": 3}, alpha_pattern={".*gate_up_proj": 7},
                                       target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]), None),
    "linear_fan_in": (lambda: qwen3(False), dict(target_modules=["q_proj", "up_proj"]), None),
    "conv1d_fan_out": (gpt2, dict(target_modules=["c_proj", "c_attn"], fan_in_fan_out=True), None),
    "default_targets": (lambda: qwen3(False), dict(target_modules=["q_proj", "v_proj"]), None),
    "deepseek_v4": (deepseek_v4, dict(target_modules="all-linear"), None),
    "minimax_m3": (minimax_m3, dict(target_modules="all-linear"), None),
    "gemma3": (gemma3, dict(target_modules=["q_proj", "fc1"]), None),
    "dora_embedding": (lambda: qwen3(False), dict(target_modules=["embed_tokens", "q_proj"], use_dora=True), None),
    "dora_conv1d": (gpt2, dict(target_modules=["c_attn"], fan_in_fan_out=True, use_dora=True), None),
}
# PEFT's own folder of these lacks names of what is one tensor in memory: its config ties none, or the base's folder has both.
IN_MEMORY = ("bert_saved_embedding", "bert_saved_head", "bart_saved_embedding", "bart_saved_head", "stored_twice", "bert_stored_twice")
# merge_and_unload() adds the one pair of factors of both modules once or twice, by the names of the model. The trained model has it once.
ONE_PAIR = ("tied_ensured", "tied_wte_ensured")
# The entries that are then written into the config by hand.
EDITS = {"linear_fan_in": {"fan_in_fan_out": True}, "conv1d_fan_out": {"fan_in_fan_out": False}, "default_targets": {"target_modules": None}}


def fill(tensor, seed, steps):
    """Numbers k/64, |k| <= steps, which bfloat16 has."""
    generator = torch.Generator().manual_seed(seed)
    tensor.data.copy_((torch.randint(-steps, steps + 1, tensor.shape, generator=generator).float() / 64).to(tensor.dtype))


def tensors_of(folder):
    out = {}
    for file in sorted(Path(folder).glob("*.safetensors")):
        with safe_open(file, "pt") as f:
            out.update({name: f.get_tensor(name) for name in f.keys()})
    return out


def merged(name, make, base, adapter, dtype, rows):
    model = type(make()).from_pretrained(base, dtype=dtype)
    if rows:
        model.resize_token_embeddings(rows)
    with tempfile.TemporaryDirectory() as out:
        whole = PeftModel.from_pretrained(model, adapter)
        if name in ONE_PAIR:
            for part, module in whole.named_modules():
                if part.endswith("lm_head") and hasattr(module, "lora_B"):
                    module.lora_B["default"].weight = torch.nn.Parameter(torch.zeros_like(module.lora_B["default"].weight))
        whole = whole.merge_and_unload()
        if name in ONE_PAIR and dtype == torch.float32:
            computes_alike(trained(type(make()).from_pretrained(base, dtype=dtype), copy.deepcopy(CASES[name][1])), whole)
        whole.save_pretrained(out)
        config = json.loads((Path(out) / "config.json").read_text())
        text = config.get("text_config", config)
        return dict(whole.state_dict()) if name in IN_MEMORY else tensors_of(out), {k: text.get(k, config.get(k)) for k in ("vocab_size", "tie_word_embeddings")}


def computes_alike(one, other):
    ids = torch.tensor([[1, 2, 3, 4]])
    with torch.no_grad():
        a, b = one.eval()(input_ids=ids).logits, other.eval()(input_ids=ids).logits
    assert a.abs().max() > 0.1 and torch.allclose(a, b, atol=1e-5), (a - b).abs().max()


def facts(t):
    t = t.contiguous()
    return {"dtype": TYPES[t.dtype], "shape": list(t.shape), "sha256": hashlib.sha256(t.view(torch.uint8).numpy().tobytes()).hexdigest()}


def trained(model, entries):
    """The adapter of a model, with other numbers in all that it trains; what it shares it shares still."""
    peft = get_peft_model(model, LoraConfig(r=2, **{"lora_alpha": 4, **entries}))
    done = set()
    for seed, (name, p) in enumerate(peft.named_parameters()):
        ours = any(part in name for part in ("lora_", "modules_to_save", "trainable_tokens"))
        if not ours or p.data_ptr() in done or "magnitude" in name:
            continue
        done.add(p.data_ptr())
        fill(p, 100 + seed, 12 if "lora_" in name else 40)
    named = dict(peft.named_parameters())
    for name in [n for n in named if entries.get("ensure_weight_tying") and "lora_embedding_" in n]:
        # The factors of the head are the embedding's, transposed.
        other = {"A": "lora_B.default.weight", "B": "lora_A.default.weight"}[name.split("lora_embedding_")[1][0]]
        named["base_model.model.lm_head." + other].data.copy_(named[name].data.T)
    for name, p in peft.named_parameters():
        if "magnitude" in name:
            p.data.mul_(1.5)
    return peft


def make(name):
    base_of, entries, rows = CASES[name]
    target = HERE / name
    shutil.rmtree(target, ignore_errors=True)
    torch.manual_seed(1)
    model = base_of().to(torch.bfloat16)
    for seed, (_, p) in enumerate(model.named_parameters()):
        fill(p, seed, 40)
    model.tie_weights()
    model.save_pretrained(target / "base", max_shard_size="1GB")
    if name == "deepseek_v4":  # with tensors that its class always has in float32
        type(model).from_pretrained(target / "base", dtype=torch.bfloat16).save_pretrained(target / "base", max_shard_size="1GB")
    if name == "stored_twice":
        stored = tensors_of(target / "base")
        save_file({**stored, "lm_head.weight": stored["model.embed_tokens.weight"].clone()}, target / "base/model.safetensors", {"format": "pt"})
    if name == "bert_stored_twice":
        save_file({n: t.clone() for n, t in model.state_dict().items()}, target / "base/model.safetensors", {"format": "pt"})
    if rows:
        model.resize_token_embeddings(rows)
        for seed, p in enumerate({p.data_ptr(): p for p in (model.get_input_embeddings().weight, model.get_output_embeddings().weight)}.values()):
            fill(p, 50 + seed, 40)
    trained(model, copy.deepcopy(entries)).save_pretrained(target / "adapter", **({"save_embedding_layers": True} if rows else {}))
    for unwanted in ("README.md",):
        (target / "adapter" / unwanted).unlink(missing_ok=True)
    (target / "base/generation_config.json").unlink(missing_ok=True)
    config = target / "adapter/adapter_config.json"
    kept = {**json.loads(config.read_text()), "base_model_name_or_path": "some/base"}
    kept["target_modules"] = sorted(kept["target_modules"])  # a set
    said = {k: v for k, v in kept.items() if k == "target_modules" or not (v is None or v is False or v in ([], {}))} | {"bias": "none"}
    config.write_text(json.dumps(said | EDITS.get(name, {}), indent=1) + "\n")
    exact = not entries.get("use_dora")
    text, values = "", {}
    for kind, dtype in (("bf16", torch.bfloat16), ("f32", torch.float32)):
        values[kind], said = merged(name, base_of, target / "base", target / "adapter", dtype, rows)
        lines = [f'   {json.dumps(n)}: {json.dumps(facts(t), separators=(",", ":"))}' for n, t in sorted(values[kind].items())]
        text += f',\n "{kind}": {{\n' + ",\n".join(lines) + "\n }"
    if not exact:
        save_file({n: t.contiguous() for n, t in values["f32"].items()}, target / "expected.safetensors")
    (target / "expected.json").write_text(f'{{"exact": {json.dumps(exact)}, "config": {json.dumps(said)}{text}}}\n')


for each in sys.argv[1:] or CASES:
    make(each)
