"""scripts/logits: a model that went through Megatron-FSDP and back computes the same in every layer, and a changed tensor is
named by its layer."""
import contextlib
import io
import json
import os
import runpy
import shutil
import struct
import subprocess
import sys
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SOURCE, TINY_MODEL

need("transformers", "torch")


SCRIPT = os.path.join(SOURCE, "scripts", "logits")


def logits(*args):
    return subprocess.run([sys.executable, SCRIPT, *args], capture_output=True, text=True, timeout=300)


def logits_here(*args):
    """The same in this process, which has imported transformers: that takes most of the time of a script of its own."""
    out, err, argv = io.StringIO(), io.StringIO(), sys.argv
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        sys.argv = [SCRIPT, *args]
        status = script["main"]()
    sys.argv = argv
    return subprocess.CompletedProcess(args, status, out.getvalue(), err.getvalue())


def change(folder, name):
    """The first item becomes 2."""
    for line in run_mckpt("ls", folder, "--json").stdout.split('{"name": ')[1:]:
        if line.startswith(f'"{name}"'):
            file = line.split('"file": "')[1].split('"')[0]
            offset = int(line.split('"offset": ')[1].split(",")[0])
            with open(os.path.join(folder, file), "r+b") as f:
                f.seek(offset)
                f.write(struct.pack("<H", 0x4000))
            return
    raise SystemExit(f"no tensor {name}")


with tempfile.TemporaryDirectory() as t:
    ckpt, back, changed = (os.path.join(t, n) for n in ("ckpt", "back", "changed"))
    run_mckpt("convert", "hf-to-fsdp", TINY_MODEL, ckpt, "--tp", "2", "--ep", "2", "--no-sync", "-q")
    run_mckpt("export", ckpt, back, "--no-sync", "-q")
    run = logits(back, TINY_MODEL)
    expect((run.returncode, run.stdout) == (0, "equal: logits of 16 tokens and all 2 layers, bit for bit\n"), run.stdout + run.stderr)
    script = runpy.run_path(SCRIPT)
    shutil.copytree(back, changed)
    change(changed, "model.layers.1.self_attn.o_proj.weight")
    run = logits_here(changed, TINY_MODEL, "--count", "5")
    expect(run.returncode == 1 and run.stdout.startswith("not equal: layer 1 is the first that differs") and "of 5 times" in run.stdout, run.stdout + run.stderr)
    with open(os.path.join(changed, "config.json"), "r+") as f:
        config = json.load(f) | {"num_hidden_layers": 1}
        f.seek(0)
        json.dump(config, f)
        f.truncate()
    run = logits_here(changed, TINY_MODEL, "--json")
    answer = json.loads(run.stdout)
    expect((run.returncode, answer["equal"], answer["layers"], answer["relative_l2"]) == (1, False, 2, None), run.stdout + run.stderr)
    os.remove(os.path.join(changed, "config.json"))
    run = logits_here(changed, TINY_MODEL)
    expect(run.returncode == 4 and run.stderr.startswith("logits: transformers"), run.stdout + run.stderr)
finish(4)
