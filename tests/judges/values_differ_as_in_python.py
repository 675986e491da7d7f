"""Pairs of values that torch.save writes beside a tensor: `diff`, `verify --against` and the Python package find a difference exactly where
Python's values are of two types or unequal, whatever their length, depth and place (keys, items of sets, attributes), in both orders and in
each of the two forms of torch's files. Python itself says what is equal, by the walk of `same` below.
"""
import argparse
import collections
import concurrent.futures
import itertools
import os
import random
import struct
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SHARE

need("torch", "numpy")
import torch  # noqa: E402
from torch.distributed._shard.metadata import ShardMetadata  # noqa: E402


def attributed(value, **attributes):
    value.__dict__.update(attributes)
    return value


def nested(value, depth):
    for _ in range(depth):
        value = (value,)
    return value


def in_lists(value, depth):
    for _ in range(depth):
        value = [value]
    return value


def storage(*values):
    return torch.tensor(values).untyped_storage()


ordered = collections.OrderedDict
# The values of a group are all different; each is compared with each, and with itself written once more.
GROUPS = {
    "keys of bytes": [{b"abc": 1}, {b"xyz": 1}, {b"abc": 2}, {"abc": 1}, {bytes(300): 1}, {bytes(299) + b"a": 1}],
    "several keys of bytes": [{b"aa": 1, b"bb": 2}, {b"cc": 9, b"bb": 2}, {b"aa": 2, b"bb": 1}],
    "sets of bytes": [{b"abc"}, {b"xyz"}, {b"abc", b"xyz"}, frozenset({b"abc"}), {"abc"}, set(), frozenset()],
    "sets in sets": [{frozenset({b"1"})}, {frozenset({b"2"})}, {frozenset({1})}, {frozenset({1}), frozenset({2})}, {(1,)}],
    "long integers": [{2**100: 1}, {2**100 + 1: 1}, {-(2**100): 1}, {2**63: 1}, {2**63 - 1: 1}, {-(2**63): 1}, {-(2**63) - 1: 1}],
    "sets of long integers": [{2**100}, {2**100 + 1}, {2**200}],
    "plain integers": [2**63, 2**63 - 1, 2**64, -(2**63), -(2**63) - 1, 2**55, 2**55 - 1, 0, False, 0.0, None, "", b""],
    "quotes": [{("a', 'b", "c"): 1}, {("a", "b', 'c"): 1}, {("a', 'b', 'c",): 1}, {("a", "b", "c"): 1}],
    "escapes": [{"a\n": 1}, {"a\\n": 1}, {"a\\x0a": 1}, {"a\ud800": 1}, {"a\ud801": 1}],
    "long keys": [{tuple(range(500)): 1}, {(*range(499), 5): 1}, {"k" * 5000: 1}, {"k" * 4999 + "l": 1}, {("k" * 5000,): 1}, {("k" * 4999 + "l",): 1}],
    "long sets": [set(range(5000)), {*range(4999), 6000}, set(range(4999))],
    "deep keys": [{nested(1, 7): 1}, {nested(2, 7): 1}, {nested(1, 6): 1}],
    "deep items": [{nested(1, 40)}, {nested(2, 40)}, {nested(1, 39)}],
    "deep lists": [in_lists(1, 200), in_lists(2, 200), in_lists(1, 199)],
    "types of numbers as keys": [{1: "a"}, {True: "a"}, {1.0: "a"}, {"1": "a"}, {(1,): "a"}, {(True,): "a"}, {(1.0,): "a"}],
    "types of numbers in sets": [{1}, {True}, {1.0}, {"1"}],
    "zeros and NaN": [0.0, -0.0, float("nan"), struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0], float("inf")],
    "zeros as keys": [{0.0: 1}, {-0.0: 1}, {0: 1}, {False: 1}],
    "types of containers": [[1, 2], (1, 2), {1, 2}, frozenset({1, 2}), torch.Size([1, 2]), collections.deque([1, 2]), collections.deque([1, 2], 5),
                            collections.deque([1, 2], 6), {1: 2}, range(1, 3)],
    "empty containers": [[], (), set(), frozenset(), torch.Size([]), collections.deque(), {}, ordered(), collections.Counter(), b"", bytearray(b"")],
    "sizes as keys": [{(1, 2): 1}, {torch.Size([1, 2]): 1}, {(1, 3): 1}, {torch.Size([1, 3]): 1}],
    "bytes": [b"abc", bytearray(b"abc"), "abc", b"abd", bytearray(b"abd")],
    "dicts": [{"x": 1}, ordered(x=1), collections.defaultdict(int, {"x": 1}), collections.defaultdict(list, {"x": 1}), collections.Counter({"x": 1})],
    "attributes": [ordered(x=1), attributed(ordered(x=1), _metadata={"version": 1}), attributed(ordered(x=1), _metadata={"version": 2}),
                   attributed(ordered(x=1), _metadata=ordered(version=1)), attributed(ordered(x=1), other=1)],
    "attributes in a list": [[attributed(ordered(x=1), a={b"abc": 1})], [attributed(ordered(x=1), a={b"xyz": 1})], [ordered(x=1)]],
    "objects as keys": [{torch.device("cuda:0"): 1}, {torch.device("cuda:1"): 1}, {torch.float32: 1}, {torch.float16: 1}],
    "namespaces": [argparse.Namespace(a={b"x": 1}), argparse.Namespace(a={b"y": 1}), argparse.Namespace(a=1), argparse.Namespace(b=1)],
    "boxes of shards": [ShardMetadata([0, 0], [2, 3], "rank:0/cpu"), ShardMetadata([0, 1], [2, 3], "rank:0/cpu"), ShardMetadata([0, 0], [2, 3], "rank:1/cpu"),
                        ShardMetadata([0, 0], [3, 2], "rank:0/cpu")],
    "lists of boxes": [[ShardMetadata([0], [2], "rank:0/cpu")], [ShardMetadata([2], [2], "rank:0/cpu")],
                       [ShardMetadata([0], [2], "rank:0/cpu"), ShardMetadata([2], [2], "rank:1/cpu")]],
}
# Storages without a tensor: the legacy form has no directory by which they are found.
STORAGES = {"storages": [storage(1, 2), storage(1, 3), storage(1, 2, 3)], "storages in a list": [[storage(1, 2)], [storage(1, 3)]]}


def same(a, b):
    """Whether two values are of the same types and equal, a NaN to a NaN of its bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    if isinstance(a, (list, tuple, collections.deque)):
        return len(a) == len(b) and getattr(a, "maxlen", 0) == getattr(b, "maxlen", 0) and all(map(same, a, b))
    if isinstance(a, (set, frozenset)):
        return len(a) == len(b) and all(any(same(x, y) for y in b) for x in a)
    if isinstance(a, dict):
        return (len(a) == len(b) and all(any(same(k, j) and same(v, w) for j, w in b.items()) for k, v in a.items())
                and same(getattr(a, "__dict__", None), getattr(b, "__dict__", None)) and getattr(a, "default_factory", 0) == getattr(b, "default_factory", 0))
    if isinstance(a, argparse.Namespace):
        return same(vars(a), vars(b))
    if isinstance(a, torch.UntypedStorage):
        return a.tolist() == b.tolist()
    if isinstance(a, ShardMetadata):
        return (a.shard_offsets, a.shard_sizes, str(a.placement)) == (b.shard_offsets, b.shard_sizes, str(b.placement))
    return a == b


def shuffled(r, value):
    """An equal value, whose entries of dicts are in another order."""
    if type(value) is dict:
        entries = [(k, shuffled(r, v)) for k, v in value.items()]
        r.shuffle(entries)
        return dict(entries)
    return [shuffled(r, v) for v in value] if type(value) is list else value


def random_key(r, depth=2):
    kind = r.randrange(9 if depth else 7)
    if kind == 8:
        return frozenset(random_key(r, depth - 1) for _ in range(r.randrange(3)))
    if kind == 7:
        return r.choice([tuple, torch.Size])(r.choices(range(3), k=r.randrange(3))) if r.random() < 0.3 else tuple(random_key(r, depth - 1) for _ in range(r.randrange(3)))
    return [r.choice(["a", "b", "a', 'b", "1"]), r.choice([b"a", b"b", b"1"]), r.randrange(3), r.random() < 0.5, float(r.randrange(3)), r.choice([2**70, 2**70 + 1]), None][kind]


def random_value(r, depth=3):
    kind = r.randrange(8)
    if depth == 0 or kind < 2:
        return random_key(r, 1)
    if kind < 5:
        return r.choice([dict, dict, ordered])((random_key(r), random_value(r, depth - 1)) for _ in range(r.randrange(3)))
    if kind == 5:
        return r.choice([set, frozenset])(random_key(r) for _ in range(r.randrange(4)))
    return r.choice([list, tuple, collections.deque])(random_value(r, depth - 1) for _ in range(r.randrange(3)))


def save(path, value, protocol=2, legacy=False):
    torch.save({"w": torch.arange(4.0), "value": value}, path, pickle_protocol=protocol, _use_new_zipfile_serialization=not legacy)
    return path


def judge(what, one, other, equal):
    """`diff` in both orders, and `verify --against`."""
    for command in (["diff", one, other], ["diff", other, one], ["verify", one, "--against", other]):
        run = run_mckpt(*command, "-j1")
        ok = run.returncode == (0 if equal else 1) and ("value" in run.stdout + run.stderr or equal)
        expect(ok, f"{what}: {command[0]} {'finds a difference' if equal else 'finds none'} ({run.returncode}): {run.stdout[-500:]}{run.stderr[-500:]}")


with tempfile.TemporaryDirectory(prefix="mckpt_values_") as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    r, runs, number = random.Random(5), [], itertools.count()
    place = lambda: os.path.join(scratch, f"{next(number)}.pt")
    for groups, forms in ((GROUPS, (False, True)), (STORAGES, (False,))):
        for name, values in groups.items():
            legacy = r.choice(forms)  # objects of the two forms are not compared, and that is said
            files = [save(place(), v, r.choice([2, 4, 5]), legacy) for v in values]
            for (i, a), (j, b) in itertools.combinations(enumerate(values), 2):
                assert not same(a, b), f"{name}: {a!r} {b!r}"
                runs.append(pool.submit(judge, f"{name}: {i} and {j}", files[i], files[j], False))
            for i, a in enumerate(values):
                again = save(place(), shuffled(r, a), r.choice([2, 3, 4, 5]), legacy)
                runs.append(pool.submit(judge, f"{name}: {i} again", files[i], again, True))
    seen = []
    for _ in range(max(20, 200 * SHARE // 100)):
        a = random_value(r)
        b = shuffled(r, a) if r.random() < 0.4 else r.choice([v for v in seen if type(v) is type(a)] or [random_value(r)])
        seen.append(a)
        one, other = save(place(), a, r.choice([2, 4])), save(place(), b, r.choice([2, 5]))
        runs.append(pool.submit(judge, f"{a!r} and {b!r}", one, other, same(a, b)))
    for run in runs:
        run.result()
finish(1000)
