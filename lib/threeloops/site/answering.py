"""What a card on a page asks of Python: put a question, judge an answer, hint, show the working. It runs in the
reader's browser; words go in and JSON comes out.

>>> import json
>>> json.loads(pose("kv-bytes-per-token", "home"))["title"]
'What one token leaves behind'
>>> json.loads(judged("kv-bytes-per-token", "home", "12 apples"))["status"]
'unreadable'
"""

import json

from threeloops.drills.engine import answers, bank, prediction
from threeloops.room import question
from threeloops.room.question import HINT_COSTS, Question
from threeloops.units import fmt

# The seed of the questions that stand on the pages before anything is run.
SEED = "home"
# Seeds tried for other numbers: of the drill with the fewest draws, fifteen, so many in a row are the same once in
# 10^23.
TRIES = 20


def put(key: str, seed: str) -> Question:
    """The question of a drill under a seed: the same as in the interview room.

    >>> put("kv-bytes-per-token", "home").seed
    'home'
    """
    return question.number(bank.drill(key), seed)


def pose(key: str, seed: str) -> str:
    """The question as it is read."""
    asked = put(key, seed)
    return json.dumps({"title": asked.title, "text": asked.text, "topic": asked.topic, "target_s": asked.target_s})


def other(key: str, seed: str, fresh: str) -> str:
    """The question under a seed of its own that begins with `fresh` and reads otherwise than the one under `seed`,
    with that seed: some drills have few draws, and other numbers have to be other numbers.
    """
    before = put(key, seed).text
    seeds = [fresh, *(f"{fresh}-{number}" for number in range(TRIES))]
    chosen = next((word for word in seeds if put(key, word).text != before), seeds[-1])
    return json.dumps({"seed": chosen} | json.loads(pose(key, chosen)))


def judged(key: str, seed: str, written: str) -> str:
    """What an answer is worth; when it is right, with the working."""
    asked = put(key, seed)
    verdict = asked.judge(written)
    return json.dumps(
        {
            "status": verdict.status,
            "message": verdict.message,
            "slips": verdict.slips,
            "working": asked.working if verdict.right else "",
        }
    )


def hint(key: str, seed: str, number: int) -> str:
    """A hint, the first being number 0, and what the next one will cost; empty after the last."""
    return json.dumps({"text": put(key, seed).hints[number], "next_cost": next_cost(number)})


def next_cost(number: int) -> str:
    """What the hint after this one costs.

    >>> next_cost(2)
    ''
    """
    return HINT_COSTS[number + 1] if number + 1 < len(HINT_COSTS) else ""


def working(key: str, seed: str) -> str:
    """How the answer comes about."""
    return json.dumps({"text": put(key, seed).working})


def compared(written: str, outcome: str, unit: str, usual: str = "[]") -> str:
    """What is said of a prediction, beside the outcome as the page prints it; one that cannot be read is told why, and
    learns nothing yet. `usual` is what usual mistakes come out at, in the unit, and what somebody who makes them did.

    >>> json.loads(compared("300 ms", "607 ms", "s", '[[0.303, "you counted one way only"]]'))["message"]
    'You said 300 ms; it comes out at 607 ms, 2 times that. It looks as if you counted one way only.'
    """
    try:
        answers.parse(written, like=unit)
    except answers.UnreadableError as refusal:
        said = str(refusal)
        return json.dumps({"status": "unreadable", "message": f"{said[:1].upper()}{said[1:]}."})
    value = outcome_value(outcome, unit)
    said = prediction.verdict(written, value, unit, dict(json.loads(usual))).replace(
        fmt(value, unit), outcome
    )  # its digits, to the last one
    return json.dumps({"status": "right" if said.endswith(prediction.WELL) else "other", "message": said})


def outcome_value(outcome: str, unit: str) -> float:
    """An outcome as it is printed, in its unit.

    >>> outcome_value("39.3 MB (37.5 MiB)", "B")
    39300000.0
    """
    return answers.parse(outcome.partition(" (")[0], like=unit).value


def ready() -> str:
    """Load what reads units, while the reader still reads the question; what the first hint will cost."""
    answers.get_ready()
    return json.dumps({"cost": HINT_COSTS[0]})
