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

# One number is the same in every byte order.
write("a.h5", attribute("w", np.array([1, 300], dtype="<i4")))
write("b.h5", attribute("w", np.array([1, 300], dtype=">i4")))
expect(run_mckpt("diff", path("a.h5"), path("b.h5")).returncode == 0, "a number is the same in every byte order")
finish(150)
