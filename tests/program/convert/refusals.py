"""The refusals of `convert hf-to-fsdp`, `export` and `verify --against`: each with its exit status, its code
and the words that say what is wrong, and with nothing written. An allowed neighbour of each is not refused. A
result that cannot be written whole does not replace an older one.
"""

import fcntl
import json
import os
import resource
import shutil
import struct
import subprocess

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import difference, scratch, snapshot
from mckpt_tests.models import Models, make_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import MCKPT

golden = Models()
folder = scratch()
SIZES = dict(layers=2, hidden=48, heads=6, kv=3, head_dim=8, ffn=96, vocab=64)


def path(name):
    return os.path.join(folder.name, name)


def refused(status, code, words, *args, **how):
    before = snapshot(folder.name)
    result = run_mckpt(*args, **how)
    what = " ".join(os.path.basename(str(a)) for a in args)
    expect(result.returncode == status, f"{what}: exit status {result.returncode}, not {status}: {result.stderr[:300]}")
    expect(f"error[{code}]" in result.stderr, f"{what}: not {code}: {result.stderr[:300]}")
    expect(all(word in result.stderr for word in words), f"{what}: lacks {words}: {result.stderr[:300]}")
    expect(snapshot(folder.name) == before, f"{what}: refused, and something was written")


def convert(*args):
    return ["convert", "hf-to-fsdp", *args]


def done(*args):
    result = run_mckpt(*args, "-q", "--no-sync")
    expect(result.returncode == 0, f"{args}: {result.stderr[:300]}")
    return result


def copy_of(source, name):
    shutil.copytree(source, path(name))
    return path(name)


def edit_config(model, **entries):
    with open(os.path.join(model, "config.json")) as f:
        config = json.load(f)
    with open(os.path.join(model, "config.json"), "w") as f:
        json.dump({k: v for k, v in (config | entries).items() if v is not None}, f)
    return model


def edit_header(model, change):
    """Changes the header of the only file: a name, or a type of the same size; the data stay where they are."""
    file = os.path.join(model, "model.safetensors")
    with open(file, "rb") as f:
        blob = f.read()
    n = struct.unpack("<Q", blob[:8])[0]
    text = json.dumps(change(json.loads(blob[8 : 8 + n]))).encode()
    with open(file, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + blob[8 + n :])
    return model


def renamed(old, new):
    return lambda header: {new if name == old else name: tensor for name, tensor in header.items()}


def eight_bits(model, name):
    """Stores one tensor as float8, which is packed values and not a type to cast from."""
    file = os.path.join(model, "model.safetensors")
    with open(file, "rb") as f:
        blob = f.read()
    n = struct.unpack("<Q", blob[:8])[0]
    header, data = json.loads(blob[8 : 8 + n]), b""
    for key, t in header.items():
        if key == "__metadata__":
            continue
        begin, end = (8 + n + at for at in t["data_offsets"])
        if key == name:
            t["dtype"], end = "F8_E4M3", begin + (end - begin) // 2
        t["data_offsets"] = [len(data), len(data) + end - begin]
        data += blob[begin:end]
    text = json.dumps(header).encode()
    with open(file, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    return model


def wrong_models(model):
    out = path("out")
    up = "model.layers.1.mlp.up_proj.weight"
    lacking = edit_header(copy_of(model, "lacking"), renamed(up, "model.layers.1.mlp.other.weight"))
    refused(3, "MC2005", [up, "mlp.other"], *convert(lacking, out))
    quantised = edit_header(
        copy_of(model, "quantised"), renamed("model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.gate_proj.weight_scale_inv")
    )
    refused(3, "MC2004", ["weight_scale_inv"], *convert(quantised, out))
    refused(
        3,
        "MC2002",
        ["unheard_of"],
        *convert(edit_config(copy_of(model, "unknown"), model_type="unheard_of", architectures=["UnheardOf"]), out),
    )
    refused(3, "MC2001", ["num_attention_heads"], *convert(edit_config(copy_of(model, "headless"), num_attention_heads=None), out))
    refused(
        3,
        "MC2005",
        ["lm_head.weight differs from model.embed_tokens.weight", "tie_word_embeddings"],
        *convert(edit_config(copy_of(model, "tied"), tie_word_embeddings=True), out),
    )
    empty = copy_of(model, "empty")
    os.remove(os.path.join(empty, "model.safetensors"))
    refused(3, "MC1001", ["no weights"], *convert(empty, out))
    refused(3, "MC1001", [], *convert(path("nowhere"), out))
    experts = make_model(path("experts"), layers=2, hidden=48, heads=6, kv=3, head_dim=8, vocab=64, experts=2, moe_ffn=16)
    both = edit_header(
        copy_of(experts, "both"), renamed("model.layers.0.mlp.experts.0.up_proj.weight", "model.layers.0.mlp.experts.gate_up_proj")
    )
    refused(4, "MC2008", ["--expert-layout"], *convert(both, out))
    refused(2, "MC0203", ["layers are lost"], *convert(model, out, "--pp", "2"))
    refused(4, "MC2006", ["--vocab-size auto", "64"], *convert(model, out, "--tp", "3", "--vocab-size", "keep"))
    refused(4, "MC2007", ["heads"], *convert(model, out, "--tp", "4"))
    refused(4, "MC2007", ["experts"], *convert(experts, out, "--ep", "4"))
    refused(2, "MC0001", ["iteration"], *convert(model, out, "--iteration", "0"))
    refused(2, "MC0001", ["iteration"], *convert(model, out, "--iteration", "10000000"))
    refused(2, "MC0001", ["--resume", "--overwrite"], *convert(model, out, "--resume", "--overwrite"))
    refused(2, "MC0001", ["--dtype"], *convert(model, out, "--dtype", "int3"))
    whole = edit_header(copy_of(model, "integers"), lambda h: {n: t | {"dtype": "I16"} if n == up else t for n, t in h.items()})
    refused(3, "MC2005", ["int16", up], *convert(whole, out))
    refused(3, "MC2004", ["float8_e4m3fn", up], *convert(eight_bits(copy_of(model, "eight"), up), out, "--dtype", "fp32"))


def wrong_checkpoints(model):
    out, checkpoint = path("hf"), path("checkpoint")
    done(*convert(model, checkpoint, "--tp", "3", "--vocab-size", "auto"))
    refused(3, "MC1112", ["safetensors folder"], "export", model, out)
    bare = copy_of(checkpoint, "bare")
    shutil.rmtree(os.path.join(bare, "release", "hf_assets"))
    refused(4, "MC2014", ["--assets"], "export", bare, out)
    done("export", bare, path("by_assets"), "--assets", model)
    other = make_model(path("narrow"), **(SIZES | dict(ffn=80)))
    refused(3, "MC2011", ["linear_fc1"], "export", checkpoint, out, "--assets", other)
    short = make_model(path("short"), **(SIZES | dict(layers=1)))
    refused(3, "MC2005", ["decoder.layers.1."], "export", checkpoint, out, "--assets", short)
    long = make_model(path("long"), **(SIZES | dict(layers=3)))
    refused(3, "MC2005", ["decoder.layers.2."], "export", checkpoint, out, "--assets", long)
    cut = copy_of(checkpoint, "cut")
    os.truncate(os.path.join(cut, "release", "__1_0.distcp"), 5000)
    refused(3, "MC1308", ["__1_0.distcp"], "export", cut, out)
    gone = copy_of(checkpoint, "gone")
    os.remove(os.path.join(gone, "release", "__1_0.distcp"))
    refused(3, "MC1302", ["__1_0.distcp"], "export", gone, out)
    unfinished = copy_of(checkpoint, "unfinished")
    os.remove(os.path.join(unfinished, "release", ".metadata"))
    refused(3, "MC1302", [".metadata"], "export", os.path.join(unfinished, "release"), out)
    refused(2, "MC0001", ["--dtype"], "export", checkpoint, out, "--dtype", "int3")
    refused(3, "MC2005", [], "verify", checkpoint, "--against", short)


def unknown_writers():
    """Mamba's fused tensors are stored rank after rank: who wrote them must be known."""
    model, checkpoint = golden.path("nemotron_h"), path("mamba")
    done(*convert(model, checkpoint, "--tp", "2", "--vocab-size", "auto"))
    done("export", checkpoint, path("mamba_told"))
    metadata = os.path.join(checkpoint, "release", ".metadata")
    with open(metadata, "rb") as f:
        blob = f.read()
    expect(blob.count(b"args") > 0, "the checkpoint has no args")
    with open(metadata, "wb") as f:
        f.write(blob.replace(b"args", b"argz"))
    os.remove(os.path.join(checkpoint, "release", "mckpt_manifest.json"))
    refused(4, "MC2013", ["--source-tp"], "export", checkpoint, path("hf"))
    done("export", checkpoint, path("mamba_given"), "--source-tp", "2")
    expect(difference(path("mamba_told"), path("mamba_given")) == "", "--source-tp gives something else than args")
    done("export", checkpoint, path("mamba_wrong"), "--source-tp", "1")
    expect(difference(path("mamba_told"), path("mamba_wrong")) != "", "--source-tp changes nothing")


def of_megatron(model):
    """Checkpoints of Megatron as the source of what makes one of a model: the commands that take them are named."""
    run, ranks = path("of_mcore"), path("of_ranks")
    done("convert", "to-mcore", model, run)
    done("convert", "to-pt", model, ranks)
    above = copy_of(run, "above")
    os.remove(os.path.join(above, "latest_checkpointed_iteration.txt"))
    os.rename(os.path.join(above, "release"), os.path.join(above, "iter_0000003"))
    for source in (run, os.path.join(run, "release"), above, ranks, path("checkpoint")):
        for assets in ([], ["--assets", model]):
            refused(3, "MC1112", ["of Megatron", "convert to-fsdp", "mckpt export"], "convert", "hf-to-fsdp", source, path("out"), *assets)
    refused(3, "MC1112", ["convert to-fsdp", "mckpt export"], "convert", "to-dcp", ranks, path("out"))


def places(model):
    """Where results go, and what is there already."""
    runs, checkpoint = path("runs"), path("checkpoint")
    before = snapshot(folder.name)
    for args in (
        convert(model, os.path.join(runs, "deep", "er"), "--iteration", "7"),
        ["export", checkpoint, os.path.join(runs, "deep", "hf")],
    ):
        for how in ([], ["--overwrite"], ["--resume"]):
            result = run_mckpt(*args, "-n", "--json", *how)
            expect(result.returncode == 0 and json.loads(result.stdout)["tensors_out"] > 0, f"{args} -n {how}: {result.stderr[:300]}")
    expect(snapshot(folder.name) == before, "a dry run wrote something")

    for name, command in (
        ("convert", lambda to, *more: convert(model, to, "--iteration", "7", *more)),
        ("export", lambda to, *more: ["export", checkpoint, to, *more]),
    ):
        base = path(f"{name}_base")
        made = os.path.join(base, "iter_0000007") if name == "convert" else base
        os.makedirs(made)
        with open(os.path.join(made, "old.safetensors"), "w") as old:
            old.write("old")
        for flags in ([], ["-n"], ["--resume"]):
            refused(4, "MC3003", ["--overwrite"], *command(base, *flags))
        result = run_mckpt(*command(base, "--overwrite", "-n"))
        expect(
            result.returncode == 0 and os.listdir(made) == ["old.safetensors"],
            f"{name} --overwrite -n: {os.listdir(made)} {result.stderr[:300]}",
        )
        small = subprocess.run(
            [MCKPT, *command(base, "--overwrite")],
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
        )
        expect(
            small.returncode == 5 and "MC3001" in small.stderr,
            f"{name}: files too large: exit status {small.returncode}: {small.stderr[:300]}",
        )
        expect(os.listdir(made) == ["old.safetensors"], f"{name}: what could not be written replaced what was there")
        staging = os.path.join(os.path.dirname(made), f".{os.path.basename(made)}.mckpt-tmp")
        with open(os.devnull):
            fd = os.open(staging, os.O_RDONLY)
            fcntl.flock(fd, fcntl.LOCK_EX)
            refused(4, "MC3004", [], *command(base, "--overwrite"))
            os.close(fd)
        done(*command(base, "--overwrite"))
        expect("old.safetensors" not in os.listdir(made) and not os.path.exists(staging), f"{name} --overwrite: {os.listdir(made)}")
        # A file, or a link, is not replaced by a folder.
        blocked = path(f"{name}_blocked")
        place = os.path.join(blocked, "iter_0000007") if name == "convert" else blocked
        os.makedirs(os.path.dirname(place), exist_ok=True)
        open(place, "w").close()
        refused(4, "MC3003", ["another name"], *command(blocked, "--overwrite"))
        os.remove(place)
        os.symlink(made, place)
        refused(4, "MC3003", ["another name"], *command(blocked, "--overwrite"))


def no_room():
    """More than any disk has, in files that have their size and no data."""
    huge = make_model(path("huge"), layers=1, hidden=65536, heads=8, kv=8, head_dim=64, ffn=64, vocab=8_000_000, sparse=True)
    for flags in ([], ["-n"]):
        refused(4, "MC3006", ["iB free"], *convert(huge, path("out"), "--no-sync", *flags))


model = make_model(path("model"), **SIZES)
wrong_models(model)
wrong_checkpoints(model)
unknown_writers()
of_megatron(model)
places(model)
no_room()
finish(150)
