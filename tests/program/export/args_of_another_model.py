"""The args of the run that wrote a checkpoint, against its config.json. Where the bytes mean something else, nothing is written
unless that is accepted; where the config computes something else with the same weights, every command says both values. Megatron's
defaults say nothing in args that do not describe the model."""
import argparse
import json
import os
import re
import shutil
import tempfile

import torch

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SOURCE

SIZES, BYTES, VALUES = "kSizes", "kBytes", "kValues"
# model, arg, its value, value of the config, what a difference means
CASES = [
    ("qwen3_moe", "num_attention_heads", 4, "8", SIZES),
    ("qwen3_moe", "num_query_groups", 2, "4", SIZES),
    ("qwen3_moe", "hidden_size", 48, "96", SIZES),
    ("qwen3_moe", "apply_layernorm_1p", True, "False", BYTES),
    ("qwen3_next", "apply_layernorm_1p", False, "True", BYTES),
    ("qwen3_moe", "normalization", "LayerNorm", "RMSNorm", BYTES),
    ("qwen3_moe", "rotary_interleaved", True, "False", BYTES),
    ("ernie4_5_moe", "rotary_interleaved", False, "True", BYTES),
    ("qwen3_moe", "swiglu", False, "True", BYTES),
    ("gpt_oss", "swiglu", True, "False", BYTES),
    ("qwen3_moe", "squared_relu", True, "False", BYTES),
    ("nemotron_h", "squared_relu", False, "True", BYTES),
    ("qwen3_moe", "quick_geglu", True, "False", BYTES),
    ("qwen3_moe", "moe_mlp_glu_interleave_size", 32, "None", BYTES),
    ("qwen3_moe", "moe_shared_expert_glu_interleave_size", 32, "None", BYTES),
    ("qwen3_next", "linear_num_key_heads", 2, "4", SIZES),
    ("qwen3_next", "linear_num_value_heads", 4, "8", SIZES),
    ("qwen3_next", "linear_key_head_dim", 24, "12", SIZES),
    ("qwen3_next", "linear_value_head_dim", 40, "20", SIZES),
    ("nemotron_h", "mamba_num_heads", 4, "8", SIZES),
    ("nemotron_h", "mamba_head_dim", 40, "20", SIZES),
    ("nemotron_h", "mamba_state_dim", 56, "28", SIZES),
    ("nemotron_h", "mamba_num_groups", 2, "4", SIZES),
    ("deepseek_v3", "qk_head_dim", 18, "20", SIZES),
    ("deepseek_v3", "qk_pos_emb_head_dim", 10, "8", SIZES),
    ("deepseek_v3", "v_head_dim", 16, "14", SIZES),
    ("qwen3_moe", "norm_epsilon", 1e-3, None, VALUES),
    ("qwen3_moe", "apply_residual_connection_post_layernorm", True, "False", VALUES),
    ("qwen3_moe", "position_embedding_type", "learned_absolute", "rope", VALUES),
    ("qwen3_moe", "rotary_base", 77, None, VALUES),
    ("qwen3_moe", "rotary_percent", 0.5, "1", VALUES),
    ("qwen3_moe", "rotary_seq_len_interpolation_factor", 4, "None", VALUES),
    ("linear", "rotary_seq_len_interpolation_factor", None, "2", VALUES),
    ("qwen3_moe", "use_rope_scaling", True, "False", VALUES),
    ("llama3", "use_rope_scaling", False, "True", VALUES),
    ("llama3", "rope_scaling_factor", 32.0, "8", VALUES),
    ("gpt_oss", "position_embedding_type", "rope", "yarn", VALUES),
    ("gpt_oss", "yarn_rotary_scaling_factor", 16.0, "32", VALUES),
    ("gpt_oss", "yarn_original_max_position_embeddings", 17, None, VALUES),
    ("gpt_oss", "yarn_beta_fast", 7.5, None, VALUES),
    ("gpt_oss", "yarn_beta_slow", 7.5, None, VALUES),
    ("gpt_oss", "activation_func_clamp_value", 3.5, "7", VALUES),
    ("gpt_oss", "glu_linear_offset", 0.0, "1", VALUES),
    ("deepseek_v3", "rope_type", "yarn", "rope", VALUES),
    ("yarn", "rotary_scaling_factor", 3.5, "40", VALUES),
    ("yarn", "original_max_position_embeddings", 17, "4096", VALUES),
    ("yarn", "beta_fast", 7.5, "32", VALUES),
    ("yarn", "beta_slow", 7.5, "1", VALUES),
    ("yarn", "mscale", 0.75, "1", VALUES),
    ("yarn", "mscale_all_dim", 0.75, "0.5", VALUES),
    ("qwen3_moe", "no_rope_freq", 4, "None", VALUES),
    ("qwen3_moe", "softmax_type", "off-by-one", "vanilla", VALUES),
    ("qwen3_moe", "moe_router_topk", 7, None, VALUES),
    ("qwen3_moe", "moe_router_score_function", "sigmoid", "softmax", VALUES),
    ("qwen3_moe", "moe_router_pre_softmax", True, "False", VALUES),
    ("qwen3_moe", "moe_router_topk_scaling_factor", 2.5, "1", VALUES),
    ("deepseek_v3", "moe_router_topk_scaling_factor", None, "2.5", VALUES),
    ("deepseek_v3", "moe_router_num_groups", None, "4", VALUES),
    ("deepseek_v3", "moe_router_group_topk", 3, "2", VALUES),
    ("qwen3_moe", "moe_apply_probs_on_input", True, "False", VALUES),
    ("qwen3_moe", "use_mup", True, "False", VALUES),
]
# The names of the same facts in newer args.
NEWER = [
    ("apply_layernorm_1p", "layernorm_zero_centered_gamma", True, BYTES),
    ("norm_epsilon", "layernorm_epsilon", 1e-3, VALUES),
]
# Args that are quiet: names and shapes show them, they are other words for one thing, or the run leaves them to Megatron.
QUIET = [
    ("untie_embeddings_and_output_weights", False), ("kv_channels", 7), ("qk_layernorm", False), ("add_bias_linear", True),
    ("position_embedding_type", "mrope"), ("rotary_base", None), ("rotary_base", 10000.0), ("normalization", None),
    ("moe_router_num_groups", 1), ("tokenizer_type", "X"),
]  # yapf: disable
# Args of a program that does not build its model of them.
DEFAULTS = {
    "normalization": "LayerNorm", "norm_epsilon": 1e-5, "apply_layernorm_1p": False, "position_embedding_type": "learned_absolute",
    "rotary_base": 10000, "rotary_percent": 1.0, "swiglu": False, "squared_relu": False, "add_bias_linear": True, "add_qkv_bias": False,
    "qk_layernorm": False, "untie_embeddings_and_output_weights": False, "moe_router_topk": 2, "moe_router_pre_softmax": False,
    "moe_router_score_function": "softmax", "moe_router_topk_scaling_factor": None, "moe_router_num_groups": None,
    "kv_channels": None, "use_rope_scaling": False, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "mamba_head_dim": 64, "mamba_state_dim": 128, "mamba_num_groups": 8, "qk_head_dim": 128,
    "qk_pos_emb_head_dim": 64, "v_head_dim": 128,
}  # yapf: disable

# Golden models with other rotary embeddings.
STRETCHED = {
    "yarn": ("deepseek_v3", {"rope_type": "yarn", "factor": 40.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 0.5,
                             "original_max_position_embeddings": 4096}),
    "linear": ("qwen3_moe", {"rope_type": "linear", "factor": 2.0}),
}  # yapf: disable

work = tempfile.TemporaryDirectory(prefix="mckpt_args_of_another_")
models = Models("models", only=sorted({case[0] for case in CASES} - {"ernie4_5_moe", *STRETCHED}))
families = Models("families", only=["ernie4_5_moe"])
os.chdir(work.name)


def rank_file(folder):
    return f"{folder}/release/mp_rank_00/model_optim_rng.pt"


def run_of(model):
    """The folder of a run, made once, without the sums that find every change."""
    if not os.path.exists(model):
        golden, stretched = STRETCHED.get(model, (model, None))
        source = families.path(model) if model == "ernie4_5_moe" else models.path(golden)
        if stretched:
            shutil.copytree(source, f"{model}_model")
            with open(f"{model}_model/config.json") as f:
                config = json.load(f)
            config["rope_parameters"] = {**config.get("rope_parameters", {}), **stretched}
            with open(f"{model}_model/config.json", "w") as f:
                json.dump(config, f)
            source = f"{model}_model"
        made = run_mckpt("convert", "to-pt", source, model, "--no-sync", "-q")
        expect(made.returncode == 0, f"{model}: {made.stderr}")
        os.remove(f"{model}/release/mckpt_manifest.json")
    return model


def changed(model, fields, without=()):
    shutil.rmtree("changed", ignore_errors=True)
    shutil.copytree(run_of(model), "changed")
    state = torch.load(rank_file("changed"), weights_only=False)
    kept = {k: v for k, v in vars(state["args"]).items() if k not in without}
    state["args"] = argparse.Namespace(**{**kept, **fields})
    torch.save(state, rank_file("changed"))
    return "changed"


def export(folder, *flags):
    shutil.rmtree("out", ignore_errors=True)
    return run_mckpt("export", folder, "out", "--no-sync", *flags)


def verified(folder, *flags):
    run = run_mckpt("verify", folder, "--json", *flags)
    return run.returncode, [f for f in json.loads(run.stdout)["findings"] if f["code"] == "MC2015"]


def facts(folder):
    return json.loads(run_mckpt("inspect", folder, "--json").stdout)["facts"].get("against config.json", "")


def judge(what, folder, name, value, of_config, kind):
    done = export(folder)
    of_config = of_config or ""
    value = int(value) if isinstance(value, float) and value == int(value) else value
    if kind == VALUES:
        line = f"{name} is {value} in the args of the run, and {of_config}"
        expect(done.returncode == 0 and f"warning[MC2015]: {folder}/release/hf_assets/config.json: {line}" in done.stderr, f"{what}: {done.stderr}")
        found = json.loads(export(folder, "--json").stdout)["findings"]
        expect([f["code"] for f in found] == ["MC2015"] and line in found[0]["message"], f"{what}: --json {found}")
        status, found = verified(folder)
        expect(status == 0 and len(found) == 1 and found[0]["warning"] and line in found[0]["message"], f"{what}: verify {status} {found}")
        expect(verified(folder, "--strict")[0] == 1, f"{what}: verify --strict")
    else:
        words = [f"expected {name} {value}, as in the args of {folder}/release", f"found    {name} {of_config}"]
        expect(done.returncode == 4 and all(w in done.stderr for w in ["error[MC2015]", *words]), f"{what}: {done.stderr}")
        expect(not os.path.exists("out"), f"{what}: something was written")
        status, found = verified(folder)
        expect(status == 1 and len(found) == 1 and not found[0]["warning"] and f"{name} {value}" in found[0]["message"], f"{what}: verify {status} {found}")
        accepted = export(folder, "--accept", "MC2015")
        if kind == BYTES:
            expect(accepted.returncode == 0 and f"warning[MC2015]: {folder}/release/hf_assets/config.json: {name} is {value}" in accepted.stderr, f"{what}: {accepted.stderr}")
        else:
            expect(accepted.returncode == 4, f"{what}: sizes are accepted: {accepted.stderr}")
    expect(f"{name} {value}, not {of_config}" in facts(folder), f"{what}: inspect says {facts(folder)}")


for model, name, value, of_config, kind in CASES:
    judge(f"{model} {name} {value}", changed(model, {name: value}), name, 1 if value is None and name.endswith("topk_scaling_factor") else value, of_config, kind)
for name, newer, value, kind in NEWER:
    judge(newer, changed("qwen3_moe", {newer: value}, without=[name]), newer, value, None, kind)

# Every row that says something has a case.
with open(os.path.join(SOURCE, "lib", "convert", "facts", "unlike_args.cc")) as f:
    rows = re.findall(r'\{"(\w+)",\s*"(\w*)",\s*Unlike::(\w+)', f.read())
expect(len(rows) > 50, f"{len(rows)} rows")
have = {(name, kind) for _, name, _, _, kind in CASES} | {("num_experts", SIZES)}  # which MC1312 finds first
expect_equal("cases", sorted({(name, kind) for name, _, kind in rows if kind != "kShown"}), sorted(have))
with open(os.path.join(SOURCE, "docs", "formats", "megatron_args.md")) as f:
    section = f.read().split("## Facts that are compared with config.json")[1].split("\n## ")[0]
told = {"refused": SIZES, "refused, or accepted": BYTES, "a warning": VALUES}
page = [(cells[1].strip(" `"), told[cells[4].strip()]) for cells in (line.split("|") for line in section.splitlines() if line.startswith("| `"))]
expect_equal("rows of the page", page, [(name, kind) for name, _, kind in rows if kind != "kShown"])

# Nothing is said of a run that fits, nor of what is not to be compared.
for model in sorted({case[0] for case in CASES}):
    done = export(run_of(model))
    expect(done.returncode == 0 and "MC2015" not in done.stderr, f"{model}: {done.stderr}")
    expect(verified(model) == (0, []) and facts(model) == "", f"{model}: {verified(model)} {facts(model)}")
for name, value in QUIET:
    done = export(changed("qwen3_moe", {name: value}))
    expect(done.returncode == 0 and "MC2015" not in done.stderr, f"{name} {value}: {done.stderr}")

# Args with the model's sizes and Megatron's defaults do not describe the model. A value that somebody chose counts all the same.
for model in ("qwen3_moe", "qwen3_next", "llama3", "deepseek_v3", "nemotron_h"):
    own = [*DEFAULTS, "moe_router_group_topk", "rope_scaling_factor", "rotary_interleaved"]
    done = export(changed(model, DEFAULTS, without=own))
    expect(done.returncode == 0 and "MC2015" not in done.stderr, f"defaults, {model}: {done.stderr}")
    done = export(changed(model, {**DEFAULTS, "rotary_interleaved": True}, without=own))
    expect(done.returncode == 4 and "rotary_interleaved True" in done.stderr, f"a choice among defaults, {model}: {done.stderr}")
done = export(changed("qwen3_moe", {"norm_epsilon": 1e-5}, without=["num_layers"]))
expect("MC2015" not in done.stderr, f"args without sizes: {done.stderr}")

# Args of a share of each head that config.json gives too, and with which the class does not compute.
folder = changed("qwen3_moe", {"rotary_percent": 0.5})
for share, why in ((0.5, "the part 0.5"), (0.25, "the part 0.25"), (1.0, None)):
    with open(f"{folder}/release/hf_assets/config.json") as f:
        config = json.load(f)
    with open(f"{folder}/release/hf_assets/config.json", "w") as f:
        json.dump({**config, "partial_rotary_factor": share, "rope_parameters": {**config.get("rope_parameters", {}), "partial_rotary_factor": share}}, f)
    line = "rotary_percent is 0.5 in the args of the run, and 1 by config.json (partial_rotary_factor)"
    line += f": config.json says that {why} of each head is rotated, which transformers' class of qwen3_moe does not compute with" if why else ""
    status, found = verified(folder)
    expect(status == 0 and [f["message"].split(";")[0] for f in found] == [line], f"config.json says {share}: {status} {found}")

# Other formats keep the args, and every door says the same.
folder = changed("qwen3_moe", {"rotary_base": 77})
for kind, made in (("to-mcore", "core"), ("to-fsdp", "fsdp"), ("reshard", "again")):
    done = run_mckpt("convert", kind, folder, made, "--no-sync", "--tp", "1")
    expect(done.returncode == 0 and "rotary_base is 77" in done.stderr, f"{kind}: {done.stderr}")
    done = export(made)
    expect(done.returncode == 0 and "rotary_base is 77" in done.stderr, f"export of {made}: {done.stderr}")
    status, found = verified(made)
    expect(status == 0 and len(found) == 1 and "rotary_base is 77" in found[0]["message"], f"verify {made}: {status} {found}")
    expect("rotary_base 77" in facts(made), f"inspect {made}: {facts(made)}")
    assets = f"{made}/release/hf_assets"
    status, found = verified(made, "--assets", assets)
    expect(status == 0 and len(found) == 1, f"verify {made} --assets: {status} {found}")
    done = run_mckpt("verify", "out", "--against", made)
    expect(done.returncode == 0 and "rotary_base is 77" in done.stdout + done.stderr, f"verify --against {made}: {done.stdout}{done.stderr}")
folder = changed("qwen3_moe", {"apply_layernorm_1p": True})
for kind in ("to-mcore", "to-fsdp", "reshard"):
    done = run_mckpt("convert", kind, folder, "no", "--no-sync", "--tp", "1")
    expect(done.returncode == 4 and "apply_layernorm_1p True" in done.stderr and not os.path.exists("no"), f"{kind}: {done.stderr}")

# Two saves of one run are compared and laid out, whatever weights their bytes are. A Hugging Face folder is not equal to such a run.
for kind, made in (("to-mcore", "core"), ("to-fsdp", "fsdp")):
    done = run_mckpt("convert", kind, folder, f"{made}_1p", "--no-sync", "--accept", "MC2015")
    expect(done.returncode == 0 and "apply_layernorm_1p is True" in done.stderr, f"{kind}: {done.stderr}")
    done = run_mckpt("verify", f"{made}_1p", "--against", folder)
    expect(done.returncode == 0 and "apply_layernorm_1p is True" in done.stderr, f"verify {made}_1p: {done.stdout}{done.stderr}")
    status, found = verified(f"{made}_1p")
    values = ("expected apply_layernorm_1p True", "found apply_layernorm_1p False")
    expect(status == 1 and len(found) == 1 and all(v in found[0]["message"] for v in values), f"verify {made}_1p: {status} {found}")
    for flags in ((), ("--assets", f"{made}_1p/release/hf_assets")):
        status, found = verified(f"{made}_1p", "--accept", "MC2015", *flags)
        expect(status == 0 and len(found) == 1 and found[0]["warning"] and "apply_layernorm_1p is True" in found[0]["message"], f"verify {made}_1p, accepted {flags}: {status} {found}")
    done = run_mckpt("layout", f"{made}_1p")
    expect(done.returncode == 0, f"layout {made}_1p: {done.stderr}")
shutil.copytree(f"{folder}/release/hf_assets", "given")
done = run_mckpt("export", folder, "no", "--assets", "given", "--no-sync")
expect("the assets are of another model than the checkpoint" in done.stderr and "if the facts in the args are wrong, --accept MC2015 goes by config.json" in done.stderr, f"--assets: {done.stderr}")
done = run_mckpt("verify", "out", "--against", folder)
expect(done.returncode == 4 and "apply_layernorm_1p True" in done.stderr, f"verify of a folder: {done.stdout}{done.stderr}")
done = run_mckpt("verify", "out", "--against", folder, "--accept", "MC2015")
expect(done.returncode == 0 and "apply_layernorm_1p is True" in done.stderr, f"verify of a folder, accepted: {done.stdout}{done.stderr}")


# In files of ranks and below a folder of several checkpoints, too. Other codes are of comparisons, and a card knows no problems.
status, found = verified(folder, "--accept", "MC2015")
expect(status == 0 and len(found) == 1 and "apply_layernorm_1p is True" in found[0]["message"], f"verify {folder}, accepted: {status} {found}")
os.mkdir("several")
for name in ("core_1p", "fsdp_1p"):
    shutil.copytree(name, f"several/{name}")
for flags, expected in (((), 1), (("--accept", "MC2015"), 0)):
    done = run_mckpt("verify", "several", *flags)
    expect(done.returncode == expected, f"verify several {flags}: {done.stdout}{done.stderr}")
for flags, words in ((("MC1311",), "--accept MC1311 has a meaning only with --against"), (("MC2015", "--card", "card.json"), "--accept has no meaning with --card")):
    done = run_mckpt("verify", folder, "--accept", *flags)
    expect(done.returncode == 2 and words in done.stderr, f"verify --accept {flags}: {done.returncode} {done.stderr}")
expect(verified(changed("qwen3_moe", {"num_query_groups": 2}), "--accept", "MC2015")[0] == 1, "sizes are accepted")

# Megatron-Bridge saves no args: run_config.yaml has the fields of its provider.
PROVIDER = "model:\n  num_layers: 3\n  hidden_size: 96\n  layernorm_zero_centered_gamma: {}\n  layernorm_epsilon: 1.0e-06\n  rotary_base: {}\n  share_embeddings_and_output_weights: false\ntrain:\n  rotary_interleaved: true\n"
for norms, base, words in (("false", 77, "warning[MC2015]"), ("true", 77, "expected layernorm_zero_centered_gamma True, as in run_config.yaml of")):
    shutil.rmtree("changed", ignore_errors=True)
    shutil.copytree(run_of("qwen3_moe"), "changed")
    state = torch.load(rank_file("changed"), weights_only=False)
    del state["args"]
    torch.save(state, rank_file("changed"))
    with open("changed/release/run_config.yaml", "w") as f:
        f.write(PROVIDER.format(norms, base))
    done = export("changed", "--source-tp", "1", "--source-etp", "1")
    expect(words in done.stderr and (norms == "true" or "rotary_base is 77 in run_config.yaml of the run" in done.stderr), f"run_config.yaml {norms}: {done.stderr}")
    key = facts("changed")
    expect("run_config.yaml: " in key and "rotary_base 77, not " in key, f"run_config.yaml {norms}: inspect says {key}")
    if norms == "true":
        words = ("config.json, which is kept with the checkpoint, is of another model", "if the facts in run_config.yaml are wrong, --accept MC2015 goes by config.json")
        expect(all(w in done.stderr for w in words), f"run_config.yaml: {done.stderr}")

# A DCP folder without args takes sizes and facts from run_config.yaml, so the file is not listed as not read.
shutil.copytree("core", "bridge")
os.remove("bridge/release/mckpt_manifest.json")
state = torch.load("bridge/release/common.pt", weights_only=False)
del state["args"]
torch.save(state, "bridge/release/common.pt")
for text, read in ((PROVIDER.format("false", 10000), True), ("train:\n  rotary_interleaved: true\n", False)):
    with open("bridge/release/run_config.yaml", "w") as f:
        f.write(text)
    unread = [u["path"] for u in json.loads(run_mckpt("verify", "bridge", "--json").stdout)["unread"]]
    expect(("release/run_config.yaml" in unread) != read, f"run_config.yaml, read {read}: not read {unread}")

# An MLP without a gate has squared ReLU only if the config says so: GPT-NeoX has GELU.
OWN = os.path.join(SOURCE, "test_data", "own_families")
done = run_mckpt("convert", "to-pt", f"{OWN}/gpt_neox", "neox", "--map-file", f"{OWN}/maps/gpt_neox.json", "--no-sync", "-q")
expect(done.returncode == 0, done.stderr)
args = torch.load(rank_file("neox"), weights_only=False)["args"]
expect(args.squared_relu is False and args.swiglu is False, f"args of GELU without a gate: squared_relu {args.squared_relu}, swiglu {args.swiglu}")

finish(least=380)
