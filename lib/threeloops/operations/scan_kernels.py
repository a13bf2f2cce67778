"""Scan kernels: the work of a recurrent layer between its projections, for whole sequences, chunk by chunk.

Inside a chunk all pairs of tokens are products, as in attention; what came before the chunk is one matrix per head.

>>> one = delta_scan(batch=1, key_heads=16, value_heads=32, key_head_dim=128, value_head_dim=128, tokens=8192)
>>> two = delta_scan(batch=1, key_heads=16, value_heads=32, key_head_dim=128, value_head_dim=128, tokens=16384)
>>> two.flops == 2 * one.flops  # in line with the length, where attention's grow with its square
True

Source: Dao, Gu, Transformers are SSMs, 2024, arXiv:2405.21060, section 6 (Mamba 2); Yang, Kautz, Hatamizadeh, Gated
        Delta Networks, 2024, arXiv:2412.06464, section 3.3
"""

from threeloops import checks
from threeloops.operations import kernels
from threeloops.operations.roofline import Work

MATRIX_BYTES = 4  # of each number in a matrix: servers and kernels keep it in fp32
DELTA_CHUNK = 64  # tokens that a scan of delta rules takes at once: a constant of the kernels, in no config
ELEMENT_BYTES = 2


def delta_scan_flops(
    *, value_heads: int, key_head_dim: int, value_head_dim: int, chunk: int, tokens: int, causal: str
) -> float:
    """Matrix-product FLOPs of a gated delta net's scan over one sequence.

    Formula:  per value head 2 * pairs * (3 * key_head_dim + 2 * value_head_dim) + 6 * padded tokens * key_head_dim *
              value_head_dim: keys with keys, queries with keys, the inverse with keys and with values, the scores with
              values; the matrix read for keys, read for queries, written
    Assumes:  the sequence padded to whole chunks; pairs by `causal` inside each chunk; the inverse of the triangular
              system (chunk^3 / 3 per chunk and head) not counted, nor what is done element by element
    Source:   Yang, Kautz, Hatamizadeh, 2024, arXiv:2412.06464, section 3.3; Yang et al., 2024, arXiv:2406.06484,
              section 3 (the form without a gate)
    Counted:  tests.models.recurrent_scans.delta_by_chunk

    >>> delta_scan_flops(
    ...     value_heads=32, key_head_dim=128, value_head_dim=128, chunk=64, tokens=4096, causal="full"
    ... ) / 4096
    5767168.0
    """
    checks.count(value_heads=value_heads, key_head_dim=key_head_dim, value_head_dim=value_head_dim)
    padded, pairs = _chunks(tokens=tokens, chunk=chunk, causal=causal)
    k, v = key_head_dim, value_head_dim
    return value_heads * (2 * pairs * (3 * k + 2 * v) + 6 * padded * k * v)


def state_scan_flops(
    *, num_heads: int, head_dim: int, state_dim: int, groups: int, chunk: int, tokens: int, causal: str
) -> float:
    """Matrix-product FLOPs of Mamba 2's scan over one sequence.

    Formula:  2 * pairs * (groups * state_dim + inner) + 4 * padded tokens * inner * state_dim, inner = num_heads *
              head_dim: each group's scores, the scores with the heads' inputs; the matrix written, and read
    Assumes:  the sequence padded to whole chunks; pairs by `causal` inside each chunk; heads of one group share their
              scores, as the kernels of mamba_ssm do (transformers' own code computes them per head); states are passed
              from chunk to chunk element by element, which is not counted
    Source:   Dao, Gu, 2024, arXiv:2405.21060, section 6
    Counted:  tests.models.recurrent_scans.mamba_by_chunk

    >>> state_scan_flops(
    ...     num_heads=128, head_dim=64, state_dim=128, groups=8, chunk=128, tokens=4096, causal="full"
    ... ) / 4096
    6553600.0
    """
    checks.count(num_heads=num_heads, head_dim=head_dim, state_dim=state_dim, groups=groups)
    padded, pairs = _chunks(tokens=tokens, chunk=chunk, causal=causal)
    inner = num_heads * head_dim
    return 2 * pairs * (groups * state_dim + inner) + 4 * padded * inner * state_dim


def delta_scan(
    *, batch: int, key_heads: int, value_heads: int, key_head_dim: int, value_head_dim: int, tokens: int
) -> Work:
    """One kernel that scans `batch` sequences by gated delta rules, 16-bit numbers in and out.

    Formula:  FLOPs: batch * delta_scan_flops; bytes: 2 * batch * tokens * (queries, keys, values, output) + 4 * batch *
              value_heads * key_head_dim * value_head_dim
    Assumes:  whole squares inside a chunk; what passes from chunk to chunk stays on the chip, and leaves it once
    Counted:  tests.operations.test_scan_kernels.test_bytes_are_those_of_its_tensors
    """
    checks.count(batch=batch, key_heads=key_heads)
    flops = delta_scan_flops(
        value_heads=value_heads,
        key_head_dim=key_head_dim,
        value_head_dim=value_head_dim,
        chunk=DELTA_CHUNK,
        tokens=tokens,
        causal="full",
    )
    width = 2 * key_heads * key_head_dim + 2 * value_heads * value_head_dim
    return _scan(batch, tokens, flops, width=width, state=value_heads * key_head_dim * value_head_dim)


def state_scan(
    *, batch: int, num_heads: int, head_dim: int, state_dim: int, groups: int, chunk: int, tokens: int
) -> Work:
    """One kernel that scans `batch` sequences as Mamba 2 does, 16-bit numbers in and out.

    Formula:  FLOPs: batch * state_scan_flops; bytes: 2 * batch * tokens * (2 * inner + 2 * groups * state_dim) + 4 *
              batch * inner * state_dim
    Assumes:  as delta_scan
    Counted:  tests.operations.test_scan_kernels.test_bytes_are_those_of_its_tensors
    """
    checks.count(batch=batch)
    flops = state_scan_flops(
        num_heads=num_heads,
        head_dim=head_dim,
        state_dim=state_dim,
        groups=groups,
        chunk=chunk,
        tokens=tokens,
        causal="full",
    )
    inner = num_heads * head_dim
    return _scan(batch, tokens, flops, width=2 * inner + 2 * groups * state_dim, state=inner * state_dim)


def _scan(batch: int, tokens: int, flops: float, *, width: int, state: int) -> Work:
    return Work(
        flops=batch * flops,
        moved_bytes=batch * (tokens * width * ELEMENT_BYTES + state * MATRIX_BYTES),
    )


def _chunks(*, tokens: int, chunk: int, causal: str) -> tuple[int, float]:
    """Tokens of a sequence filled up to whole chunks, and the pairs of tokens inside all of them."""
    checks.count(tokens=tokens, chunk=chunk)
    chunks = -(-tokens // chunk)
    pairs = kernels.attended_pairs(query_tokens=chunk, context_tokens=chunk, causal=causal)
    return chunks * chunk, chunks * pairs
