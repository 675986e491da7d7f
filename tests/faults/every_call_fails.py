"""usage: every_call_fails.py [conversions | looks | KIND OF CONVERSION...]

Every call of a small run of each conversion fails once, in each way that such a call can fail; so does every call of commands that
look. The answer is an error that is told, and the result is whole or not there; or the answer is the one of a run that was left alone, or
`verify` names the file that it could not read and says "sound, but", and `diff` "equal: ..., but".
A call that moves less than it was asked to, or is broken off by a signal, changes nothing. Nobody says "done" after a file that could not be
made durable. The same command afterwards makes the right result.
"""

import re
import sys
import tempfile

from mckpt_tests.checks import expect, finish, in_parallel
from mckpt_tests.figures import AT_LENGTH, counted, some_of, time_is_left
from mckpt_tests.folders import snapshot
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import FAULTY_IO
from mckpt_tests.small_runs import STATUSES, faulty, small_runs

READS = ["EIO", "EINTR", "EAGAIN", "ESTALE", "SHORT"]
WRITES = ["EIO", "ENOSPC", "EDQUOT", "EINTR", "EAGAIN", "SHORT"]
NAMES = ["EIO", "ENOSPC", "EDQUOT", "EROFS"]
FAULTS = {
    "open": ["EIO", "EMFILE", "EACCES", "EINTR"],
    "openat": ["EIO", "EMFILE", "EACCES", "EINTR"],
    "create": ["EIO", "ENOSPC", "EDQUOT", "EROFS", "EINTR"],
    "fopen": ["EIO", "EMFILE"],
    "read": READS,
    "pread": READS,
    "readdir": ["EIO"],
    "write": WRITES,
    "pwrite": WRITES,
    "fsync": ["EIO", "ENOSPC", "EDQUOT", "EINTR"],
    "close": ["EIO", "EINTR", "ENOSPC", "EDQUOT"],
    "rename": NAMES,
    "link": [*NAMES, "EPERM"],
    "symlink": [*NAMES, "EPERM"],
    "unlink": ["EIO", "EROFS"],
    "mkdir": NAMES,
    "fallocate": ["EIO", "ENOSPC", "EDQUOT", "EINTR", "ENOTSUP"],
    "ftruncate": ["EIO", "ENOSPC", "EINTR"],
    "stat": ["EIO", "ESTALE"],
    "statx": ["EIO", "EACCES", "ESTALE"],
    "statfs": ["EIO"],
    "flock": ["EIO", "EINTR"],
    "realpath": ["EIO", "EACCES"],
    "readlink": ["EIO"],
    "chmod": ["EIO", "EPERM"],
    "utime": ["EIO", "EPERM"],
    "ioctl": ["EIO"],
}
SHARES = ("conversions", "looks")
HARMLESS = ("EINTR", "SHORT")
FULL = ("ENOSPC", "EDQUOT")
SMALL = 10  # cases of each run where it is not gone over at length, and every n-th of these, which were wrong once:
ALWAYS = {
    "ungroup": {("pread", "EIO"): 3, ("openat", "EINTR"): 3},
    "dequantize": {("stat", "EIO"): 3},
    "plot": {("pread", "EIO"): 3},
    "verify": {("pread", "EIO"): 3, ("stat", "ESTALE"): 1},
    "to-hdf5": {("openat", "EACCES"): 1},
}
LOOKS = [["inspect", "{}"], ["ls", "{}", "--digest"], ["verify", "{}"], ["stats", "{}"], ["diff", "{}", "{}"]]


def cases_of(calls):
    unknown = set(calls) - set(FAULTS)
    expect(not unknown, f"calls that nobody lets fail: {unknown}")
    return [(call, n, what) for call in calls if call in FAULTS for n in range(1, calls[call] + 1) for what in FAULTS[call]]


def convert(run, call, n, what):
    """"" or what is wrong with the run of which this call failed so."""
    at = run.fresh()
    result = run.start(at, env=faulty(call, n, what))
    wrong = run.problems(at, result)
    if not wrong and what in HARMLESS and result.returncode != 0:
        wrong = f"exit status {result.returncode}: {result.stderr[:300]!r}"
    if not wrong and call == "fsync" and what not in HARMLESS and result.returncode == 0:
        wrong = "done, though a file is not durable"
    if not wrong and result.returncode != 0:
        wrong = run.problems_again(at, *(["--resume"] if n % 2 and run.can_resume else []))
    run.drop(at)
    return wrong


def steady(result):
    """Its answer, without the time that it took."""
    return re.sub(r"\b[\d.]+ (s|ms|[KMG]?i?B/s)\b", "<time>", result.stdout + result.stderr)


def look(words, answer, call, n, what):
    result = run_mckpt(*words, env=faulty(call, n, what))
    said = steady(result)
    if result.returncode == answer.returncode and said == steady(answer):
        return ""
    shown = f"exit status {result.returncode}: {said[-400:]!r}"
    told = re.search(r"(error|problem)\[MC(?!99)", said) and result.returncode in (1, *STATUSES)
    but = r": sound(, with warnings)?, but " if words[0] == "verify" else r"^equal: .*, but .* not read"
    restricted = result.returncode == 0 and re.search(r"not (read|compared):? \S", said) and re.search(but, said) and said != steady(answer)
    return "" if (told or restricted) and what not in HARMLESS else shown


def walk(name, cases, one):
    """One figure for full disks, one for all other faults."""
    for promise, kinds, chosen in (("P10", "ENOSPC and EDQUOT", True), ("P11", "other errors, short counts, EINTR", False)):
        mine = [case for case in cases if (case[2] in FULL) == chosen]
        if not mine:
            continue
        with counted(promise, f"`{name}`: {kinds} at every call", len(mine) if AT_LENGTH else None) as count:

            def check(call, n, what):
                if time_is_left():
                    wrong = one(call, n, what)
                    count.one(expect(not wrong, f"{name}: {what} at {call} {n}: {wrong}"))

            always = [] if AT_LENGTH else [(call, n, what) for call, n, what in mine if (step := ALWAYS.get(name, {}).get((call, what))) and n % step == 0]
            in_parallel(check, dict.fromkeys(some_of(mine, SMALL) + always))


def conversions(runs):
    for run in runs:
        walk(run.name, cases_of(run.calls()), lambda *case, run=run: convert(run, *case))


def looks(source):
    before = snapshot(source)
    for words in LOOKS:
        words = [word.format(source) for word in words]
        answer = run_mckpt(*words)
        with tempfile.NamedTemporaryFile("r") as log:
            run_mckpt(*words, env={"LD_PRELOAD": FAULTY_IO, "FAULTY_IO_LOG": log.name})
            lines = log.read().split()
        cases = cases_of({call: lines.count(call) for call in dict.fromkeys(lines)})
        walk(words[0], cases, lambda *case, words=words, answer=answer: look(words, answer, *case))
    expect(snapshot(source) == before, "a command that looks has changed its source")


chosen = sys.argv[1:]
only = [word for word in chosen if word not in SHARES]
with small_runs(only, also=() if only else ("plot", "drawing", "example")) as all_runs:
    if chosen != ["looks"]:
        conversions(all_runs)
    if chosen != ["conversions"]:
        looks(all_runs[0].made(all_runs[0].reference))
finish(300)
