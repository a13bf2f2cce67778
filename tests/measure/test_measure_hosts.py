"""What feeds the device: loaders on threads and processes, batches made in advance."""

import threading
import time

import pytest

from threeloops import wall_clock
from threeloops.measure.inner_loop import loaders


def test_jobs_give_the_same_result_wherever_they_run():
    with loaders._workers("thread", 2) as threads, loaders._workers("process", 2) as processes:
        for job, size in ((loaders.parse_lines, 5), (loaders.sorted_sum, 500)):
            asked = [[pool.submit(job, size, seed) for seed in range(4)] for pool in (threads, processes)]
            results = [[future.result() for future in futures] for futures in asked]
            assert results[0] == results[1] == [job(size, seed) for seed in range(4)]
            assert len(set(results[0])) == 4


@pytest.mark.clock("two workers at once, on the wall clock")
def test_seconds_are_of_all_jobs():
    # Six rests of 0.1 s on two workers: 0.3 s, which no machine undercuts, and not the 0.6 s of one worker. A busy
    # machine can only be later: the best of several tries counts.
    tries = (loaders.seconds(_rest, 10, jobs=6, kind="thread", workers=2, repeats=2) for _ in range(5))
    assert next((seconds for seconds in tries if seconds < 0.55), 0) >= 0.3


def _rest(size, seed):
    wall_clock.pause(0.01 * size)


@pytest.mark.parametrize(
    ("wrong", "named"), [({"kind": "fibre"}, "kind"), ({"workers": 0}, "workers"), ({"jobs": 0}, "jobs")]
)
def test_refusals(wrong, named):
    with pytest.raises(ValueError, match=named):
        loaders.seconds(_rest, 0, **({"jobs": 1, "kind": "thread", "workers": 1} | wrong))


@pytest.mark.clock("two runs on the wall clock")
def test_a_batch_in_advance_hides_the_shorter_of_two_waits():
    def batches():
        for number in range(15):
            wall_clock.pause(0.01)
            yield number

    def taken_s(source):
        start = time.perf_counter()
        seen = [(number, wall_clock.pause(0.01))[0] for number in source]
        assert seen == list(range(15))
        return time.perf_counter() - start

    tries = [(taken_s(loaders.ahead(batches(), depth=1)), taken_s(batches())) for _ in range(3)]
    ahead, in_turns = (min(times) for times in zip(*tries, strict=True))  # a neighbour can only make both later
    assert ahead < 0.8 * in_turns


def test_who_works_ahead_is_never_further_than_allowed():
    made, used = [], []

    def items():
        for number in range(20):
            made.append(number)
            yield number

    for number in loaders.ahead(items(), depth=3):
        wall_clock.pause(0.002)
        used.append(number)
        assert len(made) - len(used) <= 3 + 1  # those in the queue, and one in the producer's hand
    assert used == list(range(20))


def test_an_error_in_the_loader_reaches_the_loop():
    def broken():
        yield 1
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full"):
        list(loaders.ahead(broken(), depth=2))


def test_who_leaves_early_leaves_no_thread_behind():
    before = threading.active_count()
    for number in loaders.ahead(iter(range(10**6)), depth=1):
        if number == 3:
            break
    assert wall_clock.until(lambda: threading.active_count() == before, limit_s=60)
