"""Expected times, judged on rows that no table has seen, on recordings of our own, and on another's sweep.

The bounds here are what the book aims at, not what it got: `threeloops measured` prints that.
"""

import functools
from statistics import median

import pytest

from threeloops.facts import recorded
from threeloops.facts.gemm_sweep import gemm_sweep
from threeloops.facts.kernel_times import (
    DECODE,
    EXCHANGES,
    EXPERTS,
    MATMUL,
    PREFILL,
    KernelTable,
    kernel_times,
    timed_parts,
)
from threeloops.facts.printed_rates import matmul_rates
from threeloops.facts.recorded import Measured
from threeloops.operations import expected_times
from threeloops.operations.expected_times import (
    errors,
    expected_experts,
    expected_product,
    kernel_expected,
    kernel_work,
)

FEW_ROWS = 128
OWN = {
    part: functools.reduce(recorded.joined, [one for one in recorded.shipped() if one.stamp.part == part])
    for part in {one.stamp.part for one in recorded.shipped()} & {*timed_parts()}
}
KERNELS = [table for part in timed_parts() for table in kernel_times(part).tables if table.family not in EXCHANGES]


def sizes_of_errors(tables: list[KernelTable], few: bool | None = None) -> list[float]:
    found = []
    for table in tables:
        rows = [row for row in table.kept_back if few is None or (row[0][0] < FEW_ROWS) is few]
        names = ("m", "n", "k") if table.family == MATMUL else expected_times.SIZES[table.family]
        found += [
            abs(kernel_expected(table, dict(zip(names, sizes, strict=True))).seconds / took_s - 1)
            for sizes, took_s in rows
        ]
    return found


@pytest.mark.parametrize(("few", "aim"), [(False, 0.08), (True, 0.15)])
def test_products_that_no_table_has_seen(few: bool, aim: float) -> None:
    assert median(sizes_of_errors([table for table in KERNELS if table.family == MATMUL], few)) <= aim


@pytest.mark.parametrize("family", [PREFILL, DECODE])
def test_attention_that_no_table_has_seen(family: str) -> None:
    tables = [table for table in KERNELS if table.family == family]
    assert median(sizes_of_errors(tables)) <= 0.10
    expect = {PREFILL: expected_times.expected_prefill, DECODE: expected_times.expected_decode}[family]
    off = [
        expect(table.part, **dict(zip(expected_times.SIZES[family], sizes, strict=True)), cache=table.format).seconds
        / took_s
        - 1
        for table in tables
        for sizes, took_s in table.kept_back
    ]
    assert median(map(abs, off)) <= 0.10


@pytest.mark.parametrize("table", KERNELS, ids=lambda table: f"{table.part}-{table.family}-{table.format}")
def test_no_device_is_far_off_and_none_leans_to_one_side(table: KernelTable) -> None:
    found = errors(table, table.kept_back)
    assert found.median == pytest.approx(median(sizes_of_errors([table])))
    assert found.median <= 0.13
    assert abs(found.signed_median) <= 0.05


# L2 beside slow memory: what is timed on the same tensors again and nearly fits there is quicker than memory allows.
LARGE_L2_BYTES = {"l40s": 96e6, "rtx-pro-6000-server": 1.05 * 2**27}
# An uneven router reads fewer experts than the even one of their bound.
BOUNDED = [table for table in KERNELS if table.family != EXPERTS]


@pytest.mark.parametrize("table", BOUNDED, ids=lambda table: f"{table.part}-{table.family}-{table.format}")
def test_hardly_a_kernel_beats_its_roof_unless_the_l2_holds_its_data(table: KernelTable) -> None:
    names = expected_times.SIZES[table.family]
    calls = [(dict(zip(names, sizes, strict=True)), took_s) for sizes, took_s in table.kept_back]
    beaten = [sizes for sizes, took_s in calls if took_s < kernel_expected(table, sizes).bound_s]
    holds = LARGE_L2_BYTES.get(table.part, 0)
    assert all(kernel_work(table.family, sizes, table.format).moved_bytes < holds for sizes in beaten)


@pytest.mark.parametrize("part", ["h100-sxm5", "h200-sxm"])
@pytest.mark.parametrize("tokens", [64, 256, 1024, 4096, 16384])
def test_an_engines_experts_take_about_as_long_as_torchs_grouped_products(part: str, tokens: int) -> None:
    """Our own recordings, by another kernel: within a factor of two where tokens are not few."""
    cases = [one for one in OWN[part].measured.values() if one.case.kind == "experts_grouped"]
    found = [one for one in cases if one.case.sizes["tokens"] == tokens]
    assert found
    for one in found:
        sizes = {name: one.case.sizes[name] for name in ("tokens", "top_k", "hidden", "intermediate")}
        expected = expected_experts(part, **sizes, num_experts=one.case.sizes["experts"], ep=1, format="bf16")
        assert 0.5 < expected.seconds / one.median < 2


def test_experts_cut_over_gpus_take_less_each_and_more_together() -> None:
    sizes = {"tokens": 64, "num_experts": 128, "top_k": 8, "hidden": 4096, "intermediate": 1536, "format": "fp8"}
    one, eight = (expected_experts("h100-sxm5", **sizes, ep=ep).seconds for ep in (1, 8))
    assert one / 8 < eight < one
    with pytest.raises(ValueError, match="matrix=.* from 131072 on"):
        expected_experts("h100-sxm5", **sizes | {"intermediate": 16}, ep=1)


def own_products(part: str, dtype: str, few: bool) -> list[tuple[Measured, float]]:
    """Products of our own recording, and what the tables expect of them over what they took."""
    found = []
    for one in OWN[part].measured.values():
        if one.case.kind == "gemm" and one.case.dtype == dtype and (one.case.sizes["m"] < FEW_ROWS) is few:
            expected = expected_product(part, **{name: one.case.sizes[name] for name in "mnk"}, format=dtype)
            found.append((one, expected.seconds / one.median))
    return found


@pytest.mark.parametrize("part", sorted(OWN))
@pytest.mark.parametrize("few", [True, False])
def test_two_strangers_agree_about_bf16(part: str, few: bool) -> None:
    """Their GPUs, their engine and their clock against our own recording of the same kind of GPU."""
    ratios = [ratio for _, ratio in own_products(part, "bf16", few)]
    assert len(ratios) >= 10
    assert median(abs(ratio - 1) for ratio in ratios) <= 0.08


@pytest.mark.parametrize("part", sorted(OWN))
def test_an_engine_s_fp8_layer_takes_longer_than_the_bare_product(part: str) -> None:
    """It quantises what comes in; our recording multiplies only."""
    ratios = [ratio for _, ratio in own_products(part, "fp8", few=False)]
    assert 1.1 < median(ratios) < 2


def test_an_engine_s_layer_in_blocks_of_fp8_takes_longer_than_its_authors_bare_kernel() -> None:
    """It quantises what comes in, in a kernel before: dear where both are short. DeepGEMM ran on an H800."""
    (rates,) = matmul_rates()
    ratios = []
    for (m, n, k), seconds in rates.seconds:
        expected = expected_product(rates.like, m=m, n=n, k=k, format=rates.format)
        ratios.append(expected.seconds / seconds)
        assert 1.1 < ratios[-1] < (2.2 if m <= 128 else 1.5)
    assert median(ratios) < 1.5


def test_another_sweep_with_another_compiler_is_not_far() -> None:
    sweep = gemm_sweep()
    off = []
    for outputs, rates in zip(sweep.outputs, sweep.flops_per_s, strict=True):
        side = round(outputs**0.5)
        for inner, rate in zip(sweep.inners, rates, strict=True):
            took_s = 2 * outputs * inner / rate
            off.append(expected_product("h100-sxm5", m=side, n=side, k=inner, format="bf16").seconds / took_s - 1)
    assert median(map(abs, off)) <= 0.2


def test_an_expected_time_is_no_bound_and_the_bound_is_below_it() -> None:
    for tokens in (512, 4096, 32_768):
        shape = {"num_heads": 32, "num_kv_heads": 8, "head_dim": 128, "tokens": tokens, "cache": "bf16"}
        prefill = expected_times.expected_prefill("h200-sxm", batch=1, **shape)  # type: ignore[arg-type]
        decode = expected_times.expected_decode("h200-sxm", batch=16, **shape)  # type: ignore[arg-type]
        assert 0 < prefill.share < 1
        assert 0 < decode.share < 1


def test_an_error_needs_rows() -> None:
    with pytest.raises(ValueError, match="rows=1 of matmul; an error needs at least two"):
        errors(KERNELS[0], KERNELS[0].kept_back[:1])
