"""Runs of Megatron-Core whose pipeline has a layout of its own (test_data/megatron_runs): MTP, the final norm, the embedding and
the output layer are on stages of their own, as its code put them there. The files of ranks, read by mckpt
with weights and states of the optimizer, equal the torch_dist that the same run saved, read by torch. Files
that no run has are refused."""

import filecmp
import glob
import os
import re
import shutil
import tarfile
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch")
import torch  # noqa: E402
from mckpt_tests.ranks import load_whole  # noqa: E402

ITERATION, FILE = "iter_0000003", "model_optim_rng.pt"
MODEL, STATE = "model.module.", "optimizer.state.module.module.module."
# The contents of each stage, by the first words of its names; layers are counted from 0 on their stage.
STAGES = {
    "stages": ["decoder.layers.0 embedding", "decoder.final_layernorm decoder.layers.0 decoder.layers.1", "embedding mtp.layers.0", "output_layer"],
    "ends": ["embedding", "decoder.final_layernorm decoder.layers.0 decoder.layers.1", "embedding mtp.layers.0", "output_layer"],
}
work = tempfile.TemporaryDirectory(prefix="mckpt_layouts_")


def at(*names):
    return os.path.join(work.name, *names)


def mckpt(*args, status=0):
    run = run_mckpt(*args, "-q", *["--no-sync"] * (args[0] != "verify"))
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stdout}{run.stderr}")
    return run.stdout + run.stderr


def load(folder, stage):
    return torch.load(os.path.join(folder, f"mp_rank_00_{stage:03d}", FILE), weights_only=False)


def has(model):
    """The first words of the names of a file's tensors."""
    return " ".join(sorted({re.match(r"(decoder|mtp)\.(layers\.\d+|\w+)|\w+", key)[0] for key, t in model.items() if isinstance(t, torch.Tensor)}))


def common_name(name):
    """The names of fused norms, and of MTP in newer versions."""
    name = name.replace("input_layernorm.", "self_attention.linear_qkv.layer_norm_").replace("pre_mlp_layernorm.", "mlp.linear_fc1.layer_norm_")
    return name.replace(".transformer_layer.", ".mtp_model_layer.")


def real_parts(folder):
    """The tensors of the real torch_dist: parameter and kind of state -> tensor, with the layers and the
    halves of gated MLPs apart."""
    out = {}
    for key, tensor in load_whole(folder).items():
        if not isinstance(tensor, torch.Tensor):
            continue
        state = re.match(r"optimizer\.state\.(\w+)\.(.*)", key)
        kind, name = (state[1], state[2]) if state else ("", key)
        layers = enumerate(tensor) if name.startswith("decoder.layers.") else [("", tensor)]
        for number, layer in layers:
            own = common_name(name.replace("decoder.layers.", f"decoder.layers.{number}."))
            if own.endswith(".linear_fc1.weight"):
                out[own + "_w", kind], out[own + "_v", kind] = layer.chunk(2)
            else:
                out[own, kind] = layer
    return out


def made_parts(folder):
    """The same of an fsdp_dtensor folder."""
    out = {}
    for key, tensor in load_whole(folder).items():
        if key.startswith(MODEL):
            out[common_name(key.removeprefix(MODEL)), ""] = tensor
        elif key.startswith(STATE):
            name, kind = key.removeprefix(STATE).rsplit(".", 1)
            out[common_name(name), kind] = tensor
    return out


def check(name):
    """The run by way of all formats, against its torch_dist."""
    folder, assets = at(name, ITERATION), at(name, "hf")
    expect_equal(f"{name}: stages", [has(load(folder, stage)["model"]) for stage in range(4)], STAGES[name])
    real = at(name, "torch_dist", ITERATION)
    mckpt("convert", "to-fsdp", folder, at(name + "_fsdp"), "--assets", assets, "--dp", 2)
    want, got = real_parts(real), made_parts(at(name + "_fsdp", ITERATION))
    expect_equal(f"{name}: tensors", sorted(got), sorted(want))
    for key, tensor in want.items():
        expect(got[key].dtype == tensor.dtype and torch.equal(got[key], tensor), f"{name}: {key}")
        expect(tensor.numel() == 1 or tensor.unique().numel() == tensor.numel(), f"{name}: {key} has a value twice")
    mckpt("convert", "to-mcore", folder, at(name + "_core"), "--assets", assets, "--tp", 2)
    mckpt("verify", at(name + "_core"), "--against", real)
    mckpt("verify", folder, "--against", real, "--assets", assets)
    for source, out in ((folder, "_hf"), (real, "_real_hf")):
        mckpt("export", source, at(name + out), "--assets", assets)
    expect(filecmp.cmp(at(name + "_hf", "model.safetensors"), at(name + "_real_hf", "model.safetensors"), shallow=False), f"{name}: exported")
    text = run_mckpt("inspect", folder).stdout
    expect("pp=4" in text and "4 files" in text, f"{name}: inspect: {text}")


def changed(name, out, change):
    """The files of ranks again: `change` gets the models of the four stages and gives those that are written."""
    shutil.copytree(at(name, "hf"), at(out, "hf_assets"))
    saves = [load(at(name, ITERATION), stage) for stage in range(4)]
    models = change([save["model"] for save in saves])
    for stage, model in enumerate(models):
        saves[stage]["args"].pipeline_model_parallel_size = len(models)
        os.makedirs(at(out, f"mp_rank_00_{stage:03d}"))
        entries = {key: value for key, value in saves[stage].items() if key not in ("model", "optimizer")}
        torch.save({**entries, "model": model}, at(out, f"mp_rank_00_{stage:03d}", FILE))
    return at(out)


def check_refusals():
    norm, output = "decoder.final_layernorm.weight", "output_layer.weight"
    word = "embedding.word_embeddings.weight"

    def another(tensor):
        return torch.cat([tensor[:-1], tensor[-1:] + 1])

    for out, name, change, says in [
        ("two_norms", "stages", lambda m: [m[0], m[1], m[2], {**m[3], norm: m[1][norm]}], ["MC1113", "several stages have the final norm", "stage 1, stage 3"]),
        ("two_mtps", "stages", lambda m: [m[0], m[1], m[2], {**m[2], **m[3]}], ["MC1113", "several stages have MTP", "stage 2, stage 3"]),
        ("two_outputs", "stages", lambda m: [m[0], m[1], {**m[2], **m[3]}, m[3]], ["MC1113", "several stages have the output layer", "stage 2, stage 3"]),
        ("no_norm", "stages", lambda m: [m[0], {k: v for k, v in m[1].items() if k != norm}, m[2], m[3]], ["MC2005", f"mp_rank_00_003: {norm}"]),
        ("no_copy", "stages", lambda m: [m[0], m[1], {k: v for k, v in m[2].items() if k != word}, m[3]], ["MC2005", f"mp_rank_00_002: {word}"]),
        ("no_output", "ends", lambda m: [m[0], m[1], m[2], {}], ["MC2005", f"mp_rank_00_003: {output}"]),
        ("other_copy", "stages", lambda m: [m[0], m[1], {**m[2], word: another(m[2][word])}, m[3]], ["MC1113", f"mp_rank_00_002/model.{word} differs"]),
        ("other_output", "ends", lambda m: [m[0], m[1], m[2], {output: another(m[3][output])}], ["MC1113", f"mp_rank_00_003/model.{output} differs"]),
    ]:
        folder = changed(name, out, change)
        text = mckpt("export", folder, at("no"), status=3)
        expect(all(part in text for part in says) and not os.path.exists(at("no")), f"{out}: {text}, without {says}")
        text = mckpt("verify", folder, status=1)
        expect(says[0] in text, f"verify {out}: {text}")


def check_sizes():
    """Args that say other sizes than the tensors have, in both formats; and a config.json without the MTP that the files have."""
    for name, value, own in (("mtp_num_layers", 2, 1), ("mtp_num_layers", None, 1), ("num_layers", None, 3)):
        for form, pattern in (("ranks", "mp_rank_*/" + FILE), ("dist", "common.pt")):
            folder, out = at(f"{name}_{value}_{form}"), at(f"{name}_{value}_{form}_out")
            shutil.copytree(at("stages", ITERATION) if form == "ranks" else at("stages", "torch_dist", ITERATION), folder)
            shutil.copytree(at("stages", "hf"), os.path.join(folder, "hf_assets"))
            for path in glob.glob(os.path.join(folder, pattern)):
                saved = torch.load(path, weights_only=False)
                setattr(saved["args"], name, value)
                torch.save(saved, path)
            text = mckpt("verify", folder, status=1)
            expect("MC1312" in text and (f"expected {name} {own}, as in the tensors and config.json, found {name} {value}" in text or form == "dist"), f"{folder}: {text}")
            mckpt("convert", "to-pt", folder, out, "--accept", "MC1312")
            args = torch.load(os.path.join(out, "release", "mp_rank_00", FILE), weights_only=False)["args"]
            expect(getattr(args, name) == own, f"{folder}: {name} of the result: {getattr(args, name)}")
    config = at("config_without_mtp")
    shutil.copytree(at("stages", "hf"), config)
    with open(os.path.join(config, "config.json")) as f:
        text = re.sub(r',\s*"mtp_num_hidden_layers": 1', "", f.read())
    with open(os.path.join(config, "config.json"), "w") as f:
        f.write(text)
    text = mckpt("convert", "to-mcore", at("stages", ITERATION), at("no"), "--assets", config, status=3)
    expect("MC2005" in text and "13 tensors that the model does not have" in text and "mp_rank_00_002: mtp.layers.0" in text, f"a config without MTP: {text}")


def check_other_layouts():
    """More layouts of the same models, with the parts where Megatron-Core 0.16.1 puts them, and the final norm where earlier
    versions had it."""
    for out, name, change in [
        ("mtp_with_output", "stages", lambda m: [m[0], m[1], {**m[2], **m[3]}]),  # Et|tt|mL
        ("mtp_with_layers", "ends", lambda m: [m[0], {**m[1], **m[2]}, m[3]]),  # E|ttm|L
        ("norm_with_output", "stages", lambda m: [m[0], {k: v for k, v in m[1].items() if "final" not in k}, m[2],
                                                  {"decoder.final_layernorm.weight": m[1]["decoder.final_layernorm.weight"], **m[3]}]),
        # A tied model computes with the embedding beside MTP: the weight of the output layer is what the run began with, or is not there.
        ("idle_output", "ends", lambda m: [m[0], m[1], {**m[2], "output_layer.weight": m[3]["output_layer.weight"] * 3}]),  # E|tt|mL
        ("no_idle_output", "ends", lambda m: [m[0], m[1], m[2]]),
    ]:
        folder = changed(name, out, change)
        mckpt("export", folder, at(out + "_hf"))
        expect(filecmp.cmp(at(out + "_hf", "model.safetensors"), at(name + "_hf", "model.safetensors"), shallow=False), f"{out}: exported")
        mckpt("verify", folder, "--against", at(name, "torch_dist", ITERATION), "--weights-only")


for run in STAGES:
    with tarfile.open(os.path.join(DATA, "megatron_runs", run + ".tar.xz")) as archive:
        archive.extractall(work.name, filter="data")
    check(run)
check_refusals()
check_sizes()
check_other_layouts()
finish(983)
