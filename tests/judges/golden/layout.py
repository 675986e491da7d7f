#!/usr/bin/env python3
"""mckpt layout: its JSON against 162 packings of Megatron-FSDP, its text as a person sees it, its exit codes.
"""

import json
import os
import unittest

from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA


def mckpt(*args):
    return run_mckpt("layout", *args, timeout=60)


def written(shape):
    return "x".join(map(str, shape)) if shape else "scalar"


def answer(*args):
    done = mckpt(*args, "--json")
    assert done.returncode in (0, 1) and not done.stderr, (args, done)
    got = json.loads(done.stdout)
    assert got["schema"] == "mckpt.layout/1" and got["ok"] == (done.returncode == 0), (args, done)
    return got


class Golden(unittest.TestCase):
    """Every case of the original code, both engines."""

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        with open(os.path.join(DATA, "layout", "fsdp_layout_cases.json")) as f:
            cls.cases = json.load(f)

    def ask(self, case, engine):
        flags = ["--world", case["world"], "--strategy", case["strategy"], "--engine", engine]
        got = answer(*map(written, case["shapes"]), *flags)
        for field in ("shapes", "world", "strategy"):
            self.assertEqual(got[field], case[field])
        self.assertEqual(got["engine"], engine)
        self.assertEqual({k: got[k] for k in case[engine]}, case[engine], case)
        return got

    def test_v1(self):
        self.assertEqual(len(self.cases), 162)
        for case in self.cases:
            got = self.ask(case, "v1")
            self.assertEqual(got["ok"], case["v1"]["row_aligned"])
            self.assertEqual({f["code"] for f in got["findings"]}, set() if got["ok"] else {"MC0204"})

    def test_v2(self):
        for case in self.cases:
            got = self.ask(case, "v2")
            self.assertTrue(got["row_aligned"])
            self.assertEqual(got["shard"] * case["world"], got["size"])
            for shape, offset, ranges in zip(case["shapes"], got["offsets"], got["item_ranges"]):
                items = 1
                for n in shape:
                    items *= n
                for rank, (begin, end) in enumerate(ranges):
                    low, high = (min(max(r * got["shard"] - offset, 0), items) for r in (rank, rank + 1))
                    self.assertEqual([begin, end], [low, high] if low < high else [0, 0])


class RealRuns(unittest.TestCase):
    """The buffers that every rank of runs of Megatron-FSDP v2's own package held."""

    def test_v2(self):
        with open(os.path.join(DATA, "layout", "v2_runs.json")) as f:
            groups = json.load(f)
        self.assertEqual(len(groups), 16)
        for group in groups:
            got = answer(*map(written, group["shapes"]), "--world", group["world"], "--engine", "v2")
            for field in ("shapes", "offsets", "item_ranges"):
                self.assertEqual(got[field], group[field], group)
            self.assertEqual(got["size"], group["size"], group)
            self.assertEqual([[got["shard"] * r, got["shard"] * (r + 1)] for r in range(group["world"])], group["local_ranges"])


class Strategies(unittest.TestCase):
    """Runs of Megatron-FSDP v2's own package under every strategy of every axis, and what it refuses."""

    def test_v2(self):
        with open(os.path.join(DATA, "layout", "v2_strategies.json")) as f:
            runs = json.load(f)
        refused = 0
        for run in runs:
            mesh, axes = run["mesh"], run["axes"]
            world = mesh[0] * (mesh + [1])[1]
            flags = ["--world", world, "--engine", "v2", "--strategy", axes[-1]]
            if len(mesh) > 1:
                flags += ["--hsdp", mesh[0], "--hsdp-outer", "replicate" if axes[0] == "no_shard" else "shard"]
            if "refused" in run:
                told = mckpt(*map(written, run["shapes"]), *flags)
                reason = "inside them too" if axes[-1] == "no_shard" else "two axes differ" if "one changed" in run["refused"] else ""
                self.assertEqual((told.returncode, "MC0203" in told.stderr, reason in told.stderr), (2, True, True), (run, told.stderr))
                refused += 1
                continue
            got = answer(*map(written, run["shapes"]), *flags)
            self.assertEqual((got["offsets"], got["size"]), (run["offsets"], run["size"]), run)
            if axes[-1] != "no_shard":
                self.assertEqual([list(of) for of in zip(*got["item_ranges"])], run["held"], run)
                self.assertEqual({numel for _, numel in run["main"]}, {got["shard"]}, run)
        self.assertEqual((len(runs), refused), (240, 108))


class Answers(unittest.TestCase):
    def test_scalar_is_an_empty_shape(self):
        got = answer("scalar", "2x3", "--world", 2)
        self.assertEqual((got["shapes"], got["offsets"], got["bucket"]), ([[], [2, 3]], [6, 0], 12))

    def test_item_ranges_are_by_rank_under_hsdp(self):
        flags = ["10x4", "10", "--world", 4, "--hsdp", 2]
        got = answer(*flags, "--hsdp-outer", "shard")
        self.assertEqual((got["bucket"], got["shard"]), (64, 16))
        self.assertEqual(got["item_ranges"][0], [[0, 16], [32, 40], [16, 32], [0, 0]])
        got = answer(*flags)
        self.assertEqual((got["bucket"], got["shard"]), (56, 28))
        self.assertEqual(got["item_ranges"][0], [[0, 28], [28, 40]] * 2)

    def test_a_cut_row_is_named_with_a_way_out(self):
        got = answer("2x6", "4x5", "--world", 2)
        self.assertEqual(got["row_aligned"], False)
        [finding] = got["findings"]
        self.assertEqual((finding["code"], finding["tensor"]), ("MC0204", "parameter 1"))
        self.assertIn("item 18 is not a multiple of 5", finding["message"])
        shapes = ["1x3", "1x5", "3x6"]
        [finding] = answer(*shapes, "--world", 3)["findings"]
        ranks = finding["help"].split("--world ")[1].split()[0]
        self.assertTrue(answer(*shapes, "--world", ranks)["ok"])

    def test_holes_and_padding_are_counted(self):
        got = answer("3x6", "4x4", "--world", 2)
        self.assertEqual((got["bucket"], got["holes"], got["padding"]), (48, 2, 12))


class Text(unittest.TestCase):
    def test_a_small_buffer(self):
        done = mckpt("10x4", "10", "--world", 4, "--ascii")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(
            done.stdout.splitlines(),
            """\
Megatron-FSDP v1, optim_grads_params, 4 ranks
parameters              50 items      100 B  2 of bfloat16
bucket                  64 items      128 B  holes 0 (0.0 %), padding 14 (21.9 %)
shard                   16 items       32 B  4 of them
chunk size               4 items

   #  shape    offset  rows  items of each rank
a  0  [10, 4]       0    10  r0 [0, 16)  r1 [16, 32)  r2 [32, 40)
b  1  [10]         40    10  r2 [0, 8)  r3 [8, 10)

0                16               32               48
|aaaaaaaaaaaaaaaa|aaaaaaaaaaaaaaaa|aaaaaaaabbbbbbbb|bb..............|
 r0               r1               r2               r3
""".splitlines(),
        )

    def test_many_ranks_are_folded(self):
        done = mckpt("4096x4096", "4096", "--world", 1024, "--ascii")
        self.assertIn("r0 [0, 20480)  r1-r818 20480 each  r819 [16773120, 16777216)", done.stdout)
        self.assertLess(len(done.stdout.splitlines()), 20)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 110)

    def test_a_thousand_million_ranks_take_no_time(self):
        done = mckpt("4096x4096", "4096", "--world", 10**9)
        self.assertEqual(done.returncode, 0, done)

    def test_a_cut_row_is_explained(self):
        done = mckpt("2x6", "4x5", "--world", 2)
        self.assertEqual(done.returncode, 1)
        self.assertIn("MC0204: the boundary of shards 0 and 1 is inside row 3 of parameter 1", done.stdout)
        self.assertIn("help: ", done.stdout)
        done = mckpt("10x4", "10", "--world", 4, "--strategy", "no_shard")
        self.assertEqual(done.returncode, 1)
        self.assertIn("under no_shard a real run saves every parameter whole", done.stdout)


class Refusals(unittest.TestCase):
    def test_each_has_its_code_and_no_answer(self):
        for code, exit, *args in (
            ("MC0001", 2),
            ("MC0001", 2, "3x"),
            ("MC0001", 2, "x3"),
            ("MC0001", 2, ""),
            ("MC0001", 2, "3 4"),
            ("MC0001", 2, "--", "-3"),
            ("MC0001", 2, "3", "--strategy", "zero3"),
            ("MC0001", 2, "3", "--engine", "v3"),
            ("MC0001", 2, "3", "--world", "two"),
            ("MC0001", 2, "99999999999999999999"),
            ("MC0001", 2, "4294967296x4294967296"),
            ("MC0001", 2, "10x4", "--world", 2**62),
            ("MC0102", 3, "x".join(["1"] * 65)),
            ("MC0001", 2, "3", "--dtype", "bf61"),
            ("MC0201", 2, "3", "--world", 0),
            ("MC0201", 2, "3", "--world", 4, "--hsdp", 3),
            ("MC0203", 2, "3x0"),
            ("MC0203", 2, "scalar", "--engine", "v2"),
            ("MC0203", 2, "3", "--world", 4, "--hsdp", 2, "--hsdp-outer", "shard", "--strategy", "optim"),
            ("MC0203", 2, "3", "--world", 10**9, "--json"),
        ):
            with self.subTest(args=args):
                done = mckpt(*args)
                self.assertIn(f"error[{code}]", done.stderr)
                self.assertEqual(done.returncode, exit)
                if "--json" not in args:
                    self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
