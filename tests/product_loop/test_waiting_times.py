"""Tails, bursts, overload, pools and late servers: formulas against requests that come one by one."""

import heapq
import itertools
import math
import random
import re
import statistics

import numpy as np
import pytest
from tests.product_loop import two_stages

from threeloops.product_loop import backlogs, queueing
from threeloops.simulate.product_loop import queue, visits


def times(load: float, *, count: int = 120_000, seed: int = 3) -> list[float]:
    came = visits.arrivals(rates_per_s=[(count / load, load)], seed=seed)
    services = visits.exponential(len(came), mean_s=1, seed=seed + 1)
    return [visit.time_s for visit in visits.play(came, services, servers=1)]


@pytest.mark.parametrize(("load", "within"), [(0.5, 0.03), (0.7, 0.06)])
def test_quantiles_of_the_time_in_the_system(load: float, within: float) -> None:
    simulated = times(load)
    for share in (0.5, 0.9, 0.99):
        predicted = queueing.mm1_time_quantile_s(requests_per_s=load, service_s=1, share=share)
        assert visits.quantile(simulated, share) == pytest.approx(predicted, rel=within)


def test_the_load_for_a_quantile_is_its_inverse() -> None:
    busy = queueing.most_load_for_quantile(service_s=0.1, share=0.99, seconds=1)
    p99 = queueing.mm1_time_quantile_s(requests_per_s=busy / 0.1, service_s=0.1, share=0.99)
    assert p99 == pytest.approx(1)
    assert queueing.most_load_for_quantile(service_s=0.3, share=0.99, seconds=1) == 0
    with pytest.raises(ValueError, match="share=1"):
        queueing.mm1_time_quantile_s(requests_per_s=1, service_s=0.1, share=1)


@pytest.mark.parametrize("servers", [300, 709, 711, 5_000, 100_000])
def test_the_share_that_waits_before_very_many_servers(servers: int) -> None:
    """Erlang's sum with each term over the largest, so that no factorial overflows."""
    for spare in (0.5, 2.0):  # servers beyond the offered load, in standard deviations of the heads
        offered = servers - spare * servers**0.5
        terms = np.cumsum(np.log(offered) - np.log(np.arange(1, servers + 1)))
        few, all_busy = np.exp(terms[:-1] - terms[-1]).sum() + np.exp(-terms[-1]), servers / (servers - offered)
        told = queueing.erlang_c(requests_per_s=offered / 3, service_s=3, servers=servers)
        assert told == pytest.approx(all_busy / (few + all_busy), rel=1e-8)
        # Halfin and Whitt, Operations Research 29(3), 1981: what it tends to as servers grow
        density = math.exp(-(spare**2) / 2) / math.sqrt(2 * math.pi)
        limit = 1 / (1 + spare * statistics.NormalDist().cdf(spare) / density)
        assert told == pytest.approx(limit, rel=3 * servers**-0.5)
        waits = queueing.mmc_wait_s(requests_per_s=offered / 3, service_s=3, servers=servers)
        assert waits == pytest.approx(told * 3 / (servers - offered))


def test_the_share_that_waits_longer_than_that() -> None:
    pool = {"requests_per_s": 2.8, "service_s": 1, "servers": 4}
    waits = queue.waits(
        customers=200_000,
        servers=4,
        gap=lambda r: r.expovariate(2.8),
        service=lambda r: r.expovariate(1),
        seed=5,
    )
    for wait_s in (0, 0.5, 2, 5):
        counted = sum(wait > wait_s for wait in waits) / len(waits)
        assert queueing.mmc_late_share(**pool, wait_s=wait_s) == pytest.approx(counted, abs=0.012)
    assert queueing.mmc_late_share(**pool, wait_s=0) == queueing.erlang_c(**pool)


def test_how_far_off_the_wait_before_several_servers_is_said_to_be() -> None:
    """The docstring's table, line by line, against the exact wait before servers whose service has two stages."""
    assert queueing.mgc_wait_s.__doc__ is not None
    lines = re.findall(r"cv ([0-9.]+) \(.*\), 4 servers: (.*); 16 servers: (.*)", queueing.mgc_wait_s.__doc__)
    assert [cv for cv, *_ in lines] == ["0.71", "2"]
    for cv, *tables in lines:
        stages = two_stages.erlang() if cv == "0.71" else two_stages.balanced(cv=float(cv))
        for servers, table in zip((4, 16), tables, strict=True):
            for load, said in zip((0.5, 0.7, 0.9), table.split(), strict=True):
                exact = two_stages.mean_wait_s(stages, requests_per_s=load * servers, servers=servers)
                told = queueing.mgc_wait_s(
                    requests_per_s=load * servers, service_s=1, servers=servers, service_cv=stages.cv
                )
                assert round(100 * (told / exact - 1)) == int(said)


def test_the_exact_wait_is_that_of_customers_one_by_one() -> None:
    stages = two_stages.balanced(cv=2)
    waits = queue.waits(
        customers=400_000,
        servers=4,
        gap=lambda r: r.expovariate(2.8),
        service=lambda r: r.expovariate(stages.rates[r.random() > stages.first]),
        seed=9,
    )
    exact = two_stages.mean_wait_s(stages, requests_per_s=2.8, servers=4)
    assert statistics.fmean(waits) == pytest.approx(exact, rel=0.06)
    one = two_stages.mean_wait_s(stages, requests_per_s=0.7, servers=1)
    assert one == pytest.approx(queueing.mg1_wait_s(requests_per_s=0.7, service_s=1, service_cv=2))


@pytest.mark.parametrize("service", ["exponential", "constant"])
def test_who_shares_a_server_stays_in_proportion_to_the_work(service: str) -> None:
    """Processor sharing (Kleinrock, volume 2, 1976, section 4.4): work / (1 - load), whatever the distribution."""
    came = visits.arrivals(rates_per_s=[(120_000 / 0.7, 0.7)], seed=31)
    services = visits.exponential(len(came), mean_s=1, seed=32) if service == "exponential" else [1.0] * len(came)
    seen = visits.shared(came, services)
    for low, high in ((0, 0.5), (0.5, 2), (2, 99)):
        some = [(visit.time_s, work) for visit, work in zip(seen, services, strict=True) if low < work <= high]
        if some:
            stays, work = (statistics.fmean(column) for column in zip(*some, strict=True))
            assert stays == pytest.approx(work / (1 - 0.7), rel=0.05)


def test_sharing_a_server_step_by_step() -> None:
    # alone until 1, two until 4 (half of the speed each), then alone again
    assert [visit.done_s for visit in visits.shared([0.0, 1.0], [2.5, 2.5])] == [4.0, 5.0]
    assert [visit.done_s for visit in visits.shared([0.0, 0.0, 9.0], [1.0, 1.0, 2.0])] == [2.0, 2.0, 11.0]
    assert visits.shared([], []) == []


def test_several_servers_with_less_varied_service() -> None:
    """Constant service before four servers: the approximation is within a tenth of the simulated wait."""
    waits = queue.waits(customers=150_000, servers=4, gap=lambda r: r.expovariate(3.2), service=lambda r: 1.0, seed=2)
    approximated = queueing.mgc_wait_s(requests_per_s=3.2, service_s=1, servers=4, service_cv=0)
    assert statistics.fmean(waits) == pytest.approx(approximated, rel=0.1)


def test_bursty_gaps_wait_longer() -> None:
    came = visits.arrivals(rates_per_s=[(250_000, 0.8)], seed=11, gap_cv=2)
    gaps = [b - a for a, b in itertools.pairwise(came)]
    assert statistics.stdev(gaps) / statistics.fmean(gaps) == pytest.approx(2, rel=0.02)
    services = visits.exponential(len(came), mean_s=1, seed=12)
    waited = statistics.fmean(visit.began_s - visit.came_s for visit in visits.play(came, services, servers=1))
    kingman = queueing.kingman_wait_s(requests_per_s=0.8, service_s=1, gap_cv=2, service_cv=1)
    assert waited == pytest.approx(kingman, rel=0.15)


def test_a_late_server_finds_the_backlog() -> None:
    came = [n / 30 for n in range(30 * 300)]  # 30 requests/s, evenly
    added = [90.0] * 4
    seen = visits.play(came, [0.1] * len(came), servers=2, added_s=added)
    waiting = dict(visits.waiting_over_time(seen, every_s=1))
    backlog = backlogs.cold_start_backlog(requests_per_s=30, served_per_s=20, late_s=90)
    assert waiting[90] == pytest.approx(backlog, abs=8)  # six are in service
    drained = backlogs.drain_s(backlog=backlog, requests_per_s=30, served_per_s=60)
    assert waiting[90 + round(drained) - 2] > 0
    assert waiting[90 + round(drained) + 2] == 0
    assert backlogs.cold_start_backlog(requests_per_s=10, served_per_s=20, late_s=90) == 0
    with pytest.raises(ValueError, match="never ends"):
        backlogs.drain_s(backlog=1, requests_per_s=2, served_per_s=2)


@pytest.mark.parametrize(("service_s", "wait_s"), [(0.2, 0.5), (0.3, 0.07), (1.7, 9.0)])
def test_as_many_may_come_as_wait_that_long(service_s: float, wait_s: float) -> None:
    rate = queueing.most_arrivals_for_wait(service_s=service_s, wait_s=wait_s)
    assert queue.mean_wait_s(requests_per_s=rate, service_s=service_s, servers=1) == pytest.approx(wait_s)


@pytest.mark.parametrize(("servers", "rate", "line"), [(3, 21, 40), (5, 55, 9), (1, 7, 60)])
def test_a_full_queue_turns_away_what_is_not_served(servers: int, rate: float, line: int) -> None:
    came = visits.arrivals(rates_per_s=[(30_000 / rate, rate)], seed=servers)
    services = visits.exponential(len(came), mean_s=0.2, seed=7)
    seen = visits.play(came, services, servers=servers, most_waiting=line)
    away = sum(visit.turned_away for visit in seen) / len(seen)
    predicted = queueing.turned_away_share(requests_per_s=rate, service_s=0.2, servers=servers)
    assert away == pytest.approx(predicted, rel=0.05)
    assert queueing.turned_away_share(requests_per_s=rate / 3, service_s=0.2, servers=servers) == 0


@pytest.mark.parametrize(("clients", "service_s", "think_s"), [(9, 0.5, 2.5), (4, 0.3, 3.0), (23, 0.2, 0.7)])
def test_clients_who_wait_send_as_fast_as_they_come_round(clients: int, service_s: float, think_s: float) -> None:
    """Clients before one server, each on its own clock; answers take as long as the queue makes them."""
    rng = random.Random(clients)
    asks = [(0.0, client) for client in range(clients)]
    free, answer_times = 0.0, []
    while len(answer_times) < 40_000:
        asked, client = heapq.heappop(asks)
        free = max(free, asked) + rng.expovariate(1 / service_s)
        answer_times.append(free - asked)
        heapq.heappush(asks, (free + rng.uniform(0, 2 * think_s), client))
    predicted = queueing.closed_loop_per_s(clients=clients, answer_s=statistics.fmean(answer_times), think_s=think_s)
    assert len(answer_times) / free == pytest.approx(predicted, rel=0.02)


@pytest.mark.parametrize(("rate", "pause_s", "limit_s"), [(40, 3, 0.85), (7, 5, 1.5), (90, 2, 3)])
def test_users_who_come_early_in_a_pause_are_late(rate: int, pause_s: float, limit_s: float) -> None:
    came = [(number + 0.5) / rate for number in range(9 * rate)]
    seen = visits.play(came, [0.0] * len(came), servers=1, pauses_s=[(1.0, 1.0 + pause_s)])
    late = sum(visit.time_s > limit_s for visit in seen)
    predicted = backlogs.late_after_pause(requests_per_s=rate, pause_s=pause_s, limit_s=limit_s)
    assert late == pytest.approx(predicted, abs=1)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: queueing.most_arrivals_for_wait(service_s=0.2, wait_s=0), "wait_s=0 must be greater than 0"),
        (lambda: queueing.turned_away_share(requests_per_s=2, service_s=1, servers=0), "servers=0 must be a whole"),
        (lambda: queueing.closed_loop_per_s(clients=2.5, answer_s=1, think_s=1), "clients=2.5 must be a whole"),
        (lambda: backlogs.late_after_pause(requests_per_s=9, pause_s=-1, limit_s=1), "pause_s=-1 must be at least 0"),
    ],
)
def test_nonsense_is_refused(call: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()  # type: ignore[operator]


def test_visits_agree_with_the_other_queue() -> None:
    """The same draws through both simulators of a line before three servers."""
    rng = random.Random(8)
    gaps, services = ([rng.random() for _ in range(500)] for _ in range(2))
    came = [sum(gaps[: n + 1]) for n in range(500)]
    drawn, served = iter(gaps), iter([3 * s for s in services])
    waits = queue.waits(customers=500, servers=3, gap=lambda _: next(drawn), service=lambda _: next(served), seed=0)
    seen = visits.play(came, [3 * s for s in services], servers=3)
    assert [v.began_s - v.came_s for v in seen] == pytest.approx(waits)


def test_turning_away_keeps_the_line_short() -> None:
    came = [0.01 * n for n in range(400)]
    seen = visits.play(came, [0.02] * 400, servers=1, most_waiting=5)
    served = [v for v in seen if not v.turned_away]
    assert max(v.time_s for v in served) <= 0.02 * 6 + 1e-9
    assert 0 < len(served) < 400
    assert max(waiting for _, waiting in visits.waiting_over_time(served, every_s=0.005)) == 5


def test_a_pause_is_felt_by_whoever_runs_and_whoever_comes() -> None:
    running, after, later = visits.play([0.0, 1.5, 9.0], [1.0] * 3, servers=1, pauses_s=[(0.5, 2.5)])
    assert (running.done_s, after.began_s, after.done_s, later.time_s) == (3.0, 3.0, 4.0, 1.0)


def test_a_closed_loop_asks_less_when_the_server_is_slow() -> None:
    """One client, one request every 10 ms, a pause of a second: it sends none of the hundred it had meant to."""
    seen = visits.closed(clients=1, services_s=[0.001] * 400, every_s=0.01, pauses_s=[(1.0, 2.0)])
    as_seen = [visit.time_s for _, visit in seen]
    as_meant = [visit.done_s - meant for meant, visit in seen]
    assert sum(time > 0.1 for time in as_seen) == 1
    assert sum(time > 0.1 for time in as_meant) >= 90
    assert visits.quantile(as_seen, 0.99) < 0.01
    assert visits.quantile(as_meant, 0.99) > 0.9


def test_quantiles_are_nearest_ranks() -> None:
    assert [visits.quantile(list(range(1, 101)), share) for share in (0.0, 0.5, 0.99, 1.0)] == [1, 50, 99, 100]
    assert visits.quantile([7.0], 0.99) == 7
