"""Step-3.5 and Step-3.7: attention of two geometries with a row of gates for each head, which Megatron has for each row of the head."""

from mckpt_tests.formulas import always, dense, embedding, final_norm, layer_of, np, output, put_experts, whole


def step(r, h, held, cell, with_vision):
    full, slide = ({"groups": (g := r.choice([1, 2, 4, 8])), "heads": g * cell.T * r.choice([1, 2, 3]), "dim": r.choice([2, 4, 6])} for _ in range(2))
    L, depths = cell.P * r.choice([1, 2, 3]), 0 if with_vision else r.choice([0, 0, 1, 2])
    kinds = [r.choice(["full_attention", "sliding_attention"]) for _ in range(L + depths)]
    if cell.P > 1:  # Megatron cannot build sliding layers of MTP there
        kinds[L:] = ["full_attention"] * depths
    sparse = [n for n in range(L) if r.random() < 0.6]
    c = {
        "model_type": "step3p5", "architectures": ["Step3p5ForCausalLM"], "torch_dtype": "bfloat16", "tie_word_embeddings": False,
        "hidden_size": 2 * r.choice([3, 5, 7]), "vocab_size": 16 * r.choice([2, 3, 5]), "num_hidden_layers": L, "num_nextn_predict_layers": depths,
        "num_attention_heads": full["heads"], "num_attention_groups": full["groups"], "head_dim": full["dim"],
        "attention_other_setting": {"attention_type": "sliding_attention", "num_attention_heads": slide["heads"], "num_attention_groups": slide["groups"], "head_dim": slide["dim"]},
        "layer_types": kinds, "moe_layers_enum": r.choice([",".join(map(str, sparse)), sparse]),
        "intermediate_size": cell.T * r.choice([4, 6, 10]), "moe_intermediate_size": cell.ET * r.choice([2, 5]), "share_expert_dim": cell.T * r.choice([2, 3]),
        "moe_num_experts": cell.X * r.choice([1, 2, 3]), "moe_top_k": 1, "use_qk_norm": r.random() < 0.7, "use_moe_router_bias": r.random() < 0.7,
        "use_head_wise_attn_gate": True, "rope_theta": [10000.0] * L,
    }
    geometry = [full if kind == "full_attention" else slide for kind in kinds]
    if c["vocab_size"] % cell.T or (depths and c["hidden_size"] % cell.T) or any(g["groups"] % cell.T and cell.T % g["groups"] for g in (full, slide)):
        return None
    if any((2 * g["heads"] + 2 * g["groups"]) * g["dim"] % cell.T for g in (full, slide)):
        return None
    H, E, I, S = c["hidden_size"], c["moe_num_experts"], c["moe_intermediate_size"], c["share_expert_dim"]
    to = "language_model." if with_vision else ""
    config = c
    if with_vision:
        v = {"width": r.choice([4, 6]), "layers": r.choice([1, 2]), "heads": 2, "image_size": 8, "patch_size": r.choice([2, 4]), "mlp_ratio": r.choice([2.5, 1.7, 8960 / 1536])}
        whole(h, held, cell, "vision_model.", "vision_model.", tower(v))
        config = {"model_type": "step3p7", "architectures": ["Step3p7ForConditionalGeneration"], "text_config": c, "vision_config": v, "tie_word_embeddings": False}

    def layer(put, f, n):
        heads, groups, D = (geometry[n][part] for part in ("heads", "groups", "dim"))
        put("self_attention.linear_proj.weight", cell.row(h.new(f"{f}self_attn.o_proj.weight", H, heads * D)))
        put("self_attention.linear_qkv.layer_norm_weight", h.new(f"{f}input_layernorm.weight", H))
        q, k, v, gates = (h.new(f"{f}self_attn.{x}_proj.weight", rows, H) for x, rows in (("q", heads * D), ("k", groups * D), ("v", groups * D), ("g", heads)))
        by_group = [a.reshape(groups, -1, H) for a in (q, np.repeat(gates, D, axis=0), k, v)]
        put("self_attention.linear_qkv.weight", cell.col(np.concatenate(by_group, axis=1).reshape(-1, H)))
        for x in "qk" if c["use_qk_norm"] else "":
            put(f"self_attention.{x}_layernorm.weight", h.new(f"{f}self_attn.{x}_norm.weight", D))
        norm = h.new(f"{f}post_attention_layernorm.weight", H)
        if n not in sparse:
            put("mlp.linear_fc1.layer_norm_weight", norm)
            return dense(h, put, cell, f, H, c["intermediate_size"])
        put("pre_mlp_layernorm.weight", norm)
        put("mlp.router.weight", h.new(f"{f}moe.gate.weight", E, H))
        if c["use_moe_router_bias"]:
            put("mlp.router.expert_bias", h.new(f"{f}moe.router_bias", E, dtype="F32"), buffer=True)
        put_experts(put, cell, list(zip(*(h.new(f"{f}moe.{x}_proj.weight", E, *shape) for x, shape in (("gate", (I, H)), ("up", (I, H)), ("down", (H, I)))))))
        gate, up, down = (h.new(f"{f}share_expert.{x}_proj.weight", *shape) for x, shape in (("gate", (S, H)), ("up", (S, H)), ("down", (H, S))))
        put("mlp.shared_experts.linear_fc1.weight", cell.glu(gate, up))
        put("mlp.shared_experts.linear_fc2.weight", cell.row(down))

    embedded = embedding(h, held, c, cell, to, "model.")
    if cell.last and not cell.first and depths:
        held[f"{to}embedding.word_embeddings.weight"] = cell.col(embedded)
    mine = dict((n, j) for j, n in cell.layers(L))
    for n in range(L):
        layer(layer_of(held, f"{to}", mine, n), f"model.layers.{n}.", n)
    final_norm(h, held, c, cell, to, "model.norm.weight")
    for d in range(depths):
        f, put = f"model.layers.{L + d}.", always(held, f"{to}mtp.layers.{d}.", cell.last)
        for leaf in ("enorm", "hnorm"):
            put(f"{leaf}.weight", h.new(f"{f}{leaf}.weight", H))
        put("eh_proj.weight", cell.col(h.new(f"{f}eh_proj.weight", H, 2 * H)))
        layer(always(held, f"{to}mtp.layers.{d}.mtp_model_layer.", cell.last), f, L + d)
        put("final_layernorm.weight", h.new(f"{f}transformer.shared_head.norm.weight", H))
    output(h, held, c, cell, to, "lm_head.weight", embedded, False)
    for d in range(depths):
        h.made[f"model.layers.{L + d}.transformer.shared_head.output.weight"] = h.made["lm_head.weight"]
    if with_vision:
        align = h.new("vit_large_projector.weight", H, 4 * v["width"])
        if cell.first:
            held["image_insert_embedding.align_projector.weight"] = align
    return config


def tower(v):
    W, F, P = v["width"], int(v["width"] * v["mlp_ratio"]), (v["image_size"] // v["patch_size"]) ** 2
    yield "positional_embedding", P, W
    yield "conv1.weight", W, 3, v["patch_size"], v["patch_size"]
    yield from (("ln_pre.weight", W), ("ln_pre.bias", W))
    for n in range(v["layers"]):
        for leaf, *shape in (("attn.in_proj_weight", 3 * W, W), ("attn.in_proj_bias", 3 * W), ("attn.out_proj.weight", W, W), ("attn.out_proj.bias", W),
                             ("ln_1.weight", W), ("ln_1.bias", W), ("ln_2.weight", W), ("ln_2.bias", W), ("mlp.c_fc.weight", F, W), ("mlp.c_fc.bias", F),
                             ("mlp.c_proj.weight", W, F), ("mlp.c_proj.bias", W), ("ls_1.gamma", W), ("ls_2.gamma", W)):
            yield f"transformer.resblocks.{n}.{leaf}", *shape
    yield from (("vit_downsampler1.weight", 2 * W, W, 3, 3), ("vit_downsampler1.bias", 2 * W), ("vit_downsampler2.weight", 4 * W, 2 * W, 3, 3), ("vit_downsampler2.bias", 4 * W))


def step3p5(r, h, held, cell):
    return step(r, h, held, cell, False)


def step3p7(r, h, held, cell):
    return step(r, h, held, cell, True)
