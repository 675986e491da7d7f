"""Several hundred datasets of all types, layouts, filters, byte orders and file versions, written with h5py's own HDF5
library, which then says what their bytes are; `mckpt ls --json --digest` must say the same. Ends with 77 without h5py."""
import hashlib
import json
import os
import random
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

from h5py import h5d, h5p, h5s, h5t

from mckpt_tests.program import run_mckpt

PER_FILE = 120
VERSIONS = [None, ("earliest", "v110"), ("v108", "v110"), ("v110", "v110")]


def small_float(size, sign, exponent_at, exponent, mantissa, bias):
    t = h5t.IEEE_F16LE.copy()
    t.set_fields(sign, exponent_at, exponent, 0, mantissa)
    t.set_ebias(bias)
    t.set_precision(size * 8)
    t.set_size(size)
    return t


def big(t):
    t = t.copy()
    t.set_order(h5t.ORDER_BE)
    return t


# mckpt's name, HDF5's type, bytes of what is swapped.
TYPES = []
for sign in "iu":
    for size in (1, 2, 4, 8):
        TYPES.append((f"{'u' * (sign == 'u')}int{size * 8}", h5t.py_create(np.dtype(f"<{sign}{size}")), size))
for size in (2, 4, 8):
    TYPES.append((f"float{size * 8}", h5t.py_create(np.dtype(f"<f{size}")), size))
for size in (8, 16):
    TYPES.append((f"complex{size * 8}", h5t.py_create(np.dtype(f"<c{size}")), size // 2))
TYPES.append(("bool", h5t.py_create(np.dtype(bool)), 1))
TYPES.append(("bfloat16", small_float(2, 15, 7, 8, 7, 127), 2))
TYPES.append(("float8_e4m3fn", small_float(1, 7, 3, 4, 3, 7), 1))
TYPES.append(("float8_e5m2", small_float(1, 7, 2, 5, 2, 15), 1))
LITTLE = len(TYPES)
for name, t, part in TYPES[:LITTLE]:
    if part > 1 and not name.startswith("complex"):
        TYPES.append((name, big(t), part))
TYPES += [("complex64", h5t.py_create(np.dtype(">c8")), 4), ("complex128", h5t.py_create(np.dtype(">c16")), 8)]


def is_big(t):
    if t.get_class() == h5t.COMPOUND:
        t = t.get_member_type(0)
    return t.get_size() > 1 and t.get_class() != h5t.ENUM and t.get_order() == h5t.ORDER_BE


def random_shape(rng):
    return tuple(rng.choice((0, 1, 1, 2, 3, 5, 8, 17, 40)) for _ in range(rng.randrange(5)))


def layout(rng, shape, size, properties):
    """Chooses the places of the data; returns the largest shape."""
    kind = rng.choice(("contiguous", "contiguous", "early", "compact", "chunked", "chunked", "chunked", "chunked"))
    if kind == "early":
        properties.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    if kind == "compact" and size * np.prod(shape, dtype=object) < 60_000:
        properties.set_layout(h5d.COMPACT)
    if kind != "chunked" or not shape:
        return shape
    most = tuple(rng.choice((n, h5s.UNLIMITED, n + 7)) for n in shape)
    properties.set_chunk(tuple(rng.randint(1, n if m == n and n else n + 4) for n, m in zip(shape, most)))
    filters = rng.choice(([], [], ["deflate"], ["shuffle", "deflate"], ["shuffle", "deflate", "fletcher32"],
                          ["fletcher32"], ["shuffle"], ["fletcher32", "deflate"]))
    for f in filters:
        properties.set_deflate(rng.randint(0, 9)) if f == "deflate" else getattr(properties, f"set_{f}")()
    return most


def write(rng, dataset, t, shape, raw):
    """All of it, a box of it, or nothing."""
    how = rng.choice(("all", "all", "all", "box", "nothing"))
    if how == "nothing" or 0 in shape or dataset.get_space().get_simple_extent_npoints() == 0:
        return
    if how == "all" or not shape:
        dataset.write(h5s.ALL, h5s.ALL, raw, mtype=t)
        return
    start = tuple(rng.randrange(n) for n in shape)
    count = tuple(rng.randint(1, n - s) for s, n in zip(start, shape))
    space = dataset.get_space()
    space.select_hyperslab(start, count)
    part = np.ascontiguousarray(raw[tuple(slice(s, s + c) for s, c in zip(start, count))])
    dataset.write(h5s.create_simple(count), space, part, mtype=t)


def little_endian(raw, t, part):
    data = raw.tobytes()
    return np.frombuffer(data, f">u{part}").astype(f"<u{part}").tobytes() if is_big(t) else data


def add_dataset(rng, file, name, wanted):
    dtype, t, part = rng.choice(TYPES)
    shape = random_shape(rng)
    size = t.get_size()
    properties = h5p.create(h5p.DATASET_CREATE)
    most = layout(rng, shape, size, properties)
    links = h5p.create(h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    space = h5s.create_simple(shape, most) if shape else h5s.create(h5s.SCALAR)
    if dtype.startswith(("int", "uint", "float")) and "8_" not in dtype and rng.random() < 0.3:
        properties.set_fill_value(np.array(7, "<i4" if "int" in dtype else "<f4"))
    dataset = h5d.create(file.id, name.encode(), t, space, properties, links)
    items = int(np.prod(shape, dtype=object))
    values = np.frombuffer(rng.randbytes(items * size), f"V{size}") if dtype != "bool" else np.frombuffer(
        bytes(rng.randrange(2) for _ in range(items)), "V1")
    write(rng, dataset, t, shape, values.reshape(shape).copy())
    back = np.zeros(shape, f"V{size}")
    if items:
        dataset.read(h5s.ALL, h5s.ALL, back, mtype=t)
    digest = hashlib.sha256(little_endian(back, t, part)).hexdigest()
    wanted[name] = (dtype, list(shape), digest)


def make(path, version, user_block, rng):
    wanted = {}
    with h5py.File(path, "w", libver=version, userblock_size=user_block) as f:
        f.attrs["step"] = 7
        for i in range(PER_FILE):
            add_dataset(rng, f, rng.choice(("model.layers.{}.weight", "a/b/{}", "a/{}/c/d", "{}", "ü/{} x")).format(i), wanted)
        f["strings"] = ["x", "y"]
        f["alias"] = h5py.SoftLink("/strings")
        f["a"].attrs["note"] = "text"
    if user_block:
        with open(path, "r+b") as raw:
            raw.write(b"not zero " * 50)
    return wanted


def ask(path):
    done = run_mckpt("ls", "--json", "--digest", path)
    if done.returncode != 0:
        sys.exit(f"FAILED: mckpt ls {path}: {done.returncode}\n{done.stderr}")
    return {t["name"]: (t["dtype"], t["shape"], t["sha256"]) for t in json.loads(done.stdout)["tensors"]}


def check_verified(path):
    """Random bits have NaN; nothing else may be wrong."""
    done = run_mckpt("verify", "--json", path)
    checks = {c["name"]: c["status"] for c in json.loads(done.stdout)["checks"]}
    wanted = {"files": "pass", "format": "warn", "coverage": "pass", "items": "pass"}
    if {name: checks[name] for name in wanted} != wanted:
        sys.exit(f"FAILED: mckpt verify {path}: {checks}")


def main():
    rng = random.Random(20261121)
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        for i, version in enumerate(VERSIONS):
            path = os.path.join(folder, f"{i}.h5")
            wanted = make(path, version, 1024 if i % 2 else 0, rng)
            found = ask(path)
            wrong = [f"{n}: expected {w}, found {found.get(n)}" for n, w in wanted.items() if found.get(n) != w]
            extra = sorted(set(found) - set(wanted))
            if wrong or extra:
                sys.exit("FAILED: libver %s:\n%s\n%s" % (version, "\n".join(wrong[:20]), extra))
            check_verified(path)
            total += len(wanted)
    print(f"{total} datasets agree")


main()
