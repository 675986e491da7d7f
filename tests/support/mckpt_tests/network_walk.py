"""Conversions from and to a folder of another host: the same bytes, and killed ones go on. For file systems of every kind.

    with network_runs() as runs:
        walk(runs, far, "NFS")          far: an empty folder on the file system
"""

import os
import shutil

from mckpt_tests.checks import expect
from mckpt_tests.figures import counted, so_many, time_is_left
from mckpt_tests.folders import difference
from mckpt_tests.small_runs import faulty, small_runs


def network_runs(but=()):
    """All conversions at length, but for some, else one of each kind of result."""
    return small_runs(so_many((), ["hf-to-fsdp", "export", "to-pt", "pt-to-safetensors"]), but=but)


def new(far, name):
    at = os.path.join(far, name)
    os.mkdir(at)
    return at


def there(run, far):
    at = new(far, run.name)
    result = run.start(at)
    return run.problems(at, result) or result.returncode != 0 and result.stderr[:300]


def back(run, far):
    near = run.source
    copy = os.path.join(far, run.name + "_source_" + os.path.basename(near))
    (shutil.copytree if os.path.isdir(near) else shutil.copy)(near, copy)
    run.source, at = copy, run.fresh()
    result = run.start(at)
    run.source = near
    return result.returncode != 0 and result.stderr[:300] or difference(at, run.reference)


def killed(run, far, *again):
    at = new(far, "_".join([run.name, "killed", *(word.strip("-") for word in again)]))
    result = run.start(at, env=faulty("pwrite", 2, "KILL"))
    return run.problems(at, result, killed=True) or run.problems_again(at, *again)


def failed(run, far):
    """A file whose conversion fails leaves nothing; a folder leaves what the next command needs."""
    at = new(far, run.name + "_failed")
    result = run.start(at, env=faulty("pwrite", 1, "EIO"))
    left = os.listdir(at) if not run.can_resume else []
    return run.problems(at, result) or left and f"left over: {left}" or run.problems_again(at)


def walk(runs, far, named):
    cases = [(run, step, more) for run in runs for step, *more in ((there,), (back,), (killed,), (killed, "--resume"), (failed,)) if not more or run.can_resume]
    with counted("P7", f"conversions from and to {named}, the same bytes; killed and failed ones go on", len(cases)) as count:
        for run, step, more in cases:
            if not time_is_left():
                break
            wrong = step(run, far, *more)
            count.one(expect(not wrong, f"{run.name}, {step.__name__} {' '.join(more)} on {named}: {wrong}"))
