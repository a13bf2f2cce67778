"""The simulator with expected kernel times against served points: what the book aims at, on a twentieth of them."""

from statistics import median

import pytest

from threeloops.cli import main
from threeloops.measure.product_loop.simulated_points import SimulatedPoint, simulated_point, simulated_points
from threeloops.product_loop.expected.judged_points import judged_points


@pytest.fixture(scope="module")
def some() -> tuple[SimulatedPoint, ...]:
    return tuple(simulated_points(20))


def test_the_time_between_tokens_is_within_what_the_book_aims_at(some):
    assert len(some) > 40
    assert len({one.judged.point.part for one in some}) >= 3
    assert median(abs(one.error) for one in some) <= 0.20


def test_the_time_to_the_first_token_is_within_what_the_book_aims_at(some):
    firsts = [one.first_error for one in some if one.first_error is not None]
    assert len(firsts) > 15
    assert median(map(abs, firsts)) <= 0.30


def test_the_formula_and_the_simulator_agree_about_a_crowd(some):
    """Two ways to the same time: a formula of means, and every request by itself."""
    ratios = [one.tpot_s / one.judged.expected.total_s for one in some]
    assert 0.9 < median(ratios) < 1.1


def test_a_run_without_seats_for_all_is_refused():
    crowded = next(one for one in judged_points() if not one.seated)
    with pytest.raises(ValueError, match="do not all have a seat"):
        simulated_point(crowded)


def test_the_command_prints_both_errors_by_group(some, capsys, monkeypatch):
    module = "threeloops.measure.product_loop.simulated_points.simulated_points"
    monkeypatch.setattr(module, lambda every: some)
    assert main(["measured", "simulated"]) == 0
    printed = capsys.readouterr().out
    every = next(line for line in printed.splitlines() if line.strip().startswith("all "))
    assert str(len(some)) in every.split()
    assert "on h100-sxm5" in printed
    assert "Every request by itself" in printed
