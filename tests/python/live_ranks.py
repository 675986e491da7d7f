"""mckpt.diff() with a dump of a live rank: its settings, rows and refusals; and dump_rank() of modules and states. usage: live_ranks.py, with
any Python from 3.10 on; dump_rank() needs torch"""
import importlib.util
import json
import os
import tempfile
import unittest

from mckpt_tests.package import run
from mckpt_tests.setting import DATA, TINY_MODEL

import mckpt

REAL = os.path.join(DATA, "live_ranks", "tiny_qwen3_moe.tp2_rank1.json")


class LiveRanks(unittest.TestCase):
    def test_a_real_rank_equals_its_model(self):
        d = mckpt.diff(REAL, TINY_MODEL, live="megatron", tp=2, progress=False)
        self.assertTrue(d.equal)
        self.assertEqual((d.tensors, len(d)), (33, 0))

    def test_rows_say_where_the_values_are(self):
        d = mckpt.diff(TINY_MODEL, REAL, live="megatron", tp=2, rank=0, names="*linear_qkv*", progress=False)
        self.assertEqual([(r.kind, r.at, r.hint) for r in d], [("values", "sha256", "the values of tensor-parallel rank 1")] * 2)
        self.assertIn("linear_qkv", str(d))

    def test_settings_without_a_meaning_are_refused(self):
        for settings, says in [({"tp": 2}, "`live`"), ({"live": "fdsp"}, "megatron or fsdp"), ({"live": "megatron", "tp": 2, "within": ["rtol:1"]}, "tolerance"), ({}, "`live`")]:
            with self.subTest(settings), self.assertRaises(mckpt.Error) as caught:
                mckpt.diff(REAL, TINY_MODEL, progress=False, **settings)
            self.assertEqual(caught.exception.code, "MC0001")
            self.assertIn(says, f"{caught.exception} {caught.exception.help}")

    @unittest.skipUnless(importlib.util.find_spec("torch"), "there is no torch")
    def test_a_dump_has_what_a_module_keeps(self):
        import torch

        from mckpt.rank_dump import dump_rank

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rank.json")
            module = torch.nn.Linear(3, 2).to(torch.bfloat16)
            module.weight.partition_dim = 0
            module.register_buffer("kept", torch.arange(3))
            module.register_buffer("left", torch.arange(3), persistent=False)
            dump_rank(module, path)
            with open(path) as f:
                dump = json.load(f)
            self.assertEqual([(t["name"], t["dtype"], t["shape"], t["attributes"]) for t in dump["tensors"]],
                             [("weight", "bfloat16", [2, 3], {"partition_dim": 0}), ("bias", "bfloat16", [2], {}), ("kept", "int64", [3], {})])
            self.assertEqual((dump["rank"], dump["world"]), (0, 1))
            dump_rank({"w": module.weight, "step": 3, "m._extra_state": module.bias}, path)
            with open(path) as f:
                self.assertEqual([t["name"] for t in json.load(f)["tensors"]], ["w"])


run()
