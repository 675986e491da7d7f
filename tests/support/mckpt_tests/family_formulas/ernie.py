"""ERNIE 4.5-VL: two pools of experts."""

from mckpt_tests.formulas import attention_layers, bf16, both, dense, embedding, final_norm, np, output, sizes, whole


def ernie4_5_vl_moe(r, h, held, cell):
    t = sizes(r, cell.T)
    t["num_hidden_layers"] = L = cell.P * r.randint(1, 3)
    dim = t["head_dim"]
    t["hidden_size"] = H = t["num_attention_heads"] * dim
    del t["head_dim"]
    E, shared, widths = cell.X * r.randint(1, 3), r.randint(1, 3), [cell.T * r.randint(1, 3), r.randint(1, 5)]
    kinds = [r.choice(["dense", "sparse"]) for _ in range(L)]
    t |= {"mlp_layer_types": kinds, "moe_num_experts": E, "moe_num_shared_experts": shared, "moe_intermediate_size": widths, "tie_word_embeddings": True}
    heads = r.randint(1, 3)
    v = dict(depth=r.randint(1, 3), hidden_size=heads * r.randint(2, 4), num_heads=heads, intermediate_size=r.randint(3, 9), patch_size=r.randint(2, 4), spatial_merge_size=r.randint(1, 2),
             temporal_merge_size=r.randint(1, 3), in_channels=r.randint(1, 4))
    w, f = v["hidden_size"], v["intermediate_size"]
    m = w * v["spatial_merge_size"] ** 2
    vision = [("patch_embed.proj.weight", w, v["in_channels"] * v["patch_size"] ** 2)]
    for n in range(v["depth"]):
        at = f"blocks.{n}."
        vision += both(f"{at}norm1", w) + both(f"{at}norm2", w) + both(f"{at}attn.qkv", 3 * w, w) + both(f"{at}attn.proj", w, w) + both(f"{at}mlp.fc1", f, w) + both(f"{at}mlp.fc2", w, f)
    whole(h, held, cell, "vision_tower.", "model.vision_model.", vision + both("ln", w))
    for part, reads in (("spatial", m), ("temporal", m * v["temporal_merge_size"])):
        for number, leaf, shape in ((0, "fc1", (m, reads)), (2, "fc2", (m, m)), (3, "ln", (m,))):
            for kind, s in (("weight", shape), ("bias", (m,))):
                a = h.new(f"model.resampler_model.{part}_linear.{number}.{kind}", *s)
                if cell.first:
                    held[f"resampler_model.{part}_linear.{leaf}.{kind}"] = a
    whole(h, held, cell, "resampler_model.", "model.resampler_model.", [*both("mlp", H, m), ("after_norm.weight", H)])
    e = embedding(h, held, t, cell, "language_model.", "model.")
    for n, put, at in attention_layers(h, held, t, cell, "language_model.", "model.", dim):
        norm = h.new(f"{at}post_attention_layernorm.weight", H)
        if kinds[n] == "dense":
            put("mlp.linear_fc1.layer_norm_weight", norm)
            dense(h, put, cell, at, H, t["intermediate_size"])
            continue
        put("pre_mlp_layernorm.weight", norm)
        at += "mlp."
        bias = h.new(f"{at}moe_statics.e_score_correction_bias", 2, E, dtype="F32")
        for i, (pool, leaf) in enumerate((("text", "weight"), ("vision", "weight_1"))):
            gate = h.new(f"{at}gate.{leaf}", H, E, dtype="F32")
            put(f"mlp.{pool}_moe_layer.router.weight", bf16(np.ascontiguousarray(gate.T)))
            put(f"mlp.{pool}_moe_layer.router.expert_bias", bias[i])
            files = [[h.new(f"{at}experts.{i * E + x}.{leaf}_proj.weight", *shape) for leaf, shape in
                      (("gate", (widths[i], H)), ("up", (widths[i], H)), ("down", (H, widths[i])))] for x in range(E)]
            for j, x in cell.experts(E):
                put(f"mlp.{pool}_moe_layer.experts.local_experts.{j}.linear_fc1.weight", np.concatenate(files[x][:2]))
                put(f"mlp.{pool}_moe_layer.experts.local_experts.{j}.linear_fc2.weight", files[x][2])
        width = widths[0] * shared
        put("mlp.shared_experts.linear_fc1.weight", cell.glu(h.new(f"{at}shared_experts.gate_proj.weight", width, H), h.new(f"{at}shared_experts.up_proj.weight", width, H)))
        put("mlp.shared_experts.linear_fc2.weight", cell.row(h.new(f"{at}shared_experts.down_proj.weight", H, width)))
    final_norm(h, held, t, cell, "language_model.", "model.norm.weight")
    output(h, held, t, cell, "language_model.", "", e, True)
    return {"model_type": "ernie4_5_vl_moe", "architectures": ["Ernie4_5_VLMoeForConditionalGeneration"], "dtype": "bfloat16", "text_config": t, "vision_config": v,
            "tie_word_embeddings": True}
