"""The open questions of a draft, and the answer of every command to an unknown model: rows of the nearest family that do not fit
are marked, and so are tensors that no row reads; nothing is guessed. Models of a few tensors, made here.
"""
import json
import os
import shutil
import struct
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import TINY_MODEL

H, HEADS, KV, D, FFN, V, LAYERS = 12, 4, 2, 3, 10, 14, 2
CONFIG = {"model_type": "mystery", "architectures": ["MysteryForCausalLM"], "hidden_size": H, "num_attention_heads": HEADS,
          "num_key_value_heads": KV, "head_dim": D, "intermediate_size": FFN, "vocab_size": V, "num_hidden_layers": LAYERS,
          "tie_word_embeddings": False}
LLAMA = {"self_attn.q_proj.weight": [HEADS * D, H], "self_attn.k_proj.weight": [KV * D, H], "self_attn.v_proj.weight": [KV * D, H],
         "self_attn.o_proj.weight": [H, HEADS * D], "mlp.gate_proj.weight": [FFN, H], "mlp.up_proj.weight": [FFN, H],
         "mlp.down_proj.weight": [H, FFN], "input_layernorm.weight": [H], "post_attention_layernorm.weight": [H]}
ONCE = {"model.embed_tokens.weight": [V, H], "model.norm.weight": [H], "lm_head.weight": [V, H]}
root = tempfile.TemporaryDirectory(prefix="mckpt_draft_")


def place(name):
    return os.path.join(root.name, name)


def model(name, layer, once=ONCE, only_in=(), **config):
    """A folder with these tensors; the tensors of `only_in` are in layer 1 alone."""
    shapes = dict(once)
    for n in range(LAYERS):
        shapes.update({f"model.layers.{n}.{leaf}": shape for leaf, shape in layer.items() if n == 1 or leaf not in only_in})
    header, at = {}, 0
    for tensor, shape in shapes.items():
        size = 2
        for d in shape:
            size *= d
        header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    os.mkdir(place(name))
    with open(os.path.join(place(name), "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + bytes(at))
    with open(os.path.join(place(name), "config.json"), "w") as f:
        json.dump({**CONFIG, **config}, f)
    return place(name)


def mckpt(status, *args):
    done = run_mckpt(*args, timeout=60)
    expect(done.returncode == status, f"{args}: exit status {done.returncode}, not {status}: {done.stdout[-600:]}{done.stderr[-600:]}")
    return done


def draft(folder):
    answer = json.loads(mckpt(0, "mappings", "draft", folder, "--json").stdout)
    return answer, json.loads(answer["map"])


def without(layer, *names):
    return {leaf: shape for leaf, shape in layer.items() if leaf not in names}


# A family under another name: no row, and the map is complete.
plain = model("plain", LLAMA)
answer, rows = draft(plain)
expect_equal("llama by another name", [answer["base"], answer["explained"], answer["tensors"], rows], ["llama", 21, 21, {"base": "llama", "rows": []}])
# Rows that do not fit: a row without its tensors or their shapes, by its Megatron name, and a tensor without a row, by its own.
LAYER = "model.layers.{L}."
cases = {
    "no norm": (without(LLAMA, "post_attention_layernorm.weight"), {},
                [("mlp.linear_fc1.layer_norm_weight", f"no tensor is {LAYER}post_attention_layernorm.weight")]),
    "biases": ({**LLAMA, "self_attn.o_proj.bias": [H], "mlp.down_proj.bias": [H]}, {},
               [(LAYER + name, "no row of llama reads this tensor") for name in ("self_attn.o_proj.bias", "mlp.down_proj.bias")]),
    "another width": ({**LLAMA, "mlp.down_proj.weight": [H, FFN + 1]}, {},
                      [("mlp.linear_fc2.weight", f"{LAYER}mlp.down_proj.weight has the shape [12, 11], not [hidden ffn] = [12, 10]")]),
    "w1": ({**without(LLAMA, "mlp.gate_proj.weight", "mlp.up_proj.weight"), "mlp.w3.weight": [FFN, H], "mlp.w1.weight": [FFN, H]}, {},
           [("mlp.linear_fc1.weight", f"no tensor is {LAYER}mlp.gate_proj.weight; no tensor is {LAYER}mlp.up_proj.weight"),
            (LAYER + "mlp.w3.weight", "no row of llama reads this tensor"), (LAYER + "mlp.w1.weight", "no row of llama reads this tensor")]),
    "keys alone": (without(LLAMA, "self_attn.q_proj.weight"), {},
                   [("self_attention.linear_qkv.weight", f"no tensor is {LAYER}self_attn.q_proj.weight")]),
    "nobody knows": ({**LLAMA, "mystery.weight": [FFN, 7]}, {}, [(LAYER + "mystery.weight", "no row of llama reads this tensor: which parameter is it?")]),
}
for name, (layer, config, want) in cases.items():
    answer, rows = draft(model(name, layer, **config))
    got = [(r["megatron"].removeprefix("decoder.layers.{L}.") or r["hugging_face"][0][0], r.get("todo", "")) for r in rows["rows"]]
    expect_equal(f"{name}: rows", [answer["base"], *sorted(g[0] for g in got)], ["llama", *sorted(w[0] for w in want)])
    for what, start in want:
        expect(any(g == what and todo.startswith(start) for g, todo in got), f"{name}: {what}: no {start!r}: {got}")
    expect_equal(f"{name}: to decide", [answer["to_decide"]], [len(want)])
    with open(place(name + ".json"), "w") as f:
        f.write(answer["map"])
    done = mckpt(3, "mappings", "check", place(name), place(name + ".json"))
    expect("the map is a draft" in done.stderr and all(start in done.stderr for _, start in want), f"{name}: {done.stderr}")
# Other spellings of the config, and a model without an output layer, which is tied.
short = {k: v for k, v in CONFIG.items() if k not in ("hidden_size", "num_hidden_layers", "tie_word_embeddings")}
gpt = model("spellings", LLAMA, {k: v for k, v in ONCE.items() if k != "lm_head.weight"})
with open(os.path.join(gpt, "config.json"), "w") as f:
    json.dump({**short, "n_embd": H, "n_layer": LAYERS}, f)
answer, rows = draft(gpt)
expect_equal("entries", [rows["config"]], [{"hidden_size": {"key": "n_embd"}, "num_hidden_layers": {"key": "n_layer"}, "tie_word_embeddings": True}])
mckpt(0, "mappings", "draft", gpt, place("spellings.json"))
mckpt(4, "mappings", "draft", gpt, place("spellings.json"))  # it may have a person's decisions
mckpt(0, "convert", "hf-to-fsdp", gpt, place("ckpt"), "--map-file", place("spellings.json"), "--tp", 2, "--no-sync")
for command in (["verify", place("ckpt"), "--against", gpt], ["convert", "reshard", place("ckpt"), place("moved"), "--tp", 1, "--dp", 2, "--no-sync"],
                ["export", place("moved"), place("back"), "--no-sync"], ["verify", place("back"), "--against", place("ckpt")],
                ["roundtrip", place("back"), "--until", "check"]):
    done = run_mckpt(*command, timeout=60)
    expect(done.returncode == 0 or "MC0004" in done.stderr, f"{command}: {done.stderr[-600:]}")
# Every command that needs the model answers with the way on.
for command in (["convert", "hf-to-fsdp", plain, place("none")], ["ls", plain, "--as", "megatron"], ["layout", plain, "--tp", 2],
                ["mappings", "check", plain]):
    done = run_mckpt(*command, timeout=60)
    for word in ("MC2002", "the nearest family is llama, which explains 21 of 21 tensors", "mckpt mappings draft"):
        expect(done.returncode == 3 and word in done.stderr, f"{command}: no '{word}': {done.stderr[-600:]}")
# inspect looks at such a model too, and says that no family has its type.
for folder, value in ((plain, "unknown; by its tensors the nearest family is llama, which explains 21 of 21 tensors"),
                      (place("back"), "that of mckpt_map.json")):
    facts = json.loads(mckpt(0, "inspect", folder, "--json").stdout)["facts"]
    expect(facts.get("family") == value, f"facts of {folder}: {facts}")
    done = mckpt(0, "inspect", folder)
    expect(f"family {value}" in done.stdout, f"inspect {folder}: {done.stdout[:400]}")
    expect((f"mckpt mappings draft {folder} map.json" in done.stderr) == (folder == plain), f"inspect {folder}: {done.stderr}")
# If families explain as many tensors, the one with the nearest name is named.
named = place("named")
shutil.copytree(TINY_MODEL, named)
config = json.load(open(os.path.join(named, "config.json")))
for change in ({"model_type": "qwen3_moe_plus", "architectures": ["MysteryForCausalLM"]},
               {"model_type": "mystery", "architectures": ["Qwen3MoePlusForCausalLM"]}):
    with open(os.path.join(named, "config.json"), "w") as f:
        json.dump({**config, **change}, f)
    facts = json.loads(mckpt(0, "inspect", named, "--json").stdout)["facts"]
    expect(facts.get("family", "").startswith("unknown; by its tensors the nearest family is qwen3_moe, which explains 45 of 45"), f"facts: {facts}")
# To stdout, by name or without one, and never to a file of that name.
for args in ([], ["-"]):
    done = run_mckpt("mappings", "draft", plain, *args, timeout=60, cwd=root.name)
    expect(json.loads(done.stdout) == {"base": "llama", "rows": []}, f"draft {args}: {done.stdout}")
expect(not os.path.exists(place("-")), "a file named - was made")
# A model of which no family explains anything has no draft.
strange = model("strange", {"a.weight": [H, 5]}, {"b.weight": [7]})
expect("no family explains any of the tensors" in mckpt(3, "mappings", "draft", strange).stderr, "a draft of a strange model")
# A family whose reader does not take the config is named by its tensors, and what it does not take is said.
refused = mckpt(0, "mappings", "draft", model("refused", LLAMA, num_experts_per_tok="two", hidden_act=7)).stderr
expect("the reader of llama does not take the config as it is" in refused, f"attention_bias: {refused}")
# Entries that a map does not compare are listed: entries that change what is computed.
answer, rows = draft(model("layered", LLAMA, rope_parameters={"rope_theta": 1e4, "partial_rotary_factor": 0.25}, logit_scale=0.0625,
                           residual_multiplier=1.0, hidden_act="silu", use_parallel_residual=False))
expect_equal("computation", answer["computation"], ["rope_parameters.partial_rotary_factor 0.25", "logit_scale 0.0625", "hidden_act silu"])
done = mckpt(0, "mappings", "draft", place("layered"))
expect("not compared: how the model computes" in done.stderr and "logit_scale 0.0625" in done.stderr, f"draft: {done.stderr}")
# The base of a model of a known family is that family, if no other explains more.
answer, rows = draft(TINY_MODEL)
expect_equal("a known family", (answer["base"], answer["explained"], rows["rows"]), ("qwen3_moe", 45, []))
# A map is an argument of a draft, and not an option.
expect("--map-file has a meaning only for" in mckpt(2, "mappings", "draft", plain, "--map-file", place("bad.json")).stderr, "draft --map-file")
# A base that is none, and a map without a base for an unknown type.
for text, word in (('{"base": "lama"}', "MC2009"), ('{"rows": []}', "MC2002"), ('{"base": "none", "rows": []}', "no rows of layers"),
                   ('{"base": "llama", "remove": ["decoder.nothing"]}', "no row to remove"),
                   ('{"base": "llama", "config": {"hidden_size": {"key": "width"}}}', "which config.json does not have"),
                   ('{"base": "llama", "config": {"hiden_size": 8}}', "did you mean 'hidden_size'?"),
                   ('{"base": "none", "config": {"sliding_windows": 8}}', "a map without a base reads no such entry")):
    with open(place("bad.json"), "w") as f:
        f.write(text)
    done = mckpt(3, "mappings", "check", plain, place("bad.json"))
    expect(word in done.stderr, f"{text}: no '{word}': {done.stderr[-400:]}")
finish(112)
