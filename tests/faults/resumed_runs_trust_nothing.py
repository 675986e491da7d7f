"""Anybody may have changed an unfinished output since the run was interrupted: files that were removed, cut, lengthened or
written to, links to files elsewhere, a whole source that is another one with the same sizes and times. The same command makes what a run
that was left alone makes, or refuses; it writes to nothing outside, and calls nothing published that it did not publish.
"""

import json
import os
import shutil
import struct

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import difference, files_of, scratch, snapshot
from mckpt_tests.models import make_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import FAULTY_IO

folder = scratch()
DATA = (".safetensors", ".distcp")


def path(*names):
    return os.path.join(folder.name, *names)


def write(file, data, at=0):
    with open(file, "r+b") as f:
        f.seek(at)
        f.write(data)


def content(file):
    with open(file, "rb") as f:
        return f.read()


class Job:
    def __init__(self, name, command, source, place, stop_at):
        self.name, self.command, self.source, self.stop_at = name, command, source, stop_at
        self.made = path(name, "out", place) if place else path(name, "out")
        self.staging = os.path.join(os.path.dirname(self.made), f".{os.path.basename(self.made)}.mckpt-tmp")
        self.reference = path(name + "_whole")
        expect(self.run().returncode == 0, f"{name}: the run that is left alone")
        shutil.copytree(self.made, self.reference)

    def run(self, *more, source=None, env=None):
        return run_mckpt(*self.command, source or self.source, path(self.name, "out"), "-q", "-j1", *more, env=env)

    def interrupted(self, source=None, stop_at=None):
        """Leaves an unfinished output with tasks that are done and tasks that are not."""
        shutil.rmtree(path(self.name), ignore_errors=True)
        os.mkdir(path(self.name))
        env = {"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": f"pwrite:{stop_at or self.stop_at}:TERM"}
        result = self.run(source=source, env=env)
        expect(result.returncode == 143 and not os.path.exists(self.made), f"{self.name}: interrupted: {result.returncode} {result.stderr[:300]}")
        return [os.path.join(self.staging, f) for f in files_of(self.staging) if f.endswith(DATA)]

    def goes_on(self, what, *more):
        result = self.run(*more, "--json")
        if expect(result.returncode == 0, f"{self.name}, {what}: exit status {result.returncode}: {result.stderr[:300]}"):
            differs = difference(self.made, self.reference)
            expect(not differs, f"{self.name}, {what}: published, and not whole: {differs}")
            expect(not any(os.path.islink(os.path.join(self.made, f)) for f in files_of(self.made)), f"{self.name}, {what}: a link is published")
            return json.loads(result.stdout)
        return {}

    def refused(self, what, code, *more, source=None):
        result = self.run(*more, source=source)
        expect(result.returncode == 4 and f"error[{code}]" in result.stderr, f"{self.name}, {what}: {result.returncode} {result.stderr[:300]}")
        return result.stderr


def changes(victim):
    """Things that happen to a file of the unfinished output."""

    def anew(make):
        return lambda file: (os.remove(file), make(file))

    def size(file):
        return os.path.getsize(file)

    return {
        "removed": os.remove,
        "cut": lambda file: os.truncate(file, size(file) // 2),
        "emptied": lambda file: os.truncate(file, 0),
        "longer": lambda file: write(file, b"more" * 5000, size(file)),
        "a hole": lambda file: (os.truncate(file, 0), os.truncate(file, size(file) + 3_000_000)),
        "all other": lambda file: write(file, b"\xa5" * size(file)),
        "the last byte": lambda file: write(file, b"\xa5", size(file) - 1),
        "a byte of every 4,000": lambda file: [write(file, b"\xa5", at) for at in range(0, size(file), 4000)],
        "a link": anew(lambda file: os.symlink(victim, file)),
        "a second name": anew(lambda file: os.link(victim, file)),
        "a pipe": anew(os.mkfifo),
        "a folder": anew(os.mkdir),
    }


def files_are_not_trusted(job):
    victim = path("victim")
    with open(victim, "w") as f:
        f.write("mine")
    count = len(job.interrupted())
    whole = os.path.getsize(job.interrupted()[0])
    first = job.goes_on("unchanged")
    read = first.get("bytes_read", 0)
    for what, change in changes(victim).items():
        redone = 0
        for n in range(count):
            file = job.interrupted()[n]
            change(file)
            redone += job.goes_on(f"{what}, file {n}").get("bytes_read", 0) > read
            expect(content(victim) == b"mine", f"{job.name}, {what}: a file elsewhere was written to")
        expect(redone or what in ("longer", "the last byte"), f"{job.name}, {what}: nothing was done again of {whole} bytes")
    for name in (".done", ".plan"):
        job.interrupted()
        os.remove(os.path.join(job.staging, name))
        os.symlink(victim, os.path.join(job.staging, name))
        job.goes_on(f"{name} is a link")
        expect(content(victim) == b"mine", f"{job.name}, {name} is a link: a file elsewhere was written to")
    # A log that says that everything is done; files and folders that nobody planned.
    job.interrupted()
    with open(os.path.join(job.staging, ".done"), "r+b") as f:
        f.write(b"\1" * os.path.getsize(f.name))
    for name in ("evil.py", "sub/evil.py", "zz.safetensors"):
        os.makedirs(os.path.dirname(os.path.join(job.staging, name)), exist_ok=True)
        shutil.copy(victim, os.path.join(job.staging, name))
    os.symlink(path(), os.path.join(job.staging, "hf_assets"))
    job.goes_on("more files")


def a_name_is_not_published(job):
    for stop_at in (job.stop_at, None):  # early; and, without a tracker's rename, as late as it can be
        for later in ("refused", "moved back", "--overwrite"):
            if stop_at:
                job.interrupted()
            else:
                shutil.rmtree(path(job.name), ignore_errors=True)
                os.mkdir(path(job.name))
                job.run(env={"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": "rename:1:KILL"})
            os.rename(job.staging, job.made)
            left = snapshot(job.made)
            for more in ([], ["--resume"], ["-n"]):
                said = job.refused(f"moved, {more}", "MC3003", *more)
                expect("moved to this name" in said or "--resume" in more, f"{job.name}: moved: {said}")
            expect(snapshot(job.made) == left, f"{job.name}: moved: it was touched")
            if later == "moved back":
                os.rename(job.made, job.staging)
                job.goes_on("moved back")
            elif later == "--overwrite":
                job.goes_on("moved, --overwrite", "--overwrite")


def a_published_one_is_looked_at(job):
    """A result without its last steps, of which files are gone."""

    def published():
        shutil.rmtree(path(job.name), ignore_errors=True)
        os.mkdir(path(job.name))
        result = job.run(env={"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": "unlink:4:KILL"})
        expect(result.returncode < 0 and os.path.exists(os.path.join(job.made, ".plan")), f"{job.name}: killed in its last steps: {result.returncode}")
        return sorted(os.path.join(job.made, f) for f in files_of(job.made) if f.endswith(DATA))

    published()
    expect(job.goes_on("its last steps").get("resumed") == "published", f"{job.name}: it was published")
    for change in (os.remove, lambda file: os.truncate(file, 5)):
        change(published()[0])
        job.refused("published, and cut", "MC3003")
        job.goes_on("published and cut, --overwrite", "--overwrite")
    copied = published()[0]
    shutil.copytree(job.made, job.made + "_copy")
    shutil.rmtree(job.made)
    os.rename(job.made + "_copy", job.made)
    with open(copied, "r+b") as f:
        f.write(b"\0" * 4000)  # as a copy of holes would be
    job.refused("a copy", "MC3003")


def sources_are_not_mixed(job, other):
    """Another source with the same names, sizes and times of its files."""
    source = path("source")

    def put(which):
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(which, source)
        for name in files_of(source):
            os.utime(os.path.join(source, name), (1_600_000_000, 1_600_000_000))

    put(job.source)
    job.interrupted(source=source)
    put(other)
    said = job.refused("another source", "MC3007", source=source)
    expect("the files of the source: not those of the first run" in said, f"{job.name}: another source: {said}")
    result = job.run("--overwrite", source=source)
    expect(result.returncode == 0, f"{job.name}: another source, --overwrite: {result.stderr[:300]}")
    expect(run_mckpt("verify", path(job.name, "out"), "--against", other, "-q").returncode == 0, f"{job.name}: --overwrite made something else")


def changed_modes_are_told(job):
    """chmod and a second name change no content, but a time that cannot be set back: the refusal says that it is only that."""
    source = path("modes")
    changes = {"chmod": lambda file: os.chmod(file, 0o600), "link": lambda file: os.link(file, file + ".2") or os.remove(file + ".2")}
    for what, change in changes.items():
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(job.source, source)
        job.interrupted(source=source)
        change(next(os.path.join(source, name) for name in sorted(files_of(source)) if name.endswith(DATA)))
        for options in ((), ("--resume",), ("--json",)):
            said = job.refused(what, "MC3007", *options, source=source) if options != ("--json",) else job.run("--json", source=source).stderr
            for words in ("only the time of the last change (ctime) of its source's files is another one", "(ctime) alone", "nobody can set that time back", "--overwrite"):
                expect(words in said, f"{job.name}, {what} {options}: {words} is not in {said}")
            expect("repeat the first command" not in said and "with other options" not in said, f"{job.name}, {what} {options}: {said}")
        result = job.run("--overwrite", source=source)
        expect(result.returncode == 0, f"{job.name}, {what}, --overwrite: {result.stderr[:300]}")


def places_are_not_mixed(job):
    """The same files, of which another .metadata says that what was layer 0 is layer 1."""
    source = path("exchanged")
    shutil.copytree(job.source, source)
    os.remove(os.path.join(source, "release", "mckpt_manifest.json"))
    job.interrupted(source=source)
    metadata = os.path.join(source, "release", ".metadata")
    text = content(metadata)
    expect(text.count(b"layers.0.") > 5, "there is a layer 0")
    with open(metadata, "wb") as f:
        f.write(text.replace(b"layers.0.", b"layers.X.").replace(b"layers.1.", b"layers.0.").replace(b"layers.X.", b"layers.1."))
    said = job.refused("another .metadata", "MC3007", source=source)
    expect("the files of the source: not those of the first run" in said, f"{job.name}: another .metadata: {said}")


def model_of_others(model):
    """The model with another bit in every item."""
    shutil.copytree(model, path("other_model"))
    for name in files_of(model):
        if name.endswith(".safetensors"):
            with open(path("other_model", name), "r+b") as f:
                start = 8 + struct.unpack("<Q", f.read(8))[0]
                f.seek(start)
                data = bytearray(f.read())
                data[::2] = data[::2].translate(bytes(b ^ 1 for b in range(256)))
                f.seek(start)
                f.write(data)
    return path("other_model")


model = make_model(path("model"), layers=2, hidden=256, heads=8, kv=4, head_dim=32, ffn=640, vocab=4096, shard_bytes=3_000_000)
convert = Job("convert", ["convert", "hf-to-fsdp", "--tp", "2"], model, "release", 8)
shutil.copytree(path("convert", "out"), path("ckpt"))
export = Job("export", ["export"], path("ckpt"), "", 3)
other = model_of_others(model)
expect(run_mckpt("convert", "hf-to-fsdp", "--tp", "2", other, path("other_ckpt"), "-q", "--no-sync").returncode == 0, "the other checkpoint")
for job in (convert, export):
    files_are_not_trusted(job)
    a_name_is_not_published(job)
    a_published_one_is_looked_at(job)
sources_are_not_mixed(convert, other)
sources_are_not_mixed(export, path("other_ckpt"))
places_are_not_mixed(export)
changed_modes_are_told(convert)
changed_modes_are_told(export)
finish(150)
