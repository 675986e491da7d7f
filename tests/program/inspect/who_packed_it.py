"""inspect and layout say who packed a save, by names and boxes alone: saves of Megatron-FSDP itself and of mckpt with their true
parameters, saves of other writers never. Damaged boxes name the first parameter that disagrees."""
import dataclasses
import glob
import json
import os
import pickle
import shutil
import tarfile
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.models import Models, hybrid_with_mtp
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch")
import torch  # noqa: E402

WORK = tempfile.TemporaryDirectory(prefix="mckpt_packed_")
DCP = os.path.join(DATA, "dcp")


def same(what, got, want):
    expect(got == want, f"{what}: got {got}, want {want}")


def packing(path):
    run = run_mckpt("inspect", path, "--json")
    expect(run.returncode in (0, 1), f"{path}: {run.stderr}")
    return json.loads(run.stdout)["packing"]


def expect_packing(what, path, **want):
    got = packing(path)
    expect(got is not None, f"{what}: not recognised")
    if got is None:
        return
    want = {"fits": True, "first_disagreement": None, **want}
    same(what, {name: got[name] for name in want}, want)
    same(f"{what}: parameters", got["agreeing"], got["parameters"])


def convert(model, name, *options):
    out = os.path.join(WORK.name, name)
    run = run_mckpt("convert", "hf-to-fsdp", model, out, "--no-sync", "-q", *options)
    expect(run.returncode == 0, f"{name}: {run.stderr}")
    return out


# ---- saves that Megatron-FSDP itself wrote

expect_packing("Megatron-Bridge, 3 ranks", f"{DCP}/fsdp_dtensor_optim", engine="v1", units=["TransformerLayer"], strategies=["optim_grads_params"], ranks=3, tp=1, dp=3, hsdp=1)
expect_packing("HFSDP, 2 x 2", f"{DCP}/hfsdp", engine="v1", units=["TransformerLayer"], ranks=4, dp=4, hsdp=2, hsdp_outer="shard")
expect_packing("v2's own save, 3 ranks", f"{DCP}/megatron_fsdp_v2", engine="v2", units=["blocks"], ranks=3, dp=3)
for archive, ranks in (("qwen3_dense.world2", 2), ("tiny_dense1.world3.frozen", 3)):
    with tarfile.open(f"{DCP}/packed/{archive}.tar.xz") as tar:
        tar.extractall(os.path.join(WORK.name, archive), filter="data")
    folders = [at for at, _, files in os.walk(os.path.join(WORK.name, archive)) if ".metadata" in files]
    same(f"{archive}: checkpoints", len(folders), 1)
    expect_packing(archive, folders[0], engine="v1", units=["TransformerLayer"], ranks=ranks, dp=ranks)

# ---- saves of others

others = [at for at in glob.glob(f"{DCP}/*/") if os.path.basename(at[:-1]) not in ("fsdp_dtensor_optim", "hfsdp", "megatron_fsdp_v2", "uneven_4", "uneven_tp2dp2", "damaged_pp2", "packed", "variations")]
others += glob.glob(f"{DATA}/own_names/*/") + [f"{DATA}/rank_files/verl2_w3", f"{DATA}/models/tiny_qwen3_moe"]
looked = 0
for path in others:
    run = run_mckpt("inspect", path, "--json")
    if run.returncode not in (0, 1):
        continue
    looked += 1
    same(f"{path}: of another writer", json.loads(run.stdout)["packing"], None)
expect(looked >= 10, f"only {looked} saves of other writers")

# ---- grids, units and engines, under mckpt's own plan

models = Models(only=("nemotron_h", "nemotron_h_moe", "qwen3_5", "qwen3_moe", "tiny_llama1"))
for model, name, options, want in (
    ("nemotron_h", "layers", ("--dp", "3"), {"units": ["TransformerLayer", "MambaLayer"], "dp": 3}),
    ("nemotron_h", "transformer", ("--dp", "3", "--fsdp-unit", "TransformerLayer"), {"units": ["TransformerLayer"], "dp": 3}),
    ("nemotron_h", "mamba", ("--dp", "3", "--fsdp-unit", "MambaLayer"), {"units": ["MambaLayer"], "dp": 3}),
    ("nemotron_h", "stack", ("--dp", "3", "--fsdp-unit", "HybridStack"), {"units": ["HybridStack"], "dp": 3}),
    ("nemotron_h", "groups", ("--dp", "2", "--hybrid-pattern", "[M-]M[*-]", "--fsdp-unit", "HybridStack"), {"units": ["HybridStack"], "dp": 2}),
    ("nemotron_h", "group_and_mamba", ("--dp", "3", "--hybrid-pattern", "[M-]M[*-]", "--fsdp-unit", "HybridStack,MambaLayer"), {"units": ["MambaLayer", "HybridStack"], "dp": 3}),
    ("nemotron_h", "tp", ("--tp", "2", "--dp", "4", "--hsdp", "2"), {"tp": 2, "dp": 4, "hsdp": 2, "hsdp_outer": "replicate"}),
    ("nemotron_h_moe", "ep", ("--ep", "2", "--dp", "6"), {"ep": 2, "dp": 6}),
    ("qwen3_5", "gdn", ("--tp", "2", "--dp", "5"), {"tp": 2, "dp": 5}),
    ("qwen3_moe", "moe", ("--tp", "2", "--ep", "4", "--dp", "4"), {"tp": 2, "ep": 4, "dp": 4}),
    ("qwen3_moe", "optim", ("--dp", "3", "--strategy", "optim"), {"units": [], "strategies": ["optim", "optim_grads", "optim_grads_params"], "dp": 3}),
    ("nemotron_h_moe", "v2", ("--dp", "3", "--engine", "v2"), {"engine": "v2", "dp": 3, "units": ["TransformerLayer", "MambaLayer"]}),
    ("qwen3_moe", "v2_ep", ("--ep", "2", "--dp", "6", "--engine", "v2"), {"engine": "v2", "ep": 2, "dp": 6}),
    ("tiny_llama1", "v2_tied", ("--dp", "3", "--engine", "v2"), {"engine": "v2", "dp": 3}),
    ("qwen3_moe", "v2_optim", ("--dp", "3", "--engine", "v2", "--strategy", "optim"),
     {"engine": "v2", "dp": 3, "units": ["TransformerLayer"], "strategies": ["optim_grads_params", "optim", "optim_grads"]}),
    ("qwen3_moe", "v2_parts", ("--dp", "6", "--ep", "1", "--hsdp", "2", "--hsdp-outer", "shard", "--engine", "v2"),
     {"engine": "v2", "dp": 6, "hsdp": 2, "hsdp_outer": "shard", "strategies": ["optim_grads_params"]}),
    ("nemotron_h_moe", "v2_mamba", ("--dp", "3", "--engine", "v2", "--fsdp-unit", "MambaLayer"), {"engine": "v2", "dp": 3, "units": ["MambaLayer"]}),
    ("nemotron_h", "v2_stacks", ("--dp", "3", "--engine", "v2", "--hybrid-pattern", "[M-]M[*-]", "--fsdp-unit", "HybridStack"),
     {"engine": "v2", "dp": 3, "units": ["HybridStack"]}),
):
    path = convert(models.path(model), f"{model}_{name}", *options)
    expect_packing(f"{model} {name}", path, **{"engine": "v1", **want})

run = run_mckpt("inspect", os.path.join(WORK.name, "nemotron_h_transformer"))
expect("Mamba layers are in the root group: the run had TransformerLayer alone as unit" in run.stdout, run.stdout)

# layout follows the boxes: engine, units, grid.
run = run_mckpt("layout", os.path.join(WORK.name, "nemotron_h_moe_v2"), "--assets", models.path("nemotron_h_moe"))
expect(run.stdout.startswith("Megatron-FSDP v2, optim_grads_params: tp=1 cp=1 ep=1 etp=1 pp=1 dp=3, 3 ranks"), run.stdout[:300] + run.stderr)
expect("packed  by Megatron-FSDP v2" in run.stderr, run.stderr)
transformer = run_mckpt("layout", os.path.join(WORK.name, "nemotron_h_transformer"))
asked = run_mckpt("layout", models.path("nemotron_h"), "--dp", "3", "--fsdp-unit", "TransformerLayer")
same("layout of the units", transformer.stdout.splitlines()[0], asked.stdout.splitlines()[0])

# MTP beside groups has its own stack, which is not a unit either.
mtp = convert(hybrid_with_mtp(os.path.join(WORK.name, "mtp")), "mtp_groups", "--dp", "3", "--hybrid-pattern", "[ME][*]M[E]/*E", "--fsdp-unit", "HybridStack")
expect_packing("groups beside MTP", mtp, engine="v1", units=["HybridStack"], dp=3)

# A grouped checkpoint is laid out as it is: its groups by the args, its units by the boxes.
grouped = run_mckpt("layout", os.path.join(WORK.name, "nemotron_h_groups"))
asked = run_mckpt("layout", models.path("nemotron_h"), "--dp", "2", "--hybrid-pattern", "[M-]M[*-]", "--fsdp-unit", "HybridStack")
same("layout of groups", grouped.stdout, asked.stdout)
expect("another form" not in grouped.stderr and "decoder.layers.2  dense" in grouped.stdout, grouped.stderr + grouped.stdout)

# ---- boxes that are elsewhere: one row of a box goes to its neighbour

broken = os.path.join(WORK.name, "broken")
shutil.copytree(os.path.join(WORK.name, "qwen3_moe_moe"), broken)
index = glob.glob(f"{broken}/*/.metadata")[0]
NAME = "model.module.decoder.layers.1.self_attention.linear_qkv.weight"
with open(index, "rb") as f:
    metadata = pickle.load(f)
chunks = sorted(metadata.state_dict_metadata[NAME].chunks, key=lambda c: tuple(c.offsets))
first, second = chunks[:2]
same("the boxes are neighbours", first.offsets[0] + first.sizes[0], second.offsets[0])
moved = tuple(second.offsets)
object.__setattr__(first, "sizes", torch.Size((first.sizes[0] - 1, *first.sizes[1:])))
object.__setattr__(second, "offsets", torch.Size((second.offsets[0] - 1, *second.offsets[1:])))
object.__setattr__(second, "sizes", torch.Size((second.sizes[0] + 1, *second.sizes[1:])))
for place in list(metadata.storage_data):
    if place.fqn == NAME and tuple(place.offset) == moved:
        metadata.storage_data[dataclasses.replace(place, offset=second.offsets)] = metadata.storage_data.pop(place)
with open(index, "wb") as f:
    pickle.dump(metadata, f)
got = packing(broken)
expect(got is not None and not got["fits"], f"a boundary that is a row off: {got}")
if got:
    same("first parameter that disagrees", got["first_disagreement"]["tensor"], NAME)
    same("parameters that disagree", got["parameters"] - got["agreeing"], 1)
run = run_mckpt("inspect", broken)
expect("boxes fit no packing; the nearest is Megatron-FSDP v1" in run.stdout, run.stdout)
expect(f"disagree, first {NAME} of rank" in run.stdout or f"disagrees, first {NAME} of rank" in run.stdout, run.stdout)
finish(30)
