"""torch itself loads the result of `convert to-dcp`: into one process, into a file, and into the nested dicts
that were saved; with optimizer states, objects, and tensors that torch stored at strides.
"""

import json
import os
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish, need
from mckpt_tests.models import GOLDEN
from mckpt_tests.program import run_mckpt

need("torch", "safetensors")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save  # noqa: E402

scratch = tempfile.TemporaryDirectory(prefix="mckpt_dcp_")
made = 0
torch.manual_seed(11)


def new(name):
    global made
    made += 1
    return os.path.join(scratch.name, f"{name}_{made}")


def mckpt(*args):
    run = run_mckpt(*args, "--no-sync", "-j2")
    expect(run.returncode == 0, f"{args}: {run.stderr}")
    return run.stderr


def flat(value, path=()):
    if isinstance(value, dict):
        return {p: v for key, inner in value.items() for p, v in flat(inner, (*path, key)).items()}
    if isinstance(value, list):
        return {p: v for i, inner in enumerate(value) for p, v in flat(inner, (*path, i)).items()}
    return {path: value}


def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    return type(a) is type(b) and a == b


def expect_state(what, got, want):
    got, want = flat(got), flat(want)
    expect_equal(what, sorted(map(str, got)), sorted(map(str, want)))
    expect_equal(what, [path for path in want if not same(got.get(path), want[path])], [])


def saved_by_torch(folder):
    file = new("file.pt")
    dcp_to_torch_save(folder, file)
    return torch.load(file, weights_only=False)


def loaded_by_torch(folder, state):
    """dcp.load into a state dict of the same form, whose tensors are zero."""
    empty = {key: loaded_form(value) for key, value in state.items()}
    dcp.load(empty, storage_reader=dcp.FileSystemReader(folder), no_dist=True)
    return empty


def loaded_form(value):
    if isinstance(value, dict):
        return {key: loaded_form(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [loaded_form(inner) for inner in value]
    return torch.zeros_like(value) if isinstance(value, torch.Tensor) else value


def check(what, folder, state):
    expect_state(f"{what}, dcp_to_torch_save", saved_by_torch(folder), state)
    expect_state(f"{what}, dcp.load", loaded_by_torch(folder, state), state)


def training_state():
    model = torch.nn.Sequential()
    for name, module in (("embed_tokens", torch.nn.Embedding(13, 6)), ("proj", torch.nn.Linear(6, 10)), ("norm", torch.nn.LayerNorm(10))):
        model.add_module(name, module)
    optim = torch.optim.AdamW(model.parameters(), lr=0.125)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optim.step()
    names = [name for name, _ in model.named_parameters()]
    states = {f"model.{names[i]}": dict(state) for i, state in optim.state_dict()["state"].items()}
    groups = [{**group, "params": [f"model.{name}" for name in names], "betas": list(group["betas"])} for group in optim.state_dict()["param_groups"]]
    weights = {f"model.{name}": value.detach() for name, value in model.state_dict().items()}
    return {"model": weights, "optimizer": {"state": states, "param_groups": groups}, "step": 7, "note": "kept"}


def of_dcp():
    state = training_state()
    source = new("saved")
    dcp.save(state, storage_writer=dcp.FileSystemWriter(source, sync_files=False), no_dist=True)
    for ranks in (1, 3, 20):
        out = new("dcp")
        mckpt("convert", "to-dcp", source, out, "--dp", ranks)
        check(f"{ranks} ranks", out, state)
    out = new("weights")
    mckpt("convert", "to-dcp", source, out, "--weights-only")
    check("weights only", out, {key: value for key, value in state.items() if key != "optimizer"})
    flat_source, out = new("flat"), new("dcp")
    flat_state = {f"model.layers.{i}.w": torch.randn(3, 5) for i in range(3)}
    dcp.save(flat_state, storage_writer=dcp.FileSystemWriter(flat_source, sync_files=False), no_dist=True)
    mckpt("convert", "to-dcp", flat_source, out, "--dp", "2")
    check("names that are no nesting", out, flat_state)


def of_another_type():
    """--dtype casts the model's floats alone, and verify compares two DCP folders after that cast."""
    state = training_state()
    state["model"]["model.seen"] = torch.arange(3)
    source, narrow, bare, half = new("saved"), new("narrow"), new("bare"), new("half")
    dcp.save(state, storage_writer=dcp.FileSystemWriter(source, sync_files=False), no_dist=True)
    mckpt("convert", "to-dcp", source, narrow, "--dp", "2", "--dtype", "bf16")
    cast = {name: value.to(torch.bfloat16) if value.is_floating_point() else value for name, value in state["model"].items()}
    check("bf16", narrow, {**state, "model": cast})
    dcp.save(state["model"], storage_writer=dcp.FileSystemWriter(bare, sync_files=False), no_dist=True)
    mckpt("convert", "to-dcp", bare, half, "--dtype", "fp16")
    check("fp16", half, {name: value.half() if value.is_floating_point() else value for name, value in state["model"].items()})
    off = {name: value.clone() for name, value in cast.items()}
    off["model.norm.bias"][3] += 1
    wrong, states = new("wrong"), new("states")
    dcp.save({**state, "model": off}, storage_writer=dcp.FileSystemWriter(wrong, sync_files=False), no_dist=True)
    rounded = {name: {key: value.to(torch.bfloat16) for key, value in of.items()} for name, of in state["optimizer"]["state"].items()}
    dcp.save({**state, "model": cast, "optimizer": {**state["optimizer"], "state": rounded}},
             storage_writer=dcp.FileSystemWriter(states, sync_files=False), no_dist=True)
    for tested, other, dtype, end in ((narrow, source, "bf16", "equal"), (half, bare, "fp16", "equal"), (narrow, source, "fp16", "not equal"),
                                      (wrong, source, "bf16", "not equal"), (states, source, "bf16", "not equal")):
        done = run_mckpt("verify", tested, "--against", other, "--dtype", dtype)
        expect(done.stdout.endswith(f"{tested}: {end}\n"), f"{tested} against {other} as {dtype}: {done.stdout}")
    done = run_mckpt("verify", narrow, "--against", source)
    expect(f"{narrow}: equal after a cast that rounds" in done.stdout, f"cast that nobody asked for: {done.stdout}")


def of_hugging_face():
    model = os.path.join(os.path.dirname(GOLDEN), "models", "tiny_qwen3_moe")
    tensors = {name: value for file in sorted(os.listdir(model)) if file.endswith(".safetensors")
               for name, value in load_file(os.path.join(model, file)).items()}
    for section, nest in (("", lambda t: t), ("app.model", lambda t: {"app": {"model": t}}), ("model.", lambda t: {"model": t})):
        out = new("dcp")
        mckpt("convert", "to-dcp", model, out, "--dp", "3", *(["--section", section] if section else []))
        check(f"section '{section}'", out, nest(tensors))
    back = new("back.safetensors")
    mckpt("convert", "to-safetensors", out, back)
    expect_state("and back", load_file(back), tensors)


def at_strides():
    """Tensors that are not stored row by row, in several files of each kind."""
    state = {"model.a.weight": torch.randn(300, 70).t(), "model.b.weight": torch.arange(24.0).reshape(4, 6)[:, ::2],
             "model.c.weight": torch.randn(50, 70, 110).permute(2, 0, 1).to(torch.bfloat16)}
    file, folder, want = new("model.pt"), new("dcp"), {name: value.contiguous() for name, value in state.items()}
    torch.save(state, file)
    dcp.save(state, storage_writer=dcp.FileSystemWriter(folder, sync_files=False), no_dist=True)
    for source in (file, folder):
        one, cut = new("one.safetensors"), new("cut")
        mckpt("convert", "to-safetensors", source, one)
        expect_state(f"{source}, to-safetensors", load_file(one), want)
        mckpt("convert", "to-dcp", source, cut, "--dp", "3")
        check(f"{source}, to-dcp", cut, want)
        for tested, other in ((one, source), (cut, source), (source, one), (source, cut)):
            done = run_mckpt("verify", tested, "--against", other)
            expect(done.stdout.endswith(f"{tested}: equal\n"), f"{tested} against {other}: {done.stdout}")
    wide = new("wide.safetensors")
    mckpt("convert", "to-safetensors", file, wide, "--dtype", "fp32")
    done = run_mckpt("verify", wide, "--against", folder, "--dtype", "fp32")
    expect(done.stdout.endswith(f"{wide}: equal\n"), f"cast, verify: {done.stdout}")
    for tested in (file, folder):
        done = run_mckpt("verify", tested, "--against", wide)
        expect("could not" not in done.stdout and f"{tested}: equal" in done.stdout, f"{tested} against another type: {done.stdout}")
    save_file({**load_file(wide), "model.a.weight": want["model.a.weight"] + 1}, wide)
    done = run_mckpt("verify", file, "--against", wide)
    expect(done.stdout.endswith(f"{file}: not equal\n"), f"another type and other values: {done.stdout}")
    mckpt("convert", "to-safetensors", file, wide, "--dtype", "fp32", "--overwrite")
    expect_state("cast", load_file(wide), {name: value.float() for name, value in want.items()})


def file_equals_the_reference_writer():
    """One file has its tensors as the reference writer has them; only the padding of the header differs."""
    state = {"model.w": torch.randn(4, 4), "model.b": torch.randn(4).to(torch.bfloat16), "model.i": torch.arange(5)}
    source, one, own = new("dcp"), new("one.safetensors"), new("own.safetensors")
    dcp.save(state, storage_writer=dcp.FileSystemWriter(source, sync_files=False), no_dist=True)
    mckpt("convert", "to-safetensors", source, one)
    save_file(state, own, metadata={"format": "pt"})
    parts = []
    for path in (one, own):
        with open(path, "rb") as f:
            blob = f.read()
        n = int.from_bytes(blob[:8], "little")
        parts.append((blob[8:8 + n].rstrip(), blob[8 + n:]))
    expect_equal("header and data", list(parts[0]), list(parts[1]))


def two_whole_models():
    """Two of the names that models have: nothing says which one is meant, in a DCP folder and in a file. A copy of another name, or a
    dict that lacks a tensor, leaves `model`."""
    tensors = {"model.a.weight": torch.randn(4, 4), "model.norm.weight": torch.randn(4)}
    config = new("config")
    os.mkdir(config)
    with open(os.path.join(config, "config.json"), "w") as f:
        f.write('{"model_type": "some", "architectures": ["SomeModel"]}')
    other = {name: value + 1 for name, value in tensors.items()}
    for beside, status in (("module", 3), ("state_dict", 3), ("model_state_dict", 3), ("ema", 0), ("part", 0)):
        part = beside == "part"
        state = {"module" if part else beside: dict(list(other.items())[1:]) if part else other, "model": tensors}
        folder, file = new("dcp"), new("save.pt")
        dcp.save(state, storage_writer=dcp.FileSystemWriter(folder, sync_files=False), no_dist=True)
        torch.save(state, file)
        for source in (folder, file):
            out = new("out")
            done = run_mckpt("export", source, out, "--assets", config, "--no-sync", "--json", "-q")
            expect(done.returncode == status, f"{beside}: {done.returncode}, {done.stdout[:300]} {done.stderr[:300]}")
            if status == 3:
                error = json.loads(done.stdout)["error"]
                expect(error["code"] == "MC2005" and "several dicts" in error["message"] and beside in error["found"], f"{beside}: {error}")
                mckpt("export", source, out, "--assets", config, "--model-dict", beside)
            expect_state(f"{beside}: the model", load_file(os.path.join(out, "model.safetensors")), other if status == 3 else tensors)


of_dcp()
two_whole_models()
of_another_type()
of_hugging_face()
at_strides()
file_equals_the_reference_writer()
finish(least=150)
