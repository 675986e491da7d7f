"""Every family as transformers itself builds and writes it: each tensor of a tiny model is read by a parameter, and each
parameter finds its tensors, on one rank and on two.
"""

from mckpt_tests.checks import need
from mckpt_tests.program import run_mckpt
from mckpt_tests.transformers_models import BUILT, GOLDEN_FAMILIES, NO_CLASS, TINY, changed, golden_config, tiny_name

need("transformers")
import hashlib
import json
import os
import re
import sys
import tempfile

import torch
import transformers

transformers.utils.logging.disable_progress_bar()

BUFFERS = ("e_score_correction_bias", "layer_scalar", "tid2eid", "layer_multipliers", "ngram_heads_offsets", "ngram_heads_vocab_sizes", "input_min", "input_max", "output_min", "output_max", "std_bias", "std_scale")  # that are saved
failures = []
families = set()
compared = []


def mckpt(*args):
    run = run_mckpt(*args, timeout=60)
    return json.loads(run.stdout) if run.returncode == 0 else run.stderr


def check(what, config):
    """Builds, writes and checks a model of the config; `what` names it."""
    architecture = config["architectures"][0]
    with tempfile.TemporaryDirectory(prefix="mckpt_family_") as folder:
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(config, f)
        torch.manual_seed(1)
        model_class = getattr(transformers, architecture)
        model = model_class(transformers.AutoConfig.from_pretrained(folder)).to(torch.bfloat16)
        model.save_pretrained(folder)
        answer = mckpt("mappings", "check", folder, "--json", "-q")
        if isinstance(answer, str):
            return failures.append(f"{what}: {answer}")
        families.add(answer["family"])
        items = sum(p.numel() for p in {id(p): p for p in model.parameters()}.values())
        listed = mckpt("ls", folder, "--as", "megatron", "--digest", "--json", "-q")
        held = sum(dims_product(t["shape"]) for t in listed["tensors"])
        buffers = sum(b.numel() for name, b in model.named_buffers() if name.endswith(BUFFERS))
        more = sum(map(only_megatrons, model.modules()))
        if held not in (items + more, items + buffers + more):
            failures.append(f"{what}: {held} items held, the model has {items} and {buffers} in buffers, and Megatron {more} more")
        check_experts(what, model, listed["tensors"])
        # Megatron-FSDP cannot hold MiniMax's norms at tp 2, nor MiMo's sinks; DeepSeek-V4 has one tensor-parallel rank.
        grid = "--ep" if config["model_type"] in ("minimax_m2", "mimo_v2_flash", "deepseek_v4") else "--tp"
        fsdp = mckpt("ls", folder, "--as", "fsdp", grid, "2", "--vocab-size", "auto", "--json", "-q")
        if isinstance(fsdp, str):
            failures.append(f"{what} at {grid} 2: {fsdp}")


def check_refused(what, config, key):
    """A model with an entry that no table has: a conversion refuses the entry by name, and verify does not call the model unsound,
    in its text and in JSON."""
    with tempfile.TemporaryDirectory(prefix="mckpt_family_") as folder:
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(config, f)
        model = getattr(transformers, config["architectures"][0])(transformers.AutoConfig.from_pretrained(folder))
        model.to(torch.bfloat16).save_pretrained(folder)
        refused = run_mckpt("convert", "hf-to-fsdp", folder, os.path.join(folder, "run"), "--dry-run")
        if refused.returncode == 0 or "MC2003" not in refused.stderr or key not in refused.stderr:
            failures.append(f"{what}: not refused by {key}: {refused.stderr}")
        text, answer = run_mckpt("verify", folder), run_mckpt("verify", folder, "--json")
        if text.returncode != 0 or answer.returncode != 0 or key not in text.stdout or key not in answer.stdout:
            failures.append(f"{what}: verify does not say that the config was not judged: {text.stdout}")


def only_megatrons(module):
    """Items of keys, values and their norm that Megatron has in every attention layer of Gemma 4, and this one has not; the rows of
    gates that it has for every row of a head of Step-3.7."""
    if hasattr(module, "g_proj"):
        return module.g_proj.weight.numel() * (module.head_dim - 1)
    if getattr(module, "is_kv_shared_layer", False) and hasattr(module, "q_proj"):
        rows = module.q_proj.weight.shape[0] // module.num_key_value_groups
        return 2 * rows * module.q_proj.weight.shape[1] + module.head_dim
    return module.k_proj.weight.numel() if getattr(module, "use_alternative_attention", False) else 0


def sha(tensor):
    return hashlib.sha256(tensor.detach().contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()


def check_experts(what, model, listed):
    """Gate rows above up rows, out of the fused experts as the model itself computes with them."""
    digests = {t["name"]: t["sha256"] for t in listed}
    for name, experts in model.named_modules():
        fused = getattr(experts, "gate_up_proj", None)
        if not isinstance(fused, torch.Tensor) or fused.dim() != 3:
            continue
        layer = re.search(r"layers\.(\d+)\.", name)[1]
        interleaved = type(experts).__name__ == "GptOssExperts"  # gate[..., ::2], up[..., 1::2] of x @ gate_up
        turned = interleaved or type(experts).__name__ == "Llama4TextExperts"  # x @ gate_up
        for e in range(fused.shape[0]):
            fc1 = torch.cat([fused[e].T[0::2], fused[e].T[1::2]]) if interleaved else fused[e].T if turned else fused[e]
            fc2 = experts.down_proj[e].T if turned else experts.down_proj[e]
            for leaf, want in (("linear_fc1", fc1), ("linear_fc2", fc2)):
                ours = f"decoder.layers.{layer}.mlp.experts.{leaf}.weight{e}"
                if pool := re.search(r"(text|vision)_moe\.", name):
                    ours = f"decoder.layers.{layer}.mlp.{pool[1]}_moe_layer.experts.local_experts.{e}.{leaf}.weight"
                if sha(want) not in [digests.get(front + ours) for front in ("", "language_model.", "thinker.language_model.")]:
                    failures.append(f"{what}: {ours} is not what the model computes with")
                compared.append(ours)


def dims_product(dims):
    out = 1
    for d in dims:
        out *= d
    return out


def check_null_groups(model):
    """An explicit null for num_key_value_heads: mckpt takes it where transformers does, as the same number."""
    with tempfile.TemporaryDirectory(prefix="mckpt_family_") as folder:
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(changed(model, num_key_value_heads=None), f)
        try:
            config = transformers.AutoConfig.from_pretrained(folder)
            with torch.device("meta"):
                built = getattr(transformers, golden_config(model)["architectures"][0])(config)
            expected = sum(p.numel() for p in {id(p): p for p in built.parameters()}.values())
        except Exception:  # a class of huggingface_hub, which checks the types of entries
            expected = None
        answer = mckpt("ls", folder, "--as", "megatron", "--json", "-q")
        if isinstance(answer, str):
            found = None if "MC2001" in answer and "num_key_value_heads" in answer else answer
        else:
            found = sum(dims_product(t["shape"]) for t in answer["tensors"])
        if found != expected:
            failures.append(f"{model} with null for num_key_value_heads: {found} items, transformers has {expected}")
        return expected is not None


for config in TINY:
    check(tiny_name(config), config)
for model in GOLDEN_FAMILIES:
    check(model, golden_config(model))

check("ministral3, over Mistral", changed("ministral3", text_config=golden_config("mistral")))
check("exaone4, untied", changed("exaone4", tie_word_embeddings=False))
# Entries about layers without experts, which the class does not have.
for model in ("qwen3_5_moe", "qwen3_5_moe_text"):
    config = golden_config(model)
    config.get("text_config", config).update(decoder_sparse_step=2, mlp_only_layers=[0])
    check(model + ", with entries of Qwen3-Next", config)
# Classes with one shared expert, whatever the entry says.
for shared in (0, 2):
    for config in (next(c for c in TINY if c["model_type"] == "deepseek_v4"), golden_config("nemotron_h_moe")):
        check(f"{config['model_type']}, n_shared_experts {shared}", {**config, "n_shared_experts": shared})
check_refused("qwen3_vl, biases of attention", changed("qwen3_vl", attention_bias=True), "attention_bias")
check_refused("qwen3_moe, biases of attention", changed("qwen3_moe", attention_bias=True), "attention_bias")

for model in BUILT:
    check(model, golden_config(model))
for model in ("llama3", "qwen2_bias", "qwen3_dense", "deepseek_v3", "gpt_oss"):
    check(model + ", tied", changed(model, tie_word_embeddings=True))
check("qwen3_vl_moe, experts half as wide as the model", changed("qwen3_vl_moe", moe_intermediate_size=48))

for model in ("qwen3_5", "qwen3_5_moe"):
    text = golden_config(model)["text_config"]
    check(
        model + ", text alone",
        {**text, "architectures": [golden_config(model)["architectures"][0].replace("ForConditionalGeneration", "ForCausalLM")]},
    )
taken = [
    model
    for model in ("llama3", "qwen2_bias", "qwen3_dense", "qwen3_moe", "qwen3_vl", "qwen3_vl_moe", "qwen3_next", "qwen3_5", "qwen3_5_moe", "nemotron_h", "gpt_oss")
    if check_null_groups(model)
]
known = {f["name"] for f in mckpt("mappings", "list", "--json")["families"]}
if unseen := known - families - NO_CLASS.keys():
    failures.append(f"families that were not built: {sorted(unseen)}; mckpt_tests/transformers_models.py is to name them")
if stale := NO_CLASS.keys() & families | NO_CLASS.keys() - known | {f for f, name in NO_CLASS.items() if hasattr(transformers, name)}:
    failures.append(f"families listed as without a class of transformers, which are built, unknown, or have one: {sorted(stale)}")
if len(compared) < 1000:
    failures.append(f"only {len(compared)} experts compared")

for failure in failures:
    print("FAIL", failure)
print(
    f"transformers {transformers.__version__}: families {', '.join(sorted(families))}; {len(compared)} expert weights; null groups in {', '.join(taken)}; {len(failures)} failures"
)
sys.exit(1 if failures else 0)
