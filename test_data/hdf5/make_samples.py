"""Writes sample.h5 and old.h5, and expected.json: for each, what its tensors are by HDF5 itself. Needs h5py.

usage: make_samples.py FOLDER
"""
import hashlib
import json
import os
import sys

import h5py
import numpy as np

folder = sys.argv[1]
random = np.random.default_rng(7)


def bfloat16():
    t = h5py.h5t.IEEE_F16LE.copy()
    t.set_fields(15, 7, 8, 0, 7)
    t.set_ebias(127)
    return t


def fill(f):
    f.attrs["step"] = 12
    f.attrs["model"] = "tiny"
    w = random.standard_normal((24, 18)).astype("<f4")
    f["encoder/layer.0/contiguous"] = w
    f["encoder/layer.0/contiguous"].attrs["units"] = "none"
    f.create_dataset("encoder/layer.0/chunked", data=w, chunks=(7, 5))
    f.create_dataset("encoder/layer.0/deflated", data=w.astype(">f8"), chunks=(5, 18), compression="gzip",
                     shuffle=True, fletcher32=True)
    sparse = f.create_dataset("encoder/sparse", shape=(40, 6), dtype="<i2", chunks=(8, 4), fillvalue=-3)
    sparse[17:20] = np.arange(18).reshape(3, 6)
    f["mask"] = np.array([True, False, True])
    f["scalar"] = np.float16(1.5)
    f["complex"] = np.array([1 + 2j, 3 - 4j], "<c8")
    data = np.array([0x3f80, 0xc000, 0x4120], "<u2")
    h5py.h5d.create(f.id, b"bf16", bfloat16(), h5py.h5s.create_simple((3,))).write(
        h5py.h5s.ALL, h5py.h5s.ALL, data, mtype=bfloat16())
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.COMPACT)
    h5py.h5d.create(f.id, b"compact", h5py.h5t.STD_I32BE, h5py.h5s.create_simple((2, 2)), properties).write(
        h5py.h5s.ALL, h5py.h5s.ALL, np.array([[1, 2], [3, 4]], ">i4"))
    f["names"] = ["a", "b"]
    f["alias"] = h5py.SoftLink("/encoder/sparse")
    f["second"] = f["mask"]


def expected(f):
    rows = {"bf16": ["bfloat16", [3], hashlib.sha256(bytes.fromhex("803f00c02041")).hexdigest()]}

    def add(name, d):
        if name in ("bf16", "names") or not isinstance(d, h5py.Dataset):
            return
        data = d[()] if d.shape else np.asarray(d[()])
        little = np.ascontiguousarray(data.astype(data.dtype.newbyteorder("<")))
        rows[name] = [str(little.dtype), list(d.shape), hashlib.sha256(little.tobytes()).hexdigest()]

    f.visititems(add)
    rows["second"] = rows.setdefault("mask", rows.get("second"))
    return rows


answer = {}
for name, version in (("sample.h5", ("v110", "v110")), ("old.h5", None)):
    path = os.path.join(folder, name)
    with h5py.File(path, "w", libver=version) as file:
        fill(file)
    with h5py.File(path) as file:
        answer[name] = expected(file)
with open(os.path.join(folder, "expected.json"), "w") as out:
    json.dump(answer, out, indent=1, sort_keys=True)
    out.write("\n")
