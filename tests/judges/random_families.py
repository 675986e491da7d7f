"""Random models of newer families on random grids: every parameter of a rank, in order, as the formulas of this file cut it
out of the tensors, and what `mckpt ls --as megatron` lists. Nothing of mckpt is used but its answer.

The formulas are in rows: a matrix is a list of rows of bytes, a parameter of a rank a list of rows that were chosen one by one.
usage: random_families.py [MODELS_OF_EACH_FAMILY]
"""
import json
import os
import random
import shutil
import struct
import sys
import tempfile

from mckpt_tests.checks import expect_equal, fail, finish, in_parallel
from mckpt_tests.golden import listing, sha

TIMES = int(sys.argv[1]) if len(sys.argv) > 1 else 40
scratch = tempfile.TemporaryDirectory(prefix="mckpt_random_families_")


class Model:
    """A config and its tensors: name -> (type, shape, bytes)."""

    def __init__(self, r, config):
        self.r, self.config, self.tensors = r, config, {}

    def add(self, name, *shape, dtype="BF16"):
        size = {"BF16": 2, "F32": 4}[dtype]
        for n in shape:
            size *= n
        self.tensors[name] = (dtype, list(shape), self.r.randbytes(size))

    def write(self, folder):
        os.mkdir(folder)
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(self.config, f)
        header, at = {}, 0
        for name, (dtype, shape, data) in self.tensors.items():
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
            at += len(data)
        text = json.dumps(header).encode()
        with open(os.path.join(folder, "model.safetensors"), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in self.tensors.values()))

    def rows(self, name, slice_of=None):
        """The rows of a matrix, or of one slice of three dimensions."""
        _, shape, data = self.tensors[name]
        if slice_of is not None:
            size = len(data) // shape[0]
            data, shape = data[slice_of * size:(slice_of + 1) * size], shape[1:]
        size = len(data) // shape[0]
        return [data[i * size:(i + 1) * size] for i in range(shape[0])]


def part(rows, t, count):
    n = len(rows) // count
    return rows[t * n:(t + 1) * n]


def columns(rows, t, count):
    return [b"".join(part([row[i:i + 2] for i in range(0, len(row), 2)], t, count)) for row in rows]


def gated(gate, up, t, count):
    return part(gate, t, count) + part(up, t, count)


def by_group(heads, groups, q, k, v, gates=None):
    """q: rows of each head; gates: the rows that stand behind them. Values may have heads of another size."""
    of = heads // groups
    out = []
    for g in range(groups):
        out += part(q, g, groups)
        for head in range(g * of, (g + 1) * of):
            out += [gates[head]] * (len(q) // heads) if gates else []
        out += part(k, g, groups) + part(v, g, groups)
    return out


class Rank:
    """The parameters that one rank of the grid holds, in order; `buffers` come behind all of them."""

    def __init__(self, grid, number):
        stage = grid["tp"] * grid["cp"] * grid["dp"]
        self.grid, self.stage, inside = grid, number // stage, number % stage
        self.tp, self.etp, self.ep = inside % grid["tp"], inside % grid["etp"], inside // grid["etp"] % grid["ep"]
        self.held, self.buffers = [], []

    def first(self):
        return self.stage == 0

    def last(self):
        return self.stage == self.grid["pp"] - 1

    def add(self, name, rows):
        self.held.append((name, sha(*rows)))

    def whole(self, model, name, of):
        self.add(name, [model.tensors[of][2]])

    def split(self, model, name, of):
        self.add(name, part(model.rows(of), self.tp, self.grid["tp"]))

    def across(self, model, name, of):
        self.add(name, columns(model.rows(of), self.tp, self.grid["tp"]))

    def dense(self, model, to, front, norm="post_attention_layernorm.weight"):
        self.whole(model, to + "mlp.linear_fc1.layer_norm_weight", front + norm)
        gate, up = (model.rows(f"{front}mlp.{half}_proj.weight") for half in ("gate", "up"))
        self.add(to + "mlp.linear_fc1.weight", gated(gate, up, self.tp, self.grid["tp"]))
        self.across(model, to + "mlp.linear_fc2.weight", front + "mlp.down_proj.weight")

    def experts(self, to, number, gate_up_down):
        """gate_up_down(e): the rows of the three matrices of expert e."""
        n, count = number // self.grid["ep"], self.grid["etp"]
        own = [gate_up_down(self.ep * n + e) for e in range(n)]
        for e, (gate, up, _) in enumerate(own):
            self.add(f"{to}mlp.experts.linear_fc1.weight{e}", gated(gate, up, self.etp, count))
        for e, (_, _, down) in enumerate(own):
            self.add(f"{to}mlp.experts.linear_fc2.weight{e}", columns(down, self.etp, count))

    def shared(self, model, to, front):
        gate, up = (model.rows(f"{front}{half}_proj.weight") for half in ("gate", "up"))
        self.add(to + "mlp.shared_experts.linear_fc1.weight", gated(gate, up, self.tp, self.grid["tp"]))
        self.across(model, to + "mlp.shared_experts.linear_fc2.weight", front + "down_proj.weight")

    def layers(self, count):
        """The numbers of the rank's layers: here and in the whole model."""
        n = count // self.grid["pp"]
        return [(i, self.stage * n + i) for i in range(n)]


# ---- Step-3.5 and Step-3.7

def step_config(r, grid, with_vision):
    tp = grid["tp"]
    full, slide = ({"groups": (g := r.choice([1, 2, 4, 8])), "heads": (h := g * tp * r.choice([1, 2, 3])), "dim": r.choice([2, 4, 6])} for _ in range(2))
    layers, depths = grid["pp"] * r.choice([1, 2, 3]), 0 if with_vision else r.choice([0, 0, 1, 2])
    kinds = [r.choice(["full_attention", "sliding_attention"]) for _ in range(layers + depths)]
    if grid["pp"] > 1:  # Megatron cannot build sliding layers of MTP there
        kinds[layers:] = ["full_attention"] * depths
    sparse = [n for n in range(layers) if r.random() < 0.6]
    text = {
        "model_type": "step3p5", "architectures": ["Step3p5ForCausalLM"], "torch_dtype": "bfloat16", "tie_word_embeddings": False,
        "hidden_size": 2 * r.choice([3, 5, 7]), "vocab_size": 16 * r.choice([2, 3, 5]), "num_hidden_layers": layers, "num_nextn_predict_layers": depths,
        "num_attention_heads": full["heads"], "num_attention_groups": full["groups"], "head_dim": full["dim"],
        "attention_other_setting": {"attention_type": "sliding_attention", "num_attention_heads": slide["heads"], "num_attention_groups": slide["groups"], "head_dim": slide["dim"]},
        "layer_types": kinds, "moe_layers_enum": r.choice([",".join(map(str, sparse)), sparse]),
        "intermediate_size": tp * r.choice([4, 6, 10]), "moe_intermediate_size": grid["etp"] * r.choice([2, 5]), "share_expert_dim": tp * r.choice([2, 3]),
        "moe_num_experts": grid["ep"] * r.choice([1, 2, 3]), "moe_top_k": 1, "use_qk_norm": r.random() < 0.7, "use_moe_router_bias": r.random() < 0.7,
        "use_head_wise_attn_gate": True, "rope_theta": [10000.0] * layers,
    }
    if not with_vision:
        return text
    width = r.choice([4, 6])
    vision = {"width": width, "layers": r.choice([1, 2]), "heads": 2, "image_size": 8, "patch_size": r.choice([2, 4]), "mlp_ratio": r.choice([2.5, 1.7, 8960 / 1536])}
    return {"model_type": "step3p7", "architectures": ["Step3p7ForConditionalGeneration"], "text_config": text, "vision_config": vision, "torch_dtype": "bfloat16",
            "tie_word_embeddings": False}


def step_heads(c, layer):
    if c["layer_types"][layer] == "full_attention":
        return c["num_attention_heads"], c["num_attention_groups"], c["head_dim"]
    other = c["attention_other_setting"]
    return other["num_attention_heads"], other["num_attention_groups"], other["head_dim"]


def step_sparse(c):
    listed = c["moe_layers_enum"]
    return {int(n) for n in (listed.split(",") if isinstance(listed, str) else listed) if n != ""}


def step_tensors(r, config):
    m, c = Model(r, config), config.get("text_config", config)
    H, L, E = c["hidden_size"], c["num_hidden_layers"], c["moe_num_experts"]
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        m.add(name, c["vocab_size"], H)
    m.add("model.norm.weight", H)
    for n in range(L + c["num_nextn_predict_layers"]):
        f, (heads, groups, dim) = f"model.layers.{n}.", step_heads(c, n)
        for leaf, rows in (("q", heads * dim), ("k", groups * dim), ("v", groups * dim), ("g", heads)):
            m.add(f"{f}self_attn.{leaf}_proj.weight", rows, H)
        m.add(f + "self_attn.o_proj.weight", H, heads * dim)
        for leaf in ("q_norm", "k_norm") if c["use_qk_norm"] else ():
            m.add(f"{f}self_attn.{leaf}.weight", dim)
        for leaf in ("input_layernorm", "post_attention_layernorm"):
            m.add(f"{f}{leaf}.weight", H)
        if n not in step_sparse(c) or n >= L:
            for leaf, shape in (("gate", (c["intermediate_size"], H)), ("up", (c["intermediate_size"], H)), ("down", (H, c["intermediate_size"]))):
                m.add(f"{f}mlp.{leaf}_proj.weight", *shape)
        else:
            I, S = c["moe_intermediate_size"], c["share_expert_dim"]
            m.add(f + "moe.gate.weight", E, H)
            if c["use_moe_router_bias"]:
                m.add(f + "moe.router_bias", E, dtype="F32")
            for leaf, shape, shared in (("gate", (E, I, H), (S, H)), ("up", (E, I, H), (S, H)), ("down", (E, H, I), (H, S))):
                m.add(f"{f}moe.{leaf}_proj.weight", *shape)
                m.add(f"{f}share_expert.{leaf}_proj.weight", *shared)
        if n >= L:
            for leaf in ("enorm", "hnorm", "transformer.shared_head.norm"):
                m.add(f"{f}{leaf}.weight", H)
            m.add(f + "eh_proj.weight", H, 2 * H)
            m.tensors[f + "transformer.shared_head.output.weight"] = m.tensors["lm_head.weight"]
    if "vision_config" in config:
        v = config["vision_config"]
        W, F, P = v["width"], int(v["width"] * v["mlp_ratio"]), (v["image_size"] // v["patch_size"]) ** 2
        for name, *shape in step_tower(v["layers"], W, F, P, v["patch_size"]):
            m.add("vision_model." + name, *shape)
        m.add("vit_large_projector.weight", H, 4 * W)
    return m


def step_tower(layers, W, F, P, patch):
    yield "positional_embedding", P, W
    yield "conv1.weight", W, 3, patch, patch
    yield from (("ln_pre.weight", W), ("ln_pre.bias", W))
    for n in range(layers):
        for leaf, *shape in (("attn.in_proj_weight", 3 * W, W), ("attn.in_proj_bias", 3 * W), ("attn.out_proj.weight", W, W), ("attn.out_proj.bias", W),
                             ("ln_1.weight", W), ("ln_1.bias", W), ("ln_2.weight", W), ("ln_2.bias", W), ("mlp.c_fc.weight", F, W), ("mlp.c_fc.bias", F),
                             ("mlp.c_proj.weight", W, F), ("mlp.c_proj.bias", W), ("ls_1.gamma", W), ("ls_2.gamma", W)):
            yield f"transformer.resblocks.{n}.{leaf}", *shape
    yield from (("vit_downsampler1.weight", 2 * W, W, 3, 3), ("vit_downsampler1.bias", 2 * W), ("vit_downsampler2.weight", 4 * W, 2 * W, 3, 3), ("vit_downsampler2.bias", 4 * W))


def step_layer(m, c, rank, to, f, layer, sparse):
    heads, groups, _ = step_heads(c, layer)
    rank.across(m, to + "self_attention.linear_proj.weight", f + "self_attn.o_proj.weight")
    rank.whole(m, to + "self_attention.linear_qkv.layer_norm_weight", f + "input_layernorm.weight")
    q, k, v, g = (m.rows(f"{f}self_attn.{leaf}_proj.weight") for leaf in "qkvg")
    rank.add(to + "self_attention.linear_qkv.weight", part(by_group(heads, groups, q, k, v, g), rank.tp, rank.grid["tp"]))
    for leaf in ("q", "k") if c["use_qk_norm"] else ():
        rank.whole(m, f"{to}self_attention.{leaf}_layernorm.weight", f"{f}self_attn.{leaf}_norm.weight")
    if not sparse:
        return rank.dense(m, to, f)
    rank.whole(m, to + "pre_mlp_layernorm.weight", f + "post_attention_layernorm.weight")
    rank.whole(m, to + "mlp.router.weight", f + "moe.gate.weight")
    if c["use_moe_router_bias"]:
        rank.buffers.append((to + "mlp.router.expert_bias", sha(m.tensors[f + "moe.router_bias"][2])))
    rank.experts(to, c["moe_num_experts"], lambda e: [m.rows(f"{f}moe.{leaf}_proj.weight", e) for leaf in ("gate", "up", "down")])
    rank.shared(m, to, f + "share_expert.")


def step_rank(m, rank):
    c = m.config.get("text_config", m.config)
    front, depths, L = "language_model." if "vision_config" in m.config else "", c["num_nextn_predict_layers"], c["num_hidden_layers"]
    if front and rank.first():
        for name in (n for n in m.tensors if n.startswith("vision_model.")):
            rank.whole(m, name, name)
    if rank.first() or (rank.last() and depths):
        rank.split(m, front + "embedding.word_embeddings.weight", "model.embed_tokens.weight")
    for here, n in rank.layers(L):
        step_layer(m, c, rank, f"{front}decoder.layers.{here}.", f"model.layers.{n}.", n, n in step_sparse(c))
    if rank.last():
        rank.whole(m, front + "decoder.final_layernorm.weight", "model.norm.weight")
        for depth in range(depths):
            to, f = f"{front}mtp.layers.{depth}.", f"model.layers.{L + depth}."
            for leaf in ("enorm", "hnorm"):
                rank.whole(m, f"{to}{leaf}.weight", f"{f}{leaf}.weight")
            rank.split(m, to + "eh_proj.weight", f + "eh_proj.weight")
            step_layer(m, c, rank, to + "mtp_model_layer.", f, L + depth, False)
            rank.whole(m, to + "final_layernorm.weight", f + "transformer.shared_head.norm.weight")
        rank.split(m, front + "output_layer.weight", "lm_head.weight")
    if front and rank.first():
        rank.whole(m, "image_insert_embedding.align_projector.weight", "vit_large_projector.weight")


# ---- MiMo-V2-Flash

def mimo_config(r, grid):
    tp, layers = grid["tp"], grid["pp"] * r.choice([1, 2, 3])
    full, slide = (tp * r.choice([1, 2, 3]) for _ in range(2))
    dim, values = r.choice([(3, 2), (2, 5), (6, 4), (4, 4)])
    return {
        "model_type": "mimo_v2_flash", "architectures": ["MiMoV2FlashForCausalLM"], "torch_dtype": "bfloat16", "tie_word_embeddings": False,
        "hidden_size": 2 * r.choice([3, 5, 7]), "vocab_size": 16 * r.choice([2, 3, 5]), "num_hidden_layers": layers,
        "num_attention_heads": full * slide * r.choice([1, 2]), "num_key_value_heads": full, "swa_num_key_value_heads": slide, "head_dim": dim, "v_head_dim": values,
        "hybrid_layer_pattern": [r.choice([0, 1]) for _ in range(layers)], "moe_layer_freq": [r.choice([0, 1]) for _ in range(layers)],
        "intermediate_size": tp * r.choice([4, 6]), "moe_intermediate_size": grid["etp"] * r.choice([2, 5]), "n_routed_experts": grid["ep"] * r.choice([1, 2, 3]),
        "layernorm_epsilon": 1e-5, "num_experts_per_tok": 1,
    }


def mimo_tensors(r, c):
    m = Model(r, c)
    H = c["hidden_size"]
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        m.add(name, c["vocab_size"], H)
    m.add("model.norm.weight", H)

    def layer(f, slides, sparse, norm):
        heads, groups = c["num_attention_heads"], c["swa_num_key_value_heads" if slides else "num_key_value_heads"]
        for leaf, rows in (("q", heads * c["head_dim"]), ("k", groups * c["head_dim"]), ("v", groups * c["v_head_dim"])):
            m.add(f"{f}self_attn.{leaf}_proj.weight", rows, H)
        m.add(f + "self_attn.o_proj.weight", H, heads * c["v_head_dim"])
        if slides:
            m.add(f + "self_attn.attention_sink_bias", heads)
        m.add(f + "input_layernorm.weight", H)
        m.add(f + norm + ".weight", H)
        if sparse:
            m.add(f + "mlp.gate.weight", c["n_routed_experts"], H)
            m.add(f + "mlp.gate.e_score_correction_bias", c["n_routed_experts"], dtype="F32")
        for front in [f"{f}mlp.experts.{e}." for e in range(c["n_routed_experts"])] if sparse else [f + "mlp."]:
            I = c["moe_intermediate_size" if sparse else "intermediate_size"]
            for leaf, shape in (("gate", (I, H)), ("up", (I, H)), ("down", (H, I))):
                m.add(f"{front}{leaf}_proj.weight", *shape)

    for n in range(c["num_hidden_layers"]):
        layer(f"model.layers.{n}.", c["hybrid_layer_pattern"][n], c["moe_layer_freq"][n], "post_attention_layernorm")
    for depth in range(r.choice([0, 0, 1, 3])):
        f = f"model.mtp.layers.{depth}."
        layer(f, 1, 0, "pre_mlp_layernorm")
        for leaf in ("enorm", "hnorm", "final_layernorm"):
            m.add(f"{f}{leaf}.weight", H)
        m.add(f + "eh_proj.weight", H, 2 * H)
    return m


def mimo_layer(m, rank, to, f, slides, sparse, norm):
    c = m.config
    if slides:
        rank.split(m, to + "self_attention.core_attention.softmax_offset", f + "self_attn.attention_sink_bias")
    rank.across(m, to + "self_attention.linear_proj.weight", f + "self_attn.o_proj.weight")
    rank.whole(m, to + "self_attention.linear_qkv.layer_norm_weight", f + "input_layernorm.weight")
    q, k, v = (m.rows(f"{f}self_attn.{leaf}_proj.weight") for leaf in "qkv")
    rows = by_group(c["num_attention_heads"], c["swa_num_key_value_heads" if slides else "num_key_value_heads"], q, k, v)
    rank.add(to + "self_attention.linear_qkv.weight", part(rows, rank.tp, rank.grid["tp"]))
    if not sparse:
        return rank.dense(m, to, f, norm)
    rank.whole(m, to + "pre_mlp_layernorm.weight", f + norm)
    rank.whole(m, to + "mlp.router.weight", f + "mlp.gate.weight")
    rank.buffers.append((to + "mlp.router.expert_bias", sha(m.tensors[f + "mlp.gate.e_score_correction_bias"][2])))
    rank.experts(to, c["n_routed_experts"], lambda e: [m.rows(f"{f}mlp.experts.{e}.{leaf}_proj.weight") for leaf in ("gate", "up", "down")])


def mimo_rank(m, rank):
    c = m.config
    depths = len({n.split(".")[3] for n in m.tensors if n.startswith("model.mtp.")})
    if rank.first() or (rank.last() and depths):
        rank.split(m, "embedding.word_embeddings.weight", "model.embed_tokens.weight")
    for here, n in rank.layers(c["num_hidden_layers"]):
        slides, sparse = c["hybrid_layer_pattern"][n], c["moe_layer_freq"][n]
        mimo_layer(m, rank, f"decoder.layers.{here}.", f"model.layers.{n}.", slides, sparse, "post_attention_layernorm.weight")
    if not rank.last():
        return
    rank.whole(m, "decoder.final_layernorm.weight", "model.norm.weight")
    for depth in range(depths):
        to, f = f"mtp.layers.{depth}.", f"model.mtp.layers.{depth}."
        for leaf in ("enorm", "hnorm"):
            rank.whole(m, f"{to}{leaf}.weight", f"{f}{leaf}.weight")
        rank.split(m, to + "eh_proj.weight", f + "eh_proj.weight")
        mimo_layer(m, rank, to + "mtp_model_layer.", f, 1, 0, "pre_mlp_layernorm.weight")
        rank.whole(m, to + "final_layernorm.weight", f + "final_layernorm.weight")
    rank.split(m, "output_layer.weight", "lm_head.weight")


# ---- Kimi K2.5

def kimi_config(r, grid):
    tp, layers = grid["tp"], grid["pp"] * r.choice([1, 2, 3])
    hidden, width = 2 * r.choice([3, 5, 7]), r.choice([4, 6])
    text = {
        "model_type": "kimi_k2", "hidden_size": hidden, "vocab_size": 16 * r.choice([2, 3, 5]), "num_hidden_layers": layers, "num_attention_heads": tp * r.choice([1, 2, 3]),
        "q_lora_rank": r.choice([None, 3, 5]), "kv_lora_rank": r.choice([4, 7]), "qk_nope_head_dim": r.choice([2, 5]), "qk_rope_head_dim": r.choice([2, 4]), "v_head_dim": r.choice([3, 6]),
        "first_k_dense_replace": r.choice([0, 1, 2]), "intermediate_size": tp * r.choice([4, 6]), "moe_intermediate_size": tp * grid["etp"] * r.choice([2, 5]),
        "n_routed_experts": grid["ep"] * r.choice([1, 2, 3]), "n_shared_experts": r.choice([1, 2]), "num_experts_per_tok": 1, "tie_word_embeddings": False,
    }
    vision = {"vt_hidden_size": width, "vt_intermediate_size": r.choice([5, 7]), "vt_num_hidden_layers": r.choice([1, 2]), "vt_num_attention_heads": 2, "patch_size": r.choice([2, 3]),
              "init_pos_emb_height": r.choice([2, 3]), "init_pos_emb_width": r.choice([4, 5]), "merge_kernel_size": [1, r.choice([1, 2])], "mm_hidden_size": width, "text_hidden_size": hidden}
    return {"model_type": "kimi_k25", "architectures": ["KimiK25ForConditionalGeneration"], "text_config": text, "vision_config": vision, "torch_dtype": "bfloat16",
            "tie_word_embeddings": False}


def kimi_tower(v, hidden):
    W, F = v["vt_hidden_size"], v["vt_intermediate_size"]
    P = v["mm_hidden_size"] * v["merge_kernel_size"][0] * v["merge_kernel_size"][1]
    yield "vision_tower.patch_embed.proj.weight", W, 3, v["patch_size"], v["patch_size"]
    yield "vision_tower.patch_embed.proj.bias", W
    yield "vision_tower.patch_embed.pos_emb.weight", v["init_pos_emb_height"], v["init_pos_emb_width"], W
    for n in range(v["vt_num_hidden_layers"]):
        for leaf, rows, *across in (("norm0", W), ("norm1", W), ("mlp.fc0", F, W), ("mlp.fc1", W, F), ("wqkv", 3 * W, W), ("wo", W, W)):
            yield f"vision_tower.encoder.blocks.{n}.{leaf}.weight", rows, *across
            yield f"vision_tower.encoder.blocks.{n}.{leaf}.bias", rows
    for name, rows, *across in (("vision_tower.encoder.final_layernorm", W), ("mm_projector.pre_norm", v["mm_hidden_size"]), ("mm_projector.proj.0", P, P), ("mm_projector.proj.2", hidden, P)):
        yield name + ".weight", rows, *across
        yield name + ".bias", rows


def kimi_tensors(r, config):
    m, c = Model(r, config), config["text_config"]
    H, A, Q, K = c["hidden_size"], c["num_attention_heads"], c["q_lora_rank"], c["kv_lora_rank"]
    for name, *shape in kimi_tower(config["vision_config"], H):
        m.add(name, *shape)
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        m.add("language_model." + name, c["vocab_size"], H)
    m.add("language_model.model.norm.weight", H)
    for n in range(c["num_hidden_layers"]):
        f, q = f"language_model.model.layers.{n}.", A * (c["qk_nope_head_dim"] + c["qk_rope_head_dim"])
        queries = [("q_a_proj.weight", Q, H), ("q_a_layernorm.weight", Q), ("q_b_proj.weight", q, Q)] if Q else [("q_proj.weight", q, H)]
        for leaf, *shape in (*queries, ("kv_a_proj_with_mqa.weight", K + c["qk_rope_head_dim"], H), ("kv_a_layernorm.weight", K),
                             ("kv_b_proj.weight", A * (c["qk_nope_head_dim"] + c["v_head_dim"]), K), ("o_proj.weight", H, A * c["v_head_dim"])):
            m.add(f"{f}self_attn.{leaf}", *shape)
        for leaf in ("input_layernorm", "post_attention_layernorm"):
            m.add(f"{f}{leaf}.weight", H)
        widths = {f + "mlp.": c["intermediate_size"]}
        if n >= c["first_k_dense_replace"]:
            widths = {f"{f}mlp.experts.{e}.": c["moe_intermediate_size"] for e in range(c["n_routed_experts"])}
            widths[f + "mlp.shared_experts."] = c["moe_intermediate_size"] * c["n_shared_experts"]
            m.add(f + "mlp.gate.weight", c["n_routed_experts"], H)
            m.add(f + "mlp.gate.e_score_correction_bias", c["n_routed_experts"], dtype="F32")
        for front, I in widths.items():
            for leaf, shape in (("gate", (I, H)), ("up", (I, H)), ("down", (H, I))):
                m.add(f"{front}{leaf}_proj.weight", *shape)
    return m


def kimi_rank(m, rank):
    c, front = m.config["text_config"], "language_model."
    if rank.first():
        for name, *_ in kimi_tower(m.config["vision_config"], c["hidden_size"]):
            rank.whole(m, name, name)
        rank.split(m, front + "embedding.word_embeddings.weight", front + "model.embed_tokens.weight")
    for here, n in rank.layers(c["num_hidden_layers"]):
        to, f = f"{front}decoder.layers.{here}.", f"{front}model.layers.{n}."
        at, of = to + "self_attention.", f + "self_attn."
        rank.whole(m, to + "input_layernorm.weight", f + "input_layernorm.weight")
        rank.across(m, at + "linear_proj.weight", of + "o_proj.weight")
        if c["q_lora_rank"]:
            rank.whole(m, at + "linear_q_down_proj.weight", of + "q_a_proj.weight")
            rank.whole(m, at + "linear_q_up_proj.layer_norm_weight", of + "q_a_layernorm.weight")
            rank.split(m, at + "linear_q_up_proj.weight", of + "q_b_proj.weight")
        else:
            rank.split(m, at + "linear_q_proj.weight", of + "q_proj.weight")
        rank.whole(m, at + "linear_kv_down_proj.weight", of + "kv_a_proj_with_mqa.weight")
        rank.whole(m, at + "linear_kv_up_proj.layer_norm_weight", of + "kv_a_layernorm.weight")
        rank.split(m, at + "linear_kv_up_proj.weight", of + "kv_b_proj.weight")
        if n < c["first_k_dense_replace"]:
            rank.dense(m, to, f)
            continue
        rank.whole(m, to + "pre_mlp_layernorm.weight", f + "post_attention_layernorm.weight")
        rank.whole(m, to + "mlp.router.weight", f + "mlp.gate.weight")
        rank.buffers.append((to + "mlp.router.expert_bias", sha(m.tensors[f + "mlp.gate.e_score_correction_bias"][2])))
        rank.experts(to, c["n_routed_experts"], lambda e, f=f: [m.rows(f"{f}mlp.experts.{e}.{leaf}_proj.weight") for leaf in ("gate", "up", "down")])
        rank.shared(m, to, f + "mlp.shared_experts.")
    if rank.last():
        rank.whole(m, front + "decoder.final_layernorm.weight", front + "model.norm.weight")
        rank.split(m, front + "output_layer.weight", front + "lm_head.weight")


FAMILIES = {
    "step3p5": (lambda r, grid: step_config(r, grid, False), step_tensors, step_rank),
    "step3p7": (lambda r, grid: step_config(r, grid, True), step_tensors, step_rank),
    "mimo_v2_flash": (mimo_config, mimo_tensors, mimo_rank),
    "kimi_k25": (kimi_config, kimi_tensors, kimi_rank),
}


def random_grid(r, family):
    grid = {"tp": r.choice([1, 2, 3, 4]), "cp": 1 if family == "mimo_v2_flash" else r.choice([1, 1, 2]), "ep": r.choice([1, 2, 3]), "etp": r.choice([1, 1, 2]), "pp": r.choice([1, 1, 2, 3])}
    stage = grid["tp"] * grid["cp"]
    grid["dp"] = next(n for n in range(1, 100) if stage * n % (grid["ep"] * grid["etp"]) == 0)
    return grid


def fits(model, grid):
    """Whether neither of heads, groups and the parallel size stands in the way of the other, in any layer."""
    c = model.config.get("text_config", model.config)
    tp, kinds = grid["tp"], []
    if c["vocab_size"] % tp or (c["hidden_size"] % tp and any(name.endswith("eh_proj.weight") for name in model.tensors)):
        return False
    if c["model_type"] == "step3p5":
        kinds = [step_heads(c, n) for n in range(len(c["layer_types"]))]
        rows = [(2 * h + 2 * g) * d for h, g, d in kinds]
    elif c["model_type"] == "mimo_v2_flash":
        kinds = [(c["num_attention_heads"], c[key], 0) for key in ("num_key_value_heads", "swa_num_key_value_heads")]
        rows = [h * c["head_dim"] + g * (c["head_dim"] + c["v_head_dim"]) for h, g, _ in kinds]
    return all(h % tp == 0 and (g % tp == 0 or tp % g == 0) for h, g, _ in kinds) and (not kinds or all(n % tp == 0 for n in rows))


def check(family, number):
    r = random.Random(f"{family} {number}")
    make, tensors, hold = FAMILIES[family]
    while True:
        grid = random_grid(r, family)
        model = tensors(r, make(r, grid))
        if fits(model, grid):
            break
    folder = os.path.join(scratch.name, f"{family}_{number}")
    model.write(folder)
    world = grid["pp"] * grid["tp"] * grid["cp"] * grid["dp"]
    flags = [f"--{key}={size}" for key, size in grid.items()]
    for of in sorted(r.sample(range(world), min(world, 3))):
        rank = Rank(grid, of)
        hold(model, rank)
        rows = listing(folder, "--as", "megatron", "--rank", of, *flags)
        what = f"{family} {number} rank {of} of {grid}"
        if isinstance(rows, str):
            fail(f"{what}: {rows}")
            continue
        got = [f"{row['name']} {row['sha256']}" for row in rows]
        want = [f"{name} {digest}" for name, digest in rank.held]
        buffers = sorted(f"{name} {digest}" for name, digest in rank.buffers)
        expect_equal(what, [line for line in got if ".expert_bias " not in line], want)
        expect_equal(what + " buffers", sorted(line for line in got if ".expert_bias " in line), buffers)
    shutil.rmtree(folder)


in_parallel(check, [(family, number) for family in FAMILIES for number in range(TIMES)])
finish(len(FAMILIES) * TIMES)
