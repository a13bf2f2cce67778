"""What README, CHANGELOG and TEACHING count is counted again here; a count that nothing counts is soon one off."""

import re
from pathlib import Path

import pytest

from threeloops.commands.sources import types
from threeloops.drills.coding.tasks import TASKS
from threeloops.drills.engine.bank import DRILLS, FAMILIES
from threeloops.facts.kernel_times import kernel_times, timed_parts
from threeloops.facts.recorded import shipped
from threeloops.facts.served_points import served_points
from threeloops.models.catalogue import model_keys
from threeloops.room.ideas import IDEAS
from threeloops.room.kinds.cases import CASES
from threeloops.room.kinds.chains import CHAINS
from threeloops.sandbox.walls import PROCESSES, ROOM_BYTES, Limits
from threeloops.training_loop.parallelism.published_steps import not_judged_because, published_steps
from threeloops.units import MB, GiB, million

ROOT = Path(__file__).parents[2]
LIMITS = Limits()
README, CHANGELOG, TEACHING = ("README.md", "CHANGELOG.md", "TEACHING.md")


def kinds() -> set[str]:
    """Kinds of question, of which a chain's and a case's parts are one each."""
    return {kind.partition(":")[0] for idea in IDEAS.values() for kind in idea.ask}


def recorded_on(part: str) -> set[str]:
    return {name for one in shipped() if one.stamp.part == part for name in one.measured}


def timed_calls() -> int:
    return sum(table.rows for part in timed_parts() for table in kernel_times(part).tables)


# (page, its words, what they count)
TOLD = (
    (CHANGELOG, r"([\d,]+) language models, from", len(model_keys())),
    (CHANGELOG, r"([\d,]+) model types are read", len(types().split())),
    (README, r"of ([\d,]+) model types", len(types().split())),
    (CHANGELOG, r"- ([\d,]+) drills in", len(DRILLS)),
    (CHANGELOG, r"drills in ([\d,]+) families", len(FAMILIES)),
    (CHANGELOG, r"\(`book.py drill measured`\): ([\d,]+) ideas", len(FAMILIES["measured"])),
    (CHANGELOG, r"([\d,]+) ideas in \d+ kinds of question", len(IDEAS)),
    (CHANGELOG, r"ideas in ([\d,]+) kinds of question", len(kinds())),
    (CHANGELOG, r"- ([\d,]+) open cases", len(CASES)),
    (CHANGELOG, r"([\d,]+) chains of follow-ups", len(CHAINS)),
    (CHANGELOG, r"gives ([\d,]+) small functions to write", len(TASKS)),
    (CHANGELOG, r"are recorded, ([\d,]+) cases each", len(recorded_on("h100-sxm5"))),
    (CHANGELOG, r"against ([\d,]+) published steps", sum(not not_judged_because(row) for row in published_steps())),
    (README, r"its ([\d,]+) cases on each come with the book", len(recorded_on("h200-sxm"))),
    (README, r"the same for ([\d,]+) training steps", sum(not not_judged_because(row) for row in published_steps())),
    (README, r"the same for ([\d,]+) servers under load", len(served_points())),
    (README, r"On ([\d,]+) served points", len(served_points())),
    (README, r"from ([\d.]+) million kernel calls", round(timed_calls() / million, 1)),
    (TEACHING, r"([\d,]+) s a cell", round(LIMITS.cell_s)),
    (TEACHING, r"([\d,]+) s for each call of a function", round(LIMITS.call_s)),
    (TEACHING, r"([\d,]+) s a notebook", round(LIMITS.total_s)),
    (TEACHING, r"([\d,]+) GiB of address space", LIMITS.memory_bytes // GiB),
    (TEACHING, r"([\d,]+) GiB for all together", LIMITS.total_memory_bytes // GiB),
    (TEACHING, r"([\d,]+) processes, \d+ open files", PROCESSES),
    (TEACHING, r"([\d,]+) open files", LIMITS.files),
    (TEACHING, r"files of ([\d,]+) MB", LIMITS.file_bytes // MB),
    (TEACHING, r"([\d,]+) characters printed in a cell", LIMITS.printed),
    (TEACHING, r"([\d,]+) MB each, which are emptied", ROOM_BYTES // MB),
)


@pytest.mark.parametrize(("page", "words", "counted"), TOLD, ids=[f"{page} {words}" for page, words, _ in TOLD])
def test_what_a_page_counts_is_so_many(page: str, words: str, counted: float) -> None:
    (told,) = re.findall(words, " ".join((ROOT / page).read_text(encoding="utf-8").split()))
    assert told == f"{counted:,}"
