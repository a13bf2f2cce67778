"""Which question follows on a mistake: another idea in which the same mistake can be made.

Most mistakes belong to one idea. Those below are made all over the field, under different names: bits for bytes, one
layer for all, one rank's share for the sum. A follow-up asks for another number that has the same trap.
"""

import functools
import random
from collections.abc import Collection, Sequence

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Drill, seeded
from threeloops.room import schedule
from threeloops.room.attempts import Ask
from threeloops.room.idea import LONGEST_S
from threeloops.room.ideas import IDEAS

MARK = "~"  # in a seed: behind it stands the mistake that the question follows on
# a trap -> the mistakes that fall into it, by their keys
TRAPS: dict[str, frozenset[str]] = {
    "bits and bytes": frozenset(
        {"bits", "bits-as-bytes", "bits-for-bytes", "bytes-for-bits", "bits-and-bytes", "bytes-as-elements", "elements"}
    ),
    "bytes of an element": frozenset(
        {"one-byte", "sixteen-bit", "four-bytes", "fp32", "thirty-two-bit", "double-precision"}
    ),
    "one for all": frozenset({"one-layer", "one-head", "one-sequence", "one-request", "one-camera", "one-micro-batch"}),
    "one rank for all": frozenset({"one-gpu", "one-rank", "all-ranks", "one-copy", "all-gpus", "one-sm"}),
    "keys and values": frozenset({"keys-or-values", "keys-only", "one-cache", "keys-and-values", "query-heads"}),
    "multiply and add": frozenset({"multiply-adds", "fma-is-one"}),
    "forward and backward": frozenset({"forward-only", "backward-too", "training"}),
    "weights beside the rest": frozenset(
        {"weights-only", "weights-alone", "no-weights", "weights-forgotten", "cache-only", "no-caches", "states-only"}
    ),
    "latency and bandwidth": frozenset({"latency-only", "no-latency", "latency-of-one-trip", "one-message"}),
    "a ratio and its inverse": frozenset({"upside-down", "inverted", "reciprocal", "swapped", "wrong-way"}),
    "means of rates": frozenset({"mean-of-speeds", "mean", "average", "pooled"}),
    "dense and sparse peaks": frozenset({"sparse", "sparse-peak", "brochure", "datasheet"}),
    "both ways of a link": frozenset({"both-directions", "both-ways", "one-way", "there-and-back"}),
    "scales of a format": frozenset({"no-scales", "scales-forgotten", "scale-per-weight"}),
    "minutes and seconds": frozenset({"minutes-and-seconds", "hours-and-seconds", "per-minute", "per-day"}),
    "whole numbers": frozenset({"rounded-down", "not-rounded", "not-rounded-up", "not-rounded-down", "one-copy-short"}),
}


def trap(slip: str) -> frozenset[str]:
    """The mistakes that are of a kind with this one, itself included.

    >>> sorted(trap("fma-is-one")), sorted(trap("whole-vector-each-step"))
    (['fma-is-one', 'multiply-adds'], ['whole-vector-each-step'])
    """
    return next((kinds for kinds in TRAPS.values() if slip in kinds), frozenset({slip}))


@functools.cache
def having(slip: str) -> tuple[str, ...]:
    """The drills in which a mistake of that kind can be made, by key.

    >>> having("fma-is-one")[:2]
    ('attention-tile-intensity', 'soc-peak-from-units')
    """
    kinds = trap(slip)
    return tuple(drill.key for drill in DRILLS.values() if kinds & {one.key for one in drill.slips})


def after_a_miss(asks: list[Ask], position: int, *, slips: Sequence[str], among: Collection[str]) -> list[Ask] | None:
    """The questions of a sitting after the one at a position was missed: another with the same trap at once, and the
    idea itself with fresh numbers, first soon, and once more later. None where nothing is added.
    """
    more = follow_up(asks[position], slips, among=among, planned=asks)
    place = position + 1
    # the follow-up is one of the questions that the repeat waits for
    after = _with_repeat([*asks[:place], more, *asks[place:]] if more else asks, position)
    return after if len(after) > len(asks) else None


def _with_repeat(asks: list[Ask], position: int) -> list[Ask]:
    missed = asks[position]
    before = sum(earlier.idea == missed.idea for earlier in asks[:position])
    if before >= len(schedule.LADDER) or any(later.idea == missed.idea for later in asks[position + 1 :]):
        return asks
    place = min(position + 1 + schedule.LADDER[before], len(asks))
    again = Ask(idea=missed.idea, kind=missed.kind, seed=f"{missed.seed}+{before + 1}")
    return [*asks[:place], again, *asks[place:]]


def follow_up(missed: Ask, slips: Sequence[str], *, among: Collection[str], planned: Sequence[Ask]) -> Ask | None:
    """The question that follows on these mistakes, no harder than the one that was missed; None where there is no other
    idea with such a trap.

    among     keys of the ideas that may be asked
    planned   the whole sitting: nothing in it is asked a second time, and a trap is followed up once

    A follow-up that is missed has no follow-up of its own.
    """
    if followed_slip(missed):
        return None
    asked = {ask.idea for ask in planned} | {missed.idea}
    followed = {followed_slip(ask) for ask in planned}
    hardest = IDEAS[missed.idea].difficulty
    for slip in slips:
        if trap(slip) & followed:
            continue
        fitting = [
            DRILLS[key]
            for key in having(slip)
            if key in among
            and key not in asked
            and IDEAS[key].target_s <= LONGEST_S
            and IDEAS[key].difficulty <= hardest
        ]
        if fitting:
            drill = _nearest(fitting, missed.idea, seeded("follow-up", missed.seed, missed.idea, slip))
            return Ask(idea=drill.key, kind="number", seed=f"{missed.seed}{MARK}{slip}")
    return None


def _nearest(fitting: list[Drill], missed: str, rng: random.Random) -> Drill:
    """One of the same family where there is one, else of the same loop, else any."""
    of = DRILLS.get(missed)
    for same in (
        [one for one in fitting if of and one.family == of.family],
        [x for x in fitting if of and x.loop == of.loop],
    ):
        if same:
            return rng.choice(same)
    return rng.choice(fitting)


def followed_slip(ask: Ask) -> str:
    """The mistake that a question follows on; empty for any other question.

    >>> (
    ...     followed_slip(Ask(idea="busbw", kind="number", seed="a-0~inverted")),
    ...     followed_slip(Ask(idea="busbw", kind="number", seed="a-0")),
    ... )
    ('inverted', '')
    """
    return ask.seed.partition(MARK)[2].partition("+")[0]
