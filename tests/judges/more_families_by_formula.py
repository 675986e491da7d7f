"""As families_by_formula.py, for the families of mcore-bridge (ms-swift), for DeepSeek-V4 and for Sarvam with latent attention.

    more_families_by_formula.py [MODELS]      so many models of each family
"""

import sys

from mckpt_tests.checks import finish, in_parallel
from mckpt_tests.formulas import attention, both, check, dense, embedding, final_norm, llama_layers, np, output, sizes, whole

MODELS = int(sys.argv[1]) if len(sys.argv) > 1 else 6


def tower_sizes(r):
    heads = r.randint(1, 3)
    return dict(hidden_size=heads * r.randint(2, 4), num_hidden_layers=r.randint(1, 3), num_attention_heads=heads, intermediate_size=r.randint(3, 9))


def layer_of(held, prefix, mine, n):
    def put(name, a):
        if n in mine:
            held[f"{prefix}decoder.layers.{mine[n]}.{name}"] = a
    return put


def internvl(r, h, held, cell):
    kind = r.choice(["qwen2", "qwen3", "qwen3_moe"])
    t = sizes(r, cell.T) | {"model_type": kind}
    t["num_hidden_layers"] = L = cell.P * r.randint(1, 3)
    H, tied, to, file = t["hidden_size"], r.random() < 0.3, "language_model.", "language_model.model."
    if kind == "qwen2":
        t["hidden_size"] = H = t["num_attention_heads"] * t.pop("head_dim")
    dim = t.get("head_dim", H // t["num_attention_heads"])
    e = embedding(h, held, t, cell, to, file)
    how = {"bias": True} if kind == "qwen2" else {"norms": True}
    if kind == "qwen3_moe":
        t |= {"num_experts": (E := cell.X * r.randint(1, 3)), "moe_intermediate_size": (width := r.randint(2, 5)), "num_experts_per_tok": 1}
        mine = dict((n, j) for j, n in cell.layers(L))
        for n in range(L):
            put, at = layer_of(held, to, mine, n), f"{file}layers.{n}."
            put("self_attention.linear_qkv.layer_norm_weight", h.new(f"{at}input_layernorm.weight", H))
            attention(h, put, t, cell, at, dim, **how)
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


def experts(h, put, cell, E, width, H, at, names):
    gate, up, down = names
    files = [[h.new(f"{at}{x}.{leaf}.weight", *shape) for leaf, shape in ((gate, (width, H)), (up, (width, H)), (down, (H, width)))] for x in range(E)]
    for j, x in cell.experts(E):
        put(f"mlp.experts.linear_fc1.weight{j}", np.concatenate(files[x][:2]))
        put(f"mlp.experts.linear_fc2.weight{j}", files[x][2])


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
    mine = dict((n, j) for j, n in cell.layers(L))
    for n in range(L):
        put, at = layer_of(held, to, mine, n), f"{file}layers.{n}."
        put("self_attention.linear_qkv.layer_norm_weight", h.new(f"{at}input_layernorm.weight", H))
        attention(h, put, t, cell, at, t["head_dim"])
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
    return {"model_type": "llama4", "architectures": ["Llama4ForConditionalGeneration"], "dtype": "bfloat16", "text_config": t, "vision_config": v, "tie_word_embeddings": tied}


def muse_glimmer(r, h, held, cell):
    t = sizes(r, cell.T)
    t["num_hidden_layers"] = L = cell.P * r.randint(1, 3)
    H, to, file = t["hidden_size"], "language_model.", "model.language_model."
    e = embedding(h, held, t, cell, to, file)
    mine = dict((n, j) for j, n in cell.layers(L))
    for n in range(L):
        put, at = layer_of(held, to, mine, n), f"{file}layers.{n}."
        put("self_attention.linear_qkv.layer_norm_weight", h.new(f"{at}input_layernorm.weight", H))
        attention(h, put, t, cell, at, t["head_dim"])
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
    return {"model_type": "muse_glimmer", "architectures": ["MuseGlimmerForConditionalGeneration"], "dtype": "bfloat16", "text_config": t | {"tie_word_embeddings": tied},
            "vision_config": v, "out_hidden_size": out, "projector_hidden_size": inside}


def deepseek_v4(r, h, held, cell):
    """One tensor-parallel rank; `m` residual streams."""
    hub = r.random() < 0.6
    front = "" if hub else "model."
    L, depths, m = cell.P * r.randint(1, 4), r.choice([0, 1, 2]) if hub else 0, r.randint(1, 4)
    heads, dim, groups = r.choice([2, 4, 6]), r.randint(2, 5), r.choice([1, 2])
    H, V, q, lora, E, I, k = r.randint(3, 9), r.randint(5, 20), r.randint(2, 6), r.randint(2, 5), cell.X * r.randint(1, 3), r.randint(2, 6), r.randint(1, 3)
    ih, idim, shared, far = r.randint(1, 3), r.randint(2, 4), r.choice([0, 1, 1, 2]), r.choice([8, 16, 128])
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
        if shared:
            gate, up, down = (h.new(f"{file}shared_experts.{x}.weight", *s) for x, s in (("w1", (shared * I, H)), ("w3", (shared * I, H)), ("w2", (H, shared * I))))
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
                   "n_routed_experts": E, "num_experts_per_tok": k, "moe_intermediate_size": I, "n_shared_experts": shared, "num_nextn_predict_layers": depths, "hidden_act": "silu",
                   "tie_word_embeddings": False, "rms_norm_eps": 1e-6}


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


FAMILIES = [internvl, llama4, muse_glimmer, deepseek_v4, sarvam_mla]


def one(family, seed):
    check(family, seed, family is not muse_glimmer, family is deepseek_v4)


in_parallel(one, [(family, seed) for family in FAMILIES for seed in range(MODELS)])
finish(20 * MODELS)
