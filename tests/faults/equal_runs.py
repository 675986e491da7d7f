"""Every kind of conversion, models in memory, and every command that looks, over and over: with other numbers of threads, bounds of memory, ranks
and cores, and with threads and ranks that wait at random. Each run writes the same bytes and reports, gives the same answer and the same messages in
the same order as the first run, which has one thread and waits for nothing. If a source has several faults, each run tells the same one first.

usage: equal_runs.py [conversions | models | refusals | looks] [SEED]

Which of the faults in the shares of several ranks is told is not held: the first rank that finds one ends the job. Conversions that are refused
run as one rank here."""

import concurrent.futures
import dataclasses
import json
import os
import random
import shutil
import struct
import sys

from mckpt_tests.checks import expect, finish
from mckpt_tests.figures import counted, so_many, time_is_left
from mckpt_tests.folders import data_offset, scratch
from mckpt_tests.models import make_model
from mckpt_tests.orders import PLAIN, Order, said_and_written, unlike
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import BUILD, HAS_MPI, SANITIZED
from mckpt_tests.small_runs import small_runs

ROUNDS = so_many(100, 1 if SANITIZED else 3)
KINDS = ("conversions", "models", "refusals", "looks")
CHOSEN = [word for word in sys.argv[1:] if word in KINDS] or KINDS
SEED = int(next((word for word in sys.argv[1:] if word not in KINDS), 17))
# Many tasks for each thread, tensors that are larger than a batch, and several files on each side.
SIZES = dict(layers=2, hidden=256, heads=8, kv=4, head_dim=32, vocab=6144, experts=8, moe_ffn=384, shard_bytes=2_000_000)
HAS_TORCH = os.path.exists(os.path.join(BUILD, "libmckpt_torch.so"))
NAN, INFINITE, HUGE = 0x7FC0, 0x7F80, 0x7F00  # bfloat16


def put(path, at, data):
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(data)


def tensors_of(folder):
    """(file, type, begin, end) of each tensor, by name."""
    out = {}
    for name in sorted(name for name in os.listdir(folder) if name.endswith(".safetensors")):
        path = os.path.join(folder, name)
        with open(path, "rb") as f:
            size = struct.unpack("<Q", f.read(8))[0]
            header = json.loads(f.read(size))
        out.update((tensor, (path, t["dtype"], *(8 + size + at for at in t["data_offsets"]))) for tensor, t in header.items() if tensor != "__metadata__")
    return out


def records(path):
    """Where the archives of tensors begin, which follow each other in a .distcp file."""
    with open(path, "rb") as f:
        data = f.read()
    begins, at = [], data.find(b"PK\x03\x04")
    while at >= 0:
        if data[at + 30:at + 46] == b"archive/data.pkl":
            begins.append(at)
        at = data.find(b"PK\x03\x04", at + 4)
    return [begin for begin, end in zip(begins, [*begins[1:], len(data)]) if data.find(b"archive/data/0", begin, min(end, begin + 4096)) > 0]


def data_files(folder):
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name.endswith(".distcp"))


def with_values(folder, source, every, values):
    """A copy of a model in which every so many tensors have these values among theirs."""
    shutil.copytree(source, folder)
    for path, dtype, begin, end in list(tensors_of(folder).values())[::every]:
        for i, value in enumerate(values):
            if dtype == "BF16" and end - begin > 64:
                put(path, begin + 2 * (7 * i + 3), struct.pack("<H", value))
    return folder


def with_other_bytes(folder, source, every=3):
    """A copy of a DCP folder in which every so many records have a byte that is not theirs."""
    shutil.copytree(source, folder)
    for path in data_files(folder):
        for record in records(path)[1::every]:
            put(path, data_offset(path, record) + 5, b"\x5a\xa5")
    return folder


def with_broken_records(folder, source):
    """A copy of a DCP folder in which some records have no head."""
    shutil.copytree(source, folder)
    for path in data_files(folder):
        for record in records(path)[2::4]:
            put(path, record, b"\0\0\0\0")
    return folder


def with_lost_files(folder, source):
    """A copy of a DCP folder without one of its files, the end of another, and some heads of a third."""
    shutil.copytree(source, folder)
    files = data_files(folder)
    os.remove(files[1])
    os.truncate(files[2], os.path.getsize(files[2]) // 3)
    for record in records(files[0])[1::3]:
        put(files[0], record, b"\0\0\0\0")
    return folder


def with_bad_scales(folder, source):
    """A copy of a quantised model with scales that are NaN."""
    shutil.copytree(source, folder)
    scales = [place for name, place in tensors_of(folder).items() if "scale" in name]
    for path, dtype, begin, end in scales[1::2]:
        put(path, begin, struct.pack("<f", float("nan")) if dtype == "F32" else b"\xc0\x7f")
    if not scales:
        raise RuntimeError("the quantised model has no scales")
    return folder


class Case:
    """A command in an empty folder. `ranks`: with how many it may run."""

    def __init__(self, name, words, ranks=(1,), status=(0,)):
        self.name, self.words, self.ranks = name, words, ranks
        self.first = said_and_written(words, dataclasses.replace(PLAIN, ranks=ranks[0]))
        if int(self.first["exit status"]) not in status:
            raise RuntimeError(f"{name}: exit status {self.first['exit status']}: {self.first['stderr'][:600]}")

    def differs(self, order):
        return unlike(self.first, said_and_written(self.words, order))


def conversions(runs):
    ranks = (1, 1, 1, 2, 4) if HAS_MPI else (1,)
    for run in runs:
        words = [*run.mode, run.source, run.target, *run.options]
        yield Case(run.name, [*words, "--no-sync", "--json", "--report", "report.json", "{j}", "{memory}"], ranks)


def live(model):
    """Models in the memory of ranks: loaded, checked, saved, loaded again and exported. The number of ranks is a part of what is asked."""
    for ranks, grid in ((1, "--until check"), (2, "--tp 2 --checkpoint ckpt --output hf"), (4, "--tp 2 --ep 2 --dp 2 --checkpoint ckpt --output hf")):
        yield Case(f"roundtrip as {ranks} ranks", ["roundtrip", model, *grid.split(), "--no-sync", "--json", "{j}"], (ranks,))


def refusals(made):
    """Conversions of sources with several faults, which are refused or warned about."""
    flags = ["--no-sync", "--json", "{j}", "{memory}"]
    for damage in ("other_bytes", "broken_records", "lost_files"):
        yield Case(f"export of {damage}", ["export", made[damage], "hf", *flags], status=(3,))
        yield Case(f"reshard of {damage}", ["convert", "reshard", made[damage], "out", "--dp", "2", *flags], status=(3,))
    yield Case("hf-to-fsdp of values beyond fp16", ["convert", "hf-to-fsdp", made["huge"], "out", "--dtype", "fp16", *flags], status=(1, 3, 4))
    yield Case("quantize of NaN", ["convert", "quantize", made["nan"], "out", "--to", "fp8-block", *flags], status=(0, 1, 3))
    yield Case("dequantize of bad scales", ["convert", "dequantize", made["bad_scales"], "out", *flags], status=(1, 3, 4))
    yield Case("to-fsdp of NaN", ["convert", "hf-to-fsdp", made["nan"], "out", "--tp", "2", *flags], status=(0, 1))


def looks(healthy, made):
    every = {**healthy, **made}
    for name, path in every.items():
        for words in ("inspect PATH", "inspect PATH --json", "ls PATH --digest --jsonl {j}", "verify PATH {j}", "verify PATH --json {j}", "stats PATH --json {j}",
                      "plot PATH --stats -o page.html {j}"):
            if words.startswith("plot") and name not in ("model", "other_bytes", "nan"):
                continue
            yield Case(f"{words.split(' PATH')[0]} of {name}{' --json' if '--json' in words else ''}",
                       [path if word == "PATH" else word for word in words.split(" ")], status=(0, 1, 3))
    for a, b in (("model", "nan"), ("fsdp", "other_bytes"), ("fsdp", "broken_records"), ("nan", "huge"), ("lost_files", "fsdp"), ("fsdp", "model"),
                 ("fp8", "bad_scales")):
        for flags in ([], ["--json"]):
            yield Case(f"diff of {a} and {b} {' '.join(flags)}", ["diff", every[a], every[b], *flags, "{j}"], status=(0, 1, 3))
        yield Case(f"verify {b} --against {a}", ["verify", every[b], "--against", every[a], "--json", "{j}"], status=(0, 1, 3))


def held(what, cases, rounds=ROUNDS):
    """Rounds over all cases, several runs at a time, as long as there is time."""
    cases, r = list(cases), random.Random(SEED)
    with counted("P17", f"runs of {len(cases)} {what} in random orders, equal to the first", asked=rounds * len(cases)) as count:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for _ in range(rounds):
                if not time_is_left():
                    break
                orders = [Order.drawn(r, case.ranks) for case in cases]
                for case, order, differs in zip(cases, orders, pool.map(Case.differs, cases, orders)):
                    count.one(expect(not differs, f"{case.name} ({order}): {differs}"))
    return len(cases)


def main():
    with scratch() as folder:
        def at(name):
            return os.path.join(folder, name)

        model = make_model(at("model"), **SIZES)
        with small_runs(model=model) as runs:
            fp8 = next(run.made(run.reference) for run in runs if run.name == "quantize")
            rank_files = next(run.made(run.reference) for run in runs if run.name == "to-pt")
            six_ranks = run_mckpt("convert", "hf-to-fsdp", model, at("run"), "--tp", "2", "--dp", "3", "-q", "--no-sync")
            if six_ranks.returncode != 0:
                raise RuntimeError(six_ranks.stderr)
            fsdp = at("run/release")
            healthy = {"model": model, "fsdp": fsdp, "rank_files": rank_files, "fp8": fp8}
            made = {"nan": with_values(at("nan"), model, 3, (NAN, INFINITE, NAN)), "huge": with_values(at("huge"), model, 4, (HUGE, HUGE)),
                    "other_bytes": with_other_bytes(at("other_bytes"), fsdp), "broken_records": with_broken_records(at("broken_records"), fsdp),
                    "lost_files": with_lost_files(at("lost_files"), fsdp), "bad_scales": with_bad_scales(at("bad_scales"), fp8)}
            kinds = 0
            if "conversions" in CHOSEN:
                kinds += held("kinds of conversions, as threads and ranks,", conversions(runs))
            if "models" in CHOSEN and HAS_MPI and HAS_TORCH:
                kinds += held("models in memory", live(model), so_many(100, 1))
            if "refusals" in CHOSEN:
                kinds += held("conversions of sources with several faults", refusals(made))
            if "looks" in CHOSEN:
                kinds += held("commands that look, at sound sources and at sources with several faults,", looks(healthy, made))
    finish(kinds * (1 if time_is_left() else 0))


main()
