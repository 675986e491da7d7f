"""convert reshard of checkpoints that are not fsdp_dtensor: torch FSDP2's, Megatron-FSDP's by itself,
torch_dist. Saves of real runs, and torch_dist checkpoints put together box by box as real ranks handed them
over, come out under Megatron's keys with every value as torch loads it; torch_dist exports as the model it is
of. A tensor that cannot be named is refused.
"""

import os

from mckpt_tests.checks import expect_equal, need
from mckpt_tests.folders import safetensors
from mckpt_tests.golden import finish, sections, sha
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch", "numpy")
import argparse  # noqa: E402
import json  # noqa: E402
import re  # noqa: E402
import shutil  # noqa: E402
import tempfile  # noqa: E402

import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from mckpt_tests.judge import raw_bytes  # noqa: E402
from mckpt_tests.ranks import Shards, load_whole, save_as_ranks  # noqa: E402

models = Models()
scratch = tempfile.TemporaryDirectory(prefix="mckpt_formats_")
MODEL, STATE, META = "model.module.", "optimizer.state.module.module.module.", "optimizer.param_to_group_meta.module.module.module."
KINDS = ("exp_avg", "exp_avg_sq", "fp32_param")


def place(name):
    return os.path.join(tempfile.mkdtemp(dir=scratch.name), name)


def mckpt(*args, status=0):
    run = run_mckpt(*args, timeout=60)
    expect_equal(f"{' '.join(map(str, args))}: {run.stderr}", [run.returncode], [status])
    return run.stderr


def resharded(source, *flags):
    out = place("out")
    mckpt("convert", "to-fsdp", source, out, "--no-sync", *flags)
    mckpt("verify", out, "-q")
    with open(os.path.join(out, "latest_checkpointed_iteration.txt")) as f:
        iteration = f.read()
    return os.path.join(out, iteration if iteration == "release" else f"iter_{int(iteration):07d}")


def same(a, b):
    return type(a) is type(b) and (torch.equal(a, b) and a.dtype == b.dtype if isinstance(a, torch.Tensor) else a == b)


def check_same(what, got, want):
    expect_equal(f"{what}: names", sorted(got), sorted(want))
    expect_equal(f"{what}: values", [name for name in want if name in got and not same(got[name], want[name])], [])


# ---- Checkpoints of real runs, whose models have no tables


def named_as_megatron(state):
    """The tensors that torch reads of a state dict's checkpoint, under the keys that Megatron has for it."""
    out, groups = {}, {}
    for name, value in state.items():
        if name.startswith("model."):
            out[MODEL + name[len("model.") :]] = value
        elif name.startswith("optimizer.state."):
            out[STATE + name[len("optimizer.state.") :]] = value
        else:
            group, field = re.fullmatch(r"optimizer\.param_groups\.(\d+)\.(.*)", name).groups()
            groups.setdefault(group, {})[field] = value
    for fields in groups.values():
        for name in fields["params"]:
            out |= {f"{META}{name}.{field}": value for field, value in fields.items() if field != "params"}
            out[f"{META}{name}.step"] = int(state[f"optimizer.state.{name}.step"])
    return out | {"checkpoint_version": 3.0, "iteration": 0}


GRIDS = [
    ["--dp", 1],
    ["--dp", 2],
    ["--dp", 5],
    ["--dp", 4, "--hsdp", 2],
    ["--dp", 4, "--hsdp", 2, "--hsdp-outer", "shard"],
    ["--dp", 2, "--cp", 2, "--strategy", "optim"],
    ["--dp", 3, "--strategy", "no_shard"],
]
for name in ("fsdp2", "megatron_fsdp_v2"):
    want = named_as_megatron(load_whole(os.path.join(DATA, "dcp", name)))
    for grid in GRIDS:
        at = resharded(os.path.join(DATA, "dcp", name), "--any-model", *grid)
        mckpt("verify", at, "--against", os.path.join(DATA, "dcp", name), "-q")
        check_same(f"{name} {grid}", load_whole(at), want)
    # Another bit in one item is a difference. (The last grid has each tensor whole in a file.)
    bits = raw_bytes(max((value for value in want.values() if isinstance(value, torch.Tensor)), key=torch.numel))
    for file in (os.path.join(at, f) for f in sorted(os.listdir(at)) if f.endswith(".distcp")):
        with open(file, "r+b") as f:
            if (found := f.read().find(bits)) >= 0:
                f.seek(found + len(bits) // 2)
                f.write(bytes([bits[len(bits) // 2] ^ 1]))
                break
    run = run_mckpt("verify", at, "--against", os.path.join(DATA, "dcp", name), timeout=60)
    expect_equal(f"{name}: a bit", [run.returncode, run.stdout.count("differs at ["), os.path.basename(file) in run.stdout], [1, 1, True])
    at = resharded(os.path.join(DATA, "dcp", name), "--any-model", "--dp", 1)
    # From there on it is an fsdp_dtensor checkpoint like any other.
    check_same(f"{name} again", load_whole(resharded(at, "--any-model", "--dp", 3)), want)
    weights = load_whole(resharded(os.path.join(DATA, "dcp", name), "--any-model", "--dp", 2, "--weights-only"))
    expect_equal(f"{name}: weights", sorted(weights), sorted(key for key in want if not key.startswith("optimizer.")))
# torch flattens the groups on request: then each parameter is one.
flat, state = place("flat"), load_whole(os.path.join(DATA, "dcp", "fsdp2"))
groups = {}
for key in [key for key in state if key.startswith("optimizer.param_groups.")]:
    group, field = re.fullmatch(r"optimizer\.param_groups\.(\d+)\.(.*)", key).groups()
    groups.setdefault(group, {})[field] = state.pop(key)
for fields in groups.values():
    state |= {
        f"optimizer.param_groups.{name}.{field}": value for name in fields["params"] for field, value in fields.items() if field != "params"
    }
dcp.save(state, storage_writer=dcp.FileSystemWriter(flat, sync_files=False), no_dist=True)
check_same(
    "flat groups", load_whole(resharded(flat, "--any-model", "--dp", 2)), named_as_megatron(load_whole(os.path.join(DATA, "dcp", "fsdp2")))
)

for name, grid in (("uneven_4", ["--dp", 3]), ("uneven_4", ["--dp", 2, "--strategy", "optim"]), ("uneven_tp2dp2", ["--dp", 5])):
    source = os.path.join(DATA, "dcp", name)
    folder = os.path.join(source, "iter_0000010") if name == "uneven_4" else source
    got, want = (load_whole(path) for path in (resharded(source, "--any-model", *grid), folder))
    tensors = lambda state: {key: value for key, value in state.items() if isinstance(value, torch.Tensor)}
    check_same(f"{name} {grid}", tensors(got), tensors(want))
    objects = set(want) - {"args"} | ({"args"} if "args" in want else set())
    expect_equal(f"{name}: objects", sorted(set(got) - objects), sorted({"checkpoint_version"} - objects))

# ---- torch_dist


def torch_dist_parts(key, whole):
    """The tensors of torch_dist, or parts of them, that make up a key of one tensor-parallel rank: (name, indices, rows or None)."""
    key = key.replace("mixer.conv1d_", "mixer.conv1d.")
    rows = slice(None)
    if half := re.fullmatch(r"(.*linear_fc1\.(?:weight|bias)\d*)_([wv])", key):
        key, rows = half[1], half[2]
    at = []
    if expert := re.fullmatch(r"(.*\.mlp\.)experts\.(linear_fc[12]\.(?:weight|bias))(\d+)", key):
        key, at = f"{expert[1]}experts.experts.{expert[2]}", [int(expert[3])]
    for name in (key, key.replace("final_norm", "final_layernorm")):
        layer = re.search(r"layers\.(\d+)\.", name)
        for found, index in ((name, at), *([(re.sub(r"layers\.\d+\.", "layers.", name), [int(layer[1]), *at])] if layer else [])):
            if found in whole:
                return [(found, index, rows)]
            if parts := [f"{found}.{part}" for part in ("z", "x", "B", "C", "dt") if f"{found}.{part}" in whole]:
                return [(part, index, rows) for part in parts]
    raise KeyError(key)


def pick(key, whole):
    pieces = []
    for name, at, rows in torch_dist_parts(key, whole):
        piece = whole[name][tuple(at)]
        pieces.append(piece[: len(piece) // 2] if rows == "w" else piece[len(piece) // 2 :] if rows == "v" else piece)
    return torch.cat(pieces) if len(pieces) > 1 else pieces[0]


def put(key, value, whole):
    first = 0
    for name, at, rows in torch_dist_parts(key, whole):
        piece = whole[name][tuple(at)]
        half = len(piece) // 2 if rows in ("w", "v") else len(piece)
        target = piece[half:] if rows == "v" else piece[:half]
        target.copy_(value[first : first + len(target)])
        first += len(target)


def numbers(text):
    return [int(n) for n in text.split("x")]


class TorchDist:
    """A golden save: which rank hands over which box of which tensor, and the values of the model in them."""

    def __init__(self, tag):
        self.tag, self.model = tag, tag.split(".")[0]
        head, self.ranks = sections(f"torch_dist/{tag}.txt")
        self.lines = [[line.split()[:7] for line in lines if not line.startswith("object ")] for lines in self.ranks]
        self.shapes = {name: (numbers(shape), getattr(torch, dtype)) for lines in self.lines for name, dtype, _, shape, *_ in lines}
        self.rows = self.shapes["embedding.word_embeddings.weight"][0][0]
        self.weights = self.converted("--tp", 1)
        self.whole = {name: torch.zeros(shape, dtype=dtype) for name, (shape, dtype) in self.shapes.items()}
        for key, value in self.weights.items():
            put(key, value, self.whole)
        self.check_pieces()
        r = torch.Generator().manual_seed(5)
        self.states = {
            kind: {name: torch.randn(shape, generator=r) for name, (shape, _) in self.shapes.items() if not name.endswith("expert_bias")}
            for kind in KINDS
        }

    def converted(self, *grid):
        out = place("fsdp")
        mckpt(
            "convert",
            "hf-to-fsdp",
            models.path(self.model),
            out,
            "--params-dtype",
            "auto",
            "--vocab-size",
            self.rows,
            "--no-sync",
            "-q",
            *grid,
        )
        state = load_whole(os.path.join(out, "release"), objects=False)
        return {key.removeprefix(MODEL): value for key, value in state.items()}

    def boxes(self, lines):
        held = {}
        for name, _, local, _, offsets, lead, _ in lines:
            sizes = [1] * int(lead) + numbers(local)
            held.setdefault(name, []).append((numbers(offsets), sizes))
        return held

    def check_pieces(self):
        """The model as put together here is the one that real ranks handed over."""
        got, want = [], []
        for lines in self.lines:
            for name, _, local, _, offsets, lead, digest in lines:
                piece = Shards(self.whole[name], []).piece(numbers(offsets), [1] * int(lead) + numbers(local))
                got.append(f"{name} {offsets} {sha(raw_bytes(piece.contiguous()))}")
                want.append(f"{name} {offsets} {digest}")
        expect_equal(self.tag, got, want)

    def layers(self):
        """How many the language model has, stacked or by their numbers."""
        places = [(re.match(r"(?:language_model\.)?decoder\.layers\.(\d*)", name), value) for name, value in self.whole.items()]
        return max(int(at[1]) + 1 if at[1] else len(value) for at, value in places if at)

    def save(self, states=True, flat=False, chained=False, common_file=False):
        folder = place("torch_dist")
        common = {
            "args": argparse.Namespace(
                num_layers=self.layers(),
                tensor_model_parallel_size=2,
                pipeline_model_parallel_size=4,
                world_size=2,
                dtype=torch.bfloat16,
                betas=(0.9, 0.95),
                big=2**70,
            ),
            "checkpoint_version": 3.0,
            "iteration": 9,
            "num_floating_point_operations_so_far": 5,
            "opt_param_scheduler": {"max_lr": 0.1, "num_steps": 9},
            "content_metadata": {"x": 1},
        }

        def state_of(lines):
            out = {}
            for name, boxes in self.boxes(lines).items():
                out[name] = Shards(self.whole[name], boxes)
                for kind in KINDS if states and not name.endswith("expert_bias") else ():
                    front = "chained_1." if chained and ".experts." in name else "chained_0." if chained else ""
                    value = self.states[kind][name]
                    if flat:
                        value = value.reshape(-1)
                        boxes = [([0], [value.numel()])]
                    out[f"{front}optimizer.state.{kind}.{name}"] = Shards(value, boxes)
            if not common_file:
                out["common_state/shard_0_1"] = [common]
            out["rng_state/shard_0.0_1.1"] = [[{"x": 1}]]
            out["decoder.final_layernorm._extra_state/shard_0_1"] = [torch.zeros(0, dtype=torch.uint8)]
            return out

        save_as_ranks((state_of(lines) for lines in self.lines), lambda: dcp.FileSystemWriter(folder, sync_files=False), flatten=False)
        if common_file:
            torch.save(common, os.path.join(folder, "common.pt"))
        with open(os.path.join(folder, "metadata.json"), "w") as f:
            f.write('{"sharded_backend": "torch_dist", "sharded_backend_version": 1}')
        return folder

    def expected(self, weights):
        """On one tensor-parallel rank."""
        out = {MODEL + key: value for key, value in weights.items()}
        for kind in KINDS:
            out |= {f"{STATE}{key}.{kind}": pick(key, self.states[kind]) for key in weights if not key.endswith("expert_bias")}
        return out


def check_torch_dist(tag, dp, grids):
    t = TorchDist(tag)
    source, assets = t.save(chained="qwen" not in tag), ["--assets", models.path(t.model)]
    one = resharded(source, *assets, "--dp", dp)
    mckpt("verify", one, "--against", source, "-q")
    state = load_whole(one)
    objects = {key: value for key, value in state.items() if not isinstance(value, torch.Tensor)}
    check_same(f"{tag}: one rank", {key: value for key, value in state.items() if key not in objects}, t.expected(t.weights))
    args = objects.pop("args")
    check_same(
        f"{tag}: objects",
        objects,
        {
            "checkpoint_version": 3.0,
            "iteration": 9,
            "num_floating_point_operations_so_far": 5,
            "opt_param_scheduler.max_lr": 0.1,
            "opt_param_scheduler.num_steps": 9,
        },
    )
    grid = {f"{word}_model_parallel_size": 1 for word in ("tensor", "pipeline", "expert")} | {
        "context_parallel_size": 1,
        "expert_tensor_parallel_size": 1,
    }
    expect_equal(
        f"{tag}: args",
        [args],
        [
            argparse.Namespace(
                num_layers=t.layers(),
                **grid,
                world_size=dp,
                data_parallel_size=dp,
                num_distributed_optimizer_instances=1,
                dtype=torch.bfloat16,
                betas=(0.9, 0.95),
                big=2**70,
            )
        ],
    )
    for grid in grids:
        at, weights = resharded(source, *assets, *grid), t.converted(*grid)
        got = load_whole(at, objects=False)
        check_same(
            f"{tag} {grid}: weights",
            {key: value for key, value in got.items() if key.startswith(MODEL)},
            {MODEL + key: value for key, value in weights.items()},
        )
        check_same(f"{tag} {grid}: back", load_whole(resharded(at, *assets, "--dp", dp), objects=False), t.expected(t.weights))
    back = place("back")
    mckpt("export", source, back, *assets, "--no-sync", "-q")
    want = safetensors(models.path(t.model))
    expect_equal(
        f"{tag}: export", [(name, safetensors(back).get(name)) for name in sorted(want)], [(name, want[name]) for name in sorted(want)]
    )
    mckpt("verify", source, "--against", models.path(t.model), "--params-dtype", "auto", "-q")
    mckpt("verify", source, "-q")


for tag, dp, grids in (
    ("qwen3_dense.tp2_cp1_ep1", 3, [["--tp", 2, "--dp", 2]]),
    ("nemotron_h.tp2_cp1_ep1", 3, [["--tp", 2, "--dp", 3]]),
    ("gpt_oss.tp2_cp1_ep4", 2, [["--tp", 2, "--ep", 2, "--dp", 2]]),
    ("deepseek_v3.tp2_cp1_ep1", 1, [["--tp", 2, "--ep", 4, "--dp", 2]]),
):
    check_torch_dist(tag, dp, grids)

# A real save of two pipeline stages is the model that it was made of, on every grid.
source, assets = os.path.join(DATA, "dcp", "torch_dist_pp2"), ["--assets", models.path("tiny_dense2")]
for grid in (["--dp", 1], ["--dp", 5], ["--tp", 1, "--dp", 4, "--hsdp", 2]):
    got, direct = load_whole(resharded(source, *assets, *grid)), place("direct")
    mckpt("convert", "hf-to-fsdp", models.path("tiny_dense2"), direct, "--params-dtype", "auto", "--no-sync", "-q", *grid)
    want = load_whole(os.path.join(direct, "release"))
    check_same(
        f"torch_dist_pp2 {grid}",
        {k: v for k, v in got.items() if k != "args"},
        {k: v for k, v in want.items() if k != "args"} | {"iteration": 7},
    )

# With a config alone for the model, the result is read by its config as well.
alone, back = place("alone"), place("back")
os.mkdir(alone)
shutil.copy(os.path.join(models.path("tiny_dense2"), "config.json"), alone)
at = resharded(source, "--assets", alone, "--dp", 2)
check_same("a config alone", load_whole(resharded(at, "--dp", 3)), load_whole(resharded(source, *assets, "--dp", 3)))
mckpt("verify", at, "--against", models.path("tiny_dense2"), "--params-dtype", "auto", "-q")
mckpt("export", at, back, "--no-sync", "-q")
check_same("export by a config alone", safetensors(back), safetensors(models.path("tiny_dense2")))

# Halves and experts apart (singleton_local_shards), gated delta nets in their parts, MTP layers under their other name.
for model in ("qwen3_next", "qwen3_5_mtp", "qwen3_moe"):
    direct, single = place("direct"), place("single")
    mckpt("convert", "hf-to-fsdp", models.path(model), direct, "--no-sync", "-q")
    want = load_whole(os.path.join(direct, "release"), objects=False)
    native = lambda key: re.sub(
        r"experts\.(linear_fc[12]\.(?:weight|bias))(\d+)", r"experts.experts.\2.\1", key.removeprefix(MODEL)
    ).replace(".mtp_model_layer.", ".transformer_layer.")
    dcp.save(
        {native(key): value for key, value in want.items()}, storage_writer=dcp.FileSystemWriter(single, sync_files=False), no_dist=True
    )
    with open(os.path.join(single, "metadata.json"), "w") as f:
        f.write('{"sharded_backend": "torch_dist", "sharded_backend_version": 1}')
    at = resharded(single, "--assets", models.path(model), "--dp", 2)
    check_same(f"{model}, all apart", load_whole(at, objects=False), want)

# MTP layers have a newer name in Megatron; a model without tables gets the same one as others.
direct, newer = place("direct"), place("newer")
mckpt("convert", "hf-to-fsdp", models.path("qwen3_5_mtp"), direct, "--no-sync", "-q")
want = load_whole(os.path.join(direct, "release"), objects=False)
dcp.save(
    {key.replace(".mtp_model_layer.", ".transformer_layer."): value for key, value in want.items()},
    storage_writer=dcp.FileSystemWriter(newer, sync_files=False),
    no_dist=True,
)
check_same("MTP layers of any model", load_whole(resharded(newer, "--any-model", "--source-tp", 1, "--dp", 2), objects=False), want)

# ---- What is refused, with what to do

t = TorchDist("qwen3_dense.tp2_cp1_ep1")
assets = ["--assets", models.path("qwen3_dense")]
expect_equal("common.pt", [load_whole(resharded(t.save(states=False, common_file=True), *assets, "--dp", 1))["iteration"]], [9])
flat = t.save(flat=True)
told = mckpt("convert", "to-fsdp", flat, place("out"), *assets, "--no-sync", status=4)
expect_equal("flat states", [word in told for word in ("MC3005", "exp_avg", "--weights-only")], [True] * 3)
weights = load_whole(resharded(flat, *assets, "--dp", 2, "--weights-only"), objects=False)
check_same("flat states left behind", weights, {MODEL + key: value for key, value in t.weights.items()})
buckets = place("buckets")
dcp.save(
    {
        **{name: value for name, value in t.whole.items()},
        "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_x.bucket_idx_0.exp_avg": torch.zeros(7),
    },
    storage_writer=dcp.FileSystemWriter(buckets, sync_files=False),
    no_dist=True,
)
with open(os.path.join(buckets, "metadata.json"), "w") as f:
    f.write('{"sharded_backend": "torch_dist", "sharded_backend_version": 1}')
told = mckpt("convert", "to-fsdp", buckets, place("out"), *assets, "--no-sync", status=4)
expect_equal("buckets", [word in told for word in ("MC3005", "gbuf_idx_0", "--weights-only")], [True] * 3)
strided, stacked = place("strided"), next(
    name for name, value in t.whole.items() if name.startswith("decoder.layers.") and not name[15].isdigit() and value.dim() == 3
)
dcp.save(
    {**t.whole, stacked: t.whole[stacked].transpose(0, 2).contiguous().transpose(0, 2)},
    storage_writer=dcp.FileSystemWriter(strided, sync_files=False),
    no_dist=True,
)
shutil.copy(os.path.join(buckets, "metadata.json"), strided)
told = mckpt("convert", "to-fsdp", strided, place("out"), *assets, "--no-sync", status=3)
expect_equal("a stack that does not lie row by row", [word in told for word in ("MC1224", stacked)], [True] * 2)
smaller = place("smaller")
os.mkdir(smaller)
with open(os.path.join(models.path("qwen3_dense"), "config.json")) as f, open(os.path.join(smaller, "config.json"), "w") as out:
    config = json.load(f)
    layers = config["num_hidden_layers"]
    json.dump(
        {key: value[:-1] if isinstance(value, list) and len(value) == layers else value for key, value in config.items()}
        | {"num_hidden_layers": layers - 1},
        out,
    )
told = mckpt("convert", "to-fsdp", t.save(states=False), place("out"), "--assets", smaller, "--no-sync", status=3)
expect_equal("a model of fewer layers", [word in told for word in ("MC2005", "more layers")], [True] * 2)
told = mckpt("convert", "to-fsdp", source, place("out"), "--no-sync", status=4)
expect_equal("no model", [word in told for word in ("MC2014", "--assets")], [True] * 2)
told = mckpt("convert", "to-fsdp", source, place("out"), "--any-model", "--no-sync", status=4)
expect_equal("torch_dist of any model", [word in told for word in ("MC2014", "--assets")], [True] * 2)
told = mckpt("convert", "to-fsdp", os.path.join(DATA, "dcp", "fsdp2"), place("out"), "--any-model", "--tp", 2, "--no-sync", status=4)
expect_equal("ranks of any model", ["MC2013" in told], [True])
numbered = place("numbered")
dcp.save(
    {
        "model.module.a.weight": torch.ones(4, 3),
        "optimizer.state.0.exp_avg": torch.ones(4, 3),
        "optimizer.state.0.exp_avg_sq": torch.ones(4, 3),
    },
    storage_writer=dcp.FileSystemWriter(numbered, sync_files=False),
    no_dist=True,
)
told = mckpt("convert", "to-fsdp", numbered, place("out"), "--any-model", "--no-sync", status=4)
expect_equal("numbered states", [word in told for word in ("MC3005", "--weights-only")], [True] * 2)
resharded(numbered, "--any-model", "--weights-only", "--dp", 2)
finish(8468)
