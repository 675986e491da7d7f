"""The pixels of a PNG, with nothing but the standard library: 8 bits a channel, with or without alpha, not interlaced, as browsers
make their screenshots.

    picture = Pixels(png)
    picture.at(3, 5)                  (red, green, blue)
    picture.colours()                 how many pixels have which colour, in some of the rows
"""
import collections
import itertools
import operator
import struct
import zlib


class Pixels:
    def __init__(self, png):
        assert png[:8] == b"\x89PNG\r\n\x1a\n", "not a PNG"
        at, packed = 8, []
        while at < len(png):
            length, kind = struct.unpack(">I4s", png[at:at + 8])
            data = png[at + 8:at + 8 + length]
            at += 12 + length
            if kind == b"IHDR":
                self.width, self.height, bits, colours, _, _, interlaced = struct.unpack(">IIBBBBB", data)
                assert bits == 8 and colours in (2, 6) and not interlaced, (bits, colours, interlaced)
                self.channels = 3 if colours == 2 else 4
            elif kind == b"IDAT":
                packed.append(data)
        self.rows = list(self.unfiltered(zlib.decompress(b"".join(packed))))

    def unfiltered(self, raw):
        step, length = self.channels, self.width * self.channels
        above = bytes(length)
        for start in range(0, len(raw), length + 1):
            kind, row = raw[start], raw[start + 1:start + 1 + length]
            if kind == 1:
                row = interleaved(low_byte(itertools.accumulate(row[c::step])) for c in range(step))
            elif kind == 2:
                row = low_byte(map(operator.add, row, above))
            elif kind == 3:
                row = interleaved(averaged(row[c::step], above[c::step]) for c in range(step))
            elif kind == 4:
                row = interleaved(guessed(row[c::step], above[c::step]) for c in range(step))
            above = row
            yield row

    def at(self, x, y):
        return tuple(self.rows[int(y)][int(x) * self.channels:int(x) * self.channels + 3])

    def colours(self, step=3):
        """How many pixels have which colour, in every third row."""
        found = collections.Counter()
        for row in self.rows[::step]:
            found.update(zip(row[0::self.channels], row[1::self.channels], row[2::self.channels]))
        return found


def low_byte(numbers):
    return bytes(map((255).__and__, numbers))


def interleaved(channels):
    channels = [bytes(c) for c in channels]
    out = bytearray(len(channels) * len(channels[0]))
    for number, channel in enumerate(channels):
        out[number::len(channels)] = channel
    return bytes(out)


def averaged(row, above):
    left = 0
    for x, up in zip(row, above):
        left = (x + (left + up) // 2) & 255
        yield left


def guessed(row, above):
    """Paeth's rule: the neighbour that is nearest to left + up - corner."""
    left = corner = 0
    for x, up in zip(row, above):
        a, b, c = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
        left = (x + (left if a <= b and a <= c else up if b <= c else corner)) & 255
        corner = up
        yield left
