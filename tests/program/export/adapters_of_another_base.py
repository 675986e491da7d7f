"""An adapter for another base is said, where nothing refuses it: its config names another class, or a folder whose config.json has other
sizes (a warning), or just another name (a note). The same base under another path is not said."""
import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SOURCE

CASE = os.path.join(SOURCE, "test_data/adapters/peft/alpha_negative")
WORK = tempfile.TemporaryDirectory()


def path(*parts):
    return os.path.join(WORK.name, *parts)


def edited(folder, file, **entries):
    name = os.path.join(folder, file)
    with open(name) as text:
        value = {**json.load(text), **entries}
    with open(name, "w") as text:
        json.dump(value, text)


shutil.copytree(CASE, path("case"))
shutil.copytree(CASE + "/base", path("Other"))
edited(path("Other"), "config.json", hidden_size=16, num_hidden_layers=7)
shutil.copytree(CASE + "/base", path("Heads"))
edited(path("Heads"), "config.json", head_dim=8, model_type="llama", architectures=["LlamaForCausalLM"], rope_theta=1.5)
shutil.copytree(CASE + "/base", path("models--some--Base", "snapshots", "c1899de"))
ADAPTER, BASE = path("case", "adapter"), path("case", "base")
NAMED = "names"
for name, entries, said in (("another name", {"base_model_name_or_path": "org/other"}, [NAMED, "org/other"]),
                            ("the same name", {"base_model_name_or_path": "some/Base"}, []),
                            ("no name", {"base_model_name_or_path": None}, []),
                            ("a folder of other sizes", {"base_model_name_or_path": path("Other")},
                             ["warning", "hidden_size 16 there, 8 here", "num_hidden_layers 7 there, 2 here"]),
                            ("a folder of other heads", {"base_model_name_or_path": path("Heads")},
                             ["warning", "head_dim 8 there, 4 here", "model_type llama there, qwen3 here",
                              "architectures LlamaForCausalLM there, Qwen3ForCausalLM here"]),
                            ("another class", {"auto_mapping": {"base_model_class": "LlamaForCausalLM"}},
                             ["warning", "LlamaForCausalLM", "Qwen3ForCausalLM"])):
    shutil.copy(CASE + "/adapter/adapter_config.json", ADAPTER)
    edited(ADAPTER, "adapter_config.json", **entries)
    out = path(name.replace(" ", "_"))
    run = run_mckpt("export", ADAPTER, out, "--base", BASE)
    expect(run.returncode == 0, f"{name}: {run.stderr}")
    for part in said:
        expect(part in run.stderr, f"{name}: {part!r} is not in {run.stderr}")
    expect(bool(said) or NAMED not in run.stderr, f"{name}: {run.stderr}")
    verified = run_mckpt("verify", ADAPTER, "--base", BASE)
    expect(verified.returncode == 0, f"{name}: {verified.stdout}")
    expect(("MC2015" in verified.stdout) == ("warning" in said), f"{name}: {verified.stdout}")
    for pair in ((ADAPTER, BASE), (BASE, ADAPTER)):
        differs = json.loads(run_mckpt("diff", *pair, "--json").stdout)
        expect(any(f["code"] == "MC2015" for f in differs["findings"]) == ("warning" in said), f"{name}: {differs['findings']}")
shutil.copy(CASE + "/adapter/adapter_config.json", ADAPTER)
edited(ADAPTER, "adapter_config.json", base_model_name_or_path="some/base")
run = run_mckpt("export", ADAPTER, path("of_cache"), "--base", path("models--some--Base", "snapshots", "c1899de"))
expect(run.returncode == 0 and NAMED not in run.stderr, f"a folder of the hub's cache: {run.stderr}")

# Modules that the config chooses, and that have no factors.
edited(ADAPTER, "adapter_config.json", target_modules=["q_proj", "up_proj"])
run = run_mckpt("export", ADAPTER, path("untouched"), "--base", BASE)
expect(run.returncode == 0 and "2 modules that the adapter has no factors of" in run.stderr, run.stderr)
run = run_mckpt("verify", ADAPTER, "--base", BASE)
expect(run.returncode == 0 and "warn  adapter" in run.stdout and "2 modules that the adapter has no factors of" in run.stdout, run.stdout)
expect(run_mckpt("verify", ADAPTER, "--base", BASE, "--strict").returncode == 1, "a module without factors is a warning")
finish(32)
