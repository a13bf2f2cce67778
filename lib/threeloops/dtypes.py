"""Number formats: how many bits a value takes, and the names the catalogue uses for peak rates.

A format with shared scales costs more than its element: MXFP4 keeps one 8-bit scale per 32 values (4.25 bits each),
NVFP4 one 8-bit scale per 16 (4.5 bits). fp8-block is fp8 as DeepSeek-V3's weights are published: one 32-bit scale for
every block of 128 x 128.

>>> bytes_per_element("bf16"), bytes_per_element("mxfp4")
(2.0, 0.53125)

Source: IEEE 754-2019 (fp16, fp32, fp64); Kalamkar et al., 2019, arXiv:1905.12322 (bf16); Micikevicius et al., 2022,
        arXiv:2209.05433 (fp8);
OCP Microscaling Formats (MX) v1.0, 2023 (mxfp8, mxfp6, mxfp4); NVIDIA, "Introducing NVFP4 for Efficient and Accurate
Low-Precision Inference", 2025 (nvfp4); DeepSeek-AI, 2024, arXiv:2412.19437 (fp8-block).
"""

from threeloops.checks import one_of
from threeloops.spelling import key_of
from threeloops.units import BITS_PER_BYTE

# Bits per stored element, block scales included.
BITS = {
    "fp64": 64.0,
    "fp32": 32.0,
    "tf32": 32.0,  # computes with 19 bits, but is stored and moved as 32
    "bf16": 16.0,
    "fp16": 16.0,
    "fp8": 8.0,
    "fp8-block": 8 + 32 / 128**2,
    "int8": 8.0,
    "int4": 4.0,
    "mxfp8": 8 + 8 / 32,
    "mxfp6": 6 + 8 / 32,
    "mxfp4": 4 + 8 / 32,
    "nvfp4": 4 + 8 / 16,
}

OF_WEIGHTS = ("fp8-block",)  # of matrices alone: a block of 128 rows would be 128 tokens of a cache

# What else these formats are called, in torch and in files.
SPELLINGS = {
    "fp64": ("float64", "double"),
    "fp32": ("float32", "f32", "float"),
    "bf16": ("bfloat16",),
    "fp16": ("float16", "f16", "half"),
    "fp8": ("float8", "e4m3", "float8_e4m3fn", "e5m2"),
}

# What `peaks` tables are keyed by. The plain name is the unit that a GEMM in that format would use; fp32 and fp64 run
# on the ordinary (vector) lanes.
PEAK_FORMATS = (
    "fp64",
    "fp64_matrix",
    "fp32",
    "tf32",
    "bf16",
    "fp16",
    "bf16_vector",
    "fp16_vector",
    "fp8",
    "fp6",
    "fp4",
    "int8",
    "int4",
)


# The peak that a product of this storage format runs at, where its name is another.
PEAK_OF = {"fp8-block": "fp8", "mxfp8": "fp8", "mxfp6": "fp6", "mxfp4": "fp4", "nvfp4": "fp4"}


def dtype_named(**typed: str) -> str:
    """The format that a name means, in any spelling.

    Raises ValueError for an unknown name, with the nearest known ones.

    >>> dtype_named(cache="bfloat16"), dtype_named(dtype="FP8")
    ('bf16', 'fp8')
    """
    return key_of({name: SPELLINGS.get(name, ()) for name in BITS}, **typed)


def peak_format(dtype: str) -> str:
    """The name under which a part lists its peak for matrices stored in this format.

    >>> peak_format("nvfp4"), peak_format("bf16")
    ('fp4', 'bf16')
    """
    one_of(BITS, dtype=dtype)
    return PEAK_OF.get(dtype, dtype)


def bytes_per_element(dtype: str) -> float:
    """Bytes that one stored value of this format takes, its share of block scales included.

    Raises ValueError for an unknown format, naming the nearest known ones.
    """
    one_of(BITS, dtype=dtype)
    return BITS[dtype] / BITS_PER_BYTE
