"""The check of tensors against config.json has the same answer, in the same words, whether the model is in safetensors files, in
pytorch_model.bin or in a DCP folder; and a fault in config.json is told once, by verify and by what converts."""

import json
import os
import re
import shutil

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.folders import scratch_paths
from mckpt_tests.program import run_says as ran
from mckpt_tests.setting import TINY_MODEL

path = scratch_paths()
FORMATS = ("safetensors", "bin", "dcp")
with open(os.path.join(TINY_MODEL, "config.json")) as f:
    CONFIG = json.load(f)


def made():
    """The model in each format."""
    shutil.copytree(TINY_MODEL, path("safetensors"))
    os.mkdir(path("bin"))
    ran(0, "convert", "safetensors-to-pt", TINY_MODEL, path("bin", "pytorch_model.bin"), "-q", "--no-sync")
    ran(0, "convert", "to-dcp", TINY_MODEL, path("dcp"), "-q", "--no-sync")
    os.remove(path("dcp", "mckpt_manifest.json"))  # config.json is another than it lists


def with_config(entries):
    for name in FORMATS:
        with open(path(name, "config.json"), "w") as f:
            json.dump({k: v for k, v in {**CONFIG, **entries}.items() if v is not None}, f)


def check_of(name, status):
    """The check, and its findings without the path and without the parameters and sizes that the table alone knows."""
    answer = json.loads(ran(status, "verify", path(name), "--json").stdout)
    check = next(c for c in answer["checks"] if c["name"] == "model")
    findings = [(f["code"], re.sub(r", for [\w.]*| \([a-z_ ]*\)", "", f["message"]), f["warning"]) for f in answer["findings"]]
    return [check["status"], check["count"], check["note"], findings]


def one_answer(what, entries, status, check, text=""):
    with_config(entries)
    answers = {name: check_of(name, status) for name in FORMATS}
    for name, answer in answers.items():
        expect_equal(f"{what}, {name}", answer, answers["safetensors"])
        expect(answer[0] == check and text in str(answer), f"{what}, {name}: {answer}")
    for name in FORMATS:
        lines = [line for line in ran(status, "verify", path(name)).stdout.splitlines() if line[6:].startswith("model ")]
        expect(len(lines) == 1, f"{what}, {name}: {lines}")


def told_once(what, entries, text):
    """By a conversion that needs no table, which is done, and by one that needs it, which is not."""
    with_config(entries)
    for name in ("bin", "dcp"):
        run = ran(0, "export", path(name), path("out"), "--no-sync")
        told = [line for line in (run.stdout + run.stderr).splitlines() if text in line]
        expect(len(told) == 1 and told[0].startswith("warning: ") and "MC2001" in told[0], f"{what}, {name}: {run.stdout}{run.stderr}")
        expect("no table of" not in run.stdout + run.stderr, f"{what}, {name}: {run.stdout}{run.stderr}")
        shutil.rmtree(path("out"))
    for name in FORMATS:
        run = ran(3, "convert", "hf-to-fsdp", path(name), path("out"), "--no-sync")
        expect((run.stdout + run.stderr).count(text) == 1 and "MC2001" in run.stderr, f"{what}, {name}: {run.stderr}")


made()
one_answer("a config that fits", {}, 0, "pass")
one_answer("another width", {"hidden_size": 2 * CONFIG["hidden_size"]}, 1, "fail", "do not match: 41 wrong shape; wrong shape: model.embed_tokens.weight: expected")
one_answer("another kind of head", {"architectures": ["NobodysModel"]}, 0, "none", "no table describes the class NobodysModel")
one_answer("a model that nobody knows", {"model_type": "nobodys"}, 0, "none", "the model type 'nobodys', architecture Qwen3MoeForCausalLM is unknown")
one_answer("a tie", {"tie_word_embeddings": True}, 0, "warn", "lm_head.weight differs from model.embed_tokens.weight")
one_answer("a word for a number", {"hidden_size": "abc"}, 0, "warn", "'hidden_size' is of the wrong type")
one_answer("nothing for a number", {"num_attention_heads": None}, 0, "warn", "'num_attention_heads' is missing")
told_once("a word for a number", {"hidden_size": "abc"}, "'hidden_size' is of the wrong type")
told_once("nothing for a number", {"num_attention_heads": None}, "'num_attention_heads' is missing")
# The experts of a layer more are missing in the form that the files have.
with_config({"num_hidden_layers": CONFIG["num_hidden_layers"] + 1})
for name in FORMATS:
    answer = check_of(name, 1)
    expect(answer[0] == "fail" and "21 missing; missing: model.layers.2." in str(answer), f"a layer more, {name}: {answer}")
finish(60)
