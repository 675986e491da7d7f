"""Keys that Python takes for one (1, True, 1.0), and one storage under two types: torch loads something else
than what stands in the file, or nothing, so that it is not a sound checkpoint. The pickles of torch.save are
changed byte by byte."""
import io
import math
import os
import struct
import tempfile
import zipfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt

need("torch")
import torch  # noqa: E402

A, B = torch.arange(4, dtype=torch.float32), torch.ones(2, 2)


def key(text):
    data = text.encode()
    return b"X" + len(data).to_bytes(4, "little") + data


def changed(state, *replacements):
    """The file of torch.save with these bytes of its pickle in place of others."""
    whole, out = io.BytesIO(), io.BytesIO()
    torch.save(state, whole)
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("data.pkl"):
                for before, after in replacements:
                    assert data.count(before) == 1, (before, data.count(before))
                    data = data.replace(before, after)
            new.writestr(name, data)
    return out.getvalue()


INT, TRUE, FLOAT, TWO = b"K\x01", b"\x88", b"G\x3f\xf0" + bytes(6), b"K\x02"
NAN, LARGE = (b"G" + struct.pack(">d", number) for number in (math.nan, 1e300))
# 2^53 and the number after it, which is not a float of 64 bits.
ODD = [b"\x8a\x07" + number.to_bytes(7, "little") for number in (2**53, 2**53 + 1)]
# Name, the file, what torch has of it, and what verify says; None: nothing.
CASES = [
    ("int and True", changed({"x": A, "y": B}, (key("x"), INT), (key("y"), TRUE)), [1], "the key True is a duplicate: to Python it is the key 1"),
    ("True and int", changed({"x": A, "y": B}, (key("x"), TRUE), (key("y"), INT)), [True], "the key 1 is a duplicate: to Python it is the key True"),
    ("int and float", changed({"x": A, "y": B}, (key("x"), INT), (key("y"), FLOAT)), [1], "the key 1.0 is a duplicate: to Python it is the key 1"),
    ("int twice", changed({"x": A, "y": B}, (key("x"), INT), (key("y"), INT)), [1], "the key 1 is a duplicate: it occurs twice"),
    ("two ints", changed({"x": A, "y": B}, (key("x"), INT), (key("y"), TWO)), [1, 2], None),
    ("a NaN", changed({"x": A, "y": B}, (key("x"), INT), (key("y"), NAN)), [1, math.nan], None),
    ("two NaN", changed({"x": A, "y": B}, (key("x"), NAN), (key("y"), NAN)), [math.nan, math.nan], None),
    ("ints that are one float", changed({"x": A, "y": B}, (key("x"), ODD[0]), (key("y"), ODD[1])), [2**53, 2**53 + 1], None),
    ("an int and a large float", changed({"x": A, "y": B}, (key("x"), INT), (key("y"), LARGE)), [1, 1e300], None),
    ("a text and an int", changed({"1": A, "y": B}, (key("y"), INT)), ["1", 1], None),
]

with tempfile.TemporaryDirectory(prefix="mckpt_keys_") as folder:
    os.chdir(folder)
    for name, data, keys, words in CASES:
        with open("file.pt", "wb") as file:
            file.write(data)
        loaded = torch.load("file.pt", weights_only=False)
        expect(repr(list(loaded)) == repr(keys), f"{name}: torch has {list(loaded)}")
        done = run_mckpt("verify", "file.pt")
        expect(done.returncode == (1 if words else 0), f"{name}: verify ends with {done.returncode}: {done.stdout[-400:]}")
        expect(words is None or words in done.stdout, f"{name}: {done.stdout[-400:]}")
        done = run_mckpt("convert", "to-safetensors", "file.pt", "out.safetensors", "--no-sync", "-q", "--overwrite")
        expect((done.returncode != 0) == bool(words), f"{name}: to-safetensors ends with {done.returncode}: {done.stderr[-300:]}")
    # The second tensor has the record of the first, as another type of as many items.
    data = changed({"x": torch.ones(4), "y": torch.ones(4, dtype=torch.bfloat16)}, (b"X\x01\x00\x00\x001", b"X\x01\x00\x00\x000"))
    with open("types.pt", "wb") as file:
        file.write(data)
    loaded = torch.load("types.pt", weights_only=False)
    expect(loaded["y"].dtype == torch.float32, f"torch gives the storage the first type: {loaded['y'].dtype}")
    done = run_mckpt("verify", "types.pt")
    expect(done.returncode == 1 and "two data types" in done.stdout, f"types: {done.returncode}: {done.stdout[-500:]}")
finish(32)
