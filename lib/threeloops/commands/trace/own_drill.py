"""A drill with the reader's own numbers: what a repair of a suspect brings at most, predicted before the page says it.
`threeloops trace` and `threeloops log` pose it, of the first suspect or of another; Amdahl's law judges. A suspect that
has no limit is asked about with another number of the file's.

>>> from threeloops.inner_loop.profiled.trace_suspects import Suspect
>>> one = Suspect(illness="hidden syncs", of="a pause", share=0.2, because="20.0 % of the time", at_most=1.25)
>>> pose([one], ask=lambda asked: "1.25")
First suspect: hidden syncs. 20.0 % of the time.
You said 1.25; it comes out at 1.25. Well predicted.
<BLANKLINE>
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from threeloops.units import GB, fmt_bytes

ORDINALS = ("First suspect", "Second", "Third")
TELLING = 100  # times as fast: a limit above this says only that there was next to nothing else
LEAK = "memory leak"
OF_LIMIT = "If all that a repair can take away were gone, how many times as fast would it be at most? "
OF_HALF = "If it took half as long, how many times as fast would the whole be? "
CARD_BYTES = 80 * GB
OF_LEAK = f"If {fmt_bytes(CARD_BYTES, base=10)} were free at the start, how many steps would fit? "


class Question(NamedTuple):
    """What is asked of a suspect, its answer, and what the page says that it is about."""

    asked: str
    value: float
    unit: str
    about: str


class _Suspected(Protocol):
    @property
    def illness(self) -> str: ...
    @property
    def because(self) -> str: ...
    @property
    def share(self) -> float | None: ...
    @property
    def at_most(self) -> float | None: ...


Asks = Callable[[_Suspected], Question | None]


def of_half(one: _Suspected) -> Question | None:
    """For a share of the time that sets no limit worth asking for: Amdahl's law with a factor of 2.

    >>> from threeloops.inner_loop.profiled.trace_suspects import Suspect
    >>> one = Suspect(illness="kernels of unknown kind", of="kernels", share=0.992, because="", at_most=125.0)
    >>> of_half(one).value
    1.98
    """
    from threeloops.inner_loop.scaling import amdahl_speedup

    if not one.share:
        return None
    faster = amdahl_speedup(accelerated_share=min(one.share, 1.0), factor=2)
    return Question(OF_HALF, round(faster, 2), "", "what half of it would bring")


def question_of(one: _Suspected, *, growth_bytes: float | None = None, otherwise: Asks = of_half) -> Question | None:
    """The limit; of a leak, which costs no time until it ends the job, the step at which it does, by the growth of a
    step; else what `otherwise` asks.
    """
    if one.at_most and one.at_most <= TELLING:
        return Question(OF_LIMIT, round(one.at_most, 2), "", "for this limit before the page says it")
    if one.illness == LEAK and growth_bytes:
        return Question(OF_LEAK, float(int(CARD_BYTES / growth_bytes)), "", "when memory is full")
    return otherwise(one)


def add_drill(command: Any) -> None:
    """Add the option."""
    command.add_argument(
        "--drill", nargs="?", type=_place, const=1, metavar="1|2|3",
        help="first ask you what a repair of the first suspect brings at most; --drill 2, of the second",
    )  # fmt: skip


def _place(said: str) -> int:
    """Which suspect.

    >>> _place("2")
    2
    """
    if said not in ("1", "2", "3"):
        what = f"{said!r} is no suspect's number: 1, 2 or 3; a file's name stands before: threeloops trace FILE --drill"
        raise argparse.ArgumentTypeError(what)
    return int(said)


def refuse_for_scripts(*, drill: int | None, json: bool, html: str | None = None) -> None:
    """Raises ValueError where a question is to be asked and no reader is there, two forms are asked for, or a page
    has no name.
    """
    if html is not None and not html.strip():
        raise ValueError(f"--html {html!r} names no file; give the page a name, like page.html")
    if html and json:
        raise ValueError("--html writes a page to read, and --json is for a script; leave one of them out")
    if drill and json:
        raise ValueError("--drill asks you a question, and --json is for a script; leave one of them out")


def pose(
    suspects: Sequence[_Suspected], *, place: int = 1, asks: Asks = question_of, ask: Callable[[str], str] = input
) -> None:
    """Ask of the suspect at `place`, counted from 1, and hold the answer against the file's; where the first is asked
    for and no question is known, of the next one that has one.
    """
    from threeloops.drills.engine.prediction import SKIP, verdict

    shown = list(zip(ORDINALS, suspects, strict=False))
    wanted = shown if place == 1 else shown[place - 1 : place]
    posed = [(*named, found) for named in wanted if (found := asks(named[1]))]
    if not posed:
        print(f"No drill: {_why_none(shown, place)}.\n")
        return
    ordinal, one, question = posed[0]
    print(f"{ordinal}: {one.illness}. {one.because[0].upper()}{one.because[1:]}.")
    try:
        said = ask(question.asked).strip().lower().removesuffix("times").removesuffix("steps").rstrip(" x×")
    except EOFError:
        said = ""
    print(f"{verdict(said or SKIP, question.value, question.unit)}\n")


def _why_none(shown: Sequence[tuple[str, _Suspected]], place: int) -> str:
    if place > len(shown):
        return f"this file has {len(shown) or 'no'} suspect{'s' * (len(shown) != 1)}, and --drill {place} asks for more"
    return f"this file has no number to ask for of {shown[place - 1][1].illness}, its suspect {place}"
