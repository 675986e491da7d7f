"""A vocabulary that does not divide by tp is padded, and every command says so; --vocab-size keep refuses it."""

import json
import os
import sys
import tempfile

from mckpt_tests.checks import expect_equal, failures
from mckpt_tests.models import make_model
from mckpt_tests.program import run_mckpt

folder = tempfile.TemporaryDirectory(prefix="mckpt_padded_")
# 308 = 4 * 77: padded to a multiple of 4 rows a rank.
model = make_model(os.path.join(folder.name, "model"), layers=1, hidden=48, heads=6, kv=6, head_dim=8, ffn=96, vocab=308)
NOTE = "308 rows become 312: 4 rows of zeros are added, for tp 3"


def run(*args, status=0):
    done = run_mckpt(*args)
    expect_equal(" ".join(map(str, args)) + done.stderr, [done.returncode], [status])
    return done


def rows(done):
    return sorted({t["shape"][0] for t in json.loads(done.stdout)["tensors"] if "word_embeddings" in t["name"]})


out = os.path.join(folder.name, "out")
done = run("convert", "hf-to-fsdp", model, out, "--tp", 3, "--no-sync", "--json")
expect_equal("convert", [NOTE in done.stderr, json.loads(done.stdout)["padded"], json.loads(done.stdout)["unpadded"]], [True, 2, 0])
expect_equal("stored", rows(run("ls", out, "--json")), [312])
for whom, share in (("megatron", 104), ("fsdp", 312)):
    done = run("ls", model, "--as", whom, "--tp", 3, "--json")
    expect_equal(f"ls --as {whom}", [NOTE in done.stderr, rows(done)], [True, [share]])

# Padding that is asked for is said as well; where nothing is padded, nothing is said.
done = run("convert", "hf-to-fsdp", model, out + "1", "--tp", 2, "--vocab-size", 320, "-n")
expect_equal("asked for", ["308 rows become 320" in done.stderr], [True])
for flags in (("--tp", 2), ("--tp", 2, "--vocab-size", "keep"), ("--tp", 3, "--vocab-size", 312, "-q")):
    done = run("convert", "hf-to-fsdp", model, out + "1", *flags, "-n")
    expect_equal(f"quiet {flags}", ["rows become" in done.stderr], [False])

for command in (["convert", "hf-to-fsdp", model, out + "2"], ["ls", model, "--as", "fsdp"], ["ls", model, "--as", "megatron"]):
    done = run(*command, "--tp", 3, "--vocab-size", "keep", status=4)
    expect_equal(f"{command}: {done.stderr}", ["MC2006" in done.stderr, "--vocab-size auto" in done.stderr], [True, True])

# An export has the model's own rows; the account says from how many tensors padding was taken.
done = run("export", out, os.path.join(folder.name, "hf"), "--no-sync", "--json")
expect_equal("export", [json.loads(done.stdout)["unpadded"], json.loads(done.stdout)["padded"]], [2, 0])
run("verify", os.path.join(folder.name, "hf"), "--against", model, "-q")
sys.exit(1 if failures else 0)
