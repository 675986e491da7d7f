"""`verify --assets HF_DIR` without --against: names and shapes are compared with those that the model's folder says, as an export
does, for checkpoints of every kind that have no config.json of their own.
"""
import json
import os
import pathlib
import shutil

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

folder = scratch()
CONFIG = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "head_dim": 6, "hidden_size": 24, "intermediate_size": 22,
          "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "tie_word_embeddings": True, "vocab_size": 53,
          "hidden_act": "silu", "rms_norm_eps": 1e-06, "max_position_embeddings": 128}
ZERO = os.path.join(DATA, "zero", "zero3_tied_w2")
LOCAL = os.path.join(DATA, "own_names", "accelerate_fsdp1_local")


def assets(name, base=CONFIG, **entries):
    """A folder with no more than the model's config.json."""
    out = pathlib.Path(folder.name, name)
    out.mkdir()
    (out / "config.json").write_text(json.dumps({**base, **entries}))
    return out


def verified(path, model, status, check, verdict, *texts):
    run = run_mckpt("verify", path, "--assets", model)
    lines = (run.stdout + run.stderr).splitlines()
    expect(run.returncode == status and lines[-1] == f"{path}: {verdict}", f"{path} {model}: {run.returncode} {lines}")
    for text in (check, *texts):
        expect(any(text in line for line in lines), f"{text!r} is not in {lines}")


def of_own_names():
    model = assets("model")
    verified(ZERO, model, 0, "pass  model    97 tensors      config.json has them all", "sound")
    verified(ZERO, assets("deeper", num_hidden_layers=3), 1, "FAIL  model", "1 check failed", "problem[MC2005]",
             "the tensors and the model do not match: 11 missing; missing: model.layers.2.")
    verified(ZERO, assets("wider", intermediate_size=26), 1, "FAIL  model", "1 check failed", "problem[MC2005]",
             "the tensors and the model do not match: 6 wrong shape", "wrong shape: model.layers.0.mlp.gate_proj.weight: expected [26, 24], found [22, 24]")
    verified(ZERO, assets("shallow", num_hidden_layers=1), 0, "warn  model", "sound, with warnings", "warning[MC2005]",
             "the checkpoint has tensors beside those of", "model.layers.1.self_attn.q_proj.weight")
    verified(ZERO, assets("unknown", model_type="nobody_knows_it"), 0, "-     model    not compared with config.json",
             "sound, but config.json was not compared")
    # Flat pieces have the shapes of their tensors from the model.
    with open(os.path.join(LOCAL, "config.json")) as f:
        config = json.load(f)
    local = os.path.join(LOCAL, "checkpoint")
    verified(local, LOCAL, 0, "pass  model", "sound")
    verified(local, assets("local", config, num_hidden_layers=config["num_hidden_layers"] + 1), 1, "FAIL  model", "1 check failed")


def of_settings():
    """Settings that names and shapes do not show are compared with the config that the checkpoint has of its
    own, as verl's has."""
    source = os.path.join(DATA, "rank_files", "verl1st_w3")
    with open(os.path.join(source, "huggingface", "config.json")) as f:
        config = json.load(f)
    verified(source, assets("same", config, transformers_version="1", use_cache=False), 0, "pass  model", "sound")
    verified(source, assets("rope", config, rope_parameters={"rope_theta": 12345.5, "rope_type": "default"}, hidden_act="gelu", bos_token_id=7), 0, "warn  model", "sound, with warnings",
             f"warning[MC2015]: the config.json of --assets has other settings than {source}/huggingface/config.json: "
             "hidden_act gelu, and silu there; rope_theta 12345.5, and 10000.0 there")
    # Without one, verify says what was not compared.
    verified(ZERO, folder.name + "/model", 0, "config.json has them all; names and shapes, not the settings of config.json", "sound")


def of_megatron():
    """Also of a folder that another program saved: without what mckpt puts beside its own."""
    for mode, check in (("to-pt", "ranks"), ("to-mcore", "model"), ("hf-to-fsdp", "model")):
        run = os.path.join(folder.name, mode)
        run_mckpt("convert", mode, TINY_MODEL, run, "--tp", "2", "-q", "--no-sync")
        shutil.rmtree(os.path.join(run, "release", "hf_assets"))
        os.remove(os.path.join(run, "release", "mckpt_manifest.json"))
        verified(run, TINY_MODEL, 0, f"pass  {check}", "sound")
        verified(run, folder.name + "/model", 1, f"FAIL  {check}", "1 check failed")
    # Without --assets the ranks' files cannot be compared.
    expect("but the ranks were not compared" in run_mckpt("verify", os.path.join(folder.name, "to-pt")).stdout, "ranks were compared")


def refused():
    for path, status, text in (("/nowhere", 3, "MC1001"), (DATA, 3, "config.json was not found")):
        run = run_mckpt("verify", ZERO, "--assets", path)
        expect(run.returncode == status and text in run.stderr and not run.stdout, f"{path}: {run.returncode} {run.stderr}")
    verified(TINY_MODEL, TINY_MODEL, 0, "pass  model    45 tensors", "sound; no checksums to compare")
    run = run_mckpt("verify", ZERO, "--source-tp", "2")
    expect(run.returncode == 2 and "only with --against" in run.stderr, run.stderr)


of_own_names()
of_settings()
of_megatron()
refused()
finish(40)
