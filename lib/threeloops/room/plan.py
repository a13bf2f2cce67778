"""Which questions a sitting asks. Every mode is a function from what is known about the reader to a list of
questions; the seed settles the rest.
"""

import datetime as dt
import functools
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.drills.engine.drill import seeded
from threeloops.room import conversations, preparation, schedule
from threeloops.room.attempts import Ask
from threeloops.room.history import History
from threeloops.room.idea import LONGEST_S
from threeloops.room.ideas import IDEAS, LOOPS, Idea, chosen, pose
from threeloops.room.kinds import code
from threeloops.room.kinds.cases import CASES
from threeloops.room.kinds.cases.case import PREFIX as STAGE
from threeloops.room.kinds.cases.case import Case
from threeloops.room.kinds.chains.chain import PREFIX as STEP
from threeloops.room.kinds.chains.chain import Chain

MODES = {
    "warm-up": "no clock; a question stays until it is right",
    "sprint": "each question against its own target time; your first sprint is the placement that a plan begins with",
    "mock": "thirty minutes as in an interview: an open case, follow-ups and single questions of mixed topics",
    "weak": "what you got wrong, most frequent slips first",
    "today": "what is due, and with an interview date what is new",
}
TIMED = ("sprint", "mock")
SPRINT_QUESTIONS = 10
TALKED = 0.9  # of a mock's time, at most, goes to conversations
SHORTEST_S = 60.0  # what a mock leaves of its time at most
SITTING_QUESTIONS = 20  # most that weak and today ask at once
IN_ORDER = (STEP, STAGE)  # how the kinds begin that are asked as part of a conversation only


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the reader chose."""

    topic: str | None = None
    difficulty: int | None = None
    length: int | None = None  # questions; each mode has its own default
    track: str = preparation.EVERYTHING  # what the interview is for; a topic asked for by name comes before it
    tasks: bool = True  # whether tasks in code may be asked, which are files

    def __post_init__(self) -> None:
        checks.one_of(preparation.TRACKS, track=self.track)
        if self.length is not None:
            checks.count(length=self.length)

    @property
    def words(self) -> str:
        """What is asked about."""
        return self.topic or ("all topics" if self.track == preparation.EVERYTHING else f"track {self.track}")


def questions(mode: str, wish: Wish, history: History, *, seed: str, now: dt.datetime) -> list[Ask]:
    """The sitting's questions, in order. Empty only for weak and today, when there is nothing."""
    checks.one_of(MODES, mode=mode)
    ideas = chosen(wish.topic, difficulty=wish.difficulty)
    if wish.topic is None:
        ideas = [idea for idea in ideas if idea.loop in preparation.TRACKS[wish.track]]
    if not wish.tasks:
        ideas = [idea for idea in ideas if idea.topic != code.TOPIC]
    rng = seeded(seed, mode)
    if mode == "mock":
        return _mock(ideas, rng, wish, seed, history.planned(mode))
    ideas = [idea for idea in ideas if idea.target_s <= LONGEST_S or _named(idea, wish)]
    limit = wish.length
    if mode == "today":
        picked = _today(ideas, history, now)
    elif mode == "weak":
        picked, limit = _weak(ideas, history), wish.length or SITTING_QUESTIONS
    elif mode == "sprint":
        limit = wish.length or SPRINT_QUESTIONS
        picked = spread(ideas, rng, limit)
    else:
        picked = rng.sample(ideas, len(ideas))
    return _laid_out(picked, rng, mode, seed, limit)


def offered(options: Mapping[str, object]) -> list[Idea]:
    """The ideas that a sitting with these options may ask: of its topic, or of its track."""
    topic, track = options.get("topic"), str(options.get("track") or preparation.EVERYTHING)
    try:
        ideas = chosen(None if topic is None else str(topic))
    except ValueError:  # a topic of another edition
        return []
    return ideas if topic else [idea for idea in ideas if idea.loop in preparation.TRACKS.get(track, LOOPS)]


def _named(idea: Idea, wish: Wish) -> bool:
    """Whether it was asked for by name."""
    return wish.topic in (idea.topic, idea.key)


def _laid_out(picked: Sequence[Idea], rng: random.Random, mode: str, seed: str, limit: int | None) -> list[Ask]:
    """These ideas as questions, as many as there may be; a case is all of its stages, or left out."""
    asks: list[Ask] = []
    for place, idea in enumerate(picked):
        case = CASES.get(idea.key)
        more = _stages(case, f"{seed}-{place}") if case else [_single(idea, rng, mode, f"{seed}-{place}")]
        if limit is not None and asks and len(asks) + len(more) > limit:
            break
        asks += more
    return asks


def _stages(talk: Case | Chain, seed: str) -> list[Ask]:
    return [Ask(idea=idea, kind=kind, seed=seed) for idea, kind in talk.kinds]


def _single(idea: Idea, rng: random.Random, mode: str, seed: str) -> Ask:
    return Ask(idea=idea.key, kind=_kind(idea, rng, mode), seed=seed)


def _kind(idea: Idea, rng: random.Random, mode: str) -> str:
    """Mostly the number itself, which is what can be got wrong in a telling way; other kinds for variety where the
    mode is not a repeat.
    """
    others = [kind for kind in idea.ask if kind != "number" and not kind.startswith(IN_ORDER)]
    if mode == "mock" and "band" in others and rng.random() < 0.5:
        return "band"  # what interviewers ask
    if "number" not in idea.ask or (others and mode in ("sprint", "mock") and rng.random() < 0.3):
        return rng.choice(others)
    return "number"


def _mock(
    ideas: Sequence[Idea], rng: random.Random, wish: Wish, seed: str, earlier: Sequence[Sequence[Ask]]
) -> list[Ask]:
    """A case and chains of follow-ups, with single questions of mixed topics before, between and after them; three
    mocks in a row do not repeat, and each asks of two loops at least where its ideas are of several.
    """
    keys = {idea.key for idea in ideas}
    if wish.topic is None and wish.difficulty is None:
        conversations.enough(keys, track=wish.track)
    talks = conversations.pick(
        keys,
        rng,
        own=preparation.TRACKS[wish.track][0] if wish.topic is None and wish.track != preparation.EVERYTHING else "",
        fits=lambda talks: _fit(talks, seed, wish.length),
        earlier=earlier,
    )
    asked = [_stages(talk, seed) for talk in talks]
    used = {ask.idea for stages in asked for ask in stages}
    met = conversations.met_lately(earlier)
    long = {idea.key for idea in ideas if idea.target_s > LONGEST_S and (idea.key in CASES or not _named(idea, wish))}
    singles = [idea for idea in spread(ideas, rng, len(ideas)) if idea.key not in used | long]
    loops = {IDEAS[key].loop for key in used}  # where all talk is of one loop, the rest comes from others
    singles.sort(key=lambda idea: (idea.key in met, len(loops) == 1 and idea.loop in loops))
    single = (_single(idea, rng, "mock", f"{seed}-{place}") for place, idea in enumerate(singles))
    alone = (
        _filling(single, preparation.MOCK_S - sum(map(_allowed_s, itertools.chain(*asked))))
        if wish.length is None
        else list(itertools.islice(single, wish.length - sum(map(len, asked))))
    )
    ends = [
        -(-len(alone) * place // (len(asked) + 1)) for place in range(len(asked) + 2)
    ]  # rounded up: some come first
    asks = alone[: ends[1]]
    for place, stages in enumerate(asked, 1):
        asks += stages + alone[ends[place] : ends[place + 1]]
    return asks


def _fit(talks: Sequence[Case | Chain], seed: str, length: int | None) -> bool:
    """Whether these conversations leave room for single questions."""
    asks = list(itertools.chain(*(_stages(talk, seed) for talk in talks)))
    if length is not None:
        return len(asks) <= length / 2
    room_s = TALKED * preparation.MOCK_S
    if sum(talk.target_s for talk in talks) > room_s:
        return False  # without putting every question to see how long it is: a mock has to begin at once
    return sum(map(_allowed_s, asks)) <= room_s


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


@functools.lru_cache(maxsize=1024)  # of one plan: a conversation is tried beside many others
def _allowed_s(ask: Ask) -> float:
    return pose(ask.idea, ask.kind, ask.seed).allowed_s


def _today(ideas: Sequence[Idea], history: History, now: dt.datetime) -> list[Idea]:
    """What is due; towards an interview, what the plan has for this day."""
    if history.interview is None:
        return _due(ideas, history, now)[:SITTING_QUESTIONS]
    day = preparation.days(history, today=now.astimezone().date(), most=1)[0]
    in_order = (*day.new, *day.repeats) if day.last else (*day.repeats, *day.new)
    return [IDEAS[key] for key in in_order if IDEAS[key] in ideas]


def nothing(mode: str, history: History, now: dt.datetime) -> str:
    """Why a sitting has nothing to ask, and what else there is."""
    if mode == "today" and preparation.days(history, today=now.astimezone().date(), most=1)[0].mock:
        return "today's plan is a mock interview; `python3 book.py drill --mode mock` holds it"
    why = {"today": "nothing is due today", "weak": "nothing of this is among your mistakes"}[mode]
    return f"{why}; a sprint asks ten mixed questions"


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
