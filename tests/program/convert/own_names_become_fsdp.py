"""Checkpoints with the model's own names become what a Megatron-FSDP run saves, in one step: the same bytes as by way of a Hugging Face
folder, the same folder again when they are exported, and compared with their source bit for bit.
"""

import collections
import filecmp
import json
import os
import pathlib
import shutil

from mckpt_tests.checks import expect, expect_equal, finish, need
from mckpt_tests.folders import difference, files_of, safetensors, scratch, write_safetensors
from mckpt_tests.models import GOLDEN, Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import FAULTY_IO, HAS_MPI, SANITIZED, TINY_MODEL

CASES = os.path.join(os.path.dirname(GOLDEN), "own_names")
# The table of the model's tensors is in another order, and has other files: checked by what an export makes of it.
TABLES = ("hf_assets/mckpt_tensors.json", "mckpt_manifest.json")
temporary = scratch()


def new(name):
    path = os.path.join(temporary.name, name)
    shutil.rmtree(path, ignore_errors=True)
    return path


def mckpt(*args, status=0, ranks=1):
    run = run_mckpt(*args, *(["--no-sync"] if args[0] != "verify" else []), "-j2", ranks=ranks)
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout}{run.stderr}")
    return run.stdout + run.stderr


def source_of(case):
    folder = os.path.join(CASES, case)
    return next(os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.startswith("checkpoint"))


def same_but_tables(what, one, two):
    expect_equal(f"{what}: files", files_of(one), files_of(two))
    other = [name for name in files_of(one) if not filecmp.cmp(os.path.join(one, name), os.path.join(two, name), shallow=False)]
    expect(set(other) <= set(os.path.join("release", name) for name in TABLES), f"{what}: {other} differ from those of two steps")


def one_step(what, source, *assets, grid=(), ranks=1):
    """By way of a Hugging Face folder and without; returns the folder and the result."""
    folder, two, one, again = new("folder"), new("two"), new("one"), new("again")
    mckpt("export", source, folder, *assets)
    mckpt("convert", "hf-to-fsdp", folder, two, *grid)
    mckpt("convert", "to-fsdp", source, one, *assets, *grid, ranks=ranks)
    same_but_tables(what, one, two)
    mckpt("verify", one)
    mckpt("export", one, again)
    expect_equal(f"{what}: exported", difference(again, folder), "")
    mckpt("verify", one, "--against", source)
    return folder, one


def sources():
    """The layouts of each program: chunks of ranks, stacks of experts, other row orders, tied heads,
    wrappers."""
    for case, grid in (("fsdp2_app", ("--dp", 3)), ("accelerate_fsdp1_sharded", ("--tp", 2, "--dp", 2)), ("torchtitan_llama3", ("--dp", 2)),
                       ("torchtitan_qwen3_moe", ("--ep", 2, "--dp", 2)), ("torchtitan_deepseek_v3", ()), ("verl_fsdp2", ()),
                       ("wrapped_compile_per_layer_tied", ("--dp", 2))):
        one_step(case, source_of(case), grid=grid)
    one_step("ranks", source_of("fsdp2_tp"), grid=("--dp", 2), ranks=2 if HAS_MPI else 1)


def stacked(whole):
    """The tensors as transformers has them in memory: the experts of a layer in two, gate rows above up rows."""
    tensors, experts = {}, collections.defaultdict(dict)
    for name, tensor in whole.items():
        front, _, rest = name.partition(".mlp.experts.")
        if not rest:
            tensors[name] = tensor
            continue
        number, leaf, _ = rest.split(".")
        experts[f"{front}.mlp.experts.{'down_proj' if leaf == 'down_proj' else 'gate_up_proj'}"][int(number), leaf] = tensor
    for name, parts in experts.items():
        dtype, (rows, columns), _ = next(iter(parts.values()))
        count = len({number for number, _ in parts})
        tensors[name] = (dtype, [count, rows * len(parts) // count, columns], b"".join(parts[key][2] for key in sorted(parts)))
    return tensors


def stacks_of_sarvam():
    """transformers has Sarvam's model as DeepSeek-V3; config.json has the hub's words or DeepSeek's."""
    model = Models("families", only=["sarvam_mla_a"])
    whole = safetensors(model.path("sarvam_mla_a"))
    folder, saved, state = new("config"), new("saved"), new("state")
    os.makedirs(folder)
    os.makedirs(state)
    tensors = stacked(whole)
    expect(len(tensors) < len(whole) / 2, "experts are not stacked")
    write_safetensors(os.path.join(state, "model.safetensors"), tensors)
    mckpt("convert", "to-dcp", os.path.join(state, "model.safetensors"), saved)
    with open(os.path.join(model.path("sarvam_mla_a"), "config.json")) as f:
        config = json.load(f)
    words = {"num_experts": "n_routed_experts", "num_shared_experts": "n_shared_experts"}
    for own in (config, {words.get(key, key): value for key, value in config.items()} | {"architectures": ["DeepseekV3ForCausalLM"]}):
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(own, f)
        exported, _ = one_step("stacks of Sarvam", saved, "--assets", folder, grid=("--tp", 2, "--ep", 4))
        expect(safetensors(exported) == whole, "stacks of Sarvam: exported others than the model's tensors")


def types():
    source = source_of("fsdp2_bare")
    one, two, folder = new("one"), new("two"), new("folder")
    how = ("--dp", 2, "--dtype", "bf16", "--dtype-rule", "*norm.weight=fp32")
    mckpt("export", source, folder)
    mckpt("convert", "hf-to-fsdp", folder, two, *how)
    mckpt("convert", "hf-to-fsdp", source, one, *how)
    same_but_tables("types", one, two)
    text = mckpt("verify", one, "--against", source)
    expect("equal" in text and "bfloat16" in text, text)


def changed_bits():
    """One bit of the result is found, with the parameter."""
    source, one = source_of("fsdp2_bare"), new("one")
    mckpt("convert", "to-fsdp", source, one)
    file = os.path.join(one, "release", "__0_0.distcp")
    with open(file, "r+b") as f:
        f.seek(os.path.getsize(file) // 2)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 4]))
    text = mckpt("verify", one, "--against", source, status=1)
    expect("module.decoder.layers" in text, text)


def original_files():
    """With the model's own folder as --assets, and its types, the files of the hub come back."""
    checkpoint, one, again = new("checkpoint"), new("one"), new("again")
    mckpt("convert", "to-dcp", TINY_MODEL, checkpoint, "--dp", 3, "--section", "app.model.")
    mckpt("convert", "to-fsdp", checkpoint, one, "--assets", TINY_MODEL, "--ep", 2, "--dp", 2)
    mckpt("export", one, again)
    expect_equal("files of the hub", difference(again, TINY_MODEL, but=("mckpt_manifest.json",)), "")
    mckpt("verify", one, "--against", TINY_MODEL)
    mckpt("verify", one, "--against", checkpoint)


def accounts():
    """The model is taken from the folder of a training run; files beside it are named, and the result may be
    made there."""
    run, report = new("run"), os.path.join(temporary.name, "report.json")
    os.makedirs(run)
    shutil.copytree(source_of("fsdp2_app"), os.path.join(run, "pytorch_model_fsdp_0"))
    shutil.copy(os.path.join(CASES, "fsdp2_app", "config.json"), run)
    for name in ("tokenizer.json", "trainer_state.json", "zero_to_fp32.py"):
        pathlib.Path(run, name).write_text("{}")
    text = mckpt("convert", "to-fsdp", run, os.path.join(run, "megatron"), "--report", report)
    with open(report) as f:
        account = json.load(f)
    tensors = len(safetensors_of("fsdp2_app"))
    expect_equal("account", [account[key] for key in ("tensors_in", "dropped", "invented")], [tensors, 0, 0])
    expect("left    " in text and "that are not of the model: " in text, text)
    expect_equal("assets", sorted(os.listdir(os.path.join(run, "megatron", "release", "hf_assets"))),
                 ["config.json", "mckpt_tensors.json", "tokenizer.json"])
    text = mckpt("convert", "to-fsdp", run, new("out"), status=3)
    expect("several checkpoints" in text and "pytorch_model_fsdp_0" in text, text)
    mckpt("convert", "to-fsdp", os.path.join(run, "pytorch_model_fsdp_0"), os.path.join(run, "second"), "--resume")


def resumed():
    """Killed while it writes, and gone on with: the result of a run that was left alone. A source that changed is refused."""
    source, whole, cut = source_of("fsdp2_app"), new("whole"), new("cut")
    mckpt("convert", "to-fsdp", source, whole, "--dp", 2)
    fault = {"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": "pwrite:3:KILL"}
    run = run_mckpt("convert", "to-fsdp", source, cut, "--dp", 2, "--no-sync", "-j1", env=fault)
    expect(run.returncode == -9 and not os.path.exists(os.path.join(cut, "release")), f"was not killed: {run.returncode}")
    text = mckpt("convert", "to-fsdp", source, cut, "--dp", 2, "--resume")
    expect("continues the unfinished output" in text, text)
    expect_equal("resumed", difference(cut, whole), "")


def ranks_share_a_file():
    source, alone, shared = source_of("fsdp2_tp"), new("alone.safetensors"), new("shared.safetensors")
    mckpt("convert", "to-safetensors", source, alone)
    mckpt("convert", "to-safetensors", source, shared, ranks=3)
    expect(filecmp.cmp(alone, shared, shallow=False), "ranks write another file")
    expect(not [name for name in os.listdir(temporary.name) if name.startswith(".shared")], "a hidden folder is left")


def safetensors_of(case):
    folder = new("counted")
    mckpt("export", source_of(case), folder)
    return safetensors(folder)


def refused():
    alone, out = new("alone"), new("out")
    shutil.copytree(source_of("fsdp2_tp"), os.path.join(alone, "inner", "checkpoint"))
    checkpoint = os.path.join(alone, "inner", "checkpoint")
    text = mckpt("convert", "to-fsdp", checkpoint, out, status=4)
    expect("MC2014" in text and "--assets HF_DIR" in text, text)
    text = mckpt("convert", "to-fsdp", checkpoint, out, "--assets", TINY_MODEL, status=3)
    expect("MC2005" in text and "the tensors and the model do not match: " in text, text)
    text = mckpt("convert", "to-fsdp", TINY_MODEL, new("megatron"), "--dp", 2)
    text = mckpt("convert", "hf-to-fsdp", os.path.join(temporary.name, "megatron"), out, "--assets", TINY_MODEL, status=3)
    expect("MC1112" in text and "convert to-fsdp" in text, text)
    cut = os.path.join(alone, "inner", "checkpoint", "__1_0.distcp")
    os.truncate(cut, os.path.getsize(cut) - 900)
    text = mckpt("convert", "to-fsdp", checkpoint, out, "--assets", os.path.join(CASES, "fsdp2_tp"), status=3)
    expect("__1_0.distcp" in text, text)
    expect(not os.path.exists(out), "a result in spite of a cut file")


def zero():
    """The ranks' flat parts of ZeRO, of which no parameter is a box: tensors of float32 under the names of the model."""
    need("torch", "numpy")
    from mckpt_tests.zero import write

    shapes = {name: tuple(shape) for name, (_, shape, _) in safetensors(TINY_MODEL).items()}
    names = list(shapes)
    for stage, ranks in ((2, 3), (3, 5)):
        folder = pathlib.Path(new(f"zero{stage}"))
        made = write(folder, stage=stage, ranks=ranks, groups=[{n: shapes[n] for n in names[::2]}, {n: shapes[n] for n in names[1::2]}])
        exported, one = one_step(f"ZeRO {stage}", folder, "--assets", TINY_MODEL, grid=("--ep", 2, "--dp", 2))
        for name, (_, _, data) in safetensors(exported).items():
            expect(data == made.want[name].numpy().tobytes(), f"ZeRO {stage}: {name} has other values")


sources()
stacks_of_sarvam()
types()
changed_bits()
original_files()
accounts()
if not SANITIZED:  # whose libraries must be loaded before any other
    resumed()
if HAS_MPI:
    ranks_share_a_file()
refused()
zero()
finish(least=240)
