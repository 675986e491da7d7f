"""Sources and results on NFS, versions 4.2 and 3, from a server in a virtual machine: the same bytes, killed and failed conversions go on, writers on two hosts
exclude each other, and a server that goes away in the middle is waited for (hard mounts) or is an error (soft ones).

The two hosts are two mounts of one folder that share no memory (nosharecache). It needs the packages that virtual_machine.py and nfs.py name.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time

from mckpt_tests import nfs
from mckpt_tests.checks import expect, finish
from mckpt_tests.figures import counted, so_many, time_is_left
from mckpt_tests.folders import difference
from mckpt_tests.mounts import image
from mckpt_tests.network_walk import network_runs, new, walk
from mckpt_tests.races import race
from mckpt_tests.setting import MCKPT
from mckpt_tests.small_runs import faulty
from mckpt_tests.virtual_machine import in_own_machine

HOW = "loopback, in a virtual machine"
RACED = ["hf-to-fsdp", "export", "pt-to-safetensors"]
STARTS = 3  # of each host
HDF5 = ["to-hdf5", "from-hdf5"]  # their helper may use little processor time, which an emulated processor exceeds
AWAY = 5  # seconds
LOST_FILES = 6  # at most, of the run whose server goes away
OTHER_HOST = ",nosharecache"
LONG_MEMORY = ",nosharecache,actimeo=3600"  # a host that asks the server as seldom as it may


def races(runs, here, there, version):
    rounds = so_many(3, 1)
    with counted("P16", f"races of {2 * STARTS} starts on two hosts into one place of NFS (v{version}, {HOW}), one of which wins", 2 * rounds * len(runs)) as count:
        for n in range(rounds):
            for run in runs:
                for overwrite in (False, True):
                    if time_is_left():
                        name = f"{run.name}_{version}_raced_{n}_{overwrite}"
                        new(here, name)
                        wrong = race(run, [os.path.join(host, name) for host in (here, there)] * STARTS, overwrite)
                        count.one(expect(not wrong, f"{name} on NFS v{version}: {wrong}"))


def one_after_another(runs, here, there, version):
    """A host that remembers that a name was free does not write over what another one has made there since."""
    with counted("P16", f"results on NFS (v{version}, {HOW}) that another host has made a moment ago are not replaced", len(runs)) as count:
        for run in runs:
            name = f"{run.name}_{version}_after"
            ours, theirs = new(here, name), os.path.join(there, name)
            remembered = os.path.lexists(run.made(theirs))
            first, second = run.start(ours), run.start(theirs)
            wrong = remembered and "the name was taken" or first.stderr or second.returncode != 4 and f"exit status {second.returncode}: {second.stderr[:300]}"
            wrong = wrong or difference(ours, run.reference)
            count.one(expect(not wrong, f"{name} on NFS v{version}: {wrong}"))


def while_away(server, process, seconds):
    """The server is away for so long, or until the process has ended: whether it has."""
    server.stop()
    process.send_signal(signal.SIGCONT)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    finally:
        server.start()
    return True


def stopped(run, at, call, n, *more):
    """A run that is stopped at its n-th such call."""
    env = {**os.environ, **faulty(call, n, "STOP")}
    process = subprocess.Popen([MCKPT, *run.words(at), *more], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=env)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        raise RuntimeError(f"{run.name} has ended before its {call} {n}: {process.stderr.read()}")
    return process


def late(run, here, there, version):
    """A host opens the first writer's lock, and locks it when the writer has removed it and a third one is writing."""
    name = f"{run.name}_{version}_late"
    at, theirs = new(here, name), os.path.join(there, name)
    first = stopped(run, at, "pwrite", 2)
    second = stopped(run, theirs, "flock", 1, "--overwrite")
    first.send_signal(signal.SIGCONT)
    first.communicate(timeout=240)
    third = stopped(run, at, "pwrite", 2, "--overwrite")
    second.send_signal(signal.SIGCONT)
    refusal = second.communicate(timeout=240)[1]
    third.send_signal(signal.SIGCONT)
    error = third.communicate(timeout=240)[1]
    if first.returncode != 0 or third.returncode != 0:
        return f"exit status {first.returncode} and {third.returncode}: {error}"
    if second.returncode != 4 or "error[MC3004]" not in refusal:
        return f"the late one is not refused: exit status {second.returncode}: {refusal}"
    return difference(at, run.reference)


def late_ones(run, here, there, version):
    with counted("P16", f"writers on NFS (v{version}, {HOW}) that lock what its owner on another host has just removed, refused", 1) as count:
        wrong = late(run, here, there, version)
        count.one(expect(not wrong, f"{run.name}, a late writer on NFS v{version}: {wrong}"))


def waits(server, run, far):
    at = new(far, run.name + "_waits")
    process = stopped(run, at, "pwrite", 2)
    if while_away(server, process, AWAY):
        return f"has ended without its server: {process.stderr.read()}"
    error = process.communicate(timeout=240)[1]
    return process.returncode != 0 and f"exit status {process.returncode}: {error}" or difference(at, run.reference)


def gives_up(server, run, far):
    """The result is on the server."""
    at = new(far, run.name + "_gives_up")
    process = stopped(run, at, "pwrite", 2)
    if not while_away(server, process, 120):
        process.kill()
        return "has not ended"
    error = process.stderr.read()
    if process.returncode not in (3, 4, 5) or "error[MC" not in error or at not in error:
        return f"exit status {process.returncode}: {error}"
    if run.is_published(at):
        return f"is published: {error}"
    # The kernel tells the next fsync of each file of writes that were lost: the command is repeated for each.
    for _ in range(LOST_FILES):
        if not (wrong := run.problems_again(at)) or "Input/output error" not in wrong:
            return wrong
    return wrong


def gives_up_reading(server, run, far, elsewhere):
    """The source is on the server, and was written by another host, so that this one has to ask."""
    name = run.name + "_source_read"
    shutil.copytree(run.source, os.path.join(elsewhere, name))
    near, at = run.source, run.fresh()
    run.source = os.path.join(far, name)
    try:
        process = stopped(run, at, "pread", 2)
        if not while_away(server, process, 120):
            process.kill()
            return "has not ended"
        error = process.stderr.read()
    finally:
        run.source = near
    if process.returncode != 3 or "error[MC" not in error or name not in error:
        return f"exit status {process.returncode}: {error}"
    return "is published" if run.is_published(at) else ""


def server_away(server, run, hard, soft):
    with counted("P11", f"conversions whose NFS server (v4.2, {HOW}) is away for {AWAY} s: a hard mount waits, and the result is right", 1) as count:
        wrong = waits(server, run, hard)
        count.one(expect(not wrong, f"{run.name} waits for its server: {wrong}"))
    with counted("P11", f"conversions whose NFS server (v4.2, {HOW}) does not come back: a soft mount is an error that names the file, nothing is published", 2) as count:
        wrong = gives_up(server, run, soft)
        count.one(expect(not wrong, f"{run.name} gives up writing: {wrong}"))
        wrong = gives_up_reading(server, run, soft, hard)
        count.one(expect(not wrong, f"{run.name} gives up reading: {wrong}"))


in_own_machine(nfs.need(), seconds=1200)
nfs.prepare()
with tempfile.TemporaryDirectory(prefix="mckpt_nfs_") as folder, image("ext4", folder, "disk", megabytes=512) as disk, nfs.Server(disk.at) as server, network_runs(but=HDF5) as runs:
    here, there = os.path.join(folder, "here"), os.path.join(folder, "there")
    raced = [run for run in runs if run.name in RACED]
    for version in ("4.2", "3"):
        options = f"vers={version}"
        with server.mounted(here, options):
            walk(runs if version == "4.2" else raced, new(here, "walk" + version), f"NFS (v{version}, {HOW})")
        with server.mounted(here, options), server.mounted(there, options + OTHER_HOST):
            races(raced, here, there, version)
        with server.mounted(here, options), server.mounted(there, options + LONG_MEMORY):
            one_after_another(raced, here, there, version)
            late_ones(raced[0], here, there, version)
    with server.mounted(here, "vers=4.2"), server.mounted(there, "vers=4.2,soft,timeo=5,retrans=1" + OTHER_HOST):
        server_away(server, raced[0], here, there)
finish(40)
