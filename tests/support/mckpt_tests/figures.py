"""Figures of the promises of docs/reliability.md, which a test measures while it checks them. They are printed, and where
$MCKPT_FIGURES names a file they are added there, a line of JSON each: scripts/trust makes its table of them.

    with counted("P8", "SIGKILL at random times, then --resume", asked=200) as kills:
        kills.one(went_well)                           once for each case
    bounded("P15", "s from a signal to the end", at_most=2, worst=slowest)
    not_measured("P9", "power cuts on btrfs", "100", "no mkfs.btrfs is installed")

A test looks at a sample in scripts/test, and at all of it under scripts/trust: AT_LENGTH says which, `so_many` and `some_of` choose.
Under scripts/trust a walk also has an end: `time_is_left`. The figure says how far it came.
"""
import contextlib
import json
import os
import random
import time

AT_LENGTH = bool(os.environ.get("MCKPT_AT_LENGTH"))
END = float(os.environ.get("MCKPT_END") or "inf")  # of the walks of this test, in seconds since 1970


def so_many(at_length, small):
    return at_length if AT_LENGTH else small


def some_of(cases, small):
    """All cases at length, in an order that is the same in each run but spread over all; else a sample of so many."""
    cases = list(cases)
    random.Random(11).shuffle(cases)
    return cases if AT_LENGTH else cases[:small]


def time_is_left():
    return time.time() < END


def tell(promise, what, asked, reached, met, seconds):
    figure = {"promise": promise, "what": what, "asked": asked, "reached": reached, "met": met, "seconds": round(seconds, 1)}
    print(f"{promise} {what}: {reached} (asked: {asked}{'' if met else ', NOT met'}) in {seconds:.1f} s", flush=True)
    if path := os.environ.get("MCKPT_FIGURES"):
        with open(path, "a") as f:
            f.write(json.dumps(figure) + "\n")


class Counted:
    def __init__(self):
        self.tried, self.good, self.also = 0, 0, ""

    def one(self, good):
        self.tried += 1
        self.good += bool(good)


@contextlib.contextmanager
def counted(promise, what, asked):
    """`asked`: how many cases at least; None: as many as there are, which `of` of the result says."""
    count, begin = Counted(), time.time()
    count.of = asked
    yield count
    wanted = count.of if count.of is not None else count.tried
    reached = f"{count.good:,} of {count.tried:,}" + (f" ({count.also})" if count.also else "")
    if count.tried < wanted and not time_is_left():
        reached += "; the time was over"
    tell(promise, what, f"{wanted:,}", reached, count.tried > 0 and count.tried >= wanted and count.good == count.tried, time.time() - begin)


def bounded(promise, what, at_most, worst, seconds=0.0):
    tell(promise, what, f"at most {at_most:,}", f"{worst:,.2f}".rstrip("0").rstrip("."), worst <= at_most, seconds)


def not_measured(promise, what, asked, why):
    tell(promise, what, asked, f"not run here: {why}", False, 0)
