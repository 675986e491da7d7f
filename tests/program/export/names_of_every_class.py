"""Names and tensors in memory become the names and tensors of the folder that transformers saves, for classes
of every model type that its tables change and no rule covers: test_data/own_names/disk_transforms.json.xz
has the results of revert_weight_conversion() of transformers 5.24 for small tensors, also where it
transposes, interleaves and permutes them, as numbers of the config say."""
import hashlib
import json
import lzma
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.numbered_tensors import write_numbered_tensors
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA


def export(case, shapes, config):
    model_type, name = case.split("/")
    shutil.rmtree(case.replace("/", "."), ignore_errors=True)
    os.mkdir(case.replace("/", "."))
    os.chdir(case.replace("/", "."))
    write_numbered_tensors("in.safetensors", shapes)
    os.mkdir("config")
    with open("config/config.json", "w") as out:
        json.dump({"model_type": model_type, "architectures": [name], **config}, out)
    run_mckpt("convert", "to-dcp", "in.safetensors", "saved", "--no-sync", "-q")
    done = run_mckpt("export", "saved", "out", "--assets", "config", "--no-sync", "-q")
    found = {}
    if done.returncode == 0:
        listed = run_mckpt("ls", "out", "--digest", "--json")
        found = {t["name"]: t["sha256"][:8] for t in json.loads(listed.stdout)["tensors"]}
    os.chdir("..")
    return done, found


with lzma.open(os.path.join(DATA, "own_names", "disk_transforms.json.xz")) as file:
    cases = json.load(file)
# Those whose items change places, and a part of the others, spread over the alphabet: all are compared where the table is made anew.
chosen = set(sorted(cases)[::4]) | {case for case in cases if cases[case]["config"] or cases[case]["moves"]}
# Families between Hugging Face and Megatron whose stacks of experts no rule of convert/own/disk_rules.cc has.
families = {"minimax_m3_vl/MiniMaxM3SparseForConditionalGeneration", "sarvam_mla/DeepseekV3ForCausalLM of sarvam_mla", "sarvam_moe/Glm4MoeForCausalLM of sarvam_moe"}
expect(families <= set(cases), f"no case of {families - set(cases)}")
chosen = sorted(chosen | families)
# All its names begin with "model.", which is then taken for the dict that the program has its model in.
chosen = [case for case in chosen if not case.startswith("shieldgemma2/")]
with tempfile.TemporaryDirectory(prefix="mckpt_names_") as folder:
    os.chdir(folder)
    for case in chosen:
        done, found = export(case, cases[case]["memory"], cases[case]["config"])
        want = cases[case]["disk"]
        expect(done.returncode == 0, f"{case}: {done.stderr[-400:]}")
        expect(found == want, f"{case}: extra {sorted(set(found) - set(want))[:3]}, missing {sorted(set(want) - set(found))[:3]}, "
               f"differ {[n for n in want if n in found and found[n] != want[n]][:3]}")
    # The number of heads that transformers takes where the config has none is 16.
    done, _ = export("kimi_k25/Kimi_K25Model", {f"model.vision_tower.layers.0.attn.{x}_proj.weight": [12, 2] for x in "qkv"}, {})
    expect(done.returncode == 3 and "MC2011" in done.stderr and "16 heads" in done.stderr, f"kimi_k25: {done.stderr[-400:]}")
    # Without one of its parts a fused tensor would be a smaller one.
    for case, part in (("gte/GteForMaskedLM", "gte.layers.0.mlp.up_proj.weight"),
                       ("molmo2/Molmo2ForConditionalGeneration", "model.language_model.layers.1.self_attn.q_proj.weight")):
        memory = {name: shape for name, shape in cases[case]["memory"].items() if name != part}
        done, _ = export(case, memory, cases[case]["config"])
        expect(done.returncode == 3 and "MC2005" in done.stderr and "not all are there" in done.stderr, f"{part}: {done.stderr[-400:]}")
finish(50)
