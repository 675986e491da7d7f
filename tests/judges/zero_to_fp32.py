"""DeepSpeed's own zero_to_fp32 says what is in folders of ZeRO: made-up ones of odd shapes and numbers of ranks, and those that its engine
saves here, run as two or three ranks on the CPU. Needs deepspeed, which is not among the packages that scripts/bootstrap installs:

    python3 -m venv ds; ds/bin/pip install torch numpy deepspeed
    PYTHONPATH=tests/support MCKPT=build/mckpt ds/bin/python tests/judges/zero_to_fp32.py
"""
import contextlib
import io
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile

from mckpt_tests.checks import expect, fail, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SHARE

os.environ.setdefault("DS_ACCELERATOR", "cpu")
need("torch", "numpy", "deepspeed")
import torch  # noqa: E402
with contextlib.redirect_stdout(io.StringIO()):
    import deepspeed
from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint  # noqa: E402

# Stage, ranks, frozen layers, whether the head is shared.
TRAINED = [(1, 3, True, False), (2, 3, True, True), (3, 2, True, True), (3, 3, False, False)]


class Model(torch.nn.Module):
    """Odd sizes, a buffer, a head that may share its weights."""
    def __init__(self, tied):
        super().__init__()
        self.embed = torch.nn.Embedding(13, 7)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(7, 5), torch.nn.Linear(5, 7, bias=False), torch.nn.LayerNorm(7)])
        self.head = torch.nn.Linear(7, 13, bias=False)
        if tied:
            self.head.weight = self.embed.weight
        self.register_buffer("scale", torch.rand(3))

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x * self.scale.sum())


def train(folder, stage, frozen, tied):
    """One rank: RANK and WORLD_SIZE are set."""
    deepspeed.init_distributed(dist_backend="gloo")
    torch.manual_seed(5)
    model = Model(tied)
    if frozen:
        for p in model.layers[0].parameters():
            p.requires_grad_(False)
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [{"params": [p for p in trained if p.dim() > 1]}, {"params": [p for p in trained if p.dim() == 1], "weight_decay": 0.0}]
    engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(groups, lr=1e-2), config={
        "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 8}})
    for _ in range(2):
        out = engine(torch.arange(6).reshape(1, 6))
        engine.backward(out.float().pow(2).mean())
        engine.step()
    engine.save_checkpoint(folder)


def run_ranks(folder, stage, ranks, frozen, tied):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    started = []
    for r in range(ranks):
        env = {**os.environ, "RANK": str(r), "LOCAL_RANK": str(r), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
               "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "train", folder, str(stage), str(int(frozen)), str(int(tied))]
        started.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    errors = [p.communicate(timeout=200)[1] for p in started]
    return [e[-1500:] for p, e in zip(started, errors) if p.returncode]


def compare(what, folder, dropped=()):
    """mckpt lists the tensors that zero_to_fp32 gives; it also has the parameters that zero_to_fp32 drops."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        real = get_fp32_state_dict_from_zero_checkpoint(str(folder))
    run = run_mckpt("ls", folder, "--json", "--digest")
    if run.returncode:
        return fail(f"{what}: {run.stderr}")
    got = {t["name"]: (t["dtype"], t["shape"], t["sha256"]) for t in json.loads(run.stdout)["tensors"]
           if not t["name"].startswith("optimizer.")}
    want = {n: row(t) for n, t in real.items()}
    expect(got.keys() - want.keys() == set(dropped), f"{what}: more than zero_to_fp32: {got.keys() - want.keys()}")
    for name in want:
        expect(got.get(name) == want[name], f"{what}: {name}: got {got.get(name)}, want {want[name]}")
    run = run_mckpt("verify", folder)
    expect(run.returncode == 0, f"{what}: {run.stdout}")


def main():
    with tempfile.TemporaryDirectory() as temp:
        for stage, ranks, frozen, tied in TRAINED:
            folder = pathlib.Path(temp, f"trained{stage}{ranks}{frozen}{tied}")
            if errors := run_ranks(str(folder), stage, ranks, frozen, tied):
                fail(f"the engine failed: {errors[0]}")
                continue
            dropped = ("layers.0.weight", "layers.0.bias") if frozen and stage == 1 else ()
            compare(f"ZeRO {stage}, {ranks} ranks, frozen {frozen}, tied {tied}", folder, dropped)
        r = random.Random(3)
        for i in range(max(5, 60 * SHARE // 100)):
            settings = {"stage": r.choice([1, 2, 3]), "ranks": r.choice([1, 2, 3, 5]), "gaps": r.random() < 0.3,
                        "sub_groups": r.choice([1, 2, 3]), "seed": i, "frozen": {"f": (3, 5)}, "buffers": {"r": (4,)},
                        "shared": {"head": "w0.0"},
                        "groups": [{f"w{g}.{n}": tuple(r.choice([1, 2, 3, 7]) for _ in range(r.randint(0, 3))) for n in range(r.randint(1, 6))}
                                   for g in range(r.choice([1, 2]))]}
            folder = pathlib.Path(temp, f"made{i}")
            write(folder, **settings)
            compare(settings, folder, ("f",) if settings["stage"] == 1 else ())
    finish(300)


if sys.argv[1:2] == ["train"]:
    train(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1", sys.argv[5] == "1")
else:
    from mckpt_tests.judge import row
    from mckpt_tests.zero import write
    main()
