"""Files of ranks on grids of tensor, pipeline and expert parallelism, and exported again: the model, byte for byte. The models
divide over every size, and their layers, heads and experts differ.

    ranks_of_every_grid.py [all]     a few grids; or tp 1 to 8, pp 1 to 3, ep 1 to 8, all of them (label long)
"""

import filecmp
import os
import shutil
import sys
import tempfile

from mckpt_tests.checks import expect, finish, in_parallel
from mckpt_tests.models import make_model
from mckpt_tests.program import run_mckpt

ALL = len(sys.argv) > 1
work = tempfile.TemporaryDirectory(prefix="mckpt_every_grid_")
# 840 is divided by 1 to 8. Experts of a part of them go to each rank, as heads do.
dense = make_model(os.path.join(work.name, "dense"), layers=6, hidden=8, heads=840, kv=840, head_dim=2, ffn=840, vocab=64)
experts = make_model(os.path.join(work.name, "experts"), layers=3, hidden=4, heads=840, kv=840, head_dim=1, ffn=8, vocab=16, experts=840 if ALL else 12, moe_ffn=2)


def there_and_back(model, tp, pp, ep):
    to = os.path.join(work.name, f"{os.path.basename(model)}_{tp}_{pp}_{ep}")
    chunks = ["--vpp", 2] if pp == 3 and tp % 2 and model == dense else []
    etp = ["--etp", 2 if tp % 2 == 0 and model == experts else 1]
    run = run_mckpt("convert", "to-pt", model, to, "--tp", tp, "--pp", pp, "--ep", ep, *etp, *chunks, "--no-sync", "-q", timeout=600)
    what = f"{os.path.basename(model)} tp={tp} pp={pp} ep={ep}"
    back = to + "_hf"
    again = run_mckpt("export", to, back, "--no-sync", "-q", timeout=600)
    same = again.returncode == 0 and filecmp.cmp(os.path.join(back, "model.safetensors"), os.path.join(model, "model.safetensors"), shallow=False)
    expect(run.returncode == 0 and same, f"{what}: {run.stderr} {again.stderr}")
    shutil.rmtree(to, ignore_errors=True)
    shutil.rmtree(back, ignore_errors=True)


if ALL:
    grids = [(dense, tp, pp, 1) for tp in range(1, 9) for pp in (1, 2, 3)]
    grids += [(experts, tp, pp, ep) for tp in range(1, 9) for pp in (1, 3) for ep in range(1, 9)]
else:
    grids = [(dense, 1, 2, 1), (dense, 5, 3, 1), (dense, 7, 1, 1), (dense, 8, 2, 1), (experts, 3, 3, 2), (experts, 6, 1, 3), (experts, 2, 3, 6)]
in_parallel(there_and_back, grids)
finish(len(grids))
