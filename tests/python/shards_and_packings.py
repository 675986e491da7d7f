"""Python says the same as the program of one rank's file, and of who packed a checkpoint; the values of the piece equal the rows of
the whole."""
from mckpt_tests.checks import need

need("torch", "numpy")
import json
import os
import re
import tarfile
import tempfile
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

    def test_offsets_are_where_the_values_are(self):
        """Every rank has pieces of tensors over random meshes, some of them in several boxes."""
        folder = os.path.join(DATA, "rank_files/placements")
        whole = {name: t.torch() for name, t in mckpt.open(folder).items()}
        gaps = 0
        for rank in range(8):
            file = os.path.join(folder, f"model_world_size_8_rank_{rank}.pt")
            with mckpt.open(file, local=True) as piece:
                self.assertEqual((piece.shard["rank"], piece.shard["ranks"]), (rank, 8))
                gaps += self.compare(piece, whole, lambda name: (name, ()))
        self.assertGreater(gaps, 3)

    def test_offsets_in_a_megatron_run(self):
        with tempfile.TemporaryDirectory() as work:
            with tarfile.open(os.path.join(DATA, "megatron_runs/dense.tar.xz")) as tar:
                tar.extractall(work, filter="data")
            dist = os.path.join(work, "dense/torch_dist/iter_0000003")
            whole = {name: t.torch() for name, t in mckpt.open(dist).items()}
            gaps = 0
            for rank in range(4):
                for file in (f"__{rank}_0.distcp", f"__{rank}_1.distcp"):
                    with mckpt.open(os.path.join(dist, file), local=True) as piece:
                        self.assertTrue(any("a part of what rank" in f.message for f in piece.findings), piece.findings)
                        gaps += self.compare(piece, whole, lambda name: (name, ()))
            self.assertGreater(gaps, 1)

            def of_dist(name):
                layer = re.search(r"layers\.(\d+)\.", name)
                return re.sub(r"layers\.\d+\.", "layers.", name.removeprefix("model.")), (int(layer[1]),) if layer else ()

            for tp in range(2):
                with mckpt.open(os.path.join(work, f"dense/iter_0000003/mp_rank_{tp:02}_000/model_optim_rng.pt"), local=True) as piece:
                    gated = {t["name"]: t for t in piece.shard["tensors"] if t["name"].endswith("mlp.linear_fc1.weight")}
                    for t in gated.values():
                        self.assertEqual((t["offsets"], t["shape"], t["placements"]), (None, [20, 8], "Shard(0) of each section"))
                    self.assertEqual(self.compare(piece, whole, of_dist), len(gated))

    def test_layers_and_experts_of_a_rank_are_one_tensor(self):
        """A rank has a grid of boxes: both layers of each of its experts."""
        with tempfile.TemporaryDirectory() as work:
            with tarfile.open(os.path.join(DATA, "megatron_runs/experts.tar.xz")) as tar:
                tar.extractall(work, filter="data")
            dist = os.path.join(work, "experts/torch_dist/iter_0000003")
            whole = {name: t.torch() for name, t in mckpt.open(dist).items()}
            name = "decoder.layers.mlp.experts.experts.linear_fc1.weight"
            for file, offsets in (("__0_1", [0, 0, 6, 0]), ("__1_0", [0, 2, 0, 0])):
                with mckpt.open(os.path.join(dist, file + ".distcp"), local=True) as piece:
                    t = next(t for t in piece.shard["tensors"] if t["name"] == name)
                    self.assertEqual((t["local_shape"], t["offsets"]), ([2, 2, 6, 8], offsets))
                    self.assertEqual(self.compare(piece, whole, lambda name: (name, ())), 0)

    def compare(self, piece, whole, named):
        """Returns how many pieces are not one box."""
        gaps = compared = 0
        for t in piece.shard["tensors"]:
            name, at = named(t["name"])
            if name not in whole:
                continue
            values, all_of_it = piece[t["name"]].torch(), whole[name][at]
            self.assertEqual(list(all_of_it.shape), t["shape"], t)
            if t["offsets"] is None:
                gaps += values.numel() > 0
                continue
            compared += 1
            box = tuple(slice(begin, begin + size) for begin, size in zip(t["offsets"], t["local_shape"]))
            same = torch.equal(values.view(torch.uint8), all_of_it[box].contiguous().view(torch.uint8)) if values.dim() else True
            self.assertTrue(same, t)
        self.assertGreater(compared, 5)
        return gaps

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
