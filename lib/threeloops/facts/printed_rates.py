"""Printed rates: how fast others' attention kernels were by the length of the sequence, their matmuls by shape, and
their all-reduces across nodes by size, as they printed them.

>>> rates = attention_rates("triton-2023")
>>> rates.part, rates.tokens[0], round(rates.forward_flops_per_s[0] / 1e12)
('a100-sxm4-80gb', 1024, 84)

Source: catalog/printed_rates.toml
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.facts.fact import catalogue_files


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionRates:
    """FLOP/s of causal attention, which counts half of the square; backward five products, two of them again."""

    part: str
    head_dim: int
    tokens: tuple[int, ...]  # of a sequence, rising
    forward_flops_per_s: tuple[float, ...]
    backward_flops_per_s: tuple[float, ...]


def attention_rates(kernel: str) -> AttentionRates:
    """The rates of one kernel.

    Raises:   ValueError for a kernel without printed rates; it names those of the catalogue
    """
    checks.one_of(_tables(), kernel=kernel)
    return _tables()[kernel]


@functools.cache
def _tables() -> Mapping[str, AttentionRates]:
    tables = _printed("attention_rates")
    return {
        kernel: AttentionRates(
            part=row["part"],
            head_dim=row["head_dim"],
            tokens=tuple(row["tokens"]),
            forward_flops_per_s=tuple(row["forward_flops_per_s"]),
            backward_flops_per_s=tuple(row["backward_flops_per_s"]),
        )
        for kernel, row in tables.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulRates:
    """FLOP/s of [m, k] x [k, n], by shape, in one library."""

    library: str
    part: str
    like: str  # the part whose kernel times say what to expect
    format: str
    source: str
    rows: tuple[tuple[int, int, int, float, float], ...]  # m, n, k, FLOP/s, bytes/s

    @property
    def seconds(self) -> tuple[tuple[tuple[int, int, int], float], ...]:
        """Each shape with the time of one call: 2 m n k over its rate."""
        return tuple(((m, n, k), 2 * m * n * k / rate) for m, n, k, rate, _ in self.rows)


@functools.cache
def matmul_rates() -> tuple[MatmulRates, ...]:
    """All tables.

    >>> [(one.library, one.format, len(one.rows)) for one in matmul_rates()]
    [('deepgemm', 'fp8-block', 18)]
    """
    return tuple(
        MatmulRates(
            library=key,
            **{name: row[name] for name in ("part", "like", "format")},
            source="{title}, {url}".format_map(_printed("sources", beside="matmul_rates")[row["source"]]),
            rows=tuple(map(tuple, row["rows"])),
        )
        for key, row in _printed("matmul_rates").items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeExchange:
    """An all-reduce among all GPUs of several nodes, by size."""

    part: str
    nodes: int
    gpus_of_node: int
    card_bytes_per_s: float  # one way, of each GPU's network card
    sizes_bytes: tuple[int, ...]  # of one GPU's tensor, rising
    seconds: tuple[float, ...]
    in_place_s: tuple[float, ...] = ()  # where the result lies on the tensor; nothing where it was not printed

    @property
    def ranks(self) -> int:
        return self.nodes * self.gpus_of_node


@functools.cache
def node_exchanges() -> Mapping[str, NodeExchange]:
    """All of them. Where the source prints busbw, its time is size * 2 * (ranks - 1) / ranks over it.

    >>> one = node_exchanges()["p6-b200"]
    >>> one.ranks, one.sizes_bytes[0], f"{one.seconds[0] * 1e6:.0f} microseconds"
    (32, 1048576, '378 microseconds')
    """
    return {key: _node_exchange(row) for key, row in _printed("node_exchanges").items()}


def _node_exchange(row: Mapping[str, Any]) -> NodeExchange:
    sizes, ranks = tuple(row["sizes_bytes"]), row["nodes"] * row["gpus_of_node"]
    sent = 2 * (ranks - 1) / ranks
    seconds = row.get("seconds") or [
        sent * size / busbw for size, busbw in zip(sizes, row["busbw_bytes_per_s"], strict=True)
    ]
    return NodeExchange(
        part=row["part"],
        nodes=row["nodes"],
        gpus_of_node=row["gpus_of_node"],
        card_bytes_per_s=row["card_bytes_per_s"],
        sizes_bytes=sizes,
        seconds=tuple(seconds),
        in_place_s=tuple(row.get("in_place_s", ())),
    )


def _printed(kind: str, *, beside: str = "") -> Mapping[str, Any]:
    """Rows of a kind, from the file that has them, or what it has `beside`."""
    (rows,) = [content[kind] for _, content in catalogue_files() if (beside or kind) in content]
    return dict(rows)
