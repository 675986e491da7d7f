#!/usr/bin/env python3
"""mckpt layout MODEL: the buckets of real Megatron-FSDP runs, every rank's items counted independently, the text that
folds layers, and the reasons why parameters share a bucket.
"""
import json
import os
import tempfile
import unittest

from mckpt_tests.models import make_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL


def golden_cases():
    """For each run: its name, model, (tp, cp, ep, dp), and the buckets as [items, shard, chunk, {name:
    (offset, items)}]."""
    with open(os.path.join(DATA, "golden", "buckets.txt")) as f:
        for line in f:
            word, *rest = line.split()
            if word == "case":
                if "case" in locals():
                    yield case
                case = (rest[0], rest[1], list(map(int, rest[2:])), [])
            elif word == "group":
                case[3].append([*map(int, rest), {}])
            else:
                case[3][-1][3][word] = tuple(map(int, rest))
    yield case


def model(name):
    return os.path.join(DATA, "golden", "models", name)


def layout(*args, status=0):
    done = run_mckpt("layout", *args)
    assert done.returncode == status, (args, done)
    return done.stdout


def answer(*args, status=0):
    got = json.loads(layout(*args, "--json", status=status))
    assert got["schema"] == "mckpt.layout/1" and got["ok"] == got["row_aligned"] == (status == 0), args
    return got


def groups_of(got):
    """The same form as golden_cases()."""
    out = [[g["bucket_items"], g["shard_items"], g["csf"], {}] for g in got["groups"]]
    for p in got["parameters"]:
        if p["group"] is not None:
            out[p["group"]][3][p["name"]] = (p["offset"], p["items"])
    return out


class Golden(unittest.TestCase):
    maxDiff = None

    def test_buckets_of_real_runs(self):
        count = 0
        for tag, name, (tp, cp, ep, dp), buckets in golden_cases():
            got = answer(model(name), "--tp", tp, "--cp", cp, "--ep", ep, "--dp", dp, "--vocab-size", "auto")
            self.assertEqual(groups_of(got), buckets, tag)
            count += 1
        self.assertEqual(count, 11)


def naive_bytes(got, world, tp, etp, ep, item_bytes=2):
    """By rank of the world, the bytes of parameters that it stores; ranks of the expert mesh count etp, ep first."""
    out = []
    for rank in range(world):
        total = 0
        for p in got["parameters"]:
            if p["group"] is None:
                continue
            g = got["groups"][p["group"]]
            shard = rank // (etp * ep) if g["kind"] == "experts" else rank // tp
            low, high = shard * g["shard_items"], (shard + 1) * g["shard_items"]
            total += max(0, min(high, p["offset"] + p["items"]) - max(low, p["offset"])) * item_bytes
        out.append(total)
    return out


class Facts(unittest.TestCase):

    def test_what_every_rank_has(self):
        got = answer(model("qwen3_moe"), "--tp", 2, "--ep", 2, "--dp", 4, "--vocab-size", "auto")
        totals, groups = got["totals"], got["groups"]
        bytes_of = naive_bytes(got, 8, 2, 1, 2)
        self.assertEqual((totals["least_bytes"], totals["most_bytes"]), (min(bytes_of), max(bytes_of)))
        self.assertLess(min(bytes_of), max(bytes_of))
        self.assertEqual((totals["least_rank"], totals["most_rank"]),
                         (bytes_of.index(min(bytes_of)), bytes_of.index(max(bytes_of))))
        self.assertEqual(totals["shard_bytes"], sum(g["shard_items"] for g in groups) * 2)
        for field in ("items", "holes", "padding", "bucket_items", "parameters"):
            self.assertEqual(totals[field], sum(g[field] for g in groups), field)
        for g in groups:
            self.assertEqual(g["items"] + g["holes"] + g["padding"], g["bucket_items"])
            self.assertEqual(g["ranks"], 4)  # 8 ranks: 8 / (1 x 2) of experts, 4 x 1 of the others
        for p in got["parameters"]:
            size = groups[p["group"]]["shard_items"]
            item_ranges = [[s, max(0, s * size - p["offset"]), min(p["items"], (s + 1) * size - p["offset"])]
                           for s in range(4) if s * size < p["offset"] + p["items"] and (s + 1) * size > p["offset"]]
            self.assertEqual(p["shards"], item_ranges, p["name"])

    def test_order_is_the_order_of_packing(self):
        got = answer(model("nemotron_h"), "--dp", 2)
        for g in got["groups"]:
            members = sorted((p for p in got["parameters"] if p["group"] == g["group"]), key=lambda p: p["position"])
            self.assertEqual([p["position"] for p in members], list(range(g["parameters"])))
            # The first one is the first registered among those with the longest rows.
            self.assertEqual(members[0], min(members, key=lambda p: (-p["row_items"], p["registered"])))
            self.assertEqual(members[0]["offset"], 0)

    def test_other_cells_are_packed_alike(self):
        flags = [model("qwen3_moe"), "--tp", 2, "--ep", 2, "--dp", 2, "--vocab-size", "auto"]
        first = answer(*flags)
        for rank in range(1, 4):
            other = answer(*flags, "--rank", rank)
            same = lambda got: [(p["group"], p["offset"], p["shape"], p["position"]) for p in got["parameters"]]
            self.assertEqual(same(first), same(other))
            if rank in (1, 3):  # another expert-parallel cell: experts of other numbers
                self.assertNotEqual([p["name"] for p in first["parameters"]], [p["name"] for p in other["parameters"]])

    def test_v2_packs_each_group_as_its_shapes(self):
        """The packing of shapes equals the original code's (judges/golden/layout.py)."""
        got = answer(model("deepseek_v3"), "--dp", 4, "--ep", 2, "--engine", "v2")
        self.assertGreater(len(got["groups"]), 4)
        for g in got["groups"]:
            members = [p for p in got["parameters"] if p["group"] == g["group"]]
            shapes = ["x".join(map(str, p["shape"])) for p in members]
            alone = answer(*shapes, "--world", g["ranks"], "--engine", "v2")
            self.assertEqual([p["offset"] for p in members], alone["offsets"])
            self.assertEqual((g["bucket_items"], g["shard_items"], g["csf"], g["holes"], g["padding"]),
                             (alone["size"], alone["shard"], alone["csf"], alone["holes"], alone["padding"]))
        self.assertEqual(got["bucket_size"], 0)

    def test_main_weights_count_as_they_are_stored(self):
        plain, main = answer(TINY_MODEL, "--dp", 2), answer(TINY_MODEL, "--dp", 2, "--dtype", "fp32")
        self.assertEqual(main["totals"]["bytes"], 2 * plain["totals"]["bytes"])
        frozen = answer(TINY_MODEL, "--dp", 2, "--dtype", "fp32", "--freeze", "*")
        self.assertEqual(frozen["totals"]["bytes"], plain["totals"]["bytes"])


    def test_v2_stores_every_parameter_as_float32(self):
        got = answer(model("qwen3_moe"), "--dp", 2, "--engine", "v2", "--freeze", "*.router.weight")
        self.assertEqual({g["stored_dtype"] for g in got["groups"]}, {"float32"})
        self.assertEqual(got["totals"]["bytes"], 4 * got["totals"]["items"])
        held = run_mckpt("ls", model("qwen3_moe"), "--as", "fsdp", "--dp", 2, "--engine", "v2", "--json")
        listed = {t["name"].removeprefix("model."): (t["dtype"], t["shape"]) for t in json.loads(held.stdout)["tensors"]}
        self.assertEqual(listed, {p["name"]: ("float32", p["shape"]) for p in got["parameters"]})
        same = answer(model("qwen3_moe"), "--dp", 2, "--engine", "v2", "--freeze", "*.router.weight", "--dtype", "fp32")
        self.assertEqual(same, got)


class Reasons(unittest.TestCase):
    """Which group a parameter is in, and why."""

    def of(self, name, *flags):
        got = answer(TINY_MODEL, "--dp", 2, *flags)
        group = next(p["group"] for p in got["parameters"] if p["name"] == name)
        return got["groups"][group], got

    def test_units_and_experts(self):
        router, got = self.of("decoder.layers.0.mlp.router.weight")
        self.assertEqual((router["unit"], router["kind"], router["like"]), ("decoder.layers.0", "dense", None))
        self.assertIn("of one FSDP unit, decoder.layers.0, a TransformerLayer", router["reasons"])
        expert, _ = self.of("decoder.layers.1.mlp.experts.linear_fc1.weight3")
        self.assertEqual((expert["unit"], expert["kind"]), ("decoder.layers.1", "experts"))
        self.assertIn("experts: their names have .experts.", expert["reasons"])
        self.assertEqual(got["groups"][expert["like"]]["unit"], "decoder.layers.0")
        norm, _ = self.of("decoder.final_layernorm.weight")
        self.assertEqual(norm["unit"], None)
        self.assertIn("outside FSDP units: in no layer", norm["reasons"])

    def test_frozen_parameters_are_apart(self):
        got = self.of("decoder.layers.0.mlp.router.weight", "--freeze", "*.router.weight")[1]
        frozen = [g for g in got["groups"] if not g["trainable"]]
        self.assertEqual([(g["parameters"], g["unit"]) for g in frozen],
                         [(1, "decoder.layers.0"), (1, "decoder.layers.1")])
        self.assertIn("frozen", frozen[0]["reasons"])

    def test_buckets_are_cut_by_size(self):
        # The embedding reaches the size and ends its bucket.
        got = self.of("output_layer.weight", "--bucket-size", 500)[1]
        outside = [g for g in got["groups"] if g["unit"] is None]
        self.assertEqual([g["parameters"] for g in outside], [1, 2])
        self.assertIn("bucket 2 of 2, each cut after the parameter that reaches 500 items", outside[1]["reasons"])

    def test_strategies_without_units(self):
        group, got = self.of("decoder.layers.0.mlp.router.weight", "--strategy", "optim")
        self.assertEqual(len(got["groups"]), 2)
        self.assertIn("outside FSDP units: optim has none here", group["reasons"])
        later = self.of("decoder.layers.0.mlp.router.weight", "--strategy", "optim", "--fsdp-units-for", "sharded")[0]
        self.assertEqual(later["unit"], "decoder.layers.0")
        none = self.of("decoder.layers.0.mlp.router.weight", "--fsdp-unit", "none")[0]
        self.assertIn("outside FSDP units: layers of their class are none here", none["reasons"])


def hybrid(folder, kinds):
    """The config of nemotron_h with other layers: `M` Mamba, `*` attention, `-` feed-forward."""
    with open(os.path.join(model("nemotron_h"), "config.json")) as f:
        config = json.load(f)
    config["layers_block_type"] = [{"M": "mamba", "*": "attention", "-": "mlp"}[kind] for kind in kinds]
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    return folder


class Units(unittest.TestCase):
    """The modules that are units of a hybrid model, M-M*-: written down by hand from its pattern."""

    def check(self, flags, units, outside):
        """`units`: of each its class, and the modules and parameters in it; `outside`: what starts those in no unit."""
        got = answer(model("nemotron_h"), "--dp", 2, *flags)
        self.assertEqual([g["unit"] for g in got["groups"]], [None, *units])
        for g in got["groups"]:
            names = [p["name"] for p in got["parameters"] if p["group"] == g["group"]]
            kind, inside = units.get(g["unit"], (None, outside))
            for front in inside:
                self.assertTrue(any(name.startswith(front + ".") for name in names), (g["unit"], front))
            for name in names:
                self.assertTrue(any(name.startswith(front + ".") for front in inside), (g["unit"], name))
            if kind:
                self.assertIn(f"of one FSDP unit, {g['unit']}, a {kind}", g["reasons"])

    def test_a_whole_stack(self):
        inside = [f"decoder.layers.{i}" for i in range(5)] + ["decoder.final_norm"]
        self.check(["--fsdp-unit", "HybridStack"], {"decoder": ("HybridStack", inside)}, ["embedding", "output_layer"])

    def test_groups_are_stacks(self):
        units = {f"decoder.layers.{i}": ("HybridStack", [f"decoder.layers.{i}.layers.{j}" for j in (0, 1)]) for i in (0, 2)}
        self.check(["--fsdp-unit", "HybridStack", "--hybrid-pattern", "[M-]M[*-]"], units,
                   ["embedding", "output_layer", "decoder.layers.1", "decoder.final_norm"])

    def test_members_of_groups(self):
        classes = {"0.layers.0": "MambaLayer", "0.layers.1": "TransformerLayer", "1": "MambaLayer",
                   "2.layers.0": "TransformerLayer", "2.layers.1": "TransformerLayer"}
        units = {f"decoder.layers.{at}": (kind, [f"decoder.layers.{at}"]) for at, kind in classes.items()}
        self.check(["--hybrid-pattern", "[M-]M[*-]"], units, ["embedding", "output_layer", "decoder.final_norm"])

    def test_a_norm_that_is_alone_in_its_bucket(self):
        got = answer(model("nemotron_h"), "--dp", 2, "--fsdp-unit", "HybridStack", "--freeze", "decoder.final_norm.weight")
        frozen = next(g for g in got["groups"] if not g["trainable"])
        self.assertEqual((frozen["unit"], frozen["parameters"]), ("decoder", 1))
        self.assertIn("of one FSDP unit, decoder, a HybridStack", frozen["reasons"])

    def test_strategies_without_stacks(self):
        got = answer(model("nemotron_h"), "--dp", 2, "--fsdp-unit", "HybridStack", "--strategy", "optim")
        self.assertIn("outside FSDP units: optim has none here", got["groups"][0]["reasons"])

    def test_what_is_alike(self):
        with tempfile.TemporaryDirectory() as folder:
            lines = layout(hybrid(folder, "M-*M-M--"), "--dp", 2, "--hybrid-pattern", "[M-]*[M-]M[--]", "--fsdp-unit", "HybridStack")
            self.assertIn("       stack 2, group 2: as stack 0\n", lines)
            lines = layout(folder, "--dp", 2, "--hybrid-pattern", "[M-]*[M-]M[--]")
            self.assertIn("       layer 1 of decoder.layers.4, group 8: as layer 0\n", lines)
            self.assertEqual(lines.count(": as "), 1)


class Text(unittest.TestCase):

    def test_layers_are_folded(self):
        lines = layout(TINY_MODEL, "--ep", 2, "--dp", 4).splitlines()
        table = [line.split() for line in lines]
        self.assertIn("0 outside units dense bfloat16 3 1,040 1,088 4 272 16 0 48".split(), table)
        self.assertIn("1 decoder.layers.0 dense bfloat16 7 1,648 1,664 4 416 32 0 16".split(), table)
        self.assertIn("2 decoder.layers.0 experts bfloat16 4 768 768 2 384 16 0 0".split(), table)
        self.assertIn("       layer 1, groups 3-4: as layer 0", lines)

    def test_kinds_of_layers_that_alternate(self):
        lines = layout(model("nemotron_h"), "--dp", 2)
        self.assertIn("layer 2, group 3: as layer 0", lines)

    def test_a_group_in_detail(self):
        text = layout(TINY_MODEL, "--ep", 2, "--dp", 4, "--group", 1, "--ascii")
        row = next(line for line in text.splitlines() if "linear_qkv.weight" in line)
        self.assertEqual(row.split(maxsplit=6)[1:6],
                         ["decoder.layers.0.self_attention.linear_qkv.weight", "[64,", "16]", "512", "64"])
        self.assertIn("r1 [0, 320)  r2 [320, 736)  r3 [736, 1024)", row)
        self.assertIn("|", text.splitlines()[-2])

    def test_globs_show_parameters(self):
        text = layout(TINY_MODEL, "--dp", 2, "*.router.weight", "*final*")
        self.assertEqual(text.count("router.weight"), 1)
        self.assertIn("group 3: as group 1", text)
        self.assertIn("decoder.final_layernorm.weight", text)
        self.assertIn("no tensor matches", run_mckpt("layout", TINY_MODEL, "*.ruoter.weight").stderr)

    def test_rows_that_are_cut(self):
        text = layout(model("deepseek_v3"), "--dp", 2, status=1)
        self.assertIn("cuts a row", text)
        self.assertIn("MC0204: group 1: the boundary of shards 0 and 1 is inside row 129 of "
                      "decoder.layers.0.self_attention.linear_q_up_proj.weight: item 5184 is not a multiple of 40", text)
        got = answer(model("deepseek_v3"), "--dp", 2, status=1)
        self.assertEqual({f["code"] for f in got["findings"]}, {"MC0204"})
        self.assertEqual(got["findings"][0]["tensor"], "decoder.layers.0.self_attention.linear_q_up_proj.weight")

    def test_a_checkpoint_is_laid_out_like_its_model(self):
        with tempfile.TemporaryDirectory() as folder:
            made = run_mckpt("convert", "hf-to-fsdp", TINY_MODEL, folder + "/ckpt", "--tp", 2, "--dp", 3, "--no-sync")
            self.assertEqual(made.returncode, 0, made)
            self.assertEqual(layout(folder + "/ckpt", "--tp", 1, "--dp", 4), layout(TINY_MODEL, "--dp", 4))

    def test_a_checkpoint_keeps_its_padded_vocabulary(self):
        with tempfile.TemporaryDirectory() as folder:
            odd = make_model(folder + "/odd", layers=1, hidden=48, heads=4, kv=4, head_dim=8, ffn=96, vocab=37)
            made = run_mckpt("convert", "hf-to-fsdp", odd, folder + "/ckpt", "--vocab-size", 42, "--no-sync")
            self.assertEqual(made.returncode, 0, made)
            rows = lambda *flags: next(p["shape"][0] for p in answer(folder + "/ckpt", "--dp", 1, *flags)["parameters"]
                                       if p["name"] == "embedding.word_embeddings.weight")
            self.assertEqual(rows("--tp", 2, "--vocab-size", "keep"), 21)  # 37 of the config would not divide
            self.assertEqual(rows("--tp", 2), 21)
            self.assertEqual(rows("--tp", 2, "--vocab-size", 38), 19)
            for args in (["layout", folder + "/ckpt"], ["convert", "reshard", folder + "/ckpt", folder + "/out", "--dry-run"]):
                done = run_mckpt(*args, "--tp", 4, "--vocab-size", "keep")
                self.assertEqual(done.returncode, 4, done)
                for words in ("the vocabulary of the checkpoint does not divide", "a multiple of 4 rows", "found    42", folder + "/ckpt"):
                    self.assertIn(words, done.stderr)

    def test_what_is_refused(self):
        for status, words, args in ((2, "--world has a meaning only for shapes", [TINY_MODEL, "--world", 2]),
                                    (2, "--tp has a meaning only for a model", ["4x4", "--tp", 2]),
                                    (2, "--hybrid-pattern has a meaning only for a model", ["4x4", "--json", "--hybrid-pattern", "[M-]"]),
                                    (2, "--accept has a meaning only for a model", ["4x4", "--world", 2, "--accept", "MC0204"]),
                                    (2, "there is no such group", [TINY_MODEL, "--group", 9]),
                                    (2, "--assets has a meaning only for a checkpoint", [TINY_MODEL, "--assets", "x"]),
                                    (2, "Megatron-FSDP has no pipeline stages", [TINY_MODEL, "--pp", 2]),
                                    (2, "Megatron-FSDP has no pipeline", [TINY_MODEL, "--engine", "v2", "--pp", 2]),
                                    (2, "only optim_grads_params", [TINY_MODEL, "--engine", "v2", "--dp", 4, "--hsdp", 2, "--hsdp-outer", "shard", "--strategy", "optim"]),
                                    (2, "v2 stores every parameter as fp32", [TINY_MODEL, "--engine", "v2", "--dtype", "bf16"]),
                                    (2, "the shape is not valid", ["no-such-model"])):
            done = run_mckpt("layout", *args)
            self.assertEqual(done.returncode, status, done)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
