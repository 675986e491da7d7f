"""The families of mcore-bridge (ms-swift)."""

from mckpt_tests.formulas import attention_layers, both, dense, embedding, experts, final_norm, llama_layers, output, sizes, tower_sizes, whole


def internvl(r, h, held, cell):
    kind = r.choice(["qwen2", "qwen3", "qwen3_moe"])
    t = sizes(r, cell.T) | {"model_type": kind}
    t["num_hidden_layers"] = cell.P * r.randint(1, 3)
    H, tied, to, file = t["hidden_size"], r.random() < 0.3, "language_model.", "language_model.model."
    if kind == "qwen2":
        t["hidden_size"] = H = t["num_attention_heads"] * t.pop("head_dim")
    dim = t.get("head_dim", H // t["num_attention_heads"])
    e = embedding(h, held, t, cell, to, file)
    how = {"bias": True} if kind == "qwen2" else {"norms": True}
    if kind == "qwen3_moe":
        t |= {"num_experts": (E := cell.X * r.randint(1, 3)), "moe_intermediate_size": (width := r.randint(2, 5)), "num_experts_per_tok": 1}
        for _, put, at in attention_layers(h, held, t, cell, to, file, dim, **how):
            put("pre_mlp_layernorm.weight", h.new(f"{at}post_attention_layernorm.weight", H))
            put("mlp.router.weight", h.new(f"{at}mlp.gate.weight", E, H))
            experts(h, put, cell, E, width, H, f"{at}mlp.experts.", ("gate_proj", "up_proj", "down_proj"))
    else:
        llama_layers(h, held, t, cell, to, file, dim, **how)
    final_norm(h, held, t, cell, to, f"{file}norm.weight")
    output(h, held, t, cell, to, "language_model.lm_head.weight", e, tied)
    v = tower_sizes(r) | dict(num_channels=r.randint(1, 4), patch_size=[(p := r.randint(2, 4))] * 2, attention_bias=r.random() < 0.5, use_qk_norm=r.random() < 0.5,
                              use_mean_pooling=r.random() < 0.5, norm_type=r.choice(["layer_norm", "rms_norm"]))
    side, merge = r.randint(1, 3), r.choice([1, 2, 4])
    v["image_size"] = [side * p + r.randrange(p)] * 2
    w, f, m = v["hidden_size"], v["intermediate_size"], v["hidden_size"] * merge * merge
    norm = (lambda name: both(name, w)) if v["norm_type"] == "layer_norm" else (lambda name: [(f"{name}.weight", w)])
    shapes = [("embeddings.cls_token", 1, 1, w), ("embeddings.position_embeddings", 1, side * side + 1, w), *both("embeddings.patch_embeddings.projection", w, v["num_channels"], p, p)]
    for n in range(v["num_hidden_layers"]):
        at = f"encoder.layer.{n}."
        shapes += [(f"{at}lambda_1", w), (f"{at}lambda_2", w), *both(f"{at}attention.projection_layer", w, w), *both(f"{at}mlp.fc1", f, w), *both(f"{at}mlp.fc2", w, f)]
        for x in "qkv":
            shapes += both(f"{at}attention.{x}_proj", w, w)[:2 if v["attention_bias"] else 1]
        shapes += [(f"{at}attention.{x}_norm.weight", w) for x in "qk" if v["use_qk_norm"]]
        shapes += norm(f"{at}layernorm_before") + norm(f"{at}layernorm_after")
    whole(h, held, cell, "visual.vision_tower.", "vision_tower.", shapes + ([] if v["use_mean_pooling"] else both("layernorm", w)))
    whole(h, held, cell, "visual.multi_modal_projector.", "multi_modal_projector.", both("layer_norm", m) + both("linear_1", H, m) + both("linear_2", H, H))
    return {"model_type": "internvl", "architectures": ["InternVLForConditionalGeneration"], "dtype": "bfloat16", "text_config": t, "vision_config": v, "tie_word_embeddings": tied,
            "downsample_ratio": 1 / merge}


def llama4(r, h, held, cell):
    t = sizes(r, cell.T)
    t["num_hidden_layers"] = L = cell.P * r.randint(1, 4)
    E, width, step = cell.X * r.randint(1, 3), cell.T * r.randint(1, 4), r.randint(1, 3)
    wide = t["intermediate_size"]
    t |= {"intermediate_size": width, "intermediate_size_mlp": wide, "num_local_experts": E, "interleave_moe_layer_step": step}
    sparse = {n for n in range(L) if (n + 1) % step == 0}
    if r.random() < 0.4:
        sparse = {n for n in range(L) if r.random() < 0.5}
        t["moe_layers"] = sorted(sparse)
    H, to, file = t["hidden_size"], "language_model.", "language_model.model."
    e = embedding(h, held, t, cell, to, file)
    for n, put, at in attention_layers(h, held, t, cell, to, file, t["head_dim"]):
        norm = h.new(f"{at}post_attention_layernorm.weight", H)
        at += "feed_forward."
        if n not in sparse:
            put("mlp.linear_fc1.layer_norm_weight", norm)
            put("mlp.linear_fc1.weight", cell.glu(h.new(f"{at}gate_proj.weight", wide, H), h.new(f"{at}up_proj.weight", wide, H)))
            put("mlp.linear_fc2.weight", cell.row(h.new(f"{at}down_proj.weight", H, wide)))
            continue
        put("pre_mlp_layernorm.weight", norm)
        put("mlp.router.weight", h.new(f"{at}router.weight", E, H))
        up, down = h.new(f"{at}experts.gate_up_proj", E, H, 2 * width), h.new(f"{at}experts.down_proj", E, width, H)
        for j, x in cell.experts(E):
            put(f"mlp.experts.linear_fc1.weight{j}", up[x].T)
            put(f"mlp.experts.linear_fc2.weight{j}", down[x].T)
        at += "shared_expert."
        put("mlp.shared_experts.linear_fc1.weight", cell.glu(h.new(f"{at}gate_proj.weight", width, H), h.new(f"{at}up_proj.weight", width, H)))
        put("mlp.shared_experts.linear_fc2.weight", cell.row(h.new(f"{at}down_proj.weight", H, width)))
    final_norm(h, held, t, cell, to, f"{file}norm.weight")
    tied = r.random() < 0.3
    output(h, held, t, cell, to, "language_model.lm_head.weight", e, tied)
    p, side, inside = r.randint(2, 4), r.randint(1, 3), r.randint(2, 9)
    v = tower_sizes(r) | dict(num_channels=r.randint(1, 4), patch_size=p, image_size=side * p + r.randrange(p), vision_output_dim=inside, projector_input_dim=inside, projector_output_dim=inside)
    w, f = v["hidden_size"], v["intermediate_size"]
    shapes = [("class_embedding", w), ("positional_embedding_vlm", side * side + 1, w), ("patch_embedding.linear.weight", w, v["num_channels"] * p * p), *both("layernorm_pre", w),
              *both("layernorm_post", w), ("vision_adapter.mlp.fc1.weight", inside, f), ("vision_adapter.mlp.fc2.weight", inside, inside)]
    for n in range(v["num_hidden_layers"]):
        at = f"model.layers.{n}."
        for x in "qkvo":
            shapes += both(f"{at}self_attn.{x}_proj", w, w)
        shapes += both(f"{at}mlp.fc1", f, w) + both(f"{at}mlp.fc2", w, f) + both(f"{at}input_layernorm", w) + both(f"{at}post_attention_layernorm", w)
    whole(h, held, cell, "visual.vision_model.", "vision_model.", shapes)
    whole(h, held, cell, "visual.multi_modal_projector.", "multi_modal_projector.", [("linear_1.weight", H, inside)])
    return {"model_type": "llama4", "architectures": ["Llama4ForConditionalGeneration"], "dtype": "bfloat16", "text_config": t | {"tie_word_embeddings": tied}, "vision_config": v}


def muse_glimmer(r, h, held, cell):
    t = sizes(r, cell.T)
    t["num_hidden_layers"] = cell.P * r.randint(1, 3)
    H, to, file = t["hidden_size"], "language_model.", "model.language_model."
    e = embedding(h, held, t, cell, to, file)
    for _, put, at in attention_layers(h, held, t, cell, to, file, t["head_dim"]):
        put("self_attention.gate_proj.weight", cell.col(h.new(f"{at}self_attn.gate_proj.weight", t["num_attention_heads"] * t["head_dim"], H)))
        put("mlp.linear_fc1.layer_norm_weight", h.new(f"{at}pre_feedforward_layernorm.weight", H))
        dense(h, put, cell, at, H, t["intermediate_size"])
        for leaf in ("post_attention_layernorm", "post_feedforward_layernorm"):
            put(f"{leaf}.weight", h.new(f"{at}{leaf}.weight", H))
    final_norm(h, held, t, cell, to, f"{file}norm.weight")
    tied = r.random() < 0.3
    output(h, held, t, cell, to, "lm_head.weight", e, tied)
    v = tower_sizes(r) | dict(patch_size=r.randint(2, 4), patch_temporal=r.randint(1, 3), pos_emb_height=r.randint(1, 4), pos_emb_width=r.randint(1, 4))
    w, f, out, inside = v["hidden_size"], v["intermediate_size"], r.randint(2, 9), r.randint(2, 9)
    shapes = [("patch_embedder.patch_embedding.weight", w, 3 * v["patch_temporal"] * v["patch_size"] ** 2),
              ("patch_embedder.position_embedding_table.weight", v["pos_emb_height"] * v["pos_emb_width"], w), *both("ln_pre", w), *both("ln_post", w)]
    for n in range(v["num_hidden_layers"]):
        at = f"layers.{n}."
        for x in ("proj", "q_proj", "k_proj", "v_proj"):
            shapes += both(f"{at}attn.{x}", w, w)
        shapes += both(f"{at}norm1", w) + both(f"{at}norm2", w) + both(f"{at}mlp.fc1", f, w) + both(f"{at}mlp.fc2", w, f)
    whole(h, held, cell, "visual.vision_tower.", "model.vision_tower.", shapes)
    whole(h, held, cell, "visual.", "model.", [("vision_adapter.fc1.weight", inside, out), ("vision_adapter.fc2.weight", inside, inside), ("vision_projection.weight", H, inside)])
    return {"model_type": "muse_glimmer", "architectures": ["MuseGlimmerForConditionalGeneration"], "dtype": "bfloat16", "text_config": t, "tie_word_embeddings": tied,
            "vision_config": v, "out_hidden_size": out, "projector_hidden_size": inside}
