"""Reliability: how often a large run stops, what each stop costs, and how often it should therefore be saved.

Times between failures are exponential: a system that has run for a day is as likely to fail in the next minute as one
that has just been started.

>>> system = system_mtbf_s(part_mtbf_s=10 * 365.25 * 86400, num_parts=10_000)
>>> round(system / 3600, 2), round(young_interval_s(save_s=30, mtbf_s=system) / 60, 1)
(8.77, 22.9)

Source: Young, CACM 17(9), 1974, doi:10.1145/361147.361115; Daly, Future Generation Computer Systems 22(3), 2006,
        doi:10.1016/j.future.2004.11.016
"""

import math

from threeloops import checks
from threeloops.foundations import waiting

BISECTIONS = 200  # halvings of an interval of length 1: far below the spacing of floats


def system_mtbf_s(*, part_mtbf_s: float, num_parts: int) -> float:
    """Mean seconds between failures of a system that stops when any one of its equal parts does.

    Formula:  part_mtbf_s / num_parts
    Assumes:  parts fail independently at a constant rate (no infant mortality, no wear), and each failure stops the
              whole
    Source:   rates of independent Poisson processes add up; Feller, An Introduction to Probability Theory and Its
              Applications, volume 2, 1971, section I.3
    Counted:  drills.reliability.failures.SYSTEM

    >>> system_mtbf_s(part_mtbf_s=1000.0, num_parts=8)
    125.0
    """
    checks.positive(part_mtbf_s=part_mtbf_s)
    checks.count(num_parts=num_parts)
    return part_mtbf_s / num_parts


def part_mtbf_s(*, observed_s: float, num_parts: int, failures: int) -> float:
    """Mean seconds between failures of one part, from how often a system of them stopped.

    Formula:  observed_s * num_parts / failures
    Assumes:  every stop is charged to one of these parts, whatever its cause (software and network included)
    Counted:  drills.reliability.failures.LARGER

    >>> round(
    ...     part_mtbf_s(observed_s=54 * 86400, num_parts=16_384, failures=419) / 86400 / 365.25, 1
    ... )  # Llama 3 405B, in years
    5.8
    """
    checks.positive(observed_s=observed_s)
    checks.count(num_parts=num_parts, failures=failures)
    return observed_s * num_parts / failures


def event_probability(*, mean_between_s: float, seconds: float) -> float:
    """The chance that at least one event falls into these seconds, when they come at a constant rate.

    Formula:  1 - exp(-seconds / mean_between_s)
    Counted:  tests.training_loop.test_reliability.test_as_many_runs_see_an_event_as_the_chance_says

    >>> round(event_probability(mean_between_s=10.0, seconds=10.0), 3)
    0.632
    """
    checks.positive(mean_between_s=mean_between_s)
    checks.non_negative(seconds=seconds)
    return -math.expm1(-seconds / mean_between_s)


def young_interval_s(*, save_s: float, mtbf_s: float) -> float:
    """Seconds of work between two saves at which saving and repeating lost work cost the same, and together least:
    the first-order rule.

    Formula:  sqrt(2 * save_s * mtbf_s)
    Units:    save_s is what one save adds to the run (for an asynchronous one its stall, not its write)
    Assumes:  save_s is much shorter than mtbf_s
    Source:   Young, CACM 17(9), 1974, doi:10.1145/361147.361115
    Counted:  drills.reliability.saves.YOUNG

    >>> young_interval_s(save_s=5.0, mtbf_s=1440.0)
    120.0
    """
    checks.positive(save_s=save_s, mtbf_s=mtbf_s)
    return math.sqrt(2 * save_s * mtbf_s)


def daly_interval_s(*, save_s: float, mtbf_s: float) -> float:
    """Seconds of work between two saves that cost least, to a higher order than Young's.

    Formula:  sqrt(2dM) * (1 + sqrt(d / 2M) / 3 + (d / 2M) / 9) - d for d < 2M, else M;  d = save_s, M = mtbf_s
    Source:   Daly, 2006, doi:10.1016/j.future.2004.11.016, equation 37
    Counted:  tests.training_loop.test_reliability.test_dalys_published_intervals

    >>> [
    ...     round(daly_interval_s(save_s=5, mtbf_s=minutes)) for minutes in (24 * 60, 6 * 60, 15)
    ... ]  # the paper's figures 3 to 5: 117, 57, 9.1
    [117, 57, 9]
    """
    checks.positive(save_s=save_s, mtbf_s=mtbf_s)
    ratio = save_s / (2 * mtbf_s)
    if ratio >= 1:
        return mtbf_s
    return math.sqrt(2 * save_s * mtbf_s) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - save_s


def best_interval_s(*, save_s: float, mtbf_s: float) -> float:
    """Seconds of work between two saves that cost least, exactly: neither detection nor restart has a part in it.

    Formula:  M * (1 + W0(-exp(-d / M - 1))), W0 the main branch of Lambert's function: the u in (0, 1) with ln(1 - u)
              + u + d / M = 0, times M
    Assumes:  exponential times between failures; a save that a failure interrupts is worth nothing
    Source:   Daly, 2006, doi:10.1016/j.future.2004.11.016 (the exact minimum that equation 37 approximates)
    Counted:  tests.training_loop.test_reliability.test_the_best_interval_is_where_goodput_is_highest

    >>> round(best_interval_s(save_s=5, mtbf_s=15), 2)
    9.17
    """
    checks.positive(save_s=save_s, mtbf_s=mtbf_s)
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if middle < 1 and math.log1p(-middle) + middle + save_s / mtbf_s > 0:
            low = middle
        else:
            high = middle
    return mtbf_s * low


def recovery_s(*, mtbf_s: float, detect_s: float, restart_s: float) -> float:
    """Mean seconds from a failure until the run works again.

    Formula:  exp(restart_s / mtbf_s) * (mtbf_s + detect_s) - mtbf_s
    Units:    detect_s until the hang is noticed (a collective hangs until its time-out); restart_s until the last save
              is loaded and steps run again
    Assumes:  a restart can itself fail, and then has to be noticed and begun anew; nothing more fails while a failure
              waits to be noticed
    Counted:  simulate.training_loop.failing_run.play

    >>> round(
    ...     recovery_s(mtbf_s=1e6, detect_s=600, restart_s=300), 1
    ... )  # far below the time between failures: simply the sum
    900.2
    """
    checks.positive(mtbf_s=mtbf_s)
    checks.non_negative(detect_s=detect_s, restart_s=restart_s)
    return math.exp(restart_s / mtbf_s) * (mtbf_s + detect_s) - mtbf_s


def training_goodput(
    *, interval_s: float, stall_s: float, write_s: float, mtbf_s: float, detect_s: float, restart_s: float
) -> float:
    """The share of wall time that becomes steps which are kept, for a run that is saved after every `interval_s` of
    work.

    Formula:  interval / (exp(write / M) * (M + recovery) * (exp((interval + stall) / M) - 1)), M = mtbf_s
    Units:    stall_s is how long training stands still for a save; write_s how long the save is then written behind
              the training's back, and counts only once that is done. A plain (synchronous) save is all stall and
              write_s = 0
    Assumes:  exponential times between failures; after a failure, work begins again from the last finished save; a
              restart may fail (recovery_s); writing does not slow down training
    Raises:   ValueError if a save is still being written when the next is due
    Source:   for write_s = 0 and detect_s = 0, Daly, 2006, doi:10.1016/j.future.2004.11.016, section 3
    Counted:  simulate.training_loop.failing_run.play

    >>> round(training_goodput(interval_s=3600, stall_s=60, write_s=0, mtbf_s=6 * 3600, detect_s=600, restart_s=300), 3)
    0.866
    """
    checks.positive(interval_s=interval_s)
    checks.non_negative(stall_s=stall_s, write_s=write_s)
    if write_s > interval_s:
        raise ValueError(
            f"write_s={write_s!r} must be at most interval_s={interval_s!r}: a save must be on disk before the next one"
            " begins"
        )
    failed = mtbf_s + recovery_s(mtbf_s=mtbf_s, detect_s=detect_s, restart_s=restart_s)
    return interval_s / (math.exp(write_s / mtbf_s) * failed * math.expm1((interval_s + stall_s) / mtbf_s))


def lost_per_failure_s(*, interval_s: float, detect_s: float, restart_s: float) -> float:
    """Mean seconds that one failure costs: work done twice, and the time in which nothing is done.

    Formula:  interval_s / 2 + detect_s + restart_s
    Assumes:  failures at any moment of the interval alike, and rarely more than one in it: the first order of
              training_goodput
    Counted:  drills.reliability.losses.LOST

    >>> lost_per_failure_s(interval_s=1800.0, detect_s=300.0, restart_s=240.0)
    1440.0
    """
    checks.positive(interval_s=interval_s)
    checks.non_negative(detect_s=detect_s, restart_s=restart_s)
    return interval_s / 2 + detect_s + restart_s


def sharded_save_s(*, num_parameters: float, state_bytes: float, nodes: int, write_bytes_per_s: float) -> float:
    """Seconds in which so many nodes write the state that a run goes on from, equal shares at the same time.

    Formula:  num_parameters * state_bytes / (nodes * write_bytes_per_s)
    Units:    state_bytes per parameter, without gradients, which the next step makes anew: 14 for 16-bit weights, an
              fp32 master copy and two fp32 moments; write_bytes_per_s of one node
    Assumes:  every value is written once; storage takes what all nodes send
    Raises:   ValueError for what is not positive
    Source:   Rajbhandari et al., ZeRO, 2019, arXiv:1910.02054, section 3.1 (the states of a parameter)
    Counted:  simulate.training_loop.failing_run.play

    >>> sharded_save_s(num_parameters=70e9, state_bytes=14, nodes=35, write_bytes_per_s=2e9)
    14.0
    """
    checks.positive(num_parameters=num_parameters, state_bytes=state_bytes, write_bytes_per_s=write_bytes_per_s)
    checks.count(nodes=nodes)
    return num_parameters * state_bytes / (nodes * write_bytes_per_s)


def saving_share(*, interval_s: float, save_s: float) -> float:
    """The share of the time that saves take, in a run that stands still for each of them and does not fail.

    Formula:  save_s / (interval_s + save_s)
    Units:    interval_s is the training between two saves
    Raises:   ValueError for an interval that is not positive, or a negative save
    Counted:  simulate.training_loop.failing_run.play

    >>> saving_share(interval_s=570.0, save_s=30.0)
    0.05
    """
    checks.positive(interval_s=interval_s)
    checks.non_negative(save_s=save_s)
    return save_s / (interval_s + save_s)


def first_order_goodput(*, interval_s: float, save_s: float, mtbf_s: float, detect_s: float, restart_s: float) -> float:
    """The share of wall time that becomes steps which are kept, by what an average failure costs; training_goodput is
    exact.

    Formula:  (1 - (period / 2 + detect_s + restart_s) / mtbf_s) * interval_s / period, period = interval_s + save_s
    Units:    mtbf_s from one failure to the next, recovery included; save_s is how long training stands still for
              a save
    Assumes:  a failure destroys half a period on average: periods much shorter than mtbf_s
    Raises:   ValueError where a failure costs more time than there is between two
    Source:   Daly, 2006, doi:10.1016/j.future.2004.11.016, section 2 (first-order model)
    Counted:  tests.training_loop.test_reliability.test_first_order_goodput_is_kept_where_every_second_is_alike

    >>> round(first_order_goodput(interval_s=3600, save_s=60, mtbf_s=6 * 3600, detect_s=600, restart_s=300), 3)
    0.859
    """
    checks.positive(mtbf_s=mtbf_s)
    lost_s = lost_per_failure_s(interval_s=interval_s + save_s, detect_s=detect_s, restart_s=restart_s)
    if lost_s > mtbf_s:
        raise ValueError(f"mtbf_s={mtbf_s!r} must be at least the {lost_s:g} s that a failure costs on average")
    return (1 - lost_s / mtbf_s) * (1 - saving_share(interval_s=interval_s, save_s=save_s))


def spare_wait_share(*, failures_per_s: float, repair_s: float, spares: int) -> float:
    """The share of time that a run stands still because more nodes are being repaired than it has spares.

    Formula:  Erlang's B (foundations.waiting.blocked_share) for spares + 1 places and a load of failures_per_s *
              repair_s
    Assumes:  failures come at a constant rate while the run has all its nodes and not while it waits; any
              distribution of repair times with that mean
    Source:   Erlang, 1917; Kleinrock, Queueing Systems, volume 1, 1975, section 3.6 (M/G/c/c)
    Counted:  simulate.training_loop.failing_run.play

    >>> [round(spare_wait_share(failures_per_s=1 / 3, repair_s=24, spares=spares), 3) for spares in (0, 8, 16)]
    [0.889, 0.173, 0.002]
    """
    checks.positive(failures_per_s=failures_per_s, repair_s=repair_s)
    checks.count(at_least=0, spares=spares)
    return waiting.blocked_share(offered_load=failures_per_s * repair_s, servers=spares + 1)


def spares_needed(*, failures_per_s: float, repair_s: float, wait_share: float) -> int:
    """The fewest spare nodes with which a run stands still for at most this share of the time.

    >>> spares_needed(failures_per_s=1 / 3, repair_s=24, wait_share=0.01)  # eight are in repair on average
    14
    """
    checks.positive(wait_share=wait_share)
    checks.fraction(wait_share=wait_share)
    spares = 0
    while spare_wait_share(failures_per_s=failures_per_s, repair_s=repair_s, spares=spares) > wait_share:
        spares += 1
    return spares
