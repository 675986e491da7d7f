"""A checkpoint whose own config.json does not describe its tensors, or is not JSON, is not sound: no export
takes it. An unchanged one is."""
import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

with tempfile.TemporaryDirectory(prefix="mckpt_own_config_") as folder:
    os.chdir(folder)
    run_mckpt("convert", "hf-to-fsdp", TINY_MODEL, "fsdp", "--tp", "2", "--no-sync", "-q")
    run_mckpt("convert", "to-mcore", TINY_MODEL, "mcore", "--no-sync", "-q")
    run_mckpt("convert", "to-dcp", TINY_MODEL, "plain", "--no-sync", "-q")
    shutil.copy(os.path.join(TINY_MODEL, "config.json"), "plain")
    changes = {"heads": {"num_attention_heads": 2}, "tied": {"tie_word_embeddings": True}, "sizes": {"hidden_size": 24}, "same": {}}
    for source, config_name in (("fsdp", "release/hf_assets/config.json"), ("mcore", "release/hf_assets/config.json")):
        if os.path.exists(f"{source}/release/mckpt_manifest.json"):
            os.remove(f"{source}/release/mckpt_manifest.json")  # whose sums find every change
        with open(f"{source}/{config_name}") as file:
            config = json.load(file)
        for name, change in changes.items():
            with open(f"{source}/{config_name}", "w") as file:
                json.dump({**config, **change}, file)
            exported = run_mckpt("export", source, f"out_{source}_{name}", "--no-sync", "-q")
            verified = run_mckpt("verify", source)
            fine = name == "same"
            expect(exported.returncode == (0 if fine else exported.returncode) and (exported.returncode == 0) == fine, f"export {source} {name}: {exported.stderr[-300:]}")
            expect(verified.returncode == (0 if fine else 1), f"verify {source} {name}: {verified.returncode}: {verified.stdout[-500:]}")
            expect(("FAIL  model" in verified.stdout) == (not fine), f"verify {source} {name}: {verified.stdout[-500:]}")
    for text, status in (("{", 1), ('{"model_type": "qwen3_moe"}', 0)):
        with open("plain/config.json", "w") as file:
            file.write(text)
        exported = run_mckpt("export", "plain", "out_plain", "--no-sync", "-q")
        done = run_mckpt("verify", "plain", "--json")
        checks = {c["name"]: c["status"] for c in json.loads(done.stdout)["checks"]}
        if text == "{":
            expect(exported.returncode == 3 and "MC1003" in exported.stderr, f"export: {exported.stderr[-300:]}")
            expect(done.returncode == 1 and checks.get("model") == "fail", f"verify, no JSON: {done.returncode} {checks}")
            shutil.copy(os.path.join(TINY_MODEL, "config.json"), "plain")
    # A DCP folder and a torch file under a model's own names, with a config beside them.
    run_mckpt("convert", "to-safetensors", TINY_MODEL, "one.safetensors", "--no-sync", "-q")
    os.mkdir("torch")
    run_mckpt("convert", "safetensors-to-pt", "one.safetensors", "torch/pytorch_model.bin", "--no-sync", "-q")
    with open(os.path.join(TINY_MODEL, "config.json")) as file:
        config = json.load(file)
    for saved in ("plain", "torch"):
        for name, change in {"same": {}, "wider": {"hidden_size": 24}, "deeper": {"num_hidden_layers": config["num_hidden_layers"] + 1}}.items():
            with open(f"{saved}/config.json", "w") as file:
                json.dump({**config, **change}, file)
            done = run_mckpt("verify", saved)
            expect(done.returncode == (0 if name == "same" else 1), f"verify {saved} {name}: {done.returncode} {done.stdout[-500:]}")
            expect(("FAIL  model" in done.stdout) == (name != "same"), f"verify {saved} {name}: {done.stdout[-500:]}")
    # Files of ranks under a model's own names, with the config that the training program put beside them.
    shutil.copytree(os.path.join(DATA, "rank_files", "verl2_w3"), "ranks")
    with open("ranks/huggingface/config.json") as file:
        config = json.load(file)
    with open(os.path.join(TINY_MODEL, "config.json")) as file:
        other = json.load(file)
    cases = {"same": config, "wider": {**config, "hidden_size": 64}, "deeper": {**config, "num_hidden_layers": 3}, "another": other,
             "unknown": {**config, "model_type": "of_tomorrow", "architectures": ["OfTomorrowForCausalLM"]}}  # fmt: skip
    for name, text in cases.items():
        with open("ranks/huggingface/config.json", "w") as file:
            json.dump(text, file)
        exported = run_mckpt("export", "ranks", f"out_ranks_{name}", "--no-sync", "-q")
        verified, told = run_mckpt("verify", "ranks"), json.loads(run_mckpt("verify", "ranks", "--json").stdout)
        model = next((c for c in told["checks"] if c["name"] == "model"), None)
        if name == "same":
            # Also without the layers of multi-token prediction, which the run did not train.
            expect((verified.returncode, exported.returncode, model["status"], model["count"]) == (0, 0, "pass", 31), f"ranks: {verified.stdout} {exported.stderr}")
        elif name == "unknown":
            expect(verified.returncode == 0 and "config.json was not compared" in verified.stdout.splitlines()[-1] and "sound" in verified.stdout, f"ranks of tomorrow: {verified.stdout}")
            expect(model["status"] == "none" and "not compared with config.json" in model["note"], f"ranks of tomorrow: {model}")
        else:
            expect(exported.returncode == 3, f"export ranks {name}: {exported.returncode} {exported.stderr[-300:]}")
            expect(verified.returncode == 1 and "FAIL  model" in verified.stdout and model["status"] == "fail" and not told["ok"], f"verify ranks {name}: {verified.stdout}")
finish(30)
