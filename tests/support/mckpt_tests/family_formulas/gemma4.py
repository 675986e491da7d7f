"""Gemma 4 with vision, perhaps with audio: layers with heads of two sizes, keys that are values, too, layers that use keys of
earlier ones; a dense MLP beside experts, or a second embedding. Towers are Hugging Face's modules.
"""

from mckpt_tests.formulas import embedding, final_norm, layer_of, np, output, sizes, whole


def clippable(clips, *names):
    """(name, rows, columns): a linear layer, and the ranges of what it reads and gives."""
    for name, rows, columns in names:
        yield f"{name}.linear.weight", rows, columns
        for side in ("input", "output") if clips else ():
            yield f"{name}.{side}_min",
            yield f"{name}.{side}_max",


def vision(r):
    groups = r.randint(1, 2)
    heads, D = groups * r.randint(1, 2), r.randint(2, 4)
    v = dict(hidden_size=(W := r.randint(3, 6)), intermediate_size=(F := r.randint(3, 9)), num_hidden_layers=r.randint(1, 3), num_attention_heads=heads, num_key_value_heads=groups, head_dim=D,
             patch_size=(p := r.randint(2, 4)), position_embedding_size=(P := r.randint(2, 6)), standardize=r.random() < 0.5, use_clipped_linears=(clips := r.random() < 0.5))
    shapes = [("patch_embedder.position_embedding_table", 2, P, W), ("patch_embedder.input_proj.weight", W, 3 * p * p)]
    if v["standardize"]:
        shapes += [("std_bias", W), ("std_scale", W)]
    for n in range(v["num_hidden_layers"]):
        at = f"encoder.layers.{n}."
        shapes += clippable(clips, (f"{at}self_attn.q_proj", heads * D, W), (f"{at}self_attn.k_proj", groups * D, W), (f"{at}self_attn.v_proj", groups * D, W),
                            (f"{at}self_attn.o_proj", W, heads * D), (f"{at}mlp.gate_proj", F, W), (f"{at}mlp.up_proj", F, W), (f"{at}mlp.down_proj", W, F))
        shapes += [(f"{at}self_attn.{x}_norm.weight", D) for x in "qk"]
        shapes += [(f"{at}{x}_layernorm.weight", W) for x in ("input", "post_attention", "pre_feedforward", "post_feedforward")]
    return v, shapes


def audio(r):
    heads, clips = r.randint(1, 3), r.random() < 0.5
    first, last = r.randint(4, 13), r.randint(2, 5)
    a = dict(hidden_size=(W := heads * r.randint(2, 4)), num_hidden_layers=r.randint(1, 3), num_attention_heads=heads, subsampling_conv_channels=[first, last],
             output_proj_dims=(out := r.randint(2, 9)), conv_kernel_size=(k := r.randint(2, 5)))
    if not clips or r.random() < 0.5:  # ranges are usual
        a["use_clipped_linears"] = clips
    front = "subsample_conv_projection."
    shapes = [(f"{front}layer0.conv.weight", first, 1, 3, 3), (f"{front}layer0.norm.weight", first), (f"{front}layer1.conv.weight", last, first, 3, 3), (f"{front}layer1.norm.weight", last),
              (f"{front}input_proj_linear.weight", W, first // 4 * last), ("output_proj.weight", out, W), ("output_proj.bias", out)]
    for n in range(a["num_hidden_layers"]):
        at = f"layers.{n}."
        for x in ("feed_forward1", "feed_forward2"):
            shapes += clippable(clips, (f"{at}{x}.ffw_layer_1", 4 * W, W), (f"{at}{x}.ffw_layer_2", W, 4 * W))
            shapes += [(f"{at}{x}.{norm}_layer_norm.weight", W) for norm in ("pre", "post")]
        shapes += clippable(clips, *((f"{at}self_attn.{x}", W, W) for x in ("q_proj", "k_proj", "v_proj", "post")))
        shapes += [(f"{at}self_attn.relative_k_proj.weight", W, W), (f"{at}self_attn.per_dim_scale", W // heads)]
        shapes += clippable(clips, (f"{at}lconv1d.linear_start", 2 * W, W), (f"{at}lconv1d.linear_end", W, W))
        shapes += [(f"{at}lconv1d.depthwise_conv1d.weight", W, 1, k)]
        shapes += [(f"{at}{x}.weight", W) for x in ("lconv1d.pre_layer_norm", "lconv1d.conv_norm", "norm_pre_attn", "norm_post_attn", "norm_out")]
    return a, shapes


def gemma4(r, h, held, cell):
    t = sizes(r, cell.T)
    dense = r.random() < 0.6
    if cell.X > 1 and dense or (not dense and cell.ET > 1):
        return None
    t["num_hidden_layers"] = L = cell.P * r.randint(2, 4)
    H, heads, groups, D, F = (t[name] for name in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size"))
    kinds = [r.choice(["full_attention", "sliding_attention"]) for _ in range(L - 1)] + ["full_attention"]
    joined, p, shared = r.random() < 0.5, 0, 0
    E, I = cell.X * r.randint(1, 3), r.randint(2, 5)
    t |= {"model_type": "gemma4_text", "layer_types": kinds, "attention_k_eq_v": joined, "global_head_dim": (GD := r.randint(2, 5)), "tie_word_embeddings": True, "hidden_activation": "gelu_pytorch_tanh"}
    t["num_global_key_value_heads"] = G = r.choice([g for g in range(1, heads + 1) if heads % g == 0 and g % cell.T == 0]) if joined else groups
    if dense:
        t["vocab_size"] = t["vocab_size_per_layer_input"] = 128 * cell.T if cell.T == 3 else 128
        p = cell.T * r.choice([0, 1, 2]) if cell.P == 1 else 0
        seen = [n for n in range(1, L) if set(kinds[n:]) <= set(kinds[:n])]
        shared = L - r.choice(seen) if seen and cell.P == 1 and r.random() < 0.6 else 0
        t |= {"hidden_size_per_layer_input": p, "num_kv_shared_layers": shared, "use_double_wide_mlp": r.random() < 0.5}
    else:
        t |= {"hidden_size_per_layer_input": 0, "enable_moe_block": True, "num_experts": E, "top_k_experts": 1, "moe_intermediate_size": I}
    v, seeing = vision(r)
    whole(h, held, cell, "vision_tower.", "model.vision_tower.", seeing)
    whole(h, held, cell, "embed_vision.", "model.embed_vision.", [("embedding_projection.weight", H, v["hidden_size"])])
    config = {"model_type": "gemma4", "architectures": ["Gemma4ForConditionalGeneration"], "text_config": t, "vision_config": v, "audio_config": None, "tie_word_embeddings": True}
    if r.random() < 0.7:
        config["audio_config"], hearing = audio(r)
        whole(h, held, cell, "audio_tower.", "model.audio_tower.", hearing)
        whole(h, held, cell, "embed_audio.", "model.embed_audio.", [("embedding_projection.weight", H, config["audio_config"]["output_proj_dims"])])
    to, file = "language_model.", "model.language_model."
    embedded = embedding(h, held, t, cell, to, file)
    if p:
        for name, leaf, *shape in (("per_layer_embedding", "embed_tokens_per_layer", t["vocab_size"], L * p), ("per_layer_model_proj", "per_layer_model_projection", L * p, H)):
            held[f"{to}{name}.weight"] = cell.col(h.new(f"{file}{leaf}.weight", *shape))
        held[f"{to}per_layer_proj_norm.weight"] = h.new(f"{file}per_layer_projection_norm.weight", p)
    mine = dict((n, j) for j, n in cell.layers(L))
    for n in range(L):
        put, at = layer_of(held, to, mine, n), f"{file}layers.{n}."
        (d, g), late = (GD, G) if kinds[n] == "full_attention" else (D, groups), n >= L - shared
        norm = {x: h.new(f"{at}{x}.weight", H) for x in ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")}
        put("layer_scalar", h.new(f"{at}layer_scalar", 1))
        q = h.new(f"{at}self_attn.q_proj.weight", heads * d, H)
        k = values = np.zeros((g * d, H), np.uint16)
        key_norm = np.full(d, 0x3F80, np.uint16)
        if not late:
            k = values = h.new(f"{at}self_attn.k_proj.weight", g * d, H)
            key_norm = h.new(f"{at}self_attn.k_norm.weight", d)
            if not (joined and kinds[n] == "full_attention"):
                values = h.new(f"{at}self_attn.v_proj.weight", g * d, H)
        put("self_attention.linear_qkv.weight", cell.qkv(q, k, values, g))
        put("self_attention.k_layernorm.weight", key_norm)
        put("self_attention.q_layernorm.weight", h.new(f"{at}self_attn.q_norm.weight", d))
        put("self_attention.linear_proj.weight", cell.row(h.new(f"{at}self_attn.o_proj.weight", H, heads * d)))
        width = F * (2 if late and t["use_double_wide_mlp"] else 1)
        gate, up, down = (h.new(f"{at}mlp.{x}_proj.weight", *shape) for x, shape in (("gate", (width, H)), ("up", (width, H)), ("down", (H, width))))
        mlp = "mlp." if dense else "mlp.shared_experts."
        put(f"{mlp}linear_fc1.weight", cell.glu(gate, up))
        put(f"{mlp}linear_fc2.weight", cell.row(down))
        if dense:
            for name, leaf in (("input_layernorm", "input_layernorm"), ("post_self_attn_layernorm", "post_attention_layernorm"), ("pre_mlp_layernorm", "pre_feedforward_layernorm"),
                               ("post_mlp_layernorm", "post_feedforward_layernorm")):
                put(f"{name}.weight", norm[leaf])
            for name, *shape in (("per_layer_input_gate", p, H), ("per_layer_projection", H, p), ("post_per_layer_input_norm", H)) if p else ():
                put(f"{name}.weight", h.new(f"{at}{name}.weight", *shape))
            continue
        put("self_attention.linear_qkv.layer_norm_weight", norm["input_layernorm"])
        put("self_attention.linear_proj.post_layernorm.weight", norm["post_attention_layernorm"])
        put("pre_shared_expert_layernorm.weight", norm["pre_feedforward_layernorm"])
        put("post_ffn_layernorm.weight", norm["post_feedforward_layernorm"])
        for name, leaf, *shape in (("mlp.router.weight", "router.proj.weight", E, H), ("mlp.router.scale", "router.scale", H), ("mlp.router.per_expert_scale", "router.per_expert_scale", E),
                                   ("pre_mlp_layernorm.weight", "pre_feedforward_layernorm_2.weight", H), ("mlp.post_shared_expert_layernorm.weight", "post_feedforward_layernorm_1.weight", H),
                                   ("mlp.post_moe_layernorm.weight", "post_feedforward_layernorm_2.weight", H)):
            put(name, h.new(at + leaf, *shape))
        fused, downs = h.new(f"{at}experts.gate_up_proj", E, 2 * I, H), h.new(f"{at}experts.down_proj", E, H, I)
        for j, x in cell.experts(E):
            put(f"mlp.experts.linear_fc1.weight{j}", fused[x])
            put(f"mlp.experts.linear_fc2.weight{j}", downs[x])
    final_norm(h, held, t, cell, to, f"{file}norm.weight")
    output(h, held, t, cell, to, "", embedded, True)
    return config
