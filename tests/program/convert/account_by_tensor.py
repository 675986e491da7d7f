#!/usr/bin/env python3
"""The account tensor by tensor in the file of --report: its sums are the account's totals and the sizes of both sides, and
some rows are spelled out. With -v the same on stderr, a line for each kind of tensor.
"""
import json
import math
import os
import re
import tempfile
import unittest

from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

models = Models()


def listed(path):
    """By name: shape and data type."""
    done = run_mckpt("ls", "--json", path)
    return {t["name"]: (t["shape"], t["dtype"]) for t in json.loads(done.stdout)["tensors"]}


class Account(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mckpt_account_")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def made(self, *args, status=0):
        """The report of a conversion, which has all that --json prints."""
        done = run_mckpt(*args, "--json", "--no-sync", "--report", self.path("report.json"))
        self.assertEqual(done.returncode, status, done)
        with open(self.path("report.json"), encoding="utf-8") as f:
            report = json.load(f)
        printed = json.loads(done.stdout)
        self.assertEqual({k: report[k] for k in printed}, printed)
        self.assertEqual(set(report) - set(printed), {"tensors", "left_out"})
        return report

    def check_sums(self, report, source, target):
        """source, target: name -> items of what is on disk."""
        rows = {r["name"]: r for r in report["tensors"]}
        self.assertEqual(len(rows), len(report["tensors"]))
        self.assertEqual({n: r["items"] for n, r in rows.items()}, target)
        for row in rows.values():
            self.assertEqual(sum(f["items"] for f in row["from"]) + row["zeros"], row["items"], row)
            changed = sum(f["items"] for f in row["from"] if f["cast"] or f["added"])
            self.assertEqual(row["changed_items"], changed, row)
        left = {r["name"]: r for r in report["left_out"]}
        read = dict.fromkeys(source, 0)
        for row in rows.values():
            if row["made"] != "tied":
                for use in row["from"]:
                    read[use["name"]] += use["items"]
        for name, row in left.items():
            read[name] += row["items"]
        self.assertEqual(read, source)
        self.check_totals(report, rows.values(), left)

    def check_totals(self, report, rows, left):
        self.assertEqual(report["tensors_out"], len(rows))
        for made in ("copied", "fused", "split"):
            self.assertEqual(report[made], sum(r["made"] == made for r in rows), made)
        copies = sum(r["copy_of"] is not None for r in left.values())
        self.assertEqual(report["tied"], sum(r["made"] == "tied" for r in rows) + copies)
        self.assertEqual(report["padded"], sum(r["zeros"] > 0 for r in rows))
        self.assertEqual(report["changed"], sum(r["changed_items"] > 0 for r in rows))
        uses = {}
        for row in rows:
            for use in row["from"]:
                if row["made"] != "tied":
                    uses.setdefault(use["name"], set()).add(row["name"])
        for row in rows:  # what the words mean
            if row["made"] == "fused":
                self.assertGreater(len(row["from"]), 1, row)
            elif row["made"] in ("copied", "split"):
                self.assertEqual(len(row["from"]), 1 if row["items"] else len(row["from"]), row)
                shared = any(len(uses[u["name"]]) > 1 for u in row["from"])
                self.assertEqual(shared, row["made"] == "split", row)

    def items(self, path):
        return {n: math.prod(shape) for n, (shape, _) in listed(path).items()}

    def row(self, report, name):
        return next(r for r in report["tensors"] if r["name"] == name)

    def test_models_there_and_back(self):
        # Shards of deepseek_v3 would cut rows on two ranks.
        for name, grid, other in (("qwen3_5", ["--tp", 2], 2), ("qwen3_moe", ["--tp", 2, "--ep", 2, "--dp", 4], 3),
                                  ("deepseek_v3_mtp", ["--tp", 2, "--ep", 2], 1), ("nemotron_h", ["--tp", 2, "--dp", 2], 3),
                                  ("qwen3_vl", ["--dp", 2], 3)):
            with self.subTest(name):
                model, ckpt = models.path(name), self.path(name)
                grid = [*grid, "--vocab-size", "auto"]
                report = self.made("convert", "hf-to-fsdp", model, ckpt, *grid)
                stored = self.items(ckpt)
                self.check_sums(report, self.items(model), stored)
                back = self.made("export", ckpt, ckpt + "_hf")
                # Keys of an export are named without the wrappers' prefixes.
                self.check_sums(back, {k.removeprefix("model.module."): v for k, v in stored.items()},
                                self.items(model))
                again = self.made("convert", "reshard", ckpt, ckpt + "_2", "--dp", other)
                self.check_sums(again, stored, self.items(ckpt + "_2"))

    def test_rows_of_a_fused_parameter(self):
        report = self.made("convert", "hf-to-fsdp", TINY_MODEL, self.path("ckpt"), "--tp", 2, "--dp", 2, "--ep", 2)
        layer = "model.layers.1.self_attn."
        # 4 heads of 8 and 2 groups of 8, over 16: the queries come first.
        self.assertEqual(self.row(report, "model.module.decoder.layers.1.self_attention.linear_qkv.weight"), {
            "name": "model.module.decoder.layers.1.self_attention.linear_qkv.weight", "made": "fused", "rule": "qkv",
            "items": 1024, "zeros": 0, "changed_items": 0,
            "from": [{"name": layer + "q_proj.weight", "items": 512, "cast": None, "added": 0},
                     {"name": layer + "k_proj.weight", "items": 256, "cast": None, "added": 0},
                     {"name": layer + "v_proj.weight", "items": 256, "cast": None, "added": 0}]})
        half = self.row(report, "model.module.decoder.layers.0.mlp.experts.linear_fc1.weight3_v")
        self.assertEqual((half["made"], half["rule"], [f["name"] for f in half["from"]]),
                         ("copied", "gated_mlp", ["model.layers.0.mlp.experts.3.up_proj.weight"]))
        back = self.made("export", self.path("ckpt"), self.path("hf"))
        self.assertEqual(self.row(back, layer + "k_proj.weight"), {
            "name": layer + "k_proj.weight", "made": "split", "rule": "qkv", "items": 256, "zeros": 0, "changed_items": 0,
            "from": [{"name": "decoder.layers.1.self_attention.linear_qkv.weight", "items": 256, "cast": None, "added": 0}]})
        self.assertEqual(back["left_out"], [])

    def test_rows_of_padding(self):
        report = self.made("convert", "hf-to-fsdp", TINY_MODEL, self.path("ckpt"), "--tp", 4, "--vocab-size", 40)
        row = self.row(report, "model.module.embedding.word_embeddings.weight")
        self.assertEqual((row["rule"], row["items"], row["zeros"], [f["items"] for f in row["from"]]),
                         ("vocab", 40 * 16, 8 * 16, [32 * 16]))
        back = self.made("export", self.path("ckpt"), self.path("hf"))
        self.assertEqual(back["left_out"], [
            {"name": name, "items": 8 * 16, "reason": "padding, which the result does not have", "copy_of": None}
            for name in ("embedding.word_embeddings.weight", "output_layer.weight")])

    def test_rows_of_casts(self):
        report = self.made("convert", "hf-to-fsdp", TINY_MODEL, self.path("ckpt"), "--dtype", "fp32",
                           "--dtype-rule", "*router.weight=bf16", "--params-dtype", "fp16")
        row = self.row(report, "model.module.decoder.final_layernorm.weight")
        self.assertEqual((row["changed_items"], row["from"][0]["cast"]),
                         (16, "bfloat16 through float16 to float32"))
        router = self.row(report, "model.module.decoder.layers.0.mlp.router.weight")
        self.assertEqual(router["from"][0]["cast"], "bfloat16 through float16 to bfloat16")

    def test_rows_of_norms_less_one(self):
        report = self.made("convert", "hf-to-fsdp", models.path("qwen3_5"), self.path("ckpt"), "--vocab-size", "auto")
        added = {r["name"]: r["from"][0]["added"] for r in report["tensors"] if any(f["added"] for f in r["from"])}
        self.assertTrue(added and set(added.values()) == {-1}, added)
        self.assertTrue(all(name.endswith("norm.weight") for name in added), added)
        for name in added:
            row = self.row(report, name)
            self.assertEqual((row["changed_items"], row["from"][0]["cast"]), (row["items"], None))
        back = self.made("export", self.path("ckpt"), self.path("hf"))
        norm = self.row(back, "model.language_model.layers.0.linear_attn.norm.weight")
        self.assertEqual([f["added"] for f in norm["from"]], [1])

    def test_rows_of_copies(self):
        """The head of an MTP layer repeats the output layer: it is left out, and written again by the export."""
        report = self.made("convert", "hf-to-fsdp", models.path("deepseek_v3_mtp"), self.path("ckpt"), "--dp", 1)
        copies = {r["name"]: r["copy_of"] for r in report["left_out"]}
        self.assertEqual(copies, {"model.layers.2.shared_head.head.weight": "lm_head.weight",
                                  "model.layers.2.embed_tokens.weight": "model.embed_tokens.weight"})
        back = self.made("export", self.path("ckpt"), self.path("hf"))
        head = self.row(back, "model.layers.2.shared_head.head.weight")
        self.assertEqual((head["made"], [f["name"] for f in head["from"]]), ("tied", ["output_layer.weight"]))

    def test_rows_of_files(self):
        report = self.made("convert", "safetensors-to-pt", TINY_MODEL, self.path("x.pt"), "--exclude", "*.layers.*")
        names = {n: s for n, s in self.items(TINY_MODEL).items()}
        self.check_sums(report, names, {n: s for n, s in names.items() if ".layers." not in n})
        self.assertEqual({r["reason"] for r in report["left_out"]}, {"left out by the options"})
        self.assertEqual({r["rule"] for r in report["tensors"]}, {None})

    def test_states_of_an_optimizer(self):
        source = os.path.join(DATA, "dcp", "fsdp_dtensor_optim")
        flags = ["--assets", models.path("tiny_llama1"), "--dp", 2]
        report = self.made("convert", "reshard", source, self.path("all"), *flags)
        self.check_sums(report, self.items(source), self.items(self.path("all")))
        weights = self.made("convert", "reshard", source, self.path("weights"), *flags, "--weights-only")
        self.assertTrue(weights["left_out"])
        self.assertTrue(all(r["name"].startswith("optimizer.") for r in weights["left_out"]))

    def test_the_report_does_not_depend_on_threads_and_dry_runs(self):
        flags = ["convert", "hf-to-fsdp", models.path("qwen3_moe"), self.path("ckpt"), "--tp", 2, "--dp", 2,
                 "--vocab-size", "auto"]
        rows = [self.made(*flags, "--dry-run", "--threads", n)["tensors"] for n in (1, 4)]
        rows.append(self.made(*flags)["tensors"])
        self.assertEqual(rows[0], rows[1])
        self.assertEqual(rows[0], rows[2])

    def test_verbose_text(self):
        flags = ["convert", "hf-to-fsdp", TINY_MODEL, self.path("ckpt"), "--no-sync", "--tp", 2, "--vocab-size", 40, "-n"]
        plain, verbose = run_mckpt(*flags), run_mckpt(*flags, "-v")
        self.assertEqual(plain.stdout, verbose.stdout)
        more = [line for line in verbose.stderr.splitlines() if line not in plain.stderr.splitlines()]
        self.assertEqual(len(more), 13)
        self.assertIn("copied    model.module.decoder.layers.{0-1}.mlp.experts.linear_fc2.weight{0-3}  (8)  row of "
                      "model.layers.{0-1}.mlp.experts.{0-3}.down_proj.weight", more)
        self.assertIn("copied    model.module.output_layer.weight  vocab of lm_head.weight; padded with 128 zeros", more)
        folded = sum(int(m[1]) if (m := re.search(r"\((\d+)\)", line)) else 1 for line in more)
        self.assertEqual(folded, 41)


if __name__ == "__main__":
    unittest.main(verbosity=2)
