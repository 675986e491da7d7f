"""DTensors over random meshes are the tensors that they are parts of: grids with dimensions of one rank, parts of grids, dimensions that were
flattened, meshes of some ranks alone; cuts in any order, strided shards on one and several mesh dimensions and as an order, sizes that do not
divide. The part of each rank is computed by test_data/rank_files/make_placements.py, with torch.chunk alone.

    placements_of_dtensors.py [REPEAT [SEED]]       REPEAT folders of 24 tensors (2)
"""
from mckpt_tests.checks import need

need("torch")
import json
import os
import sys
import tempfile
import warnings

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

sys.path.insert(0, os.path.join(DATA, "rank_files"))
warnings.filterwarnings("ignore")
import make_placements

REPEAT = int(sys.argv[1]) if len(sys.argv) > 1 else 2
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 20261128


def main():
    for seed in range(SEED, SEED + REPEAT):
        with tempfile.TemporaryDirectory() as out:
            want = make_placements.write(out, 24, seed)
            run = run_mckpt("ls", out, "--json", "--digest")
            expect(run.returncode == 0, f"seed {seed}: {run.stderr}")
            got = {t["name"]: {k: t[k] for k in ("dtype", "shape", "sha256")} for t in json.loads(run.stdout)["tensors"]}
            expect_equal(f"seed {seed}", sorted(got.items()), sorted(want.items()))
            run = run_mckpt("verify", out)
            expect(run.returncode == 0, f"seed {seed}: {run.stdout}")
    finish(REPEAT)


if __name__ == "__main__":
    main()
