"""Whether an archive can be read in one way alone, by other code than mckpt's: the judge of what mckpt refuses and torch takes."""
import zlib


def _u(data, at, width):
    return int.from_bytes(data[at:at + width], "little")


def _entries(data, at, count, front):
    """(name, flags, method, crc, stored, size, attributes, local header) of so many directory entries, and where the last ends."""
    out = []
    for _ in range(count):
        if data[at:at + 4] != b"PK\1\2":
            return None, at
        name, extra, comment = _u(data, at + 28, 2), _u(data, at + 30, 2), _u(data, at + 32, 2)
        fields = [_u(data, at + o, w) for o, w in ((8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (38, 4), (42, 4))]
        out.append((data[at + 46:at + 46 + name], *fields[:6], fields[6] + front, _u(data, at + 34, 2), data[at + 46 + name:at + 46 + name + extra]))
        at += 46 + name + extra + comment
    return out, at


def record_names(data):
    """The names in the directory, as far as it can be read."""
    entries, at = [], data.find(b"PK\1\2")
    while (found := _entries(data, at, 1, 0))[0]:
        entries, at = entries + found[0], found[1]
    return [entry[0].decode("utf-8", "replace") for entry in entries]


def irregular_entry(data, entry, end, summed):
    """The oddity of one record, and where it ends. `summed`: some record of the archive has a checksum; torch can write all of them without."""
    name, flags, method, crc, stored, size, attributes, at, disk, extra = entry
    if b"\0" in name or b"\\" in name or name.startswith(b"/") or name.endswith(b"/") or {b"..", b".", b""} & set(name.split(b"/")):
        return "a name that is no plain path", at
    if flags & ~0x806 & ~8 or method not in (0, 8) or disk or attributes & 0x10 or attributes >> 28 not in (0, 8) or 0xFFFFFFFF in (stored, size):
        return "a feature that torch.save does not use", at
    if data[at:at + 4] != b"PK\3\4":
        return "no local header", at
    begin = at + 30 + _u(data, at + 26, 2) + _u(data, at + 28, 2)
    if data[at + 30:at + 30 + _u(data, at + 26, 2)] != name or _u(data, at + 8, 2) != method or _u(data, at + 6, 2) != flags:
        return "a local header that differs", at
    sums = tuple(_u(data, at + o, 4) for o in (14, 18, 22))
    if sums != (crc, stored, size) and not (flags & 8 and sums == (0, 0, 0)):
        return "sizes of a local header that differ", at
    content = data[begin:begin + stored]
    if begin + stored > end:
        return "a record beyond the directory", at
    if method == 8:
        try:
            content = zlib.decompress(content, -15)
        except zlib.error:
            return "a compressed record that does not inflate", at
        return "a compressed record", at
    if size != stored or (summed and zlib.crc32(content) != crc):
        return "a checksum or a size that is not that of the bytes", at
    return "", begin + stored


def irregular_zip(data):
    """Why an archive is none that can be read in one way alone; "" where it is one. Compressed records count as odd, too."""
    end = data.rfind(b"PK\5\6")
    if end < 0 or end + 22 > len(data) or end + 22 + _u(data, end + 20, 2) != len(data):
        return "no end record at the end"
    count, size, at = _u(data, end + 10, 2), _u(data, end + 12, 4), _u(data, end + 16, 4)
    if _u(data, end + 4, 4) or _u(data, end + 8, 2) != count:
        return "several disks"
    last = end
    wide = 0xFFFF == count or 0xFFFFFFFF in (size, at)
    if data[end - 20:end - 16] == b"PK\6\7" or wide:
        record = _u(data, end - 12, 8)
        if data[record:record + 4] != b"PK\6\6" or record + 56 != end - 20 or _u(data, record + 24, 8) != _u(data, record + 32, 8):
            return "zip64 records that do not fit"
        if _u(data, record + 4, 8) != 44 or _u(data, record + 16, 8) or _u(data, end - 16, 4) or _u(data, end - 4, 4) != 1:
            return "zip64 records that do not fit"
        narrow, last = (count, size, at), record
        count, size, at = _u(data, record + 32, 8), _u(data, record + 40, 8), _u(data, record + 48, 8)
        if any(n not in (w, most) for n, w, most in zip(narrow, (count, size, at), (0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF))):
            return "end records that disagree"
    if at + size != last or count > 10000:
        return "a directory that is not in front of its end record"
    entries, stop = _entries(data, at, count, 0)
    if entries is None or stop != last:
        return "a directory of another length"
    names = [entry[0].lower() for entry in entries]
    if len(set(names)) < len(names):
        return "two records of one name"
    ends, summed = 0, any(entry[3] for entry in entries)
    for entry in sorted(entries, key=lambda e: e[7]):
        if entry[7] < ends or (ends == 0 and entry[7] > 0):
            return "records that overlap, or bytes in front"
        why, ends = irregular_entry(data, entry, at, summed)
        if why:
            return why
        if any(entry[9][i:i + 2] == b"\1\0" for i in range(0, len(entry[9]) - 3)):
            return "a zip64 field where none is needed"
    return ""
