"""Sarvam with DeepSeek's latent attention."""

from mckpt_tests.formulas import dense, embedding, experts, final_norm, layer_of, output


def sarvam_mla(r, h, held, cell):
    """No low-rank queries; the norm in front of the attention is a parameter of its own, the one in front of a dense MLP belongs to its linear layer."""
    T = cell.T
    L, H, V, heads = cell.P * r.randint(1, 4), r.randint(2, 9), T * r.randint(3, 9), T * r.randint(1, 3)
    nope, rope, v, lora, wide = r.randint(1, 5), 2 * r.randint(1, 3), r.randint(1, 6), r.randint(2, 7), T * r.randint(2, 6)
    E, width, shared, first = cell.X * r.randint(1, 3), T * r.randint(1, 4), r.randint(1, 3), r.randint(0, L)
    tied = r.random() < 0.2
    t = {"vocab_size": V, "hidden_size": H}
    e, mine = embedding(h, held, t, cell, "", "model."), dict((n, j) for j, n in cell.layers(L))
    for n in range(L):
        put, at = layer_of(held, "", mine, n), f"model.layers.{n}."
        put("input_layernorm.weight", h.new(f"{at}input_layernorm.weight", H))
        file, to = f"{at}self_attn.", "self_attention.linear_"
        put(f"{to}q_proj.weight", cell.col(h.new(f"{file}q_proj.weight", heads * (nope + rope), H)))
        put(f"{to}kv_down_proj.weight", h.new(f"{file}kv_a_proj_with_mqa.weight", lora + rope, H))
        put(f"{to}kv_up_proj.layer_norm_weight", h.new(f"{file}kv_a_layernorm.weight", lora))
        put(f"{to}kv_up_proj.weight", cell.col(h.new(f"{file}kv_b_proj.weight", heads * (nope + v), lora)))
        put(f"{to}proj.weight", cell.row(h.new(f"{file}o_proj.weight", H, heads * v)))
        norm = h.new(f"{at}post_attention_layernorm.weight", H)
        if n < first:
            put("mlp.linear_fc1.layer_norm_weight", norm)
            dense(h, put, cell, at, H, wide)
            continue
        put("pre_mlp_layernorm.weight", norm)
        put("mlp.router.weight", h.new(f"{at}mlp.gate.weight", E, H))
        put("mlp.router.expert_bias", h.new(f"{at}mlp.gate.e_score_correction_bias", E, dtype="F32"))
        experts(h, put, cell, E, width, H, f"{at}mlp.experts.", ("gate_proj", "up_proj", "down_proj"))
        file, wider = f"{at}mlp.shared_experts.", shared * width
        put("mlp.shared_experts.linear_fc1.weight", cell.glu(h.new(f"{file}gate_proj.weight", wider, H), h.new(f"{file}up_proj.weight", wider, H)))
        put("mlp.shared_experts.linear_fc2.weight", cell.row(h.new(f"{file}down_proj.weight", H, wider)))
    final_norm(h, held, t, cell, "", "model.norm.weight")
    output(h, held, t, cell, "", "lm_head.weight", e, tied)
    # The hub and transformers have different words for two numbers.
    words = r.choice([("num_experts", "num_shared_experts"), ("n_routed_experts", "n_shared_experts")])
    return t | dict(zip(words, (E, shared))) | {
        "model_type": "sarvam_mla", "architectures": ["SarvamMLAForCausalLM"], "num_hidden_layers": L, "num_attention_heads": heads, "num_key_value_heads": heads,
        "head_dim": lora + rope, "q_lora_rank": None, "kv_lora_rank": lora, "qk_nope_head_dim": nope, "qk_rope_head_dim": rope, "v_head_dim": v, "intermediate_size": wide,
        "moe_intermediate_size": width, "num_experts_per_tok": 1, "first_k_dense_replace": first, "hidden_act": "silu", "tie_word_embeddings": tied}
