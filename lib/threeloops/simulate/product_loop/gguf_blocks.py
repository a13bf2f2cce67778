"""GGUF blocks: where ggml puts each bit of each number of a block, and blocks written and read by that map alone.

Knows no formula for the size: the struct is as long as its fields, and no two numbers may claim a bit.

>>> numbers = {name: 1 for name in places("Q4_0")}
>>> len(packed("Q4_0", numbers)), unpacked("Q4_0", packed("Q4_0", numbers)) == numbers
(18, True)

Source: llama.cpp, ggml/src/ggml-common.h (fields), ggml/src/ggml-quants.c (dequantize_row_q4_0 to
        dequantize_row_iq4_xs: which bits are read for which number)
"""

import struct
from collections.abc import Mapping

# The structs of ggml-common.h, field by field: e is a 16-bit float, f a 32-bit one, 16s sixteen bytes, b and h signed
# numbers of 8 and 16 bits, H one without sign. First those whose weights share indices, and IQ4_XS beside them.
INDEX_STRUCTS = {
    "IQ1_S": "<e32s8H",  # d, qs, qh
    "IQ1_M": "<32s16s8s",  # qs, qh, scales (and d in what they leave over)
    "IQ2_XXS": "<e32H",  # d, qs
    "IQ2_XS": "<e32H8s",  # d, qs, scales
    "IQ2_S": "<e64s8s8s",  # d, qs (indices, then signs), qh, scales
    "IQ3_XXS": "<e96s",  # d, qs (indices, then signs and scales)
    "IQ3_S": "<e64s8s32s4s",  # d, qs, qh, signs, scales
    "IQ4_XS": "<eH4s128s",  # d, scales_h, scales_l, qs
}
STRUCTS = {
    "Q4_0": "<e16s",  # d, qs
    "Q4_1": "<ee16s",  # d, m, qs
    "Q5_0": "<e4s16s",  # d, qh, qs
    "Q5_1": "<ee4s16s",  # d, m, qh, qs
    "Q8_0": "<e32b",  # d, qs
    "Q2_K": "<16s64see",  # scales, qs, d, dmin
    "Q3_K": "<32s64s12se",  # hmask, qs, scales, d
    "Q4_K": "<ee12s128s",  # d, dmin, scales, qs
    "Q5_K": "<ee12s32s128s",  # d, dmin, scales, qh, qs
    "Q6_K": "<128s64s16be",  # ql, qh, scales, d
    "Q8_K": "<f256b16h",  # d, qs, bsums
    "IQ4_NL": "<e16s",  # d, qs
} | INDEX_STRUCTS

Places = dict[str, list[int]]  # number -> its bits in the block, lowest first


def _bits(byte: int, shift: int, width: int) -> list[int]:
    return [8 * byte + shift + bit for bit in range(width)]


def _nibbles(start: int, half: int, numbers: int) -> list[list[int]]:
    """Four bits each: `half` numbers in the low halves of as many bytes, the next as many in the high halves, and so
    on.
    """
    return [_bits(start + i // (2 * half) * half + i % half, 4 * (i // half % 2), 4) for i in range(numbers)]


def _pairs(start: int) -> list[list[int]]:
    """Two bits each, four numbers a byte: 128 numbers in 32 bytes, 32 apart."""
    return [_bits(start + i // 128 * 32 + i % 32, 2 * (i // 32 % 4), 2) for i in range(256)]


def _scale_and_min(start: int, j: int) -> tuple[list[int], list[int]]:
    """The sub-scale and sub-minimum of Q4_K and Q5_K: six bits each in twelve bytes, those of the last four cut in
    two.
    """
    if j < 4:
        return _bits(start + j, 0, 6), _bits(start + j + 4, 0, 6)
    return _bits(start + j + 4, 0, 4) + _bits(start + j - 4, 6, 2), _bits(start + j + 4, 4, 4) + _bits(start + j, 6, 2)


def _plain(name: str) -> tuple[Places, list[list[int]]]:
    ends = {"d": _bits(0, 0, 16)} | ({"m": _bits(2, 0, 16)} if name.endswith("1") else {})
    after = 2 * len(ends)
    if name == "Q8_0":
        return ends, [_bits(after + i, 0, 8) for i in range(32)]
    if name.startswith("Q5"):
        return ends, [low + _bits(after + i // 8, i % 8, 1) for i, low in enumerate(_nibbles(after + 4, 16, 32))]
    return ends, _nibbles(after, 16, 32)


def _two_level(name: str) -> tuple[Places, list[list[int]]]:
    found: Places = {}
    if name == "Q2_K":
        for j in range(16):
            found |= {f"scale {j}": _bits(j, 0, 4), f"min {j}": _bits(j, 4, 4)}
        return found | {"d": _bits(80, 0, 16), "m": _bits(82, 0, 16)}, _pairs(16)
    if name == "Q3_K":
        for j in range(16):
            found[f"scale {j}"] = _bits(96 + j % 8, 4 * (j // 8), 4) + _bits(104 + j % 4, 2 * (j // 4), 2)
        return found | {"d": _bits(108, 0, 16)}, [low + _bits(i % 32, i // 32, 1) for i, low in enumerate(_pairs(32))]
    if name == "Q6_K":
        found = {f"scale {j}": _bits(192 + j, 0, 8) for j in range(16)} | {"d": _bits(208, 0, 16)}
        return found, [low + high for low, high in zip(_nibbles(0, 64, 256), _pairs(128), strict=True)]
    if name == "Q8_K":
        found = {f"sum {j}": _bits(260 + 2 * j, 0, 16) for j in range(16)} | {"d": _bits(0, 0, 32)}
        return found, [_bits(4 + i, 0, 8) for i in range(256)]
    for j in range(8):
        found[f"scale {j}"], found[f"min {j}"] = _scale_and_min(4, j)
    found |= {"d": _bits(0, 0, 16), "m": _bits(2, 0, 16)}
    if name == "Q4_K":
        return found, _nibbles(16, 32, 256)
    return found, [low + _bits(16 + i % 32, i // 32, 1) for i, low in enumerate(_nibbles(48, 32, 256))]


def _scales(start: int, numbers: int) -> Places:
    """Places of scales that take half a byte each."""
    return {f"scale {j}": _bits(start + j // 2, 4 * (j % 2), 4) for j in range(numbers)}


def _index_places(name: str) -> Places:
    if name == "IQ1_M":
        return _iq1_m()
    found = {"d": _bits(0, 0, 16)}
    if name == "IQ4_XS":
        scales = {f"scale {j}": _bits(4 + j // 2, 4 * (j % 2), 4) + _bits(2, 2 * j, 2) for j in range(8)}
        weights = [_bits(8 + i // 32 * 16 + i % 16, 4 * (i // 16 % 2), 4) for i in range(256)]
        return found | scales | {f"weight {i}": bits for i, bits in enumerate(weights)}
    others = {
        "IQ1_S": _iq1_s,
        "IQ2_XXS": _iq2_xxs,
        "IQ2_XS": _iq2_xs,
        "IQ2_S": _iq2_s,
        "IQ3_XXS": _iq3_xxs,
        "IQ3_S": _iq3_s,
    }
    return found | others[name]()


def _iq1_s() -> Places:
    found = {f"index {i}": _bits(2 + i, 0, 8) + _bits(34 + i // 4 * 2, 3 * (i % 4), 3) for i in range(32)}
    for j in range(8):
        found |= {f"scale {j}": _bits(34 + 2 * j, 12, 3), f"min {j}": _bits(34 + 2 * j, 15, 1)}
    return found


def _iq1_m() -> Places:
    found = {"d": [bit for word in range(4) for bit in _bits(48 + 2 * word, 12, 4)]}
    for i in range(32):
        found |= {
            f"index {i}": _bits(i, 0, 8) + _bits(32 + i // 2, 4 * (i % 2), 3),
            f"signs {i}": _bits(32 + i // 2, 4 * (i % 2) + 3, 1),
        }
    return found | {f"scale {j}": _bits(48 + j // 4 * 2, 3 * (j % 4), 3) for j in range(16)}


def _iq2_xxs() -> Places:
    found: Places = {}
    for i in range(32):
        found |= {
            f"index {i}": _bits(2 + i // 4 * 8 + i % 4, 0, 8),
            f"signs {i}": _bits(6 + i // 4 * 8, 7 * (i % 4), 7),
        }
    return found | {f"scale {j}": _bits(6 + 8 * j, 28, 4) for j in range(8)}


def _iq2_xs() -> Places:
    found: Places = {}
    for i in range(32):
        found |= {f"index {i}": _bits(2 + 2 * i, 0, 9), f"signs {i}": _bits(2 + 2 * i, 9, 7)}
    return found | _scales(66, 16)


def _iq2_s() -> Places:
    found: Places = {}
    for i in range(32):
        found |= {
            f"index {i}": _bits(2 + i, 0, 8) + _bits(66 + i // 4, 2 * (i % 4), 2),
            f"signs {i}": _bits(34 + i, 0, 8),
        }
    return found | _scales(74, 16)


def _iq3_xxs() -> Places:
    found = {f"index {i}": _bits(2 + i, 0, 8) for i in range(64)}
    found |= {f"signs {i}": _bits(66 + i // 4 * 4, 7 * (i % 4), 7) for i in range(32)}
    return found | {f"scale {j}": _bits(66 + 4 * j, 28, 4) for j in range(8)}


def _iq3_s() -> Places:
    found = {f"index {i}": _bits(2 + i, 0, 8) + _bits(66 + i // 8, i % 8, 1) for i in range(64)}
    found |= {f"signs {i}": _bits(74 + i, 0, 8) for i in range(32)}
    return found | _scales(106, 8)


def places(name: str) -> Places:
    """Where each number of a block has its bits: d and m of the whole block, scale, min and sum of sub-blocks, and
    the weights, or the indices that several weights share with their signs.
    """
    if name in INDEX_STRUCTS:
        return _index_places(name)
    others, weights = _two_level(name) if name.endswith("K") else _plain(name)
    return others | {f"weight {i}": bits for i, bits in enumerate(weights)}


def packed(name: str, numbers: Mapping[str, int]) -> bytes:
    """A block as ggml stores it, from whole numbers (floats by their bit pattern)."""
    block = bytearray(struct.calcsize(STRUCTS[name]))
    for what, bits in places(name).items():
        for place, bit in enumerate(bits):
            block[bit // 8] |= (numbers[what] >> place & 1) << bit % 8
    return bytes(block)


def unpacked(name: str, block: bytes) -> dict[str, int]:
    """The numbers of a block."""
    return {
        what: sum((block[bit // 8] >> bit % 8 & 1) << place for place, bit in enumerate(bits))
        for what, bits in places(name).items()
    }
