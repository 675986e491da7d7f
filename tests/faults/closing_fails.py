"""A file server may refuse what was written when the file is closed, and says so once. A result of more files than are open at a time is closed
before it is made durable: where this fails, nobody says "done", and the same command afterwards makes the right result.
"""

import os

from mckpt_tests.checks import expect, finish
from mckpt_tests.figures import counted
from mckpt_tests.folders import difference, scratch
from mckpt_tests.models import make_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.small_runs import faulty

with scratch() as folder:
    model = make_model(os.path.join(folder, "model"), layers=4, hidden=32, heads=2, kv=2, head_dim=16, vocab=64, experts=30, moe_ffn=16)
    run_mckpt("convert", "hf-to-fsdp", model, os.path.join(folder, "ckpt"), "-q", "--no-sync")

    def export(to, **how):
        return run_mckpt("export", os.path.join(folder, "ckpt"), os.path.join(folder, to), "-q", "-j1", "--max-shard-size", "1K", **how)

    expect(export("reference").returncode == 0, "the export alone")
    shards = [name for name in os.listdir(os.path.join(folder, "reference")) if name.endswith(".safetensors")]
    expect(len(shards) > 300, f"{len(shards)} shards, and 256 files may be open")
    told = 0
    with counted("P11", "errors of closing written files before they are durable: told, or of a file that is durable", None) as count:
        for n in range(100, 3000, 40):
            to = f"closed_{n}"
            result = export(to, env=faulty("close", n, "EDQUOT"))
            at = os.path.join(folder, to)
            if result.returncode == 0:
                wrong = difference(at, os.path.join(folder, "reference"))
            else:
                told += "closing the file failed: Disk quota exceeded" in result.stderr and "--> " in result.stderr
                wrong = "" if result.returncode == 5 and not os.path.exists(at) else f"exit status {result.returncode}: {result.stderr[:300]}"
                if not wrong:
                    again = export(to, env=None)
                    wrong = again.returncode != 0 and again.stderr[:300] or difference(at, os.path.join(folder, "reference"))
            count.one(expect(not wrong, f"close {n}: {wrong}"))
        count.also = f"{told} told"
    expect(told > 0, "no error of a file that is closed early is told")
finish(20)
