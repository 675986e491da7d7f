"""Live ranks: Megatron-Core itself (megatron.core of PyPI) builds models on gloo ranks on the CPU, the product's rank_dump.py dumps each rank,
and `mckpt diff DUMP HF_DIR --as megatron` compares it with the mapping. Plain code cuts the values of the ranks, and their digests are in
golden/ranks, which the real converter made: names, shapes, attributes and digests of the live side are all foreign to mckpt.
A map row that is wrong in both directions passes `roundtrip` and is found here. DTensors of torch's FSDP and of both versions of Megatron-FSDP, too."""

import hashlib
import importlib.util
import json
import os
import re
import sys
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish, need, skip
from mckpt_tests.golden import sections
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt

need("torch", "numpy", "safetensors")
if importlib.util.find_spec("megatron") is None or importlib.util.find_spec("megatron.core") is None:
    skip(f"{sys.executable} has no megatron.core: scripts/bootstrap installs it")

import torch  # noqa: E402
from mckpt_tests.live_megatron import Values, live  # noqa: E402


def diff(*args, status):
    run = run_mckpt("diff", *args, "--json", "-v")
    if not expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout[:1500]}{run.stderr[:1500]}"):
        return {"rows": [], "tensors": 0}
    return json.loads(run.stdout)


def usual(name):
    """The name that golden/ranks has."""
    name = re.sub(r"local_experts\.(\d+)\.(linear_fc\d\.weight)", r"\2\1", name).replace("mixer.conv1d.", "mixer.conv1d_")
    for own, fused in (("layers.N.input_layernorm.", "self_attention.linear_qkv.layer_norm_"), ("layers.N.norm.", "mixer.in_proj.layer_norm_"),
                       ("layers.N.pre_mlp_layernorm.", "mlp.linear_fc1.layer_norm_")):
        name = re.sub(re.escape(own).replace("N", r"(\d+)"), rf"layers.\1.{fused}", name)
    return name


def golden_rows(tag, rank, moe):
    out = []
    for line in sections(f"ranks/{tag}.txt")[1][rank]:
        name, dtype, shape, digest = line.removeprefix("buffer ").split(" ")
        out.append((name.replace("mlp.linear_fc1.layer_norm_", "pre_mlp_layernorm.") if moe else name, dtype, shape, digest))
    return sorted(out)


def dumped_rows(path, moe):
    with open(path) as f:
        tensors = json.load(f)["tensors"]
    names = (lambda n: usual(n) if "pre_mlp_layernorm" not in n or not moe else n)
    return sorted((names(t["name"]), t["dtype"], "x".join(map(str, t["local_shape"])), t["sha256"]) for t in tensors)


def changed(path, change):
    with open(path) as f:
        dump = json.load(f)
    change({t["name"]: t for t in dump["tensors"]}, dump)
    with open(path + ".changed", "w") as f:
        json.dump(dump, f)
    return path + ".changed"


def kinds(found):
    return sorted((r["kind"], r["name"], r["at"]) for r in found["rows"])


models = Models(only=("qwen3_dense", "nemotron_h", "qwen3_moe"))
with tempfile.TemporaryDirectory(prefix="mckpt_live_") as scratch:
    # Healthy ranks, whose values the golden digests anchor.
    dumps = {}
    for model, tp, ep, world, tag in [("qwen3_dense", 2, 1, 4, "tp2_cp1_ep1"), ("nemotron_h", 2, 1, 4, "tp2_cp1_ep1"), ("qwen3_moe", 2, 4, 4, "tp2_cp1_ep4")]:
        dumps[model] = live(models.path(model), os.path.join(scratch, model), tp, ep, world)
        for rank, path in enumerate(dumps[model]):
            expect_equal(f"{model} rank {rank}: golden", dumped_rows(path, ep > 1), golden_rows(f"{model}.{tag}", rank if ep > 1 else rank % tp, ep > 1))
            found = diff(path, models.path(model), "--as", "megatron", "--tp", tp, "--ep", ep, "--rank", rank, status=0)
            expect(found["rows"] == [] and found["bit_equal"] == len(dumped_rows(path, False)), f"{model} rank {rank}: {found}")
            turned = diff(models.path(model), path, "--as", "megatron", "--tp", tp, "--ep", ep, status=0)
            expect(turned["bit_equal"] == found["bit_equal"], f"{model} rank {rank}, turned: {turned}")

    # The same ranks under Megatron-FSDP v1, with its main weights: places in flat buffers of units, over all tensor-parallel ranks.
    for model in ("qwen3_dense", "nemotron_h"):
        for rank, path in enumerate(dumps[model]):
            of_v1, run = path.replace(f".{rank}.json", f".v1.{rank}.json"), ["--as", "fsdp", "--tp", 2, "--dtype", "fp32"]
            found = diff(of_v1, models.path(model), *run, status=0)
            expect(found["rows"] == [] and found["bit_equal"] == len(dumped_rows(path, False)), f"v1, {model} rank {rank}: {found}")
            if model == "nemotron_h" and rank < 2:  # another run, in which Mamba layers are not units
                found = diff(of_v1, models.path(model), *run, "--fsdp-unit", "TransformerLayer", status=1)
                mixers = [r for r in found["rows"] if ".mixer.in_proj." in r["name"]]
                expect({r["at"] for r in found["rows"]} == {"place"} and len(mixers) == 2, f"v1 with other units, rank {rank}: {kinds(found)}")

    # A rule that is wrong in both directions: no round trip shows it, a live rank does.
    wrong, hf = os.path.join(scratch, "wrong.json"), models.path("nemotron_h")
    shown = json.loads(run_mckpt("mappings", "show", "nemotron_h", "--json").stdout)
    row = next(r for r in shown["rows"] if r["megatron"].endswith("mixer.norm.weight"))
    with open(wrong, "w") as f:
        json.dump({"rows": [{**row, "rule": "replicate"}]}, f)
    run = run_mckpt("roundtrip", hf, "--map-file", wrong, "--tp", 2, ranks=2)
    expect(run.returncode == 0, f"a symmetric mistake passes the round trip: {run.stdout}{run.stderr}")
    for rank, path in enumerate(dumps["nemotron_h"]):
        found = diff(path, hf, "--as", "megatron", "--tp", 2, "--map-file", wrong, status=1)
        norms = [f"decoder.layers.{n}.mixer.norm.weight" for n in (0, 2)]
        expect_equal(f"wrong rule, rank {rank}", kinds(found), [("attribute", n, "tensor_model_parallel") for n in norms] + [("shape", n, "") for n in norms])
        shapes = [r for r in found["rows"] if r["kind"] == "shape"]
        expect(all(r["a"].endswith("[80]") and r["b"].endswith("[160]") and "the mapping gives every rank all of it" in r["hint"] for r in shapes), f"{shapes}")
        turned = diff(hf, path, "--as", "megatron", "--tp", 2, "--map-file", wrong, status=1)
        expect([(r["a"], r["b"]) for r in turned["rows"]] == [(r["b"], r["a"]) for r in found["rows"]], f"turned: {turned['rows']}")

    # The rank of another place, and planted faults of single tensors.
    dense = dumps["qwen3_dense"][1]
    found = diff(dense, models.path("qwen3_dense"), "--as", "megatron", "--tp", 2, "--rank", 0, status=1)
    expect(len(found["rows"]) == 14 and {(r["kind"], r["hint"]) for r in found["rows"]} == {("values", "the values of tensor-parallel rank 1")}, f"rank 0: {found['rows']}")
    q, f1, f2 = (f"decoder.layers.{n}" for n in ("0.self_attention.linear_qkv.weight", "1.mlp.linear_fc1.weight", "2.mlp.linear_fc2.weight"))

    def plant(tensors, dump):
        tensors[q]["attributes"]["partition_dim"] = 1
        tensors[f1]["sha256"] = halves
        tensors[f2]["name"] = f2 + "_old"
        tensors["decoder.layers.0.input_layernorm.weight"]["sha256"], tensors["decoder.layers.1.input_layernorm.weight"]["sha256"] = (
            tensors[f"decoder.layers.{n}.input_layernorm.weight"]["sha256"] for n in (1, 0))
        tensors["output_layer.weight"]["attributes"]["tensor_model_parallel"] = False
        tensors["decoder.final_layernorm.weight"] |= {"dtype": "float32"}

    with open(os.path.join(models.path("qwen3_dense"), "config.json")) as f:
        c = json.load(f)
    own = Values(models.path("qwen3_dense"), c, 2, 1, 0).of(f1)
    halves = hashlib.sha256(torch.cat([own[len(own) // 2 :], own[: len(own) // 2]]).contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()
    found = diff(changed(dense, plant), models.path("qwen3_dense"), "--as", "megatron", "--tp", 2, status=1)
    hints = {r["name"]: r["hint"] for r in found["rows"] if r["kind"] == "values"}
    expect_equal("planted", kinds(found), sorted([
        ("attribute", q, "partition_dim"), ("attribute", "output_layer.weight", "tensor_model_parallel"), ("only_a", f2 + "_old", ""), ("only_b", f2, ""),
        ("values", f1, "sha256"), ("cast", "decoder.final_layernorm.weight", ""), ("values", "decoder.final_layernorm.weight", "sha256"),
        *(("values", f"decoder.layers.{n}.input_layernorm.weight", "sha256") for n in (0, 1))]))
    expect(hints.get(f1) == "its two halves are in the other order", f"{hints}")
    expect(hints.get("decoder.layers.0.input_layernorm.weight", "").endswith("decoder.layers.1.input_layernorm.weight"), f"{hints}")

    def lost(tensors, dump):
        for t in tensors.values():
            t["attributes"].pop("allreduce", None)

    moe = dumps["qwen3_moe"][2]
    found = diff(changed(moe, lost), models.path("qwen3_moe"), "--as", "megatron", "--tp", 2, "--ep", 4, status=1)
    expect({r["at"] for r in found["rows"]} == {"allreduce"} and len(found["rows"]) == 24, f"allreduce lost: {kinds(found)}")

    def bare(tensors, dump):
        for t in tensors.values():
            t["attributes"] = {}

    found = diff(changed(moe, bare), models.path("qwen3_moe"), "--as", "megatron", "--tp", 2, "--ep", 4, status=0)
    expect(any("attributes" in note for note in found["not_compared"]), f"{found['not_compared']}")

    # DTensors: of torch's FSDP, at places of their own, and of Megatron-FSDP v2.
    sharded = live(models.path("qwen3_dense"), os.path.join(scratch, "whole"), 1, 1, 3)
    for rank, path in enumerate(sharded):
        of_torch, of_v1, of_v2 = (path.replace(f".{rank}.json", f".{kind}.{rank}.json") for kind in ("torch", "v1", "v2"))
        found = diff(of_v1, models.path("qwen3_dense"), "--as", "fsdp", "--dtype", "fp32", status=0)
        expect(found["rows"] == [] and found["bit_equal"] == 27, f"v1, rank {rank}: {found}")
        found = diff(of_torch, models.path("qwen3_dense"), "--as", "megatron", status=0)
        expect(found["rows"] == [] and found["bit_equal"] == 27, f"torch's FSDP, rank {rank}: {found}")
        found = diff(of_torch, models.path("qwen3_dense"), "--as", "fsdp", status=1)
        expect({r["at"] for r in found["rows"]} == {"place"}, f"torch's FSDP is not Megatron's, rank {rank}: {kinds(found)}")
        if os.path.exists(of_v2):
            found = diff(of_v2, models.path("qwen3_dense"), "--as", "fsdp", "--engine", "v2", status=0)
            expect(found["rows"] == [] and found["bit_equal"] == 27, f"v2, rank {rank}: {found}")
            wrong_rank = diff(of_v2, models.path("qwen3_dense"), "--as", "fsdp", "--engine", "v2", "--rank", (rank + 1) % 3, status=1)
            expect("place" in {r["at"] for r in wrong_rank["rows"]}, f"v2, rank {rank} as another: {kinds(wrong_rank)}")

    # Other pairs are refused.
    for args, says in [((dense, models.path("qwen3_dense")), "--as"), ((models.path("qwen3_dense"), models.path("qwen3_dense"), "--as", "megatron"), "neither is a dump"),
                       ((dense, dense, "--as", "megatron"), "both are dumps"), ((dense, models.path("qwen3_dense"), "--as", "megatron", "--tp", 2, "--rtol", 1), "tolerance"),
                       ((dense, models.path("qwen3_dense"), "--tp", 2), "--as")]:
        run = run_mckpt("diff", *args)
        expect(run.returncode == 2 and says in run.stderr, f"{args}: {run.returncode} {run.stderr}")
finish(560)
