"""A run whose tracker names a step with several checkpoints (actor and critic) is verified like that step: each checkpoint by itself."""
import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

SAVED = os.path.join(DATA, "rank_files", "verl2_w3")

with tempfile.TemporaryDirectory() as scratch:
    run = os.path.join(scratch, "run")
    for part in ("global_step_1/actor", "global_step_2/actor", "global_step_2/critic"):
        shutil.copytree(SAVED, os.path.join(run, part))
    with open(os.path.join(run, "latest_checkpointed_iteration.txt"), "w", encoding="utf-8") as f:
        f.write("2")
    for lost, status in ((None, 0), ("model_world_size_3_rank_1.pt", 1)):
        if lost:
            os.remove(os.path.join(run, "global_step_2", "critic", lost))
        text = run_mckpt("verify", run)
        told = json.loads(run_mckpt("verify", run, "--json").stdout)
        expect(text.returncode == status and told["ok"] == (status == 0), f"{lost}: {text.stdout} {text.stderr}")
        expect([p["path"] for p in told["parts"]] == ["global_step_2/actor", "global_step_2/critic"], f"{lost}: {told['parts']}")
        expect(("1 of 2 checkpoints is not sound" if lost else "2 checkpoints, each sound") in text.stdout, text.stdout)
        expect([(u["path"], u["reason"]) for u in told["unread"]] == [("global_step_1/actor", "another iteration")], f"{told['unread']}")
    step = json.loads(run_mckpt("verify", os.path.join(run, "global_step_2"), "--json").stdout)
    expect([p["path"] for p in step["parts"]] == ["actor", "critic"], "the step by itself")
finish(9)
