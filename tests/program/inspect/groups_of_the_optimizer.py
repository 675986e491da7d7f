#!/usr/bin/env python3
"""inspect --groups: the groups of real optimizers, folded; the settings of every parameter come from its own
objects; a parameter without a group is named.
"""
import json
import lzma
import os
import shutil
import tarfile
import tempfile
import unittest
import zlib

from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

META = "optimizer.param_to_group_meta.module.module.module."


def inspect(path, *args):
    done = run_mckpt("inspect", path, *args)
    assert done.returncode == 0, done
    return done.stdout


def groups(path):
    return json.loads(inspect(path, "--groups", "--json"))["optimizer_groups"]


def by_parameter(found):
    """The settings of every parameter, from the folded groups."""
    return {p: {**found["common"], **g["fields"]} for g in found["groups"] for p in g["parameters"]}


class Groups(unittest.TestCase):
    maxDiff = None

    def unpacked(self, name):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with lzma.open(os.path.join(DATA, "dcp", "packed", name + ".tar.xz")) as f, tarfile.open(fileobj=f) as tar:
            tar.extractall(folder.name, filter="data")
        return os.path.join(folder.name, name)

    def check_against_objects(self, path):
        """Unfolded, the answer is the list of objects."""
        objects = {o["name"]: o["value"] for o in json.loads(inspect(path, "--args", "--json"))["objects"]}
        naive = {}
        for name, value in objects.items():
            if name.startswith(META):
                parameter, field = name[len(META):].rsplit(".", 1)
                naive.setdefault(parameter, {})[field] = value
        self.assertTrue(naive)
        found = groups(path)
        self.assertEqual(by_parameter(found), naive)
        self.assertEqual(found["parameters"], len(naive))
        fields = [tuple(sorted(g["fields"].items())) for g in found["groups"]]
        self.assertEqual(len(set(fields)), len(fields))
        self.assertEqual(found["unreadable"], [])
        return found

    def test_a_run_of_megatron(self):
        found = self.check_against_objects(os.path.join(DATA, "dcp", "fsdp_dtensor_optim"))
        self.assertEqual([g["fields"] for g in found["groups"]],
                         [{"wd_mult": "1.0", "weight_decay": "0.1"}, {"wd_mult": "0.0", "weight_decay": "0.0"}])
        self.assertEqual(found["groups"][1]["parameters"],
                         ["decoder.final_layernorm.weight", "decoder.layers.0.mlp.linear_fc1.layer_norm_weight",
                          "decoder.layers.0.self_attention.linear_qkv.layer_norm_weight"])
        self.assertEqual((found["without_group"], found["unknown"], found["notes"]), ([], [], []))

    def test_frozen_parameters_have_no_group(self):
        path = self.unpacked("tiny_dense1.world3.frozen")
        found = self.check_against_objects(path)
        self.assertEqual(found["without_group"],
                         ["decoder.final_layernorm.weight", "decoder.layers.0.self_attention.linear_qkv.layer_norm_weight",
                          "decoder.layers.0.self_attention.linear_qkv.weight", "embedding.word_embeddings.weight"])
        self.assertEqual(found["notes"],
                         ["4 tensors of the model in no group: frozen, buffers, or other names of a tied weight"])

    def test_parameters_in_pieces_have_one_entry(self):
        found = self.check_against_objects(os.path.join(DATA, "dcp", "uneven_4"))
        self.assertEqual(found["without_group"], [])  # the model has linear_fc1.weight_w and _v
        experts = next(g for g in found["groups"] if "experts" in g["parameters"][0])
        self.assertEqual(experts["fields"]["is_expert_parallel"], "True")

    def test_state_dicts_of_torch(self):
        found = groups(os.path.join(DATA, "dcp", "megatron_fsdp_v2"))
        self.assertEqual(found["section"], "optimizer.param_groups")
        self.assertEqual([(g["fields"], len(g["parameters"])) for g in found["groups"]],
                         [({"weight_decay": "0.1"}, 7), ({"weight_decay": "0.0"}, 6)])
        self.assertEqual(found["common"]["lr"], "0.001")
        self.assertNotIn("params", found["common"])
        self.assertEqual(found["without_group"], ["frozen.bias", "frozen.weight", "head.weight", "steps"])

    def test_text_folds_names(self):
        lines = inspect(os.path.join(DATA, "dcp", "uneven_4"), "--groups").splitlines()
        self.assertIn("optimizer.param_to_group_meta: 13 parameters in 3 groups", lines)
        self.assertIn("group 2   4 parameters  is_expert_parallel True  wd_mult 1.0  weight_decay 0.1", lines)
        at = lines.index("group 2   4 parameters  is_expert_parallel True  wd_mult 1.0  weight_decay 0.1")
        self.assertEqual(lines[at + 1:], ["          decoder.layers.1.mlp.experts.linear_fc1.weight{0-1}  (2)",
                                          "          decoder.layers.1.mlp.experts.linear_fc2.weight{0-1}  (2)"])

    def test_nothing_to_show(self):
        self.assertIn("no parameter groups of an optimizer", inspect(TINY_MODEL, "--groups"))
        self.assertIsNone(groups(TINY_MODEL))

    def changed(self, folder, *replacements):
        """A checkpoint of experts whose data files have other bytes."""
        path = os.path.join(folder, "ckpt")
        shutil.copytree(os.path.join(DATA, "dcp", "uneven_4"), path)
        for name in os.listdir(path + "/iter_0000010"):
            if name.endswith(".distcp"):
                with open(os.path.join(path, "iter_0000010", name), "r+b") as f:
                    data = f.read()
                    for old, new in replacements:
                        data = data.replace(old, new)
                    f.seek(0)
                    f.write(data)
        return path

    def test_experts_that_are_not_marked_are_explained(self):
        """megatron-core 0.19.2 writes False for experts too. Here every True becomes False, with the checksum of its record."""
        true, false = b"\x80\x02\x88.", b"\x80\x02\x89."
        sums = [zlib.crc32(pickle).to_bytes(4, "little") for pickle in (true, false)]
        with tempfile.TemporaryDirectory() as folder:
            found = groups(self.changed(folder, (true, false), sums))
            self.assertEqual(found["common"]["is_expert_parallel"], "False")
            self.assertEqual(found["notes"], ["is_expert_parallel is False for 4 expert parameters: Megatron-FSDP writes it "
                                              "so, the names tell experts"])

    def test_settings_that_cannot_be_read_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = self.changed(folder, (b"\x80\x02\x88.", b"\x80\x02\x89."))  # with the old checksums
            found = groups(path)
            self.assertEqual(len(found["unreadable"]), 17)
            self.assertTrue(all("MC1203" in line for line in found["unreadable"]))
            text = inspect(path, "--groups")
            self.assertIn("is_expert_parallel (not readable)", text)
            self.assertIn("note      12 more objects that cannot be read", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
