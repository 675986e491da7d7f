"""mckpt diff: sixty-five differences planted between two models are each named in the first ten lines, with the way in which the
tensors differ. With the standard library alone. usage: planted_differences.py"""

import json
import os
import random
import struct
import tempfile

from mckpt_tests.program import run_mckpt
from mckpt_tests.checks import expect, finish

ROWS, COLUMNS, LAYERS, EXPERTS = 16, 16, 4, 4


def bf16(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def value(data):
    return struct.unpack("<f", b"\0\0" + data)[0]


def drawn(r, count):
    return b"".join(bf16(r.gauss(0, 1)) for _ in range(count))


def model(seed):
    r = random.Random(seed)
    out = {"model.embed_tokens.weight": ([32, COLUMNS], drawn(r, 32 * COLUMNS)), "model.norm.weight": ([COLUMNS], drawn(r, COLUMNS))}
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        out[at + "input_layernorm.weight"] = ([COLUMNS], drawn(r, COLUMNS))
        for name in ("q_proj", "o_proj"):
            out[f"{at}self_attn.{name}.weight"] = ([ROWS, COLUMNS], drawn(r, ROWS * COLUMNS))
        for expert in range(EXPERTS):
            for name in ("gate_proj", "up_proj"):
                out[f"{at}mlp.experts.{expert}.{name}.weight"] = ([8, COLUMNS], drawn(r, 8 * COLUMNS))
    return out


def write(path, tensors):
    entries, data = {}, b""
    for name, (shape, values, *dtype) in tensors.items():
        entries[name] = {"dtype": dtype[0] if dtype else "BF16", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    header = json.dumps(entries).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + data)


def rows_of(data, columns):
    return [data[i : i + 2 * columns] for i in range(0, len(data), 2 * columns)]


# Each plants one difference into `b`, and returns the names and words that the first ten lines must have.
def scaled(r, b):
    name = r.choice([n for n in b if "proj" in n])
    shape, data = b[name]
    b[name] = shape, b"".join(bf16(value(data[i : i + 2]) * 1.25) for i in range(0, len(data), 2))
    return name, "0.2"  # 0.25 / 1.25


def swapped(r, b):
    layer, one, other = r.randrange(LAYERS), *r.sample(range(EXPERTS), 2)
    first, second = (f"model.layers.{layer}.mlp.experts.{e}.up_proj.weight" for e in (one, other))
    b[first], b[second] = b[second], b[first]
    return first, second, f"the same values as {first} of B"


def doubled(r, b):
    layer, one, other = r.randrange(LAYERS), *r.sample(range(EXPERTS), 2)
    kept, lost = (f"model.layers.{layer}.mlp.experts.{e}.gate_proj.weight" for e in (one, other))
    b[lost] = b[kept]
    return lost, f"B has the values of {kept} of A here"


def lost_norm(r, b):
    name = f"model.layers.{r.randrange(LAYERS)}.input_layernorm.weight"
    b[name] = [COLUMNS], bf16(1) * COLUMNS
    return name, "1 of 46 tensors differs"


def one_item(r, b):
    name = r.choice([n for n in b if "proj" in n])
    shape, data = b[name]
    at = r.randrange(len(data) // 2)
    b[name] = shape, data[: 2 * at] + bf16(value(data[2 * at : 2 * at + 2]) + 2) + data[2 * at + 2 :]
    return name, f"[{at // shape[1]}, {at % shape[1]}]"


def other_type(r, b):
    name = r.choice(list(b))
    shape, data = b[name]
    b[name] = shape, b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2)), "F32"
    return "no value differs, but 1 of 46 tensors has another type: 45 are bit-equal", f"type     {name}  bfloat16 | float32"


def transposed(r, b):
    name = f"model.layers.{r.randrange(LAYERS)}.self_attn.{r.choice(['q_proj', 'o_proj'])}.weight"
    shape, data = b[name]
    items = [data[i : i + 2] for i in range(0, len(data), 2)]
    b[name] = shape, b"".join(items[c * COLUMNS + row] for row in range(ROWS) for c in range(COLUMNS))
    return name, "the transpose of B's"


def other_heads(r, b):
    name = f"model.layers.{r.randrange(LAYERS)}.self_attn.q_proj.weight"
    shape, data = b[name]
    rows = rows_of(data, COLUMNS)
    heads = [rows[i : i + 4] for i in range(0, ROWS, 4)]
    b[name] = shape, b"".join(row for h in (2, 0, 3, 1) for row in heads[h])
    return name, "the same rows in another order (in blocks of 4 or more)"


def other_columns(r, b):
    name = f"model.layers.{r.randrange(LAYERS)}.self_attn.o_proj.weight"
    shape, data = b[name]
    b[name] = shape, b"".join(row[COLUMNS:] + row[:COLUMNS] for row in rows_of(data, COLUMNS))
    return name, "the same columns in another order (in blocks of 8 or more)"


def missing(r, b):
    name = r.choice(list(b))
    del b[name]
    return f"only A   {name}", f"1 of {len(b) + 1} tensors differs"


def more(r, b):
    b["model.extra.weight"] = [3], bf16(1) * 3
    return ("only B   model.extra.weight  bfloat16 [3]",)


def other_shape(r, b):
    name = r.choice([n for n in b if "proj" in n])
    shape, data = b[name]
    b[name] = [shape[0] * 2, shape[1] // 2], data
    return (f"shape    {name}  bfloat16 [{shape[0]}, {shape[1]}] | bfloat16 [{shape[0] * 2}, {shape[1] // 2}]",)


def renamed(r, b):
    name = r.choice([n for n in b if "proj" in n])
    new = name.replace("proj", "projection")
    b[new] = b.pop(name)
    return f"only A   {name}", f"the same values as {new} of B", f"the same values as {name} of A"


KINDS = [renamed, scaled, swapped, doubled, lost_norm, one_item, other_type, transposed, other_heads, other_columns, missing, more, other_shape]


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number in range(65):
            plant, r = KINDS[number % len(KINDS)], random.Random(number)
            a = model(number)
            b = dict(a)
            expected = plant(r, b)
            write("a.safetensors", a), write("b.safetensors", b)
            result = run_mckpt("diff", "a.safetensors", "b.safetensors")
            first = "\n".join(result.stdout.splitlines()[:10])
            expect(result.returncode == 1, f"{number} {plant.__name__}: exit status {result.returncode}: {result.stderr}")
            for words in expected:
                expect(words in first, f"{number} {plant.__name__}: {words!r} is not in the first ten lines:\n{result.stdout}")
        trained(model(7))
    finish(100)


def trained(a):
    """Every matrix a little other, as after a step; norms are not: the first lines say which, and tolerances which matter."""
    r = random.Random(1)
    b = {}
    for name, (shape, data) in a.items():
        items = [value(data[i : i + 2]) for i in range(0, len(data), 2)]
        b[name] = shape, b"".join(bf16(x * (1 + r.gauss(0, 0.01))) for x in items) if "proj" in name else data
    write("a.safetensors", a), write("b.safetensors", b)
    text = run_mckpt("diff", "a.safetensors", "b.safetensors").stdout
    expect("changed  model.layers.*.mlp.experts.*.gate_proj.weight  all 16" in text, text)
    expect("same     model.embed_tokens.weight, model.layers.*.input_layernorm.weight, model.norm.weight" in text, text)
    answer = json.loads(run_mckpt("diff", "a.safetensors", "b.safetensors", "--json").stdout)
    distances = [row["relative_l2"] for row in answer["rows"]]
    expect(distances == sorted(distances, reverse=True) and 0.005 < distances[0] < 0.02, f"in the order of distances: {distances}")
    row = answer["rows"][0]
    found, wanted = ([value(side[row["name"]][1][i : i + 2]) for i in range(0, 2 * 8 * COLUMNS, 2)] for side in (a, b))
    apart = sum((x - y) ** 2 for x, y in zip(found, wanted)) ** 0.5 / sum(y * y for y in wanted) ** 0.5
    if len(found) * 2 == len(a[row["name"]][1]):
        expect(abs(row["relative_l2"] - apart) < 1e-12, f"relative L2 is {apart}, not {row['relative_l2']}")
        expect(row["largest"] == max(abs(x - y) for x, y in zip(found, wanted)), f"largest: {row}")
        expect(row["items"] == sum(x != y for x, y in zip(found, wanted)), f"items: {row}")
    for options, status in ((["--rtol", "0.2"], 0), (["--max-ulp", "20"], 0), (["--rtol", "1e-4"], 1),
                            (["--tol-rule", "*.gate_proj.weight=rtol:1", "--tol-rule", "*=ulp:30"], 0),
                            (["--tol-rule", "*=ulp:30", "--tol-rule", "*.gate_proj.weight=rtol:1"], 1),
                            (["*.gate_proj.weight", "--tol-rule", "*.gate_proj.weight=rtol:1", "--tol-rule", "*=ulp:30"], 0),
                            (["--tol-rule", "*.gate_proj.weight=rtol:1"], 1), (["--tol-rule", "nothing=ulp:1"], 1), (["--tol-rule", "ulp:1"], 2)):
        result = run_mckpt("diff", "a.safetensors", "b.safetensors", "-q", *options)
        expect((result.returncode, result.stdout) == (status, ""), f"{options}: exit status {result.returncode}: {result.stderr}")
    idle = run_mckpt("diff", "a.safetensors", "b.safetensors", "--tol-rule", "*=ulp:30", "--tol-rule", "*.gate_proj.weight=rtol:1").stderr
    expect("a rule before it decides about every tensor that it matches" in idle and "found    '*.gate_proj.weight'" in idle, idle)
    equal = run_mckpt("diff", "a.safetensors", "b.safetensors", "--only", "equal").stdout.split()
    expect(equal == [n for n in ["model.embed_tokens.weight"] + [f"model.layers.{i}.input_layernorm.weight" for i in range(LAYERS)] + ["model.norm.weight"]], f"{equal}")


main()
