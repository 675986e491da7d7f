"""A model whose config ties the output layer to the embedding, and that has an output layer with values of its own, is a problem of `verify`, as
every conversion refuses it: in a Hugging Face folder and in a checkpoint of a run with a config beside it."""
import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

with tempfile.TemporaryDirectory() as scratch:
    folder, run_folder = os.path.join(scratch, "folder"), os.path.join(scratch, "run")
    shutil.copytree(TINY_MODEL, folder)
    shutil.copytree(os.path.join(DATA, "own_names", "fsdp2_tp", "checkpoint"), run_folder)
    shutil.copy(os.path.join(DATA, "own_names", "fsdp2_tp", "config.json"), run_folder)
    for place in (folder, run_folder):
        path = os.path.join(place, "config.json")
        with open(path, encoding="utf-8") as f:
            config = json.load(f)
        for tied in (False, True):
            with open(path, "w", encoding="utf-8") as f:
                json.dump({**config, "tie_word_embeddings": tied}, f)
            run = run_mckpt("verify", place)
            told = json.loads(run_mckpt("verify", place, "--json").stdout)
            problems = [(f["code"], "lm_head.weight" in f["message"] + (f["tensor"] or "")) for f in told["findings"] if not f["warning"]]
            expect(run.returncode == tied and problems == [("MC2005", True)] * tied, f"{place}: tied {tied}: {run.stdout}")
            expect(("problem[MC2005]" in run.stdout) == tied and told["ok"] != tied, f"{place}: tied {tied}: {run.stdout}")
finish(8)
