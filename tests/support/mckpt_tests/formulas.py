"""Models of random sizes, and what a rank holds of them by plain formulas over whole arrays: the parts of arrays that a cell has,
tensors of random bits, blocks that families have in common, and the comparison with mckpt's answer. The formulas share nothing
with mckpt; the folder family_formulas has them for each family.
"""

import dataclasses
import hashlib
import itertools
import json
import os
import random
import tempfile
import typing

from mckpt_tests.checks import expect_equal, need
from mckpt_tests.program import run_mckpt

need("numpy")
import numpy as np  # noqa: E402

# ---- The parts of arrays that a cell has


class Cell:
    """Rank t of T tensor-parallel ones, e of ET in an expert, x of X expert-parallel ones, stage p of P."""

    def __init__(self, grid, rank):
        self.T, self.X, self.ET, self.P = (grid[size] for size in ("tp", "ep", "etp", "pp"))
        stage = self.T * grid["cp"] * grid["dp"]
        self.p, inside = divmod(rank, stage)
        self.t, self.e, self.x = inside % self.T, inside % self.ET, inside // self.ET % self.X

    def col(self, a):
        return np.split(a, self.T, axis=0)[self.t]

    def row(self, a):
        return np.split(a, self.T, axis=1)[self.t]

    def glu(self, gate, up):
        return np.concatenate([self.col(gate), self.col(up)])

    def expert(self, gate, up, down):
        """The two parameters of an expert."""
        part = [np.split(a, self.ET, axis=axis)[self.e] for a, axis in ((gate, 0), (up, 0), (down, 1))]
        return np.concatenate(part[:2]), part[2]

    def qkv(self, q, k, v, groups):
        """Group by group: its queries, its keys, its values."""
        parts = [a.reshape(groups, a.shape[0] // groups, *a.shape[1:]) for a in (q, k, v)]
        fused = np.concatenate(parts, axis=1)
        return self.col(fused.reshape(-1, *q.shape[1:]))

    def joined(self, qkv, heads, groups, dim):
        q, k, v = np.split(qkv, [heads * dim, (heads + groups) * dim])
        return self.qkv(q, k, v, groups)

    def sections(self, a, sizes):
        """The cell's part of each block of rows."""
        return np.concatenate([self.col(block) for block in np.split(a, np.cumsum(sizes)[:-1])])

    def experts(self, n):
        each = n // self.X
        return [(j, self.x * each + j) for j in range(each)]

    def layers(self, n):
        each = n // self.P
        return [(j, self.p * each + j) for j in range(each)]

    @property
    def first(self):
        return self.p == 0

    @property
    def last(self):
        return self.p == self.P - 1


# ---- The tensors of a model


class Tensors:
    """Made when they are asked for, each of random bits. Sizes that must divide by something are multiples of `unit`."""
    unit = 1

    def __init__(self, r):
        self.random, self.made = np.random.default_rng(r.randrange(2**32)), {}

    def new(self, name, *shape, dtype="BF16"):
        bits = {"BF16": np.uint16, "F32": np.float32, "I64": np.int64, "I32": np.int32}[dtype]
        if dtype == "F32":
            a = self.random.standard_normal(shape).astype(bits)
        else:
            a = self.random.integers(0, 2**14, shape).astype(bits)
        self.made[name] = (dtype, a)
        return a

    def linear(self, name, rows, columns, bias=True):
        out = [self.new(f"{name}.weight", rows, columns)]
        return out + [self.new(f"{name}.bias", rows)] if bias else out[0]

    def save(self, folder):
        header, data, at = {}, [], 0
        for name, (dtype, a) in self.made.items():
            header[name] = {"dtype": dtype, "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
            data.append(a.tobytes())
            at += a.nbytes
        text = json.dumps(header).encode()
        with open(os.path.join(folder, "model.safetensors"), "wb") as f:
            f.write(len(text).to_bytes(8, "little") + text + b"".join(data))


def bf16(a):
    """To the nearest, ties to even."""
    bits = a.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


# ---- What a rank holds


class Held(dict):
    """Parameters by their names, in order. `buffers` has the names that Megatron lists apart."""

    def __init__(self):
        super().__init__()
        self.buffers = set()

    def buffer(self, name, a):
        self[name] = a
        self.buffers.add(name)


def layer_of(held, prefix, mine, n):
    """Puts a parameter of layer n where the rank has that layer; `mine`: its number there."""
    def put(name, a, buffer=False):
        if n in mine:
            (held.buffer if buffer else held.__setitem__)(f"{prefix}decoder.layers.{mine[n]}.{name}", a)
    return put


def always(held, prefix, here=True):
    def put(name, a, buffer=False):
        if here:
            (held.buffer if buffer else held.__setitem__)(f"{prefix}{name}", a)
    return put


# ---- Blocks that the families share


def tower_sizes(r):
    heads = r.randint(1, 3)
    return dict(hidden_size=heads * r.randint(2, 4), num_hidden_layers=r.randint(1, 3), num_attention_heads=heads, intermediate_size=r.randint(3, 9))


def sizes(r, T):
    groups = T * r.randint(1, 2)
    return dict(hidden_size=T * r.randint(2, 5), num_attention_heads=groups * r.randint(1, 3), num_key_value_heads=groups, intermediate_size=T * r.randint(2, 6),
                vocab_size=T * r.randint(3, 9), num_hidden_layers=0, head_dim=r.randint(2, 5), tie_word_embeddings=False, hidden_act="silu", rms_norm_eps=1e-5)


def embedding(h, held, t, cell, prefix, file, leaf="embed_tokens.weight"):
    a = h.new(f"{file}{leaf}", t["vocab_size"], t["hidden_size"])
    if cell.first:
        held[f"{prefix}embedding.word_embeddings.weight"] = cell.col(a)
    return a


def output(h, held, t, cell, prefix, name, embedded, tied):
    out = embedded if tied else h.new(name, t["vocab_size"], t["hidden_size"])
    if cell.last and (not tied or not cell.first):
        held[f"{prefix}output_layer.weight"] = cell.col(out)


def attention(h, put, t, cell, file, dim, bias=False, norms=False, groups=None):
    H, heads, groups = t["hidden_size"], t["num_attention_heads"], groups or t["num_key_value_heads"]
    q, k, v = (h.new(f"{file}self_attn.{x}_proj.weight", n * dim, H) for x, n in (("q", heads), ("k", groups), ("v", groups)))
    put("self_attention.linear_qkv.weight", cell.qkv(q, k, v, groups))
    if bias:
        q, k, v = (h.new(f"{file}self_attn.{x}_proj.bias", n * dim) for x, n in (("q", heads), ("k", groups), ("v", groups)))
        put("self_attention.linear_qkv.bias", cell.qkv(q, k, v, groups))
    if norms:
        for x in "qk":
            put(f"self_attention.{x}_layernorm.weight", h.new(f"{file}self_attn.{x}_norm.weight", dim))
    put("self_attention.linear_proj.weight", cell.row(h.new(f"{file}self_attn.o_proj.weight", H, heads * dim)))


def dense(h, put, cell, file, hidden, width):
    put("mlp.linear_fc1.weight", cell.glu(h.new(f"{file}mlp.gate_proj.weight", width, hidden), h.new(f"{file}mlp.up_proj.weight", width, hidden)))
    put("mlp.linear_fc2.weight", cell.row(h.new(f"{file}mlp.down_proj.weight", hidden, width)))


def experts(h, put, cell, E, width, H, at, names):
    gate, up, down = names
    files = [[h.new(f"{at}{x}.{leaf}.weight", *shape) for leaf, shape in ((gate, (width, H)), (up, (width, H)), (down, (H, width)))] for x in range(E)]
    put_experts(put, cell, files)


def put_experts(put, cell, files):
    """files: gate, up and down of every expert."""
    own = [cell.expert(*files[x]) for _, x in cell.experts(len(files))]
    for part, name in enumerate(("linear_fc1", "linear_fc2")):
        for j, matrices in enumerate(own):
            put(f"mlp.experts.{name}.weight{j}", matrices[part])


def attention_layers(h, held, t, cell, prefix, file, dim, **how):
    """Each layer with a norm in front of plain attention, in the linear layer: its number, where its other parameters are put, its name in the file."""
    mine = dict((n, j) for j, n in cell.layers(t["num_hidden_layers"]))
    for n in range(t["num_hidden_layers"]):
        put, at = layer_of(held, prefix, mine, n), f"{file}layers.{n}."
        put("self_attention.linear_qkv.layer_norm_weight", h.new(f"{at}input_layernorm.weight", t["hidden_size"]))
        attention(h, put, t, cell, at, dim, **how)
        yield n, put, at


def llama_layers(h, held, t, cell, prefix, file, dim, **how):
    """Norms in front, in the linear layers."""
    for _, put, at in attention_layers(h, held, t, cell, prefix, file, dim, **how):
        put("mlp.linear_fc1.layer_norm_weight", h.new(f"{at}post_attention_layernorm.weight", t["hidden_size"]))
        dense(h, put, cell, at, t["hidden_size"], t["intermediate_size"])


def final_norm(h, held, t, cell, prefix, name, leaf="decoder.final_layernorm.weight"):
    a = h.new(name, t["hidden_size"])
    if cell.last:
        held[f"{prefix}{leaf}"] = a


def whole(h, held, cell, prefix, file, shapes):
    """A tower of Hugging Face's modules: every cell of the first stage has it."""
    for name, *shape in shapes:
        a = h.new(f"{file}{name}", *shape)
        if cell.first:
            held[f"{prefix}{name}"] = a


def both(name, rows, *columns):
    return [(f"{name}.weight", rows, *columns), (f"{name}.bias", rows)]


# ---- The comparison


@dataclasses.dataclass
class Family:
    """fill(r, h, held, cell) gives config.json, and fills the tensors and what the cell holds; of a grid or sizes that do not fit,
    None. It is called once for each rank, and draws the same then."""
    fill: typing.Callable
    experts: bool = False  # has ranks for experts
    split_experts: bool = False  # and ranks inside of one
    in_order: bool = False  # parameters are held in Megatron's order
    one_tensor_rank: bool = False
    no_context: bool = False  # no context parallelism


def random_grid(r, family):
    sizes = {"tp": 1 if family.one_tensor_rank else r.choice([1, 2, 3, 4]), "cp": 1 if family.no_context else r.choice([1, 1, 2]),
             "ep": r.choice([1, 2, 3]) if family.experts else 1, "etp": r.choice([1, 1, 2]) if family.split_experts else 1, "pp": r.choice([1, 1, 2, 3])}
    least = next(n for n in itertools.count(1) if sizes["tp"] * sizes["cp"] * n % (sizes["ep"] * sizes["etp"]) == 0)
    return sizes | {"dp": least * r.randint(1, 2)}


def drawn(family, seed, rank, tensors=Tensors, grid=None):
    """The config, the tensors and what the rank holds."""
    r = random.Random(seed)
    h, held = tensors(r), Held()
    return family.fill(r, h, held, Cell(grid or random_grid(random.Random(f"grid {seed}"), family), rank)), h, held


def write(folder, config, h):
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({"torch_dtype": "bfloat16"} | config, f)
    h.save(folder)


def line(name, a):
    return f"{name} {list(a.shape)} {hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()}"


def compare(what, folder, flags, held, in_order):
    run = run_mckpt("ls", folder, "--as", "megatron", *flags, "--digest", "--json", "-q")
    if run.returncode:
        return expect_equal(what, [run.stdout + run.stderr], [""])
    got = {t["name"]: f"{t['name']} {t['shape']} {t['sha256']}" for t in json.loads(run.stdout)["tensors"]}
    want = {name: line(name, a) for name, a in held.items()}
    if not in_order:
        return expect_equal(what, sorted(got.values()), sorted(want.values()))
    for buffers in (False, True):
        g, w = ([text for name, text in side.items() if (name in held.buffers) == buffers] for side in (got, want))
        expect_equal(what + " buffers" * buffers, sorted(g) if buffers else g, sorted(w) if buffers else w)


def check(name, family, number, ranks=3):
    for attempt in itertools.count():
        seed = f"{name} {number} {attempt}"
        grid = random_grid(random.Random(f"grid {seed}"), family)
        config, h, held = drawn(family, seed, 0)
        if config:
            break
    world = grid["tp"] * grid["cp"] * grid["dp"] * grid["pp"]
    with tempfile.TemporaryDirectory(prefix="mckpt_formula_") as folder:
        write(folder, config, h)
        for rank in sorted(random.Random(seed).sample(range(world), min(world, ranks))):
            held = drawn(family, seed, rank)[2]
            compare(f"{name} {number} rank {rank} of {grid}", folder, [*(f"--{size}={n}" for size, n in grid.items()), "--rank", str(rank)], held, family.in_order)
