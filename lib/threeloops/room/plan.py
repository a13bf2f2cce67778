"""Which questions a sitting asks. Every mode is a function from what is known about the reader to a list of
questions; the seed settles the rest.
"""

import datetime as dt
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.drills.engine.drill import seeded
from threeloops.room import preparation, schedule
from threeloops.room.history import History
from threeloops.room.idea import LONGEST_S
from threeloops.room.ideas import IDEAS, Idea, chosen, pose
from threeloops.room.kept import Ask
from threeloops.room.kinds.chains import CHAINS
from threeloops.room.kinds.chains.chain import PREFIX, Chain

MODES = {
    "warm-up": "no clock; a question stays until it is right",
    "sprint": "each question against its own target time; your first sprint is the placement that a plan begins with",
    "mock": "thirty minutes of mixed topics with follow-ups, as in an interview",
    "weak": "what you got wrong, most frequent slips first",
    "today": "what is due, and with an interview date what is new",
}
TIMED = ("sprint", "mock")
SPRINT_QUESTIONS = 10
MOCK_S = 1800.0
CHAINED = 2 / 3  # of a mock's time, at most, goes to chains
SHORTEST_S = 60.0  # what a mock leaves of its time at most
SITTING_QUESTIONS = 20  # most that weak and today ask at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the reader chose."""

    topic: str | None = None
    difficulty: int | None = None
    length: int | None = None  # questions; each mode has its own default

    def __post_init__(self) -> None:
        if self.length is not None:
            checks.count(length=self.length)


def questions(mode: str, wish: Wish, history: History, *, seed: str, now: dt.datetime) -> list[Ask]:
    """The sitting's questions, in order. Empty only for weak and today, when there is nothing."""
    checks.one_of(MODES, mode=mode)
    ideas = chosen(wish.topic, difficulty=wish.difficulty)
    if mode in TIMED and wish.topic is None:
        ideas = [idea for idea in ideas if idea.target_s <= LONGEST_S]
    rng = seeded(seed, mode)
    if mode == "today":
        picked = _today(ideas, history, now)[: wish.length]
    elif mode == "weak":
        picked = _weak(ideas, history)[: wish.length or SITTING_QUESTIONS]
    elif mode == "sprint":
        picked = spread(ideas, rng, wish.length or SPRINT_QUESTIONS)
    elif mode == "mock":
        return _mock(ideas, rng, wish, seed)
    else:
        picked = rng.sample(ideas, len(ideas))[: wish.length or len(ideas)]
    return [
        Ask(idea=idea.key, kind=_kind(idea, rng, mode), seed=f"{seed}-{place}") for place, idea in enumerate(picked)
    ]


def _kind(idea: Idea, rng: random.Random, mode: str) -> str:
    """Mostly the number itself, which is what can be got wrong in a telling way; other kinds for variety where the
    mode is not a repeat.
    """
    others = [kind for kind in idea.ask if kind != "number" and not kind.startswith(PREFIX)]
    if mode == "mock" and "band" in others and rng.random() < 0.5:
        return "band"  # what interviewers ask
    if "number" not in idea.ask or (others and mode in ("sprint", "mock") and rng.random() < 0.3):
        return rng.choice(others)
    return "number"


def _mock(ideas: Sequence[Idea], rng: random.Random, wish: Wish, seed: str) -> list[Ask]:
    """Two or three chains of follow-ups, with single questions of mixed topics before, between and after them."""
    follows = _follows(ideas, rng, wish.length, seed)
    chained = [_steps(chain, seed) for chain in follows]
    used = {idea for chain in follows for idea, _ in chain.kinds}
    singles = [idea for idea in spread(ideas, rng, len(ideas)) if idea.key not in used]
    length = None if wish.length is None else wish.length - sum(map(len, follows))
    single = (
        Ask(idea=idea.key, kind=_kind(idea, rng, "mock"), seed=f"{seed}-{place}") for place, idea in enumerate(singles)
    )
    alone = (
        _filling(single, MOCK_S - sum(map(_allowed_s, itertools.chain(*chained))))
        if length is None
        else list(itertools.islice(single, length))
    )
    asks: list[Ask] = []
    for place, steps in enumerate(chained):
        asks += alone[len(alone) * place // (len(follows) + 1) : len(alone) * (place + 1) // (len(follows) + 1)]
        asks += steps
    return asks + alone[len(alone) * len(follows) // (len(follows) + 1) :]


def _steps(chain: Chain, seed: str) -> list[Ask]:
    return [Ask(idea=idea, kind=kind, seed=seed) for idea, kind in chain.kinds]


def _follows(ideas: Sequence[Idea], rng: random.Random, length: int | None, seed: str) -> list[Chain]:
    """The chains of a mock: such as stay within the topics wished for, and leave room for as many single
    questions.
    """
    keys = {idea.key for idea in ideas}
    fitting = [chain for chain in CHAINS.values() if {idea for idea, _ in chain.kinds} <= keys]
    picked: list[Chain] = []
    for chain in rng.sample(fitting, len(fitting))[: rng.choice((2, 3))]:
        asks = [ask for one in (*picked, chain) for ask in _steps(one, seed)]
        short = sum(map(_allowed_s, asks)) <= CHAINED * MOCK_S if length is None else len(asks) <= length / 2
        if short:
            picked.append(chain)
    return picked


def spread(ideas: Sequence[Idea], rng: random.Random, length: int) -> list[Idea]:
    """One of each topic in turn, so that no ten questions come from one corner; no idea twice before all have
    come.
    """
    piles: dict[str, list[Idea]] = {}
    for idea in rng.sample(list(ideas), len(ideas)):
        piles.setdefault(idea.topic, []).append(idea)
    dealt: list[Idea] = []
    while any(piles.values()) and len(dealt) < length:
        dealt += [pile.pop() for pile in rng.sample([*piles.values()], len(piles)) if pile]
    return dealt[:length]


def _filling(asks: Iterable[Ask], seconds: float) -> list[Ask]:
    """As many as fit into the time by what their clocks allow."""
    picked, left_s = [], seconds
    for ask in asks:
        if left_s < SHORTEST_S:
            break
        allowed_s = _allowed_s(ask)
        if allowed_s <= left_s:
            picked.append(ask)
            left_s -= allowed_s
    return picked


def _allowed_s(ask: Ask) -> float:
    return pose(ask.idea, ask.kind, ask.seed).allowed_s


def _today(ideas: Sequence[Idea], history: History, now: dt.datetime) -> list[Idea]:
    """What is due; towards an interview, what the plan has for this day."""
    if history.interview is None:
        return _due(ideas, history, now)[:SITTING_QUESTIONS]
    day = preparation.days(history, today=now.astimezone().date(), most=1)[0]
    return [IDEAS[key] for key in (*day.repeats, *day.new) if IDEAS[key] in ideas]


def _due(ideas: Sequence[Idea], history: History, now: dt.datetime) -> list[Idea]:
    """What is due by the end of today, longest overdue first."""
    times = preparation.due_times(history, ideas)
    return [IDEAS[key] for key, time in times.items() if time <= schedule.day_end(now)]


def _weak(ideas: Sequence[Idea], history: History) -> list[Idea]:
    """What was got wrong and has not been right twice since; most frequent first. An idea that stumped takes its
    prerequisites with it.
    """
    misses: Counter[str] = Counter()
    streak: Counter[str] = Counter()
    for attempt in history.attempts():
        if attempt.status == "right":
            streak[attempt.idea] += 1
        elif attempt.status in ("wrong", "given-up"):
            misses[attempt.idea] += 1
            streak[attempt.idea] = 0
    open_misses = {key: number for key, number in misses.items() if streak[key] < 2}
    by_key = {idea.key: idea for idea in ideas}
    for key in list(open_misses):
        for needed in by_key[key].prerequisites if key in by_key else ():
            if misses[needed] and streak[needed] < 2:
                open_misses[needed] = max(open_misses.get(needed, 0), open_misses[key])
    return sorted((by_key[key] for key in open_misses if key in by_key), key=lambda idea: -open_misses[idea.key])
