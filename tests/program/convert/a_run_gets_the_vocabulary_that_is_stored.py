"""convert says which option gives a run, by Megatron's formula, the rows of the vocabulary that are stored, and writes it into the args."""

import os
import re
import sys
import tempfile

from mckpt_tests.checks import expect_equal, failures
from mckpt_tests.program import run_mckpt

MODEL = os.path.join(os.environ["MCKPT_SOURCE"], "test_data/models/tiny_qwen3_moe")
folder = tempfile.TemporaryDirectory(prefix="mckpt_vocabulary_")
for tp, asked, rows in ((1, "auto", 32), (2, "auto", 32), (2, "96", 96), (2, "38", 38), (1, "128", 128)):
    out = os.path.join(folder.name, f"{tp}_{asked}")
    done = run_mckpt("convert", "hf-to-fsdp", MODEL, out, "--tp", tp, "--vocab-size", asked, "--no-sync")
    expect_equal(f"{tp} {asked} {done.stderr}", [done.returncode], [0])
    text = run_mckpt("inspect", out, "--args").stdout
    stored = int(re.search(r"padded_vocab_size: (\d+)", text)[1])
    note = re.search(r"--make-vocab-size-divisible-by (\d+)", done.stderr)
    expect_equal(f"note {tp} {asked}", [note is None], [rows == 128 * tp])
    multiple = tp * (int(note[1]) if note else 128)
    own = tp * int(re.search(r"make_vocab_size_divisible_by: (\d+)", text)[1])
    expect_equal(f"{tp} {asked}", [stored, -(-32 // multiple) * multiple, -(-32 // own) * own], [rows, rows, rows])
sys.exit(1 if failures else 0)
