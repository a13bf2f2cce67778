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
from threeloops.models import transformer
from threeloops.models.architecture import Attention, DenseMlp, Layer
from threeloops.models.forward_step import ForwardStep
from threeloops.operations import kernels, roofline
from threeloops.operations.roofline import Work

ORIGINS = ("datasheet", "measured")
VECTOR_KINDS = ("copy", "triad", "saxpy", "softmax", "rmsnorm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """What a machine can do at best."""

    origin: str  # one of ORIGINS
    memory_bytes_per_s: float
    peak_flops_per_s: dict[str, float]  # by number format
    launch_s: float  # time to issue one operation; measured in any case, for no datasheet prints it
    set_by: frozenset[str] = frozenset()  # names of the cases that these ceilings were read from


def ceilings(recording: Recording, *, origin: str) -> Ceilings:
    """The ceilings of the machine that was recorded.

    Formula:  measured: the fastest sample of the largest copy and triad, and in each number format of the product
              with the highest rate; datasheet: the catalogue's memory bandwidth and dense peaks of stamp.part; in
              both, the median of `launch` over its operations
    Raises:   ValueError for a datasheet where the stamp names no part, or where a ceiling was not recorded
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
        origin="datasheet", memory_bytes_per_s=found["memory_bytes_per_s"], peak_flops_per_s=peaks, launch_s=launch_s
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
            f"{recording.stamp.hardware}: no matrix product was recorded, so that no ceiling of arithmetic is known"
        )
    return Ceilings(
        origin="measured",
        memory_bytes_per_s=max(_works(one.case)[0].moved_bytes / one.fastest for one in streams),
        peak_flops_per_s={dtype: _rate(one) for dtype, one in products.items()},
        launch_s=launch_s,
        set_by=issued | {one.case.name for one in (*streams, *products.values())},
    )


def _rate(product: Measured) -> float:
    return _gemm(product.case).flops / product.fastest


def _gemm(case: Case) -> Work:
    m, n, k = (case.sizes[size] for size in ("m", "n", "k"))
    return kernels.gemm(m=m, n=n, k=k, bytes_per_element=dtypes.bytes_per_element(case.dtype))


def _works(case: Case) -> list[Work]:
    """The kernels of a case that multiplies no transformer layers, in order."""
    sizes, element = case.sizes, dtypes.bytes_per_element(case.dtype)
    if case.kind in ("copy", "triad"):
        flops, inputs = (0, 1) if case.kind == "copy" else (2, 2)
        return [
            kernels.elementwise(
                elements=int(sizes["bytes"] // element),
                flops_per_element=flops,
                inputs=inputs,
                bytes_per_element=element,
            )
        ]
    if case.kind == "saxpy":
        return [
            kernels.elementwise(elements=sizes["elements"], flops_per_element=2, inputs=2, bytes_per_element=element)
        ]
    if case.kind in ("softmax", "rmsnorm"):
        vector = kernels.softmax if case.kind == "softmax" else kernels.rmsnorm
        return [vector(rows=sizes["rows"], width=sizes["width"], bytes_per_element=element)]
    if case.kind == "gemm":
        return [_gemm(case)]
    if case.kind == "tiled_gemm":
        m, n, k, tile = (sizes[size] for size in ("m", "n", "k", "tile"))
        return [kernels.tiled_gemm(m=m, n=n, k=k, tile_m=tile, tile_n=tile, bytes_per_element=element)]
    heads, tokens = sizes["heads"], sizes["tokens"]
    if case.kind == "attention_fused":
        return [
            kernels.attention(
                batch=sizes["batch"],
                num_heads=heads,
                num_kv_heads=heads,
                head_dim=sizes["head_dim"],
                query_tokens=tokens,
                context_tokens=tokens,
                causal="full",
                fused=True,
                bytes_per_element=element,
            )
        ]
    unfused = kernels.unfused_attention(
        batch=sizes["batch"],
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=sizes["head_dim"],
        query_tokens=tokens,
        context_tokens=tokens,
        causal="full",
        bytes_per_element=element,
    )
    return [unfused.scores, unfused.softmax, unfused.values]


def decode_layer(case: Case) -> Layer:
    """The transformer layer of a recorded decode step: grouped-query attention, gated MLP, two RMSNorms."""
    attention = Attention(
        num_heads=case.sizes["heads"], num_kv_heads=case.sizes["kv_heads"], head_dim=case.sizes["head_dim"]
    )
    mlp = DenseMlp(intermediate=case.sizes["intermediate"], gated=True, activation="silu")
    return Layer(attention=attention, mlp=mlp, norm="rmsnorm", num_norms=2)


def predicted_s(case: Case, ceiling: Ceilings) -> float:
    """Seconds for one call of a case: the roofline's lower bound under these ceilings.

    Formula:  roofline.serial_time(kernels of the case).lower_bound_s, one launch per kernel; a graph is launched once
    Assumes:  vector operations run at the fp32 peak, or where none is known at the highest; every operand is moved
              once, from memory
    Raises:   ValueError for a number format without a ceiling, and for `launch`, which is a ceiling itself
    """
    if case.kind == "launch":
        raise ValueError("launch is a ceiling, not something to predict from ceilings")
    dtype = dtypes.peak_format(case.dtype)
    vector = ceiling.peak_flops_per_s.get("fp32", max(ceiling.peak_flops_per_s.values()))
    if case.kind not in VECTOR_KINDS:
        checks.one_of(ceiling.peak_flops_per_s, dtype=dtype)
    matrix = ceiling.peak_flops_per_s.get(dtype, vector)
    if case.kind.startswith("decode"):
        element = dtypes.bytes_per_element(case.dtype)
        step = ForwardStep(
            phase="decode",
            batch=case.sizes["batch"],
            sequence=case.sizes["context"],
            causal="full",
            fused_attention=True,
            logits="last",
            bytes_per_element=element,
        )
        ops = (
            transformer.layer_ops(decode_layer(case), hidden=case.sizes["hidden"], rotary=True, step=step)
            * case.sizes["layers"]
        )
        whole = transformer.model_time(
            ops,
            matrix_flops_per_s=matrix,
            vector_flops_per_s=vector,
            memory_bytes_per_s=ceiling.memory_bytes_per_s,
            launch_overhead_s=0.0 if case.kind == "decode_graph" else ceiling.launch_s,
        )
        return max(whole.lower_bound_s, ceiling.launch_s)
    works = _works(case)
    peaks = [vector if case.kind in VECTOR_KINDS or index == 1 else matrix for index in range(len(works))]
    return roofline.serial_time(
        roofline.time(
            work,
            peak_flops_per_s=peak,
            memory_bytes_per_s=ceiling.memory_bytes_per_s,
            launch_overhead_s=ceiling.launch_s,
        )
        for work, peak in zip(works, peaks, strict=True)
    ).lower_bound_s


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
    known = {*ceiling.peak_flops_per_s}
    chosen = [
        one
        for one in recording.measured.values()
        if one.case.kind in VECTOR_KINDS or dtypes.peak_format(one.case.dtype) in known
    ]
    return [
        Row(case=one.case, hardware=recording.stamp.hardware, predicted_s=predicted_s(one.case, ceiling), measured=one)
        for one in chosen
        if one.case.name not in ceiling.set_by
    ]


def origin_for(recording: Recording) -> str:
    """The datasheet where the recorded part is in the catalogue, else the machine's own ceilings."""
    return "datasheet" if recording.stamp.part else "measured"


def within(found: Iterable[Row], share: float) -> int:
    """How many recorded times lie within a share of their prediction: 0.2 means from 0.8 to 1.2 times.

    Formula:  |recorded / predicted - 1| <= share
    """
    checks.positive(share=share)
    return sum(abs(row.ratio - 1) <= share for row in found)
