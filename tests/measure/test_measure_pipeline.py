"""A network cut by depth over real processes: its gradients are those of one process, and its idle time is near the
schedule's.
"""

import pytest

from threeloops.measure.training_loop.pipeline import Plan, delays, measured
from threeloops.simulate.training_loop.pipeline_schedules import Work, run

PLANS = (
    Plan(schedule="gpipe", micro_batches=4),
    Plan(schedule="1f1b", micro_batches=6),
    Plan(schedule="interleaved", micro_batches=6, chunks=2),
    Plan(schedule="zb-h1", micro_batches=6),
    Plan(schedule="zb-h2", micro_batches=6),
)


def test_ranks_compute_what_one_process_computes_and_wait_as_the_schedule_says() -> None:
    pass_s = 0.02
    for plan, real in zip(PLANS, measured(PLANS, pp=3, pass_s=pass_s), strict=True):
        assert real.gradient_difference <= 1e-6 * real.largest_gradient
        even = Work(forward_s=pass_s, input_gradient_s=pass_s, weight_gradient_s=pass_s)
        played = run(
            schedule=plan.schedule, pp=3, micro_batches=plan.micro_batches, chunks=plan.chunks, work=even, send_s=0
        )
        assert real.run.peak_alive() == played.peak_alive()
        # No rank works faster than its device; how much later a busy machine is, nobody can promise.
        assert real.run.step_s >= played.step_s - 1e-3
        assert [[slot.passes for slot in slots] for slots in real.run.operations] == [
            [slot.passes for slot in slots] for slots in played.operations
        ]


@pytest.mark.parametrize(
    ("schedule", "chunks"), [("gpipe", 1), ("1f1b", 1), ("interleaved", 2), ("zb-h1", 1), ("zb-h2", 1)]
)
def test_delays_are_found_again(schedule: str, chunks: int) -> None:
    """In a run on the simulator's clock, every wait for another rank is one hop long, and nothing else is late."""
    size = {"schedule": schedule, "pp": 4, "micro_batches": 8, "chunks": chunks}
    even = Work(forward_s=3, input_gradient_s=3, weight_gradient_s=3)
    played = run(**size, work=even, send_s=0.25)
    found = delays(played, pass_s=3)
    # a result that came while its rank was busy has less to wait, or nothing
    assert found.hop_s == pytest.approx(0.25, abs=0.12)
    assert found.late_s == pytest.approx(0, abs=1e-9)
    assert found.work.forward_s == pytest.approx(3 + chunks * found.between_s)
    late = delays(
        run(**size, work=Work(forward_s=3.1, input_gradient_s=3.1, weight_gradient_s=3.1), send_s=0), pass_s=3
    )
    assert (late.hop_s, late.between_s) == pytest.approx((0, 0), abs=1e-9)
    again = run(**size, work=late.work, send_s=0).step_s
    assert again == pytest.approx(
        run(**size, work=Work(forward_s=3.1, input_gradient_s=3.1, weight_gradient_s=3.1), send_s=0).step_s, rel=0.005
    )


def test_refusals() -> None:
    with pytest.raises(ValueError, match="schedule='dualpipe' is not known"):
        measured([Plan(schedule="dualpipe", micro_batches=8)], pp=4, pass_s=0)
    with pytest.raises(ValueError, match="pp=3 must divide micro_batches=4"):
        measured([Plan(schedule="interleaved", micro_batches=4, chunks=2)], pp=3, pass_s=0)
    with pytest.raises(ValueError, match="pp=1 must be a whole number of at least 2"):
        measured([], pp=1, pass_s=0)
