"""Dumps of live ranks of Megatron-Core, made by its own code on CPU ranks (tests/support/mckpt_tests/live_megatron.py).

    PYTHONPATH=tests/support .venv/bin/python test_data/live_ranks/make.py     writes tiny_qwen3_moe.tp2_rank1.json
"""

import os
import shutil
import tempfile

from mckpt_tests.live_megatron import live
from mckpt_tests.setting import DATA, TINY_MODEL

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        dumps = live(TINY_MODEL, os.path.join(scratch, "tiny"), 2, 1, 2)
        shutil.copy(dumps[1], os.path.join(DATA, "live_ranks", "tiny_qwen3_moe.tp2_rank1.json"))
