"""`ls --as --cp`: the rows with which a rank computes are those that Megatron's own code took, recorded for 60 mixers; for
a model of one tensor-parallel rank and for one of twice the size over two, at run time and under the keys on disk.
"""
import json
import os
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish, in_parallel
from mckpt_tests.models import GOLDEN
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

with open(os.path.join(DATA, "hybrid", "cp_slices.json")) as f:
    CASES = json.load(f)["cases"]
MAMBA_HEADS = [f"decoder.layers.0.mixer.{name}" for name in ("dt_bias", "A_log", "D")]
GDN = "decoder.layers.0.self_attention."


def model(folder, base, numbers):
    """A config with other sizes; a listing needs no more of a model."""
    os.makedirs(folder)
    with open(os.path.join(GOLDEN, "models", base, "config.json")) as f:
        config = json.load(f)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config | numbers, f)
    return folder


def mamba(folder, case, tp):
    heads = case["nheads_local_tp"] * tp
    return model(folder, "nemotron_h", {
        "mamba_num_heads": heads, "mamba_head_dim": case["d_inner_local_tp"] * tp // heads, "n_groups": case["ngroups_local_tp"] * tp,
        "ssm_state_size": case["d_state"], "vocab_size": 64
    })


def gdn(folder, case, tp):
    heads = case["num_v_heads_local_tp"] * tp
    return model(folder, "qwen3_next", {
        "linear_num_value_heads": heads, "linear_value_head_dim": case["v_dim_local_tp"] * tp // heads, "linear_num_key_heads": heads,
        "linear_key_head_dim": case["qk_dim_local_tp"] * tp // heads, "vocab_size": 64
    })


def rows(tensor):
    return [r for begin, end in tensor.get("cp_rows", [[0, tensor["shape"][0]]]) for r in range(begin, end)]


def listed(folder, how, case, tp):
    """name -> tensor, of the last tensor-parallel rank; a refusal as text"""
    rank = tp - 1 + tp * case["cp_rank"]
    run = run_mckpt("ls", folder, "--as", how, "--tp", tp, "--cp", case["cp_size"], "--rank", rank, "--json", "--vocab-size", "auto",
                    "*layers.0*")
    return {t["name"]: t for t in json.loads(run.stdout)["tensors"]} if run.returncode == 0 else run.stderr


def sections(case):
    return [("query", 0, case["qk_dim_local_tp"]), ("key", 1, case["qk_dim_local_tp"]), ("value", 2, case["v_dim_local_tp"])]


def check(scratch, number, case, tp):
    what = f"case {number} tp {tp}"
    is_mamba = case["op"] == "mamba_cp_slice"
    folder = (mamba if is_mamba else gdn)(os.path.join(scratch, f"{number}_{tp}"), case, tp)
    held = listed(folder, "megatron", case, tp)
    # Gated delta nets are sliced whatever their sizes are; a model of theirs needs heads that divide.
    fits = case["ok"] if is_mamba else case["num_v_heads_local_tp"] % case["cp_size"] == 0
    if not fits:
        return expect(isinstance(held, str) and "divide" in held, f"{what} is not refused: {held}")
    if not expect(isinstance(held, dict), f"{what}: {held}"):
        return
    conv = ["decoder.layers.0.mixer.conv1d_weight", "decoder.layers.0.mixer.conv1d_bias"] if is_mamba else [GDN + "conv1d.weight"]
    heads = MAMBA_HEADS if is_mamba else [GDN + "dt_bias", GDN + "A_log"]
    for name in conv:
        expect_equal(f"{what}: {name}", rows(held[name]), case["conv_rows"])
    for name in heads:
        expect_equal(f"{what}: {name}", rows(held[name]), case["head_rows"])
    others = [n for n, t in held.items() if n not in conv + heads and "cp_rows" in t]
    expect(not others, f"{what}: other tensors are sliced: {others}")
    expect(case["cp_size"] > 1 or not any("cp_rows" in t for t in held.values()), f"{what}: rows without context parallelism")
    if is_mamba:
        return
    # On disk the sections are keys of their own, whose rows are the rows of all tensor-parallel ranks.
    saved, got = listed(folder, "fsdp", case, tp), []
    for section, before, size in sections(case):
        first = sum(s for _, at, s in sections(case) if at < before)
        tensor = saved[f"model.module.{GDN}conv1d.weight.{section}"]
        mine = rows(tensor) if "cp_rows" in tensor else range((tp - 1) * size, tp * size)
        got += [first + r - (tp - 1) * size for r in mine]
    expect_equal(f"{what}: on disk", got, case["conv_rows"])


with tempfile.TemporaryDirectory(prefix="mckpt_cp_rows_") as scratch:
    in_parallel(check, [(scratch, n, c, tp) for n, c in enumerate(CASES) for tp in (1, 2)])
    text = run_mckpt("ls", mamba(os.path.join(scratch, "text"), CASES[1], 1), "--as", "megatron", "--cp", 2, "--rank", 1, "*layers.0.mixer*")
    lines = {line.split()[0]: line for line in text.stdout.splitlines()}
    expect(lines["name"].endswith("cp rows"), text.stdout)
    expect(lines["decoder.layers.0.mixer.conv1d_bias"].endswith("[8, 16) [19, 22) [25, 28)"), text.stdout)
    expect(lines["decoder.layers.0.mixer.norm.weight"].endswith("all"), text.stdout)
finish(1500)
