"""The tensors of DeepSeek-V4 as its releases have them: FP8 codes in blocks of 128 x 128, experts of two FP4 codes a byte, and powers
of two as scales, beside what they say by the definitions of the formats. Nothing of mckpt's codec is used.

    MODULE.weight F8_E4M3 [M, N]     MODULE.scale F8_E8M0 [M / 128, N / 128], rounded up
    MODULE.weight I8 [M, N / 2]      MODULE.scale F8_E8M0 [M, N / 32]           column 2j in the lower half of byte j
"""

from mckpt_tests.formulas import Tensors, np

E2M1 = np.array([sign * m for sign in (1.0, -1.0) for m in (0, 0.5, 1, 1.5, 2, 3, 4, 6)])  # zero has a sign, too
BLOCK, GROUP = 128, 32
FP8 = ("attn.wq_a", "attn.wq_b", "attn.wkv", "attn.wo_a", "attn.wo_b", "indexer.wq_b", "e_proj", "h_proj")


def e4m3(codes):
    """Sign, four bits of an exponent less 7, three of a fraction; without an exponent the fraction alone, of 2 ** -6."""
    exponent, fraction = codes >> 3 & 15, codes & 7
    size = np.where(exponent > 0, np.ldexp(1 + fraction / 8, exponent.astype(int) - 7), np.ldexp(fraction / 8, -6))
    return np.where(codes & 128, -size, size)


def bf16_bits(values):
    """The bits of numbers that bf16 has."""
    bits = values.astype(np.float32).view(np.uint32)
    assert not (bits & 0xFFFF).any() and (bits.view(np.float32) == values).all()
    return (bits >> 16).astype(np.uint16)


class Release(Tensors):
    """Matrices that a release quantises are drawn as codes and scales; `new` gives the values of them. `values`: all that dequantising gives."""
    unit = GROUP

    def __init__(self, r):
        super().__init__(r)
        self.values = {}

    def new(self, name, *shape, dtype="BF16"):
        module = name.removesuffix(".weight")
        packed = ".ffn.experts." in module
        if not packed and ".shared_experts." not in module and not module.endswith(FP8):
            self.values[name] = super().new(name, *shape, dtype=dtype)
            return self.values[name]
        rows, columns = shape
        if packed:
            codes = self.random.integers(0, 256, (rows, columns // 2), np.uint8)
            scales = self.random.integers(100, 150, (rows, columns // GROUP), np.uint8)
            numbers = E2M1[np.stack([codes & 15, codes >> 4], axis=-1).reshape(rows, columns)]
            spread = scales.repeat(GROUP, axis=1)
        else:
            codes = self.random.integers(0, 256, shape, np.uint8)
            codes[codes & 127 == 127] = 126  # no NaN
            scales = self.random.integers(100, 150, [-(-n // BLOCK) for n in shape], np.uint8)
            numbers = e4m3(codes)
            spread = scales.repeat(BLOCK, axis=0)[:rows].repeat(BLOCK, axis=1)[:, :columns]
        self.made[name] = ("I8" if packed else "F8_E4M3", codes)
        self.made[f"{module}.scale"] = ("F8_E8M0", scales)
        self.values[name] = bf16_bits(np.ldexp(numbers, spread.astype(int) - 127))
        return self.values[name]
