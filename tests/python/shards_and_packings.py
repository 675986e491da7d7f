"""Python says the same as the program of one rank's file, and of who packed a checkpoint; the values of the piece equal the rows of
the whole."""
from mckpt_tests.checks import need

need("torch", "numpy")
import json
import os
import unittest

import torch

from mckpt_tests.package import run  # noqa: I001
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

import mckpt

RANKS = os.path.join(DATA, "rank_files/verl2_w3")


class ShardsAndPackings(unittest.TestCase):
    def test_a_shard_is_that_of_the_program(self):
        for rank in range(3):
            file = os.path.join(RANKS, f"model_world_size_3_rank_{rank}.pt")
            shard = mckpt.open(file).shard
            self.assertEqual(shard, json.loads(run_mckpt("inspect", file, "--json").stdout)["shard"])
            self.assertEqual((shard["rank"], shard["ranks"]), (rank, 3))

    def test_values_of_the_piece(self):
        whole = {name: t.torch() for name, t in mckpt.open(RANKS).items()}
        file = os.path.join(RANKS, "model_world_size_3_rank_1.pt")
        with mckpt.open(file, local=True) as piece:
            for t in piece.shard["tensors"]:
                values = piece[t["name"]].torch()
                self.assertEqual(list(values.shape), t["local_shape"])
                if t["offsets"] is None:
                    continue
                box = tuple(slice(begin, begin + size) for begin, size in zip(t["offsets"], t["local_shape"]))
                self.assertTrue(torch.equal(values, whole[t["name"]][box]), t["name"])

    def test_a_whole_checkpoint_is_no_shard(self):
        self.assertIsNone(mckpt.open(RANKS).shard)
        self.assertIsNone(mckpt.open(RANKS).packing)

    def test_packings(self):
        for name, engine in (("hfsdp", "v1"), ("fsdp_dtensor_optim", "v1"), ("megatron_fsdp_v2", "v2")):
            packing = mckpt.open(os.path.join(DATA, "dcp", name)).packing
            self.assertEqual(packing, json.loads(run_mckpt("inspect", os.path.join(DATA, "dcp", name), "--json").stdout)["packing"])
            self.assertEqual((packing["engine"], packing["fits"]), (engine, True))
        self.assertIsNone(mckpt.open(os.path.join(DATA, "dcp", "fsdp2")).packing)


run()
