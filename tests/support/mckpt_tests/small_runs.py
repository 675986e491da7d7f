"""A small run of each conversion, for tests that let it fail in every way: what it makes when it is left alone, and what may be there
after it failed.

    with small_runs() as runs:
        for run in runs:
            at = run.fresh()                        an empty folder for the result
            result = run.start(at, env=faulty("fsync", 3, "EIO"))
            problems = run.problems(at, result)     of an answer: "" where all is well
            problems = run.problems_again(at)       of the same command afterwards
"""
import contextlib
import itertools
import os
import shutil
import subprocess
import threading

from mckpt_tests.folders import difference, files_of, scratch
from mckpt_tests.models import GOLDEN, GOLDEN_MODEL
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, FAULTY_IO, MCKPT, TINY_MODEL

MARKS = {".boot", ".done", ".plan", ".publish", ".replaces"}  # of a result whose last steps are not done
TRACKER = "latest_checkpointed_iteration.txt"
STATUSES = (3, 4, 5)  # of a source that cannot be read, of a place that cannot be used, of a result that cannot be written
PATTERN = "*E*E"  # of the tiny model's layers


def faulty(call, n, what, **more):
    return {"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": f"{call}:{n}:{what}", **more}


class SmallRun:
    """`made` is what gets its name last: the target itself, or the folder of an iteration in it."""

    def __init__(self, folder, name, mode, source, target, *options, in_run=False):
        self.folder, self.name, self.source, self.target, self.options = folder, name, source, target, options
        self.mode, self.in_run, self.can_resume = mode.split(), in_run, "." not in target and not mode.endswith("TO")
        self.draws = "TO" in self.mode
        self.count, self.lock = itertools.count(), threading.Lock()
        self.reference = self.fresh("reference")
        result = self.start(self.reference)
        if result.returncode != 0:
            raise RuntimeError(f"{name}: {result.stderr}")

    def fresh(self, name=None):
        with self.lock:
            at = os.path.join(self.folder, self.name, name or str(next(self.count)))
        os.makedirs(at)
        return at

    def words(self, at):
        target = os.path.join(at, self.target)
        if self.draws:
            return [{"FROM": self.source, "TO": target}.get(word, word) for word in self.mode]
        return [*self.mode, self.source, target, "-q", "-j1", *self.options]

    def start(self, at, *more, env=None, timeout=120):
        return run_mckpt(*self.words(at), *more, env=env, timeout=timeout)

    def made(self, at):
        made = os.path.join(at, self.target)
        return os.path.join(made, "release") if self.in_run else made

    def is_published(self, at):
        return os.path.lexists(self.made(at))

    def is_whole(self, at):
        """The first thing in which the published result differs from the result of the run that was left alone."""
        made, right = self.made(at), self.made(self.reference)
        if os.path.isdir(right):
            return difference(made, right, MARKS)
        with open(made, "rb") as a, open(right, "rb") as b:
            return "" if a.read() == b.read() else os.path.basename(made)

    def problems(self, at, result, killed=False):
        """The result is there and whole, or not there; and the program says which. An older one is not here."""
        shown = f"exit status {result.returncode}: {result.stderr[:400]!r}"
        if result.returncode == 0:
            if self.draws and "warning[MC1002]" in result.stderr:
                return ""  # a picture that says what it could not show
            return (differs := difference(at, self.reference)) and f"done, and not the right result: {differs}"
        if self.draws and result.returncode == 1 and "problem[MC" in result.stderr:
            return ""  # a picture of a damaged checkpoint, as it seems
        if self.is_published(at) and (differs := self.is_whole(at)):
            return f"published, and not whole: {differs}; {shown}"
        for name in files_of(at):
            if ".mckpt-" not in name and not (self.in_run and os.path.basename(name) == TRACKER) and not self.is_published(at):
                return f"a file under a final name: {name}; {shown}"
        if killed:
            return "" if result.returncode < 0 else shown
        if result.returncode not in STATUSES or "error[MC" not in result.stderr or "MC99" in result.stderr:
            return shown
        if self.is_published(at) != ("is published as" in result.stderr):
            return f"{'' if self.is_published(at) else 'not '}published, and the message says otherwise: {shown}"
        return ""

    def problems_again(self, at, *more):
        """The same command makes what the run that was left alone made, and leaves nothing else."""
        if self.is_published(at) and not (not self.draws and os.path.isdir(self.made(at)) and MARKS & set(os.listdir(self.made(at)))):
            return ""  # there is nothing left to do, and it is whole
        again = self.start(at, *more)
        if again.returncode != 0:
            return f"the same command again {more}: exit status {again.returncode}: {again.stderr[:400]!r}"
        differs = difference(at, self.reference)
        return differs and f"the same command again {more} made something else: {differs}"

    def drop(self, at):
        shutil.rmtree(at, ignore_errors=True)

    def calls(self):
        """How often each family of calls is called."""
        at = self.fresh()
        log = os.path.join(at, "log")
        self.start(self.fresh(), env={"LD_PRELOAD": FAULTY_IO, "FAULTY_IO_LOG": log})
        counts = {}
        with open(log) as f:
            for line in f:
                counts[line.strip()] = counts.get(line.strip(), 0) + 1
        self.drop(at)
        return counts


def draw(folder, model):
    recipe = os.path.join(GOLDEN, "models", model)
    os.mkdir(folder)
    shutil.copy(os.path.join(recipe, "config.json"), folder)
    subprocess.run([GOLDEN_MODEL, os.path.join(recipe, "tensors.txt"), os.path.join(folder, "model.safetensors")], check=True)


@contextlib.contextmanager
def small_runs(only=(), model=TINY_MODEL, also=(), but=()):
    """Runs of all conversions, or only of some, and of none in `but`; in a folder in memory that goes away. `also`: of "plot", "drawing" and "example". `model`: a Hugging Face folder of two
    layers with experts."""
    with scratch() as folder:
        built = {}

        def run(name, mode, source, target, *options, in_run=False):
            """The run; its result is the source of others."""
            source = built[source]() if source in built else source
            if name not in made:
                made[name] = SmallRun(folder, name, mode, source, target, *options, in_run=in_run)
            return made[name].made(made[name].reference) if not in_run else os.path.join(made[name].reference, target)

        made = {}

        def kind(name, mode, source, target, *options, in_run=False):
            built[name] = lambda: run(name, mode, source, target, *options, in_run=in_run)

        kind("hf-to-fsdp", "convert hf-to-fsdp", model, "ckpt", "--tp", "2", in_run=True)
        kind("export", "export", "hf-to-fsdp", "hf")
        kind("to-mcore", "convert to-mcore", model, "ckpt", "--tp", "2", in_run=True)
        kind("to-fsdp", "convert to-fsdp", "to-mcore", "ckpt", in_run=True)
        kind("reshard", "convert reshard", "hf-to-fsdp", "ckpt", "--dp", "2", in_run=True)
        kind("gpt-to-hybrid", "convert gpt-to-hybrid", "hf-to-fsdp", "ckpt", "--pattern", PATTERN, in_run=True)
        kind("hybrid-to-gpt", "convert hybrid-to-gpt", "gpt-to-hybrid", "ckpt", in_run=True)
        kind("group", "convert group", "gpt-to-hybrid", "ckpt", "--pattern", f"[{PATTERN[:2]}]" * 2, in_run=True)
        kind("ungroup", "convert ungroup", "group", "ckpt", in_run=True)
        kind("to-pt", "convert to-pt", model, "ckpt", "--tp", "2", in_run=True)
        kind("to-dcp", "convert to-dcp", model, "dcp")
        kind("quantize", "convert quantize", model, "fp8", "--to", "fp8-block")
        kind("dequantize", "convert dequantize", "quantize", "values")
        kind("pt-to-safetensors", "convert pt-to-safetensors", os.path.join(DATA, "pt", "module.pt"), "x.safetensors")
        kind("safetensors-to-pt", "convert safetensors-to-pt", "pt-to-safetensors", "x.pt")
        kind("to-safetensors", "convert to-safetensors", os.path.join(DATA, "dcp", "fsdp2"), "x.safetensors")
        if os.path.exists(os.path.join(os.path.dirname(MCKPT), "mckpt-hdf5")):
            kind("to-hdf5", "convert to-hdf5", model, "x.h5")
            kind("from-hdf5", "convert from-hdf5", "to-hdf5", "model")
        wanted = [*(name for name in only or built if name not in but), *also]
        kind("plot", "plot FROM --stats -o TO", model, "x.html")
        kind("drawing", "plot FROM -o TO", model, "x.svg")
        kind("example", "example TO", model, "tiny")
        for name in wanted:
            built[name]()
        yield [made[name] for name in wanted]
