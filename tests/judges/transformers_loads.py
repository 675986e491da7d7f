"""transformers as the judge of what `export` writes: a tiny model of every family that it has is saved, converted to a grid,
exported in several files, and loaded again. Weights are equal bit for bit, and so are the logits; what lay beside the weights
is the same byte for byte.
"""

import os
import sys

from mckpt_tests.checks import need
from mckpt_tests.program import run_mckpt
from mckpt_tests.transformers_models import GOLDEN_FAMILIES, NO_CLASS, TINY, changed, golden_config, tiny_name

need("transformers")
import importlib.machinery  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import tempfile  # noqa: E402

import torch  # noqa: E402
import transformers  # noqa: E402

from mckpt_tests.judge import raw_bytes  # noqa: E402

# The project's own script, whose name ends with no .py.
loader = importlib.machinery.SourceFileLoader("logits", os.path.join(os.environ["MCKPT_SOURCE"], "scripts", "logits"))
LOGITS = importlib.util.module_from_spec(importlib.util.spec_from_loader("logits", loader))
loader.exec_module(LOGITS)

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()
torch.set_num_threads(1)  # the models are tiny
BESIDE = {
    "tokenizer.json": b"{}\n",
    "tokenizer_config.json": b"{ }",
    "chat_template.jinja": b"{{ x }}\r\n",
    "modeling_custom.py": b"raise SystemExit\n",
    "merges.txt": "Ġ Ġ\n".encode(),
    "vocab.json": b"{}",
}
MODELS = {
    "llama3": "--tp 2",
    "qwen2_bias": "--dp 3",
    "qwen3_dense": "--tp 4",
    "qwen3_moe": "--tp 2 --ep 4",
    "qwen3_vl": "--dp 2",
    "qwen3_vl_moe": "--ep 8 --dp 8",
    "qwen3_next": "--tp 2 --ep 2",
    "qwen3_5": "--tp 2 --dp 2",
    "qwen3_5_moe": "--ep 4 --dp 4",
    "nemotron_h": "--tp 2",
    "nemotron_h_moe": "--tp 2 --ep 2",
    "deepseek_v3": "--tp 2",
    "deepseek_v3_noq": "--dp 2 --tp 2",
    "gpt_oss": "--tp 2 --ep 4",
    "gpt_oss_square": "--ep 2 --dp 2",
    "gpt_oss_2i": "--tp 2",
    "qwen3_moe_mlponly": "--tp 2 --ep 2",
    "qwen3_moe_sparse2": "--ep 2 --dp 4",
}
TIED = ("llama3", "qwen3_dense", "deepseek_v3", "gpt_oss")
# Megatron-FSDP cannot hold MiniMax-M2's norms at tp 2, nor cut the rows of latent attention at dp 2 in sizes so small.
LATENT = ("deepseek_v2", "deepseek_v32", "glm4_moe_lite", "glm_moe_dsa")
GRIDS = {
    "minimax_m2": "--ep 2 --dp 2",
    "mimo_v2_flash": "--ep 2 --dp 2",  # nor the sinks of this one
    "minimax_m3_vl": "--ep 4 --dp 4",
    "qwen3_omni_moe": "--ep 4 --dp 4",
    "qwen2_5_omni_a": "--tp 2",
    **dict.fromkeys(("internvl_a", "internvl_b"), "--tp 2"),
    "internvl_moe_a": "--tp 2",
    "gemma4_audio_e": "--tp 2",
    "llama4_b": "--tp 2 --ep 2",
    "qwen4_exp_a": "--tp 2",
    "deepseek_v4": "--ep 1",  # which has one tensor-parallel rank
    "ernie4_5_vl_moe_a": "--dp 2",
    "exaone_moe": "--ep 2 --dp 4",
    "olmoe": "--tp 2 --ep 4",
    "mixtral": "--tp 2 --ep 4",
    **dict.fromkeys(("hy_v3", "ernie4_5_moe", "glm4_moe", "glm4v_moe", "qwen2_moe"), "--tp 2 --ep 2"),
    **dict.fromkeys(LATENT, "--tp 2"),
}
failures, compared, families = [], 0, set()


def mckpt(what, *args):
    run = run_mckpt(*args, "--json", "-q", timeout=60)
    if run.returncode:
        failures.append(f"{what}: {' '.join(args)}: {run.stdout}{run.stderr}")
    return json.loads(run.stdout) if run.returncode == 0 else None


def states(model):
    """Loads the text part alone, where the model also sees or hears."""
    model = getattr(model, "thinker", model)
    torch.manual_seed(3)
    words = min(500, model.get_input_embeddings().num_embeddings)
    return LOGITS.states(model, torch.randint(3, words, (9,)).tolist())


def save(config, folder):
    os.mkdir(folder)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    torch.manual_seed(1)
    model_class = getattr(transformers, config["architectures"][0])
    model = model_class(transformers.AutoConfig.from_pretrained(folder)).to(torch.bfloat16).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:  # initialised to ones and zeros, which would hide a mix-up
                parameter.add_(torch.randn_like(parameter) / 8)
    model.save_pretrained(folder)
    for name, content in BESIDE.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(content)
    if config["model_type"] == "qwen2_5_omni":  # from_pretrained of its class asks for the voices, with a talker or without
        torch.save({}, os.path.join(folder, "spk_dict.pt"))
    return model_class


def expect(ok, what):
    global compared
    compared += 1
    if not ok:
        failures.append(what)


def check(what, config, grid):
    with tempfile.TemporaryDirectory(prefix="mckpt_hf_") as scratch:
        source, checkpoint, back = (os.path.join(scratch, name) for name in ("source", "checkpoint", "back"))
        model_class = save(config, source)
        checked = mckpt(what, "mappings", "check", source)
        if not checked:
            return
        families.add(checked["family"])
        if not mckpt(what, "convert", "hf-to-fsdp", source, checkpoint, "--vocab-size", "auto", "--no-sync", *grid.split()):
            return
        if not mckpt(what, "export", checkpoint, back, "--max-shard-size", "20kB", "--no-sync"):
            return
        expect(len([f for f in os.listdir(back) if f.endswith(".safetensors")]) > 2, f"{what}: fewer than three files")
        for name in os.listdir(source):
            if "safetensors" in name:
                continue
            with open(os.path.join(source, name), "rb") as a, open(os.path.join(back, name), "rb") as b:
                expect(a.read() == b.read(), f"{what}: {name} differs")
        # Not the model itself: some of what it computes for itself is of another type until it is loaded. The experts one by
        # one: the grouped kernel of torch does not take sizes so small.
        how = dict(dtype=torch.bfloat16, experts_implementation="eager", output_loading_info=True)
        load = transformers.PreTrainedModel.from_pretrained.__func__  # Qwen2.5-Omni's own does not take output_loading_info
        (model, said), (again, told) = (load(model_class, folder, **how) for folder in (source, back))
        expect(said == told and not told["missing_keys"] and not told["mismatched_keys"], f"{what}: {said}, then {told}")
        state, other = model.eval().state_dict(), again.eval().state_dict()
        expect(state.keys() == other.keys(), f"{what}: other names")
        for name in state:
            expect(state[name].dtype == other[name].dtype and raw_bytes(state[name]) == raw_bytes(other[name]), f"{what}: {name} differs")
        answer, line = LOGITS.comparison(states(again), states(model))
        expect(answer["equal"], f"{what}: {line}")


for model, grid in MODELS.items():
    check(model, golden_config(model), grid)
for model in TIED:
    check(model + ", tied", changed(model, tie_word_embeddings=True), "--tp 2 --dp 2")
for model, architecture in (("qwen3_5", "Qwen3_5ForCausalLM"), ("qwen3_5_moe", "Qwen3_5MoeForCausalLM")):
    check(model + ", text alone", {**golden_config(model)["text_config"], "architectures": [architecture]}, "--tp 2")
for model in GOLDEN_FAMILIES:
    check(model, golden_config(model), GRIDS.get(model, "--tp 2 --dp 2"))
check("ministral3, over Mistral", changed("ministral3", text_config=golden_config("mistral")), "--tp 2 --dp 2")
for config in TINY:
    check(tiny_name(config), config, GRIDS.get(config["model_type"], "--tp 2 --dp 2"))
if unseen := {f["name"] for f in mckpt("families", "mappings", "list")["families"]} - families - NO_CLASS.keys():
    failures.append(f"families that were not loaded: {sorted(unseen)}; mckpt_tests/transformers_models.py is to name them")
for failure in failures[:20]:
    print("FAIL", failure)
print(f"transformers {transformers.__version__}: {compared} compared, {len(failures)} failures")
sys.exit(1 if failures or compared < 3000 else 0)
