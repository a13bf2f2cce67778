"""What a page needs to judge a plain answer to a question as it stands there, with the numbers of answering.SEED: the
answer, what each slip makes of it, the working. A file a family, fetched with the first touch.

static/judging.js says right, and names a slip; what is neither, and what counts things, is left to Python.
"""

import json
from pathlib import Path
from typing import Any

from threeloops.drills.engine.bank import FAMILIES
from threeloops.drills.engine.drill import Drill
from threeloops.drills.engine.judge import TO_THE_DIGIT
from threeloops.room.clock import GAP_S
from threeloops.room.question import draw_of
from threeloops.site.answering import SEED, put

FOLDER = "judged"  # below the static files


def write(into: Path) -> None:
    """Write the file of every family."""
    into.mkdir(parents=True)
    for family, drills in FAMILIES.items():
        told = {drill.key: as_data(drill) for drill in drills if not drill.whole}
        (into / f"{family}.json").write_text(
            json.dumps(told, ensure_ascii=False, separators=(",", ":")), encoding="utf-8"
        )


def as_data(drill: Drill) -> dict[str, Any]:
    """A question as data; slips that have to be met to the digit come first.

    >>> from threeloops.drills.engine.bank import DRILLS
    >>> as_data(DRILLS["kv-bytes-per-token"])["slips"][0][:3]
    ['query-heads', 103488.0, 0.02]
    """
    p = draw_of(drill, SEED)
    asked = put(drill.key, SEED)
    near = [[slip.key, float(slip.wrong(p)), TO_THE_DIGIT, slip.story] for slip in drill.near]
    named = [[slip.key, float(slip.wrong(p)), drill.tolerance, slip.story] for slip in drill.slips]
    return {
        "value": float(drill.derive(p).value),
        "unit": drill.unit,
        "tolerance": drill.tolerance,
        "near": near,
        "slips": named,
        "working": asked.working,
        "example": drill.example(drill.prompt(p)),
        "topic": asked.topic,
        "target_s": asked.allowed_s,
        "gap_s": GAP_S,
    }
