"""The args of a checkpoint give the stored rows of the vocabulary by Megatron's formula, and convert says what a run needs."""

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
    stored, divisor = (int(re.search(name + r": (\d+)", text)[1]) for name in ("padded_vocab_size", "make_vocab_size_divisible_by"))
    multiple = divisor * tp
    expect_equal(f"{tp} {asked}", [stored, -(-32 // multiple) * multiple], [rows, rows])
    note = re.search(r"--make-vocab-size-divisible-by (\d+)", done.stderr)
    expect_equal(f"note {tp} {asked}", [int(note[1]) if note else None], [None if rows == 128 * tp else divisor])
sys.exit(1 if failures else 0)
