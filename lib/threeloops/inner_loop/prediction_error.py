"""Prediction error: what the library predicts for every recorded case, beside what was recorded.

The prediction is the roofline's lower bound and nothing else: the FLOPs and bytes of `kernels`, the ceilings of one
machine, no constant per case. The ceilings are a datasheet's, or those that the recording itself measured; the cases
that set a ceiling are then left out, because they would agree by force.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from threeloops import checks, dtypes
from threeloops.facts import hardware
from threeloops.facts.recorded import Measured, Recording
from threeloops.facts.recorded_cases import Case
from threeloops.inner_loop import coalescing
from threeloops.models import recorded_work, transformer
from threeloops.models.forward_step import ForwardStep
from threeloops.operations import roofline

ORIGINS = ("datasheet", "measured")
VECTOR_KINDS = (
    "copy",
    "triad",
    "saxpy",
    "softmax",
    "rmsnorm",
    "layernorm_fused",
    "layernorm_steps",
    "layernorm_compiled",
    "inflight",
    "strided",
    "sample_greedy",
    "sample_top_p",
)
COPIED = ("copy_to_gpu", "copy_from_gpu", "copy_to_gpu_pageable", "copy_from_gpu_pageable")
ON_AN_SM = ("banks", "paths")
HOST_LINK = "host_link_bytes_per_s_one_way"
SCHEDULERS = 4  # of an SM: so many warps issue an instruction in a cycle
# What has no lower bound here: issuing is a ceiling itself, no datasheet says what an L2 delivers or how long a load
# takes, and bytes are memory's.
NOT_PREDICTED = ("launch", "launch_graph", "reread", "recopy", "chase", "train_peak")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """What a machine can do at best."""

    origin: str  # one of ORIGINS
    memory_bytes_per_s: float
    peak_flops_per_s: dict[str, float]  # by number format
    launch_s: float  # time to issue one operation; measured in any case, for no datasheet prints it
    set_by: frozenset[str] = frozenset()  # names of the cases that these ceilings were read from
    sm_hz: float | None = None  # the highest clock of an SM; a datasheet's, for nothing recorded says it
    host_bytes_per_s: float | None = None  # of the link to the host, one way


def ceilings(recording: Recording, *, origin: str) -> Ceilings:
    """The ceilings of the machine that was recorded.

    Formula:  measured: the fastest sample of the largest copy and triad, and in each number format of the product
              with the highest rate; datasheet: the catalogue's memory bandwidth and dense peaks of stamp.part; in
              both, the median of `launch` over its operations
    Raises:   ValueError for a datasheet where the stamp names no part, or where a ceiling was not recorded
    Source:   by definition: which rates bound a recording's cases
    Counted:  tests.facts.test_recorded.test_predictions_are_what_paper_says
    """
    checks.one_of(ORIGINS, origin=origin)
    if origin == "datasheet" and not recording.stamp.part:
        raise ValueError(f"{recording.stamp.hardware} is no part of the catalogue; use origin='measured'")
    launches = [one for one in recording.measured.values() if one.case.kind == "launch"]
    if not launches:
        raise ValueError(
            f"{recording.stamp.hardware}: launch was not recorded, and nothing else says what issuing an operation"
            " costs"
        )
    launch_s = min(one.median / one.case.sizes["operations"] for one in launches)
    issued = frozenset(one.case.name for one in launches)
    if origin == "datasheet":
        return replace(datasheet(recording.stamp.part, launch_s=launch_s), set_by=issued)
    return _measured_ceilings(recording, launch_s, issued)


def datasheet(part: str, *, launch_s: float) -> Ceilings:
    """The ceilings of a part of the catalogue, with a time to issue one operation that somebody has to state.

    >>> round(datasheet("h100-sxm5", launch_s=5e-6).peak_flops_per_s["bf16"] / 1e12)
    989
    """
    checks.non_negative(launch_s=launch_s)
    found = hardware.part(part)
    peaks = {name: fact.value for name, fact in found.peaks.items()}
    return Ceilings(
        origin="datasheet",
        memory_bytes_per_s=found["memory_bytes_per_s"],
        peak_flops_per_s=peaks,
        launch_s=launch_s,
        sm_hz=found["boost_clock_hz"] if "boost_clock_hz" in found.facts else None,
        host_bytes_per_s=found[HOST_LINK] if HOST_LINK in found.facts else None,
    )


def _measured_ceilings(recording: Recording, launch_s: float, issued: frozenset[str]) -> Ceilings:
    streams = [one for one in recording.measured.values() if one.case.kind in ("copy", "triad")]
    largest = max((one.case.sizes["bytes"] for one in streams), default=0)
    streams = [one for one in streams if one.case.sizes["bytes"] == largest]
    if not streams:
        raise ValueError(
            f"{recording.stamp.hardware}: neither copy nor triad was recorded, so that no memory ceiling is known"
        )
    products: dict[str, Measured] = {}
    for one in recording.measured.values():
        if one.case.kind == "gemm":
            best = products.get(one.case.dtype)
            if best is None or _rate(one) > _rate(best):
                products[one.case.dtype] = one
    if not products:
        raise ValueError(
            f"{recording.stamp.hardware}: no matmul was recorded, so that no ceiling of arithmetic is known"
        )
    return Ceilings(
        origin="measured",
        memory_bytes_per_s=max(recorded_work.works(one.case)[0].moved_bytes / one.fastest for one in streams),
        peak_flops_per_s={dtype: _rate(one) for dtype, one in products.items()},
        launch_s=launch_s,
        set_by=issued | {one.case.name for one in (*streams, *products.values())},
    )


def _rate(product: Measured) -> float:
    return recorded_work.matmul_of(product.case).flops / product.fastest


def predicted_s(case: Case, ceiling: Ceilings) -> float:
    """Seconds for one call of a case: the roofline's lower bound under these ceilings.

    Formula:  roofline.serial_time(kernels of the case).lower_bound_s, one launch per kernel; a graph is launched
              once; a training step: train_flops over the peak; a copy between host and GPU: its bytes over the link;
              banks: requests * passes cycles; paths: an instruction per warp, step and path, four in a cycle
    Assumes:  vector operations run at the fp32 peak, or where none is known at the highest; every operand is moved
              once, from memory, however often a tile kernel asks for it: an L2 may answer
    Raises:   ValueError for a number format without a ceiling, and for NOT_PREDICTED
    Source:   by definition: the roofline, and the formulas of each kind of case
    Counted:  tests.facts.test_recorded.test_predictions_are_what_paper_says
    """
    if case.kind in NOT_PREDICTED:
        raise ValueError(f"{case.kind} has no lower bound here: it is a ceiling itself, or is not measured in seconds")
    if case.kind in (*COPIED, *ON_AN_SM):
        return _beside_products_s(case, ceiling)
    dtype = dtypes.peak_format(case.dtype)
    vector = ceiling.peak_flops_per_s.get("fp32", max(ceiling.peak_flops_per_s.values()))
    if case.kind not in VECTOR_KINDS:
        checks.one_of(ceiling.peak_flops_per_s, dtype=dtype)
    matrix = ceiling.peak_flops_per_s.get(dtype, vector)
    if case.kind.startswith("train"):
        return recorded_work.train_flops(case) / matrix
    if case.kind.startswith(("decode", "prefill", "loop")):
        return _layers_s(case, ceiling, matrix=matrix, vector=vector)
    works = recorded_work.works(case)
    graph = case.kind.endswith("_graph")
    peaks = [
        vector if case.kind in VECTOR_KINDS or (case.kind == "attention_unfused" and index == 1) else matrix
        for index in range(len(works))
    ]
    bound = roofline.serial_time(
        roofline.time(
            work,
            peak_flops_per_s=peak,
            memory_bytes_per_s=ceiling.memory_bytes_per_s,
            launch_overhead_s=0.0 if graph else ceiling.launch_s,
        )
        for work, peak in zip(works, peaks, strict=True)
    ).lower_bound_s
    return max(bound, ceiling.launch_s)


def _beside_products_s(case: Case, ceiling: Ceilings) -> float:
    needed = "host_bytes_per_s" if case.kind in COPIED else "sm_hz"
    rate = getattr(ceiling, needed)
    if rate is None:
        raise ValueError(f"{needed}=None: no bound of {case.kind} is known without it; take a datasheet's ceilings")
    sizes = case.sizes
    if case.kind in COPIED:
        return max(float(sizes["bytes"] / rate), ceiling.launch_s)
    if case.kind == "banks":
        turns: float = sizes["requests"] * coalescing.passes_per_request(stride_words=sizes["stride"])
    else:
        turns = recorded_work.WARPS_PER_SM * sizes["steps"] * sizes["paths"] / SCHEDULERS
    return float(turns / rate)


def _layers_s(case: Case, ceiling: Ceilings, *, matrix: float, vector: float) -> float:
    sizes, decode = case.sizes, case.kind in ("loop_gap", "decode_eager", "decode_compiled", "decode_graph")
    if case.kind.startswith("loop"):  # a step has one token of every user; a prompt goes alone
        batch, sequence = (sizes["users"], sizes["prompt"] + sizes["answer"]) if decode else (1, sizes["prompt"])
    else:
        batch, sequence = sizes["batch"], sizes["context" if decode else "tokens"]
    step = ForwardStep(
        phase="decode" if decode else "prefill",
        batch=batch,
        sequence=sequence,
        causal="full" if decode else "exact",
        fused_attention=True,
        logits="last",
        bytes_per_element=dtypes.bytes_per_element(case.dtype),
    )
    ops = transformer.layer_ops(recorded_work.decode_layer(case), hidden=case.sizes["hidden"], rotary=decode, step=step)
    whole = transformer.model_time(
        ops * case.sizes["layers"],
        matrix_flops_per_s=matrix,
        vector_flops_per_s=vector,
        memory_bytes_per_s=ceiling.memory_bytes_per_s,
        launch_overhead_s=0.0 if case.kind in ("decode_graph", "loop_gap") else ceiling.launch_s,
    )
    return max(whole.lower_bound_s, ceiling.launch_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One recorded case beside its prediction."""

    case: Case
    hardware: str
    predicted_s: float
    measured: Measured

    @property
    def ratio(self) -> float:
        """Recorded over predicted: above 1, the machine was slower than its bound."""
        return self.measured.median / self.predicted_s


def rows(recording: Recording, *, origin: str) -> list[Row]:
    """Every measured case that has a prediction, in the order of the file; without those that set a ceiling."""
    ceiling = ceilings(recording, origin=origin)
    chosen = [one for one in recording.measured.values() if _has_bound(one.case, ceiling)]
    return [
        Row(case=one.case, hardware=recording.stamp.hardware, predicted_s=predicted_s(one.case, ceiling), measured=one)
        for one in chosen
        if one.case.name not in ceiling.set_by
    ]


def _has_bound(case: Case, ceiling: Ceilings) -> bool:
    if case.kind in COPIED:
        return ceiling.host_bytes_per_s is not None
    if case.kind in ON_AN_SM:
        return ceiling.sm_hz is not None
    known = case.kind in VECTOR_KINDS or dtypes.peak_format(case.dtype) in ceiling.peak_flops_per_s
    return known and case.kind not in NOT_PREDICTED


def origin_for(recording: Recording) -> str:
    """The datasheet where the recorded part is in the catalogue, else the machine's own ceilings."""
    return "datasheet" if recording.stamp.part else "measured"


def within(found: Iterable[Row], share: float) -> int:
    """How many recorded times lie within a share of their prediction: 0.2 means from 0.8 to 1.2 times.

    Formula:  |recorded / predicted - 1| <= share
    Source:   by definition
    Counted:  tests.facts.test_recorded.test_the_count_counts_both_directions_and_its_own_edge
    """
    checks.positive(share=share)
    return sum(abs(row.ratio - 1) <= share for row in found)
