"""The file of safetensors that is made of one torch file lacks wrappers of modules, a tied output layer and tensors with names of no model: it is equal to
its source in both orders, and a value that differs is found. `diff` excuses no tensor beside the model. So are two
files of one kind whose names differ by sections and wrappers."""
import os
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch", "safetensors")
import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

NAMES = ("accelerate_fsdp2_full", "wrapped_act_ckpt_module_walk", "wrapped_compile_of_act_ckpt_module_walk", "wrapped_compile_per_layer_tied",
         "wrapped_fsdp1_named_parameters")


def check(what, status, *args):
    run = run_mckpt(*args)
    expect(run.returncode == status, f"{what}: {args[0]}: {run.returncode} {run.stdout[-600:]} {run.stderr[-300:]}")
    return run.stdout


def converted(source, out):
    run = run_mckpt("convert", "to-safetensors", source, out, "-q", "--no-sync")
    expect(run.returncode == 0, f"{source}: {run.stderr}")
    tensors = load_file(out)
    name = next(n for n, t in sorted(tensors.items()) if t.is_floating_point() and t.dim() == 2)
    tensors[name].view(-1)[0] += 1
    save_file(tensors, out + ".changed.safetensors")
    return out, out + ".changed.safetensors", name


with tempfile.TemporaryDirectory() as scratch:
    for name in NAMES:
        folder = os.path.join(DATA, "own_names", name)
        source = os.path.join(folder, "checkpoint.bin")
        out, other, tensor = converted(source, os.path.join(scratch, name + ".safetensors"))
        for words in ((), ("--assets", folder)):
            for a, b in ((out, source), (source, out)):
                check(name, 0, "verify", a, "--against", b, *words)
            expect(tensor in check(name, 1, "verify", other, "--against", source, *words), f"{name}: {tensor}")
        for a, b in ((out, source), (source, out)):
            check(name, 0, "diff", a, b)
        check(name, 1, "diff", other, source)
    # A file of safetensors whose names have wrappers, and one that has one tensor more.
    wrapped, larger = os.path.join(scratch, "wrapped.safetensors"), os.path.join(scratch, "larger.safetensors")
    model = {"model.norm.weight": torch.arange(3.0), "lm_head.weight": torch.ones(4, 3)}
    save_file({f"_orig_mod.{name}": t for name, t in model.items()}, wrapped)
    save_file({**model, "model.layers.0.weight": torch.ones(2)}, larger)
    out, other, tensor = converted(wrapped, os.path.join(scratch, "unwrapped.safetensors"))
    for a, b in ((out, wrapped), (wrapped, out)):
        check("wrapped", 0, "verify", a, "--against", b)
        check("wrapped", 0, "diff", a, b)
        expect(tensor in check("wrapped", 1, "diff", other, wrapped), "wrapped: a changed value")
        told = check("one more", 1, "diff", *((larger, wrapped) if a == out else (wrapped, larger)))
        expect("1 of 3 tensors" in told and "model.layers.0.weight" in told and "_orig_mod" not in told, f"one more: {told}")
    check("wrapped", 1, "verify", other, "--against", wrapped)
    # Torch files of the model, plain, in a dict and with wrappers; and the same with a value that differs.
    names = list(model)
    forms = {"plain": model, "dict": {"state_dict": model}, "ddp": {f"module.{name}": t for name, t in model.items()},
             "compiled": {"net": {f"_orig_mod.{name}": t for name, t in model.items()}}}
    changed = os.path.join(scratch, "changed.pt")
    torch.save({**model, names[0]: torch.arange(3.0) + 1}, changed)
    for form, content in forms.items():
        torch.save(content, os.path.join(scratch, form + ".pt"))
    for one in forms:
        a = os.path.join(scratch, one + ".pt")
        for b in (os.path.join(scratch, other + ".pt") for other in forms if other != one):
            check(one, 0, "diff", a, b)
            check(one, 0, "verify", a, "--against", b)
        for sides in ((a, changed), (changed, a)):
            told = check(one, 1, "diff", *sides)
            expect("1 of 2 tensors" in told and names[0] in told, f"{one}: {told}")
    # In a folder of a model the names are the model: transformers does not look through wrappers.
    folders = []
    for name, content in (("plain", model), ("ddp", forms["ddp"])):
        folders.append(os.path.join(scratch, name + "_folder"))
        os.mkdir(folders[-1])
        torch.save(content, os.path.join(folders[-1], "pytorch_model.bin"))
        with open(os.path.join(folders[-1], "config.json"), "w") as f:
            f.write('{"model_type": "unheard_of", "architectures": ["UnheardOf"]}')
    for a, b in (folders, reversed(folders)):
        check("folders", 1, "diff", a, b)
    # Tensors and objects beside the model have a place in both files: none is passed over.
    for what, one, other in (("steps", {"state_dict": model, "steps": {"a.b": torch.ones(1)}}, {"model": model, "steps": {"a.b": torch.zeros(1)}}),
                             ("iteration", {"state_dict": model, "iteration": 10}, {"model": model, "iteration": 20}),
                             ("ema", {"state_dict": model}, {"model": model, "ema": model})):
        paths = [os.path.join(scratch, f"{what}_{i}.pt") for i in range(2)]
        for path, content in zip(paths, (one, other)):
            torch.save(content, path)
        for a, b in (paths, reversed(paths)):
            expect(what in check(what, 1, "diff", a, b), f"{what}: diff")
            expect(what in check(what, 1, "verify", a, "--against", b), f"{what}: verify")
    source = os.path.join(DATA, "pt", "views.pt")
    out, other, tensor = converted(source, os.path.join(scratch, "views.safetensors"))
    told = check("views", 0, "verify", out, "--against", source)
    expect("steps" in told and "but 1 tensor beside the model was not compared" in told, f"views: {told}")
    check("views", 1, "verify", other, "--against", source)
    for a, b in ((out, source), (source, out)):
        expect("steps" in check("views", 1, "diff", a, b), "views: diff")
finish(100)
