"""On a terminal of 60 columns no line is longer, except lines of one long word; and nothing is lost by
that."""
import collections
import os
import re
import shlex
import sys
import tempfile

from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA
from mckpt_tests.terminal import on_terminal, screen_lines

NARROW, WIDE = 60, 1000
LINES = """
inspect models/tiny_qwen3_moe
inspect models/tiny_qwen3_moe --tree
inspect dcp/uneven_4
inspect dcp/uneven_4 --args
inspect dcp/uneven_4 --groups
inspect dcp/uneven_4 --map
inspect dcp/damaged_pp2
inspect pt/training.pt
inspect nothing
ls models/tiny_qwen3_moe
ls models/tiny_qwen3_moe --digest
ls dcp/uneven_4
ls models/tiny_qwen3_moe --as megatron --tp 2
ls models/tiny_qwen3_moe --as fsdp --tp 2
ls models/tiny_qwen3_moe 'norm.*'
stats models/tiny_qwen3_moe
stats dcp/uneven_4
cat models/tiny_qwen3_moe lm_head.weight
cat models/tiny_qwen3_moe model.norm.weight
pattern 'M-M-|M-M*-'
pattern '[*-]M|[*E]-/*M'
pattern 'M-M-|M-M*-' --pp-size 2 --pp-rank 1
pattern 'M[*E-]'
layout models/tiny_qwen3_moe --ep 4 --dp 16
layout models/tiny_qwen3_moe --dp 4 --group 1
layout models/tiny_qwen3_moe '*norm*'
layout 10x4 10 --world 4
verify models/tiny_qwen3_moe
verify dcp/uneven_4
verify dcp/damaged_pp2
verify dcp/plain --against models/tiny_qwen3_moe
convert hf-to-fsdp models/tiny_qwen3_moe $T/new --tp 2 --dry-run
convert hf-to-fsdp models/tiny_qwen3_moe $T/new --tp 2 --dry-run -v
export dcp/uneven_4 $T/hf --dry-run
env
explain
explain MC1315
formats
mappings
mappings show qwen3_moe
mappings check models/tiny_qwen3_moe -v
mappings draw
"""
DRAWN = ("layout",)  # a picture is drawn for the width, and is another one on a wide terminal
failures = 0


def words(text):
    return collections.Counter(word for line in screen_lines(text) for word in re.split(r" +", line) if word)


with tempfile.TemporaryDirectory() as folder:
    for line in LINES.strip().splitlines():
        args = shlex.split(line.replace("$T", folder))
        args = ["--progress", "none", *args]  # on a busy machine anything takes long
        status, narrow = on_terminal(*args, columns=NARROW, cwd=DATA)
        long = [text for text in screen_lines(narrow) if len(text) > NARROW and len(text.split()) > 1]
        again, wide = on_terminal(*args, columns=WIDE, cwd=DATA)
        lost = words(wide) - words(narrow)
        if long or status != again or (lost and args[2] not in DRAWN):
            failures += 1
            print(f"FAIL {line}: {status}, {again}; too long: {long[:3]}; lost: {list(lost)[:10]}")
    # What another program reads is never broken.
    for args in (["completions", "bash"], ["ls", "models/tiny_qwen3_moe", "--jsonl"]):
        plain = run_mckpt(*args, cwd=DATA).stdout
        if "\n".join(screen_lines(on_terminal(*args, columns=NARROW, cwd=DATA)[1])) != plain:
            failures += 1
            print("FAIL", *args, "is broken into lines")
    assert not os.listdir(folder)
print(f"{len(LINES.strip().splitlines())} command lines, {failures} failures")
sys.exit(bool(failures))
