"""Every rank of the golden runs, loaded by `mckpt.load(model, rank=...)`: names in order, types, local shapes and the
bytes in memory are those that the real rank held."""
import ctypes
import hashlib
import os

from mckpt_tests.checks import expect_equal, in_parallel
from mckpt_tests.golden import finish, sections
from mckpt_tests.models import GOLDEN, Models
import mckpt_tests.package  # noqa: F401: makes the next import find it

import mckpt

# Runs that the real tool got wrong (golden_ranks.py).
WRONG = {"gpt_oss_2i", "qwen3_moe_mlponly", "qwen3_moe_sparse2"}
models = Models()


def row(t):
    held = (ctypes.c_char * t.nbytes).from_address(t.data) if t.nbytes else b""
    return f"{t.name} {t.dtype} {'x'.join(map(str, t.shape)) or '-'} {hashlib.sha256(held).hexdigest()}"


def check_rank(tag, model, head, rank, lines):
    grid = {name: int(size) for name, size in (part.split("=") for part in head[0].split()[1:])}
    got = [row(t) for t in mckpt.load(models.path(model), "cpu", rank=rank, threads=1, progress=False, **grid).values()]
    expect_equal(f"{tag} rank {rank}", [line for line in got if ".router.expert_bias " not in line], [line for line in lines if not line.startswith("buffer ")])
    expect_equal(f"{tag} rank {rank} buffers", sorted("buffer " + line for line in got if ".router.expert_bias " in line),
                 sorted(line for line in lines if line.startswith("buffer ")))


work = []
for name in sorted(os.listdir(os.path.join(GOLDEN, "ranks"))):
    head, ranks = sections(f"ranks/{name}")
    model = name.split(".")[0]
    if model not in WRONG:
        work += [((name, model, head, rank, lines),) for rank, lines in enumerate(ranks)]
in_parallel(lambda args: check_rank(*args), work)
finish(4951, "ranks")
