"""Runs that hang, go on with fewer ranks, or compute wrongly: limits and refusals. Drills count the rest."""

import pytest

from threeloops.training_loop.run import corruption, elastic, flight_record


def test_the_same_number_of_ranks_moves_nothing_and_half_of_them_keeps_half_a_shard() -> None:
    assert elastic.shard_overlap(before=12, after=12) == 1
    assert elastic.shard_overlap(before=2, after=1) == 0.5
    assert elastic.shard_overlap(before=6, after=7) == pytest.approx(elastic.shard_overlap(before=7, after=6))


def test_who_is_behind_is_found_whatever_the_others_ran_ahead() -> None:
    assert flight_record.late_rank({3: 50, 11: 57, 19: 49, 27: 50}) == 19
    assert flight_record.late_rank({0: 5, 1: 4}) == 1


def test_a_rare_event_is_as_likely_as_often() -> None:
    few = corruption.corruption_chance(num_gpus=10, run_s=10, events=1, events_gpu_s=1e6)
    assert few == pytest.approx(1e-4, rel=1e-3)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: flight_record.late_rank({0: 5}), "two at least"),
        (lambda: flight_record.late_rank({0: 5, 1: 5, 2: 6}), "none alone is behind"),
        (lambda: elastic.elastic_gain_s(nodes=2, lost=2, spare_s=10, restart_s=1), "wait for the spares"),
        (lambda: elastic.micro_batches_each(global_batch=0, micro_batch=1, ranks=1), "global_batch"),
    ],
)
def test_what_makes_no_sense_is_refused(call, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()
