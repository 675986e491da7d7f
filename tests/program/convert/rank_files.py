"""Files of ranks: what is written for many grids comes back as the model, byte for byte, also by way of fsdp_dtensor; chunks
of a pipeline have the layers that Megatron gives them; folders that are not whole, or of two saves, are refused with their
names."""
import filecmp
import json
import os
import random
import shutil
import struct
import tempfile

from mckpt_tests.checks import expect, expect_equal, fail, finish, in_parallel
from mckpt_tests.models import Models, make_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

models = Models()
work = tempfile.TemporaryDirectory(prefix="mckpt_rank_files_")
QUICK = ["--no-sync", "-q", "-j1"]
MAIN = "model_optim_rng.pt"


def at(*names):
    return os.path.join(work.name, *names)


def flags(**values):
    return [text for name, value in values.items() for text in (f"--{name.replace('_', '-')}", str(value))]


def done(*args):
    run = run_mckpt(*args, *QUICK)
    if run.returncode:
        fail(f"{' '.join(map(str, args))}: {run.stderr}")
    return run.returncode == 0


def refused(status, *args, says=()):
    run = run_mckpt(*args, *(["-q"] if args[0] in ("verify", "ls") else QUICK))
    text = run.stdout + run.stderr
    expect(run.returncode == status and all(part in text for part in says), f"{args}: {run.returncode} {text}, without {says}")


def equal(folder, other):
    run = run_mckpt("verify", folder, "--against", other, "-q", "-j1")
    expect(run.returncode == 0, f"{folder} against {other}: {run.stdout}{run.stderr}")


def weights(folder):
    return os.path.join(folder, "model.safetensors")


def ranks_of(target):
    return sorted(name for name in os.listdir(os.path.join(target, "release")) if name.startswith("mp_rank_"))


def listing(target):
    """(folder/section.name) -> type, shape and digest."""
    run = run_mckpt("ls", target, "--digest", "--jsonl", "-q", "-j1")
    return {t["name"]: (t["dtype"], t["shape"], t["sha256"]) for t in map(json.loads, run.stdout.splitlines()) if "name" in t}


# --- there and back, on grids of all kinds ---

NAMES = ["llama3", "qwen2_bias", "qwen3_dense", "qwen3_moe", "qwen3_next_mtp", "qwen3_5_moe_mtp", "qwen3_vl_moe", "deepseek_v3_mtp",
         "gpt_oss", "nemotron_h_moe", "nemotron_h_f32ssm", "qwen3_moe_sparse2"]
count = {"ways": 0, "refused": 0}


def there_and_back(number, name, grid, chain):
    model, tag = models.path(name), f"{number}_{name}"
    steps = [at(tag + "_a")]
    run = run_mckpt("convert", "to-pt", model, steps[0], *flags(**grid), *QUICK)
    if run.returncode:
        count["refused"] += 1
        return expect(any(code in run.stderr for code in ("MC2007", "MC0201", "MC2010")), f"{tag} {grid}: {run.stderr}")
    count["ways"] += 1
    if chain:
        steps += [at(tag + "_b"), at(tag + "_c")]
        done("convert", "to-fsdp", steps[0], steps[1], *flags(tp=chain, dp=2))
        done("convert", "to-pt", steps[1], steps[2], *flags(**grid))
        # Padding of the vocabulary stays where the rows divide.
        got, want = ([t for t in sorted(listing(step).items()) if chain == 1 or "embed" not in t[0] and "output_layer" not in t[0]]
                     for step in (steps[2], steps[0]))
        expect_equal(f"{tag} {grid} by way of fsdp_dtensor", got, want)
        expect(run_mckpt("verify", steps[1], "--against", steps[2], "-q", "-j1").returncode == 0, f"{tag}: fsdp_dtensor against ranks")
    back = at(tag + "_hf")
    if done("export", steps[-1], back):
        expect(filecmp.cmp(weights(back), weights(model), shallow=False), f"{tag} {grid}: exported")
    expect(run_mckpt("verify", steps[-1], "--against", model, "-q", "-j1").returncode == 0, f"{tag} {grid}: against the model")
    for folder in [*steps, back]:
        shutil.rmtree(folder, ignore_errors=True)


draw = random.Random(24)
ways = []
for i in range(36):
    drawn = {"tp": draw.choice([1, 1, 2, 3, 4, 8]), "pp": draw.choice([1, 2, 3]), "ep": draw.choice([1, 1, 2, 4, 8])}
    if draw.random() < 0.3:
        drawn["etp"] = draw.choice([1, 2, 4])
    if drawn["pp"] > 1 and draw.random() < 0.4:
        drawn["vpp"] = 2
    ways.append((i, NAMES[i % len(NAMES)], drawn, draw.choice([0, 0, 1, 2])))
in_parallel(there_and_back, ways)
expect(count["ways"] >= 12, f"{count}")


# --- chunks of a pipeline ---

LAYERS = 12
deep = make_model(at("deep"), layers=LAYERS, hidden=16, heads=2, kv=1, head_dim=8, ffn=8, vocab=32)
done("convert", "to-pt", deep, at("one"))


def check_chunks(pp, first_layers, **grid):
    """Layer first_layers[chunk][stage] + n of the model is layer n of that chunk of that stage."""
    target, whole = at(f"chunks_{pp}_{'_'.join(map(str, grid.values()))}"), at("one")
    if not done("convert", "to-pt", deep, target, *flags(pp=pp, **grid)):
        return
    one = {key.removeprefix("mp_rank_00/model."): value for key, value in listing(whole).items()}
    want, starts = {}, sorted(n for stages in first_layers for n in stages) + [LAYERS]
    for chunk, stages in enumerate(first_layers):
        for stage, first in enumerate(stages):
            front = f"mp_rank_00_{stage:03d}/model{chunk if len(first_layers) > 1 else ''}."
            for key, value in one.items():
                parts = key.split(".")
                layer = int(parts[2]) if key.startswith("decoder.layers.") else None
                if layer is not None and first <= layer < starts[starts.index(first) + 1]:
                    want[front + ".".join([*parts[:2], str(layer - first), *parts[3:]])] = value
                if layer is None and (first == 0 if key.startswith("embedding.") else first == starts[-2]):
                    want[front + key] = value
    expect_equal(f"{pp} {grid}", sorted(listing(target).items()), sorted(want.items()))
    back = at(f"{os.path.basename(target)}_hf")
    if done("export", target, back):
        expect(filecmp.cmp(weights(back), weights(deep), shallow=False), f"{target}: exported")


check_chunks(3, [[0, 4, 8]])
check_chunks(3, [[0, 2, 4], [6, 8, 10]], vpp=2)
check_chunks(2, [[0, 2]], first_stage_layers=2)
check_chunks(2, [[0, 1], [6, 7]], first_stage_layers=2, vpp=2)
check_chunks(3, [[0, 1, 10]], first_stage_layers=1, last_stage_layers=2)


# A stage between the first and the last may have no layer: its file has an empty model.
done("convert", "to-pt", deep, at("hollow"), *flags(tp=2, pp=3, first_stage_layers=4, last_stage_layers=8))
expect_equal("ranks of a stage without layers", [name[11:14] for name in ranks_of(at("hollow"))], ["000", "001", "002"] * 2)
expect_equal("its tensors", [name for name in listing(at("hollow")) if name[11:14] == "001"], [])
equal(at("hollow"), deep)
done("convert", "to-fsdp", at("hollow"), at("hollow_fsdp"), "--dp", "2")
done("export", at("hollow_fsdp"), at("hollow_hf"))
expect(filecmp.cmp(weights(at("hollow_hf")), weights(deep), shallow=False), "a stage without layers: exported")


# --- what is not in the model, or not in its layers ---

families = Models("families", only=["gemma4_ple", "minimax_m3_vl"])
# Indexers are registered outside of the decoder, in the stage of their layer, under the numbers of the whole model.
sparse = families.path("minimax_m3_vl")
done("convert", "to-pt", sparse, at("sparse"), *flags(pp=2, first_stage_layers=1))
expect_equal("indexers", sorted({name.split("/")[0][-3:] + name.split("lightning_indexers")[1][:2] for name in listing(at("sparse"))
                                 if "lightning_indexers" in name}), ["001.1", "001.2"])
equal(at("sparse"), sparse)
done("export", at("sparse"), at("sparse_hf"))
expect(filecmp.cmp(weights(at("sparse_hf")), weights(sparse), shallow=False), "indexers: exported")

# Parameters that the model has no tensor for: ones where they are made, and after that what the source has.
done("convert", "to-pt", families.path("gemma4_ple"), at("norms"))
for step, mode, *grid in (("norms_1", "to-mcore"), ("norms_2", "to-pt", "--tp", "2"), ("norms_3", "to-fsdp", "--dp", "2"), ("norms_4", "to-pt")):
    done("convert", mode, at("norms" if step == "norms_1" else f"norms_{int(step[-1]) - 1}"), at(step), *grid)
expect_equal("parameters without a tensor of the model, by way of three formats", sorted(listing(at("norms_4")).items()), sorted(listing(at("norms")).items()))
ones = json.loads(run_mckpt("stats", at("norms_4"), "--json", "-q").stdout)["tensors"]
lone = [(t["min"], t["max"]) for t in ones if t["name"].endswith(".layers.4.self_attention.k_layernorm.weight")]
expect_equal("ones", lone, [(1, 1)])

model = models.path("qwen3_moe")
refused(2, "convert", "to-pt", model, at("no"), "--vpp", "2", says=["MC0201", "one stage alone has one chunk"])
refused(4, "convert", "to-pt", model, at("no"), "--pp", "3", "--vpp", "5", says=["MC2007"])
refused(2, "convert", "to-pt", model, at("no"), "--etp", "2", says=["MC0201", "mp_rank_00 is the folder of ranks of etp 0 and of etp 1"])
refused(2, "convert", "to-pt", model, at("no"), "--hsdp", "2", "--dp", "2", says=["--hsdp 1"])


# --- folders that are not whole ---

def changed_copy(source, folder, name, add):
    """The model with a number added to every item of one tensor of bf16."""
    shutil.copytree(source, folder)
    with open(weights(folder), "r+b") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        begin, end = json.loads(f.read(size))[name]["data_offsets"]
        f.seek(8 + size + begin)
        items = struct.unpack(f"<{(end - begin) // 2}H", f.read(end - begin))
        f.seek(8 + size + begin)
        f.write(struct.pack(f"<{len(items)}H", *(n + add for n in items)))
    return folder


good = at("good")
done("convert", "to-pt", model, good, "--tp", "2", "--ep", "2", "--iteration", "10")
expect_equal("folders of tp 2, ep 2, etp 1", sorted(n for n in os.listdir(os.path.join(good, "iter_0000010")) if n.startswith("mp")),
             ["mp_rank_00_000", "mp_rank_01_001"])


def broken(name, change):
    folder = at(name)
    shutil.copytree(os.path.join(good, "iter_0000010"), folder)
    os.unlink(os.path.join(folder, "mckpt_manifest.json"))
    change(folder)
    return folder


def both_refuse(status, folder, *says):
    refused(1, "verify", folder, says=says)
    refused(status, "export", folder, at("no"), says=says)


both_refuse(3, broken("missing", lambda f: shutil.rmtree(os.path.join(f, "mp_rank_01_001"))), "MC1106", "missing: mp_rank_01_001", "1 of 2")
expect(run_mckpt("verify", at("missing")).stdout.startswith("FAIL  files    1 of 2 files"), "verify counts the files that should be there")
both_refuse(3, broken("empty", lambda f: os.unlink(os.path.join(f, "mp_rank_01_001", MAIN))), "MC1106", "mp_rank_01_001")
more = broken("more", lambda f: shutil.copytree(os.path.join(f, "mp_rank_01_001"), os.path.join(f, "mp_rank_02_001")))
both_refuse(3, more, "MC1113", f"mp_rank_02_001/{MAIN}", "its args say rank 1, which is tp 1, ep 1, and the folder is that of tp 2, ep 1")
swapped = broken("swapped", lambda f: [os.rename(os.path.join(f, a), os.path.join(f, b)) for a, b in
                                       (("mp_rank_00_000", "x"), ("mp_rank_01_001", "mp_rank_00_000"), ("x", "mp_rank_01_001"))])
both_refuse(3, swapped, "MC1113", "its args say rank 1, which is tp 1, ep 1, and the folder is that of tp 0, ep 0")
copied = broken("copied", lambda f: shutil.copy(os.path.join(f, "mp_rank_00_000", MAIN), os.path.join(f, "mp_rank_01_001", MAIN)))
both_refuse(3, copied, "MC1113", f"mp_rank_01_001/{MAIN}", "byte for byte, that of mp_rank_00_000")


def cut(folder):
    path = os.path.join(folder, "mp_rank_01_001", MAIN)
    os.truncate(path, os.path.getsize(path) // 2)


both_refuse(3, broken("cut", cut), f"mp_rank_01_001/{MAIN}")

later, other = at("later"), at("other")
done("convert", "to-pt", model, later, "--tp", "2", "--ep", "2", "--iteration", "20")
norm = "model.norm.weight"
done("convert", "to-pt", changed_copy(model, at("changed"), norm, 1), other, "--tp", "2", "--ep", "2", "--iteration", "10")


def take(source):
    return lambda folder: shutil.copy(os.path.join(source, "mp_rank_01_001", MAIN), os.path.join(folder, "mp_rank_01_001", MAIN))


mixed = broken("mixed", take(os.path.join(later, "iter_0000020")))
both_refuse(3, mixed, "MC1315", f"mp_rank_01_001/{MAIN}", "iteration is 20 here and 10 there")
done("export", mixed, at("mixed_hf"), "--accept", "MC1315")
unlike = broken("unlike", take(os.path.join(other, "iter_0000010")))
both_refuse(3, unlike, "MC1113", f"mp_rank_01_001/{MAIN}", "decoder.final_layernorm.weight differs from mp_rank_00_000/")


def flip(folder):
    """One bit of a copy whose checksum stays."""
    run = run_mckpt("ls", folder, "--jsonl", "-q")
    place = next(t for t in map(json.loads, run.stdout.splitlines()) if t["name"] == "mp_rank_01_001/model.decoder.final_layernorm.weight")
    chunk = place["chunks"][0]
    with open(os.path.join(folder, "mp_rank_01_001", MAIN), "r+b") as f:
        f.seek(chunk["offset"])
        byte = f.read(1)[0]
        f.seek(chunk["offset"])
        f.write(bytes([byte ^ 1]))


def take_config(folder):
    shutil.copy(os.path.join(models.path("qwen3_dense"), "config.json"), os.path.join(folder, "hf_assets"))
    os.unlink(os.path.join(folder, "hf_assets", "mckpt_tensors.json"))


both_refuse(3, broken("dense", take_config), "MC2005", "mp_rank_00_000: decoder.layers.0.mlp.linear_fc1.weight")
flipped = broken("flipped", flip)
refused(1, "verify", flipped, says=["mp_rank_01_001"])
refused(3, "verify", flipped, "--against", model, says=["MC1113", "final_layernorm"])

# States of the optimizer: never left out in silence, and results of two formats are equal but for what the format says.
optimizer_file = os.path.join(DATA, "pt", "dtypes.pt")
states = broken("states", lambda f: shutil.copy(optimizer_file, os.path.join(f, "mp_rank_00_000", "distrib_optim.pt")))
for mode in ("to-fsdp", "to-mcore"):
    refused(4, "convert", mode, states, at("no"), says=["MC3005", "are not read", "--weights-only"])
expect("of the optimizer are not in the result" in run_mckpt("export", states, at("states_hf"), "--no-sync", "-j1").stderr, "states: export says")
expect(filecmp.cmp(weights(at("states_hf")), weights(model), shallow=False), "states: exported")
done("convert", "to-mcore", states, at("states_core"), "--weights-only", "--tp", "2")
equal(at("states_core"), good)
done("convert", "to-mcore", model, at("core"), "--tp", "2", "--iteration", "10")
done("convert", "to-pt", at("core"), at("core_pt"), "--tp", "2", "--ep", "2", "--iteration", "10")
equal(at("core_pt"), at("core"))
equal(good, at("core"))

# Wider weights: the type that is asked for is checked, and the values are.
done("convert", "to-pt", good, at("wide"), "--pp", "3", "--dtype", "fp32", "--iteration", "10")
run = run_mckpt("verify", at("wide"), "--against", good, "--dtype", "fp32")
expect(run.returncode == 0 and run.stdout.endswith(": equal\n") and "types    " in run.stdout, f"fp32: {run.stdout}{run.stderr}")
refused(1, "verify", at("wide"), "--against", good, "--dtype", "bf16", says=["stored as float32"])
refused(1, "verify", at("wide"), "--against", other, "--dtype", "fp32", says=["final_layernorm"])

bare = broken("bare", lambda f: shutil.rmtree(os.path.join(f, "hf_assets")))
refused(4, "export", bare, at("no"), says=["MC2014", "--assets"])
run = run_mckpt("verify", bare)
expect(run.returncode == 0 and "not compared with each other or with config.json" in run.stdout, f"verify without a config: {run.stdout}")
done("export", bare, at("bare_hf"), "--assets", model)
expect(filecmp.cmp(weights(at("bare_hf")), weights(model), shallow=False), "with the assets of the model")
refused(3, "export", bare, at("no"), "--assets", models.path("qwen3_dense"),
        says=["MC2005", "Megatron's rank files lack 12 parameters", "mp_rank_00_000: decoder.layers.0.mlp.linear_fc1.weight"])

# A result replaces an earlier one, and --resume finds nothing to do.
refused(4, "convert", "to-pt", model, good, "--tp", "2", "--ep", "2", "--iteration", "10", says=["--overwrite"])
done("convert", "to-pt", model, good, "--tp", "2", "--ep", "2", "--iteration", "10", "--overwrite")
finish(1006)
