"""GGUF formats: sizes that llama.cpp asserts and prints, and blocks written bit by bit as ggml lays them out."""

import random
import struct

import numpy
import pytest
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from threeloops.models.catalogue import model
from threeloops.models.parameters import model_parameters
from threeloops.product_loop import gguf_formats as gguf
from threeloops.product_loop.compression import Groups
from threeloops.simulate.product_loop import gguf_blocks
from threeloops.units import GiB

QUANTS = tuple(gguf_blocks.STRUCTS)


@pytest.mark.parametrize(
    ("name", "asserted", "printed"),
    [
        # ggml-common.h: static_assert(sizeof(block_…) == …), with ggml_half 2 bytes and QK_K = 256; "Effectively …
        # bits per weight" from its comments
        ("Q4_0", 2 + 32 // 2, None),
        ("Q4_1", 2 * 2 + 32 // 2, None),
        ("Q5_0", 2 + 4 + 32 // 2, None),
        ("Q5_1", 2 * 2 + 4 + 32 // 2, None),
        ("Q8_0", 2 + 32, None),
        ("Q2_K", 2 * 2 + 256 // 16 + 256 // 4, 2.625),
        ("Q3_K", 2 + 256 // 4 + 256 // 8 + 12, 3.4375),
        ("Q4_K", 2 * 2 + 12 + 256 // 2, 4.5),
        ("Q5_K", 2 * 2 + 12 + 256 // 2 + 256 // 8, 5.5),
        ("Q6_K", 2 + 256 // 16 + 3 * 256 // 4, 6.5625),
        ("Q8_K", 4 + 256 + 256 // 16 * 2, None),
        ("IQ1_S", 2 + 256 // 8 + 256 // 16, 1.5625),
        ("IQ1_M", 256 // 8 + 256 // 16 + 256 // 32, 1.75),
        ("IQ2_XXS", 2 + 256 // 8 * 2, 2.0625),
        ("IQ2_XS", 2 + 256 // 8 * 2 + 256 // 32, 2.3125),
        ("IQ2_S", 2 + 256 // 4 + 256 // 16, 2.5625),
        ("IQ3_XXS", 2 + 3 * (256 // 8), 3.0625),
        ("IQ3_S", 2 + 13 * (256 // 32) + 256 // 64, 3.4375),
        ("IQ4_NL", 2 + 32 // 2, None),
        ("IQ4_XS", 2 + 2 + 256 // 64 + 256 // 2, None),
    ],
)
def test_block_sizes_as_llama_cpp_asserts_them(name: str, asserted: int, printed: float | None) -> None:
    form = gguf.GGUF_FORMATS[name]
    assert form.block_bytes == asserted
    if printed:
        assert form.bits_per_weight == printed


def test_blocks_are_as_large_as_the_gguf_package_says() -> None:
    sizes = {kind.name: size for kind, size in GGML_QUANT_SIZES.items()}
    assert {name: (form.block, form.block_bytes) for name, form in gguf.GGUF_FORMATS.items()}.items() <= sizes.items()


@pytest.mark.parametrize("name", QUANTS)
def test_every_bit_of_a_block_belongs_to_one_number(name: str) -> None:
    """The struct of ggml, as Python lays it out, is used up to its last bit, and the formula's is as long."""
    claimed = sorted(bit for bits in gguf_blocks.places(name).values() for bit in bits)
    assert claimed == list(range(8 * struct.calcsize(gguf_blocks.STRUCTS[name])))
    assert gguf.GGUF_FORMATS[name].block_bytes == struct.calcsize(gguf_blocks.STRUCTS[name])


@pytest.mark.parametrize("name", QUANTS)
def test_the_numbers_of_a_block_are_those_of_the_format(name: str) -> None:
    form, widths = gguf.GGUF_FORMATS[name], {}
    for what, bits in gguf_blocks.places(name).items():
        widths.setdefault(what.split()[0], []).append(len(bits))
    assert widths["index" if form.together > 1 else "weight"] == [form.element_bits] * (form.block // form.together)
    assert widths.get("signs", []) == ([form.sign_bits] * (form.block // 8) if form.sign_bits else [])
    for what, width in (("scale", form.sub_scale_bits), ("min", form.sub_min_bits), ("sum", form.sub_sum_bits)):
        assert widths.get(what, []) == ([width] * form.sub_blocks if width else [])
    assert (widths["d"], widths.get("m", [0])) == ([form.scale_bits], [form.min_bits])


@pytest.mark.parametrize("name", QUANTS)
def test_what_is_written_is_read_again(name: str) -> None:
    rng = random.Random(name)
    numbers = {what: rng.getrandbits(len(bits)) for what, bits in gguf_blocks.places(name).items()}
    assert gguf_blocks.unpacked(name, gguf_blocks.packed(name, numbers)) == numbers


@pytest.mark.parametrize("name", [name for name in QUANTS if name != "Q8_K"])
def test_every_number_changes_the_weights_that_the_gguf_package_reads_with_it(name: str) -> None:
    """One bit of each number in turn, in a block of its own, read by the package's own code."""
    form, rng, places = gguf.GGUF_FORMATS[name], random.Random(name), gguf_blocks.places(name)
    numbers = {what: 3 if what[:3] in ("sca", "min") else rng.getrandbits(len(bits)) for what, bits in places.items()}
    numbers |= dict.fromkeys({"d", "m"} & numbers.keys(), 0x3C00)  # 1.0
    asked = [what for what in places if " " in what]
    blocks = [numbers, *(numbers | {what: numbers[what] ^ 1} for what in asked)]
    written = b"".join(gguf_blocks.packed(name, block) for block in blocks)
    values = dequantize(numpy.frombuffer(written, dtype=numpy.uint8), GGMLQuantizationType[name])
    rows = values.reshape(len(blocks), form.block)
    of_each = {"weight": 1, "index": form.together, "signs": 8}
    for what, row in zip(asked, rows[1:], strict=True):
        kind, place = what.split()
        width = of_each.get(kind) or form.block // form.sub_blocks
        changed = set(numpy.flatnonzero(row != rows[0]).tolist())
        assert changed, what
        assert changed <= set(range(width * int(place), width * (int(place) + 1))), what


def test_a_block_means_what_llama_cpp_reads() -> None:
    """A Q4_K block read with the steps of dequantize_row_q4_K: half-bytes 32 apart, and scales as get_scale_min_k4
    takes them from twelve bytes.
    """
    rng = random.Random(4)
    numbers = {what: rng.getrandbits(len(bits)) for what, bits in gguf_blocks.places("Q4_K").items()}
    numbers |= {
        "d": int.from_bytes(struct.pack("<e", 0.5), "little"),
        "m": int.from_bytes(struct.pack("<e", 0.25), "little"),
    }
    d, dmin, scales, qs = struct.unpack(gguf_blocks.STRUCTS["Q4_K"], gguf_blocks.packed("Q4_K", numbers))
    read = []
    for j in range(8):
        if j < 4:
            scale, low = scales[j] & 63, scales[j + 4] & 63
        else:
            scale, low = (scales[j + 4] & 0xF) | (scales[j - 4] >> 6) << 4, scales[j + 4] >> 4 | (scales[j] >> 6) << 4
        half_bytes = qs[32 * (j // 2) : 32 * (j // 2) + 32]
        read += [d * scale * (byte >> 4 if j % 2 else byte & 0xF) - dmin * low for byte in half_bytes]
    meant = [
        0.5 * numbers[f"scale {i // 32}"] * numbers[f"weight {i}"] - 0.25 * numbers[f"min {i // 32}"]
        for i in range(256)
    ]
    assert read == meant


LLAMA = model_parameters(model("llama-3-8b"))
NORMS = LLAMA.norms  # one-dimensional tensors stay in F32


@pytest.mark.parametrize(
    ("name", "bits", "gib"), [("Q8_0", 8.5008, 7.95), ("Q6_K", 6.5633, 6.14), ("F16", 16.0005, 14.96)]
)
def test_files_of_one_format_as_llama_cpp_prints_them(name: str, bits: float, gib: float) -> None:
    # llama.cpp, tools/quantize/README.md, Llama-3.1-8B: bits/weight and size (GiB)
    size = gguf.mixture_bytes({name: LLAMA.total - NORMS, "F32": NORMS})
    assert round(8 * size / LLAMA.total, 4) == bits
    assert round(size / GiB, 2) == gib


def test_q4_k_m_is_a_mixture_as_llama_cpp_prints_it() -> None:
    # The same table: Q4_K_M 4.8944 bits/weight, 4.58 GiB. src/llama-quant.cpp: head in Q6_K; attn_v and ffn_down in
    # Q6_K in the layers of use_more_bits: the first and last eighth, and every third between (i - n/8) % 3 == 2.
    layers = [i for i in range(32) if i < 4 or i >= 28 or (i - 4) % 3 == 2]
    better = LLAMA.head + len(layers) * (1024 * 4096 + 4096 * 14336)
    size = gguf.mixture_bytes({"Q4_K": LLAMA.total - NORMS - better, "Q6_K": better, "F32": NORMS})
    assert round(8 * size / LLAMA.total, 4) == 4.8944
    assert round(size / GiB, 2) == 4.58


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("Q4_0", Groups(element_bits=4, group=32, scale_bits=16, zero_bits=0)),
        ("Q5_1", Groups(element_bits=5, group=32, scale_bits=16, zero_bits=16)),
    ],
)
def test_plain_formats_are_groups_of_32(name: str, groups: Groups) -> None:
    assert gguf.GGUF_FORMATS[name].bits_per_weight == groups.bits_per_weight


@pytest.mark.parametrize("name", ["Q4_0", "Q4_K"])
def test_a_tensor_is_its_blocks(name: str) -> None:
    form = gguf.GGUF_FORMATS[name]
    numbers = dict.fromkeys(gguf_blocks.places(name), 0)
    written = b"".join(gguf_blocks.packed(name, numbers) for _row in range(3) for _start in range(0, 512, form.block))
    assert gguf.tensor_bytes(rows=3, columns=512, gguf_format=name) == len(written)
    assert gguf.mixture_bytes({name: 3 * 512}) == len(written)


def test_refusals() -> None:
    assert gguf.tensor_bytes(rows=1, columns=256, gguf_format="Q4_K") == 144
    with pytest.raises(ValueError, match="block=256 must divide columns=288; try block in"):
        gguf.tensor_bytes(rows=1, columns=288, gguf_format="Q4_K")
    assert gguf.tensor_bytes(rows=1, columns=288, gguf_format="Q4_0") == 9 * 18
    with pytest.raises(ValueError, match="gguf_format='Q4_K_M' is not known. Known: F32"):
        gguf.tensor_bytes(rows=1, columns=256, gguf_format="Q4_K_M")
    with pytest.raises(ValueError, match="is not known"):
        gguf.mixture_bytes({"Q4_0": 32, "Q9_K": 256})
    with pytest.raises(ValueError, match="weights is empty"):
        gguf.mixture_bytes({})
