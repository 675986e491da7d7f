"""Values of two types are compared in one that has all values of both, in both orders: whole numbers, floats of 8 bits, and floats. Where no type has all
values of both, that is said, and the values are not compared."""
import json
import os
import struct
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt

# The bytes of 0, 1, 2 and 3 in each type.
BYTES = {
    "BOOL": [b"\0", b"\1"], "U8": [bytes([i]) for i in range(4)], "I8": [bytes([i]) for i in range(4)],
    "I16": [struct.pack("<h", i) for i in range(4)], "U16": [struct.pack("<H", i) for i in range(4)],
    "I32": [struct.pack("<i", i) for i in range(4)], "U32": [struct.pack("<I", i) for i in range(4)],
    "I64": [struct.pack("<q", i) for i in range(4)], "U64": [struct.pack("<Q", i) for i in range(4)],
    "F8_E4M3": [b"\0", b"\x38", b"\x40", b"\x44"], "F8_E5M2": [b"\0", b"\x3c", b"\x40", b"\x42"],
    "BF16": [b"\0\0", b"\x80\x3f", b"\0\x40", b"\x40\x40"], "F16": [struct.pack("<e", i) for i in range(4)],
    "F32": [struct.pack("<f", i) for i in range(4)], "F64": [struct.pack("<d", i) for i in range(4)],
}
NOT_COMPARED = {frozenset(p) for p in (("I64", "U64"), ("I8", "U64"), ("I16", "U64"), ("I32", "U64"), ("I64", "F32"), ("I64", "F64"), ("I64", "F16"), ("I64", "BF16"),
                                       ("U64", "F32"), ("U64", "F64"), ("U64", "F16"), ("U64", "BF16"), ("I64", "F8_E4M3"), ("I64", "F8_E5M2"),
                                       ("U64", "F8_E4M3"), ("U64", "F8_E5M2"))}


def write(path, dtype, values):
    data = b"".join(BYTES[dtype][v] for v in values)
    header = json.dumps({"w": {"dtype": dtype, "shape": [len(values)], "data_offsets": [0, len(data)]}}).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + data)
    return path


def kinds(one, other):
    """The answers in each order: the kinds of rows, the number of items that differ, and the exit status."""
    out = []
    for a, b in ((one, other), (other, one)):
        told = json.loads(run_mckpt("diff", a, b, "--json").stdout)
        out.append((sorted(r["kind"] for r in told["rows"]), [r["items"] for r in told["rows"] if r["kind"] == "values"], told["equal_values"]))
    return out


with tempfile.TemporaryDirectory() as scratch:
    place = lambda name: os.path.join(scratch, f"{name}.safetensors")
    for i, one in enumerate(BYTES):
        for other in list(BYTES)[i + 1:]:
            top = 2 if "BOOL" in (one, other) else 4
            same = [n % top for n in range(12)]
            unlike = same[:7] + [(same[7] + 1) % top] + same[8:]
            a, b, c = write(place("a"), one, same), write(place("b"), other, same), write(place("c"), other, unlike)
            if frozenset((one, other)) in NOT_COMPARED:
                expect(kinds(a, b) == [(["dtype"], [], 0)] * 2, f"{one} {other}: {kinds(a, b)}")
                continue
            expect(kinds(a, b) == [(["cast"], [], 1)] * 2, f"{one} {other}: {kinds(a, b)}")
            expect(kinds(a, c) == [(["cast", "values"], [1], 0)] * 2, f"{one} {other}, one differs: {kinds(a, c)}")
    # Whole numbers that floats of 64 bits cannot tell apart.
    BYTES["U32"].append(struct.pack("<I", 2**32 - 1)), BYTES["I64"].append(struct.pack("<q", 2**32 - 1)), BYTES["I64"].append(struct.pack("<q", -1))
    a, b, c = write(place("a"), "U32", [4]), write(place("b"), "I64", [4]), write(place("c"), "I64", [5])
    expect(kinds(a, b) == [(["cast"], [], 1)] * 2 and kinds(a, c) == [(["cast", "values"], [1], 0)] * 2, f"{kinds(a, b)} {kinds(a, c)}")
    # A NaN keeps its bits in a type that has all values of the other; a cast that rounds takes each NaN for every other.
    BYTES["BF16"].append(b"\xc0\x7f"), BYTES["F32"].append(b"\0\0\xc0\x7f"), BYTES["F32"].append(b"\1\0\xc0\x7f"), BYTES["F32"].append(b"\0\0\xc0\xff")
    a, b, c, d = write(place("a"), "BF16", [4]), write(place("b"), "F32", [4]), write(place("c"), "F32", [5]), write(place("d"), "F32", [6])
    expect(kinds(a, b) == [(["cast"], [], 1)] * 2, f"{kinds(a, b)}")
    expect(kinds(a, c) == kinds(a, d) == [(["cast", "values"], [1], 0)] * 2, f"{kinds(a, c)} {kinds(a, d)}")
    against = lambda one, other: run_mckpt("verify", one, "--against", other).stdout.splitlines()[-1].split(": ")[1].split(";")[0]
    expect([against(one, a) for one in (b, c, d)] == ["equal in value", "not equal", "not equal"], f"{[against(one, a) for one in (b, c, d)]}")
    expect([against(a, one) for one in (b, c, d)] == ["equal after a cast that rounds"] * 3, f"{[against(a, one) for one in (b, c, d)]}")
finish(194)
