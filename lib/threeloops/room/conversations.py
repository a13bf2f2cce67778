"""The conversations of a mock interview: an open case, and chains of follow-ups; not those of the last mocks, and not
all about one loop.
"""

import random
from collections.abc import Callable, Collection, Sequence

from threeloops import units
from threeloops.room.attempts import Ask
from threeloops.room.kinds.cases import CASES
from threeloops.room.kinds.cases.case import Case
from threeloops.room.kinds.chains import CHAINS
from threeloops.room.kinds.chains.chain import Chain

FEWEST_CASES, FEWEST_CHAINS = 1, 2  # that a track needs for a mock
FRESH = 20  # mocks after which a conversation is as good as new


def pick(
    keys: Collection[str],
    rng: random.Random,
    *,
    fits: Callable[[Sequence[Case | Chain]], bool],
    earlier: Sequence[Sequence[Ask]],
    own: str = "",
) -> list[Case | Chain]:
    """A case and one or two chains, or chains alone, from these ideas, as far as they fit. `earlier` are the mocks
    before, the latest first; `own` is the loop that the case must be about.
    """
    cases, chains = _of(keys)
    cases = [case for case in cases if case.loop == own or not own]
    most = rng.choice((2, 3))
    picked: list[Case | Chain] = []
    for pool, number in ((cases, 1 if chains else most), (chains, most)):
        left: list[Case | Chain] = rng.sample(pool, len(pool))
        while left and len(picked) < number:
            talk = min(left, key=lambda one: _staleness(one, picked, earlier))
            left.remove(talk)
            if fits([*picked, talk]):
                picked.append(talk)
    return picked


def _of(keys: Collection[str]) -> tuple[list[Case], list[Chain]]:
    """The cases and chains that ask of nothing else; a case that was asked for by name asks what it asks."""
    cases = [case for case in CASES.values() if case.key in keys and (len(keys) == 1 or _within(case, keys))]
    return cases, [chain for chain in CHAINS.values() if _within(chain, keys)]


def _within(talk: Case | Chain, keys: Collection[str]) -> bool:
    return {idea for idea, _ in talk.kinds} <= set(keys)


def enough(keys: Collection[str], *, track: str) -> None:
    """Refuse a track of which no mock can be made.

    Raises:   ValueError, in words for the reader
    """
    cases, chains = _of(keys)
    if len(cases) < FEWEST_CASES or len(chains) < FEWEST_CHAINS:
        raise ValueError(
            f"the track {track} has {units.counted(len(cases), 'open case')} and"
            f" {units.counted(len(chains), 'chain')} of follow-ups, and a mock takes {FEWEST_CASES} and"
            f" {FEWEST_CHAINS}; choose another track, or `--mode sprint`"
        )


def _staleness(talk: Case | Chain, picked: Sequence[Case | Chain], earlier: Sequence[Sequence[Ask]]) -> tuple[int, ...]:
    """What speaks against a conversation, in order: asked lately, of a loop that has its turn, ideas met lately."""
    kinds = {kind for _, kind in talk.kinds}
    since = next((ago for ago, asks in enumerate(earlier) if kinds & {ask.kind for ask in asks}), FRESH)
    met = met_lately(earlier) | {idea for other in picked for idea, _ in other.kinds}
    return (
        -min(since, FRESH),
        int(talk.loop in [other.loop for other in picked]),
        len(met & {idea for idea, _ in talk.kinds}),
    )


def met_lately(earlier: Sequence[Sequence[Ask]]) -> set[str]:
    """The ideas of the last two mocks: a third in a row should have others."""
    return {ask.idea for asks in earlier[:2] for ask in asks}
