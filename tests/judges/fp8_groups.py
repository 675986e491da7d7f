"""Weights in 8 bits under Megatron-FSDP (`--fp8-recipe`): the groups and places of `layout` against the grouping and packing code of megatron_fsdp
itself, which is told which parameters Transformer Engine would have in 8 bits (it runs on GPUs alone; which those are is read from
megatron-core 0.19.2). v2's blocks of 32 rows against v2's own packing of the same list with blocks as rows. Checkpoints have the boxes of these
groups and the same values as without.
"""
import importlib.util
import json
import os
import sys
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish, need, skip
from mckpt_tests.golden import listing
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt

need("torch", "numpy")
if importlib.util.find_spec("megatron_fsdp") is None:
    skip(f"{sys.executable} has no megatron_fsdp: scripts/bootstrap installs it")

import torch  # noqa: E402
from megatron_fsdp.distributed_data_parallel_config import DistributedDataParallelConfig  # noqa: E402
from megatron_fsdp.experimental.layout import GlobalLayout  # noqa: E402
from megatron_fsdp.param_and_grad_buffer import BucketingPolicy, _get_parameter_groups, build_data_parallel_buffer_index  # noqa: E402

LINEAR = {
    "linear_qkv", "linear_proj", "linear_fc1", "linear_fc2", "in_proj", "out_proj", "linear_q_proj", "linear_q_down_proj", "linear_q_up_proj",
    "linear_kv_down_proj", "linear_kv_up_proj",
}  # fmt: skip


class Bare(torch.nn.Module):
    pass


class Layer(Bare):
    """A module of a unit class."""


def is_8_bits(name):
    *path, leaf = name.split(".")
    return "layers" in path and path[-1] in LINEAR and leaf.rstrip("0123456789") == "weight"


def tree(rows):
    root = Bare()
    for name, shape in rows:
        *path, leaf = name.split(".")
        module, front = root, []
        for step in path:
            front.append(step)
            if step not in module._modules:
                module.add_module(step, Layer() if front[-2:-1] == ["layers"] and step.isdigit() else Bare())
            module = module._modules[step]
        module.register_parameter(leaf, torch.nn.Parameter(torch.empty(shape, dtype=torch.bfloat16, device="meta")))
    return root


def told(model, *flags):
    run = run_mckpt("layout", model, "--params-dtype", "bf16", "--json", *map(str, flags))
    expect(run.returncode in (0, 1), f"{model} {flags}: {run.stderr}")  # 1: a shard cuts a row
    answer = json.loads(run.stdout)
    groups = [[] for _ in answer["groups"]]
    for p in answer["parameters"]:
        if p["group"] is not None:
            groups[p["group"]].append(p)
    return [(g, members) for g, members in zip(answer["groups"], groups)]


def check_v1(model, dp, ep, recipe):
    groups = told(model, "--dp", dp, "--ep", ep, "--fp8-recipe", recipe)
    rows = listing(model, "--as", "megatron", "--dp", dp, "--ep", ep, "--fp8-recipe", recipe, digest=False)
    rows = [r for r in rows if not r["name"].endswith("expert_bias")]
    expect_equal(f"{model}: bytes at run time", [r["name"] for r in rows if r["dtype"] == "uint8"], [r["name"] for r in rows if is_8_bits(r["name"])])
    root = tree([(r["name"], r["shape"]) for r in rows])
    names = {p: n for n, p in root.named_parameters()}
    policy = BucketingPolicy(suggested_bucket_size=None, fsdp_unit_modules=[Layer], data_parallel_sharding_strategy="optim_grads_params")
    eight = {n: (True, recipe == "mxfp8") for n in names.values() if is_8_bits(n)}
    real = _get_parameter_groups(root, policy, eight)[0]
    config = DistributedDataParallelConfig(data_parallel_sharding_strategy="optim_grads_params")
    want = []
    for group in real:
        ranks = dp // ep if group.is_expert_param else dp
        items, bucket, _ = build_data_parallel_buffer_index([p.shape for p in group.params], 0, ranks, True, config, 0, group.chunk_size_factor)
        items = items.values() if isinstance(items, dict) else items
        at = {item.item_id: item.global_data_index for item in items}
        want.append((group.dtype == "float8", group.chunk_size_factor, bucket.size, sorted((names[p], at[i]) for i, p in enumerate(group.params))))
    got = [(g["dtype"] == "float8_e4m3fn", g["csf"], g["bucket_items"], sorted((p["name"], p["offset"]) for p in members)) for g, members in groups]
    expect_equal(f"{model} {recipe}: groups", sorted(got), sorted(want))
    return sum(g[0] for g in want)


def check_v2(model, dp):
    blocks = 0
    for g, members in told(model, "--dp", dp, "--engine", "v2", "--fp8-recipe", "mxfp8"):
        eight = g["dtype"] == "float8_e4m3fn"
        expect_equal(f"{model}: a group of one type", {is_8_bits(p["name"]) for p in members}, {eight})
        rows = 32 if eight else 1
        shapes = [(p["shape"][0] // rows, rows * (p["items"] // p["shape"][0])) if rows > 1 else p["shape"] for p in members]
        real = GlobalLayout.build(shapes, g["ranks"])
        expect_equal(f"{model} v2", [p["offset"] for p in members] + [g["bucket_items"]], [*real.tensor_to_offset, real.size])
        blocks += eight
    return blocks


def config_alone(folder, base, **sizes):
    os.makedirs(folder)
    with open(os.path.join(base, "config.json")) as f:
        config = json.load(f)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config | sizes, f)
    return folder


models = Models(only=("qwen3_dense", "nemotron_h", "qwen3_moe", "deepseek_v3"))
scratch = tempfile.TemporaryDirectory(prefix="mckpt_fp8_")
grouped = 0
for model, dp, ep in (("qwen3_dense", 3, 1), ("nemotron_h", 4, 1), ("qwen3_moe", 4, 1), ("deepseek_v3", 2, 1)):
    grouped += check_v1(models.path(model), dp, ep, "tensorwise")
expect(grouped > 8, f"{grouped} groups in 8 bits")
even = config_alone(os.path.join(scratch.name, "even"), models.path("qwen3_dense"), hidden_size=96, intermediate_size=160, head_dim=32, num_attention_heads=4, num_key_value_heads=2)
check_v1(even, 3, 1, "mxfp8")
expect(check_v2(even, 3) > 0, "blocks")

# Memory: a byte for each item, for MXFP8 two; main weights of all.
run = json.loads(run_mckpt("layout", even, "--dp", "2", "--memory", "--json", "--params-dtype", "bf16", "--fp8-recipe", "mxfp8").stdout)
row = next(r for r in run["memory"]["rows"] if (r["engine"], r["strategy"]) == ("v1", "optim_grads_params"))
shards = [(g["shard_items"], g["dtype"] == "float8_e4m3fn") for g, _ in told(even, "--dp", 2, "--fp8-recipe", "mxfp8")]
expect_equal("memory", [row["weights"], row["main_weights"]], [sum(2 * n for n, _ in shards), sum(4 * n for n, _ in shards)])

# Checkpoints: other boxes, the same values; `ls --as fsdp` lists them.
path = models.path("qwen3_dense")
plain, eight, again = (os.path.join(scratch.name, what) for what in ("plain", "eight", "again"))
flags = ["--dp", "3", "--no-sync"]
for words in (
    ["hf-to-fsdp", path, plain, "--params-dtype", "bf16", "--dtype", "fp32"],
    ["hf-to-fsdp", path, eight, "--params-dtype", "bf16", "--fp8-recipe", "tensorwise"],
    ["reshard", plain, again, "--fp8-recipe", "tensorwise"],
):
    run = run_mckpt("convert", *words, *flags)
    expect(run.returncode == 0, run.stderr)


def boxes(folder):
    tensors = json.loads(run_mckpt("ls", folder, "--json").stdout)["tensors"]
    return {t["name"]: (t["dtype"], [(c["rank"], c["offsets"], c["sizes"]) for c in t["chunks"]]) for t in tensors}


of_plain, of_eight = boxes(plain), boxes(eight)
expect(of_plain != of_eight and set(of_plain) == set(of_eight) and {d for d, _ in of_eight.values()} == {"float32"}, "boxes of 8-bit groups")
expect_equal("resharded", boxes(again), of_eight)
expect(run_mckpt("verify", eight, "--against", plain).returncode == 0 and run_mckpt("verify", again, "--against", path).returncode == 0, "values")
for rank in range(3):
    for r in listing(path, "--as", "fsdp", "--dp", 3, "--rank", rank, "--fp8-recipe", "tensorwise", digest=False):
        for c in r["chunks"]:
            held = [(o, s) for k, o, s in of_eight[r["name"]][1] if k == rank]
            expect(held in ([], [(c["offsets"], c["sizes"])]), f"{r['name']} of rank {rank}")

# Refused: not known, or what Megatron refuses.
for flags, words in (
    (["--fp8-recipe", "mxfp8"], "multiples of 32"),
    (["--fp8-recipe", "delayed", "--engine", "v2"], "no 8-bit weights but MXFP8"),
    (["--fp8-recipe", "delayed", "--strategy", "optim"], "optim_grads_params alone"),
    (["--fp8-recipe", "fp8"], "tensorwise"),
):
    run = run_mckpt("layout", path, "--dp", "2", *flags)
    expect(run.returncode == 2 and words in run.stderr, f"{flags}: {run.stderr}")
run = run_mckpt("convert", "hf-to-fsdp", path, os.path.join(scratch.name, "never"), "--fp8-recipe", "delayed", "--freeze", "*", "-n")
expect(run.returncode == 2 and "frozen 8-bit weights" in run.stderr, run.stderr)
run = run_mckpt("ls", path, "--as", "megatron", "--fp8-recipe", "delayed", "--digest")
expect(run.returncode == 2 and "are not known" in run.stderr, run.stderr)
run = run_mckpt("roundtrip", path, "--fp8-recipe", "delayed")
expect(run.returncode == 2 and "no weights in 8 bits" in run.stderr, run.stderr)
run = run_mckpt("convert", "reshard", plain, os.path.join(scratch.name, "never"), "--any-model", "--fp8-recipe", "delayed", "--dp", "2", "-n")
expect(run.returncode == 2 and "without a table" in run.stderr, run.stderr)
run = run_mckpt("layout", "64x32", "--fp8-recipe", "mxfp8")
expect(run.returncode == 2 and "only for a model" in run.stderr, run.stderr)
finish(40)
