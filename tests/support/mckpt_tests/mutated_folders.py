"""Whole checkpoints with one to three edits, opened, verified and converted in one process, as the program does it.

A case is a seed (a checkpoint of some format, as the bytes of its files) after edits: a file mutated by its structure (tests/fuzz/mutate, mutated_hdf5), cut off, removed,
emptied, renamed, copied under another name, exchanged with another one or with a file of another seed, one bit flipped. Seeds are the small checkpoints of
test_data and what mckpt makes of them; each has the conversions that the seed itself survives."""
import dataclasses
import functools
import glob
import os
import pickle
import re
import shutil
import sys
import tempfile

from mckpt_tests import mutated, mutated_hdf5
from mckpt_tests.mutated_runs import OURS
from mckpt_tests.setting import BUILD, DATA, SOURCE, TINY_MODEL

SEEDS = "MCKPT_FOLDER_SEEDS"  # in the environment of the processes: the file with the seeds
MOST_BYTES = 700_000

# Codes by which a conversion may refuse a source that `verify` calls sound: they do not mean damage.
NOT_DAMAGE = {
    "MC0001": "a setting that this source does not take",
    "MC0104": "sizes of the run that only the user knows",
    "MC0105": "a cast that is not made between these types",
    "MC0106": "a cast that would make a finite value infinite: `allow_overflow` takes it",
    "MC0201": "a grid that the model does not fit",
    "MC0203": "a layout that the target's format does not have",
    "MC0205": "a layer pattern that the model does not have",
    "MC1111": "a name that the target's format cannot hold",
    "MC1112": "what is there, such as states of an optimizer alone, has no tensors of a model",
    "MC1202": "a compressed record: sound for whoever inflates it, not copied by mckpt",
    "MC1212": "pickles of a kind that is not read",
    "MC1221": "files of a kind that is not read",
    "MC1224": "tensors whose values are not those stored (sparse, conj, neg): sound, with a warning",
    "MC1402": "what the helper does not read of HDF5",
    "MC2002": "a model that no table has",
    "MC2003": "a model that the target cannot hold",
    "MC2004": "quantised weights: `dequantize` makes values of them",
    "MC2008": "sizes that fit two layouts",
    "MC2014": "the conversion needs the model's config, and the source has none",
    "MC3005": "the target's format holds tensors alone, or not tensors of this type; the source has others",
}
# Refusals that are about the model, where `verify` has no model to ask: without a config.json beside the tensors.
WITHOUT_MODEL = {"MC1001": "there is no config.json, without which the model is not known", "MC2005": "tensors that the model lacks or has besides",
                 "MC2011": "a shape that is not the model's"}

# Codes about the config.json of Hugging Face that a training run under the model's own names (verl) has beside it: `verify` judges the tensors, and compares them with the
# config only where it is given as `assets`; conversions that need the model read it.
OF_CONFIG_BESIDE = {"MC1003": "it is not JSON", "MC2001": "its numbers fit no model", "MC2005": "it is of a model with other tensors", "MC2010": "it lacks a number",
                    "MC2011": "it is of a model with other shapes", "MC2015": "it contradicts the tensors"}


def library():
    """The Python package, in this process."""
    os.environ.setdefault("MCKPT_LIBRARY", os.path.join(BUILD, "libmckpt.so"))
    if (package := os.path.join(SOURCE, "tools", "python")) not in sys.path:
        sys.path.insert(0, package)
    import mckpt
    return mckpt


@dataclasses.dataclass
class Case:
    name: str
    files: dict  # relative path -> bytes
    source: str = ""  # what is opened, below the folder
    conversions: list = dataclasses.field(default_factory=list)  # (to, settings): {} in a setting is the folder
    edits: list = dataclasses.field(default_factory=list)
    number: int = 0  # decides which conversion is made

    def __len__(self):
        return sum(map(len, self.files.values()))

    def write(self, folder):
        for name, data in self.files.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
        return os.path.join(folder, self.source) if self.source else folder


def files_of(folder):
    out = {}
    for root, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(root, name), "rb") as f:
                out[os.path.relpath(os.path.join(root, name), folder)] = f.read()
    return out


# ---- Seeds

CONVERSIONS = [("safetensors", {}), ("dcp", {}), ("fsdp", {"tp": 1}), ("mcore", {}), ("hf", {}), ("reshard", {"dp": 2}), ("ranks", {"tp": 1}), ("dequantize", {}),
               ("pt-to-safetensors", {}), ("torch-file", {}), ("from-hdf5", {})]


def convert(mckpt, source, target, to, what):
    """Into `target`, which goes away again. Raises mckpt.Error."""
    target += {"safetensors": ".safetensors", "pt-to-safetensors": ".safetensors", "torch-file": ".pt"}.get(to, "")
    try:
        mckpt.plan(source, target, to=to, threads=1, **what).run(sync=False, progress=False)
    finally:
        for made in glob.glob(glob.escape(target) + "*") + glob.glob(os.path.join(glob.escape(os.path.dirname(target)), ".*mckpt*")):
            shutil.rmtree(made, ignore_errors=True) if os.path.isdir(made) else os.remove(made)


def made_by_mckpt(mckpt, folder):
    """Checkpoints with all that mckpt writes beside the tensors: manifests, assets, trackers."""
    steps = [("made_fsdp", TINY_MODEL, "fsdp", {"tp": 2}), ("made_mcore", TINY_MODEL, "mcore", {"tp": 2}), ("made_ranks", TINY_MODEL, "ranks", {"tp": 2}),
             ("made_dcp", TINY_MODEL, "dcp", {}), ("made_hf", "made_fsdp", "hf", {}), ("made_fp8", TINY_MODEL, "quantize", {"scheme": "fp8-block"})]
    if os.path.exists(os.path.join(os.path.dirname(os.environ["MCKPT_LIBRARY"]), "mckpt-hdf5")):
        steps.append(("made_hdf5.h5", TINY_MODEL, "to-hdf5", {}))
    for name, source, to, what in steps:
        target = os.path.join(folder, name)
        mckpt.plan(source if os.path.isabs(source) else os.path.join(folder, source), target, to=to, threads=1, **what).run(sync=False, progress=False)
        yield name, target


def found_in_test_data():
    patterns = ("dcp/*/", "rank_files/*/", "zero/*/", "quantized/*/", "models/*/", "formats/safetensors/*/", "formats/pt/*/", "saved_dicts/*/", "pt/*.pt")
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(DATA, pattern))):
            yield os.path.relpath(path, DATA).strip("/").replace("/", "_"), path


def adapters():
    for path in sorted(glob.glob(os.path.join(DATA, "adapters", "*", "adapter")))[:6]:
        yield "adapter_" + os.path.basename(os.path.dirname(path)), os.path.dirname(path)


def seed_of(mckpt, name, path, scratch, source="", conversions=None):
    """The seed, or None where it is too large, not sound, or converted to nothing."""
    files = files_of(path) if os.path.isdir(path) else {os.path.basename(path): open(path, "rb").read()}
    case = Case(name, files, source or ("" if os.path.isdir(path) else os.path.basename(path)))
    if not files or len(case) > MOST_BYTES:
        return None
    at = os.path.join(scratch, "seed")
    opened = case.write(at)
    try:
        if not mckpt.verify(opened, threads=1, progress=False).sound:
            return None
        for to, what in conversions or CONVERSIONS:
            try:
                convert(mckpt, opened, os.path.join(scratch, "out"), to, filled(what, at))
                case.conversions.append((to, what))
            except mckpt.Error:
                pass
    except mckpt.Error:
        return None
    finally:
        shutil.rmtree(at)
    return case if case.conversions else None


def filled(what, folder):
    return {key: value.format(folder) if isinstance(value, str) else value for key, value in what.items()}


def make_seeds():
    mckpt = library()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as scratch:
        seeds = [seed_of(mckpt, name, path, scratch) for name, path in found_in_test_data()]
        seeds += [seed_of(mckpt, name, path, scratch) for name, path in made_by_mckpt(mckpt, scratch)]
        with_base = [("safetensors", {"base": "{}/base"}), ("dcp", {"base": "{}/base"})]
        seeds += [seed_of(mckpt, name, path, scratch, "adapter", with_base) for name, path in adapters()]
    return [seed for seed in seeds if seed]


# ---- Edits


def structure_of(name, data):
    base = os.path.basename(name)
    if base.endswith(".safetensors"):
        return "safetensors"
    if base.endswith(".json"):
        return "json"
    if base.endswith("metadata") or base.endswith(".pkl"):
        return "pickle"
    return "zip" if data.startswith(b"PK") else "pickles" if data.startswith(b"\x80") else "bytes"


@functools.lru_cache(maxsize=16)
def hdf5_file(data):
    return mutated_hdf5.File(data)


def mutated_file(name, data, other, rnd):
    if data.startswith(b"\x89HDF") and rnd.random() < 0.8:
        return hdf5_file(data).mutate(rnd)
    if name.endswith(".distcp"):  # archives that stand end to end: one of them
        ends = [m.start() + 22 for m in re.finditer(re.escape(b"PK\5\6"), data)]
        if ends and rnd.random() < 0.7:
            i = rnd.randrange(len(ends))
            begin = ends[i - 1] if i else 0
            new = mutated.mutate("zip", data[begin:ends[i]], other, rnd.getrandbits(63))
            return data[:begin] + (new or b"") + data[ends[i]:]
        return mutated.mutate("bytes", data, other, rnd.getrandbits(63))
    return mutated.mutate(structure_of(name, data), data, other, rnd.getrandbits(63))


def other_name(name, names, rnd):
    if rnd.random() < 0.3:
        return rnd.choice(names)
    digits = [i for i, c in enumerate(name) if c.isdigit()]
    if digits and rnd.random() < 0.7:
        i = rnd.choice(digits)
        return name[:i] + str(rnd.randrange(10)) + name[i + 1:]
    return name + rnd.choice([".bak", "x", ".tmp", "_0"])


def edit(files, other, rnd):
    """Makes one edit, and says which."""
    names = sorted(files)
    name = rnd.choice(names)
    data, kind = files[name], rnd.randrange(20)
    if kind < 11:
        new = mutated_file(name, data, rnd.choice(sorted(other.files.values())), rnd)
        if new is not None:
            files[name] = new
        return f"mutate {name}"
    if kind == 11:
        files[name] = data[:rnd.randrange(len(data) + 1)]
        return f"cut {name}"
    if kind == 12:
        del files[name]
        return f"remove {name}"
    if kind == 13:
        second = rnd.choice(names)
        files[name], files[second] = files[second], data
        return f"exchange {name} and {second}"
    if kind in (14, 15):
        target = other_name(name, names, rnd)
        files[target] = data
        if kind == 14 and target != name:
            del files[name]
        return f"{'rename' if kind == 14 else 'copy'} {name} to {target}"
    if kind == 16:
        like = [n for n in sorted(other.files) if os.path.splitext(n)[1] == os.path.splitext(name)[1]]
        if like:
            files[name] = other.files[rnd.choice(like)]
        return f"{name} of another seed"
    if kind == 17:
        files[name] = b""
        return f"empty {name}"
    if kind == 18:
        files[name] = data + bytes(rnd.randrange(1, 40))
        return f"zeros behind {name}"
    if data:
        at = rnd.randrange(len(data))
        files[name] = data[:at] + bytes([data[at] ^ 1 << rnd.randrange(8)]) + data[at + 1:]
    return f"flip a bit of {name}"


# ---- What the library makes of a case


def has_config(case):
    return any(os.path.basename(name) == "config.json" for name in case.files)


class Folders:
    bounded = False

    def __init__(self):
        with open(os.environ[SEEDS], "rb") as f:
            self.cases = pickle.load(f)
        self.mckpt = library()

    def seeds(self):
        return self.cases

    def make(self, seed, other, rnd):
        files, edits = dict(seed.files), []
        for _ in range(rnd.choice([1, 1, 1, 2, 3])):
            if files:
                edits.append(edit(files, other, rnd))
        if len(files) > 200 or sum(map(len, files.values())) > 2 * MOST_BYTES:
            return None
        return Case(seed.name, files, seed.source, seed.conversions, (seed.edits + edits)[-8:], rnd.getrandbits(30))

    def look(self, case, folder, phase):
        at = os.path.join(folder, str(os.getpid()))
        shutil.rmtree(at, ignore_errors=True)
        os.makedirs(at)
        try:
            source = case.write(os.path.join(at, "in"))
        except OSError:  # a name that is a folder and a file
            return None, False
        phase.enter(OURS)
        return self.judge(case, source, at)

    def judge(self, case, source, at):
        mckpt = self.mckpt
        where = f"{case.name}: {'; '.join(case.edits)}"
        self.told = set()  # what verify warned of
        self.open(source, filled(case.conversions[0][1], os.path.join(at, "in")))
        # A conversion reads the adapter's folder and its base: both have to be sound.
        base = filled(case.conversions[0][1], os.path.join(at, "in")).get("base")
        sound = self.verify(source) and (base is None or self.verify(base))
        to, what = case.conversions[case.number % len(case.conversions)]
        try:
            convert(mckpt, source, os.path.join(at, "out"), to, filled(what, os.path.join(at, "in")))
            return (("converted, not sound", "") if not sound else ("sound and converted", "")), sound
        except mckpt.Error as e:
            if e.code.startswith("MC99"):
                return ("", f"to {to}: {e.code} {e}: {where}"), False
            if not sound:
                return ("not sound and refused", ""), False
            if self.is_excused(e, case):
                return ("sound, refused for another reason than damage", ""), True
            return ("", f"sound, and not converted to {to}: {e.code} {e.message}: file {e.file}, tensor {e.tensor}, found {e.found}: {where}"), True

    def is_excused(self, error, case):
        code, beside = error.code, any(name.endswith("huggingface/config.json") for name in case.files)
        if code in self.told or (error.file.endswith("adapter_config.json") and "not computed" in error.message):
            return True  # verify said so as a warning; an adapter of a kind that is only described
        return code in NOT_DAMAGE or (code in WITHOUT_MODEL and not has_config(case)) or (code in OF_CONFIG_BESIDE and beside)

    def open(self, source, what):
        """All that `inspect` and `ls` show."""
        mckpt = self.mckpt
        try:
            with mckpt.open(source, base=what.get("base")) as checkpoint:
                for name in list(checkpoint)[:3]:
                    checkpoint[name].chunks
                checkpoint.objects
            with mckpt.open_as_fsdp(source):
                pass
        except mckpt.Error as e:
            if e.code.startswith("MC99"):
                raise RuntimeError(f"opening: {e.code} {e}") from e

    def verify(self, source):
        try:
            report = self.mckpt.verify(source, threads=1, progress=False)
            self.told |= {finding.code for finding in report.findings if finding.warning}
            return report.sound
        except self.mckpt.Error as e:
            if e.code.startswith("MC99"):
                raise RuntimeError(f"verify: {e.code} {e}") from e
            return False
