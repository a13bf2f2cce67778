"""Micro-batches in flight: a tick-by-tick run, torch's own schedule table, published factors, refusals."""

from types import SimpleNamespace

import pytest

from threeloops.simulate.training_loop.in_flight import peak_alive
from threeloops.training_loop.memory.in_flight import micro_batches_in_flight


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize("pp", [1, 2, 5, 6])
def test_every_stage_of_a_run(schedule, pp):
    for micro_batches in (1, 3, 5, 6, 7, 17):
        counted = peak_alive(schedule=schedule, pp=pp, micro_batches=micro_batches)
        predicted = tuple(
            micro_batches_in_flight(schedule=schedule, stage=stage, pp=pp, micro_batches=micro_batches)
            for stage in range(pp)
        )
        assert counted == predicted


@pytest.mark.parametrize("chunks", [2, 3, 5])
@pytest.mark.parametrize("pp", [1, 3, 5, 6])
def test_every_stage_of_an_interleaved_run(pp, chunks):
    for rounds in (1, 2, 5):
        counted = peak_alive(schedule="interleaved", pp=pp, micro_batches=rounds * pp, chunks=chunks)
        predicted = [
            micro_batches_in_flight(
                schedule="interleaved", stage=stage, pp=pp, micro_batches=rounds * pp, chunks=chunks
            )
            for stage in range(pp)
        ]
        assert counted == tuple(pytest.approx(chunks * peak) for peak in predicted)


def alive_in_torch_table(*, pp, micro_batches, chunks):
    """Largest number of forwards without their backward, per rank, in the order that torch's interleaved 1F1B would
    run.
    """
    from torch.distributed.pipelining.schedules import ScheduleInterleaved1F1B

    rounds = max(1, micro_batches // pp)
    plan = SimpleNamespace(
        pp_group_size=pp,
        n_local_stages=chunks,
        _n_microbatches=micro_batches,
        microbatches_per_round=micro_batches // rounds,
    )
    peaks = []
    for rank in range(pp):
        alive = peak = 0
        for action in ScheduleInterleaved1F1B._calculate_single_rank_operations(plan, rank):
            if action is not None:
                alive += 1 if action.computation_type.name == "FORWARD" else -1
                peak = max(peak, alive)
        peaks.append(peak)
    return peaks


@pytest.mark.parametrize(("pp", "micro_batches", "chunks"), [(5, 20, 3), (3, 3, 2), (6, 12, 4)])
def test_torch_interleaved_table(pp, micro_batches, chunks):
    predicted = [
        chunks
        * micro_batches_in_flight(
            schedule="interleaved", stage=stage, pp=pp, micro_batches=micro_batches, chunks=chunks
        )
        for stage in range(pp)
    ]
    assert alive_in_torch_table(pp=pp, micro_batches=micro_batches, chunks=chunks) == pytest.approx(predicted)


@pytest.mark.parametrize(
    ("pp", "chunks", "micro_batches", "factor"),
    # Korthikanti et al., arXiv:2205.05198, section 4.2.3: interleaving holds 1 + (p-1)/(p*m) times L layers'
    # activations on the first stage. Table 3: 175B has p=8, m=3, batch 64: 1 + 7/24 = 1.292; 530B p=35, m=3, batch
    # 280: 1 + 34/105 = 1.324.
    [(8, 3, 64, 1.292), (35, 3, 280, 1.324)],
)
def test_korthikanti_interleaving_factor(pp, chunks, micro_batches, factor):
    in_flight = micro_batches_in_flight(
        schedule="interleaved", stage=0, pp=pp, micro_batches=micro_batches, chunks=chunks
    )
    assert in_flight / pp == pytest.approx(factor, abs=0.0005)


def test_limits():
    # One stage needs one micro-batch at a time under 1F1B, all of them under GPipe; with few micro-batches the
    # schedules agree.
    assert micro_batches_in_flight(schedule="1f1b", stage=0, pp=1, micro_batches=99) == 1
    assert micro_batches_in_flight(schedule="gpipe", stage=0, pp=1, micro_batches=99) == 99
    for schedule in ("gpipe", "1f1b"):
        assert micro_batches_in_flight(schedule=schedule, stage=0, pp=5, micro_batches=3) == 3
    # Ever finer chunks tend to one whole pipeline of micro-batches.
    assert micro_batches_in_flight(
        schedule="interleaved", stage=0, pp=5, micro_batches=50, chunks=1000
    ) == pytest.approx(5, rel=1e-3)


def test_refusals():
    good = {"stage": 0, "pp": 5, "micro_batches": 20}
    assert micro_batches_in_flight(schedule="interleaved", chunks=2, **good) == 7
    with pytest.raises(ValueError, match="schedule='1f1f' is not known; did you mean '1f1b'"):
        micro_batches_in_flight(schedule="1f1f", **good)
    with pytest.raises(ValueError, match="stage=5 must be less than pp=5"):
        micro_batches_in_flight(schedule="1f1b", **{**good, "stage": 5})
    with pytest.raises(ValueError, match="chunks=2 needs schedule='interleaved'"):
        micro_batches_in_flight(schedule="1f1b", chunks=2, **good)
    with pytest.raises(ValueError, match="chunks=1 with schedule='interleaved' is 1F1B"):
        micro_batches_in_flight(schedule="interleaved", chunks=1, **good)
    with pytest.raises(ValueError, match="pp=5 must divide micro_batches=21"):
        micro_batches_in_flight(schedule="interleaved", chunks=2, **{**good, "micro_batches": 21})
    assert (
        micro_batches_in_flight(schedule="zb-interleaved", chunks=2, **good)
        == micro_batches_in_flight(schedule="zb-v", chunks=2, **good)
        == 5
    )
    with pytest.raises(ValueError, match="chunks=1 with schedule='zb-interleaved' is ZB-H1"):
        micro_batches_in_flight(schedule="zb-interleaved", **good)
    with pytest.raises(ValueError, match="pp=5 must divide micro_batches=21"):
        micro_batches_in_flight(schedule="zb-interleaved", chunks=2, **{**good, "micro_batches": 21})
    with pytest.raises(ValueError, match="chunks=3 with schedule='zb-v': it has 2 per stage"):
        micro_batches_in_flight(schedule="zb-v", chunks=3, **good)
