"""The recorded step beside its trace: where the expectation holds, and where it does not."""

import pytest

from threeloops.training_loop.parallelism.recorded_step import VECTOR, WAYS, recorded_step


@pytest.mark.parametrize("way", WAYS)
def test_products_are_met_and_the_rest_of_the_known_causes_nearly(way):
    rows = {row.cause: row for row in recorded_step(way, part="h100-sxm5")}
    assert rows["matmuls"].expected_s == pytest.approx(rows["matmuls"].traced_s, rel=0.02)
    for cause in ("loss", "optimiser"):
        assert rows[cause].expected_s == pytest.approx(rows[cause].traced_s, rel=0.15)
    assert 0.6 < rows["attention"].expected_s / rows["attention"].traced_s < 1


def test_vector_work_of_autocast_is_what_is_missing():
    short = {}
    for way in WAYS:
        rows = recorded_step(way, part="h100-sxm5")
        gaps = {row.cause: row.traced_s - row.expected_s for row in rows}
        assert max(gaps, key=lambda cause: gaps[cause]) == VECTOR
        short[way] = gaps[VECTOR] / sum(gaps.values())
    assert min(short.values()) > 0.75


def test_refusals():
    with pytest.raises(ValueError, match="way='train_fast' is not known"):
        recorded_step("train_fast", part="h100-sxm5")
    with pytest.raises(ValueError, match="part='h200-sxm' is not known"):
        recorded_step("train_eager", part="h200-sxm")
