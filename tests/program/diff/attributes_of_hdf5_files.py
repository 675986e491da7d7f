"""HDF5 files are compared by the whole values of their attributes and soft links, as h5py writes them. The root has some too: Keras keeps
the model's config there. Texts are longer than the part that is shown, numbers come in arrays and in two byte orders. A copy is equal, and a
difference is one in both orders.
"""

import os
import shutil

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt

need("h5py", "numpy")
import h5py  # noqa: E402
import numpy as np  # noqa: E402

temporary = scratch()
LONG = "x" * 5000


def path(name):
    return os.path.join(temporary.name, name)


def write(name, change):
    with h5py.File(path(name), "w") as file:
        file["w"] = np.arange(6, dtype="f4").reshape(2, 3)
        file.create_group("g")
        change(file)


def attribute(owner, value):
    return lambda file: file[owner].attrs.create("x", value)


def link(target):
    return lambda file: file.__setitem__("s", h5py.SoftLink(target))


# The change on one side, the change on the other, and the object that is named.
PAIRS = {
    "root": (attribute("/", '{"units": 3}'), attribute("/", '{"units": 4}'), "@x"),
    "long": (attribute("/", LONG + "a"), attribute("/", LONG + "b"), "@x"),
    "number": (attribute("w", 1), attribute("w", 2), "w@x"),
    "unsigned": (attribute("w", np.uint64(2**64 - 1)), attribute("w", np.uint64(2**64 - 2)), "w@x"),
    "float": (attribute("w", 0.1), attribute("w", np.nextafter(0.1, 1)), "w@x"),
    "bool": (attribute("w", True), attribute("w", False), "w@x"),
    "kind": (attribute("w", 1), attribute("w", 1.0), "w@x"),
    "text and bytes": (attribute("g", np.bytes_(b"\xff")), attribute("g", np.bytes_(b"\xfe")), "g@x"),
    "array": (attribute("g", np.arange(4)), attribute("g", np.array([0, 1, 2, 4])), "g@x"),
    "shape": (attribute("g", np.arange(4).reshape(1, 4)), attribute("g", np.arange(4).reshape(4, 1)), "g@x"),
    "type": (attribute("g", np.arange(4, dtype="i4")), attribute("g", np.arange(4, dtype="u4")), "g@x"),
    "names": (attribute("g", np.array([b"a", b"b"])), attribute("g", np.array([b"a", b"c"])), "g@x"),
    "texts": (attribute("g", ["kernel:0", "bias:0"]), attribute("g", ["kernel:0", "bias:1"]), "g@x"),
    "more texts": (attribute("g", ["a", "b"]), attribute("g", ["a", "b", ""]), "g@x"),
    "bounds of texts": (attribute("g", ["ab", "c"]), attribute("g", ["a", "bc"]), "g@x"),
    "many texts": (attribute("g", [f"{n}" for n in range(900)]), attribute("g", [f"{n % 899}" for n in range(900)]), "g@x"),
    "many numbers": (attribute("g", np.arange(900)), attribute("g", np.arange(900) % 899), "g@x"),
    "sign of zero": (attribute("g", np.array([0.0, 1])), attribute("g", np.array([-0.0, 1])), "g@x"),
    "complex": (attribute("w", 1 + 2j), attribute("w", 1 + 3j), "w@x"),
    "compound": (attribute("w", np.array((1, 2.5, b"a"), dtype=[("a", "i4"), ("b", "f8"), ("c", "S3")])),
                 attribute("w", np.array((1, 2.5, b"b"), dtype=[("a", "i4"), ("b", "f8"), ("c", "S3")])), "w@x"),
    "name of a field": (attribute("w", np.array([(1,)], dtype=[("a", "i4")])), attribute("w", np.array([(1,)], dtype=[("b", "i4")])), "w@x"),
    "opaque": (attribute("w", np.void(b"\x00\x01")), attribute("w", np.void(b"\x00\x02")), "w@x"),
    "arrays": (attribute("w", np.array([([1, 2],)], dtype=[("a", "i4", 2)])), attribute("w", np.array([([1, 3],)], dtype=[("a", "i4", 2)])), "w@x"),
    "not a number": (attribute("g", np.array([np.nan, 1])), attribute("g", np.array([np.nan, 2])), "g@x"),
    "kind of no value": (attribute("g", np.array([1], dtype="g")), lambda file: file["g"].attrs.create("x", file["w"].ref, dtype=h5py.ref_dtype), "g@x"),
    "link": (link("/w"), link("/g"), "s"),
}
for what, (one, other, object_name) in PAIRS.items():
    write("a.h5", one)
    write("b.h5", other)
    shutil.copy(path("a.h5"), path("copy.h5"))
    expect(run_mckpt("diff", path("a.h5"), path("copy.h5")).returncode == 0, f"{what}: a copy is equal")
    for left, right in (("a.h5", "b.h5"), ("b.h5", "a.h5")):
        for command in (["diff", path(left), path(right)], ["verify", path(left), "--against", path(right)]):
            done = run_mckpt(*command)
            told, says = f"{what}, {command[0]} {left}", done.stdout + done.stderr
            expect(done.returncode == 1, f"{told}: exit status {done.returncode}")
            expect(object_name in done.stdout, f"{told} names {object_name}: {says}")
            expect("no value that could be compared" not in says, f"{told} is compared: {says}")

# The values of a short array are shown.
for one, other, said in ((np.arange(4), np.array([0, 1, 2, 4]), ("3", "4")), (["kernel:0"], ["kernel:1"], ("kernel:0", "kernel:1")),
                         (np.array([0.5, 2], dtype="f4"), np.array([0.5, -3], dtype="f4"), ("2.0", "-3.0"))):
    write("a.h5", attribute("g", one))
    write("b.h5", attribute("g", other))
    text = run_mckpt("diff", path("a.h5"), path("b.h5")).stdout
    line = next((line for line in text.splitlines() if "g@x" in line), "")
    expect(all(word in line for word in said) and "another value" not in line, f"{said} are shown: {text}")

# Objects without a value that could be compared are named, and a copy is not unequal for them.
for what, change in (("a long double", attribute("g", np.array([1], dtype="g"))),
                     ("a reference", lambda file: file["g"].attrs.create("x", file["w"].ref, dtype=h5py.ref_dtype)),
                     ("sequences", lambda file: file["g"].attrs.create("x", np.array([np.arange(2), np.arange(3)], dtype=object), dtype=h5py.vlen_dtype("i4")))):
    write("a.h5", change)
    shutil.copy(path("a.h5"), path("copy.h5"))
    for command in (["diff", path("a.h5"), path("copy.h5")], ["verify", path("a.h5"), "--against", path("copy.h5")]):
        done = run_mckpt(*command)
        text = done.stdout + done.stderr
        expect(done.returncode == 0, f"{what}, {command[0]}: a copy is not unequal: {text}")
        expect("not compared: g@x" in text and "tensor 'g@x" not in text, f"{what}, {command[0]}: is named: {text}")
        verdict = next((line for line in text.splitlines() if "equal" in line), "")
        expect("but 1 object was not compared" in verdict, f"{what}, {command[0]}: the verdict says so: {text}")

# One number is the same in every byte order.
write("a.h5", attribute("w", np.array([1, 300], dtype="<i4")))
write("b.h5", attribute("w", np.array([1, 300], dtype=">i4")))
expect(run_mckpt("diff", path("a.h5"), path("b.h5")).returncode == 0, "a number is the same in every byte order")
finish(150)
