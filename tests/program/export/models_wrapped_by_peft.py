"""Files of ranks of a model that PEFT wraps (verl with LoRA) are exported as the base with the adapter in it, whose alpha is in a file beside;
without it they are refused. An adapter alone (save_lora_only) is merged into the model that `--base` names."""
from mckpt_tests.checks import need

need("torch")
import json
import os
import shutil
import tarfile
import tempfile

import torch
import torch.distributed.checkpoint

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.folders import safetensors
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

WHOLE, ALONE = "A_verl_lora_t213_w2", "A_verl_lora_only_t213_w3"
PREFIX = "base_model.model."


def tensors(path):
    """name -> bfloat16 tensor of a folder with safetensors."""
    return {name: torch.frombuffer(bytearray(data), dtype=torch.bfloat16).reshape(shape) for name, (_, shape, data) in safetensors(path).items()}


def merged(saved, scale, scale_of=lambda module: None):
    """The wrapped tensors with the adapter in them: the sum in float32, rounded once. `scale_of`: another scale of a module."""
    out = {}
    for name, t in saved.items():
        if ".lora_" in name:
            continue
        module = name.removesuffix(".base_layer.weight")
        if module != name:
            a, b = saved[module + ".lora_A.default.weight"], saved[module + ".lora_B.default.weight"]
            t = (t.float() + (scale_of(module) or scale) * (b.float() @ a.float())).bfloat16()
        out[name.removeprefix(PREFIX).replace(".base_layer", "")] = t
    return out


def near(a, b):
    """Equal but for the order of a sum: neighbours in bfloat16."""
    return a.shape == b.shape and torch.allclose(a.float(), b.float(), rtol=2**-7, atol=1e-30)


def raw(source, scratch):
    out = os.path.join(scratch, "raw")
    os.makedirs(out)
    run = run_mckpt("convert", "to-safetensors", source, os.path.join(out, "model.safetensors"))
    expect(run.returncode == 0 and "mckpt export" in run.stderr + run.stdout, f"to-safetensors: {run.stderr}")
    found = tensors(out)
    shutil.rmtree(out)
    return found


def check_whole(folder, scratch):
    source, out = os.path.join(folder, "ckpt"), os.path.join(scratch, "out")
    saved = raw(source, scratch)
    expect(any(".lora_A.default." in n for n in saved), "one file has what was saved")
    wanted = merged(saved, 2.0)  # alpha 6, rank 3
    run = run_mckpt("inspect", source)
    expect(run.returncode == 0 and "adapter LORA, rank 3" in run.stdout, f"inspect: {run.stdout}")
    run = run_mckpt("export", source, out)
    expect(run.returncode == 0 and "LoRA of rank 3" in run.stdout + run.stderr, f"export: {run.stdout} {run.stderr}")
    found = tensors(out)
    expect_equal("names", sorted(found), sorted(wanted))
    for name, t in wanted.items():
        expect(near(found[name], t), f"{name} is not the merged tensor")
    changed = [n for n, t in saved.items() if n.endswith(".base_layer.weight") and torch.equal(t, found[n.removeprefix(PREFIX).replace(".base_layer", "")])]
    expect(not changed, f"not merged: {changed}")
    for command in (("verify", source), ("verify", out, "--against", source), ("diff", out, source)):
        run = run_mckpt(*command)
        expect(run.returncode == 0, f"{command}: {run.stdout} {run.stderr}")
    dcp = run_mckpt("convert", "to-dcp", source, os.path.join(scratch, "dcp"))
    expect(dcp.returncode == 0, f"to-dcp: {dcp.stderr}")
    run = run_mckpt("diff", out, os.path.join(scratch, "dcp"))
    expect(run.returncode == 0, f"the DCP folder is not the merged model: {run.stdout}")
    # Conversions merge the adapter: the numbers beside the source are in the weights of the result.
    fsdp, unlike = os.path.join(scratch, "fsdp"), os.path.join(scratch, "unlike")
    run = run_mckpt("convert", "to-fsdp", source, fsdp)
    expect(run.returncode == 0, f"to-fsdp: {run.stderr}")
    shutil.copytree(source, unlike)
    with open(os.path.join(unlike, "lora_train_meta.json"), "w") as f:
        json.dump({"r": 3, "lora_alpha": 7}, f)
    for result in (os.path.join(scratch, "dcp"), fsdp):
        for command in (("verify", result, "--against"), ("diff", result), ("diff",)):
            for other, status in ((source, 0), (unlike, 1)):
                run = run_mckpt(*command, other, *((result,) if len(command) == 1 else ()))
                expect(run.returncode == status, f"{command} {other}: {run.stdout} {run.stderr}")
    # The same run as a DCP folder: both sides are the merged model.
    wrapped = os.path.join(scratch, "wrapped")
    torch.distributed.checkpoint.save({"model": saved}, checkpoint_id=wrapped, no_dist=True)
    shutil.copy(os.path.join(source, "lora_train_meta.json"), wrapped)
    for pair in ((source, wrapped), (wrapped, source)):
        run = run_mckpt("diff", *pair, "--json")
        expect(run.returncode == 0 and json.loads(run.stdout)["equal"], f"diff {pair}: {run.stdout} {run.stderr}")
        run = run_mckpt("verify", pair[0], "--against", pair[1])
        expect(run.returncode == 0, f"verify {pair}: {run.stdout} {run.stderr}")
    with open(os.path.join(wrapped, "lora_train_meta.json"), "w") as f:
        json.dump({"r": 3, "lora_alpha": 7}, f)
    run = run_mckpt("diff", source, wrapped, "--json")
    expect(run.returncode == 1 and json.loads(run.stdout)["rows"], f"another alpha: {run.stdout} {run.stderr}")
    mcore = run_mckpt("convert", "to-mcore", source, os.path.join(scratch, "mcore"))
    expect(mcore.returncode == 0, f"to-mcore: {mcore.stderr}")
    run = run_mckpt("verify", os.path.join(scratch, "mcore"), "--against", out)
    expect(run.returncode == 0, f"torch_dist is not the merged model: {run.stdout}")
    return out


def check_alpha(folder, scratch):
    source = os.path.join(scratch, "edited")
    meta = os.path.join(source, "lora_train_meta.json")
    shutil.copytree(os.path.join(folder, "ckpt"), source)
    os.remove(meta)
    run = run_mckpt("export", source, os.path.join(scratch, "none"))
    expect(run.returncode > 0 and "MC2001" in run.stderr and "lora_train_meta.json" in run.stderr, f"no alpha: {run.stderr}")
    os.makedirs(os.path.join(source, "lora_adapter"))
    config = {"peft_type": "LORA", "r": 3, "lora_alpha": 12}
    with open(os.path.join(source, "lora_adapter", "adapter_config.json"), "w") as f:
        json.dump(config, f)
    run = run_mckpt("export", source, os.path.join(scratch, "twice"))
    expect(run.returncode == 0, f"adapter_config.json: {run.stderr}")
    wanted = merged(raw(source, scratch), 4.0)
    found = tensors(os.path.join(scratch, "twice"))
    expect(all(near(found[n], t) for n, t in wanted.items()), "the alpha of adapter_config.json is used")
    # Another config beside it may say the same in other words, and nothing else that decides the sum.
    first, second = os.path.join(source, "adapter_config.json"), os.path.join(source, "lora_adapter", "adapter_config.json")
    config_json = os.path.join(source, "config.json")
    shutil.copy(os.path.join(source, "huggingface", "config.json"), config_json)  # else the folder is an adapter's
    same = {"use_rslora": False, "alpha_pattern": {}, "target_modules": None, "base_model_name_or_path": "x", "inference_mode": True}
    for number, (more, key) in enumerate([(same, ""), ({"use_rslora": True}, "use_rslora"), ({"alpha_pattern": {"q_proj": 48}}, "alpha_pattern"),
                                          ({"rank_pattern": {"q_proj": 1}}, "rank_pattern"), ({"exclude_modules": ["q_proj"]}, "exclude_modules"),
                                          ({"layers_to_transform": [0]}, "layers_to_transform"), ({"target_modules": ["q_proj"]}, "target_modules")]):
        for one, other in ((config, config | more), (config | more, config)):
            for path, what in ((first, one), (second, other)):
                with open(path, "w") as f:
                    json.dump(what, f)
            out = os.path.join(scratch, f"second{number}")
            run = run_mckpt("export", source, out, "--overwrite")
            if key:
                expect(run.returncode > 0 and "MC2001" in run.stderr and f"'{key}'" in run.stderr and not os.path.exists(out), f"two of {key}: {run.stderr}")
            else:
                expect(run.returncode == 0, f"the same twice: {run.stderr}")
    os.remove(first), os.remove(config_json)
    with open(second, "w") as f:
        json.dump(config, f)
    with open(meta, "w") as f:
        json.dump({"r": 3, "lora_alpha": 6}, f)
    run = run_mckpt("export", source, os.path.join(scratch, "none"))
    expect(run.returncode > 0 and "lora_alpha 12" in run.stderr and "lora_alpha 6" in run.stderr, f"two alphas: {run.stderr}")
    with open(meta, "w") as f:
        json.dump({"r": 3, "lora_alpha": 0}, f)
    shutil.rmtree(os.path.join(source, "lora_adapter"))
    run = run_mckpt("export", source, os.path.join(scratch, "none"))
    expect(run.returncode > 0 and "'lora_alpha' of the adapter is not a possible number" in run.stderr, f"alpha 0: {run.stderr}")


def check_meta(folder, scratch):
    """Whatever else is in lora_train_meta.json counts as in the config of an adapter, and what is not computed is refused."""
    source, out = os.path.join(scratch, "by_meta"), os.path.join(scratch, "of_meta")
    shutil.copytree(os.path.join(folder, "ckpt"), source)
    saved = raw(source, scratch)

    def export(**more):
        with open(os.path.join(source, "lora_train_meta.json"), "w") as f:
            json.dump({"r": 3, "lora_alpha": 6, "task_type": "CAUSAL_LM", **more}, f)
        return run_mckpt("export", source, out, "--overwrite")

    of_queries = {"scale_of": lambda module: 4.0 if module.endswith(".q_proj") else None}
    for more, wanted in (({}, merged(saved, 2.0)), ({"use_rslora": True}, merged(saved, 6 / 3**0.5)), ({"use_rslora": False}, merged(saved, 2.0)),
                         ({"alpha_pattern": {"q_proj": 12}}, merged(saved, 2.0, **of_queries)), ({"alpha_pattern": {}, "peft_type": "LORA"}, merged(saved, 2.0))):
        run, found = export(**more), tensors(out)
        expect(run.returncode == 0 and all(near(found[n], t) for n, t in wanted.items()), f"{more}: another sum: {run.stderr}")
    for more in ({"velora_config": {}}, {"peft_type": "LOHA"}, {"some_new_scale": 3}, {"use_dora": True}):
        run = export(**more)
        expect(run.returncode > 0 and "MC2" in run.stderr, f"{more}: not refused: {run.stderr}")
    # verl denies what another file says only by entries that it writes.
    os.makedirs(os.path.join(source, "lora_adapter"))
    with open(os.path.join(source, "lora_adapter", "adapter_config.json"), "w") as f:
        json.dump({"peft_type": "LORA", "r": 3, "lora_alpha": 6, "use_rslora": True}, f)
    expect(export().returncode == 0, "use_rslora of adapter_config.json alone is refused")
    found = tensors(out)
    expect(all(near(found[n], t) for n, t in merged(saved, 6 / 3**0.5).items()), "use_rslora of adapter_config.json does not count")
    for more in ({"use_rslora": False}, {"use_rslora": True, "alpha_pattern": {"q_proj": 12}}):
        run = export(**more)
        expect(run.returncode > 0 and "MC2001" in run.stderr, f"{more}: against adapter_config.json: {run.stderr}")


def check_alone(folder, base, scratch):
    source = os.path.join(folder, "ckpt")
    run = run_mckpt("verify", source, "--assets", os.path.join(folder, "assets"))
    expect(run.returncode == 0, f"verify: {run.stdout}")
    run = run_mckpt("export", source, os.path.join(scratch, "alone"))
    expect(run.returncode > 0 and "--base" in run.stderr, f"without a base: {run.stderr}")
    run = run_mckpt("export", source, os.path.join(scratch, "alone"), "--base", base)
    expect(run.returncode == 0, f"with a base: {run.stderr}")
    wrapped = {PREFIX + name.replace(".weight", ".base_layer.weight"): t for name, t in tensors(base).items()}
    factors = raw(source, scratch)
    saved = {n if n.replace(".base_layer.", ".lora_A.default.") in factors else n.replace(".base_layer", ""): t for n, t in wrapped.items()}
    found = tensors(os.path.join(scratch, "alone"))
    expect(all(near(found[n], t) for n, t in merged({**saved, **factors}, 2.0).items()), "the adapter is merged into the base")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(os.path.join(DATA, "newest", "A.tar.xz")) as archive:
            members = [m for m in archive if m.name.split("/")[0] in (WHOLE, ALONE)]
            archive.extractall(scratch, members, filter="data")
        out = check_whole(os.path.join(scratch, WHOLE), scratch)
        check_alpha(os.path.join(scratch, WHOLE), scratch)
        check_meta(os.path.join(scratch, WHOLE), scratch)
        check_alone(os.path.join(scratch, ALONE), out, scratch)
    finish(60)


if __name__ == "__main__":
    main()
