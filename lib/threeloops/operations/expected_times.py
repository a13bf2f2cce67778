"""Expected times: what single kernels take on a GPU by what was measured, beside the bound that none can beat.

A bound says "not less than"; an expected time says "about so much", and has an error that `threeloops measured` prints.

>>> one = expected_product("h100-sxm5", m=8192, n=8192, k=8192, format="bf16")
>>> one.bound_s < one.seconds < 2 * one.bound_s
True
>>> small = expected_product("h100-sxm5", m=1, n=4096, k=4096, format="bf16")
>>> small.seconds > 1.3 * small.bound_s  # a kernel of ten microseconds is far from its roof
True

Source: facts/kernel_times.py; each table says whose measurements stand behind it
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from threeloops import checks, dtypes
from threeloops.facts import hardware
from threeloops.facts.kernel_times import (
    DECODE,
    DELTA_SCAN,
    EXPERTS,
    LATENT_DECODE,
    LATENT_PREFILL,
    MATMUL,
    PREFILL,
    SIZES,
    STATE_SCAN,
    KernelTable,
    TimedRow,
    kernel_table,
    kernel_times,
    timed_parts,
)
from threeloops.operations.attention import attention
from threeloops.operations.expert_layers import expert_layer
from threeloops.operations.latent_module import latent_decode, latent_prefill
from threeloops.operations.roofline import Work, time
from threeloops.operations.scan_kernels import delta_scan, state_scan

CACHE = "bf16"  # of latents, in every row that is used
SCAN_FORMAT = "bf16"
OUTPUT_BYTES = 2  # products of every format here write bf16


# Of one generation, and with one memory rate.
LATENT_CARRIED = dict.fromkeys(("b300-hgx", "gb200", "gb300"), "b200-hgx")
LATENT = {LATENT_PREFILL: latent_prefill, LATENT_DECODE: latent_decode}
SCANS: Mapping[str, Callable[..., Work]] = {DELTA_SCAN: delta_scan, STATE_SCAN: state_scan}
SCANS_CARRIED = {DELTA_SCAN: "h100-sxm5", STATE_SCAN: "b200-hgx"}  # whose share of the roof a part without rows takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A bound, and what it takes by a table of measured kernels."""

    bound_s: float
    seconds: float
    table: KernelTable

    @property
    def share(self) -> float:
        """The share of its roof that the kernel is expected to reach: bound over expected time."""
        return self.bound_s / self.seconds


def expected_product(part: str, *, m: int, n: int, k: int, format: str) -> Expected:
    """[m, k] x [k, n] in a format of weights and activations, as an inference engine's linear layer does it.

    Formula:  (bound + shortest kernel) * stretch(m, n, k)
    Shapes:   m rows (tokens), n outputs, k inputs; the result is bf16
    Assumes:  launches are hidden (a CUDA graph); weights that fit into the L2 may lie there; all but bf16 include what
              the layer does to its input before the product; sizes beyond the largest measured reach its share
    Raises:   ValueError for a part or format that was not measured, for n or k below 64 (fp8-block: below 128)
    Measured: tests.operations.test_expected_times.test_two_strangers_agree_about_bf16
    """
    return kernel_expected(kernel_table(part, MATMUL, format), {"m": m, "n": n, "k": k})


def expected_prefill(
    part: str, *, batch: int, num_heads: int, num_kv_heads: int, head_dim: int, tokens: int, cache: str
) -> Expected:
    """Causal attention over prompts of `tokens` tokens, between the projections.

    Formula:  (bound + shortest kernel) * stretch(head_dim, query heads per KV head, batch * num_heads, tokens)
    Assumes:  bf16 queries; no window; forward only
    Raises:   ValueError for a part or cache format that was not measured, for a width of head that was not
    Measured: tests.operations.test_expected_times.test_attention_that_no_table_has_seen
    """
    sizes = _attention_sizes(locals())
    return kernel_expected(kernel_table(part, PREFILL, cache), sizes)


def expected_decode(
    part: str, *, batch: int, num_heads: int, num_kv_heads: int, head_dim: int, tokens: int, cache: str
) -> Expected:
    """Attention of one new token for each of `batch` requests over caches of `tokens` tokens.

    Formula:  (bound + shortest kernel) * stretch(head_dim, batch * num_kv_heads, tokens)
    Assumes:  bf16 queries; all requests equally long; no window
    Raises:   ValueError for a part or cache format that was not measured, for a width of head that was not
    Measured: tests.operations.test_expected_times.test_attention_that_no_table_has_seen
    """
    sizes = _attention_sizes(locals())
    return kernel_expected(kernel_table(part, DECODE, cache), sizes)


def expected_experts(
    part: str, *, tokens: int, num_experts: int, top_k: int, hidden: int, intermediate: int, ep: int, format: str
) -> Expected:
    """One GPU's experts for a batch that all of ep GPUs see, between the router and the sum over the GPUs.

    Formula:  (bound + shortest kernel) * stretch(tokens, num_experts / top_k, hidden * intermediate)
    Shapes:   as expert_layers.expert_layer: intermediate as this GPU holds it
    Assumes:  a few experts that are chosen more often than others (shares by a power law with exponent 1.01), where
              the bound spreads tokens evenly; fp8 by blocks of 128 x 128, with the activations' quantising inside
    Raises:   ValueError for a part or format that was not measured, for matrices smaller than any that was
    Measured: tests.operations.test_expected_times.test_an_engines_experts_take_about_as_long_as_torchs_grouped_products
    """
    given = locals()
    sizes = {name: given[name] for name in SIZES[EXPERTS]}
    return kernel_expected(kernel_table(part, EXPERTS, format), sizes)


def expected_latent(part: str, *, phase: str, batch: int, num_heads: int, tokens: int, format: str) -> Expected:
    """One GPU's heads of a latent-attention block of DeepSeek-V3's widths, projections and all.

    Formula:  (bound + shortest kernel) * stretch(num_heads, batch, tokens)
    Shapes:   phase "prefill": `batch` prompts of `tokens`; "decode": a new token each, `tokens` in the cache
    Assumes:  16-bit latents; format is that of the projections' weights; vLLM's own choice of kernel; what a B200 took
              for B300, GB200 and GB300, whose own rows are 35 to 65 µs longer at every size, as where a host issues
              each kernel
    Raises:   ValueError for a part or format that was not measured
    Measured: tests.operations.test_latent_module.test_blocks_that_no_table_has_seen
    """
    families = {"prefill": LATENT_PREFILL, "decode": LATENT_DECODE}
    checks.one_of(families, phase=phase)
    sizes = {"batch": batch, "num_heads": num_heads, "tokens": tokens}
    return kernel_expected(kernel_table(LATENT_CARRIED.get(part, part), families[phase], format), sizes)


def expected_scan(part: str, *, family: str, **sizes: int) -> Expected:
    """The scan of a recurrent layer over whole sequences, between its projections and behind its convolution; forward.

    Formula:  (bound + shortest kernel) * stretch(batch * heads, tokens), the bound at the part's own rates
    Shapes:   sizes as kernel_times.SIZES names them for the family, "delta_scan" or "state_scan"
    Assumes:  16-bit numbers in and out; a part on which no scan was timed (`scan_timed_on` says) reaches the share of
              its roof that another reached
    Raises:   ValueError for another family, for fewer heads than were timed
    Measured: tests.operations.test_scan_kernels.test_scans_that_no_table_has_seen

    >>> heads = {"num_heads": 64, "head_dim": 64, "state_dim": 128, "groups": 8, "chunk": 128}
    >>> nano = expected_scan("b200-hgx", family="state_scan", batch=4, tokens=8192, **heads)
    >>> nano.share < 0.1  # chunk after chunk, in several kernels: far below its roof
    True
    """
    checks.one_of(SCANS, family=family)
    table = kernel_table(scan_timed_on(part, family=family), family, SCAN_FORMAT)
    facts = hardware.part(part)
    bound = time(
        SCANS[family](**sizes),
        peak_flops_per_s=facts.peak_flops_per_s(SCAN_FORMAT),
        memory_bytes_per_s=facts["memory_bytes_per_s"],
    )
    return stretched(table, bound_s=bound.lower_bound_s, place=place(family, sizes))


def scan_timed_on(part: str, *, family: str) -> str:
    """The part on which the scan behind expected_scan was timed: this one where there are rows, else another.

    >>> scan_timed_on("h200-sxm", family="delta_scan"), scan_timed_on("h200-sxm", family="state_scan")
    ('h200-sxm', 'b200-hgx')
    """
    checks.one_of(SCANS, family=family)
    own = part in timed_parts() and any(table.family == family for table in kernel_times(part).tables)
    return part if own else SCANS_CARRIED[family]


def _attention_sizes(given: Mapping[str, object]) -> dict[str, float]:
    return {name: given[name] for name in SIZES[PREFILL]}  # type: ignore[misc]


def kernel_expected(table: KernelTable, sizes: Mapping[str, float]) -> Expected:
    """The expected time of a call of these sizes (those that SIZES names for the family) by one table."""
    work = kernel_work(table.family, sizes, table.format)
    bound = time(work, peak_flops_per_s=table.peak_flops_per_s, memory_bytes_per_s=table.rate_bytes_per_s)
    return stretched(table, bound_s=bound.lower_bound_s, place=place(table.family, sizes))


def stretched(table: KernelTable, *, bound_s: float, place: Mapping[str, float]) -> Expected:
    """Bound + shortest kernel, times what the table found around this place."""
    return Expected(bound_s=bound_s, seconds=(bound_s + table.shortest_s) * table.stretch(**place), table=table)


def place(family: str, sizes: Mapping[str, float]) -> dict[str, float]:
    """Where a call stands on the axes of its family's tables.

    >>> place("decode", {"batch": 8, "num_heads": 32, "num_kv_heads": 8, "head_dim": 128, "tokens": 4096})
    {'head_dim': 128, 'tokens': 4096, 'heads': 64}
    """
    if family in (MATMUL, LATENT_PREFILL, LATENT_DECODE):
        return dict(sizes)
    if family in SCANS:
        heads = sizes["value_heads" if family == DELTA_SCAN else "num_heads"]
        return {"scanned": sizes["batch"] * heads, "tokens": sizes["tokens"]}
    if family == EXPERTS:
        matrix = sizes["hidden"] * sizes["intermediate"]
        return {"tokens": sizes["tokens"], "sparsity": sizes["num_experts"] / sizes["top_k"], "matrix": matrix}
    ends = {"head_dim": sizes["head_dim"], "tokens": sizes["tokens"]}
    if family == DECODE:  # what is read decides: KV heads, whoever shares them
        return ends | {"heads": sizes["batch"] * sizes["num_kv_heads"]}
    return ends | {"heads": sizes["batch"] * sizes["num_heads"], "group": sizes["num_heads"] / sizes["num_kv_heads"]}


def kernel_work(family: str, sizes: Mapping[str, float], format: str) -> Work:
    """FLOPs and bytes of a call.

    >>> kernel_work("matmul", {"m": 4096, "n": 4096, "k": 4096}, "bf16").arithmetic_intensity > 1365
    True
    """
    if family == MATMUL:
        return _product_work(format=format, **sizes)
    if family == EXPERTS:
        counts = {name: int(size) for name, size in sizes.items()}
        return expert_layer(**counts, bytes_per_element=dtypes.bytes_per_element(format))
    if family in LATENT:
        counts = {name: int(size) for name, size in sizes.items()}
        of_weights, of_cache = dtypes.bytes_per_element(format), dtypes.bytes_per_element(CACHE)
        return LATENT[family](**counts, bytes_per_element=of_weights, cache_bytes_per_element=of_cache)
    if family in SCANS:
        return SCANS[family](**{name: int(size) for name, size in sizes.items()})
    asked = 1 if family == DECODE else sizes["tokens"]
    return attention(
        batch=int(sizes["batch"]),
        num_heads=int(sizes["num_heads"]),
        num_kv_heads=int(sizes["num_kv_heads"]),
        head_dim=int(sizes["head_dim"]),
        query_tokens=int(asked),
        context_tokens=int(sizes["tokens"]),
        causal="full" if family == DECODE else "half",
        fused=True,
        bytes_per_element=dtypes.bytes_per_element("bf16"),
        kv_bytes_per_element=dtypes.bytes_per_element(format),
    )


def _product_work(*, m: float, n: float, k: float, format: str) -> Work:
    checks.count(m=m, n=n, k=k)
    operand = dtypes.bytes_per_element(format)
    return Work(flops=2 * m * n * k, moved_bytes=(m * k + k * n) * operand + m * n * OUTPUT_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """How far expected times are from measured ones."""

    rows: int
    median: float  # of the sizes of the errors
    ninth_decile: float
    signed_median: float  # above 0: expected to take longer than it took


def errors(
    table: KernelTable,
    rows: Sequence[TimedRow],
    expect: Callable[[KernelTable, Mapping[str, float]], Expected] = kernel_expected,
) -> Errors:
    """The error of a table's expectations on rows, as a rule those that it kept back.

    Formula:  expected / measured - 1 of each row; the median and the ninth decile of its size, the median with sign
    Raises:   ValueError for fewer than two rows
    Counted:  tests.operations.test_expected_times.sizes_of_errors

    >>> table = kernel_table("h100-sxm5", "decode", "bf16")
    >>> errors(table, table.kept_back).median < 0.1
    True
    """
    if len(rows) < 2:
        raise ValueError(f"rows={len(rows)} of {table.family}; an error needs at least two")
    names = SIZES[table.family]
    return errors_of(
        [expect(table, dict(zip(names, sizes, strict=True))).seconds / took_s - 1 for sizes, took_s in rows]
    )


def errors_of(signed: Sequence[float]) -> Errors:
    """Errors with their signs, in sum; of a single one the ninth decile is its own size.

    >>> errors_of([0.1, -0.2, 0.3]).median
    0.2
    """
    sizes = [abs(one) for one in signed]
    return Errors(
        rows=len(signed),
        median=median(sizes),
        ninth_decile=quantiles(sizes, n=10, method="inclusive")[-1] if len(sizes) > 1 else sizes[0],
        signed_median=median(signed),
    )
