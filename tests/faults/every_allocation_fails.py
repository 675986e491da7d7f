"""Every allocation of a conversion and of a look fails once, and from some on all of them do: the answer is an error that is told, never a
signal, and the result is whole or not there; or the answer is the one of a run that was left alone. The same command afterwards makes the
right result.
"""

import re
import tempfile

from mckpt_tests.checks import expect, finish, in_parallel
from mckpt_tests.figures import AT_LENGTH, counted, so_many, some_of, time_is_left
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import FAULTY_MEMORY
from mckpt_tests.small_runs import small_runs

FIRST = 5000
KINDS = so_many(["hf-to-fsdp", "export", "to-hdf5", "reshard"], ["hf-to-fsdp", "to-hdf5"])
# Every fourth of these is in the sample: the helper was once looked for by a list of folders that ends the program without memory.
ALWAYS = {"to-hdf5": range(2203, 3203, 4)}


def failing(which):
    return {"LD_PRELOAD": FAULTY_MEMORY, "FAULTY_MEMORY": which}


def is_told(result):
    """Before the program can say anything there is no memory to say it with; it then ends by itself, too."""
    return result.returncode > 0 and re.search(r"(error|problem)\[MC(?!99)|out of memory|(too little|not enough) memory", result.stderr + result.stdout)


def allocations(words):
    with tempfile.NamedTemporaryFile("r") as log:
        run_mckpt(*words, env={"LD_PRELOAD": FAULTY_MEMORY, "FAULTY_MEMORY_LOG": log.name})
        return int(log.read())


def convert(run, which, n):
    at = run.fresh()
    result = run.start(at, env=failing(which))
    wrong = ""
    if result.returncode == 0:
        wrong = run.problems(at, result)
    elif run.is_published(at) and is_told(result):  # there may be no memory for the word that it is published
        wrong = run.is_whole(at)
    elif not is_told(result):
        wrong = f"exit status {result.returncode}: {result.stderr[:300]!r}"
    if not wrong and result.returncode != 0 and n % 10 == 0:
        wrong = run.problems_again(at)
    run.drop(at)
    return wrong


def look(words, answer, which, _):
    result = run_mckpt(*words, env=failing(which))
    if result.returncode == answer.returncode and result.stdout == answer.stdout or is_told(result):
        return ""
    return f"exit status {result.returncode}: {result.stderr[:300]!r}"


def walk(name, most, one):
    cases = [(f"{n}{more}", n) for n in range(1, min(FIRST, most) + 1) for more in ("", "+")]
    with counted("P12", f"`{name}`: the n-th allocation fails, or all from it on; n to {min(FIRST, most):,}", len(cases) if AT_LENGTH else None) as count:

        def check(which, n):
            if time_is_left():
                wrong = one(which, n)
                count.one(expect(not wrong, f"{name}: allocation {which} fails: {wrong}"))

        always = [case for case in cases if case[1] in ALWAYS.get(name, ()) and case[0] == str(case[1])]
        in_parallel(check, dict.fromkeys(some_of(cases, 100) + ([] if AT_LENGTH else always)))


with small_runs(KINDS) as runs:
    for run in runs:
        walk(run.name, allocations(run.words(run.fresh())), lambda which, n, run=run: convert(run, which, n))
    words = ["verify", runs[0].made(runs[0].reference), "-j1"]
    walk("verify", allocations(words), lambda which, n, answer=run_mckpt(*words): look(words, answer, which, n))
finish(150)
