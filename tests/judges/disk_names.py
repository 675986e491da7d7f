"""Models that transformers has under other names in memory than in their folders, or with the experts of a layer as one tensor, and
classes with another head than a language model: what a training program saves of them is exported, and must be what save_pretrained()
writes. With config.json alone: the same tensors, byte for byte. With the folder's weights as assets: the same file. `verify` of the folder
finds nothing missing.
"""
import hashlib
import json
import os
import shutil
import sys
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish, need
from mckpt_tests.judge import raw_bytes
from mckpt_tests.program import run_mckpt

need("transformers")
os.environ["HF_HUB_OFFLINE"] = "1"
import torch  # noqa: E402
import transformers  # noqa: E402
from mckpt_tests import disk_families  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()


def tensors(path):
    return {name: (t.dtype, tuple(t.shape), raw_bytes(t)) for name, t in load_file(path).items()}


def export(source, out, assets, what):
    done = run_mckpt("export", source, out, "--assets", assets, "--no-sync")
    return expect(done.returncode == 0, f"{what}: {done.stdout[-600:]}{done.stderr[-900:]}")


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def check(number, name, entries, folder):
    place = lambda *parts: os.path.join(folder, *parts)  # noqa: E731
    model = disk_families.made(name, entries, seed=number)
    model.save_pretrained(place("folder"))
    torch.save(model.state_dict(), place("pytorch_model.bin"))
    os.mkdir(place("config"))
    shutil.copy(place("folder", "config.json"), place("config"))
    file = "model.safetensors"
    if export(place("pytorch_model.bin"), place("of_config"), place("config"), f"{name}, config alone"):
        want, got = tensors(place("folder", file)), tensors(place("of_config", file))
        expect_equal(f"names of {name}", sorted(got), sorted(want))
        expect(got == want, f"{name}: tensors differ")
    if export(place("pytorch_model.bin"), place("out"), place("folder"), name):
        expect_equal(f"file of {name}", sha256(place("out", file)), sha256(place("folder", file)))
    verified = run_mckpt("verify", place("folder"))
    expect(verified.returncode == 0, f"{name}: {verified.stdout}{verified.stderr}")
    if name in dict(HEADS):
        expect("\npass  model " in verified.stdout, f"{name}: {verified.stdout}")


TEXT = disk_families.TEXT
HEADS = [
    ("LlamaForQuestionAnswering", TEXT),
    ("LlamaForSequenceClassification", dict(**TEXT, num_labels=1)),
    ("LlamaForTokenClassification", dict(**TEXT, num_labels=3)),
    ("LlamaModel", TEXT),
    ("MistralForQuestionAnswering", TEXT),
    ("MixtralForQuestionAnswering", dict(**TEXT, num_local_experts=3, num_experts_per_tok=2)),
    ("Qwen2MoeForQuestionAnswering", dict(**TEXT, **disk_families.EXPERTS, shared_expert_intermediate_size=7)),
    ("Qwen2ForSequenceClassification", dict(**TEXT, num_labels=2, tie_word_embeddings=True)),
    ("Qwen3Model", dict(**TEXT, head_dim=4)),
    ("Qwen3MoeForTokenClassification", dict(**TEXT, **disk_families.EXPERTS, head_dim=4, num_labels=1)),
]


def check_critic(folder):
    """verl makes a classifier of a language model, and saves the config as it was, with one label."""
    model = disk_families.made("Qwen2ForTokenClassification", dict(**TEXT, num_labels=1))
    model.save_pretrained(os.path.join(folder, "folder"))
    torch.save(model.state_dict(), os.path.join(folder, "model.bin"))
    os.mkdir(os.path.join(folder, "huggingface"))
    config = {**model.config.to_dict(), "architectures": ["Qwen2ForCausalLM"], "id2label": {"0": "LABEL_0"}}
    with open(os.path.join(folder, "huggingface", "config.json"), "w") as file:
        json.dump(config, file)
    done = run_mckpt("export", os.path.join(folder, "model.bin"), os.path.join(folder, "out"), "--no-sync")
    expect(done.returncode == 0 and "ForTokenClassification" in done.stderr, f"critic: {done.stdout[-600:]}{done.stderr[-900:]}")
    expect(tensors(os.path.join(folder, "out", "model.safetensors")) == tensors(os.path.join(folder, "folder", "model.safetensors")),
           "critic: tensors differ")
    state = dict(model.state_dict())
    del state["model.layers.1.mlp.up_proj.weight"]
    torch.save(state, os.path.join(folder, "model.bin"))
    done = run_mckpt("export", os.path.join(folder, "model.bin"), os.path.join(folder, "less"), "--no-sync")
    expect(done.returncode != 0 and "do not match: 1 missing" in done.stderr and "layers.1.mlp.up_proj" in done.stderr, f"critic, less: {done.stderr[-900:]}")


def main():
    chosen = sys.argv[1:]
    for number, (name, entries) in enumerate(disk_families.MIXTURES + disk_families.OTHERS + disk_families.MOVED + HEADS):
        if chosen and name not in chosen:
            continue
        with tempfile.TemporaryDirectory(prefix="mckpt_disk_names_") as folder:
            check(number, name, entries, folder)
    with tempfile.TemporaryDirectory(prefix="mckpt_disk_names_") as folder:
        check_critic(folder)
    finish(least=1 if chosen else 5000)


main()
