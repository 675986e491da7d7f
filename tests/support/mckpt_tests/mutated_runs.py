"""Looks at very many mutated cases in several processes. A case is made from its number alone (and from what was good before it in its batch), so
that it is known though the process that looked at it is gone: a reader that ends by a signal is told, and the others go on.

    runs = Runs(module, class, processes, folder)
    runs.run(cases, stop, first)   runs.counts, runs.unexplained, runs.died, runs.faults

A kind of cases is a class with seeds(); make(seed, other, rnd), which may be None; and look(case, folder, phase), which gives (verdict, good): the verdict is
None where nothing is to be told, else the name of a rule (or "" where there is none) and a text; a good case becomes a seed."""
import collections
import importlib
import multiprocessing
import multiprocessing.connection
import random
import re
import resource
import signal
import time
import warnings

BATCH = 500
POOL = 200  # seeds
SECONDS = 50  # that a case may take
MEMORY = 3 << 30  # that a reader may take
MADE, OURS, THEIRS = range(3)
PHASES = ("being made", "mckpt", "the reference")


class OutOfTime(BaseException):
    pass


def made(kind, batch):
    """The cases of a batch. The generator is sent whether the last one was good."""
    rnd, pool = random.Random(batch), list(kind.seeds())
    while True:
        case = kind.make(rnd.choice(pool), rnd.choice(pool), rnd)
        if case is not None and (yield case):
            pool.append(case)
            if len(pool) > POOL:
                pool.pop(rnd.randrange(len(pool)))


def out_of_time(*_):
    raise OutOfTime


class Phase:
    """In which phase a process is, for those who see it end."""

    def __init__(self, state):
        self.state = state

    def enter(self, phase):
        self.state[1] = phase


def look(kind, case, folder, state):
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return kind.look(case, folder, Phase(state))
    except OutOfTime:
        return ("out of time in the reference" if state[1] == THEIRS else "", f"took more than {SECONDS} s in {PHASES[state[1]]}"), False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        state[1] = MADE


def work(module, name, state, connection, folder):
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, out_of_time)
    kind = getattr(importlib.import_module(module), name)()
    with open("/proc/self/statm") as f:
        now = int(f.read().split()[0]) * resource.getpagesize()
    if kind.bounded:
        resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
    while (task := connection.recv()) is not None:
        batch, last, fatal = task
        counts, unexplained, good, cases = collections.Counter(), [], None, made(kind, batch)
        for i in range(last):
            case = cases.send(good)
            state[0] = i
            # An earlier process ended at a fatal case; what it knew of those before is gone with it.
            verdict, good = (None, False) if i in fatal else look(kind, case, folder, state)
            counts["good" if good else "not good"] += 1
            if verdict:
                counts[verdict[0] or "unexplained"] += 1
                if not verdict[0]:
                    unexplained.append((verdict[1], case))
        connection.send((counts, unexplained))


class Worker:
    def __init__(self, module, name, folder):
        self.arguments, self.state = (module, name), multiprocessing.Array("q", 2, lock=False)
        self.folder, self.batch = folder, None
        self.start()

    def start(self):
        self.connection, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=work, args=(*self.arguments, self.state, other, self.folder), daemon=True)
        self.process.start()
        other.close()

    def give(self, batch, last, fatal=frozenset()):
        self.batch, self.last, self.fatal = batch, last, fatal
        self.connection.send((batch, last, fatal))

    def restart_without(self):
        """Goes through the batch again without the case at which the process ended. Returns its number, the phase and the status."""
        self.process.join()
        i, status = self.state[0], self.process.exitcode
        phase, self.state[1] = self.state[1], MADE
        self.start()
        self.give(self.batch, self.last, self.fatal | {i})
        return self.batch * BATCH + i, phase, status


class Runs:
    def __init__(self, module, name, processes, folder):
        multiprocessing.set_start_method("forkserver", force=True)
        multiprocessing.set_forkserver_preload(["mckpt_tests.mutated", "torch.distributed.tensor"])
        self.counts, self.unexplained, self.died = collections.Counter(), [], collections.Counter()
        self.faults = []  # of mckpt or of the mutators
        self.workers = [Worker(module, name, folder) for _ in range(processes)]

    def ended(self, worker):
        number, phase, status = worker.restart_without()
        self.died[phase] += 1
        if phase != THEIRS:
            self.faults.append(f"case {number}: the process ended with {status} in {PHASES[phase]}")

    def take(self, worker):
        """True: the worker is free."""
        try:
            counts, unexplained = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            self.ended(worker)
            return False
        self.counts += counts
        self.unexplained += unexplained
        return True

    def run(self, cases, stop, first=0):
        """Looks at so many cases, from that batch on, or until the clock is at `stop`."""
        sizes = iter([(first + i, min(BATCH, cases - i * BATCH)) for i in range(-(-cases // BATCH))])
        busy = [w for w in self.workers if (size := next(sizes, None)) and w.give(*size) is None]
        while busy:
            for connection in multiprocessing.connection.wait([w.connection for w in busy], 60):
                worker = next(w for w in busy if w.connection is connection)
                if not self.take(worker):
                    continue
                size = next(sizes, None) if time.time() < stop else None
                if size is None:
                    busy.remove(worker)
                else:
                    worker.give(*size)
        for worker in self.workers:
            worker.connection.send(None)
            worker.process.join()

    @property
    def looked_at(self):
        return self.counts["good"] + self.counts["not good"]


def alike(what):
    """The same for texts of one kind: without paths, numbers and names."""
    return re.sub(r"0x[0-9a-f]+|\d+", "N", re.sub(r"'(?:[^'\\]|\\.)*'|\S*/\S*", "_", what))[:160]


def one_of_each(unexplained):
    """[(text, case, how many)]: the smallest case of each kind, the most frequent kind first."""
    kinds = collections.defaultdict(list)
    for what, case in unexplained:
        kinds[alike(what)].append((what, case))
    found = sorted(kinds.values(), key=len, reverse=True)
    return [(*min(same, key=lambda pair: len(pair[1])), len(same)) for same in found]
