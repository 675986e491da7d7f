"""Where an adapter is found: beside a config.json of its base, in a folder around it, under names that a
shell reads otherwise. A file beside it in the folder is named: a tokenizer of its own, which the result does
not have."""
import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SOURCE

CASE = os.path.join(SOURCE, "test_data/adapters/peft/linear_fan_in")
BASE = CASE + "/base"
WORK = tempfile.TemporaryDirectory()


def path(*parts):
    return os.path.join(WORK.name, *parts)


def merged(adapter, name, base=BASE):
    """Exported and compared with the export of the plain folder, from both sides."""
    run = run_mckpt("export", adapter, path(name), "--base", base)
    if expect(run.returncode == 0, f"{name}: {run.stderr}"):
        same = run_mckpt("diff", path(name), path("plain"), "--json")
        expect(same.returncode == 0 and json.loads(same.stdout)["equal"], f"{name}: {same.stdout}{same.stderr}")
        for pair in ((adapter, base), (base, adapter)):
            differs = run_mckpt("diff", *pair, "--json")
            expect(differs.returncode == 1 and json.loads(differs.stdout)["differ"] == 4, f"{name}: {differs.stdout}{differs.stderr}")
        proved = run_mckpt("verify", adapter, "--against", path(name), "--base", base)
        expect(proved.returncode == 0, f"{name}: {proved.stdout}{proved.stderr}")
    return run


run = run_mckpt("export", CASE + "/adapter", path("plain"), "--base", BASE)
expect(run.returncode == 0, run.stderr)

# With the config of the base beside it, and nothing of its weights.
shutil.copytree(CASE + "/adapter", path("with_config"))
shutil.copy(BASE + "/config.json", path("with_config"))
merged(path("with_config"), "of_config")
run = run_mckpt("verify", path("with_config"))
expect(run.returncode == 0 and "fit adapter_config.json" in run.stdout, run.stdout)
for command in (("export", path("with_config"), path("no")), ("convert", "hf-to-fsdp", path("with_config"), path("no"))):
    run = run_mckpt(*command)
    expect(run.returncode == 3 and "an adapter, which is no model" in run.stderr, f"{command}: {run.stderr}")
# A model with an adapter beside its weights is the model.
shutil.copytree(BASE, path("model_too"))
for name in os.listdir(CASE + "/adapter"):
    shutil.copy(os.path.join(CASE, "adapter", name), path("model_too"))
run = run_mckpt("inspect", path("model_too"), "--base", BASE)
expect(run.returncode == 2 and "no path is one" in run.stderr, run.stdout + run.stderr)

# In a folder around it.
shutil.copytree(CASE + "/adapter", path("run", "checkpoint-5"))
merged(path("run"), "of_run")
run = run_mckpt("export", path("run"), path("no"))
expect(run.returncode == 3 and "checkpoint-5" in run.stderr and "--base" in run.stderr, run.stderr)

# Names with a space and a quote: a command that is offered can be pasted.
shutil.copytree(BASE, path("it's", "my base"))
shutil.copytree(CASE + "/adapter", path("it's", "adapter"))
config = path("it's", "adapter", "adapter_config.json")
with open(config) as file:
    value = json.load(file)
with open(config, "w") as file:
    json.dump({**value, "base_model_name_or_path": path("it's", "my base")}, file)
run = run_mckpt("export", path("it's", "adapter"), path("no"))
expect("--base '" + path("it'\\''s", "my base") + "'" in run.stderr, run.stderr)
os.rename(path("it's", "adapter", "adapter_model.safetensors"), path("it's", "adapter", "adapter_model.bin"))
run = run_mckpt("export", path("it's", "adapter"), path("no"), "--base", BASE)
expect("'" + path("it'\\''s", "adapter/adapter_model.bin") + "'" in run.stderr, run.stderr)

# A tokenizer of its own: none in the base, the same, another one.
shutil.copytree(CASE + "/adapter", path("tokens"))
shutil.copytree(BASE, path("base_of_tokens"))
for text, base_text, said in (("{}", None, True), ("{}", "{}", False), ("{}", "[]", True)):
    with open(path("tokens", "tokenizer.json"), "w") as file:
        file.write(text)
    if base_text is not None:
        with open(path("base_of_tokens", "tokenizer.json"), "w") as file:
            file.write(base_text)
    run = run_mckpt("export", path("tokens"), path("out"), "--base", path("base_of_tokens"), "--overwrite")
    expect(run.returncode == 0, run.stderr)
    expect(("files of a tokenizer that the base has not, or has otherwise: tokenizer.json" in run.stderr) == said, f"{base_text}: {run.stderr}")
finish(24)
