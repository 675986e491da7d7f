"""Files of ranks whose schedules, steps or options differ are of two saves: MC1315 with both values, refused by conversions unless it is accepted.
Values that each rank has for itself, such as random states, may differ."""
import os
import pickle
import random
import re
import shutil
import tempfile
import zipfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA


def edited(source, target, change):
    """The file with other bytes in its entries, and checksums of these."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            new.writestr(entry.filename, change(entry.filename, old.read(entry)))


def in_pickle(pattern, to):
    def change(name, data):
        if not name.endswith("data.pkl"):
            return data
        out, count = re.subn(pattern, lambda found: found[1] + to, data, flags=re.DOTALL)
        expect(count > 0, f"{pattern} is not in the pickle")
        return out

    return change


def in_data(old, new):
    return lambda name, data: new if data == old else data


CASES = [  # data, the file that is edited, how, what is said
    ("verl1st_w3", "extra_state_world_size_3_rank_1.pt", in_pickle(rb"(last_epoch(?:q.|r....))K.", b"K\x05"),
     "the file is of another save than extra_state_world_size_3_rank_0.pt: lr_scheduler.last_epoch is 5 here and 1 there"),
    ("pieces", "optim_world_size_3_rank_2.pt", in_data(b"\0\0\xe0\x40", b"\0\0\xa0\x40"), "state.model.embed_tokens.weight.step is 5 here and 7 there"),
    ("pieces", "optim_world_size_3_rank_1.pt", in_pickle(rb"(lr(?:q.|r....))G.{8}", b"G\x3f\xd0\0\0\0\0\0\0"), "param_groups[0].lr is 0.25 here and 0.1 there"),
    ("accelerate", "optimizer_0_rank1.bin", in_data(b"\0\0\xe0\x40", b"\0\0\xa0\x40"), "the file is of another save than optimizer_0_rank0.bin"),
]  # fmt: skip


def check_random_states(scratch):
    """accelerate writes the count of steps beside the random states of each rank."""
    saved = os.path.join(scratch, "saved")
    shutil.copytree(os.path.join(DATA, "rank_files", "accelerate"), saved)
    for steps, status in (({0: 7, 1: 7}, 0), ({0: 7, 1: 5}, 1), ({1: 7, 2: 5}, 1)):
        for rank in range(3):
            if os.path.exists(left := os.path.join(saved, f"random_states_{rank}.pkl")):
                os.remove(left)
        for rank, step in steps.items():
            with open(os.path.join(saved, f"random_states_{rank}.pkl"), "wb") as f:
                pickle.dump({"step": step, "random_state": random.Random(rank).getstate()}, f)
        run = run_mckpt("verify", saved)
        expect(run.returncode == status and ("step is 5 here and 7 there" in run.stdout) == bool(status), f"random states {steps}: {run.stdout}")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        for data, file, change, words in CASES:
            saved, out = os.path.join(scratch, "saved"), os.path.join(scratch, "out.safetensors")
            shutil.copytree(os.path.join(DATA, "rank_files", data), saved)
            expect(run_mckpt("verify", saved).returncode == 0, f"{data} as it was saved")
            edited(os.path.join(DATA, "rank_files", data, file), os.path.join(saved, file), change)
            run = run_mckpt("verify", saved)
            expect(run.returncode == 1 and "MC1315" in run.stdout and words in run.stdout, f"{file}: {run.stdout}")
            run = run_mckpt("convert", "to-safetensors", saved, out)
            expect(run.returncode == 3 and "MC1315" in run.stderr and words in run.stderr and not os.path.exists(out), f"{file}: {run.stderr}")
            run = run_mckpt("convert", "to-safetensors", saved, out, "--accept", "MC1315")
            expect(run.returncode == 0 and os.path.exists(out), f"{file}: {run.stderr}")
            shutil.rmtree(saved)
            os.remove(out)
        check_random_states(scratch)
    finish(4 * len(CASES))


if __name__ == "__main__":
    main()
