"""Roofed products: the matrix products of a record, with the bound that none beats and what others measured for it."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from threeloops import dtypes
from threeloops.facts.hardware import Part
from threeloops.facts.traced_steps import cause_of
from threeloops.inner_loop.profiled.rank_record import AskedProduct, RankRecord
from threeloops.inner_loop.profiled.rank_timeline import device_of
from threeloops.inner_loop.profiled.span_columns import Spans
from threeloops.operations import matrix_kernels, roofline
from threeloops.operations.expected_times import expected_product

FORMATS = {"c10::BFloat16": "bf16", "c10::Half": "fp16", "c10::Float8_e4m3fn": "fp8", "double": "fp64"}
# A product of floats runs in one of two formats on a GPU; the kernel's name says in which, where it says so.
TF32, FP32 = re.compile(r"tf32|s1688"), re.compile(r"sgemm|f32f32_f32f32|ffma")


class TimedProduct(NamedTuple):
    """All calls of one product."""

    product: AskedProduct
    format: str  # empty where the file does not say it
    calls: int
    seconds: float  # of all calls

    @property
    def name(self) -> str:
        one = self.product
        batch = f"{one.batch:,} × " if one.batch > 1 else ""
        return f"{batch}[{one.m:,}, {one.k:,}] × [{one.k:,}, {one.n:,}] {self.format or one.type}"


class RoofedProduct(NamedTuple):
    """All calls of one product beside its roof."""

    timed: TimedProduct
    bound_s: float  # of all calls
    expected_s: float | None  # None where no such product is timed

    @property
    def share(self) -> float:
        """Of its roof, what was reached."""
        return self.bound_s / self.timed.seconds


def timed_products(record: RankRecord) -> list[TimedProduct]:
    """Products whose operator has its shapes in the record, the longest first."""
    device = device_of(record)
    asked: dict[tuple[AskedProduct, str], list[float]] = defaultdict(lambda: [0, 0.0])
    seen: set[tuple[int, str]] = set()
    for spans in (record.devices[device].kernels,) if device else tuple(record.operators.values()):
        for link, name, seconds in _linked(record, spans, on_device=bool(device)):
            product = record.products[link]
            format = FORMATS.get(product.type) or ("" if device else "fp32")
            if product.type == "float" and device:
                format = "tf32" if TF32.search(name) else "fp32" if FP32.search(name) else ""
            row = asked[product, format]
            row[0] += (link, format) not in seen  # an operator may run several kernels
            row[1] += seconds
            seen.add((link, format))
    rows = [TimedProduct(product, format, int(n), total) for (product, format), (n, total) in asked.items()]
    return sorted(rows, key=lambda row: -row.seconds)


def _linked(record: RankRecord, spans: Spans, *, on_device: bool) -> Iterator[tuple[int, str, float]]:
    """(operator, name, seconds) of what belongs to a product."""
    operator_of = _by_call(record) if on_device and record.linked_by_call > len(spans) / 2 else None
    for start, end, name, link in zip(spans.start, spans.end, spans.name, spans.link, strict=True):
        operator = link if operator_of is None else operator_of.get(link, -1)
        if operator in record.products and (not on_device or cause_of(record.names[name]) == "matmuls"):
            yield operator, record.names[name], end - start


def _by_call(record: RankRecord) -> dict[int, int]:
    """Correlation -> the product whose operator was running on the thread that launched it."""
    found = {}
    for thread, calls in record.calls.items():
        own = record.operators[thread]
        asked = sorted((start, end, link) for start, end, link in zip(own.start, own.end, own.link, strict=True)
                       if link in record.products)  # fmt: skip
        starts = [start for start, _, _ in asked]
        for start, correlation in zip(calls.start, calls.link, strict=True):
            place = bisect_right(starts, start) - 1
            if correlation >= 0 and place >= 0 and start <= asked[place][1]:
                found[correlation] = asked[place][2]
    return found


def roofed(timed: TimedProduct, part: Part) -> RoofedProduct | None:
    """A product beside its bound on a part, and beside the time that others measured; None where the part lists no
    peak of its format, or the file does not say the format.
    """
    one, format = timed.product, timed.format
    peaks = part.peaks
    if not format or dtypes.peak_format(format) not in peaks or not timed.seconds:
        return None
    stored = "fp32" if format == "tf32" else format
    element = dtypes.bytes_per_element(stored)
    work = matrix_kernels.gemm(m=one.m, n=one.n, k=one.k, batch=one.batch, bytes_per_element=element)
    bound = roofline.time(
        work,
        peak_flops_per_s=part.peak_flops_per_s(dtypes.peak_format(format)),
        memory_bytes_per_s=part["memory_bytes_per_s"],
    )
    try:
        expected = (
            None if one.batch > 1 else expected_product(part.key, m=one.m, n=one.n, k=one.k, format=format).seconds
        )
    except ValueError:  # not timed: this part, this format, or so small a product
        expected = None
    calls = timed.calls
    return RoofedProduct(timed, bound.lower_bound_s * calls, expected * calls if expected is not None else None)
