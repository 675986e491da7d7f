"""An adapter without its base: `verify` says whether its tensors are those that adapter_config.json speaks of, and `diff` and
`verify --against` compare two configs by what they say, in both orders."""
import json
import os
import re
import shutil
import struct
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SOURCE

PEFT = os.path.join(SOURCE, "test_data/adapters/peft")
CASE = os.path.join(PEFT, "default_targets/adapter")
ABSENT = object()
WORK = tempfile.TemporaryDirectory()


def adapter(name, without="", named="", case=CASE, **entries):
    """A copy with other entries in its config, and without a tensor, or with the name of the adapter in the factors' names."""
    folder = os.path.join(WORK.name, name)
    shutil.copytree(case, folder)
    config = os.path.join(folder, "adapter_config.json")
    with open(config) as text:
        value = {**json.load(text), **({"target_modules": ["q_proj", "v_proj"]} if case == CASE else {}), **entries}
    with open(config, "w") as text:
        json.dump({k: v for k, v in value.items() if v is not ABSENT}, text)
    if without or named:
        weights = os.path.join(folder, "adapter_model.safetensors")
        with open(weights, "rb") as file:
            data = file.read()
        size = struct.unpack("<Q", data[:8])[0]
        header = {k: v for k, v in json.loads(data[8:8 + size]).items() if not without or not k.endswith(without)}
        if named:
            header = {re.sub(r"(lora_[AB])\.weight$", rf"\1.{named}.weight", k): v for k, v in header.items()}
        end = max(t["data_offsets"][1] for k, t in header.items() if k != "__metadata__")
        text = json.dumps(header).encode()
        with open(weights, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data[8 + size:8 + size + end])
    return folder


def check_of(run, name):
    return next((c for c in json.loads(run.stdout)["checks"] if c["name"] == name), {})


# The answers of verify about an adapter by itself.
for name, how, status, said in (
        ("sound", {}, "pass", []),
        ("last_b", {"without": "layers.1.self_attn.v_proj.lora_B.weight"}, "fail", ["MC2005", "layers.1.self_attn.v_proj", "one of the two factors"]),
        ("named", {"named": "default"}, "fail", ["MC2005", "lora_A.default.weight", "loads none from it",
                                                "remove the adapter's name: .lora_A.default.weight becomes .lora_A.weight"]),
        ("rank", {"r": 3}, "fail", ["MC2011", "expected rank 3, found rank 2", "so are 3 other modules"]),
        ("left_out", {"target_modules": ["q_proj"]}, "fail", ["MC2005", "v_proj", "its config leaves out", "1 other module"]),
        ("kind", {"peft_type": "IA3"}, "fail", ["MC2015", "expected peft_type LORA, found 'IA3'"]),
        ("no_kind", {"peft_type": ABSENT}, "fail", ["MC2015", "found none"]),
        ("magnitudes", {"use_dora": True}, "fail", ["MC2005", "lora_magnitude_vector, as use_dora says"]),
        ("tokens", {"trainable_token_indices": [3]}, "fail", ["MC2005", "has no rows of them"]),
        ("number", {"r": "two"}, "fail", ["adapter_config.json"]),
        ("ranks", {"rank_pattern": ["q_proj"]}, "fail", ["MC1003", "rank_pattern"]),
        ("alphas", {"alpha_pattern": []}, "fail", ["MC1003", "alpha_pattern"]),
        ("layers", {"layers_pattern": ["layers"]}, "fail", ["MC2001", "layers_to_transform"]),
        ("none", {"init_lora_weights": "pissa"}, "none", ["not compared with adapter_config.json", "pissa"]),
        ("kasa", {"kasa_config": {}}, "none", ["not compared with adapter_config.json", "kasa_config"]),
        ("experts", {"case": PEFT + "/experts_all_linear/adapter"}, "pass", []),
        ("experts_rank", {"case": PEFT + "/experts_all_linear/adapter", "r": 5}, "fail", ["MC2011", "rank 5"])):
    folder = adapter(name, **how)
    run = run_mckpt("verify", folder)
    expect(run.returncode == (1 if status == "fail" else 0), f"{name}: {run.stdout}{run.stderr}")
    for part in said:
        expect(part in run.stdout, f"{name}: {part!r} is not in {run.stdout}")
    expect("not read: adapter_config.json" not in run.stdout and "beside" not in run.stdout, f"{name}: {run.stdout}")
    run = run_mckpt("verify", folder, "--json")
    expect(check_of(run, "adapter").get("status") == status, f"{name}: {run.stdout}")

# Beside its base it is told in the same words.
run = run_mckpt("verify", os.path.join(WORK.name, "named"), "--base", os.path.join(PEFT, "default_targets/base"))
said = run.stdout + run.stderr
expect(run.returncode != 0 and "MC2005" in said, f"named, with its base: {said}")
expect("remove the adapter's name: .lora_A.default.weight becomes .lora_A.weight" in said, f"named, with its base: {said}")
expect("check that the base" not in said, f"named, with its base: {said}")

# Two adapters of the same tensors.
PLAIN = adapter("plain")
for name, entries, row, against in (
        ("same", {"target_modules": ["v_proj", "q_proj"], "use_dora": False, "kasa_config": None, "layers_pattern": []}, None, 0),
        ("alpha", {"lora_alpha": 16}, (".lora_alpha", "16", "4"), 1),
        ("root", {"use_rslora": True}, (".use_rslora", "true", ""), 1),
        ("kasa", {"kasa_config": {}}, (".kasa_config", "{}", ""), 1),
        ("targets", {"target_modules": ["v_proj"]}, (".target_modules", '["v_proj"]', '["q_proj","v_proj"]'), 1),
        ("no_targets", {"target_modules": []}, (".target_modules", "[]", '["q_proj","v_proj"]'), 1),
        ("pattern", {"rank_pattern": {"q_proj": 2}}, (".rank_pattern", '{"q_proj":2}', ""), 1),
        ("base", {"base_model_name_or_path": "x"}, (".base_model_name_or_path", '"x"', '"some/base"'), 0)):
    other = adapter("of_" + name, **entries)
    for a, b, turned in ((other, PLAIN, False), (PLAIN, other, True)):
        run = run_mckpt("diff", a, b, "--json")
        found = json.loads(run.stdout)
        expect(run.returncode == (1 if row else 0) and found["equal"] == (row is None), f"{name}: {run.stdout}")
        rows = [(r["at"], r["a"], r["b"]) for r in found["rows"] if r["kind"] == "file" and r["name"] == "adapter_config.json"]
        wanted = [] if row is None else [(row[0], *row[:0:-1])] if turned else [row]
        wanted = [(at, x.replace(" ", ""), y.replace(" ", "")) for at, x, y in wanted]
        got = [(at, x.replace(" ", ""), y.replace(" ", "")) for at, x, y in rows]
        expect(len(got) == len(wanted) and all(g[0].startswith(w[0]) for g, w in zip(got, wanted)), f"{name}: {got}, not {wanted}")
        if name not in ("targets", "no_targets"):
            expect(got == wanted, f"{name}: {got}, not {wanted}")
        run = run_mckpt("verify", a, "--against", b)
        expect(run.returncode == against, f"{name}: {run.stdout}{run.stderr}")
        expect(row is None or "adapter_config.json" in run.stdout, f"{name}: {run.stdout}")

finish(120)
