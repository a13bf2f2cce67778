"""Slips in sentences: what each idea's mistakes are told in."""

from threeloops.drills.coding.tasks import TASKS
from threeloops.drills.engine.bank import DRILLS


def stories(idea: str) -> dict[str, str]:
    """Slip -> the sentence that points at it; empty for an idea whose mistakes have none of their own.

    >>> sorted(stories("code-ring-step"))[:2], stories("scenario-slow-loader")
    (['backwards', 'next-piece'], {})
    """
    if idea in DRILLS:
        return {slip.key: slip.story for slip in DRILLS[idea].slips}
    return {slip.key: slip.story for slip in TASKS[idea].changes} if idea in TASKS else {}


def told(idea: str, slip: str) -> str:
    """One slip as a sentence; where there is none, its key in words.

    >>> told("kv-bytes-per-token", "bits-and-bytes")
    'bits and bytes'
    """
    if slip == "unsaid":
        return "points of a good answer left out"
    return stories(idea).get(slip, slip.replace("-", " "))
