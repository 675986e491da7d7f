"""Kimi K2.5: the latent attention and the experts of DeepSeek-V3 behind a tower that is copied."""

from mckpt_tests.formulas import both, dense, embedding, experts, final_norm, layer_of, output, whole


def kimi_k25(r, h, held, cell):
    L, W = cell.P * r.choice([1, 2, 3]), r.choice([4, 6])
    c = {
        "model_type": "kimi_k2", "hidden_size": (H := 2 * r.choice([3, 5, 7])), "vocab_size": 16 * r.choice([2, 3, 5]), "num_hidden_layers": L,
        "num_attention_heads": (A := cell.T * r.choice([1, 2, 3])), "q_lora_rank": (Q := r.choice([None, 3, 5])), "kv_lora_rank": (K := r.choice([4, 7])),
        "qk_nope_head_dim": (nope := r.choice([2, 5])), "qk_rope_head_dim": (rope := r.choice([2, 4])), "v_head_dim": (V := r.choice([3, 6])),
        "first_k_dense_replace": (first := r.choice([0, 1, 2])), "intermediate_size": cell.T * r.choice([4, 6]), "moe_intermediate_size": (I := cell.T * cell.ET * r.choice([2, 5])),
        "n_routed_experts": (E := cell.X * r.choice([1, 2, 3])), "n_shared_experts": r.choice([1, 2]), "num_experts_per_tok": 1, "tie_word_embeddings": False,
    }
    if c["vocab_size"] % cell.T:
        return None
    v = {"vt_hidden_size": W, "vt_intermediate_size": (F := r.choice([5, 7])), "vt_num_hidden_layers": r.choice([1, 2]), "vt_num_attention_heads": 2, "patch_size": r.choice([2, 3]),
         "init_pos_emb_height": r.choice([2, 3]), "init_pos_emb_width": r.choice([4, 5]), "merge_kernel_size": [1, r.choice([1, 2])], "mm_hidden_size": W, "text_hidden_size": H}
    P = W * v["merge_kernel_size"][1]
    shapes = [*both("vision_tower.patch_embed.proj", W, 3, v["patch_size"], v["patch_size"]),
              ("vision_tower.patch_embed.pos_emb.weight", v["init_pos_emb_height"], v["init_pos_emb_width"], W)]
    for n in range(v["vt_num_hidden_layers"]):
        for leaf, *shape in (("norm0", W), ("norm1", W), ("mlp.fc0", F, W), ("mlp.fc1", W, F), ("wqkv", 3 * W, W), ("wo", W, W)):
            shapes += both(f"vision_tower.encoder.blocks.{n}.{leaf}", *shape)
    for name, *shape in (("vision_tower.encoder.final_layernorm", W), ("mm_projector.pre_norm", W), ("mm_projector.proj.0", P, P), ("mm_projector.proj.2", H, P)):
        shapes += both(name, *shape)
    whole(h, held, cell, "", "", shapes)
    to = "language_model."
    embedded = embedding(h, held, c, cell, to, f"{to}model.")
    mine = dict((n, j) for j, n in cell.layers(L))
    for n in range(L):
        put, f = layer_of(held, to, mine, n), f"{to}model.layers.{n}."
        at, of = "self_attention.", f"{f}self_attn."
        put("input_layernorm.weight", h.new(f"{f}input_layernorm.weight", H))
        put(f"{at}linear_proj.weight", cell.row(h.new(f"{of}o_proj.weight", H, A * V)))
        if Q:
            put(f"{at}linear_q_down_proj.weight", h.new(f"{of}q_a_proj.weight", Q, H))
            put(f"{at}linear_q_up_proj.layer_norm_weight", h.new(f"{of}q_a_layernorm.weight", Q))
            put(f"{at}linear_q_up_proj.weight", cell.col(h.new(f"{of}q_b_proj.weight", A * (nope + rope), Q)))
        else:
            put(f"{at}linear_q_proj.weight", cell.col(h.new(f"{of}q_proj.weight", A * (nope + rope), H)))
        put(f"{at}linear_kv_down_proj.weight", h.new(f"{of}kv_a_proj_with_mqa.weight", K + rope, H))
        put(f"{at}linear_kv_up_proj.layer_norm_weight", h.new(f"{of}kv_a_layernorm.weight", K))
        put(f"{at}linear_kv_up_proj.weight", cell.col(h.new(f"{of}kv_b_proj.weight", A * (nope + V), K)))
        norm = h.new(f"{f}post_attention_layernorm.weight", H)
        if n < first:
            put("mlp.linear_fc1.layer_norm_weight", norm)
            dense(h, put, cell, f, H, c["intermediate_size"])
            continue
        put("pre_mlp_layernorm.weight", norm)
        put("mlp.router.weight", h.new(f"{f}mlp.gate.weight", E, H))
        put("mlp.router.expert_bias", h.new(f"{f}mlp.gate.e_score_correction_bias", E, dtype="F32"), buffer=True)
        experts(h, put, cell, E, I, H, f"{f}mlp.experts.", ("gate_proj", "up_proj", "down_proj"))
        S = I * c["n_shared_experts"]
        gate, up, down = (h.new(f"{f}mlp.shared_experts.{x}_proj.weight", *shape) for x, shape in (("gate", (S, H)), ("up", (S, H)), ("down", (H, S))))
        put("mlp.shared_experts.linear_fc1.weight", cell.glu(gate, up))
        put("mlp.shared_experts.linear_fc2.weight", cell.row(down))
    final_norm(h, held, c, cell, to, f"{to}model.norm.weight")
    output(h, held, c, cell, to, f"{to}lm_head.weight", embedded, False)
    return {"model_type": "kimi_k25", "architectures": ["KimiK25ForConditionalGeneration"], "text_config": c, "vision_config": v, "tie_word_embeddings": False}
