"""Optimizer states of the golden Megatron-FSDP runs, in which every item names itself. `convert reshard` writes them as each of
these runs did: keys in their order, boxes, the rank that writes them, every value; and from the plain local tensors that ranks
keep for themselves it makes the pieces that the real code makes of sharded ones. torch writes what goes in and reads what comes out.

usage: states.py [PLAIN_RUN|MODEL...]      the plain tensors of these runs and models alone, with how many pieces were compared
"""

import os
import sys

from mckpt_tests import checks
from mckpt_tests.checks import expect_equal, fail, need
from mckpt_tests.golden import finish, listing, run_flags, sections, sha, text
from mckpt_tests.models import GOLDEN, Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch", "numpy")
import filecmp  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import random  # noqa: E402
import re  # noqa: E402
import tarfile  # noqa: E402
import tempfile  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from mckpt_tests.judge import raw_bytes  # noqa: E402
from mckpt_tests.ranks import load_whole  # noqa: E402
from torch.distributed.checkpoint.metadata import BytesStorageMetadata  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import DTensor, Shard  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402

models = Models()
scratch = tempfile.TemporaryDirectory(prefix="mckpt_states_")
MODEL, STATE = "model.module.", "optimizer.state.module.module.module."
SCALE = {"exp_avg": -20, "exp_avg_sq": -30}
SPLIT = re.compile(r"(.*(?:linear_fc1\.(?:weight|bias)\d*))_[wv]|(.*(?:in_proj|conv1d)\.weight)\.(?:query|key|value|z|beta|alpha)")


def mckpt(*args):
    run = run_mckpt(*args, "-q")
    if run.returncode:
        fail(f"{' '.join(map(str, args))}: {run.stdout}{run.stderr}")
    return run


def path(*names):
    return os.path.join(scratch.name, *names)


def flags_of(line, *without):
    flags = run_flags(line)
    return [word for flag, value in zip(flags[::2], flags[1::2]) if flag.removeprefix("--") not in without for word in (flag, value)]


def numbers(word):
    return tuple(map(int, word.split("x"))) if word != "-" else ()


def parameter_of(key):
    found = SPLIT.fullmatch(key)
    return (found[1] or found[2]) if found else key


def codes_of(weights):
    return {name: code for code, name in enumerate(sorted({parameter_of(key) for key in weights}))}


def moment(kind, code, tp, first, shape, dtype):
    """Items `first` on of a parameter as tensor-parallel rank `tp` has it."""
    items = torch.arange(first, first + math.prod(shape), dtype=torch.float64)
    return ((items + code * 2**17 + tp * 2**16) * 2.0 ** SCALE[kind]).to(torch.float32).to(dtype).reshape(shape)


def weights_of(model, folder):
    """The model on one rank, as a checkpoint and as torch reads it: without wrappers, buffers apart."""
    if not os.path.exists(folder):
        mckpt(
            "convert",
            "hf-to-fsdp",
            models.path(model),
            folder,
            "--params-dtype",
            "auto",
            "--dtype",
            "fp32",
            "--no-sync",
            "--freeze",
            "none",
        )
    return {
        key.removeprefix(MODEL): t for key, t in load_whole(os.path.join(folder, "release"), objects=False).items() if key.startswith(MODEL)
    }


def whole_states(weights, trained, dtype):
    """The states that one rank would have; the parts of a fused parameter follow each other."""
    codes, first, states = codes_of(weights), {}, {}
    for key, t in weights.items():
        name = parameter_of(key)
        if key in trained:
            for kind in SCALE:
                states[f"{STATE}{key}.{kind}"] = moment(kind, codes[name], 0, first.get(name, 0), t.shape, dtype)
        first[name] = first.get(name, 0) + t.numel()
    return states


def chunks_by_rank(folder):
    """The states' chunks by the rank that wrote them, in the order of its file: (key, box)."""
    metadata = dcp.FileSystemReader(folder).read_metadata()
    ranks = {}
    for at, info in metadata.storage_data.items():
        if not at.fqn.startswith(STATE):
            continue
        chunk = next(c for c in metadata.state_dict_metadata[at.fqn].chunks if c.offsets == at.offset)
        rank = int(info.relative_path[2:].split("_")[0])
        ranks.setdefault(rank, []).append(
            (info.offset, at.fqn.removeprefix(STATE), f"{text(list(chunk.offsets))} {text(list(chunk.sizes))}")
        )
    return {rank: [f"{key} {box}" for _, key, box in sorted(chunks)] for rank, chunks in ranks.items()}


def check_run(tag):
    head, ranks = sections(f"states/{tag}")
    model, dtype = head[0].split()[1], getattr(torch, head[2].split()[1])
    weights = weights_of(model, path(model))
    trained = {line.split()[0] for lines in ranks for line in lines}
    states = whole_states(weights, trained, dtype)
    source, out = path(f"{tag}.source"), path(f"{tag}.out")
    dcp.save(
        {**{MODEL + key: t for key, t in weights.items()}, **states, "checkpoint_version": 3.0},
        storage_writer=dcp.FileSystemWriter(source, sync_files=False),
        no_dist=True,
    )
    mckpt(
        "convert",
        "reshard",
        source,
        out,
        "--assets",
        models.path(model),
        "--no-sync",
        "--source-tp",
        1,
        *flags_of(head[1], "vocab-size", "dtype"),
    )
    got = chunks_by_rank(os.path.join(out, "release"))
    held = [
        [f"{key}.{kind} {box}" for key, box in (line.split(" ", 1) for line in lines) if box != "nothing" for kind in SCALE]
        for lines in ranks
    ]
    if "no_shard" not in tag:  # everybody holds its own
        for rank, lines in enumerate(held):
            expect_equal(f"{tag} rank {rank}", got.get(rank, []), lines)
    else:
        expect_equal(f"{tag}: boxes", sorted(c for chunks in got.values() for c in chunks), sorted({c for lines in held for c in lines}))
        expect_equal(f"{tag}: writers", [c for rank, chunks in got.items() for c in chunks if c not in held[rank]], [])
    back = load_whole(os.path.join(out, "release"), objects=False)
    expect_equal(f"{tag}: keys", sorted(back), sorted([*states, *(MODEL + key for key in weights)]))
    expect_equal(f"{tag}: values", [key for key, t in states.items() if back[key].dtype != t.dtype or not torch.equal(back[key], t)], [])
    expect_equal(f"{tag}: weights", [key for key, t in weights.items() if not torch.equal(back[MODEL + key], t)], [])
    mckpt("verify", out)


def local_piece(kind, codes, name, tp, a, b, flat, row):
    """As torch.save leaves it: a plain tensor, also a view of a storage that is larger."""
    piece = moment(kind, codes[name], tp, a, [b - a], torch.float32)
    return piece if flat else torch.cat([piece, torch.zeros(3 * math.prod(row))])[: b - a].reshape(-1, *row)


def check_plain(tag):
    """The states of split parameters from plain local tensors, with the layout of a real run; the pieces are
    cut by the real code for sharded states."""
    head, ranks = sections(f"plain/{tag}")
    _, layout = sections(f"fsdp/{tag.replace('.opt', '') if tag.replace('.opt', '') in os.listdir(os.path.join(GOLDEN, 'fsdp')) else tag}")
    model, flags = head[0].split()[1], flags_of(head[1], "vocab-size", "dtype")
    tp_size = int(flags[flags.index("--tp") + 1])
    source, files, out = path(f"{tag}.plain"), path(f"{tag}.ranks"), path(f"{tag}.plain_out")
    mckpt("convert", "hf-to-fsdp", models.path(model), source, "--params-dtype", "auto", "--no-sync", *run_flags(head[1]))
    weights = weights_of(model, path(model))
    codes = codes_of(weights)
    os.mkdir(files)
    for rank, lines in enumerate(ranks):
        state = {}
        for line in lines:
            key, _, stretch, _, _, _, sizes, _ = line.split()
            a, b = map(int, stretch.split("-"))
            name, row = parameter_of(key), numbers(sizes)[1:]
            state[f"module.module.module.{name}"] = {
                kind: local_piece(kind, codes, name, rank % tp_size, a, b, rank % 2 == 0, row) for kind in SCALE
            }
        torch.save({"optimizer": {"state": state}, "iteration": 7}, os.path.join(files, f"optim_world_size_{len(ranks)}_rank_{rank}.pt"))
    mckpt(
        "convert",
        "reshard",
        source,
        out,
        "--assets",
        models.path(model),
        "--no-sync",
        "--rank-states",
        files,
        "--source-tp",
        tp_size,
        *flags,
    )
    back = load_whole(os.path.join(out, "release"), objects=False)
    pieces = differ = 0
    for rank, lines in enumerate(ranks):
        got, want = [], []
        for line in lines:
            key, _, _, _, wrong, offsets, sizes, digest = line.split()
            t = back[f"{STATE}{key}.exp_avg"]
            for d, (begin, size) in enumerate(zip(numbers(offsets), numbers(sizes))):
                t = t.narrow(d, begin, size)
            got.append(f"{key} {sha(raw_bytes(t.contiguous()))}")
            want.append(f"{key} {digest}")
        expect_equal(f"{tag}: rank {rank}", got, want)
        pieces, differ = pieces + len(want), differ + sum(g != w for g, w in zip(got, want))
    print(f"{tag}: {pieces} pieces, {differ} of them differ")
    boxes = {
        f"{key}.{kind} {box}"
        for lines in ranks
        for key, _, _, _, _, *box, _ in (line.split() for line in lines)
        for box in [" ".join(box)]
        if 0 not in numbers(box.split()[1])
        for kind in SCALE
    }
    expect_equal(
        f"{tag}: boxes", sorted(c for chunks in chunks_by_rank(os.path.join(out, "release")).values() for c in chunks), sorted(boxes)
    )


def check_any_cuts(model, tp, world, ep=1, hsdp=1, seed=0):
    """Every parameter, cut anywhere between its rows, with ranks that hold nothing; then onto another grid."""
    r = random.Random(seed)
    tag = f"{model} tp {tp} ep {ep} hsdp {hsdp} world {world}"
    source, files, out = (path(f"{tag}.{what}".replace(" ", "_")) for what in ("source", "ranks", "out"))
    mckpt(
        "convert",
        "hf-to-fsdp",
        models.path(model),
        source,
        "--params-dtype",
        "auto",
        "--dtype",
        "fp32",
        "--no-sync",
        "--vocab-size",
        "auto",
        "--tp",
        tp,
        "--ep",
        ep,
        "--dp",
        world // tp,
        "--hsdp",
        hsdp,
    )
    weights = {
        key.removeprefix(MODEL): t for key, t in load_whole(os.path.join(source, "release"), objects=False).items() if key.startswith(MODEL)
    }
    weights = dict(
        sorted(weights.items(), key=lambda item: item[0].endswith("_v"))
    )  # of two halves the first comes first, whichever rank wrote them
    codes = codes_of(weights)
    os.mkdir(files)
    states = [{} for _ in range(world)]
    shapes = {}
    for key, t in weights.items():
        if not key.endswith("expert_bias"):
            shapes.setdefault(parameter_of(key), []).append(t.shape)
    columns = re.compile(r".*(linear_proj|linear_fc2|out_proj)\.weight\d*")
    whole = re.compile(r".*(norm\.weight|layer_norm_weight|layernorm\.weight|router\.weight|gate_weight)")
    for name, pieces in shapes.items():
        expert, dim = ".experts." in name, None
        if not whole.fullmatch(name):
            dim = 1 if columns.fullmatch(name) else 0
        parts, t_count = (ep, 1) if expert else (1, tp if dim is not None else 1)
        rows, row = sum(s[0] for s in pieces), list(pieces[0][1:])
        if dim == 0:
            rows //= t_count
        elif dim == 1:
            row[0] //= t_count
        experts = sum(1 for n in shapes if n.startswith(re.split(r"\d+$", name)[0])) if expert else 1
        sharers = (
            [rank for rank in range(world)]
            if not expert
            else [rank for rank in range(world) if rank % ep == int(re.search(r"\d+$", name)[0]) // (experts // ep)]
        )
        for group in range(1 if expert else tp):
            mine = sharers if expert else [rank for rank in sharers if rank % tp == group]
            cut = (
                sorted(r.choice([0, rows, r.randrange(rows + 1)]) for _ in range(len(mine) // hsdp - 1))
                if group == 0 or t_count > 1
                else cut
            )
            stretches = list(zip([0, *cut], [*cut, rows])) * hsdp
            for rank, (a, b) in zip(mine, stretches):
                shard = group if t_count > 1 else 0
                states[rank][f"module.module.module.{name}"] = {
                    kind: local_piece(kind, codes, name, shard, a * math.prod(row), b * math.prod(row), r.random() < 0.5, row)
                    for kind in SCALE
                } | {"step": torch.tensor(5.0)}
    for rank, state in enumerate(states):
        torch.save({"state": state}, os.path.join(files, f"optim_world_size_{world}_rank_{rank}.pt"))
    more = ["--source-ep", ep, "--source-hsdp", hsdp]
    mckpt(
        "convert",
        "reshard",
        source,
        out,
        "--assets",
        models.path(model),
        "--no-sync",
        "--rank-states",
        files,
        "--source-tp",
        tp,
        *more,
        "--dp",
        3,
        "--freeze",
        "none",
    )
    back, wrong = load_whole(os.path.join(out, "release"), objects=False), []
    bases = {}
    for key, t in weights.items():
        name = parameter_of(key)
        if key.endswith("expert_bias"):
            continue
        base = bases.get(name, 0)
        dim = None if whole.fullmatch(name) else 1 if columns.fullmatch(name) else 0
        shards = tp if dim is not None and ".experts." not in name else 1
        bases[name] = base + t.numel() // shards
        shape = list(t.shape)
        if dim is not None:
            shape[dim] //= shards
        for kind in SCALE:
            want = torch.cat([moment(kind, codes[name], shard, base, shape, torch.float32) for shard in range(shards)], dim=dim or 0)
            if not torch.equal(back.get(f"{STATE}{key}.{kind}", torch.zeros(0)), want):
                wrong.append(f"{key}.{kind}")
        if back.get(f"{STATE}{key}.step") != 5:
            wrong.append(f"{key}.step")
    expect_equal(tag, wrong, [])
    print(f"{tag}: {sum(key.startswith(STATE) for key in back)} states, {len(wrong)} of them differ")
    expect_equal(f"{tag}: {len(back)} tensors", [len(back)], [len(weights) + 3 * sum(not key.endswith('expert_bias') for key in weights)])
    mckpt("verify", out)


def refused(what, code, words, *args, status=3):
    out = path("refused")
    run = run_mckpt("convert", "reshard", *map(str, args[:1]), out, *map(str, args[1:]), "--no-sync", "-q", timeout=60)
    expect_equal(
        f"{what}: {run.stderr}",
        [run.returncode, f"error[{code}]" in run.stderr, os.path.exists(out), [w for w in words if w not in run.stderr]],
        [status, True, False, []],
    )


def as_dtensors(rank, world, state, shapes):
    """The same pieces as DTensors, which say the shape of the whole and not where they begin."""
    dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
    mesh = init_device_mesh("cpu", (world,))
    out = {}
    for name, kinds in state.items():
        shape = torch.Size(shapes[name])
        stride = tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))
        out[name] = {
            kind: DTensor.from_local(t.reshape(-1, *shape[1:]).clone(), mesh, [Shard(0)], run_check=False, shape=shape, stride=stride)
            for kind, t in kinds.items()
        }
    dist.destroy_process_group()
    return out


def check_refusals():
    """A piece that does not fit is refused by name, with the shape of the whole and the shape of the
    piece."""
    model, source, files = "tiny_dense1", path("tiny_refused"), path("refused_ranks")
    mckpt("convert", "hf-to-fsdp", models.path(model), source, "--params-dtype", "auto", "--dp", 3, "--no-sync")
    os.mkdir(files)
    weights = weights_of(model, path(model))
    codes, shapes = codes_of(weights), {}
    for key, t in weights.items():
        name = parameter_of(key)
        shapes[name] = [shapes.get(name, [0])[0] + t.shape[0], *t.shape[1:]]
    fc1 = "decoder.layers.0.mlp.linear_fc1.weight"
    assets = ["--assets", models.path(model), "--rank-states", files]

    def write(change=lambda rank, state: state, ranks=range(3), save=torch.save):
        for name in os.listdir(files):
            os.remove(os.path.join(files, name))
        for rank in ranks:
            state = {}
            for name, (rows, *row) in shapes.items():
                a, b = rows * rank // 3, rows * (rank + 1) // 3
                state[name] = {
                    kind: local_piece(kind, codes, name, 0, a * math.prod(row), b * math.prod(row), False, row) for kind in SCALE
                }
            save({"state": change(rank, state)}, os.path.join(files, f"optim_world_size_3_rank_{rank}.pt"))

    def with_fc1(change):
        return lambda rank, state: {**state, fc1: {kind: change(rank, t) for kind, t in state[fc1].items()}}

    write(ranks=[0, 2])
    refused("a rank's file is missing", "MC1106", ["none of rank 1 of 3"], source, *assets)
    write(with_fc1(lambda rank, t: t[:-1] if rank == 1 else t))
    refused("a row is missing", "MC1311", [fc1, "global shape [28, 12]", "336 items", "324 items", "rank 1 [8, 12]"], source, *assets)
    write(with_fc1(lambda rank, t: t.flatten()[:-5] if rank == 1 else t))
    refused("part of a row", "MC1311", [fc1, "global shape [28, 12]", "local shape of [103]", "a multiple of 12 items"], source, *assets)
    write(with_fc1(lambda rank, t: t.reshape(-1, 6)))
    refused("another width", "MC1311", [fc1, "[28, 12]", "[18, 6]"], source, *assets)
    write(with_fc1(lambda rank, t: t.bfloat16() if rank == 2 else t))
    refused("another type", "MC1311", [fc1, "float32", "bfloat16"], source, *assets)
    write(lambda rank, state: {**state, "decoder.layers.7.mlp.linear_fc1.weight": state[fc1]})
    refused("no such parameter", "MC2005", ["decoder.layers.7.mlp.linear_fc1.weight"], source, *assets)
    write(lambda rank, state: as_dtensors(rank, 3, state, {**shapes, fc1: [14, 12]}))
    refused("a DTensor of another shape", "MC1311", [fc1, "[28, 12]", "[14, 12]"], source, *assets)
    write(lambda rank, state: {})
    refused("no states", "MC2005", ["contain no optimizer states"], source, *assets)
    write()
    told = run_mckpt("convert", "reshard", source, path("refused"), *assets, "-n", timeout=60).stderr
    expect_equal(f"nothing else in the files: {told}", ["has no place for" in told], [False])
    write(save=lambda files_state, file: torch.save({"optimizer": files_state, "iteration": 7, "lr": 0.5}, file))
    told = run_mckpt("convert", "reshard", source, path("refused"), *assets, "-n", timeout=60).stderr
    expect_equal(f"what else is in the files: {told}", ["has no place for these objects of the ranks' files: lr\n" in told], [True])
    # Objects of the run: the optimizer's come with its states, and others count as the checkpoint has them.
    meta = {f"module.module.module.{name}": {"lr": 0.25, "betas": (0.5, 0.75), "step": 7, "default_config": None} for name in shapes}
    write(
        save=lambda states, file: torch.save(
            {
                "optimizer": {**states, "param_to_group_meta": meta},
                "iteration": 7,
                "opt_param_scheduler": {"max_lr": 0.5, "lr_decay_style": "cosine"},
                "num_floating_point_operations_so_far": 2**70,
                "rng_state": [{"torch_rng_state": torch.zeros(3)}],
            },
            file,
        )
    )
    before = objects_of(os.path.join(source, "release"))
    told = run_mckpt("convert", "reshard", source, path("with_objects"), *assets, "--no-sync", "--dp", "2", timeout=60).stderr
    expect_equal(f"random states have no place: {told}", ["has no place for these objects of the ranks' files: rng_state.0.torch_rng_state\n" in told], [True])
    after = objects_of(os.path.join(path("with_objects"), "release"))
    want = {
        f"optimizer.param_to_group_meta.{name}.{field}": repr(value) for name, fields in meta.items() for field, value in fields.items()
    }
    want |= {
        "opt_param_scheduler.max_lr": "0.5",
        "opt_param_scheduler.lr_decay_style": "'cosine'",
        "num_floating_point_operations_so_far": repr(2**70),
    }
    expect_equal(
        "objects of the ranks' files", sorted((key, value) for key, value in after.items() if key not in before), sorted(want.items())
    )
    expect_equal(
        "objects of the checkpoint", [after["iteration"], after["checkpoint_version"]], [before["iteration"], before["checkpoint_version"]]
    )
    refused("both", "MC0001", ["--weights-only"], source, *assets, "--weights-only", status=2)
    refused("without files", "MC0001", ["--rank-states"], source, "--assets", models.path(model), "--source-ep", 2, status=2)
    refused("another grid", "MC2015", ["--source-tp 2"], source, *assets, "--source-tp", 2, status=4)
    for save in (lambda rank, state: state), (lambda rank, state: as_dtensors(rank, 3, state, shapes)):
        write(save)
        mckpt("convert", "reshard", source, path("taken"), *assets, "--no-sync", "--dp", 2, "--overwrite")
        back = load_whole(os.path.join(path("taken"), "release"), objects=False)
        want = {key.replace(STATE, "optimizer.state."): t for key, t in whole_states(weights, set(weights), torch.float32).items()}
        expect_equal("plain and DTensor", [key for key, t in want.items() if not torch.equal(back.get(key, torch.zeros(0)), t)], [])
        expect_equal("plain and DTensor", [len(back)], [len(want) + len(weights)])


def check_plain_saved(name):
    """A real run with plain states in a model without gated layers: the save passes, with the piece of one rank for the whole of
    some tensors. All of these are named, and no others."""
    head, _ = sections(f"plain_saved/{name}")
    model, folder = head[0].split()[1], path(f"{name}.plain_saved")
    shapes = [(key, numbers(disk), numbers(whole)) for key, disk, whole in (line.split() for line in head[1:])]
    weights = weights_of(model, path(model))
    dcp.save(
        {**{MODEL + key: t for key, t in weights.items()}, **{STATE + key: torch.ones(disk) for key, disk, _ in shapes}},
        storage_writer=dcp.FileSystemWriter(folder, sync_files=False),
        no_dist=True,
    )
    run = run_mckpt("verify", folder, "--json", timeout=60)
    wrong = sorted(STATE + key for key, disk, whole in shapes if disk != whole)
    expect_equal(
        f"{name}: {len(wrong)} of {len(shapes)}",
        [(f["code"], f["tensor"]) for f in sorted(json.loads(run.stdout)["findings"], key=lambda f: f["tensor"])],
        [("MC1311", key) for key in wrong],
    )
    refused(name, "MC1311", ["--rank-states", "and 23 more"], folder, "--assets", models.path(model), "--source-tp", 1)


def objects_of(folder):
    names = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
    state = {n: None for n, m in names.items() if isinstance(m, BytesStorageMetadata)}
    dcp.load(state, checkpoint_id=folder, no_dist=True)
    return {name: repr(value) for name, value in state.items()}


def check_real_folders():
    """Real saves, as torch reads them before and after; saves of models that mckpt lacks are read and
    judged."""
    real = {
        "fsdp_dtensor_optim": "tiny_llama1",
        "hfsdp": "tiny_dense1",
        "packed/tiny_dense1.world3.frozen": "tiny_dense1",
        "packed/qwen3_dense.world2": "qwen3_dense",
    }
    for name, model in real.items():
        folder = os.path.join(DATA, "dcp", name)
        if name.startswith("packed/"):
            with tarfile.open(folder + ".tar.xz") as tar:
                tar.extractall(scratch.name)
            folder = path(os.path.basename(name))
        want, objects = load_whole(folder, objects=False), objects_of(folder)
        for grid in (["--dp", 5], ["--dp", 4, "--hsdp", 2, "--hsdp-outer", "shard"], ["--dp", 2, "--strategy", "optim"]):
            mckpt(
                "convert",
                "reshard",
                folder,
                path("real"),
                "--assets",
                models.path(model),
                "--no-sync",
                "--overwrite",
                "--iteration",
                9,
                *grid,
            )
            out = path("real", "iter_0000009")
            got = load_whole(out, objects=False)
            expect_equal(f"{name} {grid}: names", sorted(got), sorted(want))
            expect_equal(
                f"{name} {grid}", [key for key, t in want.items() if got[key].dtype != t.dtype or not torch.equal(got[key], t)], []
            )
            expect_equal(f"{name} {grid}: objects", sorted(objects_of(out).items()), sorted({**objects, "iteration": "9"}.items()))
            mckpt("verify", out)
    for name in ("megatron_fsdp_v2", "fsdp2", "torch_dist_pp2", "fsdp_dtensor_optim", "hfsdp"):
        folder = os.path.join(DATA, "dcp", name)
        with open(folder + ".expected.json") as f:
            expected = json.load(f)["tensors"]
        got = [f"{key} {sha(raw_bytes(t))}" for key, t in load_whole(folder, objects=False).items()]
        expect_equal(f"{name}: torch", sorted(got), sorted(f"{key} {t['sha256']}" for key, t in expected.items()))
        mckpt("verify", folder)


def check_account():
    """Tensors without items, and what modules keep beside theirs, are carried; what is left behind is counted."""
    model, source, out = "tiny_dense1", path("beside"), path("beside_out")
    state = weights_of(model, path(model))
    beside = {
        MODEL + "decoder.layers.0.self_attention.linear_qkv._extra_state": torch.arange(9, dtype=torch.uint8),
        "rng_state.(0, 0).0.none": torch.empty(0, 3),
        "rng_state.(0, 0).0.scalar": torch.tensor(2.5),
    }
    states = whole_states(state, set(state), torch.float32)
    dcp.save(
        {**{MODEL + key: t for key, t in state.items()}, **states, **beside},
        storage_writer=dcp.FileSystemWriter(source, sync_files=False),
        no_dist=True,
    )
    config = "model:\n  tensor_model_parallel_size: 1\n  num_layers: 1\n  num_distributed_optimizer_instances: {}\ndist:\n  expert_tensor_parallel_size: {}\n"
    with open(os.path.join(source, "run_config.yaml"), "w") as f:
        f.write(config.format(4, "null"))
    torch.save({"step": torch.tensor(5)}, os.path.join(source, "train_state.pt"))
    for flags, left in ([], 0), (["--weights-only"], len(states)):
        run = mckpt(
            "convert", "reshard", source, out, "--assets", models.path(model), "--no-sync", "--overwrite", "--json", "--dp", 2, *flags
        )
        account, all_in = json.loads(run.stdout), len(state) + len(states) + len(beside)
        expect_equal(
            f"account {flags}",
            [account[k] for k in ("tensors_in", "tensors_out", "copied", "tied", "dropped", "invented")],
            [all_in, all_in - left, all_in - left, 0, left, 0],
        )
        got = load_whole(os.path.join(out, "release"), objects=False)
        with open(os.path.join(out, "release", "run_config.yaml")) as f:
            expect_equal("the run's configuration has the new grid", [f.read()], [config.format(1, 1)])
        expect_equal(
            "the state of training",
            [filecmp.cmp(os.path.join(out, "release", "train_state.pt"), os.path.join(source, "train_state.pt"), shallow=False)],
            [True],
        )
        expect_equal("and is no item", [name for name in objects_of(os.path.join(out, "release")) if name == "train_state.pt"], [])
        expect_equal(f"beside {flags}", [key for key, t in beside.items() if got[key].shape != t.shape or not torch.equal(got[key], t)], [])


def check_expert_numbers():
    """With 16 experts over 8 expert-parallel ranks, rank 2 has number 4 and 5 as its 0 and 1."""
    local, stored = (
        [row["name"] for row in listing(models.path("qwen3_moe"), "--as", form, "--rank", 2, "--ep", 8, "--dp", 8, digest=False)]
        for form in ("megatron", "fsdp")
    )
    expect_equal(
        "local",
        [n for n in local if "layers.0.mlp.experts" in n],
        [f"decoder.layers.0.mlp.experts.linear_{fc}.weight{e}" for fc in ("fc1", "fc2") for e in (0, 1)],
    )
    expect_equal(
        "stored",
        sorted(n.removeprefix(MODEL) for n in stored if "layers.0.mlp.experts" in n),
        sorted(
            f"decoder.layers.0.mlp.experts.linear_{leaf}"
            for e in (4, 5)
            for leaf in (f"fc1.weight{e}_w", f"fc1.weight{e}_v", f"fc2.weight{e}")
        ),
    )


CUTS = {  # tp, world and ep of states that are cut anywhere
    "tiny_dense1": (1, 4, 1), "qwen3_5": (1, 3, 1), "qwen3_dense": (2, 6, 1), "qwen3_moe": (2, 8, 2),
}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        check_any_cuts(name, *CUTS[name]) if name in CUTS else check_plain(name + ".txt")
    if sys.argv[1:]:
        checks.finish(1)
    for name in sorted(os.listdir(os.path.join(GOLDEN, "states"))):
        check_run(name)
    for name in sorted(os.listdir(os.path.join(GOLDEN, "plain"))):
        check_plain(name)
    for name, cuts in CUTS.items():
        check_any_cuts(name, *cuts)
    check_any_cuts("tiny_moe1", 1, 4, ep=2, hsdp=2)
    for name in sorted(os.listdir(os.path.join(GOLDEN, "plain_saved"))):
        check_plain_saved(name)
    check_refusals()
    check_real_folders()
    check_account()
    check_expert_numbers()
    finish(4020)
