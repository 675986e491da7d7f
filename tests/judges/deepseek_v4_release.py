"""A whole DeepSeek-V4 as it is released, with FP8 blocks and packed FP4 experts, through dequantize, hf-to-fsdp, to-mcore, export and verify:
every value is the one that the definitions of the codes give (mckpt_tests/release_of_v4.py), torch reads the checkpoint, what each
rank holds is by formulas over these values (family_formulas/deepseek_v4.py), and the codes of the release come back.
"""

import json
import os
import random
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish, need
from mckpt_tests.family_formulas import FAMILIES
from mckpt_tests.formulas import compare, drawn, np, write
from mckpt_tests.program import run_mckpt
from mckpt_tests.release_of_v4 import Release

need("torch", "safetensors")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from torch.distributed.checkpoint import FileSystemReader  # noqa: E402

FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "scale_fmt": "ue8m0", "weight_block_size": [128, 128]}
GRIDS = [{"ep": 1, "dp": 1, "pp": 1}, {"ep": 2, "dp": 4, "pp": 1}, {"ep": 3, "dp": 3, "pp": 2}]
IN_TORCH = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def mckpt(*arguments, status=0):
    run = run_mckpt(*arguments, "-q", timeout=120)
    expect(run.returncode == status, f"mckpt {' '.join(arguments)}: {run.returncode}: {run.stdout}{run.stderr}")
    return run.stdout + run.stderr


def raw(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def as_lines(tensors):
    """name, shape and bytes of tensors of torch, or of arrays."""
    return [f"{name} {list(t.shape)} {(raw(t) if isinstance(t, torch.Tensor) else np.ascontiguousarray(t).tobytes()).hex()}" for name, t in sorted(tensors.items())]


def loaded(folder):
    return {k: v for name in os.listdir(folder) if name.endswith(".safetensors") for k, v in load_file(os.path.join(folder, name)).items()}


def read_by_torch(checkpoint):
    folder = os.path.join(checkpoint, "release")
    items = FileSystemReader(folder).read_metadata().state_dict_metadata
    state = {key: torch.empty(item.size, dtype=item.properties.dtype) for key, item in items.items() if type(item).__name__ == "TensorStorageMetadata"}
    dcp.load(state, storage_reader=FileSystemReader(folder), no_dist=True)
    return {key.removeprefix("model.module."): t for key, t in state.items()}


def keys_of(held):
    """Gate and up under keys of their own, as Megatron-FSDP saves a SwiGLU."""
    out = {}
    for name, a in held.items():
        if ".linear_fc1.weight" in name:
            out[f"{name}_w"], out[f"{name}_v"] = np.split(a, 2)
        else:
            out[name] = a
    return out


def check(number, grid, scratch):
    family, seed = FAMILIES["deepseek_v4"], f"release {number}"
    sizes = {"tp": 1, "cp": 1, "etp": 1, **grid}
    while True:
        config, h, _ = drawn(family, seed, 0, Release, sizes)
        if "compress_ratios" in config and config["num_hash_layers"] < config["num_hidden_layers"]:
            break  # the spelling of the hub
        seed += "'"
    config |= {"quantization_config": FP8, "expert_dtype": "fp4"}
    hub, values, checkpoint, back, again = (os.path.join(scratch, f"{name}{number}") for name in ("hub", "values", "checkpoint", "back", "again"))
    os.mkdir(hub)
    write(hub, config, h)
    kinds = {dtype for dtype, _ in h.made.values()}
    expect({"I8", "F8_E4M3", "F8_E8M0", "BF16", "F32"} <= kinds, f"{number}: only {kinds}")

    mckpt("convert", "dequantize", hub, values)
    expect_equal(f"{number}: values", as_lines(loaded(values)), as_lines(h.values))
    with open(os.path.join(values, "config.json")) as f:
        expect("quantization_config" not in json.load(f), f"{number}: values are said to be quantised")

    flags = [f"--{name}={n}" for name, n in grid.items()]
    for rank in sorted(random.Random(number).sample(range(grid["dp"] * grid["pp"]), min(3, grid["dp"] * grid["pp"]))):
        compare(f"{number}: rank {rank} of {grid}", hub, [*flags, "--rank", str(rank)], drawn(family, seed, rank, Release, sizes)[2], False)

    if grid["pp"] > 1:  # which Megatron-FSDP has not
        mckpt("convert", "to-mcore", hub, checkpoint, *(flag for flag in flags if not flag.startswith("--dp")))
    else:
        mckpt("convert", "hf-to-fsdp", hub, checkpoint, *flags)
    if grid["ep"] == grid["pp"] == 1:
        expect_equal(f"{number}: the checkpoint, by torch", as_lines(read_by_torch(checkpoint)), as_lines(keys_of(drawn(family, seed, 0, Release, sizes)[2])))
    mckpt("verify", checkpoint, "--against", hub)
    mckpt("verify", checkpoint, "--against", values)

    mckpt("export", checkpoint, back)
    expect_equal(f"{number}: exported", as_lines(loaded(back)), as_lines(h.values))
    mckpt("verify", back, "--against", hub)
    mckpt("export", checkpoint, again, "--scheme", "like-source", "--assets", hub)
    stored = {name: a for name, (_, a) in h.made.items()}
    expect_equal(f"{number}: the codes again", as_lines(loaded(again)), as_lines(stored))
    mckpt("verify", again, "--against", hub)
    planted(number, hub, h, checkpoint, scratch)


def planted(number, hub, h, checkpoint, scratch):
    """One code, and one scale, of another value: verify names the weight that they are of."""
    for kind, name in (("code", next(n for n, (dtype, _) in h.made.items() if dtype == "I8")), ("scale", next(n for n, (dtype, _) in h.made.items() if dtype == "F8_E8M0"))):
        other = os.path.join(scratch, f"{kind}{number}")
        os.mkdir(other)
        with open(os.path.join(hub, "config.json")) as f:
            config = json.load(f)
        a = h.made[name][1]
        kept, place = a.copy(), tuple(n - 1 for n in a.shape)
        a[place] ^= 0x10 if kind == "code" else 1
        write(other, config, h)
        a[...] = kept
        said = mckpt("verify", checkpoint, "--against", other, status=1)
        module = name.removesuffix(".weight").removesuffix(".scale")
        expect(module + ".weight" in said or "linear_fc" in said or "self_attention" in said, f"{number}: {kind} of {name}: {said}")


with tempfile.TemporaryDirectory(prefix="mckpt_v4_") as scratch:
    for number, grid in enumerate(GRIDS):
        check(number, grid, scratch)
finish(2000)
