"""Saves checkpoints with the newest release of every writer, and judges what mckpt makes of them: run.py [--again] [NAME...] (scripts/newest calls it).
With --again what the last run saved is judged again, and nothing is installed.

A writer is a row of WRITERS. It gets a virtual environment below $MCKPT_NEWEST (build/newest), on top of one
with torch and transformers, since torch alone takes gigabytes; its program saves cases, and
tests/judges/newest_cases.py judges them as it judges the cases of test_data/newest."""

import dataclasses
import datetime
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys

from mckpt_tests import checks
from mckpt_tests.setting import MCKPT, SOURCE
from newest_cases import Case

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get("MCKPT_NEWEST") or os.path.join(SOURCE, "build", "newest")
PAGE = os.path.join(SOURCE, "docs", "tested_with.md")
BASE = ["torch", "transformers", "safetensors", "numpy"]
TORCH_MINORS = 4
MOST_SECONDS = 900  # for one program; writers that fork beside threads hang at times, and are then tried once more
HEAD = """# What was tested with which release

`scripts/newest` installs the newest release that PyPI serves of each writer below, saves tiny checkpoints with it on CPU ranks, and runs `inspect`, `verify`, `ls --digest`, `export`,
`verify --against` and the conversions on each. *right*: every one of them has what the library itself has. It writes this page, and fails where anything differs; it runs weekly.

| writer | release | date | forms | verdict |
|---|---|---|---|---|
"""


@dataclasses.dataclass
class Writer:
    program: str
    packages: list
    options: list = dataclasses.field(default_factory=list)  # of pip
    env: dict = dataclasses.field(default_factory=dict)
    before: list = dataclasses.field(default_factory=list)  # packages that the installation itself needs


WRITERS = {
    "transformers": Writer("transformers.py", []),
    "safetensors": Writer("safetensors.py", []),
    "accelerate": Writer("accelerate.py", ["accelerate"]),
    "peft": Writer("peft.py", ["peft"]),
    "compressed-tensors": Writer("compressed_tensors.py", ["compressed-tensors"]),
    "torch_checkpointing": Writer("torch_checkpointing.py", ["torch-checkpointing"]),
    "torchtitan": Writer("torchtitan.py", ["torchtitan"]),
    "megatron-core": Writer("megatron_core.py", ["megatron-core", "psutil"]),  # which it asks for when it writes
    "deepspeed": Writer("deepspeed.py", ["deepspeed"], ["--no-build-isolation"], {"DS_BUILD_OPS": "0", "DS_ACCELERATOR": "cpu"},
                        ["setuptools", "wheel"]),
    "verl": Writer("verl.py", ["verl"]),
}


def run(command, **more):
    return subprocess.run([str(c) for c in command], check=True, **more)


def site_of(folder):
    return next(os.path.join(folder, "lib", name, "site-packages") for name in os.listdir(os.path.join(folder, "lib")) if name.startswith("python"))


def python_of(folder):
    return os.path.join(folder, "bin", "python")


def newest_python():
    """The Python of the environments: PyPI serves older releases of some writers to a Python below 3.12."""
    if given := os.environ.get("MCKPT_NEWEST_PYTHON"):
        return given
    for python in [*(shutil.which(f"python3.{minor}") for minor in (12, 13)), *sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[23].*/bin/python3"))), sys.executable]:
        if python and subprocess.run([python, "-c", "import sys, venv; sys.exit(sys.version_info < (3, 12))"], capture_output=True).returncode == 0:
            return python
    sys.exit("newest: needs Python 3.12 or newer, named by $MCKPT_NEWEST_PYTHON or on the PATH: PyPI serves older releases of some writers to older ones")


def environment(name, packages, options=(), env=None, before=(), base=None):
    """A virtual environment with these packages, over the packages of `base`; its folder."""
    folder = os.path.join(ROOT, "venv", name)
    if not os.path.exists(python_of(folder)):
        run([newest_python(), "-m", "venv", folder])
    if base:
        with open(os.path.join(site_of(folder), "base.pth"), "w") as f:
            f.write(site_of(base) + "\n")
    for some, how in ((before, ()), (packages, options)):
        if some:
            # Without PYTHONSAFEPATH, which setup.py of a package does not survive: it imports what lies beside it.
            kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONSAFEPATH", "PYTHONPATH")}
            run([python_of(folder), "-m", "pip", "install", "-q", "--upgrade", "--disable-pip-version-check", *how, *some], env={**kept, **(env or {})})
    return folder


def newest_minors(python, count):
    """The newest release of torch's last minors: ["2.15.0", "2.14.1", ...]."""
    told = run([python, "-m", "pip", "index", "versions", "torch"], capture_output=True, text=True).stdout
    newest = {}
    for version in re.search(r"Available versions: (.*)", told)[1].split(", "):
        newest.setdefault(tuple(version.split(".")[:2]), version)
    return list(newest.values())[:count]


def torch_environments(base):
    """(name, folder) for each of torch's last minors. The libraries of CUDA, which torch does not start
    without, come from `base`."""
    for version in newest_minors(python_of(base), TORCH_MINORS):
        folder = environment(f"torch-{version}", [f"torch=={version}"], ["--no-deps"], base=base)
        link = os.path.join(site_of(folder), "nvidia")
        if not os.path.lexists(link) and os.path.exists(os.path.join(site_of(base), "nvidia")):
            os.symlink(os.path.join(site_of(base), "nvidia"), link)
        yield folder


def judge(folder):
    """The faults of the cases of a folder, their forms and refusals: (lines, forms, refused)."""
    wrong, forms, refused = [], [], []
    for name in sorted(os.listdir(folder)):
        if not os.path.exists(os.path.join(folder, name, "case.json")):
            continue
        case = Case(os.path.join(folder, name))
        form = case.facts.get("form", name)
        wrong += [f"{name}: {step}: {why}" for step, why in case.judge().items() if why]
        (refused if case.refused() else forms).append(form + (f" ({case.facts['why']})" if case.facts.get("why") else ""))
    return wrong, forms, refused


def row_of(title, folder, wrong, forms, refused):
    with open(os.path.join(folder, "versions.json")) as f:
        release = ", ".join(f"{name} {version}" for name, version in json.load(f).items())
    verdict = "right" if not wrong else "wrong: " + "; ".join(line if " does not save" in line else ": ".join(line.split(": ")[:2]) for line in wrong).replace("|", "/")
    if refused:
        verdict += "; refused by name: " + ", ".join(refused)
    return f"| {title} | {release} | {datetime.date.today()} | {'; '.join(forms)} | {verdict} |"


def saved(title):
    """Where the cases of a row are."""
    return os.path.join(ROOT, "cases", title.replace(" ", "_"))


def ended(command, env):
    """Runs a command; its stderr, or None where it, or a process that it started, did not end in time. All of them are ended then."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env, start_new_session=True) as started:
        try:
            return started.communicate(timeout=MOST_SECONDS)[1]
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            return None


def save(title, program, folder_of_env, env=None):
    """Runs a program. Returns why it did not even say which releases it has, or ""."""
    out = saved(title)
    print(f"== {title}", flush=True)
    # A program has the name of its writer, so its folder must not be where Python looks for packages. One thread: libraries fork writers, and a fork of a
    # process whose OpenMP has started threads hangs.
    command = [python_of(folder_of_env), "-P", os.path.join(HERE, program), out]
    how = {**os.environ, "PYTHONPATH": os.path.join(HERE, "shared"), "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1",
           "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
    for last in (False, True):
        shutil.rmtree(out, ignore_errors=True)
        errors = ended(command, how)
        if errors is not None:
            break
        print(f"  {title}: no end after {MOST_SECONDS} s", flush=True)
        if last:
            return f"not run: no end after {MOST_SECONDS} s, twice"
    if os.path.exists(os.path.join(out, "versions.json")):
        return ""
    print(errors[-3000:])
    return "not run: " + (errors.strip().splitlines() or ["no reason"])[-1][:200]


def judged(title):
    """The row of what was saved, and what is wrong in it."""
    out = saved(title)
    wrong, forms, refused = judge(out)
    with open(os.path.join(out, "failed.json")) as f:
        wrong += [f"{maker} does not save: {why.splitlines()[0][:200]}" for maker, why in json.load(f).items()]
    for line in wrong:
        print("  WRONG", f"{title}: {line}", flush=True)
    return row_of(title, out, wrong, forms, refused), wrong


def write_page(rows):
    """The rows of this run, and the rows of the writers that it left out as they were."""
    kept = {}
    if os.path.exists(PAGE):
        with open(PAGE) as f:
            kept = {line.split("|")[1].strip(): line.rstrip("\n") for line in f if line.startswith("| ") and not line.startswith("| writer")}
    kept.update(rows)
    with open(PAGE, "w") as f:
        f.write(HEAD + "".join(kept[title] + "\n" for title in sorted(kept)))


def writers(names, base):
    """Saves with every writer that is named, or with all: (title, why it was not run)."""
    if not names or "torch" in names:
        for folder in torch_environments(base):
            title = "torch " + ".".join(os.path.basename(folder).removeprefix("torch-").split(".")[:2])
            yield title, save(title, "torch_dcp.py", folder)
    for name, writer in WRITERS.items():
        if names and name not in names:
            continue
        try:
            folder = environment(name, writer.packages, writer.options, writer.env, writer.before, base)
        except subprocess.CalledProcessError:
            yield name, "not installed: pip failed"
        else:
            yield name, save(name, writer.program, folder, writer.env)


def saved_before(names):
    for title in sorted(os.listdir(os.path.join(ROOT, "cases"))):
        title = title.replace("torch_2", "torch 2")
        if not names or title.split(" ")[0] in names:
            yield title, ""


def main(arguments):
    names = [name for name in arguments if name != "--again"]
    if unknown := set(names) - set(WRITERS) - {"torch"}:
        sys.exit(f"newest: no writer is called {', '.join(sorted(unknown))}: torch, {', '.join(WRITERS)}")
    print("mckpt is", MCKPT)
    rows, wrong = {}, 0
    for title, why in saved_before(names) if "--again" in arguments else writers(names, environment("base", BASE)):
        if why:
            rows[title], more = f"| {title} | | {datetime.date.today()} | | {why} |", [why]
        else:
            rows[title], more = judged(title)
        wrong += len(more)
    write_page(rows)
    print(f"{checks.checked} checked, {wrong} wrong")
    sys.exit(1 if wrong or checks.failures else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
