"""HDF5 files, mutated by their structure: fields of the superblock, of object headers and their messages (types, spaces, layouts, filters, fill values, attributes),
of B-trees, symbol tables, heaps and chunk indexes get other numbers, addresses of other structures or of themselves; structures are copied over each other.
Where a structure has a checksum it is made to fit again, so that the library looks at what is behind it.

    mutate(data, rnd)      bytes; what is in a file is found by signatures, and headers without one by the addresses that lead to them
"""
import re
import struct

SIGNATURES = re.compile(rb"OHDR|OCHK|TREE|HEAP|SNOD|GCOL|BTHD|BTLF|BTIN|FRHP|FHDB|FHIB|FSHD|FSSE|SMTB|SMLI|FAHD|FADB|EAHD|EAIB|EASB|EADB|\x89HDF\r\n\x1a\n")
CHECKED = {b"OHDR", b"OCHK", b"BTHD", b"BTLF", b"BTIN", b"FRHP", b"FHIB", b"FSHD", b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EASB", b"EADB", b"\x89HDF"}
MASK = 0xFFFFFFFF
LONGEST = 2048


def _rotated(x, k):
    return (x << k | x >> 32 - k) & MASK


def checksum(data):
    """HDF5's checksum of metadata (the hash `lookup3` of Bob Jenkins)."""
    a = b = c = (0xDEADBEEF + len(data)) & MASK
    padded = data + bytes(-len(data) % 12)
    blocks = list(struct.iter_unpack("<3I", padded))
    for i, (x, y, z) in enumerate(blocks):
        a, b, c = (a + x) & MASK, (b + y) & MASK, (c + z) & MASK
        if i == len(blocks) - 1:
            for k, p in ((14, "cb"), (11, "ac"), (25, "ba"), (16, "cb"), (4, "ac"), (14, "ba"), (24, "cb")):
                v = {"a": a, "b": b, "c": c}
                v[p[0]] = ((v[p[0]] ^ v[p[1]]) - _rotated(v[p[1]], k)) & MASK
                a, b, c = v["a"], v["b"], v["c"]
        else:
            a = ((a - c) & MASK) ^ _rotated(c, 4)
            c = (c + b) & MASK
            b = ((b - a) & MASK) ^ _rotated(a, 6)
            a = (a + c) & MASK
            c = ((c - b) & MASK) ^ _rotated(b, 8)
            b = (b + a) & MASK
            a = ((a - c) & MASK) ^ _rotated(c, 16)
            c = (c + b) & MASK
            b = ((b - a) & MASK) ^ _rotated(a, 19)
            a = (a + c) & MASK
            c = ((c - b) & MASK) ^ _rotated(b, 4)
            b = (b + a) & MASK
    return c


def headers_without_signature(data):
    """Places of object headers of version 1, which addresses in the file lead to."""
    out = []
    for at in range(0, len(data) - 16, 8):
        version, zero, messages, links, size = struct.unpack_from("<BBHII", data, at)
        if version == 1 and zero == 0 and 0 < messages < 64 and 0 < links < 8 and 0 < size < LONGEST and data.find(struct.pack("<Q", at)) >= 0:
            out.append(at)
    return out


def structures(data):
    """[(begin, end)]: each ends where the next one begins, or earlier."""
    begins = sorted({m.start() for m in SIGNATURES.finditer(data)} | set(headers_without_signature(data)))
    return [(begin, min(end, begin + LONGEST)) for begin, end in zip(begins, [*begins[1:], len(data)])]


def checked_end(data, begin, end):
    """Where the checksum of this structure is, if it has one that fits."""
    if data[begin:begin + 4] not in CHECKED:
        return None
    for at in range(begin + 6, min(end, len(data) - 3)):
        if data[at:at + 4] == struct.pack("<I", checksum(data[begin:at])):
            return at
    return None


class File:
    """A file with its structures, which are found once."""

    def __init__(self, data):
        self.data, self.places = data, structures(data)
        self.sums = {begin: at for begin, end in self.places if (at := checked_end(data, begin, end)) is not None}

    def mutate(self, rnd):
        out = bytearray(self.data)
        for _ in range(rnd.choice((1, 1, 1, 2, 3))):
            begin, end = rnd.choice(self.places)
            end = self.sums.get(begin, end)
            self.edit(out, begin, end, rnd)
            # Mostly the sum is made to fit: what it protects is what the library has to survive.
            if begin in self.sums and rnd.random() < 0.9:
                struct.pack_into("<I", out, self.sums[begin], checksum(bytes(out[begin:self.sums[begin]])))
        return bytes(out)

    def edit(self, out, begin, end, rnd):
        kind, width = rnd.randrange(10), rnd.choice((1, 1, 2, 4, 8))
        at = begin + rnd.randrange(max(1, end - begin - width + 1))
        if width > 1 and rnd.random() < 0.7:
            at -= (at - begin) % width
        if at + width > len(out):
            return
        old = int.from_bytes(out[at:at + width], "little")
        most = (1 << 8 * width) - 1
        if kind < 3:
            new = rnd.choice((0, 1, 2, 3, most, most >> 1, most - 1, len(out), len(out) - 1, 0x7FFFFFFF, 1 << 40)) & most
        elif kind < 5:
            new = (old + rnd.choice((-8, -1, 1, 2, 8, 256))) & most
        elif kind < 6:
            new = old ^ 1 << rnd.randrange(8 * width)
        elif kind < 8:  # the address of another structure, or of this one: a circle
            at, width = at - (at - begin) % 8, 8
            new = rnd.choice([begin, *(rnd.choice(self.places)[0] for _ in range(3))])
        elif kind < 9:
            other, stop = rnd.choice(self.places)
            count = min(end - begin, stop - other)
            out[begin:begin + count] = out[other:other + count]
            return
        else:
            new = rnd.getrandbits(8 * width)
        if at + width <= len(out):
            out[at:at + width] = new.to_bytes(width, "little")
