"""Attention rates: how fast somebody's attention kernel was, by the length of the sequence, as they printed it.

>>> rates = attention_rates("triton-2023")
>>> rates.part, rates.tokens[0], round(rates.forward_flops_per_s[0] / 1e12)
('a100-sxm4-80gb', 1024, 84)

Source: catalog/attention_rates.toml
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

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

    Raises:   ValueError for a kernel whose rates nobody printed; it names those of the catalogue
    """
    checks.one_of(_tables(), kernel=kernel)
    return _tables()[kernel]


@functools.cache
def _tables() -> Mapping[str, AttentionRates]:
    (tables,) = [content["attention_rates"] for _, content in catalogue_files() if "attention_rates" in content]
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
