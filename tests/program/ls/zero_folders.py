"""Folders of DeepSpeed ZeRO are whole parameters: as zero_to_fp32 gives them for those that DeepSpeed saved (test_data/zero), and as they
were before they were cut for made-up ones of odd shapes, numbers of ranks and groups, with padding, gaps and sub-groups.
"""
import json
import pathlib
import random
import tempfile

from mckpt_tests.checks import expect, fail, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, SHARE

DTYPES = {"F32": "float32", "BF16": "bfloat16"}


def listing(path):
    run = run_mckpt("ls", path, "--json", "--digest")
    if not run.stdout:
        fail(f"{path}: {run.stderr}")
        return {}
    return {t["name"]: (t["dtype"], t["shape"], t["sha256"]) for t in json.loads(run.stdout)["tensors"]}


def compare(what, got, want):
    for name in sorted(got.keys() | want.keys()):
        expect(got.get(name) == want.get(name), f"{what}: {name}: got {got.get(name)}, want {want.get(name)}")


def golden():
    for path in sorted(pathlib.Path(DATA, "zero").glob("*.expected.json")):
        folder = path.with_name(path.name.removesuffix(".expected.json"))
        want = {n: (DTYPES[t["dtype"]], t["shape"], t["sha256"]) for n, t in json.loads(path.read_text())["tensors"].items()}
        for at in (folder, folder / "global_step2"):
            got = listing(at)
            compare(at, {n: t for n, t in got.items() if not n.startswith("optimizer.") or n in want}, want)
        if not folder.name.startswith("zero0"):
            states = [n for n in got if n.startswith("optimizer.state.")]
            expect(len(states) >= 30 and len(states) % 3 == 0, f"{folder}: {len(states)} states")
        left_out = "nofrozen" in folder.name
        run = run_mckpt("verify", folder)
        expect(run.returncode == left_out and ("MC1317" in run.stdout) == left_out and "not read" not in run.stdout,
               f"verify {folder}: {run.returncode} {run.stdout}")


def random_shape(r):
    return tuple(r.choice([1, 1, 2, 3, 5, 7, 8]) for _ in range(r.choice([0, 1, 1, 2, 2, 2, 3, 4])))


def random_settings(r):
    names = iter([f"model.layers.{i}.w" for i in range(40)])

    def shapes(least, most):
        return {next(names): random_shape(r) for _ in range(r.randint(least, most))}
    groups = [shapes(1, 6) for _ in range(r.choice([1, 1, 2, 3]))]
    first = r.choice(list(groups[0]))
    return {"stage": r.choice([1, 2, 3]), "ranks": r.choice([1, 2, 3, 4, 5, 8]), "groups": groups, "frozen": shapes(0, 3),
            "buffers": shapes(0, 2), "shared": {"lm_head.weight": first} if r.random() < 0.4 else {}, "gaps": r.random() < 0.3,
            "sub_groups": r.choice([1, 1, 2, 3]), "seed": r.randrange(10**6), "bf16": r.random() < 0.7, "adam": r.random() < 0.9,
            "elastic": r.random() < 0.3, "last_pads": r.random() < 0.3, "turns": r.random() < 0.4}


def made_up():
    from mckpt_tests.judge import row
    from mckpt_tests.zero import write
    r = random.Random(11)
    for i in range(max(6, 60 * SHARE // 100)):
        settings = random_settings(r)
        with tempfile.TemporaryDirectory() as temp:
            folder = pathlib.Path(temp, "saved")
            made = write(folder, **settings)
            compare(settings, listing(folder), {n: row(t) for n, t in made.want.items()})
            run = run_mckpt("verify", folder)
            expect(run.returncode == 0, f"verify of {settings}: {run.stdout}")
            warned = settings["stage"] == 1 and settings["frozen"]
            expect(("zero_to_fp32 leaves them out" in run.stdout) == bool(warned), f"{settings}: frozen parameters: {run.stdout}")


golden()
need("torch", "numpy")
made_up()
finish(300)
