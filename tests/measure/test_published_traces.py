"""Published traces: what is said of a whole, and which requests stand for it."""

import numpy as np
import pytest

from threeloops.measure.published_traces import dispersion, sampled, table


def test_a_sample_keeps_both_lengths_and_how_one_depends_on_the_other() -> None:
    rng = np.random.default_rng(3)
    prompts = rng.lognormal(6, 1, 20_000)
    answers = rng.lognormal(4, 1, 20_000) * prompts**0.3
    pairs = [(int(prompt), int(answer)) for prompt, answer in zip(prompts, answers, strict=True)]
    some, whole = np.array(sampled(pairs)), np.array(pairs)
    assert len(some) == 2_000
    assert some.mean(axis=0) == pytest.approx(whole.mean(axis=0), rel=0.02)
    for share in (0.1, 0.5, 0.9):
        assert np.quantile(some, share, axis=0) == pytest.approx(np.quantile(whole, share, axis=0), rel=0.03)
    depends = [np.corrcoef(np.log(1 + one.T))[0, 1] for one in (some, whole)]
    assert depends[0] == pytest.approx(depends[1], abs=0.02)


def test_counts_of_poisson_arrivals_vary_as_much_as_their_mean() -> None:
    seconds = np.cumsum(np.random.default_rng(4).exponential(0.1, 300_000))
    for window_s in (1, 10):
        assert dispersion(seconds, window_s=window_s) == pytest.approx(1, abs=0.06)
    load_moves = np.concatenate([seconds[:100_000], seconds[99_999] + (seconds[100_000:] - seconds[99_999]) / 3])
    assert dispersion(load_moves, window_s=10) > 20


def test_a_table_says_what_came_and_keeps_its_source() -> None:
    asked = [(second, 100 + second, 7 + second % 2) for second in range(4_000)]
    made = table(asked, source="a log", stamp_s=0)
    assert (made["requests"], made["seconds"], made["gap_cv"]) == (4_000, 3_999, 0)
    assert made["answer"] == {"mean": 7.5, "p50": 7.5, "p90": 8, "p99": 8}
    assert made["source"] == "a log"
    assert len(made["sample"]) == 2_000
