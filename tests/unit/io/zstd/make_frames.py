"""The frames of zstd_test.cc: written by the reference implementation (zstandard 0.25, zstd 1.5.7), as hex.
usage: make_frames.py (needs `zstandard`). The content of each is computed in the test too."""
import zstandard

words = b"".join(b"layer %d of %d, " % (i % 7, i * i % 1000) for i in range(400))
noise = bytes((i * i * 31 + i * 7 + (i >> 3)) % 251 for i in range(300))
small = bytes((i * 5 + i // 9) % 17 + (i % 3) for i in range(2000))


def frame(data, level, **settings):
    return zstandard.ZstdCompressor(level=level, **settings).compress(data)


def stream(parts, level):
    """Several blocks, so that codes of one block are used by the next; without the size in the header."""
    out = zstandard.ZstdCompressor(level=level, write_checksum=True).compressobj()
    return b"".join(out.compress(p) + out.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) for p in parts) + out.flush()


for name, data in (
    ("kEmpty", frame(b"", 3)),
    ("kRepeated", frame(b"\7" * 100_000, 3)),
    ("kWords", frame(words, 19, write_checksum=True)),
    ("kNoise", frame(noise, 3)),
    ("kSmall", frame(small, 7)),
    ("kBlocks", stream([words[:3000], words[3000:], small], 12)),
):
    text = data.hex()
    print(f"constexpr std::string_view {name} =")
    lines = [text[i : i + 100] for i in range(0, len(text), 100)]
    print("\n".join(f'    "{line}"' for line in lines) + ";", len(data))
