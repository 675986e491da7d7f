"""A checkpoint of Megatron against the same model in one file, of safetensors and of torch alike: equal in both orders, by diff and by
verify --against; a changed value is a difference; and without a config.json anywhere the refusal says what is missing.
"""

import json
import os
import shutil

from mckpt_tests.checks import expect, expect_equal, finish, need
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import TINY_MODEL

need("torch", "safetensors")
from safetensors.torch import load_file, save_file  # noqa: E402

temporary = scratch()
CHANGED = "model.layers.1.self_attn.o_proj.weight"


def path(name):
    return os.path.join(temporary.name, name)


def mckpt(*args, status=0):
    run = run_mckpt(*args, *(["--no-sync", "-q"] if args[0] == "convert" else []))
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout}{run.stderr}")
    return run


def figures(run):
    answer = json.loads(run.stdout)
    return [answer[k] for k in ("equal", "tensors", "bit_equal", "differ")]


def compare(checkpoint, file):
    same = [figures(mckpt("diff", *pair, "--json")) for pair in ((checkpoint, file), (file, checkpoint))]
    expect(all(s[0] for s in same) and same[0][1] > 40, f"{checkpoint} and {file}: {same}")
    for pair in ((checkpoint, file), (file, checkpoint)):
        answer = json.loads(mckpt("verify", pair[0], "--against", pair[1], "--json").stdout)
        expect(answer["equal"] is True, f"verify {pair}: {answer}")
    return same


def differ(checkpoint, file):
    for pair in ((checkpoint, file), (file, checkpoint)):
        run = mckpt("diff", *pair, "--json", status=1)
        expect(figures(run)[0] is False and figures(run)[3] >= 1, f"diff {pair}: {run.stdout}")
        run = mckpt("verify", pair[0], "--against", pair[1], "--json", status=1)
        expect("o_proj" in run.stdout or "linear_proj" in run.stdout, f"verify {pair}: {run.stdout}")


one, torch_file, other = path("q.safetensors"), path("q.pt"), path("other.safetensors")
mckpt("convert", "to-safetensors", TINY_MODEL, one)
mckpt("convert", "safetensors-to-pt", one, torch_file)
tensors = load_file(one)
tensors[CHANGED][0, 0] += 1
save_file(tensors, other, {"format": "pt"})

mckpt("convert", "to-mcore", TINY_MODEL, path("torch_dist"), "--tp", "2", "--ep", "2")
mckpt("convert", "hf-to-fsdp", TINY_MODEL, path("fsdp"), "--dp", "2")
mckpt("convert", "to-pt", TINY_MODEL, path("ranks"), "--tp", "2", "--ep", "2")
for name in ("torch_dist", "fsdp", "ranks"):
    expect_equal(name, compare(path(name), one), compare(path(name), torch_file))
    differ(path(name), other)

# One made of the file, and a file whose model is known by the config.json beside it alone.
mckpt("convert", "hf-to-fsdp", one, path("of_the_file"), "--assets", TINY_MODEL)
compare(path("of_the_file"), one)
os.makedirs(path("folder"))
os.link(one, path("folder/model.safetensors"))
shutil.copy(os.path.join(TINY_MODEL, "config.json"), path("folder"))
mckpt("convert", "to-mcore", TINY_MODEL, path("bare"), "--tp", "2")
shutil.rmtree(path("bare/release/hf_assets"))
os.remove(path("bare/release/mckpt_manifest.json"))
compare(path("bare"), path("folder/model.safetensors"))
for pair in ((path("bare"), one), (one, path("bare"))):
    run = mckpt("diff", *pair, status=3)
    expect("MC1112" in run.stderr and "--assets" in run.stderr and "config.json" in run.stderr, run.stderr)
    run = mckpt("diff", *pair, "--assets", TINY_MODEL)
finish(40)
