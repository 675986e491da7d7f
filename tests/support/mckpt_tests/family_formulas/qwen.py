"""Qwen3-ASR and Qwen2.5-Omni."""

from mckpt_tests.formulas import both, embedding, final_norm, llama_layers, output, sizes, whole


def audio_config(r, out):
    heads = r.randint(1, 3)
    return dict(d_model=heads * r.randint(2, 4), encoder_layers=r.randint(1, 3), encoder_attention_heads=heads, encoder_ffn_dim=r.randint(3, 9), num_mel_bins=r.randint(5, 40),
                output_dim=out, downsample_hidden_size=r.randint(2, 5), max_source_positions=16)


def audio_layer(n, d, f, key_bias):
    at = f"layers.{n}."
    out = []
    for x in ("k_proj", "v_proj", "q_proj", "out_proj"):
        out += both(f"{at}self_attn.{x}", d, d)[: 2 if x != "k_proj" or key_bias else 1]
    return out + both(f"{at}self_attn_layer_norm", d) + both(f"{at}fc1", f, d) + both(f"{at}fc2", d, f) + both(f"{at}final_layer_norm", d)


def qwen3_asr(r, h, held, cell):
    t = sizes(r, cell.T)
    t["num_hidden_layers"] = cell.P * r.randint(1, 3)
    t["tie_word_embeddings"] = tied = r.random() < 0.5
    a = audio_config(r, t["hidden_size"])
    d, c, bins = a["d_model"], a["downsample_hidden_size"], a["num_mel_bins"]
    for _ in range(3):
        bins = (bins + 1) // 2
    rest = [*both("ln_post", d), *both("conv2d1", c, 1, 3, 3), *both("conv2d2", c, c, 3, 3), *both("conv2d3", c, c, 3, 3), ("conv_out.weight", d, c * bins), *both("proj1", d, d),
            *both("proj2", t["hidden_size"], d)]
    layers = [s for n in range(a["encoder_layers"]) for s in audio_layer(n, d, a["encoder_ffn_dim"], True)]
    for name, *shape in layers + rest:
        x = h.new(f"thinker.audio_tower.{name}", *shape)
        if cell.first:
            held[f"thinker.audio_model.{name}"] = x
    e = embedding(h, held, t, cell, "thinker.language_model.", "thinker.model.")
    llama_layers(h, held, t, cell, "thinker.language_model.", "thinker.model.", t["head_dim"], norms=True)
    final_norm(h, held, t, cell, "thinker.language_model.", "thinker.model.norm.weight")
    output(h, held, t, cell, "thinker.language_model.", "thinker.lm_head.weight", e, tied)
    return {"model_type": "qwen3_asr", "architectures": ["Qwen3ASRForConditionalGeneration"], "torch_dtype": "bfloat16", "thinker_config": {"text_config": t, "audio_config": a}}


def qwen2_5_omni(r, h, held, cell):
    t = sizes(r, cell.T)
    t["num_hidden_layers"] = cell.P * r.randint(1, 3)
    dim = t["head_dim"]
    t["hidden_size"] = H = t["num_attention_heads"] * dim
    t["head_dim"] = dim + 1  # which the model does not read
    heads = r.randint(1, 3)
    v = dict(depth=r.randint(1, 3), hidden_size=heads * r.randint(2, 4), num_heads=heads, intermediate_size=r.randint(3, 9), out_hidden_size=H, patch_size=r.randint(2, 4),
             spatial_merge_size=r.randint(1, 3), temporal_patch_size=r.randint(1, 3), in_channels=r.randint(1, 4))
    a = audio_config(r, r.randint(3, 9))
    w, f, p = v["hidden_size"], v["intermediate_size"], v["patch_size"]
    m = w * v["spatial_merge_size"] ** 2
    vision = [("patch_embed.proj.weight", w, v["in_channels"], v["temporal_patch_size"], p, p)]
    for n in range(v["depth"]):
        at = f"blocks.{n}."
        vision += [(f"{at}norm1.weight", w), (f"{at}norm2.weight", w)]
        for x in ("attn.q", "attn.k", "attn.v", "attn.proj"):
            vision += both(at + x, w, w)
        vision += both(f"{at}mlp.gate_proj", f, w) + both(f"{at}mlp.up_proj", f, w) + both(f"{at}mlp.down_proj", w, f)
    vision += [("merger.ln_q.weight", w), *both("merger.mlp.0", m, m), *both("merger.mlp.2", H, m)]
    whole(h, held, cell, "thinker.visual.", "thinker.visual.", vision)
    d = a["d_model"]
    audio = [*both("conv1", d, a["num_mel_bins"], 3), *both("conv2", d, d, 3), ("audio_bos_eos_token.weight", 2, a["output_dim"]),
             *[s for n in range(a["encoder_layers"]) for s in audio_layer(n, d, a["encoder_ffn_dim"], False)], *both("ln_post", d), *both("proj", a["output_dim"], d)]
    whole(h, held, cell, "thinker.audio_model.", "thinker.audio_tower.", audio)
    tied = r.random() < 0.3
    e = embedding(h, held, t, cell, "thinker.language_model.", "thinker.model.")
    llama_layers(h, held, t, cell, "thinker.language_model.", "thinker.model.", dim, bias=True)
    final_norm(h, held, t, cell, "thinker.language_model.", "thinker.model.norm.weight")
    output(h, held, t, cell, "thinker.language_model.", "thinker.lm_head.weight", e, tied)
    return {"model_type": "qwen2_5_omni", "architectures": ["Qwen2_5OmniForConditionalGeneration"], "dtype": "bfloat16", "enable_audio_output": False,
            "thinker_config": {"text_config": t, "vision_config": v, "audio_config": a, "tie_word_embeddings": tied}}
