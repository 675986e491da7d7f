"""`convert hf-to-fsdp` writes for the grid of every golden Megatron-FSDP run the same as that run saved: keys
in their order, types, shapes, boxes, the rank that writes each chunk, the order of the items in the files,
and every byte.

Read here with pickle and zipfile alone, neither by mckpt nor by torch.
"""

import io
import os
import pickle
import tempfile
import zipfile

from mckpt_tests.checks import expect_equal, fail, in_parallel
from mckpt_tests.golden import finish, is_expert_bias, listing, report, run_flags, sections, sha, text
from mckpt_tests.models import GOLDEN, Models
from mckpt_tests.program import run_mckpt

PREFIX = "model.module."
BYTES = {"float32": 4, "bfloat16": 2}
models = Models()


class Stand:
    """An object of any class, and its state."""

    state = {}

    def __init__(self, *args):
        pass

    def __setstate__(self, state):
        self.state = state

    def __getattr__(self, name):
        return self.state[name]


class Metadata(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) == ("torch", "Size"):
            return tuple
        if module == "torch" and name in BYTES:
            return name
        return type(name, (Stand,), {})


def written(folder):
    """The chunks of a checkpoint folder in the order of .metadata: (key, type, shape, offsets, sizes, file, at, bytes);
    and the names of planner_data in order."""
    with open(os.path.join(folder, ".metadata"), "rb") as f:
        metadata = Metadata(f).load()
    places = {(at.fqn, at.state.get("offset")): (at.index, info) for at, info in metadata.storage_data.items()}
    files, chunks = {}, []
    for key, tensor in metadata.state_dict_metadata.items():
        if "size" not in tensor.state:
            continue
        for number, chunk in enumerate(tensor.chunks):
            index, info = places[key, tuple(chunk.offsets)]
            if index != number:
                fail(f"{folder}: {key}: chunk {number} has the index {index}")
            if info.relative_path not in files:
                with open(os.path.join(folder, info.relative_path), "rb") as f:
                    files[info.relative_path] = f.read()
            item = files[info.relative_path][info.offset : info.offset + info.length]
            with zipfile.ZipFile(io.BytesIO(item)) as archive:
                data = archive.read("archive/data/0")
            chunks.append(
                (
                    key,
                    tensor.properties.state[0],
                    tensor.size,
                    tuple(chunk.offsets),
                    tuple(chunk.sizes),
                    info.relative_path,
                    info.offset,
                    data,
                )
            )
    for key, path in metadata.planner_data.items():
        if ".".join(path) != key or len(path) != 1 + key.startswith(PREFIX):
            fail(f"{folder}: {key}: the path {path}")
    return chunks, [key.removeprefix(PREFIX) for key in metadata.planner_data if key.startswith(PREFIX)]


def numbers(word):
    return tuple(map(int, word.split("x"))) if word != "-" else ()


def items(word):
    count = 1
    for n in numbers(word):
        count *= n
    return count


def writers(ranks):
    """(key, offsets) -> the rank that torch's planner has write the chunk: among the holders the one with the smallest load
    so far, and the lowest of those; a chunk loads its rank with the bytes of the whole tensor."""
    holders, weight = {}, {}
    for rank, lines in enumerate(ranks):
        for line in lines:
            key, dtype, shape, _, *box = line.split()
            if box != ["nothing"]:
                holders.setdefault((key, box[0]), []).append(rank)
                weight[key, box[0]] = items(shape) * BYTES[dtype]
    load, chosen = [0] * len(ranks), {}
    for chunk, held in holders.items():
        chosen[chunk] = min(held, key=lambda rank: (load[rank], rank))
        load[chosen[chunk]] += weight[chunk]
    return chosen


def renumbered(model, ranks):
    """The real run of gpt-oss on two expert-parallel ranks numbers the biases of experts from 0 on both, so that they collide."""

    def line_of(line, rank):
        key, rest = line.split(" ", 1)
        if not is_expert_bias(line):
            return line
        stem, number = key.rsplit("bias", 1)
        return f"{stem}bias{int(number) + rank % 2 * 8} {rest}"

    return [[line_of(line, rank) for line in lines] for rank, lines in enumerate(ranks)] if model == "gpt_oss" else ranks


def golden_chunks(ranks):
    """The lines of a golden run by the rank that writes them, in its order: (rank, line)."""
    chosen = writers(ranks)
    return [
        (rank, line)
        for rank, lines in enumerate(ranks)
        for line in lines
        if line.split()[4] != "nothing" and chosen[line.split()[0], line.split()[4]] == rank
    ]


def convert(model, flags, out):
    run = run_mckpt(
        "convert", "hf-to-fsdp", models.path(model), out, "--params-dtype", "auto", "--no-sync", "-q", "-j1", *flags, timeout=60
    )
    if run.returncode:
        fail(f"{model} {' '.join(flags)}: {run.stderr}")
    return os.path.join(out, "release") if run.returncode == 0 else None


def check_saved(tag, folder):
    """The checkpoint that the real run saved, as torch read it back."""
    head, _ = sections(f"saved/{tag}")
    rows = listing(folder)
    if isinstance(rows, str):
        return fail(f"{tag}: {rows}")
    # The real gpt-oss checkpoint has lost half of the biases of its experts.
    lost = is_expert_bias if tag.startswith("gpt_oss") else lambda line: False
    got = [
        f"{r['name'].removeprefix(PREFIX)} {r['dtype']} {text(r['shape'])} {r['sha256']} "
        + ";".join(sorted(f"{text(c['offsets'])}+{text(c['sizes'])}" for c in r["chunks"]))
        for r in rows
    ]
    expect_equal(f"{tag}, saved", *(sorted(line for line in side if not lost(line)) for side in (got, head[1:])))


def check(tag):
    head, ranks = sections(f"fsdp/{tag}")
    model = head[0].split()[1]
    ranks = renumbered(model, ranks)
    with tempfile.TemporaryDirectory(prefix="mckpt_written_") as out:
        folder = convert(model, run_flags(head[1]), out)
        if not folder:
            return
        chunks, names = written(folder)
        files = [
            (int(file[2:].split("_")[0]), at, f"{key.removeprefix(PREFIX)} {dtype} {text(shape)} {sha(data)} {text(offsets)} {text(sizes)}")
            for key, dtype, shape, offsets, sizes, file, at, data in chunks
        ]
        want = golden_chunks(ranks)
        got = [f"{rank} {line}" for rank, _, line in sorted(files)]
        keys = list(dict.fromkeys(chunk[0] for chunk in chunks))
        # Renumbering changes the order of the real run's biases, and with them of all.
        ordered = sorted if model == "gpt_oss" else list
        expect_equal(tag, ordered(got), ordered(f"{rank} {line}" for rank, line in want))
        expect_equal(f"{tag}: keys", ordered(keys), ordered(dict.fromkeys(PREFIX + line.split()[0] for _, line in want)))
        # The names of the last rank first, then what is new in the one before.
        expect_equal(
            f"{tag}: names", ordered(names), ordered(dict.fromkeys(line.split()[0] for lines in reversed(ranks) for line in lines))
        )
        if os.path.exists(os.path.join(GOLDEN, "saved", tag)):
            check_saved(tag, folder)


tags = sorted(os.listdir(os.path.join(GOLDEN, "fsdp")))
in_parallel(check, [(tag,) for tag in tags])
report({tag: "biases equal under other numbers, all else equal" if tag.startswith("gpt_oss") else "every chunk equal" for tag in tags})
finish(7680, "fsdp", "saved")
