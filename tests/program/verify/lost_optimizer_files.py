"""A run of Megatron with a distributed optimizer has a distrib_optim.pt in the folder of every rank that trains something: one that is lost is a problem, and
none is missed where the run has no such optimizer or where the optimizer was not saved."""
import os
import shutil
import tarfile
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

CASES = {"M_pt_tp2dp2_w4": ("mp_rank_00", "mp_rank_01"), "M_pt_moe_ep2_w2": ("mp_rank_00_000", "mp_rank_00_001")}

with tempfile.TemporaryDirectory() as scratch:
    with tarfile.open(os.path.join(DATA, "newest", "M.tar.xz")) as archive:
        archive.extractall(scratch, members=[m for m in archive if m.name.split("/")[0] in CASES], filter="data")
    for case, ranks in CASES.items():
        folder = os.path.join(scratch, case, "ckpt")
        run = run_mckpt("verify", folder)
        expect(run.returncode == 0 and "MC1106" not in run.stdout, f"{case}: {run.stdout}")
        for rank in ranks:
            lost = os.path.join(scratch, f"{case}_{rank}")
            shutil.copytree(folder, lost)
            os.remove(os.path.join(lost, "iter_0000005", rank, "distrib_optim.pt"))
            run = run_mckpt("verify", lost)
            expect(run.returncode == 1 and f"problem[MC1106]: {rank}/distrib_optim.pt: the rank's file is missing" in run.stdout, f"{case}, {rank}: {run.stdout}")
            # The weights are all there.
            run = run_mckpt("export", lost, lost + "_hf", "--assets", os.path.join(scratch, case, "assets"), "-q", "--no-sync")
            expect(run.returncode == 0, f"{case}, {rank}: export: {run.stderr}")
        none = os.path.join(scratch, f"{case}_none")
        shutil.copytree(folder, none)
        for rank in ranks:
            os.remove(os.path.join(none, "iter_0000005", rank, "distrib_optim.pt"))
        run = run_mckpt("verify", none)
        expect(run.returncode == 0, f"{case}: no optimizer was saved: {run.stdout}")
finish(12)
