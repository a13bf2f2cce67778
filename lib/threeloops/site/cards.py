"""A drill as a card on a page: the question with the reader's own numbers at home, as it is read without a script; and
its working, folded, where the book shows it.
"""

import html

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.posed import HOME_COURSE, HOME_STUDENT, posed


def quick_check(key: str) -> str:
    """A question between the paragraphs of a part, its working folded."""
    drill = DRILLS[key]
    p = posed(drill, course=HOME_COURSE, student=HOME_STUDENT)
    working = html.escape(drill.working(p))
    return _card(
        key,
        f"<details><summary>The working</summary><pre>{working}</pre></details>",
        said=f"Quick check: {drill.title}",
    )


def graded(key: str) -> str:
    """A question of a drill set. Its answer is nowhere on the page."""
    return _card(key, "", said=DRILLS[key].title)


def _card(key: str, below: str, *, said: str) -> str:
    drill = DRILLS[key]
    question = drill.ask(posed(drill, course=HOME_COURSE, student=HOME_STUDENT))
    paragraphs = "".join(f"<p>{html.escape(line)}</p>" for line in question.splitlines() if line.strip())
    return (
        f'<section class="drill" data-drill="{key}" aria-label="{html.escape(said)}">'
        f'<p class="drill-title">{html.escape(said)}</p>'
        f'<div class="drill-question">{paragraphs}</div>{below}</section>'
    )
