"""Jobs in which ranks die, fail, hang or are only slow: each ends by itself, with one cause that exactly one rank
tells, or goes on to its end.
"""
import concurrent.futures
import re
import socket
import subprocess
import sys
import tempfile

from mckpt_tests.setting import MPIRUN, built
from mckpt_tests.two_hosts import ON_TWO_HOSTS, on_two_hosts_each, why_not_two_hosts

PROGRAM = built("watched_ranks")
LIMIT_S = 4  # for 3 ranks on 2 cores the watch makes it 6
SLOW_S = 10  # and this 15, of which jobs that must not fail stay clear on a busy machine; a rank that is slow takes 20
FAILS, LOST = 7, 3  # exit status: what the program gives its own errors, and what the watch gives lost ranks
KILLED = [137, LOST]  # the launcher's own for a rank that is killed, or the watch's: whoever notices first

class Failed(Exception):
    """`by_clock`: it may be that the machine was too busy for the limits."""

    def __init__(self, by_clock):
        super().__init__()
        self.by_clock = by_clock


def fail(what, by_clock=False):
    print(f"FAIL {what}", flush=True)
    raise Failed(by_clock)


def are_by_clock(causes):
    """No rank was in time to report, or a rank was taken for one that makes no progress."""
    return len(causes) < 2 and all(re.search("does not answer|hangs in|waited for other ranks|cannot reach|hears nothing", cause) for _, cause in causes)


def run(ranks, *fates, silence_s=20, phase_s=0, hosts=1):
    where = on_two_hosts_each(2) if hosts == 2 else []
    env = ON_TWO_HOSTS if hosts == 2 else None
    with tempfile.NamedTemporaryFile("r") as told:
        command = [MPIRUN, "-n", str(ranks), *where, "--timeout", "150", PROGRAM, told.name, str(silence_s), str(phase_s), *map(str, fates)]
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL, env=env)
        except subprocess.TimeoutExpired as e:
            fail(f"does not end: {command}\n{e.stdout}{e.stderr}")
        result.told = [(int(rank), cause) for rank, cause in re.findall(r"^rank (\d+): (.*)$", told.read(), re.M)]
        return result


def check(name, result, by, pattern, statuses):
    """One rank reported one cause, and the job ended with it."""
    ok = len(result.told) == 1 and result.told[0][0] in by and re.search(pattern, result.told[0][1]) and result.returncode in statuses
    if not ok:
        fail(f"{name}: exit status {result.returncode}, told {result.told}\n{result.stdout}{result.stderr}", are_by_clock(result.told))


def whole(name, ranks, *fates):
    result = run(ranks, *fates, silence_s=SLOW_S, phase_s=SLOW_S)
    if result.returncode != 0 or result.told:
        fail(f"{name}: exit status {result.returncode}, told {result.told}\n{result.stdout}{result.stderr}", bool(result.told) and are_by_clock(result.told))


def others(rank, ranks=3):
    """Any of them may be the first to see it."""
    return [r for r in range(ranks) if r != rank]


def died(rank, statuses, fate):
    check(f"{fate} of rank {rank}", run(3, rank, fate), others(rank), rf"^rank {rank} \(host .*\) died: .* in phase 'work'", statuses)


def killed(rank):
    died(rank, KILLED, "kill")


def left_early(rank):
    died(rank, range(1, 200), "exit")


def stopped(rank):
    result = run(3, rank, "stop", silence_s=LIMIT_S)
    check(f"stopped rank {rank}", result, others(rank), rf"^rank {rank} \(host .*\) does not answer: no heartbeat for [0-9.]+ s, last in phase 'work'", [LOST])


def threw(rank, fate):
    check(f"{fate} in rank {rank}", run(3, rank, fate), [rank], "thrown on purpose", [FAILS])


def all_threw():
    check("every rank throws", run(4, 0, "throw", 1, "throw", 2, "throw", 3, "unknown"), range(4), "thrown on purpose", [FAILS])


def follows():
    """An error that may follow from the death of another rank makes way for it."""
    result = run(4, 1, "follow", 2, "follow", 3, "kill")
    check("errors that follow from a death", result, others(3, 4), r"^rank 3 \(host .*\) died: ", KILLED)


def unwinds(rank, fate):
    """A message that others miss because a rank with an error gave up is not the cause."""
    missing = [word for other in others(rank) for word in (other, "miss")]
    check(f"{fate} in rank {rank}", run(3, rank, fate, *missing), [rank], "thrown on purpose", [FAILS])


def hangs(rank, fate):
    result = run(3, rank, fate, phase_s=LIMIT_S)
    check(f"{fate} in rank {rank}", result, range(3), rf"^rank {rank} \(host .*\) hangs in phase 'work': no progress for ", [LOST])


def waits_alone():
    result = run(3, 1, "alone", phase_s=LIMIT_S)
    check("a collective that others do not join", result, range(3), "^every rank has waited for other ranks for .* is behind, in all_reduce of phase 'work'", [LOST])


def on_two_hosts(name, by, pattern, statuses, *fates):
    silence_s = LIMIT_S if "stop" in fates else 20
    check(f"{name}, two hosts", run(4, *fates, hosts=2, silence_s=silence_s), by, pattern, statuses)


def whole_on_two_hosts():
    result = run(4, hosts=2)
    if result.returncode != 0 or result.told:
        fail(f"two hosts: exit status {result.returncode}\n{result.stdout}{result.stderr}")


def a_lost_host():
    """Nobody is left there who could see it: the launcher says what it lost, and ends the job."""
    result = run(4, 2, "kill", 3, "kill", hosts=2)
    if result.told or result.returncode not in KILLED:
        fail(f"the other host is lost: exit status {result.returncode}, told {result.told}\n{result.stdout}{result.stderr}")


def under_load(ranks):
    result = run(ranks, 5, "kill", silence_s=30)
    check(f"kill among {ranks} ranks", result, others(5, ranks), r"^rank 5 \(host .*\) died: ", KILLED)


CASES = [
    (whole, "a rank that is slow", 3, 1, "slow"), (whole, "a rank that counts", 3, 1, "count"), (whole, "nothing happens", 3), (whole, "a rank alone", 1),
    (stopped, 0), (stopped, 2), (hangs, 2, "hang"), (hangs, 0, "loop"), (waits_alone,),
    (killed, 0), (killed, 1), (killed, 2), (left_early, 0), (left_early, 2),
    (threw, 0, "throw"), (threw, 2, "throw"), (threw, 1, "unknown"), (threw, 1, "suspect"), (all_threw,), (follows,), (unwinds, 0, "unwind"), (unwinds, 2, "unwind"), (unwinds, 0, "suspect unwinds"), (under_load, 12),
]
OF_TWO_HOSTS = [  # ranks 0 and 1 are here, 2 and 3 on the other; each host is watched by its own ranks
    (whole_on_two_hosts,), (a_lost_host,),
    (on_two_hosts, "a rank of the other is killed", [2], r"^rank 3 \(host elsewhere, process \d+\) died: ", KILLED, 3, "kill"),
    (on_two_hosts, "rank 0 is killed", [1], rf"^rank 0 \(host {re.escape(socket.gethostname())}, process \d+\) died: ", KILLED, 0, "kill"),
    (on_two_hosts, "a rank of the other is stopped", [2], r"^rank 3 \(host elsewhere, process \d+\) does not answer: ", [LOST], 3, "stop"),
    (on_two_hosts, "a rank of the other throws", [3], "thrown on purpose", [FAILS], 3, "throw"),
    (on_two_hosts, "two hosts throw, one of them because of the other", [0], "thrown on purpose", [FAILS], 0, "throw", 2, "suspect"),
]
if why := why_not_two_hosts(MPIRUN):
    print(f"left out: jobs on two hosts, which this machine cannot be: {why}")
else:
    CASES += OF_TWO_HOSTS


def fails(case):
    """None, or how it failed."""
    try:
        case[0](*case[1:])
    except Failed as e:
        return e


with concurrent.futures.ThreadPoolExecutor(3) as pool:
    failed = [(case, how) for case, how in zip(CASES, pool.map(fails, CASES)) if how]
# The watch goes by the clock, and so does this judge: where others took the processors for seconds, such a verdict says
# nothing about the watch. It has one more try, with the machine to itself.
again = [case for case, how in failed if how.by_clock]
lost = len(failed) - len(again) + sum(fails(case) is not None for case in again)
print(f"{len(CASES)} jobs, {len(again)} tried again, {lost} failures")
sys.exit(1 if lost else 0)
