"""The page of the interview room. A script (static/rehearsal.js) lets it be entered."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from threeloops.room.history import NOWHERE, History
from threeloops.room.kinds import code
from threeloops.room.notebook import view
from threeloops.site.parts import Part

WORDS = (
    "Questions with fresh numbers, as an interviewer would ask them: a warm-up without a clock, a sprint against each"
    " question’s own target time, a mock interview of thirty minutes, your weak spots, and what is due today. It is the"
    " room that `python3 book.py drill` opens, run in your browser: the same questions, the same clock, the same"
    " spacing of repeats. What you answer here and on every other page is one history, kept in this browser; *Memory*"
    " takes it to the desk and back. A sitting that you leave goes on where it stood. Functions are written on the page"
    " *Code*."
)
SCRIPTLESS = "The room needs JavaScript; the drill sets can be read without it."
BUSY = "One moment: Python answers in your browser."


def rehearsal(pages: Sequence[Part]) -> str:
    """The page, as markdown."""
    told = {
        "form": _form(),
        "screen": asdict(view.start(History(NOWHERE))) | {"turn": 0},
        "busy": BUSY,
        "taught": [
            [part.place.title, part.place.chapter, part.name, f"{part.page}.html"] for part in pages if part.place
        ],
    }
    kept = json.dumps(told, ensure_ascii=False).replace("</", r"<\/")
    return (
        f"---\nhtml_theme.sidebar_secondary.remove: true\n---\n(page-room)=\n# The interview room\n\n{WORDS}\n\n"
        "## Sit down\n\n```{raw} html\n"
        '<div id="my-room" hidden><p role="status" class="room-wait"></p></div>'
        f"<noscript><p>{SCRIPTLESS}</p></noscript>"
        f'<script type="application/json" id="room-told">{kept}</script>\n```\n'
    )


def _form() -> dict[str, Any]:
    """What can be chosen; functions are asked on a page of their own."""
    form: dict[str, Any] = view.form()
    return {**form, "topics": [one for one in form["topics"] if one[0] != code.TOPIC]}
