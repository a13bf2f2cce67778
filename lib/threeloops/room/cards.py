"""Ideas as cards: what the history knows of each, as a table; and as a deck for Anki, whose notes carry question,
answer, working and the usual mistakes.
"""

import csv
import datetime as dt
import json
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

from threeloops import contents, units
from threeloops.drills.engine.bank import DRILLS
from threeloops.room import mistakes, schedule
from threeloops.room.attempts import RATED
from threeloops.room.history import History
from threeloops.room.ideas import IDEAS, pose
from threeloops.room.kinds.cases import CASES
from threeloops.room.kinds.chains.chain import PREFIX
from threeloops.room.question import Question, draw_of

COLUMNS = (
    "idea",
    "title",
    "topic",
    "loop",
    "answered",
    "right",
    "slips",
    "last_review",
    "due",
    "stability_days",
    "difficulty",
    "remembered",
)
# Anki tells decks and kinds of note apart by these numbers: a deck that is imported again renews the one before.
DECK, MODEL = 1_893_400_217, 1_893_400_218
SEED = "anki"  # the same numbers every time: a card is one question
FIELDS = ("Question", "Answer", "Working", "Mistakes", "Taught", "Idea")
FRONT = "{{Question}}"
BACK = """{{FrontSide}}<hr id="answer"><p><b>{{Answer}}</b></p>{{Working}}
{{#Mistakes}}<p>Usual mistakes:</p>{{Mistakes}}{{/Mistakes}}<p><small>{{Taught}}</small></p>"""
LOOK = """.card { font-family: sans-serif; font-size: 17px; line-height: 1.45; text-align: left; }
pre { font-size: 0.9em; white-space: pre-wrap; }"""


def table(history: History, path: Path, *, now: dt.datetime) -> int:
    """Write every idea that has a card to a .csv file; how many."""
    if path.suffix != ".csv":
        raise ValueError(f"{path.name} should end in .csv: cards are written as a table")
    attempts, cards = history.attempts(), history.cards()
    slips = _slips(history)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for idea, card in sorted(cards.items()):
            own = [attempt for attempt in attempts if attempt.idea == idea and attempt.status in RATED]
            known, kept = IDEAS.get(idea), json.loads(card)
            writer.writerow(
                [
                    idea,
                    known.title if known else "",
                    known.topic if known else "",
                    known.loop if known else "",
                    len(own),
                    sum(attempt.status == "right" for attempt in own),
                    " ".join(slip for (slipped, slip), _ in slips.most_common() if slipped == idea),
                    str(kept["last_review"] or "")[:10],
                    schedule.due(card, interview=history.interview).astimezone().date().isoformat(),
                    round(kept["stability"] or 0, 2),
                    round(kept["difficulty"] or 0, 2),
                    round(schedule.remembered(card, at=now), 3),
                ]
            )
    return len(cards)


def deck(history: History, path: Path, *, everything: bool) -> int:
    """Write an Anki deck of the ideas that were met, or of all of them; how many notes.

    Raises:   ValueError where there is nothing to write, or genanki is not installed
    """
    try:
        import genanki
    except ImportError:
        raise ValueError(
            "an Anki deck is made by genanki, which comes with the book: `python3 book.py` sets it up; .csv and .json"
            " need nothing"
        ) from None
    met = {attempt.idea for attempt in history.attempts() if attempt.status in RATED}
    keys = [key for key in IDEAS if (everything or key in met) and key not in CASES]  # a conversation is no card
    if not keys:
        raise ValueError("nothing was answered yet, so there is nothing to put on cards; --all takes every question")
    model = genanki.Model(
        MODEL,
        "Three Loops",
        fields=[{"name": name} for name in FIELDS],
        templates=[{"name": "question", "qfmt": FRONT, "afmt": BACK}],
        css=LOOK,
    )
    made, slips = genanki.Deck(DECK, "Three Loops"), _slips(history)
    for key in keys:
        tags = [IDEAS[key].topic, f"loop-{IDEAS[key].loop}"]
        made.add_note(
            genanki.Note(model=model, fields=fields(key, slips), guid=genanki.guid_for("threeloops", key), tags=tags)
        )
    genanki.Package(made).write_to_file(str(path))
    return len(keys)


def fields(key: str, slips: "Counter[tuple[str, str]]") -> list[str]:
    """What a note holds, as HTML, in the order of FIELDS; the reader's own mistakes say how often."""
    kinds = [kind for kind in IDEAS[key].ask if not kind.startswith(PREFIX)]
    question = pose(key, "number" if "number" in kinds else kinds[0], SEED)
    answer, working = _answer(question)
    lines = [
        f"{story} (Yours, {units.counted(slips[key, slip], 'time')}.)" if slips[key, slip] else story
        for slip, story in mistakes.stories(key).items()
    ]
    place = contents.taught_here(question.section, question.loop)[0].partition(";")[0]
    return [
        _block(f"{question.title}\n\n{question.text}"),
        _block(answer),
        _block(working),
        _list(lines),
        escape(f"Taught in {place}."),
        key,
    ]


def _answer(question: Question) -> tuple[str, str]:
    """(the answer, how it comes about): a drill's number, or what the working says before its source."""
    if question.idea in DRILLS:
        drill = DRILLS[question.idea]
        return drill.shown(drill.derive(draw_of(drill, question.seed)).value), question.working
    answer, mark, source = question.working.partition("  Source:")
    return answer.rstrip(), (mark + source).strip()


def _slips(history: History) -> "Counter[tuple[str, str]]":
    """(idea, slip) -> how often it was made."""
    return Counter((attempt.idea, slip) for attempt in history.attempts() for slip in attempt.slips.split(",") if slip)


def _block(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""
