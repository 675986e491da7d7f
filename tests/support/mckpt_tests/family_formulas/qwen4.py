"""Qwen4-Exp, by the code of mcore-bridge."""

import numpy as np
from mckpt_tests.formulas import both, embedding, layer_of, output, put_experts, sizes, tower_sizes, whole


def primes_from(first, count):
    out = []
    while len(out) < count:
        if first > 1 and all(first % d for d in range(2, int(first**0.5) + 1)):
            out.append(first)
        first += 1
    return out


def streams_mixer(h, put, at, to, streams, hidden, rank, inject):
    wide = streams * hidden
    shapes = [("hc_norm", wide), ("input_mix_weight_down", rank, wide), ("input_mix_weight_up", wide, rank)] + [("block_inject_weight", streams, wide)] * inject
    for name, *shape in shapes:
        put(f"{to}{name}.weight", h.new(f"{at}{name}.weight", *shape))


def by_head(heads, *flat):
    """The rows of each array that belong to a head, one head after the other."""
    return np.concatenate([part for head in zip(*(np.split(a, heads) for a in flat)) for part in head])


def delta_net(h, put, cell, at, g, H):
    at += "linear_attn."
    keys, values, dk, dv, taps = g
    qk, v = keys * dk, values * dv
    for name in ("dt_bias", "A_log"):
        put(f"self_attention.{name}", cell.col(h.new(f"{at}{name}", values)))
    conv = h.new(f"{at}conv1d.weight", 2 * qk + v, 1, taps)
    put("self_attention.conv1d.weight", cell.col(by_head(keys, conv[:qk], conv[qk:2 * qk], conv[2 * qk:])))
    put("self_attention.out_norm.weight", h.new(f"{at}norm.weight", dv))
    put("self_attention.out_proj.weight", cell.row(h.new(f"{at}out_proj.weight", H, v)))
    qkv, z, b, a = (h.new(f"{at}in_proj_{x}.weight", n, H) for x, n in (("qkv", 2 * qk + v), ("z", v), ("b", values), ("a", values)))
    put("self_attention.in_proj_qkvz.weight", cell.col(by_head(keys, qkv[:qk], qkv[qk:2 * qk], qkv[2 * qk:], z)))
    put("self_attention.in_proj_ba.weight", cell.col(by_head(keys, b, a)))


def gated_attention(h, put, t, cell, at):
    """A head's queries and gates are neighbours in q_proj, and stay so: a group has twice as many heads."""
    at += "self_attn."
    H, D, heads, groups = t["hidden_size"], t["head_dim"], t["num_attention_heads"], t["num_key_value_heads"]
    put("self_attention.linear_proj.weight", cell.row(h.new(f"{at}o_proj.weight", H, heads * D)))
    q, k, v = (h.new(f"{at}{x}_proj.weight", n * D, H) for x, n in (("q", 2 * heads), ("k", groups), ("v", groups)))
    put("self_attention.linear_qkv.weight", cell.qkv(q, k, v, groups))
    for x in "qk":
        put(f"self_attention.{x}_layernorm.weight", h.new(f"{at}{x}_norm.weight", D))
    inner, to = t["indexer_head_dim"], "self_attention.indexer."
    put(f"{to}index_qk_proj.weight", h.new(f"{at}indexer.index_qk_proj.weight", (t["indexer_n_heads"] + 1) * inner, H))
    for x in "qk":
        put(f"{to}{x}_layernorm.weight", h.new(f"{at}indexer.{x}_layernorm.weight", inner))


def sparse_mlp(h, put, t, cell, at, apart):
    H, E, width, shared = t["hidden_size"], t["num_experts"], t["moe_intermediate_size"], t["shared_expert_intermediate_size"]
    at += "mlp."
    put("mlp.router.weight", h.new(f"{at}gate.weight", E, H))
    if apart:
        files = [[h.new(f"{at}experts.{x}.{leaf}_proj.weight", *shape) for leaf, shape in (("gate", (width, H)), ("up", (width, H)), ("down", (H, width)))] for x in range(E)]
    else:
        up, down = h.new(f"{at}experts.gate_up_proj", E, 2 * width, H), h.new(f"{at}experts.down_proj", E, H, width)
        files = [[up[x, :width], up[x, width:], down[x]] for x in range(E)]
    put_experts(put, cell, files)
    put("mlp.shared_experts.gate_weight", h.new(f"{at}shared_expert_gate.weight", 1, H))
    gate, up = (h.new(f"{at}shared_expert.{x}_proj.weight", shared, H) for x in ("gate", "up"))
    put("mlp.shared_experts.linear_fc1.weight", cell.glu(gate, up))
    put("mlp.shared_experts.linear_fc2.weight", cell.row(h.new(f"{at}shared_expert.down_proj.weight", H, shared)))


def ngram_tables(h, put, t, cell, at, rows):
    wide, embed, heads = t["hc_count"] * t["hidden_size"], t["ple_embed_dim"], (t["ngram_size"] - 1) * t["heads_per_ngram"]
    at += "ple."
    for name, n in (("layer_multipliers", t["ngram_size"]), ("ngram_heads_vocab_sizes", heads), ("ngram_heads_offsets", heads)):
        put(f"ple.ple_embedding.{name}", h.new(f"{at}ple_embedding.{name}", n, dtype="I64"), buffer=True)
    each = -(-rows // t["split_ngram_parts"])
    parts = [h.new(f"{at}ple_embedding.ngram_embedding.shard_{p}.weight", min(each, rows - p * each), embed // heads) for p in range(t["split_ngram_parts"])]
    put("ple.ple_embedding.ngram_embedding.weight", cell.col(np.concatenate(parts)))
    put("ple.key_proj.weight", h.new(f"{at}key_proj.weight", wide, embed))
    put("ple.value_proj.weight", h.new(f"{at}value_proj.weight", t["hidden_size"], embed))
    for x in ("key", "query", "conv"):
        put(f"ple.norm_{x}.weight", h.new(f"{at}norm_{x}.weight", wide))
    put("ple.conv1d.weight", h.new(f"{at}conv1d.weight", wide, 1, t["ple_conv_kernel_size"]))


def qwen4_exp(r, h, held, cell):
    t = sizes(r, cell.T)
    T, X, ET = cell.T, cell.X, cell.ET
    t["num_hidden_layers"] = L = cell.P * r.randint(1, 4)
    del t["intermediate_size"]
    kinds = [r.choice(["linear_attention", "linear_attention", "full_attention"]) for _ in range(L)]
    word = r.choice(["full_attention", "indexed_attention", "qwen_sparse_attention"])
    linear = [n for n in range(L) if kinds[n] == "linear_attention"]
    tables = sorted(r.sample(linear, min(len(linear), r.randint(0, 3))))
    keys, per_ngram, size, parts = 2 * T * r.randint(1, 2), r.randint(1, 3), r.randint(2, 4), r.randint(1, 5)
    heads = per_ngram * (size - 1)
    g = keys, keys * r.randint(1, 3), r.randint(1, 4), r.randint(1, 4), r.randint(2, 4)
    t |= dict(layer_types=[word if kind == "full_attention" else kind for kind in kinds], ple_layer_ids=[n + 1 for n in tables], hc_count=r.randint(2, 4), hc_lowrank=r.randint(1, 5),
              linear_num_key_heads=g[0], linear_num_value_heads=g[1], linear_key_head_dim=g[2], linear_value_head_dim=g[3], linear_conv_kernel_dim=g[4],
              num_experts=X * r.randint(1, 3), num_experts_per_tok=1, moe_intermediate_size=ET * r.randint(1, 4), shared_expert_intermediate_size=T * r.randint(1, 4),
              indexer_n_heads=r.randint(1, 4), indexer_kv_heads=1, indexer_head_dim=r.randint(2, 6), ngram_size=size, heads_per_ngram=per_ngram, ple_embed_dim=heads * r.randint(1, 4),
              ple_conv_kernel_size=r.randint(1, 4), split_ngram_parts=parts, ngram_vocab_size_base=r.randint(2, 90), make_ngram_vocab_size_divisible_by=(multiple := T * r.randint(1, 6)))
    primes = primes_from(t["ngram_vocab_size_base"], heads * len(tables))
    rows = [-(-sum(primes[i * heads:(i + 1) * heads]) // multiple) * multiple for i in range(len(tables))]
    if any(n <= -(-n // parts) * (parts - 1) for n in rows):
        return None  # a part without rows
    H, streams, rank, apart = t["hidden_size"], t["hc_count"], t["hc_lowrank"], r.random() < 0.5
    to, file = "language_model.", "model.language_model."
    e, predicts = embedding(h, held, t, cell, to, file), r.random() < 0.3
    if predicts and cell.last and not cell.first:
        held[f"{to}embedding.word_embeddings.weight"] = cell.col(e)
    mine = dict((n, j) for j, n in cell.layers(L))

    def layer(put, at, kind, table=None):
        delta_net(h, put, cell, at, g, H) if kind == "linear_attention" else gated_attention(h, put, t, cell, at)
        sparse_mlp(h, put, t, cell, at, apart)
        if table is not None:
            ngram_tables(h, put, t, cell, at, rows[table])
        for x in ("attn", "mlp"):
            streams_mixer(h, put, f"{at}{x}_hyper_connection.", f"{x}_hyper_connection.", streams, H, rank, True)

    def at_the_end(name, a, buffer=False):
        if cell.last:
            held[f"{to}{name}"] = a

    for n in range(L):
        layer(layer_of(held, to, mine, n), f"{file}layers.{n}.", kinds[n], tables.index(n) if n in tables else None)
    streams_mixer(h, at_the_end, f"{file}hyper_connection_mixer.", "decoder.hyper_connection_mixer.", streams, H, rank, False)
    # No released Megatron-Core builds the layers for prediction: these are by the code of the bridge alone.
    if predicts:
        next_to = "mtp.layers.0."
        for name, source, shape in (("enorm", "pre_fc_norm_embedding", [H]), ("hnorm", "pre_fc_norm_hidden", [streams * H])):
            at_the_end(f"{next_to}{name}.weight", h.new(f"mtp.{source}.weight", *shape))
        for name, source in (("e_proj", "fc_embedding"), ("h_proj", "fc_hidden")):
            at_the_end(f"{next_to}{name}.weight", cell.col(h.new(f"mtp.{source}.weight", H, H)))
        layer(lambda name, a, buffer=False: at_the_end(f"{next_to}mtp_model_layer.{name}", a), "mtp.layers.0.", "full_attention")
        streams_mixer(h, at_the_end, "mtp.hyper_connection_mixer.", f"{next_to}hyper_connection_mixer.", streams, H, rank, False)
        t["mtp_num_hidden_layers"] = 1
    tied = r.random() < 0.3
    output(h, held, t, cell, to, "lm_head.weight", e, tied)
    v = tower_sizes(r)
    merge, p, frames, channels = r.randint(1, 3), r.randint(1, 3), r.randint(1, 2), r.randint(1, 3)
    w, f, square = v["hidden_size"], v["intermediate_size"], v["hidden_size"] * merge * merge
    vision = dict(depth=v["num_hidden_layers"], hidden_size=w, num_heads=v["num_attention_heads"], intermediate_size=f, in_channels=channels, patch_size=p, temporal_patch_size=frames,
                  spatial_merge_size=merge, out_hidden_size=H, num_position_embeddings=(positions := r.randint(1, 9)))
    shapes = [*both("patch_embed.proj", w, channels, frames, p, p), ("pos_embed.weight", positions, w)]
    for n in range(v["num_hidden_layers"]):
        at = f"blocks.{n}."
        shapes += both(f"{at}norm1", w) + both(f"{at}norm2", w) + both(f"{at}attn.qkv", 3 * w, w) + both(f"{at}attn.proj", w, w) + both(f"{at}mlp.linear_fc1", f, w) + both(f"{at}mlp.linear_fc2", w, f)
    whole(h, held, cell, "visual.visual.", "model.visual.", shapes + both("merger.norm", w) + both("merger.linear_fc1", square, square) + both("merger.linear_fc2", H, square))
    return {"model_type": "qwen4_exp", "architectures": ["Qwen4ExpForConditionalGeneration"], "dtype": "bfloat16", "text_config": t | {"tie_word_embeddings": tied}, "vision_config": vision,
            "tie_word_embeddings": tied}
