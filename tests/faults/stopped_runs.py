"""A run that is killed, stopped, or meets an error of the system, at any of its calls: nothing has the final name
that is not whole, what was there before is untouched, and the same command, with --resume and without, gives what a run that
was left alone gives, byte for byte, and names it in the tracker. The error says that it goes on where there is something to go
on with, and nowhere else, and that the result is published where it is.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import time

from mckpt_tests.checks import expect, finish, in_parallel
from mckpt_tests.folders import data_offset, difference, scratch, snapshot
from mckpt_tests.models import make_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import FAULTY_IO, HAS_MPI, MCKPT

folder = scratch()
TRACKER = "latest_checkpointed_iteration.txt"
MARKS = [".boot", ".done", ".plan", ".replaces"]  # of a result whose last steps are not done


def path(name):
    return os.path.join(folder.name, name)


def faulty(call, n, what, rank=None):
    return {"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": f"{call}:{n}:{what}", **({} if rank is None else {"FAULTY_IO_RANK": str(rank)})}


def fresh(name, before=None):
    """An empty folder for results, or one that holds what `before` holds."""
    shutil.rmtree(path(name), ignore_errors=True)
    shutil.copytree(path(before), path(name)) if before else os.mkdir(path(name))
    return path(name)


class Job:
    """A conversion into RUNS/made, beside something older."""

    def __init__(self, name, command, source, place, options, reference):
        self.name, self.command, self.source, self.place, self.options = name, command, source, place, options
        self.reference = reference  # the folder that a run which was left alone makes
        self.resumed = 0

    def run(self, runs, *more, options=None, **how):
        target = os.path.join(runs, self.place)
        return run_mckpt(*self.command, self.source, target, "-q", "-j2", *(self.options if options is None else options), *more, **how)

    def made(self, runs):
        return os.path.join(runs, self.place, "iter_0000007") if self.place == "." else os.path.join(runs, self.place)

    def check_after(self, what, runs, before):
        """Whether the result was published: then it is whole, but for marks where something is left to do, and else not there.
        An older result is as it was."""
        made = self.made(runs)
        published = os.path.exists(made)
        if published:
            differs = difference(made, self.reference, MARKS)
            expect(differs == "", f"{what}: published and not whole: {differs}")
        for name, stamp in before.items():
            if name == TRACKER:
                with open(os.path.join(runs, TRACKER)) as f:
                    tracked = f.read()
                expect(tracked == "3" or published and tracked == "7", f"{what}: the tracker holds {tracked!r}")
            else:
                expect(snapshot(runs).get(name) == stamp, f"{what}: {name} was touched")
        return published

    def check_resumed(self, what, runs, *more, without=(), **how):
        """In turns with --resume and with the options `without`."""
        self.resumed += 1
        again = self.run(runs, *(["--resume"] if self.resumed % 2 else without), *more, **how)
        if expect(again.returncode == 0, f"{what}: --resume: exit status {again.returncode}: {again.stderr[-500:]}"):
            expect(
                difference(self.made(runs), self.reference) == "",
                f"{what}: --resume made something else: {difference(self.made(runs), self.reference)}",
            )
            expect(not any(".mckpt-" in name for name in os.listdir(runs)), f"{what}: left behind: {os.listdir(runs)}")
            if self.place == ".":
                with open(os.path.join(runs, TRACKER)) as f:
                    expect(f.read() == "7", f"{what}: --resume left the tracker as it was")


def is_marked(folder):
    return os.path.exists(os.path.join(folder, ".plan"))


def check_help(what, runs, result):
    helps = [line for line in result.stderr.splitlines() if line.startswith("help:")]
    named = sum("repeat the command to continue where it stopped" in line for line in helps)
    begun = any(os.path.exists(os.path.join(runs, name, ".plan")) for name in os.listdir(runs))
    expect(named == begun, f"{what}: {'begun' if begun else 'nothing is begun'}: {helps}")


def stop_at_every_call(job, call, what, statuses, step=1):
    """Walks over the calls of that name until the run does not reach the next one."""
    reached = 0
    for n in range(1, 10_000, step):
        runs = fresh("runs", "older")
        before = snapshot(runs)
        result = job.run(runs, env=faulty(call, n, what))
        label = f"{job.name}: {what} at {call} {n}"
        published = job.check_after(label, runs, before)
        if result.returncode == 0:
            expect(published, f"{label}: done, and nothing published")
            break
        reached += 1
        expect(result.returncode in statuses, f"{label}: exit status {result.returncode}: {result.stderr[:300]}")
        if result.returncode > 0:
            expect(len(result.stderr.splitlines()) > 1 and "MC99" not in result.stderr, f"{label}: {result.stderr[:300]}")
            check_help(label, runs, result)
            expect(
                published == ("is published as" in result.stderr), f"{label}: {'' if published else 'not '}published: {result.stderr[:300]}"
            )
        if not published or is_marked(job.made(runs)):
            job.check_resumed(label, runs)
    expect(reached > 0, f"{job.name}: {call} is never called")


def wrong_counts(job):
    """Calls that move less than they were asked to, or are broken off, change nothing."""
    for call, n, what in (("pwrite", 0, "SHORT"), ("pread", 0, "SHORT"), ("pwrite", 3, "EINTR"), ("pread", 3, "EINTR")):
        runs = fresh("runs", "older")
        result = job.run(runs, env=faulty(call, n, what))
        if expect(result.returncode == 0, f"{job.name}: {call} {what}: exit status {result.returncode}: {result.stderr[:300]}"):
            expect(
                difference(job.made(runs), job.reference) == "", f"{job.name}: {call} {what}: {difference(job.made(runs), job.reference)}"
            )


def kill_at_random(job, times):
    r = random.Random(5)
    begin = time.time()
    job.run(fresh("runs"))
    usual = time.time() - begin
    for i in range(times):
        runs = fresh("runs", "older")
        before = snapshot(runs)
        p = subprocess.Popen(
            [MCKPT, *job.command, job.source, os.path.join(runs, job.place), "-q", "-j2", *job.options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        time.sleep(r.uniform(0, usual))
        p.send_signal(signal.SIGKILL)
        p.wait()
        if not job.check_after(f"{job.name}: killed, time {i}", runs, before) or is_marked(job.made(runs)):
            job.check_resumed(f"{job.name}: killed, time {i}", runs)


def goes_on(job, at, other_options):
    """Finished work is not done again, is not mixed with other work, and is thrown away where nobody asks for
    it."""

    def stopped():
        runs = fresh("runs", "older")
        result = job.run(runs, env=faulty("pwrite", at, "TERM"))
        expect(
            result.returncode == 143 and "MC3002" in result.stderr, f"{job.name}: SIGTERM: exit status {result.returncode}: {result.stderr}"
        )
        return runs

    whole = json.loads(job.run(fresh("runs"), "--json").stdout)
    runs = stopped()
    result = job.run(runs, "--resume", "--json")
    account = json.loads(result.stdout)
    expect((whole["resumed"], account["resumed"]) == ("nothing", "unfinished"), f"{job.name}: resumed: {whole['resumed']}, {account['resumed']}")
    expect(account["bytes_read"] < whole["bytes_read"], f"{job.name}: --resume read {account['bytes_read']} of {whole['bytes_read']} bytes")
    expect(difference(job.made(runs), job.reference) == "", f"{job.name}: after SIGTERM: {difference(job.made(runs), job.reference)}")
    for options in other_options:
        runs = stopped()
        left = snapshot(runs)
        result = job.run(runs, "--resume", options=options)
        changed = [o for o in options if o.startswith("--") and o not in job.options] or ["--"]
        expect(
            all(f"= {flag}" in result.stderr for flag in changed) and "in the first run" in result.stderr,
            f"{job.name}: --resume {options}: the error does not name {changed}: {result.stderr}",
        )
        expect(
            result.returncode == 4 and "error[MC3007]" in result.stderr,
            f"{job.name}: --resume {options}: exit status {result.returncode}: {result.stderr[:200]}",
        )
        expect(snapshot(runs) == left, f"{job.name}: --resume {options} touched what was there")
        job.check_resumed(f"{job.name}: after a refused --resume", runs)
    # Without --resume the same command goes on as well; another one throws nothing away unless it is told to.
    for more in ([], ["--overwrite"]):
        runs = stopped()
        result = job.run(runs, "--json", *more)
        account = json.loads(result.stdout or "{}")
        expect(
            account.get("resumed") == "unfinished" and account["bytes_read"] < whole["bytes_read"],
            f"{job.name}: {more}: the same command did not go on: {result.stderr}",
        )
        expect(difference(job.made(runs), job.reference) == "", f"{job.name}: {more}: {difference(job.made(runs), job.reference)}")
    runs = stopped()
    left = snapshot(runs)
    result = job.run(runs, options=other_options[0])
    expect(
        result.returncode == 4 and "error[MC3007]" in result.stderr and "--overwrite" in result.stderr and snapshot(runs) == left,
        f"{job.name}: another command: exit status {result.returncode}: {result.stderr[:300]}",
    )
    result = job.run(runs, "--json", "--overwrite", options=other_options[0])
    expect(
        result.returncode == 0 and json.loads(result.stdout)["resumed"] == "nothing",
        f"{job.name}: another command with --overwrite: exit status {result.returncode}: {result.stderr[:300]}",
    )


def help_of_others(job):
    """--resume replaces what --overwrite was to replace; a damaged source does not ask for going on."""
    words = "repeat the command to continue where it stopped"
    for before in (None, "older"):
        runs = fresh("runs", before)
        if before:
            os.rename(os.path.join(runs, "iter_0000003"), job.made(runs))
        result = job.run(runs, "--overwrite", env=faulty("pwrite", 2, "TERM"))
        expect(result.returncode == 143, f"{job.name}: --overwrite, SIGTERM: exit status {result.returncode}")
        expect(words in result.stderr, f"{job.name}: --overwrite, {before}: {result.stderr}")
        job.check_resumed(f"{job.name}: in place of --overwrite", runs, without=["--overwrite"])
    runs = fresh("runs")
    result = job.run(runs, "--json", env=faulty("pwrite", 2, "TERM"))
    expect("repeat the command to continue" in json.loads(result.stdout)["error"]["help"], f"{job.name}: --json: {result.stdout}")


def damage_meanwhile(job):
    """A byte that an interrupted run has read is not the one that was written: going on does not publish it."""
    runs = fresh("runs")
    listed = json.loads(run_mckpt("ls", job.source, "--json").stdout)
    embedding = next(t for t in listed["tensors"] if "word_embeddings" in t["name"])["chunks"][0]
    file = os.path.join(job.source, "iter_0000007", embedding["file"])
    at = data_offset(file, embedding["offset"])

    def flip():
        with open(file, "r+b") as f:
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 1]))

    flip()
    job.run(runs, env=faulty("pwrite", 4, "TERM"))
    for again in ("the first", "the second"):
        result = job.run(runs, "--resume")
        expect(
            result.returncode == 3 and "error[MC1203]" in result.stderr and "repeat the command" not in result.stderr,
            f"{job.name}: {again} --resume over a damaged source: {result.returncode} {result.stderr[:300]}",
        )
        expect(not os.path.exists(job.made(runs)), f"{job.name}: {again} --resume published a damaged source")
    flip()
    job.check_resumed(f"{job.name}: over a source that is whole again", runs)


def dying_ranks(job):
    """One rank reports one cause, whichever rank is lost and how."""
    fates = [(rank, n, what) for rank, n in ((1, 1), (2, 4), (0, 3)) for what in ("KILL", "DEAD")]
    fates += [(0, 3, "STOP"), (2, 4, "HANG")] if job.name == "convert" else []

    def meet(rank, n, what):
        runs = fresh(f"runs_{rank}_{n}_{what}", "older")
        before = snapshot(runs)
        label = f"{job.name}: rank {rank} of 3, {what} at pwrite {n}"
        # The limits are for those that stand still; the others are not to be taken for such on a busy machine.
        limit = "10" if what in ("STOP", "HANG") else "30"
        result = job.run(runs, "--rank-timeout", limit, "--phase-timeout", limit, ranks=3, env=faulty("pwrite", n, what, rank), timeout=110)
        expect(result.returncode not in (0, 1, 124), f"{label}: exit status {result.returncode}")
        told = [line for line in result.stderr.splitlines() if line.startswith("error[")]
        code, words = ("MC3001", f"on rank {rank}") if what == "DEAD" else ("MC4001", f"rank {rank} (host")
        expect(len(told) == 1 and code in told[0] and words in result.stderr, f"{label}: {result.stderr[:500]}")
        expect(not job.check_after(label, runs, before), f"{label}: published")
        check_help(label, runs, result)
        job.check_resumed(label, runs, ranks=2 if what == "DEAD" else 1)
        shutil.rmtree(runs)

    in_parallel(meet, sorted(fates, key=lambda fate: fate[2] not in ("STOP", "HANG")))  # those that wait begin first


SIZES = dict(layers=2, hidden=256, heads=8, kv=4, head_dim=32, ffn=640, vocab=4096, shard_bytes=3_000_000)
model = make_model(path("model"), **SIZES)
os.mkdir(path("older"))
subprocess.run(
    [MCKPT, "convert", "hf-to-fsdp", model, path("older"), "-q", "--no-sync", "--iteration", "3"], check=True, stdout=subprocess.DEVNULL
)
for where, command in (("c", ["convert", "hf-to-fsdp", "--tp", "2", "--iteration", "7"]), ("e", ["export"])):
    source = model if where == "c" else path("c")
    subprocess.run([MCKPT, *command, source, path(where), "-q", "--no-sync"], check=True, stdout=subprocess.DEVNULL)

GRID = ["--tp", "2", "--iteration", "7"]
convert = Job("convert", ["convert", "hf-to-fsdp"], model, ".", GRID, path("c/iter_0000007"))
export = Job("export", ["export"], path("c"), "hf", [], path("e"))
for job in (convert, export):
    stop_at_every_call(job, "pwrite", "KILL", [-signal.SIGKILL])
    stop_at_every_call(job, "pwrite", "FULL", [5], step=2)
    for call in ("fsync", "rename", "create", "fallocate", "mkdir"):
        stop_at_every_call(job, call, "EIO", [5], step=2 if call in ("fsync", "create", "fallocate") else 1)
    for call in ("fsync", "rename", "unlink"):
        stop_at_every_call(job, call, "KILL", [-signal.SIGKILL])
    stop_at_every_call(job, "pread", "EIO", [3], step=7)
    wrong_counts(job)
    kill_at_random(job, 20)
    if HAS_MPI:
        dying_ranks(job)
OTHER = ["--dtype fp16", "--params-dtype auto", "--dp 2", "--vocab-size 4098", "--strategy optim_grads --dp 3", "--expert-layout hub"]
damage_meanwhile(export)
help_of_others(convert)
help_of_others(export)
goes_on(convert, 8, [["--tp", "4", "--iteration", "7"], *([*GRID, *other.split()] for other in OTHER)])
goes_on(export, 2, [["--dtype", "fp16"], ["--max-shard-size", "1MB"], ["--dtype-rule", "*norm*=fp32"]])
finish(500)
