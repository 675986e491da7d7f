"""MiMo-V2-Flash: two numbers of groups, values of another size than keys, sinks in sliding layers."""

from mckpt_tests.formulas import always, dense, embedding, experts, final_norm, layer_of, output


def mimo_v2_flash(r, h, held, cell):
    L = cell.P * r.choice([1, 2, 3])
    full, slide = (cell.T * r.choice([1, 2, 3]) for _ in range(2))
    D, DV = r.choice([(3, 2), (2, 5), (6, 4), (4, 4)])
    heads, depths = full * slide * r.choice([1, 2]), r.choice([0, 0, 1, 3])
    kinds, sparse = ([r.choice([0, 1]) for _ in range(L)] for _ in range(2))
    c = {
        "model_type": "mimo_v2_flash", "architectures": ["MiMoV2FlashForCausalLM"], "torch_dtype": "bfloat16", "tie_word_embeddings": False,
        "hidden_size": (H := 2 * r.choice([3, 5, 7])), "vocab_size": 16 * r.choice([2, 3, 5]), "num_hidden_layers": L,
        "num_attention_heads": heads, "num_key_value_heads": full, "swa_num_key_value_heads": slide, "head_dim": D, "v_head_dim": DV,
        "hybrid_layer_pattern": kinds, "moe_layer_freq": sparse, "intermediate_size": (wide := cell.T * r.choice([4, 6])),
        "moe_intermediate_size": (I := cell.ET * r.choice([2, 5])), "n_routed_experts": (E := cell.X * r.choice([1, 2, 3])), "layernorm_epsilon": 1e-5, "num_experts_per_tok": 1,
    }
    if c["vocab_size"] % cell.T or (depths and H % cell.T) or any((heads * D + g * (D + DV)) % cell.T for g in (full, slide)):
        return None

    def layer(put, f, slides, has_experts, norm):
        groups = slide if slides else full
        if slides:
            put("self_attention.core_attention.softmax_offset", cell.col(h.new(f"{f}self_attn.attention_sink_bias", heads)))
        put("self_attention.linear_proj.weight", cell.row(h.new(f"{f}self_attn.o_proj.weight", H, heads * DV)))
        put("self_attention.linear_qkv.layer_norm_weight", h.new(f"{f}input_layernorm.weight", H))
        q, k, v = (h.new(f"{f}self_attn.{x}_proj.weight", rows, H) for x, rows in (("q", heads * D), ("k", groups * D), ("v", groups * DV)))
        put("self_attention.linear_qkv.weight", cell.qkv(q, k, v, groups))
        norm = h.new(f"{f}{norm}.weight", H)
        if not has_experts:
            put("mlp.linear_fc1.layer_norm_weight", norm)
            return dense(h, put, cell, f, H, wide)
        put("pre_mlp_layernorm.weight", norm)
        put("mlp.router.weight", h.new(f"{f}mlp.gate.weight", E, H))
        put("mlp.router.expert_bias", h.new(f"{f}mlp.gate.e_score_correction_bias", E, dtype="F32"), buffer=True)
        experts(h, put, cell, E, I, H, f"{f}mlp.experts.", ("gate_proj", "up_proj", "down_proj"))

    embedded = embedding(h, held, c, cell, "", "model.")
    if cell.last and not cell.first and depths:
        held["embedding.word_embeddings.weight"] = cell.col(embedded)
    mine = dict((n, j) for j, n in cell.layers(L))
    for n in range(L):
        layer(layer_of(held, "", mine, n), f"model.layers.{n}.", kinds[n], sparse[n], "post_attention_layernorm")
    final_norm(h, held, c, cell, "", "model.norm.weight")
    for d in range(depths):
        f, put = f"model.mtp.layers.{d}.", always(held, f"mtp.layers.{d}.", cell.last)
        for leaf in ("enorm", "hnorm"):
            put(f"{leaf}.weight", h.new(f"{f}{leaf}.weight", H))
        put("eh_proj.weight", cell.col(h.new(f"{f}eh_proj.weight", H, 2 * H)))
        layer(always(held, f"mtp.layers.{d}.mtp_model_layer.", cell.last), f, 1, 0, "pre_mlp_layernorm")
        put("final_layernorm.weight", h.new(f"{f}final_layernorm.weight", H))
    output(h, held, c, cell, "", "lm_head.weight", embedded, False)
    return c
