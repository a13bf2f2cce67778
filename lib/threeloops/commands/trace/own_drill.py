"""A drill with the reader's own numbers: what a repair of the first suspect brings at most, predicted before the page
says it. `threeloops trace` and `threeloops log` pose it; Amdahl's law judges.

>>> from threeloops.inner_loop.profiled.trace_suspects import Suspect
>>> one = Suspect(illness="hidden syncs", of="a pause", share=0.2, because="20.0 % of the time", at_most=1.25)
>>> pose([one], ask=lambda question: "1.25")
First suspect: hidden syncs. 20.0 % of the time.
You said 1.25; it comes out at 1.25. Well predicted.
<BLANKLINE>
"""

from collections.abc import Callable, Sequence
from typing import Protocol

QUESTION = "If all that a repair can take away were gone, how many times as fast would it be at most? "


class _Suspected(Protocol):
    @property
    def illness(self) -> str: ...
    @property
    def because(self) -> str: ...
    @property
    def at_most(self) -> float | None: ...


def refuse_for_scripts(*, drill: bool, json: bool, html: str | None = None) -> None:
    """Raises ValueError where a question is to be asked and no reader is there, two forms are asked for, or a page
    has no name.
    """
    if html is not None and not html.strip():
        raise ValueError(f"--html {html!r} names no file; give the page a name, like page.html")
    if html and json:
        raise ValueError("--html writes a page to read, and --json is for a script; leave one of them out")
    if drill and json:
        raise ValueError("--drill asks you a question, and --json is for a script; leave one of them out")


def pose(suspects: Sequence[_Suspected], *, ask: Callable[[str], str] = input) -> None:
    """Ask for the limit of the first suspect that has one, and hold the answer against it."""
    from threeloops.commands.trace.told_page import TELLING
    from threeloops.drills.engine.prediction import SKIP, verdict

    one = next((suspect for suspect in suspects if suspect.at_most and suspect.at_most <= TELLING), None)
    if one is None:
        print("No drill: no suspect of this file has a limit that could be predicted.\n")
        return
    ordinal = "First suspect" if one is suspects[0] else "The first suspect with a limit"
    print(f"{ordinal}: {one.illness}. {one.because[0].upper()}{one.because[1:]}.")
    try:
        said = ask(QUESTION).strip().lower().removesuffix("times").rstrip(" x×")
    except EOFError:
        said = ""
    print(f"{verdict(said or SKIP, round(one.at_most or 0.0, 2), '')}\n")
