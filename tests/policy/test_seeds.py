"""As many commits in a row as there are shares try every seed, and what a run tries is the same for all its workers."""

import pytest
from tests import seeds


def test_the_shares_are_all_seeds_and_each_has_the_first() -> None:
    shares = [set(seeds.chosen(1000, mode="usual", share=share)) for share in range(seeds.SHARES)]
    assert set.union(*shares) == set(range(1000))
    assert all(set(range(seeds.FIRST)) <= share and len(share) < 120 for share in shares)


def test_a_test_that_asks_for_few_gets_them_all_in_a_usual_run() -> None:
    assert seeds.chosen(6, mode="usual", share=3) == list(range(6))
    assert seeds.chosen(1000, mode="thorough", share=3) == list(range(1000))


def test_workers_take_mode_and_share_from_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(seeds.COUNT, "30")
    monkeypatch.setenv(seeds.MODE, "usual")
    monkeypatch.setenv(seeds.ALL, "yes")
    seeds.begin("usual")
    assert seeds.turn() == 30 % seeds.TURNS
    assert {seed % seeds.SHARES for seed in seeds.seeds(1000)[seeds.FIRST :]} == {7}
    assert f"one in {seeds.SHARES}, from seed 7 on" in seeds.said()


def test_what_takes_turns_sees_every_share_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(seeds.MODE, "usual")
    everything = list(range(2 * seeds.SHARES))
    seen = set()
    for commit in range(2, 2 + seeds.TURNS * seeds.SHARES, seeds.TURNS):
        monkeypatch.setenv(seeds.COUNT, str(commit))
        seen |= {*seeds.todays(everything)}
    assert seen == {*everything}
    with pytest.raises(ValueError, match="10 shares and 5 turns go round together; take 11"):
        seeds.todays(everything, shares=10)
