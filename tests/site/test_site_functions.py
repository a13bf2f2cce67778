"""Functions written in the page: the verdict is that of the desk, what never ends is ended, and nothing is lost."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.classroom.submissions import SETS, solution
from tests.seeds import todays
from tests.site.conftest import ROOT, Page, Visit, until
from tests.site.test_site_cards import said
from tests.site.test_site_memory import told
from threeloops.drills.coding.tasks import TASKS
from threeloops.drills.engine.code_task import CodeTask
from threeloops.drills.engine.function_bank import FUNCTIONS
from threeloops.room.kinds import code
from threeloops.site import drill_sets, functions
from threeloops.site.answering import SEED
from threeloops.site.parts import text

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
TRY = """async calls => {
  const said = [];
  for (const [name, ...words] of calls) said.push(await threeloops.yours.attempt(name, ...words));
  return said;
}"""
RING = TASKS["code-ring-step"]
BROKEN = ("", "def f(:", "x = 1\n", "raise SystemExit\n")


def here(key: str, name: str, seed: str, written: str) -> dict[str, Any]:
    return dict(json.loads(functions.tried(key, name, seed, written, lambda sentence, seconds: None)))


def solved() -> dict[str, tuple[str, str]]:
    """Function of a set -> its name, and how the solution writes it."""
    found = {}
    for name in SETS:
        cells = solution(name)["cells"]
        for cell, judge in itertools.pairwise(cells):
            if match := drill_sets.TRIED.search(text(judge)):
                found[match["key"]] = (match["name"], text(cell))
    return found


def mistaken(task: CodeTask) -> list[str]:
    """Files with a mistake in them, and files that do not come through."""
    return [*map(task.changed, task.changes), task.starter(SEED), *BROKEN, f"{task.head}    return 1 / 0\n"]


def test_every_function_of_the_sets_is_asked_for_and_its_solution_is_right(pages: dict[str, Page]) -> None:
    shown = "".join(pages[f"drills/{path.stem}.html"].source for path in drill_sets.paths(ROOT))
    answers = solved()
    assert set(answers) <= set(FUNCTIONS)
    assert len(answers) > 50
    for key, (name, written) in answers.items():
        assert f'data-function="{key}" data-name="{name}"' in shown
        assert here(key, name, SEED, written)["status"] == "right", key
        stub = written.partition("### BEGIN SOLUTION")[0]
        assert here(key, name, SEED, f"{stub}    pass\n")["status"] in ("unanswered", "unreadable"), key


def test_a_function_that_takes_other_arguments_is_told_which() -> None:
    verdict = here("kv-paged-blocks", "reserved_bytes", SEED, "def reserved_bytes(tokens):\n    return 1\n")
    assert verdict["message"].startswith("It must take these arguments by name: block, tokens,")


@pytest.mark.parametrize("written", [RING.solution, RING.changed(RING.changes[0]), *BROKEN])
def test_the_desk_says_the_same(written: str) -> None:
    verdict = code.judged(RING, SEED, written)
    there = here(RING.key, RING.name, SEED, written)
    assert (there["status"], there["message"], tuple(there["slips"])) == (
        verdict.status,
        verdict.message,
        verdict.slips,
    )


def test_every_task_has_its_card_and_gives_its_solution_nowhere(pages: dict[str, Page]) -> None:
    for task in TASKS.values():
        assert f'id="{task.key}"' in pages["code.html"].source
        assert task.body not in pages["code.html"].source


def test_a_function_is_written_tried_stopped_and_found_again(visit: Callable[..., Visit]) -> None:
    page = visit("code.html").page
    card = page.locator(f"#{RING.key}")
    endless = f"{RING.head}    while True:\n        pass\n"
    for written, start in (
        (RING.changed(RING.changes[0]), RING.changes[0].story),
        (endless, "On one draw it took longer than 6 s. It was stopped, and Python starts again;"),
        (RING.solution, "Right on 5 fresh draws"),
    ):
        card.get_by_role("textbox").fill(written)
        card.get_by_role("button", name="Try it").click()
        said(card, start)
        assert card.get_by_role("textbox").input_value() == written
    assert RING.brief.splitlines()[-1] in card.locator("pre").inner_text()
    until(page, "async () => (await threeloops.all()).length")
    (kept,) = page.evaluate("threeloops.all()")
    assert (kept["idea"], kept["kind"], kept["status"]) == (RING.key, "code", "wrong"), "the first that came through"
    every_verdict_is_that_of_python(page)
    page.reload()
    said(card, "As you left it.")
    assert card.get_by_role("textbox").input_value() == RING.solution
    the_memory_deletes_what_was_written(page)


def every_verdict_is_that_of_python(page: Any) -> None:
    answers = solved()
    calls = [
        ("functions.tried", task.key, task.name, SEED, written)
        for task in todays(list(TASKS.values()), shares=4)
        for written in (task.solution, *mistaken(task))
    ] + [("functions.tried", key, answers[key][0], SEED, answers[key][1]) for key in todays(sorted(answers))]
    there = page.evaluate(TRY, calls)
    assert there == [here(*words) for _, *words in calls]


def the_memory_deletes_what_was_written(page: Any) -> None:
    page.goto("memory.html")
    told(page, "1 attempt in this browser, and 1 prediction or function.")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete everything").click()
    told(page, "Everything is deleted.")
    assert page.evaluate("threeloops.written()") == []


def test_a_new_line_begins_below_the_one_before(visit: Callable[..., Visit]) -> None:
    field = visit("drills/kv_cache.html").page.locator("[data-function=kv-paged-blocks]").get_by_role("textbox")
    field.fill("def f(n):")
    field.press("Enter")
    field.press_sequentially("if n:")
    field.press("Enter")
    field.press_sequentially("return 1")
    field.press("Enter")
    assert field.input_value() == "def f(n):\n    if n:\n        return 1\n        "
