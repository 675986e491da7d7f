"""DeepSeek-V4: one tensor-parallel rank, `m` residual streams."""

from mckpt_tests.formulas import experts, layer_of, np


def deepseek_v4(r, h, held, cell):
    hub = r.random() < 0.6
    front = "" if hub else "model."
    L, depths, m = cell.P * r.randint(1, 4), r.choice([0, 1, 2]) if hub else 0, r.randint(1, 4)
    heads, dim, groups = r.choice([2, 4, 6]), r.randint(2, 5), r.choice([1, 2])
    H, V, q, lora, E, I, k = h.unit * r.randint(3, 9), r.randint(5, 20), r.randint(2, 6), r.randint(2, 5), cell.X * r.randint(1, 3), h.unit * r.randint(2, 6), r.randint(1, 3)
    k = min(k, E)
    ih, idim, said, far = r.randint(1, 3), r.randint(2, 4), r.choice([0, 1, 1, 2]), r.choice([8, 16, 128])
    rates, hashed = [r.choice([0, 4, far]) for _ in range(L)], r.randint(0, L)
    e, mine = h.new("embed.weight" if hub else "model.embed_tokens.weight", V, H), dict((n, j) for j, n in cell.layers(L))
    if cell.first or (cell.last and depths):
        held["embedding.word_embeddings.weight"] = e

    def streams(put, at, to):
        for leaf, *shape in (("fn", m, m * H), ("base", m), ("scale", 1)):
            put(f"{to}hc_head_{leaf}", h.new(f"{at}hc_head_{leaf}" if hub else f"{at}hc_head.hc_{leaf}", *shape, dtype="F32"))

    def layer(put, at, rate, table):
        put("input_layernorm.weight", h.new(f"{at}attn_norm.weight", H))
        core, file = "self_attention.core_attention.", f"{at}attn."
        put("self_attention.linear_o_group_proj", h.new(f"{file}wo_a.weight", groups * lora, heads * dim // groups))
        put(f"{core}attn_sink", h.new(f"{file}attn_sink", heads, dtype="F32"))

        def compressor(to, file, width, times):
            put(f"{to}ape", h.new(f"{file}ape", rate, times * width, dtype="F32"))
            for leaf in ("wkv", "wgate"):
                put(f"{to}linear_{leaf}.weight", h.new(f"{file}{leaf}.weight", times * width, H))
            put(f"{to}norm.weight", h.new(f"{file}norm.weight", width))
        if rate:
            compressor(f"{core}compressor.", f"{file}compressor.", dim, 2 if rate == 4 else 1)
        if rate == 4:
            put(f"{core}indexer.linear_wq_b.weight", h.new(f"{file}indexer.wq_b.weight", ih * idim, q))
            put(f"{core}indexer.linear_weights_proj.weight", h.new(f"{file}indexer.weights_proj.weight", ih, H))
            compressor(f"{core}indexer.compressor.", f"{file}indexer.compressor.", idim, 2)
        put("self_attention.linear_proj.weight", h.new(f"{file}wo_b.weight", H, groups * lora))
        for leaf, name, *shape in (("wq_a", "linear_q_down_proj", q, H), ("wq_b", "linear_q_up_proj", heads * dim, q), ("wkv", "linear_kv_proj", dim, H), ("q_norm", "q_layernorm", q),
                                   ("kv_norm" if hub else "norm", "kv_layernorm", dim)):
            put(f"self_attention.{name}.weight", h.new(f"{file}{leaf}.weight", *shape))
        put("pre_mlp_layernorm.weight", h.new(f"{at}ffn_norm.weight", H))
        file = f"{at}ffn."
        put("mlp.router.weight", h.new(f"{file}gate.weight", E, H))
        if table:
            put("mlp.router.tid2eid", h.new(f"{file}gate.tid2eid", V, k, dtype=r.choice(["I64", "I32"])))
        else:
            put("mlp.router.expert_bias", h.new(f"{file}gate.bias", E, dtype="F32"))
        experts(h, put, cell, E, I, H, f"{file}experts.", ("w1", "w3", "w2"))
        # One shared expert, whatever n_shared_experts says: transformers builds one.
        gate, up, down = (h.new(f"{file}shared_experts.{x}.weight", *s) for x, s in (("w1", (I, H)), ("w3", (I, H)), ("w2", (H, I))))
        put("mlp.shared_experts.linear_fc1.weight", np.concatenate([gate, up]))
        put("mlp.shared_experts.linear_fc2.weight", down)
        for x, name in (("attn", "self_attention"), ("ffn", "mlp")):
            scale = h.new(f"{at}hc_{x}_scale", 3, dtype="F32")
            for i, leaf in enumerate(("pre", "post", "res")):
                put(f"{name}_hyper_connection.alpha_{leaf}", scale[i:i + 1])
            put(f"{name}_hyper_connection.bias", h.new(f"{at}hc_{x}_base", m * m + 2 * m, dtype="F32"))
            put(f"{name}_hyper_connection.mapping_proj.weight", h.new(f"{at}hc_{x}_fn", m * m + 2 * m, m * H, dtype="F32"))

    def last(name, a):
        if cell.last:
            held[name] = a
    streams(last, front, "decoder.")
    for n in range(L):
        layer(layer_of(held, "", mine, n), f"{front}layers.{n}.", rates[n], n < hashed)
    last("decoder.final_layernorm.weight", h.new(f"{front}norm.weight", H))
    for d in range(depths):
        at, to = f"mtp.{d}.", f"mtp.layers.{d}."
        streams(last, at, to)
        for leaf in ("enorm", "hnorm"):
            last(f"{to}{leaf}.weight", h.new(f"{at}{leaf}.weight", H))
        for leaf in ("e_proj", "h_proj"):
            last(f"{to}{leaf}.weight", h.new(f"{at}{leaf}.weight", H, H))
        layer(lambda name, a, to=to: last(f"{to}mtp_model_layer.{name}", a), at, 0, False)
        last(f"{to}final_layernorm.weight", h.new(f"{at}norm.weight", H))
    last("output_layer.weight", h.new("head.weight", V, H))
    kinds = {0: "sliding_attention", 4: "compressed_sparse_attention", far: "heavily_compressed_attention"}
    told = {"compress_ratios": rates + [0] * depths, "num_hash_layers": hashed} if hub else {
        "layer_types": [kinds[x] for x in rates], "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": far},
        "mlp_layer_types": ["hash_moe" if n < hashed else "moe" for n in range(L)]}
    return told | {"model_type": "deepseek_v4", "architectures": ["DeepseekV4ForCausalLM"], "vocab_size": V, "hidden_size": H, "num_hidden_layers": L, "num_attention_heads": heads,
                   "num_key_value_heads": 1, "head_dim": dim, "q_lora_rank": q, "o_groups": groups, "o_lora_rank": lora, "index_n_heads": ih, "index_head_dim": idim, "hc_mult": m,
                   "n_routed_experts": E, "num_experts_per_tok": k, "moe_intermediate_size": I, "n_shared_experts": said, "num_nextn_predict_layers": depths, "hidden_act": "silu",
                   "tie_word_embeddings": False, "rms_norm_eps": 1e-6}
