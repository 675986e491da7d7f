"""`mckpt roundtrip --logits`: transformers computes the same with the source and with what was exported, on one rank and on two;
a difference is one of the round trip; and what cannot be computed is refused before anything is loaded.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.setting import MCKPT, MPIRUN, TINY_MODEL

need("transformers", "torch")

work = tempfile.TemporaryDirectory(prefix="mckpt_logits_")


def roundtrip(*args, ranks=1, python=sys.executable, cwd=None, env=None):
    start = [MPIRUN, "-n", str(ranks), "--timeout", "250"] if ranks > 1 else []
    told = ["--python", python] if python else []
    return subprocess.run([*start, MCKPT, "roundtrip", *map(str, args), *told], capture_output=True, text=True, timeout=280,
                          stdin=subprocess.DEVNULL, cwd=cwd, env={**os.environ, **(env or {})})


def ended(run, status, *words):
    expect(run.returncode == status, f"{run.args}: exit status {run.returncode}: {run.stdout[-500:]}{run.stderr[-900:]}")
    for word in words:
        expect(word in run.stdout + run.stderr, f"{run.args}: nothing of '{word}': {run.stdout[-500:]}{run.stderr[-900:]}")
    return run


# A file of the folder in which the program runs is not imported.
with open(os.path.join(work.name, "torch.py"), "w") as f:
    f.write("raise SystemExit('imported from the current folder')\n")
run = ended(roundtrip(TINY_MODEL, "--logits", "--no-sync", "--tp", 2, "--json", ranks=2, cwd=work.name), 0)
told = json.loads(run.stdout)
expect(told["logits"] == {"equal": True, "tokens": 16, "layers": 2, "first_layer": None, "largest_difference": 0.0, "relative_l2": 0.0,
                          "same_next_tokens": 16}, f"{told['logits']}")
expect([p["name"] for p in told["phases"]][-1] == "logits", f"{told['phases']}")
run = ended(roundtrip(TINY_MODEL, "--logits", "--no-sync", python=None, env={"MCKPT_PYTHON": sys.executable}), 0)
expect("logits   equal: logits of 16 tokens and all 2 layers, bit for bit" in run.stdout, run.stdout)

# The words and numbers are the script's; that these say what the models compute is for judges/logits_by_layer.
stand_in = os.path.join(work.name, "stand_in")
ANSWER = {"equal": False, "tokens": 16, "layers": 2, "first_layer": 1, "largest_difference": 0.25, "relative_l2": 1e-05, "same_next_tokens": 15}
with open(stand_in, "w") as f:
    f.write("#!/bin/sh\n[ \"$3\" != --check ] || exit 0\necho words of a library\n"
            f"echo '{json.dumps(ANSWER | {'line': 'not equal: layer 1 is the first'})}'\nexit 1\n")
os.chmod(stand_in, 0o755)
told = json.loads(ended(roundtrip(TINY_MODEL, "--logits", "--no-sync", "--json", python=stand_in), 1).stdout)
expect(told["logits"] == ANSWER and told["equal"] is False and told["ok"] is False, f"{told['logits']}")
expect(told["differences"] == ["the logits: not equal: layer 1 is the first"], f"{told['differences']}")
ended(roundtrip(TINY_MODEL, "--logits", "--no-sync", python=stand_in), 1, "logits   not equal: layer 1 is the first", "NOT EQUAL")

with open(stand_in, "w") as f:
    f.write("#!/bin/sh\nexit 0\n")
ended(roundtrip(TINY_MODEL, "--logits", "--no-sync", python=stand_in), 3, "MC0004", "Python ended before it had an answer", "exit status 0")

# Refused before the model is loaded.
unknown = os.path.join(work.name, "unknown")
shutil.copytree(TINY_MODEL, unknown)
with open(os.path.join(unknown, "config.json"), "r+") as f:
    config = json.load(f) | {"model_type": "no_such_model"}
    f.seek(0)
    json.dump(config, f)
    f.truncate()
run = ended(roundtrip(unknown, "--logits", "--no-sync"), 3, "MC0004", "transformers cannot compute the logits of this model", "no_such_model")
expect("load " not in run.stdout, run.stdout)
empty = os.path.join(work.name, "python")
with open(empty, "w") as f:
    f.write("#!/bin/sh\necho \"logits: No module named 'transformers'\" >&2\nexit 5\n")
os.chmod(empty, 0o755)
ended(roundtrip(TINY_MODEL, "--logits", python=empty), 3, "MC0004", "this Python cannot compare logits", "No module named 'transformers'", "--python names one")
ended(roundtrip(TINY_MODEL, "--logits", python=os.path.join(work.name, "none")), 3, "MC0004", "Python cannot be started")
with open(empty, "w") as f:
    f.write("#!/bin/sh\nkill -9 $$\n")
ended(roundtrip(TINY_MODEL, "--logits", python=empty), 3, "Python ended before it had an answer", "signal 9")
ended(roundtrip(TINY_MODEL, "--logits", "--until", "check"), 2, "MC0001", "before there is a model")
ended(roundtrip(TINY_MODEL), 2, "MC0001", "--python is for --logits")
finish(20)
