"""EXAONE 4.5."""

from mckpt_tests.formulas import attention, dense, embedding, final_norm, layer_of, output, sizes


def exaone_layer(h, put, t, cell, at):
    attention(h, put, t, cell, at, t["head_dim"], norms=True)
    put("self_attention.linear_proj.post_layernorm.weight", h.new(f"{at}post_attention_layernorm.weight", t["hidden_size"]))
    dense(h, put, cell, at, t["hidden_size"], t["intermediate_size"])
    put("mlp.linear_fc2.post_layernorm.weight", h.new(f"{at}post_feedforward_layernorm.weight", t["hidden_size"]))


def exaone4_5(r, h, held, cell):
    t = sizes(r, cell.T)
    t["num_hidden_layers"] = L = cell.P * r.randint(1, 3)
    H = t["hidden_size"]
    groups = cell.T * r.randint(1, 2)
    heads = groups * r.randint(1, 3)
    v = dict(depth=r.randint(1, 3), hidden_size=heads * r.randint(1, 3), num_heads=heads, num_key_value_heads=groups, intermediate_size=cell.T * r.randint(2, 5), out_hidden_size=H,
             patch_size=r.randint(2, 4), spatial_merge_size=r.randint(1, 2), temporal_patch_size=r.randint(1, 3), in_channels=r.randint(1, 4))
    w, f, p, dim = v["hidden_size"], v["intermediate_size"], v["patch_size"], v["hidden_size"] // heads
    if w % cell.T:
        return None
    m = w * v["spatial_merge_size"] ** 2

    def see(name, a):
        if cell.first:
            held[f"vision_model.{name}"] = a
    see("patch_embed.proj.weight", h.new("model.visual.patch_embed.proj.weight", w, v["in_channels"], v["temporal_patch_size"], p, p))
    for n in range(v["depth"]):
        at, to = f"model.visual.blocks.{n}.", f"decoder.layers.{n}."
        qkv = h.linear(f"{at}attn.qkv", (heads + 2 * groups) * dim, w)
        for leaf, a in zip(("weight", "bias"), qkv):
            see(f"{to}self_attention.linear_qkv.{leaf}", cell.joined(a, heads, groups, dim))
        see(f"{to}self_attention.linear_qkv.layer_norm_weight", h.new(f"{at}norm1.weight", w))
        weight, bias = h.linear(f"{at}attn.proj", w, w)
        see(f"{to}self_attention.linear_proj.weight", cell.row(weight))
        see(f"{to}self_attention.linear_proj.bias", bias)
        gate, up = h.linear(f"{at}mlp.gate_proj", f, w), h.linear(f"{at}mlp.up_proj", f, w)
        for i, leaf in enumerate(("weight", "bias")):
            see(f"{to}mlp.linear_fc1.{leaf}", cell.glu(gate[i], up[i]))
        see(f"{to}mlp.linear_fc1.layer_norm_weight", h.new(f"{at}norm2.weight", w))
        weight, bias = h.linear(f"{at}mlp.down_proj", w, f)
        see(f"{to}mlp.linear_fc2.weight", cell.row(weight))
        see(f"{to}mlp.linear_fc2.bias", bias)
    see("merger.patch_norm.weight", h.new("model.visual.merger.ln_q.weight", w))
    for a, leaf in zip(h.linear("model.visual.merger.mlp.0", m, m), ("weight", "bias")):
        see(f"merger.linear_fc1.{leaf}", cell.col(a))
    weight, bias = h.linear("model.visual.merger.mlp.2", H, m)
    see("merger.linear_fc2.weight", cell.row(weight))
    see("merger.linear_fc2.bias", bias)
    tied, mtp = r.random() < 0.3, r.random() < 0.5
    e = embedding(h, held, t, cell, "language_model.", "model.language_model.")
    mine = dict((n, j) for j, n in cell.layers(L))
    for n in range(L):
        put = layer_of(held, "language_model.", mine, n)
        exaone_layer(h, put, t, cell, f"model.language_model.layers.{n}.")
    final_norm(h, held, t, cell, "language_model.", "model.language_model.norm.weight")
    if mtp:
        def predict(name, a):
            if cell.last:
                held[f"language_model.mtp.layers.0.{name}"] = a
        if cell.last and not cell.first:
            held["language_model.embedding.word_embeddings.weight"] = cell.col(e)
        predict("enorm.weight", h.new("mtp.pre_fc_norm_embedding.weight", H))
        predict("hnorm.weight", h.new("mtp.pre_fc_norm_hidden.weight", H))
        predict("eh_proj.weight", cell.col(h.new("mtp.fc.weight", H, 2 * H)))
        exaone_layer(h, lambda name, a: predict(f"mtp_model_layer.{name}", a), t, cell, "mtp.layers.0.")
        predict("final_layernorm.weight", h.new("mtp.norm.weight", H))
    output(h, held, t, cell, "language_model.", "lm_head.weight", e, tied)
    return {"model_type": "exaone4_5", "architectures": ["Exaone4_5_ForConditionalGeneration"], "dtype": "bfloat16", "text_config": t | {"num_nextn_predict_layers": int(mtp)},
            "vision_config": v, "tie_word_embeddings": tied}
