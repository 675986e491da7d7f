"""`mckpt roundtrip` over ranks of two hosts: what each host's ranks share, and what must be seen by all."""

import json
import os
import subprocess
import sys
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.models import make_model
from mckpt_tests.setting import MCKPT, MPIRUN
from mckpt_tests.two_hosts import ON_TWO_HOSTS, on_two_hosts_each, why_not_two_hosts

PROGRAM = MCKPT
RANKS = 2


def roundtrip(*flags, hosts=2):
    where = on_two_hosts_each(RANKS // 2) if hosts == 2 else []
    command = [
        MPIRUN,
        "-n",
        str(RANKS),
        *where,
        "--timeout",
        "100",
        PROGRAM,
        "roundtrip",
        model,
        "--dp",
        str(RANKS),
        "--json",
        "--no-sync",
        *flags,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, env=ON_TWO_HOSTS)


def threads(hosts, *flags):
    run = roundtrip("--until", "load", *flags, hosts=hosts)
    return json.loads(run.stdout)["threads"] if run.returncode == 0 else run.stderr[-500:]


if why := why_not_two_hosts(MPIRUN):
    print(f"skipped: this machine cannot be two hosts: {why}")
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="mckpt_hosts_") as scratch:
    model = make_model(os.path.join(scratch, "model"), layers=1, hidden=64, heads=4, kv=4, head_dim=16, ffn=96, vocab=128)
    processors = os.cpu_count()
    for hosts, want in ((1, max(1, processors // RANKS)), (2, max(1, processors // (RANKS // 2)))):
        expect(threads(hosts) == want, f"{threads(hosts)} threads a rank on {hosts} hosts with {processors} processors, not {want}")
    expect(threads(2, "--threads", "3") == 3, "threads that were asked for")
    # Before anything is loaded.
    run = roundtrip("--progress", "json")
    told = [line for line in run.stderr.splitlines() if line.startswith("error[")]
    expect(
        run.returncode == 2 and len(told) == 1 and "several hosts" in told[0] and "--output DIR" in run.stderr,
        f"no folder for all: exit status {run.returncode}: {run.stderr[-800:]}",
    )
    run = roundtrip("--output", os.path.join(scratch, "exported"))
    expect(run.returncode == 0 and json.loads(run.stdout)["equal"], f"a folder for all: exit status {run.returncode}: {run.stderr[-800:]}")
    expect(roundtrip(hosts=1).returncode == 0, "no folder on one host")
finish(6)
