"""The save of verl for a run of Megatron with PEFT. Where the weights are as Hugging Face has them, they are
the adapter alone, beside a config and a tokenizer: every command takes the folder as that adapter. Where they
are shards, the adapter is in them, beside a base that was not trained: never exported as if it were the
model.

The folders are from verl's own manager (test_data/newest, M_verl2_*), with the entries that it writes into
its list for PEFT, and keys as Megatron-Bridge 0.6.2 has them."""

import json
import os
import shutil
import tarfile
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.folders import safetensors
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch", "numpy", "safetensors")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

HF = "model/huggingface"
LAYERS, HIDDEN, RANK, ALPHA = 4, 24, 3, 6
MODULES = {"q_proj": 40, "k_proj": 20, "v_proj": 20}


def told(status, texts, *args, absent=()):
    run = run_mckpt(*args)
    out = run.stdout + run.stderr
    expect(run.returncode == status, f"{args[:2]}: exit status {run.returncode}, want {status}: {out[-1500:]}")
    for text in texts:
        expect(text in out, f"{args[:2]}: {text!r} is not in {out[-1500:]}")
    for text in absent:
        expect(text not in out, f"{args[:2]}: {text!r} is in {out[-1500:]}")
    return run


def factors():
    random = torch.Generator().manual_seed(7)
    out = {}
    for layer in range(LAYERS):
        for module, rows in MODULES.items():
            name = f"base_model.model.model.layers.{layer}.self_attn.{module}"
            out[f"{name}.lora_A.weight"] = torch.randint(-4, 5, (RANK, HIDDEN), generator=random).to(torch.float32) / 4
            out[f"{name}.lora_B.weight"] = torch.randint(-4, 5, (rows, RANK), generator=random).to(torch.float32) / 4
    return out


def write_adapter(folder):
    os.makedirs(folder)
    save_file(factors(), os.path.join(folder, "adapter_model.safetensors"))
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "target_modules": list(MODULES), "task_type": "CAUSAL_LM", "bias": "none"}
    with open(os.path.join(folder, "adapter_config.json"), "w") as f:
        json.dump(config, f)


def write_shards(folder, keys):
    """torch_dist of these keys, as Megatron-Core saves it: with its common state as an object."""
    mark = os.path.join(folder, "metadata.json")
    with open(mark) as f:
        text = f.read()
    shutil.rmtree(folder)
    dcp.save({**keys, "common_state/shard_0_1": {"checkpoint_version": 3.0}}, checkpoint_id=folder, no_dist=True)
    with open(mark, "w") as f:
        f.write(text)


def list_contents(actor, **entries):
    """The entries of verl's list with PEFT."""
    path = os.path.join(actor, "ckpt_contents.json")
    with open(path) as f:
        contents = json.load(f)
    contents["backend"]["peft"] = True
    contents["contents"].update(entries)
    with open(path, "w") as f:
        json.dump(contents, f)


def adapter_keys():
    at = "decoder.layers.self_attention.linear_qkv.adapter."
    return {at + "linear_in.weight": torch.ones(LAYERS, RANK, HIDDEN, dtype=torch.bfloat16), at + "linear_out.weight": torch.ones(LAYERS, 80, RANK, dtype=torch.bfloat16)}


def as_hugging_face(work, base):
    """The adapter alone: its factors are merged into a base that the caller names."""
    actor = os.path.join(work, "hf", "global_step_7", "actor")
    shutil.copytree(os.path.join(work, "M_verl2_w2/ckpt/global_step_7/actor"), actor)
    shutil.rmtree(os.path.join(actor, HF), ignore_errors=True)
    os.makedirs(os.path.join(actor, HF))
    shutil.copy(os.path.join(base, "config.json"), os.path.join(actor, HF))
    write_adapter(os.path.join(actor, HF, "adapter"))
    write_shards(os.path.join(actor, "model/dist_ckpt"), adapter_keys())
    list_contents(actor, model={"path": HF, "format": "huggingface", "backend": "mbridge", "peft_adapter_path": HF + "/adapter"},
                  peft_adapters={"path": "model/dist_ckpt", "format": "megatron_dist_checkpoint"})
    told(0, ["adapter LORA, rank 3", HF + "/adapter (ckpt_contents.json)", "verl actor, step 7", "optimizer/dist_ckpt"], "inspect", actor)
    told(0, ["sound", "not the model that it changes"], "verify", actor, "--assets", base)
    out = os.path.join(work, "merged")
    told(3, ["an adapter: L", "--base"], "export", actor, out)
    told(0, ["12 of 47 tensors changed"], "export", actor, out, "--base", base, "--no-sync")
    told(0, ["equal"], "verify", out, "--against", actor, "--base", base)
    run = os.path.join(work, "hf")
    with open(os.path.join(run, "latest_checkpointed_iteration.txt"), "w") as f:
        f.write("7")
    for folder in (run, os.path.join(run, "global_step_7")):  # they lead to the actor
        told(0, ["adapter LORA, rank 3"], "inspect", folder)
        told(0, ["equal"], "diff", folder, out, "--base", base)
    of_base = {name: torch.frombuffer(bytearray(data), dtype=torch.bfloat16).reshape(shape) for name, (_, shape, data) in safetensors(base).items()}
    merged = {name: torch.frombuffer(bytearray(data), dtype=torch.bfloat16).reshape(shape) for name, (_, shape, data) in safetensors(out).items()}
    pairs = factors()
    for name, weight in of_base.items():
        front = f"base_model.model.{name.removesuffix('.weight')}"
        if front + ".lora_A.weight" in pairs:
            delta = pairs[front + ".lora_B.weight"] @ pairs[front + ".lora_A.weight"] * (ALPHA / RANK)
            weight = (weight.to(torch.float32) + delta).to(torch.bfloat16)
        expect(torch.equal(merged[name], weight), f"{name} of the merged model")


def as_shards(work, base):
    """The base with the adapter in it, alone and with the adapter in PEFT's form beside."""
    actor = os.path.join(work, "shards")
    shutil.copytree(os.path.join(work, "M_verl2_w2/ckpt/global_step_7/actor"), actor)
    keys = os.path.join(work, "keys")
    told(0, [], "convert", "to-mcore", base, keys, "--no-sync")
    reader = dcp.FileSystemReader(next(os.path.join(keys, name) for name in os.listdir(keys) if os.path.isdir(os.path.join(keys, name))))
    weights = {key: torch.empty(e.size, dtype=e.properties.dtype) for key, e in reader.read_metadata().state_dict_metadata.items() if hasattr(e, "size")}
    dcp.load(weights, storage_reader=reader, no_dist=True)
    write_shards(os.path.join(actor, "model/dist_ckpt"), weights | adapter_keys())
    list_contents(actor)
    said = "2 tensors of an adapter of Megatron-Bridge"
    told(0, ["2 tensors of Megatron-Bridge, not merged into the base"], "inspect", actor)
    told(0, ["sound", said + " beside the base are not compared"], "verify", actor, "--assets", base)
    told(3, ["MC1224", said, "does not say what the adapter is multiplied by", "save_contents"], "export", actor, os.path.join(work, "out"), "--assets", base)
    expect(not os.path.exists(os.path.join(work, "out")), "the base is not exported as if it were the model")
    os.makedirs(os.path.join(actor, HF), exist_ok=True)
    shutil.copy(os.path.join(base, "config.json"), os.path.join(actor, HF))
    write_adapter(os.path.join(actor, HF, "adapter"))
    list_contents(actor, hf_model={"path": HF, "format": "huggingface", "note": ["x"]}, peft_adapters={"path": "model/dist_ckpt", "format": "megatron_dist_checkpoint"})
    told(0, ["not merged into the base", "beside this checkpoint, not shown: model/huggingface/adapter"], "inspect", actor)
    adapter = os.path.join(actor, HF, "adapter")
    told(3, ["MC1224", said, f"mckpt export {adapter} OUT merges it, with --base"], "export", actor, os.path.join(work, "out"), "--assets", base)
    told(0, ["12 of 47 tensors changed"], "export", adapter, os.path.join(work, "out"), "--base", base, "--no-sync")


def main():
    with tempfile.TemporaryDirectory(prefix="mckpt_verl_peft_") as work:
        with tarfile.open(os.path.join(DATA, "newest", "M.tar.xz")) as tar:
            tar.extractall(work, [m for m in tar if m.name.startswith(("M_verl2_w2/", "M_verl2_both_w2/"))], filter="data")
        base = os.path.join(work, "M_verl2_both_w2/ckpt/global_step_7/actor", HF)
        as_hugging_face(work, base)
        as_shards(work, base)
    finish(60)


if __name__ == "__main__":
    main()
