"""Jobs in which ranks die, fail, hang or are only slow: each ends by itself, with one cause that exactly one rank
tells, or goes on to its end.

usage: watched_ranks.py SCRIPTS_MPIRUN WATCHED_RANKS
"""
import concurrent.futures
import re
import subprocess
import sys

MPIRUN, PROGRAM = sys.argv[1:]
LIMIT_S = 3  # for 3 ranks on 2 cores the watch makes it 4.5
FAILS, LOST = 7, 3  # exit status: what the program gives its own errors, and what the watch gives lost ranks
failures = []


def run(ranks, *fates, silence_s=20, phase_s=0):
    command = [MPIRUN, "-n", str(ranks), "--timeout", "100", PROGRAM, str(silence_s), str(phase_s), *map(str, fates)]
    return subprocess.run(command, capture_output=True, text=True, timeout=110, stdin=subprocess.DEVNULL)


def told(result):
    return re.findall(r"^rank (\d+) (?:tells|reports): (.*)$", result.stderr, re.M)


def check(name, result, by, pattern, statuses):
    """One rank told one cause, and the job ended so."""
    causes = told(result)
    ok = len(causes) == 1 and int(causes[0][0]) in by and re.search(pattern, causes[0][1]) and result.returncode in statuses
    if not ok:
        failures.append(name)
        print(f"FAIL {name}: exit status {result.returncode}, told {causes}\n{result.stdout}{result.stderr}")


def whole(name, ranks, *fates):
    result = run(ranks, *fates, silence_s=LIMIT_S, phase_s=LIMIT_S)
    if result.returncode != 0 or told(result):
        failures.append(name)
        print(f"FAIL {name}: exit status {result.returncode}\n{result.stdout}{result.stderr}")


def died(rank, by, statuses, fate):
    check(f"{fate} of rank {rank}", run(3, rank, fate), [by], rf"^rank {rank} \(host .*\) died: ", statuses)


def killed(rank, by):
    died(rank, by, [137], "kill")


def left_early(rank, by):
    died(rank, by, range(1, 200), "exit")


def stopped(rank, by):
    result = run(3, rank, "stop", silence_s=LIMIT_S)
    check(f"stopped rank {rank}", result, [by], rf"^rank {rank} \(host .*\) does not answer: no heartbeat for [0-9.]+ s", [LOST])


def threw(rank, fate):
    check(f"{fate} in rank {rank}", run(3, rank, fate), [rank], "thrown on purpose", [FAILS])


def all_threw():
    check("every rank throws", run(4, 0, "throw", 1, "throw", 2, "throw", 3, "unknown"), range(4), "thrown on purpose", [FAILS])


def follows():
    """What may follow from the death of another makes way for it."""
    result = run(4, 1, "follow", 2, "follow", 3, "kill")
    check("errors that follow from a death", result, [0], r"^rank 3 \(host .*\) died: ", [137])


def hangs(rank, fate):
    result = run(3, rank, fate, phase_s=LIMIT_S)
    check(f"{fate} in rank {rank}", result, [0], rf"^rank {rank} \(host .*\) hangs in phase 'work': no progress for ", [LOST])


def waits_alone():
    result = run(3, 1, "alone", phase_s=LIMIT_S)
    check("a collective that others do not join", result, [0], "^every rank waits for others, .* is behind, in all_reduce of phase 'work'", [LOST])


def under_load(ranks):
    result = run(ranks, 5, "kill", silence_s=30)
    check(f"kill among {ranks} ranks", result, [0], r"^rank 5 \(host .*\) died: ", [137])


CASES = [
    (whole, "a rank that is slow", 3, 1, "slow"), (whole, "a rank that counts", 3, 1, "count"), (whole, "nothing happens", 3), (whole, "a rank alone", 1),
    (stopped, 0, 1), (stopped, 2, 0), (hangs, 2, "hang"), (hangs, 0, "loop"), (waits_alone,),
    (killed, 0, 1), (killed, 1, 0), (killed, 2, 0), (left_early, 0, 1), (left_early, 2, 0),
    (threw, 0, "throw"), (threw, 2, "throw"), (threw, 1, "unknown"), (threw, 1, "follow"), (all_threw,), (follows,), (under_load, 12),
]
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    for done in [pool.submit(*case) for case in CASES]:
        done.result()
print(f"{len(CASES)} jobs, {len(failures)} failures")
sys.exit(1 if failures else 0)
