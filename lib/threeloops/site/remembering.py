"""What the pages remember: attempts of the same form as the interview room's, so that one goes on at the other. The
browser keeps them; what follows from them is worked out by the room's own history, in memory.

Words go in and JSON comes out, as in answering.
"""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

from threeloops import units, wall_clock
from threeloops.drills.coding.tasks import TASKS
from threeloops.drills.engine.bank import DRILLS
from threeloops.room import mistakes, moving, progress, schedule
from threeloops.room.attempts import RATED, Attempt
from threeloops.room.clock import GAP_S
from threeloops.room.history import NOWHERE, History
from threeloops.room.ideas import IDEAS
from threeloops.room.kinds import code
from threeloops.site import answering

MOST_WRITTEN = 500  # characters of an answer that are kept: of code, the beginning


def attempt(
    key: str,
    seed: str,
    written: str,
    status: str,
    slips: str,
    seconds: float,
    hints: int,
    session: str,
    position: int,
    at_s: float,
) -> str:
    """One question of a page, judged, in the form in which it is kept.

    >>> kept = json.loads(attempt("kv-latent", "home", "1 GB", "right", "", 20, 0, "a", 0, 1e9))
    >>> kept["topic"], kept["kind"], kept["status"]
    ('kv_cache', 'number', 'right')
    """
    idea = IDEAS[key]
    allowed_s = answering.put(key, seed).allowed_s if key in DRILLS else float(idea.target_s)
    away = seconds > allowed_s + GAP_S  # nobody sat there
    return json.dumps(
        asdict(
            Attempt(
                session=session,
                position=int(position),
                idea=key,
                topic=idea.topic,
                kind="number" if key in DRILLS else code.KIND,
                seed=seed,
                written=written[:MOST_WRITTEN],
                status="interrupted" if away else status,
                slips=slips if status == "wrong" and not away else "",
                seconds=round(float(seconds), 2),
                target_s=allowed_s,  # reading is given on top, as in the room
                extra=1.0,
                hints=int(hints),
                at_s=float(at_s),
            )
        )
    )


def report(attempts: str) -> str:
    """How the reader is doing by topic, and what is due when.

    >>> json.loads(report("[]"))
    {'topics': [], 'due': []}
    """
    history = _history(attempts)
    now = wall_clock.now()
    topics = [
        {"topic": topic.topic, "right": round(topic.right, 1), "answered": topic.answered, "readiness": topic.readiness}
        for topic in progress.progress(history, now=now).topics
    ]
    due = [
        {
            "idea": idea,
            "title": IDEAS[idea].title if idea in IDEAS else idea,
            "date": schedule.due(card, interview=None).date().isoformat(),
            "now": schedule.due(card, interview=None) <= schedule.day_end(now),
            "page": _page(idea),
        }
        for idea, card in history.cards().items()
    ]
    return json.dumps({"topics": topics, "due": sorted(due, key=lambda one: (one["date"], one["title"]))})


def summary(attempts: str, asked: str) -> str:
    """How the questions of a set went when each was answered last, with the mistakes that were named.

    >>> json.loads(summary("[]", '["kv-latent", "kv-bytes-per-token"]'))["said"]
    'You have not answered any of these questions yet.'
    """
    keys = json.loads(asked)
    latest = {one.idea: one for one in _history(attempts).attempts() if one.idea in keys and one.status in RATED}
    right = [one for one in latest.values() if one.status == "right"]
    if not latest:
        return json.dumps({"said": "You have not answered any of these questions yet.", "missed": []})
    opened = len(keys) - len(latest)
    missed = [
        {"idea": key, "title": IDEAS[key].title, "told": _missed(latest[key])}
        for key in keys
        if key in latest and latest[key] not in right
    ]
    said = f"Your first answer was right in {len(right)} of {units.counted(len(latest), 'question')}."
    said += f" {units.counted(opened, 'question')} {'is' if opened == 1 else 'are'} not answered yet." if opened else ""
    return json.dumps({"said": f"{said}{' Look again at:' if missed else ''}", "missed": missed})


def _missed(one: Attempt) -> str:
    slips = [mistakes.told(one.idea, slip) for slip in one.slips.split(",") if slip]
    return " Perhaps also: ".join(slips) or ("given up" if one.status == "given-up" else "none of the usual mistakes")


def _page(idea: str) -> str:
    """Where an idea is asked on the pages: by itself, or in the room.

    >>> _page("code-sectors"), _page("kv-latent"), _page("scenario-slow-loader")
    ('code.html#code-sectors', 'practise.html?drill=kv-latent', 'room.html?mode=today')
    """
    if idea in DRILLS:
        return f"practise.html?drill={idea}"
    return f"code.html#{idea}" if idea in TASKS else "room.html?mode=today"


def exported(attempts: str) -> str:
    """The attempts as the room writes them, to go on at the desk.

    >>> taken_in("mine.json", json.loads(exported("[]")))
    '[]'
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attempts.json"
        moving.export(_history(attempts), path)
        return json.dumps(path.read_text(encoding="utf-8"))


def taken_in(name: str, content: str) -> str:
    """The attempts in a file that the pages or the room have written.

    Raises:   ValueError, naming the file and the row, for any other
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).name
        try:
            path.write_text(content, encoding="utf-8", newline="")
            return json.dumps([asdict(one) for one in moving.read(path)])
        except ValueError as error:
            raise ValueError(str(error).replace(f"{folder}/", "")) from None


def _history(attempts: str) -> History:
    history = History(NOWHERE)
    history.add([Attempt(**one) for one in json.loads(attempts)])
    return history
