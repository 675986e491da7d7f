"""torch_dist of models that Megatron saves in a way of their own, against a computation of its own of what Megatron-Bridge saves of
them: the two kinds of attention of Gemma 4, each stacked alone; norms of MiniMax over all heads, with fewer groups of keys than
ranks; towers of Hugging Face. torch loads every folder; whole tensors and the boxes in which they are stored are compared, for
models of random sizes on several grids. mckpt reads its results again and exports them, and it takes a save with states of the
optimizer, whose keys this program makes, to another grid.
"""

import itertools
import json
import os
import random
import shutil
import tempfile
import zlib

from mckpt_tests.checks import expect, expect_equal, finish, need
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt

need("torch", "numpy", "safetensors")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from mckpt_tests.ranks import load_whole, save_as_ranks  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

scratch = tempfile.TemporaryDirectory(prefix="mckpt_by_rule_")
torch.set_num_threads(1)
H, V = 24, 128
SLIDING, FULL = "sliding_attention", "full_attention"


def place(name):
    return os.path.join(tempfile.mkdtemp(dir=scratch.name), name)


def mckpt(*args):
    run = run_mckpt(*args, "-q", "--no-sync", timeout=100)
    return expect(run.returncode == 0, f"{args}: exit status {run.returncode}: {run.stderr[-800:]}")


class Weights(dict):
    """Random bits of bf16, no NaN, each tensor from its name."""

    def add(self, name, *shape, dtype=torch.bfloat16):
        g = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        self[name] = torch.randint(0x0800, 0x7000, shape, generator=g, dtype=torch.int32).to(torch.int16).view(torch.bfloat16).to(dtype)


def folder_of(config, weights):
    folder = place("model")
    os.mkdir(folder)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    save_file(dict(weights), os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    return folder


def by_group(q, k, v, heads, groups):
    """Rows of linear_qkv: the queries of a group, its keys, its values."""
    q, k, v = q.reshape(groups, -1, q.shape[1]), k.reshape(groups, -1, q.shape[1]), v.reshape(groups, -1, q.shape[1])
    return torch.cat([q, k, v], dim=1).reshape(-1, q.shape[2])


def stacked(keys, by_layer):
    """by_layer: for each layer name -> tensor; keys: the front of the layers' names, and which of them are stacked together."""
    return {keys + name: torch.stack([layer[name] for layer in by_layer]) for name in (by_layer[0] if by_layer else ())}


def gemma4(r):
    """A config, its tensors, and what torch_dist has of it."""
    moe, wide = r.random() < 0.4, False
    layers = r.randrange(2, 7)
    kinds = [r.choice((SLIDING, SLIDING, FULL)) for _ in range(layers - 1)] + [FULL]  # the last one always is
    heads, groups, dim, full_dim = 8, 4, r.choice((6, 10)), r.choice((6, 14))
    one = r.random() < 0.5
    full_groups = r.choice((4, 8)) if one else groups
    shared = 0 if moe else r.choice((0, 1, 2))
    while shared and not set(kinds[layers - shared:]) <= set(kinds[:layers - shared]):
        shared -= 1
    wide, part = not moe and shared > 0 and r.random() < 0.5, 0 if moe else r.choice((0, 8))
    ffn, experts = r.choice((20, 28)), 8
    config = {"architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text", "dtype": "bfloat16", "vocab_size": V, "vocab_size_per_layer_input": V,
              "hidden_size": H, "num_hidden_layers": layers, "layer_types": kinds, "num_attention_heads": heads, "num_key_value_heads": groups,
              "num_global_key_value_heads": full_groups, "head_dim": dim, "global_head_dim": full_dim, "intermediate_size": ffn, "attention_k_eq_v": one,
              "num_kv_shared_layers": shared, "use_double_wide_mlp": wide, "hidden_size_per_layer_input": part, "tie_word_embeddings": True,
              "enable_moe_block": moe, "num_experts": experts if moe else None, "moe_intermediate_size": 12 if moe else None, "sliding_window": 16,
              "hidden_activation": "gelu_pytorch_tanh"}
    w, attention, rest, front = Weights(), [], [], "model.layers.{}."
    w.add("model.embed_tokens.weight", V, H)
    w.add("model.norm.weight", H)
    for n, kind in enumerate(kinds):
        at = front.format(n)
        d, g = (full_dim, full_groups) if kind == FULL else (dim, groups)
        own, f = n < layers - shared, ffn * (2 if wide and n >= layers - shared else 1)
        w.add(at + "layer_scalar", 1)
        w.add(at + "self_attn.q_proj.weight", heads * d, H)
        w.add(at + "self_attn.o_proj.weight", H, heads * d)
        w.add(at + "self_attn.q_norm.weight", d)
        if own:
            w.add(at + "self_attn.k_proj.weight", g * d, H)
            w.add(at + "self_attn.k_norm.weight", d)
        if own and not (one and kind == FULL):
            w.add(at + "self_attn.v_proj.weight", g * d, H)
        w.add(at + "mlp.gate_proj.weight", f, H)
        w.add(at + "mlp.up_proj.weight", f, H)
        w.add(at + "mlp.down_proj.weight", H, f)
        norms = ["input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"]
        norms += ["pre_feedforward_layernorm_2", "post_feedforward_layernorm_1", "post_feedforward_layernorm_2"] if moe else []
        for norm in norms:
            w.add(f"{at}{norm}.weight", H)
        of = lambda name, at=at: w[f"{at}{name}"]  # noqa: E731
        q = of("self_attn.q_proj.weight")
        k = of("self_attn.k_proj.weight") if own else torch.zeros(g * d, H, dtype=torch.bfloat16)
        v = w.get(at + "self_attn.v_proj.weight", k)
        mine = {"linear_qkv.weight": by_group(q, k, v, heads, g), "linear_proj.weight": of("self_attn.o_proj.weight"),
                "q_layernorm.weight": of("self_attn.q_norm.weight"),
                "k_layernorm.weight": of("self_attn.k_norm.weight") if own else torch.ones(d, dtype=torch.bfloat16)}
        other = {"layer_scalar": of("layer_scalar")}
        if moe:
            w.add(at + "router.proj.weight", experts, H)
            w.add(at + "router.scale", H)
            w.add(at + "router.per_expert_scale", experts)
            w.add(at + "experts.gate_up_proj", experts, 24, H)
            w.add(at + "experts.down_proj", experts, H, 12)
            mine |= {"linear_qkv.layer_norm_weight": of("input_layernorm.weight"), "linear_proj.post_layernorm.weight": of("post_attention_layernorm.weight")}
            other |= {"pre_mlp_layernorm.weight": of("pre_feedforward_layernorm_2.weight"), "mlp.router.weight": of("router.proj.weight"),
                      "mlp.router.scale": of("router.scale"), "mlp.router.per_expert_scale": of("router.per_expert_scale"),
                      "mlp.experts.experts.linear_fc1.weight": of("experts.gate_up_proj"), "mlp.experts.experts.linear_fc2.weight": of("experts.down_proj"),
                      "mlp.shared_experts.linear_fc1.weight": torch.cat([of("mlp.gate_proj.weight"), of("mlp.up_proj.weight")]),
                      "mlp.shared_experts.linear_fc2.weight": of("mlp.down_proj.weight"), "mlp.post_moe_layernorm.weight": of("post_feedforward_layernorm_2.weight"),
                      "mlp.post_shared_expert_layernorm.weight": of("post_feedforward_layernorm_1.weight"),
                      "pre_shared_expert_layernorm.weight": of("pre_feedforward_layernorm.weight"), "post_ffn_layernorm.weight": of("post_feedforward_layernorm.weight")}
        else:
            other |= {"input_layernorm.weight": of("input_layernorm.weight"), "post_self_attn_layernorm.weight": of("post_attention_layernorm.weight"),
                      "pre_mlp_layernorm.weight": of("pre_feedforward_layernorm.weight"), "post_mlp_layernorm.weight": of("post_feedforward_layernorm.weight"),
                      "mlp.linear_fc1.weight": torch.cat([of("mlp.gate_proj.weight"), of("mlp.up_proj.weight")]), "mlp.linear_fc2.weight": of("mlp.down_proj.weight")}
        if part:
            for name, shape in (("per_layer_input_gate", (part, H)), ("per_layer_projection", (H, part)), ("post_per_layer_input_norm", (H,))):
                w.add(f"{at}{name}.weight", *shape)
                other[f"{name}.weight"] = of(f"{name}.weight")
        attention.append(mine)
        rest.append(other)
    want = {"embedding.word_embeddings.weight": w["model.embed_tokens.weight"], "decoder.final_layernorm.weight": w["model.norm.weight"]}
    if part:
        w.add("model.embed_tokens_per_layer.weight", V, layers * part)
        w.add("model.per_layer_model_projection.weight", layers * part, H)
        w.add("model.per_layer_projection_norm.weight", part)
        want |= {"per_layer_embedding.weight": w["model.embed_tokens_per_layer.weight"], "per_layer_model_proj.weight": w["model.per_layer_model_projection.weight"],
                 "per_layer_proj_norm.weight": w["model.per_layer_projection_norm.weight"]}
    suffix = {SLIDING: "self_attention_sliding.", FULL: "self_attention_global."}
    if wide:
        for n, kind in enumerate(kinds):
            want |= {f"decoder.layers.{n}.{suffix[kind]}{name}": t for name, t in attention[n].items()}
            want |= {f"decoder.layers.{n}.{name}": t for name, t in rest[n].items()}
    else:
        want |= stacked("decoder.layers.", rest)
        for kind in (SLIDING, FULL):
            want |= stacked("decoder.layers." + suffix[kind], [a for a, k in zip(attention, kinds) if k == kind])
    plain = {f"decoder.layers.{n}.self_attention.{name}": t for n, a in enumerate(attention) for name, t in a.items()}
    plain |= {f"decoder.layers.{n}.{name}": t for n, other in enumerate(rest) for name, t in other.items()}
    plain |= {name: t for name, t in want.items() if ".layers." not in name}
    grids = ["--tp 1", "--tp 2", "--tp 4"] + (["--tp 2 --ep 4", "--ep 8", "--tp 2 --ep 2 --etp 2"] if moe else [])
    return config, w, want, plain, grids + ([] if part or shared else ["--pp 2 --first-stage-layers 1"])  # not where a stage reads what another one has


def minimax(r):
    heads, groups, dim, layers, experts = 8, r.choice((1, 2, 4)), r.choice((8, 12)), r.randrange(1, 4), 4
    config = {"architectures": ["MiniMaxM2ForCausalLM"], "model_type": "minimax_m2", "dtype": "bfloat16", "vocab_size": V, "hidden_size": H, "head_dim": dim,
              "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": groups, "num_local_experts": experts, "intermediate_size": 16,
              "hidden_act": "silu", "tie_word_embeddings": False, "num_experts_per_tok": 2}
    w, every = Weights(), []
    for name, shape in (("model.embed_tokens.weight", (V, H)), ("model.norm.weight", (H,)), ("lm_head.weight", (V, H))):
        w.add(name, *shape)
    for n in range(layers):
        at = f"model.layers.{n}."
        shapes = {"self_attn.q_proj": (heads * dim, H), "self_attn.k_proj": (groups * dim, H), "self_attn.v_proj": (groups * dim, H), "self_attn.o_proj": (H, heads * dim),
                  "self_attn.q_norm": (heads * dim,), "self_attn.k_norm": (groups * dim,), "input_layernorm": (H,), "post_attention_layernorm": (H,),
                  "block_sparse_moe.gate": (experts, H)}
        for e in range(experts):
            shapes |= {f"block_sparse_moe.experts.{e}.{name}": (H, 16) if name == "w2" else (16, H) for name in ("w1", "w2", "w3")}
        for name, shape in shapes.items():
            w.add(f"{at}{name}.weight", *shape)
        w.add(at + "block_sparse_moe.e_score_correction_bias", experts, dtype=torch.float32)
        of = lambda name, at=at: w[f"{at}{name}.weight"]  # noqa: E731
        expert = lambda e, name, of=of: of(f"block_sparse_moe.experts.{e}.{name}")  # noqa: E731
        every.append({"self_attention.linear_qkv.weight": by_group(of("self_attn.q_proj"), of("self_attn.k_proj"), of("self_attn.v_proj"), heads, groups),
                      "self_attention.linear_qkv.layer_norm_weight": of("input_layernorm"), "self_attention.linear_proj.weight": of("self_attn.o_proj"),
                      "self_attention.q_layernorm.weight": of("self_attn.q_norm"), "self_attention.k_layernorm.weight": of("self_attn.k_norm"),
                      "pre_mlp_layernorm.weight": of("post_attention_layernorm"), "mlp.router.weight": of("block_sparse_moe.gate"),
                      "mlp.router.expert_bias": w[at + "block_sparse_moe.e_score_correction_bias"],
                      "mlp.experts.experts.linear_fc1.weight": torch.stack([torch.cat([expert(e, "w1"), expert(e, "w3")]) for e in range(experts)]),
                      "mlp.experts.experts.linear_fc2.weight": torch.stack([expert(e, "w2") for e in range(experts)])})
    want = {"embedding.word_embeddings.weight": w["model.embed_tokens.weight"], "decoder.final_layernorm.weight": w["model.norm.weight"],
            "output_layer.weight": w["lm_head.weight"], **stacked("decoder.layers.", every)}
    plain = {f"decoder.layers.{n}.{name}": t for n, layer in enumerate(every) for name, t in layer.items()}
    plain |= {name: t for name, t in want.items() if ".layers." not in name}
    return config, w, want, plain, ["--tp 1", "--tp 2", "--tp 4", "--tp 8", "--tp 4 --ep 2", "--tp 8 --pp 1 --dp 2"], groups


def differences(got, want):
    out = sorted(set(got) ^ set(want))
    return out or [name for name in want if got[name].dtype != want[name].dtype or not torch.equal(got[name], want[name])]


def release(folder):
    """The iteration that was written, and its whole tensors."""
    names = [name for name in os.listdir(folder) if name.startswith(("iter_", "release"))]
    at = os.path.join(folder, names[0])
    return at, load_whole(at, objects=False)


def exported(what, source, model):
    back = place("back")
    if mckpt("export", source, back, "--assets", model):
        expect_equal(f"{what}: exported", differences(load_file(os.path.join(back, "model.safetensors")), load_file(os.path.join(model, "model.safetensors"))), [])


def with_states(want):
    """A save with states, whose items are all different, by one rank."""
    numbers, state = itertools.count(1), dict(want)
    for kind in ("exp_avg", "exp_avg_sq", "param"):
        for name, t in want.items():
            if name.endswith(("layer_scalar", "expert_bias", "per_expert_scale", "router.scale")):
                continue
            first = next(numbers) * 65536
            state[f"optimizer.state.{kind}.{name}"] = torch.arange(first, first + t.numel(), dtype=torch.float32).reshape(t.shape)
    folder = place("iter_0000004")
    saved = {**state, "common_state/shard_0_1": [{"checkpoint_version": 3.0, "iteration": 4, "optimizer": {"param_groups": [{"lr": 1.0, "step": 3}]}}]}
    save_as_ranks([saved], lambda: dcp.FileSystemWriter(folder, sync_files=False), flatten=False)
    with open(os.path.join(folder, "metadata.json"), "w") as f:
        f.write('{"sharded_backend": "torch_dist", "sharded_backend_version": 1}')
    return folder, state


def check(what, config, weights, want, plain, grids, r):
    model = folder_of(config, weights)
    for grid in grids:
        out = place("out")
        if not mckpt("convert", "to-mcore", model, out, *grid.split()):
            continue
        at, got = release(out)
        expect_equal(f"{what} {grid}", differences(got, want), [])
        exported(f"{what} {grid}", out, model)
        yield grid, at
        shutil.rmtree(out)
    # A save by torch, here with states, is exported, and written again on another grid. So is a save whose layers are
    # apart under their names in memory, as others save them.
    folder, state = with_states(want)
    exported(f"{what}, saved by torch", folder, model)
    out = place("again")
    if mckpt("convert", "reshard", folder, out, "--assets", model, *r.choice(grids).split()):
        expect_equal(f"{what}, again", differences(release(out)[1], state), [])
    folder, _ = with_states(plain)
    exported(f"{what}, layers by number", folder, model)
    ranks = place("ranks")
    if mckpt("convert", "to-pt", folder, ranks, "--assets", model, "--tp", "4"):
        exported(f"{what}, files of ranks", ranks, model)


def gemma_models():
    for seed in range(8):
        r = random.Random(seed)
        config, weights, want, plain, grids = gemma4(r)
        layers = [name for name in want if ".layers." in name]
        for _ in check(f"gemma4 {seed} {len(layers)}", config, weights, want, plain, grids, r):
            pass


def minimax_models():
    for seed in range(4):
        r = random.Random(seed)
        config, weights, want, plain, grids, groups = minimax(r)
        name, dim = "decoder.layers.self_attention.k_layernorm.weight", config["head_dim"]
        for grid, at in check(f"minimax {seed} of {groups} groups", config, weights, want, plain, grids, r):
            ranks = min(int(grid.split()[1]), groups)
            chunks = dcp.FileSystemReader(at).read_metadata().state_dict_metadata[name].chunks
            boxes = {(n, u * groups // ranks * dim, groups // ranks * dim) for n in range(config["num_hidden_layers"]) for u in range(ranks)}
            expect_equal(f"minimax {seed} {grid}: boxes of the norm of keys", sorted((c.offsets[0], c.offsets[1], c.sizes[1]) for c in chunks), sorted(boxes))
        # In the files of ranks each has the part of its group.
        model, out = folder_of(config, weights), place("ranks")
        if mckpt("convert", "to-pt", model, out, "--tp", "8"):
            for rank in range(8):
                folder = next(os.path.join(root, "model_optim_rng.pt") for root, _, files in os.walk(out) if root.endswith(f"mp_rank_{rank:02d}") and files)
                held = torch.load(folder, weights_only=False)["model"]["decoder.layers.0.self_attention.k_layernorm.weight"]
                whole = weights["model.layers.0.self_attn.k_norm.weight"]
                part = rank * groups // 8
                expect(torch.equal(held, whole[part * dim:(part + 1) * dim]), f"minimax {seed}: the norm of keys of rank {rank}")
            exported(f"minimax {seed}: files of ranks", out, model)


# The fronts of the names of a tower: in the file, and in Megatron.
TOWERS = {"qwen2_5_vl": {"visual.": "visual."}, "ministral3": {"vision_tower.": "vision_tower.", "multi_modal_projector.": "multi_modal_projector."},
          "gemma3_vl": {"vision_tower.": "vision_tower."}, "gemma4_vl": {"model.vision_tower.": "vision_tower.", "model.embed_vision.": "embed_vision."},
          "glm4v_moe": {"model.visual.": "visual."}, "qwen2_audio": {"audio_tower.": "audio_tower.", "multi_modal_projector.": "multi_modal_projector."},
          "minimax_m3_vl": {"vision_tower.": "vision_tower.", "multi_modal_projector.": "multi_modal_projector.", "patch_merge_mlp.": "patch_merge_mlp."},
          "qwen3_omni_moe": {"thinker.visual.": "thinker.visual.", "thinker.audio_tower.": "thinker.audio_model."}}


def towers():
    models = Models("families", only=list(TOWERS))
    for name, fronts in TOWERS.items():
        model = models.path(name)
        source = load_file(os.path.join(model, "model.safetensors"))
        want = {to + key[len(front):]: t for front, to in fronts.items() for key, t in source.items() if key.startswith(front)}
        for grid in ("--tp 2", "--pp 2 --first-stage-layers 1", "--tp 4"):
            out = place("out")
            if not mckpt("convert", "to-mcore", model, out, *grid.split()):
                continue
            at, got = release(out)
            odd = [key for key in want if key not in got or not torch.equal(got[key].float(), want[key].float())]
            expect_equal(f"{name} {grid}: the tower", odd, [])
            expect_equal(f"{name} {grid}: whole tensors", [key for key in want if len(dcp.FileSystemReader(at).read_metadata().state_dict_metadata[key].chunks) != 1], [])
            exported(f"{name} {grid}", out, model)
            shutil.rmtree(out)


gemma_models()
minimax_models()
towers()
finish(100)
