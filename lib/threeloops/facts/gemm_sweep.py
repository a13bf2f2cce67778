"""GEMM sweep: how fast matrix products of many shapes were on one kind of GPU, as somebody measured and printed them.

>>> sweep = gemm_sweep()
>>> sweep.outputs[-1], sweep.inners[-1], round(sweep.best_flops_per_s / 1e12)
(67108864, 4096, 793)

Source: OpenXLA, table of measured products for sm_90; see catalog/gemm_sweep.toml
"""

import functools
from dataclasses import dataclass

from threeloops import checks
from threeloops.facts.fact import catalogue_files


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmSweep:
    """Rates by the number of outputs (rows of the table) and by the inner length (columns), both rising."""

    outputs: tuple[int, ...]
    inners: tuple[int, ...]
    flops_per_s: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        for rates in self.flops_per_s:
            checks.positive(**{f"rate at {inner}": rate for inner, rate in zip(self.inners, rates, strict=True)})
        for name, values in (("outputs", self.outputs), ("inners", self.inners)):
            if list(values) != sorted(set(values)):
                raise ValueError(f"{name}={values} must rise: the table is read between its neighbours")
        if len(self.flops_per_s) != len(self.outputs):
            raise ValueError(f"{len(self.flops_per_s)} rows of rates for {len(self.outputs)} numbers of outputs")

    @property
    def best_flops_per_s(self) -> float:
        return max(rate for rates in self.flops_per_s for rate in rates)


@functools.cache
def gemm_sweep() -> GemmSweep:
    """The sweep of the catalogue."""
    (table,) = [content["gemm_sweep"] for _, content in catalogue_files() if "gemm_sweep" in content]
    return GemmSweep(
        outputs=tuple(table["outputs"]),
        inners=tuple(table["inners"]),
        flops_per_s=tuple(tuple(rates) for rates in table["flops_per_s"]),
    )
