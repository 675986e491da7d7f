"""Damage that real runs are known to leave, made with torch in checkpoints of real runs: `verify` names it and says what to do,
`convert reshard` and `export` refuse it before anything is written, and the flags that take it as it is do so.
"""

import os

from mckpt_tests.checks import expect_equal, need
from mckpt_tests.golden import finish
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch")
import argparse  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
import pickle  # noqa: E402
import shutil  # noqa: E402
import tempfile  # noqa: E402

import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from mckpt_tests.ranks import load_whole  # noqa: E402

models = Models()
scratch = tempfile.TemporaryDirectory(prefix="mckpt_damage_")
SOURCE = os.path.join(DATA, "dcp", "fsdp_dtensor_optim")  # a real save of tiny_llama1 by three ranks
STATE, META = "optimizer.state.module.module.module.", "optimizer.param_to_group_meta.module.module.module."
QKV, FC1 = "decoder.layers.0.self_attention.linear_qkv.weight", "decoder.layers.0.mlp.linear_fc1.weight"


def path(name):
    return os.path.join(scratch.name, name)


def mckpt(*args):
    run = run_mckpt(*args, timeout=60)
    return run.returncode, run.stdout + run.stderr


def saved(name, state):
    dcp.save(state, storage_writer=dcp.FileSystemWriter(path(name), sync_files=False), no_dist=True)
    return path(name)


def expect(what, got, want):
    expect_equal(what, [got], [want])


def check(name, folder, model, code, words, warning=False, harms_weights=False, flags=()):
    """`flags`: what reshard takes it with."""
    status, told = mckpt("verify", "--json", folder)
    findings = [f for f in json.loads(told)["findings"] if f["code"] == code]
    expect(f"{name}: verify: {told[-600:]}", [status, bool(findings)], [0 if warning else 1, True])
    expect(f"{name}: warnings", {f["warning"] for f in findings}, {warning})
    said = " ".join(f"{f['tensor']} {f['message']} {f['help']}" for f in findings)
    for word in words:
        expect(f"{name}: '{word}' in {said}", word in said, True)
    assets = ["--assets", models.path(model), "--no-sync"]
    refused = not warning
    for command, harmed in ((["convert", "reshard"], refused), (["export"], refused and harms_weights)):
        out = path("out")
        status, told = mckpt(*command, folder, out, *assets)
        expect(
            f"{name}: {command[-1]}: {told}",
            [status, f"error[{code}]" in told, os.path.exists(out)],
            [3, True, False] if harmed else [0, False, True],
        )
        shutil.rmtree(out, ignore_errors=True)
    for flag in flags:
        status, told = mckpt("convert", "reshard", folder, path("out"), *assets, *flag)
        expect(f"{name}: {flag}: {told}", status, 0)
        status, told = mckpt("verify", path("out"), "--against", models.path(model), "--params-dtype", "auto")
        expect(f"{name}: {flag}: {told}", status, 0)
        shutil.rmtree(path("out"))


def without(name, *lost):
    state = load_whole(SOURCE)
    for key in lost:
        del state[key]
    return saved(name, state)


def lost_states():
    take = [["--weights-only"], ["--accept", "MC1311"]]
    check(
        "a moment alone",
        without("moment", f"{STATE}{QKV}.exp_avg_sq"),
        "tiny_llama1",
        "MC1311",
        [QKV, "no exp_avg_sq", "--weights-only"],
        flags=take,
    )
    check(
        "no states of a parameter",
        without("stateless", f"{STATE}{QKV}.exp_avg", f"{STATE}{QKV}.exp_avg_sq"),
        "tiny_llama1",
        "MC1311",
        [QKV, "has no optimizer state"],
        flags=take,
    )
    check(
        "half of the states",
        without("half", f"{STATE}{FC1}_v.exp_avg", f"{STATE}{FC1}_v.exp_avg_sq"),
        "tiny_llama1",
        "MC1311",
        [f"{FC1}_w.exp_avg", "other half"],
        flags=take,
    )
    folder = without("weight_half", f"model.module.{FC1}_v")
    check("half of a weight", folder, "tiny_llama1", "MC1311", [f"{FC1}_w", "other half"], harms_weights=True)
    # An optimizer with plain tensors: the piece of one rank stands for the whole.
    state = load_whole(SOURCE)
    for moment in ("exp_avg", "exp_avg_sq"):
        state[f"{STATE}{QKV}.{moment}"] = state[f"{STATE}{QKV}.{moment}"][:5].clone()
    check(
        "a piece for the whole",
        saved("piece", state),
        "tiny_llama1",
        "MC1311",
        [QKV, "[5, 12]", "--rank-states"],
        flags=[["--weights-only"]],
    )
    expect(
        "a piece for the whole cannot be accepted",
        mckpt("convert", "reshard", path("piece"), path("out"), "--assets", models.path("tiny_llama1"), "--accept", "MC1311")[0],
        3,
    )


def mixed_saves():
    folder = shutil.copytree(SOURCE, path("mixed"))
    metadata = dcp.FileSystemReader(folder).read_metadata()
    patched = 0
    for at, info in metadata.storage_data.items():
        if not at.fqn.endswith(".step") or info.relative_path != "__1_0.distcp":
            continue
        record = io.BytesIO()
        torch.save(9, record)
        expect("the record has the same size", len(record.getvalue()), info.length)
        with open(os.path.join(folder, info.relative_path), "r+b") as f:
            f.seek(info.offset)
            f.write(record.getvalue())
        patched += 1
    expect("objects in the file", patched > 0, True)
    check(
        "files of two saves",
        folder,
        "tiny_llama1",
        "MC1315",
        ["9 steps", "7 in", "different saves"],
        harms_weights=True,
        flags=[["--accept", "MC1315"]],
    )
    left = shutil.copytree(SOURCE, path("left"))
    shutil.copy(os.path.join(left, "__2_0.distcp"), os.path.join(left, "__3_0.distcp"))
    check("a file left over", left, "tiny_llama1", "MC1315", ["left by another save"], warning=True)
    renamed = shutil.copytree(SOURCE, path("iter_0000012"))
    check("a folder of another name", renamed, "tiny_llama1", "MC1315", ["iteration 12", "iteration 7"], warning=True)


def wrong_offsets():
    """As releases of torch computed them for uneven shards."""
    folder = shutil.copytree(SOURCE, path("offsets"))
    file = os.path.join(folder, ".metadata")
    with open(file, "rb") as f:
        metadata = pickle.load(f)
    tensor = metadata.state_dict_metadata["model.module.embedding.word_embeddings.weight"]
    old, new = tensor.chunks[2].offsets, torch.Size([25, 0])
    tensor.chunks[2] = type(tensor.chunks[2])(new, tensor.chunks[2].sizes)
    metadata.storage_data = {
        (
            type(at)(at.fqn, new, at.index)
            if at.fqn.endswith("word_embeddings.weight") and at.offset == old and at.fqn.startswith("model.")
            else at
        ): info
        for at, info in metadata.storage_data.items()
    }
    with open(file, "wb") as f:
        pickle.dump(metadata, f)
    check("overlapping chunks", folder, "tiny_llama1", "MC1305", ["overlap", "newer torch"], harms_weights=True)
    status, told = mckpt("export", folder, path("out"), "--assets", models.path("tiny_llama1"), "--accept", "MC1305")
    expect(f"no flag takes them: {told}", [status, "MC1311, MC1312, MC1313, MC1315, MC1317, MC2015 or MC2017" in told], [2, True])


def expert_biases():
    """As the real run on two expert-parallel ranks leaves gpt-oss: both ranks number their biases from 0."""
    status, told = mckpt("convert", "hf-to-fsdp", models.path("gpt_oss"), path("gpt_oss"), "--params-dtype", "auto", "--no-sync")
    expect(told, status, 0)
    state = load_whole(os.path.join(path("gpt_oss"), "release"))
    for key in list(state):
        stem, bias, number = key.rpartition(".bias")
        if bias and ".experts." in key:
            if int(number) >= 8:
                state[f"{stem}.bias{int(number) - 8}"] = state.pop(key)
    check(
        "expert biases",
        saved("biases", state),
        "gpt_oss",
        "MC1312",
        ["not renumbered", "2 expert-parallel ranks", "8 of 16 experts are lost"],
        harms_weights=True,
    )


def stages():
    assets = ["--assets", models.path("tiny_dense2"), "--no-sync"]
    folder = os.path.join(DATA, "dcp", "damaged_pp2")
    status, told = mckpt("verify", folder)
    expect(
        f"stages: {told}", [status, "numbered its layers from 0" in told, "help: save with Megatron's ckpt_format torch_dist" in told], [1, True, True]
    )
    for flags, code in ((), "MC1313"), (["--accept", "MC1313"], "MC2005"):  # layer 1 is not there
        for command in (["export"], ["convert", "reshard"]):
            status, told = mckpt(*command, folder, path("out"), *assets, *flags)
            expect(f"stages: {command}: {told}", [status, code in told, os.path.exists(path("out"))], [3, True, False])
    # Stages that counted on lose nothing, and show that all layers are there.
    state = load_whole(SOURCE)
    state["args"] = argparse.Namespace(num_layers=1, pipeline_model_parallel_size=2, tensor_model_parallel_size=1)
    check("stages that counted on", saved("counted_on", state), "tiny_llama1", "MC1313", ["all layers are stored"], warning=True)
    state["args"].num_layers = 2
    check("fewer layers than the run had", saved("fewer", state), "tiny_llama1", "MC1313", ["2 layers, but only 1"], harms_weights=True)
    for command in (["export"], ["convert", "reshard"]):
        status, told = mckpt(
            *command, path("fewer"), path("out"), "--assets", models.path("tiny_llama1"), "--no-sync", "--accept", "MC1313"
        )
        expect(f"fewer layers: {told}", status, 0)
        shutil.rmtree(path("out"))


lost_states()
mixed_saves()
wrong_offsets()
expert_biases()
stages()
finish(104)
