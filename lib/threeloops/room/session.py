"""One sitting in the interview room: which question stands, what an answer does, what comes next. The terminal and
the widget only show it.
"""

import contextlib
import functools
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from threeloops import contents, wall_clock
from threeloops.drills.engine.judge import Verdict
from threeloops.room import ideas, plan, preparation
from threeloops.room.after import following
from threeloops.room.after import sure as confidence
from threeloops.room.attempts import Ask, Attempt, tally
from threeloops.room.clock import QuestionClock
from threeloops.room.history import History, HistoryError
from threeloops.room.plan import Wish
from threeloops.room.question import HINT_COSTS, Question

REPEATING = ("warm-up", "weak", "today")  # modes in which a missed idea comes back within the sitting
TRIES = 20  # seeds tried for another question of the same drill; the one with the fewest draws has fifteen


@functools.cache
def _places(section: str, loop: str) -> tuple[str, str]:
    return contents.taught_here(section, loop)


def place_taught(question: Question) -> tuple[str, str]:
    """Where the book teaches a question: in words, and as the reader's notebook of that part, below my/."""
    return _places(question.section, question.loop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What to tell the reader after an answer."""

    verdict: Verdict
    seconds: float
    done: bool  # the question is over; `next` brings another
    lines: tuple[str, ...]  # what follows the verdict: time against target, the working


def _own_marks(verdict: Verdict) -> bool:
    """Whether somebody marked their own answer and left points out: asked again, only a lie would bring more."""
    return bool(verdict.slips) and all(slip.startswith("unsaid:") for slip in verdict.slips)


class Session:
    """A sitting. `question` is what stands; `answer`, `hint`, `give_up` and `skip` act on it; `next` goes on."""

    def __init__(
        self,
        history: History,
        name: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = wall_clock.now_s,
    ) -> None:
        record = history.session(name)
        self.history, self.name, self.mode = history, name, record.mode
        self.plan = list(record.plan)
        self.extra = float(str(record.options.get("extra", 1.0)))
        self.asks_sure = bool(record.options.get("sure"))  # how sure an answer is, before each verdict
        self._among = {idea.key for idea in plan.offered(record.options)}
        self._monotonic, self._wall = monotonic, wall
        self._started_s = record.started_s
        self.position = self._next_place()
        self.right, self.asked = history.score(name)
        self._put()

    @classmethod
    def begin(
        cls,
        history: History,
        mode: str,
        wish: Wish,
        *,
        extra: float = 1.0,
        seed: str | None = None,
        other_than: str = "",
        sure: bool = False,
    ) -> "Session":
        """A new sitting; a single question reads otherwise than `other_than`, where its draws allow.

        Raises: ValueError in words for the reader, when there is nothing to ask
        """
        now = wall_clock.now()
        asks = plan.questions(mode, wish, history, seed=seed or secrets.token_hex(3), now=now)
        for _ in range(TRIES):
            if (
                not other_than
                or len(asks) != 1
                or ideas.pose(asks[0].idea, asks[0].kind, asks[0].seed).text != other_than
            ):
                break
            asks = plan.questions(mode, wish, history, seed=secrets.token_hex(3), now=now)
        if not asks:
            raise ValueError(plan.nothing(mode, history, now))
        options: dict[str, object] = {"extra": extra, "topic": wish.topic, "track": wish.track}
        if sure:
            options["sure"] = True
        return cls(history, history.begin(mode, options, asks))

    # --- what stands -----------------------------------------------------------------------------

    def _put(self) -> None:
        """Put the question at this position, its clock running since it was first shown."""
        self.hints, self.trouble = 0, ""
        self._settled: Attempt | None = None
        self.question: Question | None = None
        if self.position >= len(self.plan) or self.time_is_up:
            with contextlib.suppress(HistoryError):  # it ends all the same; the file hears of it another time
                self.history.end(self.name)
            return
        ask = self.plan[self.position]
        self.question = ideas.pose(ask.idea, ask.kind, ask.seed)
        try:
            shown_s = self.history.shown(self.name, self.position)
        except HistoryError:  # said when an answer cannot be written; nobody need stop before that
            shown_s = self._wall()
        self.clock = QuestionClock(
            target_s=self.question.allowed_s,
            extra=self.extra,
            started_wall_s=shown_s,
            monotonic=self._monotonic,
            wall=self._wall,
        )

    def _next_place(self) -> int:
        """The first question without an attempt that this edition has; the plan's length when there is none."""
        answered = self.history.answered(self.name)
        places = (place for place, ask in enumerate(self.plan) if place not in answered and ideas.known(ask))
        return next(places, len(self.plan))

    @property
    def score(self) -> str:
        """What was right of what was answered, and what was not answered."""
        left = self.history.statuses(self.name)
        unanswered = "".join(
            f", {left[status]} {words}"
            for status, words in (("given-up", "given up"), ("skipped", "skipped"))
            if left[status]
        )
        return f"{tally(self.right)} right of {self.asked}{unanswered}."

    @property
    def timed(self) -> bool:
        return self.mode in plan.TIMED

    @property
    def over(self) -> bool:
        return self.question is None

    @property
    def time_is_up(self) -> bool:
        """A mock interview ends after its thirty minutes (and the extra time), between two questions."""
        return self.mode == "mock" and self._wall() - self._started_s > preparation.MOCK_S * self.extra

    # --- what the reader does --------------------------------------------------------------------

    def answer(self, written: str, *, ask_sure: Callable[[], float | None] = lambda: None) -> Reply:
        """Judge an answer. The first readable one is what counts; without a clock the question then stands until it
        is right. How sure it is stands behind it (`@80`), or is what `ask_sure` brings, before the verdict.
        """
        # before judging: loading what reads units takes none of the reader's time
        question, seconds = self._standing(), self.clock.elapsed_s
        try:
            answered, sure = (written, None) if question.starter else confidence.stated(written)
            verdict = question.judge(answered)
        except ValueError as error:
            verdict = Verdict(status="unreadable", message=f"{str(error)[:1].upper()}{str(error)[1:]}.")
        if verdict.status == "unreadable":  # asked again, held against nobody
            return Reply(verdict=verdict, seconds=seconds, done=False, lines=())
        if self._settled is None and self.clock.interrupted:
            return self._interrupted(verdict)
        lines = []
        if self._settled is None:
            sure = ask_sure() if sure is None else sure
            if not self._settle("right" if verdict.right else "wrong", answered, verdict, seconds, sure):
                lines.append(
                    "This question was already answered in another window; that answer is the one that counts."
                )
            lines += self._time_said(seconds) if self.timed or question.starter else []
            lines += [said for said in (self.trouble, confidence.told(sure, right=verdict.right)) if said]
        done = verdict.right or self.timed or _own_marks(verdict)
        return Reply(
            verdict=verdict,
            seconds=seconds,
            done=done,
            lines=(*lines, *([question.working, self.taught] if done else [])),
        )

    def _interrupted(self, verdict: Verdict) -> Reply:
        why, seconds = self.clock.interrupted, self.clock.elapsed_s
        self._settle("interrupted", "", verdict, seconds)
        return Reply(verdict=verdict, seconds=seconds, done=True, lines=(why, self._standing().working, self.taught))

    def hint_cost(self) -> str:
        """What the next hint costs; empty when there is none left."""
        return HINT_COSTS[self.hints] if self.hints < len(HINT_COSTS) else ""

    def hint(self) -> str:
        """The next hint."""
        if self.hints >= len(HINT_COSTS):
            return "There is no fourth hint; `give up` shows the working."
        self.hints += 1
        return self._standing().hints[self.hints - 1]

    def give_up(self) -> str:
        """The working and where it is taught; the idea counts as not known."""
        question = self._standing()
        if self._settled is None:
            self._settle("given-up", "", Verdict(status="given-up", message=""), self.clock.elapsed_s)
        return "\n".join(filter(None, (question.unmarked, question.working, self.taught)))

    @property
    def taught(self) -> str:
        """Where the book teaches what was asked, in words."""
        return f"  Taught in {place_taught(self._standing())[0]}."

    def skip(self) -> None:
        """On to the next, nothing learnt about this one."""
        if self._settled is None:
            self._settle("skipped", "", Verdict(status="skipped", message=""), self.clock.elapsed_s)

    def next(self) -> Question | None:
        """The next question, or None when the sitting is over."""
        if self._settled is None and self.question is not None:
            raise ValueError("this question stands unanswered; answer it, give it up or skip it")
        self.plan = list(self.history.session(self.name).plan)  # another window may have sent an idea back into it
        self.position = self._next_place()
        self._put()
        return self.question

    # --- what is kept ----------------------------------------------------------------------------

    def _standing(self) -> Question:
        if self.question is None:
            raise ValueError("this sitting is over; begin another")
        return self.question

    def _settle(self, status: str, written: str, verdict: Verdict, seconds: float, sure: float | None = None) -> bool:
        question = self._standing()
        self._settled = Attempt(
            session=self.name,
            position=self.position,
            idea=question.idea,
            topic=question.topic,
            kind=question.kind,
            seed=question.seed,
            written=written[:500],
            status=status,
            slips=",".join(verdict.slips) if status == "wrong" else "",
            share=verdict.share if status == "wrong" else 0.0,
            sure=sure,
            seconds=round(seconds, 2),
            target_s=question.allowed_s,
            extra=self.extra,
            hints=self.hints,
            at_s=self._wall(),
        )
        if status in ("right", "wrong"):
            self.asked, self.right = self.asked + 1, self.right + self._settled.points
        try:
            return self.history.record(self._settled, self._with_more(status, verdict.slips))
        except HistoryError as error:  # the answer waits in memory and is written with the next one
            self.trouble = f"{error}. Your answer is not lost: it is written with the next one, or when you stop."
            return True

    def _with_more(self, status: str, slips: tuple[str, ...]) -> list[Ask] | None:
        """The plan with what a miss brings into it; None where it stays as it is."""
        missed = status in ("wrong", "given-up") or (status == "right" and self.hints >= 2)
        if not missed or self.mode not in REPEATING or self.plan[self.position].kind.startswith(plan.IN_ORDER):
            return None
        return following.after_a_miss(self.plan, self.position, slips=slips, among=self._among)

    @property
    def follows(self) -> str:
        """The mistake that the standing question follows on; empty where it follows on none."""
        return "" if self.over else following.followed_slip(self.plan[self.position])

    def _time_said(self, seconds: float) -> list[str]:
        allowed = self.clock.allowed_s
        extra = f" (extra time {self.extra:g}×)" if self.extra != 1 else ""
        return [
            f"{seconds:.0f} s of {allowed:.0f} s{extra}{'' if seconds <= allowed else ': too slow for an interview'}."
        ]
