"""Llama-Nemotron; Nemotron-VL and Nemotron-Omni."""

from mckpt_tests.formulas import attention, both, dense, embedding, final_norm, layer_of, output, sizes


def llama_nemotron(r, h, held, cell):
    t = sizes(r, cell.T)
    t["num_hidden_layers"] = L = cell.P * r.randint(1, 4)
    heads, H = t["num_attention_heads"], t["hidden_size"]
    blocks = []
    for _ in range(L):
        each = r.choice([g for g in range(1, heads + 1) if heads % g == 0 and heads // g % cell.T == 0])
        lacks = r.choice(["", "", "attention", "ffn", "both"])
        blocks.append({"attention": {"n_heads_in_group": None if lacks in ("attention", "both") else each, "no_op": lacks in ("attention", "both")},
                       "ffn": {"ffn_mult": None if lacks in ("ffn", "both") else r.choice([1.5, 2.625, 5.25, 80.0, 129.3]), "no_op": lacks in ("ffn", "both")}})
    if cell.T == 3:  # widths are multiples of 256
        for b in blocks:
            b["ffn"] = {"ffn_mult": None, "no_op": True}
    config = t | {"model_type": "nemotron-nas", "architectures": ["DeciLMForCausalLM"], "block_configs": blocks, "num_key_value_heads": None, "intermediate_size": None,
                  "tie_word_embeddings": r.random() < 0.3}
    e = embedding(h, held, t, cell, "", "model.")
    mine = dict((n, j) for j, n in cell.layers(L))
    for n, b in enumerate(blocks):
        put = layer_of(held, "", mine, n)
        at = f"model.layers.{n}."
        if not b["attention"]["no_op"]:
            put("self_attention.linear_qkv.layer_norm_weight", h.new(f"{at}input_layernorm.weight", H))
            attention(h, put, t, cell, at, t["head_dim"], groups=heads // b["attention"]["n_heads_in_group"])
        if not b["ffn"]["no_op"]:
            width = -(-int(2 * b["ffn"]["ffn_mult"] * H / 3) // 256) * 256
            put("mlp.linear_fc1.layer_norm_weight", h.new(f"{at}post_attention_layernorm.weight", H))
            dense(h, put, cell, at, H, width)
    final_norm(h, held, t, cell, "", "model.norm.weight")
    output(h, held, t, cell, "", "lm_head.weight", e, config["tie_word_embeddings"])
    return config


def hybrid(r, h, held, cell, prefix, file, experts):
    t = sizes(r, cell.T)
    kinds = "M*-" if not experts else "M*-E"
    pattern = "".join(r.choice(kinds) for _ in range(cell.P * r.randint(1, 4)))
    G = cell.T * r.randint(1, 2)
    M = dict(mamba_num_heads=G * r.randint(1, 2), mamba_head_dim=r.randint(2, 4), n_groups=G, ssm_state_size=r.randint(2, 4), conv_kernel=r.randint(2, 4))
    E = dict(n_routed_experts=cell.X * r.randint(1, 3), moe_intermediate_size=r.randint(2, 5), moe_shared_expert_intermediate_size=cell.T * r.randint(1, 4), n_shared_experts=1)
    t["num_hidden_layers"], H = len(pattern), t["hidden_size"]
    inner, state, nh = M["mamba_num_heads"] * M["mamba_head_dim"], G * M["ssm_state_size"], M["mamba_num_heads"]
    embedding(h, held, t, cell, prefix, file, "embeddings.weight")
    mine = dict((n, j) for j, n in cell.layers(len(pattern)))
    for n, kind in enumerate(pattern):
        put = layer_of(held, prefix, mine, n)
        at = f"{file}layers.{n}."
        norm = h.new(f"{at}norm.weight", H)
        at += "mixer."
        if kind == "M":
            put("mixer.in_proj.layer_norm_weight", norm)
            put("mixer.in_proj.weight", cell.sections(h.new(f"{at}in_proj.weight", 2 * inner + 2 * state + nh, H), [inner, inner, state, state, nh]))
            put("mixer.conv1d_weight", cell.sections(h.new(f"{at}conv1d.weight", inner + 2 * state, 1, M["conv_kernel"]), [inner, state, state]))
            put("mixer.conv1d_bias", cell.sections(h.new(f"{at}conv1d.bias", inner + 2 * state), [inner, state, state]))
            for leaf in ("dt_bias", "A_log", "D"):
                put(f"mixer.{leaf}", cell.col(h.new(f"{at}{leaf}", nh)))
            put("mixer.norm.weight", cell.col(h.new(f"{at}norm.weight", inner)))
            put("mixer.out_proj.weight", cell.row(h.new(f"{at}out_proj.weight", H, inner)))
        elif kind == "*":
            groups, dim = t["num_key_value_heads"], t["head_dim"]
            put("self_attention.linear_qkv.layer_norm_weight", norm)
            q, k, v = (h.new(f"{at}{x}_proj.weight", m * dim, H) for x, m in (("q", t["num_attention_heads"]), ("k", groups), ("v", groups)))
            put("self_attention.linear_qkv.weight", cell.qkv(q, k, v, groups))
            put("self_attention.linear_proj.weight", cell.row(h.new(f"{at}o_proj.weight", H, t["num_attention_heads"] * dim)))
        elif kind == "-":
            put("mlp.linear_fc1.layer_norm_weight", norm)
            put("mlp.linear_fc1.weight", cell.col(h.new(f"{at}up_proj.weight", t["intermediate_size"], H)))
            put("mlp.linear_fc2.weight", cell.row(h.new(f"{at}down_proj.weight", H, t["intermediate_size"])))
        else:
            n_experts, width, shared = E["n_routed_experts"], E["moe_intermediate_size"], E["moe_shared_expert_intermediate_size"]
            put("pre_mlp_layernorm.weight", norm)
            put("mlp.router.weight", h.new(f"{at}gate.weight", n_experts, H))
            put("mlp.router.expert_bias", h.new(f"{at}gate.e_score_correction_bias", n_experts, dtype="F32"))
            up = [h.new(f"{at}experts.{e}.up_proj.weight", width, H) for e in range(n_experts)]
            down = [h.new(f"{at}experts.{e}.down_proj.weight", H, width) for e in range(n_experts)]
            for j, e in cell.experts(n_experts):
                put(f"mlp.experts.linear_fc1.weight{j}", up[e])
                put(f"mlp.experts.linear_fc2.weight{j}", down[e])
            put("mlp.shared_experts.linear_fc1.weight", cell.col(h.new(f"{at}shared_experts.up_proj.weight", shared, H)))
            put("mlp.shared_experts.linear_fc2.weight", cell.row(h.new(f"{at}shared_experts.down_proj.weight", H, shared)))
    final_norm(h, held, t, cell, prefix, f"{file}norm_f.weight", "decoder.final_norm.weight")
    output(h, held, t, cell, prefix, "language_model.lm_head.weight", None, False)
    return t | M | (E if experts else {}) | {"hybrid_override_pattern": pattern}


def nemotron(r, h, held, cell, omni):
    heads = cell.T * r.randint(1, 2)
    v = dict(num_hidden_layers=r.randint(1, 3), hidden_size=heads * r.randint(1, 3), num_attention_heads=heads, intermediate_size=cell.T * r.randint(2, 5), max_resolution=16 * r.randint(2, 4),
             separate_video_embedder=r.random() < 0.5, video_temporal_patch_size=r.randint(1, 3))
    llm = hybrid(r, h, held, cell, "llava_model.language_model.", "language_model.backbone.", omni)
    w, f, H, tokens = v["hidden_size"], v["intermediate_size"], llm["hidden_size"], 10 if omni else 16
    inside = cell.T * r.randint(1, 4)
    if w % cell.T:
        return None

    def see(name, a):
        if cell.first:
            held[f"llava_model.{name}"] = a
    front = "vision_model.radio_model.model.patch_generator."
    see("vision_model.class_token", h.new(f"{front}cls_token.token", tokens, w))
    see("vision_model.position_embeddings", h.new(f"{front}pos_embed", 1, (v["max_resolution"] // 16) ** 2, w))
    see("vision_model.embedder.weight", cell.col(h.new(f"{front}embedder.weight", w, 3 * 16 * 16)))
    if v["separate_video_embedder"]:
        see("vision_model.video_embedder.weight", cell.col(h.new(f"{front}video_embedder.weight", w, 3 * v["video_temporal_patch_size"] * 16 * 16)))
    for n in range(v["num_hidden_layers"]):
        at, to = f"vision_model.radio_model.model.blocks.{n}.", f"vision_model.decoder.layers.{n}."
        for leaf, a in zip(("weight", "bias"), h.linear(f"{at}attn.qkv", 3 * w, w)):
            see(f"{to}self_attention.linear_qkv.{leaf}", cell.joined(a, heads, heads, w // heads))
        for leaf in ("weight", "bias"):
            see(f"{to}self_attention.linear_qkv.layer_norm_{leaf}", h.new(f"{at}norm1.{leaf}", w))
            see(f"{to}mlp.linear_fc1.layer_norm_{leaf}", h.new(f"{at}norm2.{leaf}", w))
        for name, file, rows, columns in (("self_attention.linear_proj", "attn.proj", w, w), ("mlp.linear_fc2", "mlp.fc2", w, f)):
            weight, bias = h.linear(at + file, rows, columns)
            see(f"{to}{name}.weight", cell.row(weight))
            see(f"{to}{name}.bias", bias)
        for leaf, a in zip(("weight", "bias"), h.linear(f"{at}mlp.fc1", f, w)):
            see(f"{to}mlp.linear_fc1.{leaf}", cell.col(a))
    see("vision_projection.encoder.linear_fc1.layer_norm_weight", h.new("mlp1.0.weight", 4 * w))
    see("vision_projection.encoder.linear_fc1.weight", cell.col(h.new("mlp1.1.weight", inside, 4 * w)))
    see("vision_projection.encoder.linear_fc2.weight", cell.row(h.new("mlp1.3.weight", H, inside)))
    config = {"model_type": "NemotronH_Nano_VL_V2", "architectures": ["NemotronH_Nano_VL_V2"], "torch_dtype": "bfloat16", "llm_config": llm, "vision_config": v,
              "projector_hidden_size": inside, "tie_word_embeddings": False}
    if omni:
        name = "NemotronH_Nano_Omni_Reasoning_V3"
        config |= {"model_type": name, "architectures": [name]}
        if r.random() < 0.8:
            config["sound_config"] = sound(r, h, see, cell, H)
    return config


def sound(r, h, see, cell, H):
    heads = r.randint(1, 3)
    s = dict(hidden_size=heads * r.randint(2, 4), num_hidden_layers=r.randint(1, 3), num_attention_heads=heads, intermediate_size=r.randint(3, 9), num_mel_bins=r.randint(5, 30),
             subsampling_factor=8, subsampling_conv_channels=r.randint(2, 5), conv_kernel_size=r.randint(2, 5), projection_hidden_size=cell.T * r.randint(1, 5), convolution_bias=False)
    w, f, c, bins = s["hidden_size"], s["intermediate_size"], s["subsampling_conv_channels"], s["num_mel_bins"]
    for _ in range(3):
        bins = (bins + 1) // 2
    shapes = [("subsampling.layers.0", c, 1, 3, 3), ("subsampling.layers.2", c, 1, 3, 3), ("subsampling.layers.3", c, c, 1, 1), ("subsampling.layers.5", c, 1, 3, 3),
              ("subsampling.layers.6", c, c, 1, 1), ("subsampling.linear", w, c * bins)]
    shapes = [x for name, *shape in shapes for x in both(name, *shape)]
    for n in range(s["num_hidden_layers"]):
        at = f"layers.{n}."
        for part in ("feed_forward1", "feed_forward2"):
            shapes += [(f"{at}{part}.linear1.weight", f, w), (f"{at}{part}.linear2.weight", w, f)]
        shapes += [(f"{at}self_attn.{x}_proj.weight", w, w) for x in ("q", "k", "v", "o", "relative_k")]
        shapes += [(f"{at}self_attn.bias_{x}", heads, w // heads) for x in "uv"]
        shapes += [(f"{at}conv.pointwise_conv1.weight", 2 * w, w, 1), (f"{at}conv.pointwise_conv2.weight", w, w, 1), (f"{at}conv.depthwise_conv.weight", w, 1, s["conv_kernel_size"])]
        shapes += both(f"{at}conv.norm", w) + [(f"{at}conv.norm.running_mean", w), (f"{at}conv.norm.running_var", w)]
        for norm in ("feed_forward1", "self_att", "conv", "feed_forward2", "out"):
            shapes += both(f"{at}norm_{norm}", w)
        see(f"sound_model.encoder.{at}conv.norm.num_batches_tracked", h.new(f"sound_encoder.encoder.{at}conv.norm.num_batches_tracked", dtype="I64"))
    for name, *shape in shapes:
        see(f"sound_model.encoder.{name}", h.new(f"sound_encoder.encoder.{name}", *shape))
    see("sound_projection.encoder.linear_fc1.layer_norm_weight", h.new("sound_projection.norm.weight", w))
    see("sound_projection.encoder.linear_fc1.weight", cell.col(h.new("sound_projection.linear1.weight", s["projection_hidden_size"], w)))
    see("sound_projection.encoder.linear_fc2.weight", cell.row(h.new("sound_projection.linear2.weight", H, s["projection_hidden_size"])))
    return s


def nemotron_vl(r, h, held, cell):
    return nemotron(r, h, held, cell, False)


def nemotron_omni(r, h, held, cell):
    return nemotron(r, h, held, cell, True)
