"""Predictions of recorded cases at the limits: no memory to wait for, one operation after another, ties and edges."""

import datetime

import pytest

from threeloops.facts.recorded import Measured, Recording, Stamp
from threeloops.facts.recorded_cases import Case
from threeloops.inner_loop.prediction_error import Ceilings, Row, ceilings, predicted_s, within

STAMP = Stamp(
    hardware="A card",
    device="cuda",
    part="",
    clocks="as it likes",
    driver="1.0",
    software="torch",
    threads=3,
    measured=datetime.date(2026, 11, 22),
)
SHAPE = {"layers": 3, "hidden": 256, "heads": 4, "kv_heads": 2, "head_dim": 64, "intermediate": 512}


def timed(kind: str, seconds: float, **sizes: int) -> Measured:
    case = Case(kind=kind, dtype="fp32", sizes=sizes)
    return Measured(case=case, n=7, median=seconds, lower_quartile=seconds, upper_quartile=seconds, fastest=seconds)


def recording(*measured: Measured) -> Recording:
    return Recording(
        stamp=STAMP,
        cases=tuple(one.case for one in measured),
        measured={one.case.name: one for one in measured},
        skipped={},
    )


def alone(case: Case, **peaks: float) -> float:
    """Its seconds where no byte and no launch takes time."""
    ceiling = Ceilings(origin="measured", memory_bytes_per_s=1e30, peak_flops_per_s=peaks, launch_s=0.0)
    return predicted_s(case, ceiling)


def test_what_multiplies_no_matrices_runs_at_the_rate_of_fp32_or_at_the_highest_known() -> None:
    """A triad multiplies and adds once for each of its 2^29 numbers."""
    triad = Case(kind="triad", dtype="bf16", sizes={"bytes": 2**30})
    assert alone(triad, fp32=1e12, bf16=8e12) == pytest.approx(2**30 / 1e12)
    assert alone(triad, bf16=8e12, fp8=16e12) == pytest.approx(2**30 / 16e12)


def test_of_attention_written_out_the_softmax_alone_runs_at_that_rate() -> None:
    """Two products of 1,024 by 1,024 by 64, and of 1,024 numbers in a row a maximum, a difference, an exponential, a
    sum and a quotient, where the first and the fourth take one less.
    """
    sizes = {"batch": 1, "heads": 1, "head_dim": 64, "tokens": 1024}
    unfused = Case(kind="attention_unfused", dtype="bf16", sizes=sizes)
    products, softmax = 2 * 2 * 1024 * 1024 * 64, 1024 * (5 * 1024 - 2)
    assert alone(unfused, fp32=1e3, bf16=1e30) == pytest.approx(softmax / 1e3)
    assert alone(unfused, fp32=1e30, bf16=1e3) == pytest.approx(products / 1e3)


def test_a_prompt_in_a_loop_goes_alone_however_many_users_there_are() -> None:
    prompt = Case(kind="prefill_eager", dtype="bf16", sizes=SHAPE | {"batch": 1, "tokens": 300})
    asked = {"vocabulary": 1000, "prompt": 300, "answer": 40, "requests": 90}
    for users in (1, 7):
        first = Case(kind="loop_first", dtype="bf16", sizes=SHAPE | asked | {"users": users})
        assert alone(first, fp32=1e12, bf16=8e12) == pytest.approx(alone(prompt, fp32=1e12, bf16=8e12), rel=1e-12)


def test_the_fastest_of_several_sets_a_ceiling() -> None:
    """Of two launches the quicker one, of streams of one length the one with the higher rate, of products as fast as
    each other the first.
    """
    found = ceilings(
        recording(
            timed("launch", 4e-3, operations=1000),
            timed("launch", 6e-3, operations=2000),
            timed("copy", 1e-3, bytes=2**30),  # 2 bytes moved for each
            timed("triad", 2e-3, bytes=2**30),  # 3
            timed("gemm", 1e-3, m=512, n=1024, k=64),
            timed("gemm", 1e-3, m=1024, n=512, k=64),
        ),
        origin="measured",
    )
    assert found.launch_s == pytest.approx(3e-6)
    assert found.memory_bytes_per_s == pytest.approx(2 * 2**30 / 1e-3)
    assert found.peak_flops_per_s == {"fp32": pytest.approx(2 * 512 * 1024 * 64 / 1e-3)}
    (first,) = (name for name in found.set_by if name.startswith("gemm"))
    assert "m512" in first


def test_a_time_at_the_edge_lies_within() -> None:
    rows = [
        Row(case=one.case, hardware="A card", predicted_s=1.0, measured=one)
        for one in (timed("copy", seconds, bytes=2**30) for seconds in (0.25, 0.5, 1.5, 1.75))
    ]
    assert within(rows, 0.5) == 2
