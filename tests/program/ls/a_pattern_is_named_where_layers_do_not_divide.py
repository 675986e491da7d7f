"""The layers of a hybrid model that do not divide by --pp may be divided by --hybrid-pattern: where a rank is refused for its stages, the
message names the option with a pattern, and the rank is listed with it. Other models, and Megatron-FSDP, which has no stages, get no
such advice."""

import re

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.folders import scratch_paths
from mckpt_tests.hybrid_models import hybrid_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import TINY_MODEL

path = scratch_paths()
WAY = re.compile(r"; or a --hybrid-pattern with \| at the ends of stages, such as '([^']*)'")


def ls(model, pp, *flags, whom="megatron"):
    return run_mckpt("ls", model, "--as", whom, "--pp", pp, "-q", *flags)


for pattern, stages in (("M-M*-", (2, 3, 4)), ("M-M*-/*-/*-", (2,)), ("M*M*", (3,))):
    model = hybrid_model(pattern, path(pattern.replace("/", "_")))
    whole = ls(model, 1).stdout.split()
    for pp in stages:
        run = ls(model, pp)
        way = WAY.search(run.stderr)
        if not expect(run.returncode == 4 and "MC2007" in run.stderr and way, f"{pattern} {pp}: {run.stderr}"):
            continue
        expect(way[1].replace("|", "") == pattern and way[1].count("|") == pp - 1, f"{pattern} {pp}: {way[1]}")
        held = [ls(model, pp, "--hybrid-pattern", way[1], "--rank", rank) for rank in range(pp)]
        expect(all(h.returncode == 0 for h in held), f"{pattern} {pp}: {held}")
        count = sum(len(h.stdout.split()) for h in held)
        expect(count >= len(whole), f"{pattern} {pp}: {count} tensors of {len(whole)}")
    run = ls(model, 99)
    expect(run.returncode == 4 and "--hybrid-pattern" not in run.stderr, f"{pattern} 99: {run.stderr}")
    run = ls(model, 2, whom="fsdp")
    expect("MC0203" in run.stderr and "--hybrid-pattern" not in run.stderr, f"{pattern} fsdp: {run.stderr}")
run = ls(TINY_MODEL, 3)
expect_equal("another model", (run.returncode, "MC2007" in run.stderr, "hybrid" in run.stderr), (4, True, False))
for pp, given, way in ((2, "M[-M]*-", "M[-M]|*-"), (5, "M[-M]*-", None), (2, "M[-M]*-|", None)):
    grouped = ls(path("M-M*-"), pp, "--hybrid-pattern", given)
    if way is None:
        expect(grouped.returncode != 4 or "such as" not in grouped.stderr, f"{given} {pp}: {grouped.stderr}")
        continue
    expect(grouped.returncode == 4 and f"such as '{way}'" in grouped.stderr, f"{given} {pp}: {grouped.stderr}")
    expect(ls(path("M-M*-"), pp, "--hybrid-pattern", way).returncode == 0, way)
finish(28)
