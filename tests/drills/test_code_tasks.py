"""Tasks in code: the solution agrees with another way to the answer, and each mistake is one and is named."""

import ast
import doctest

import pytest
from tests.seeds import seeds

from threeloops.drills.coding.tasks import TASKS
from threeloops.drills.engine.code_task import CodeTask, defined
from threeloops.drills.engine.functions import Returned, judge_function, same
from threeloops.room.idea import LONGEST_S

every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


def test_there_are_a_dozen_in_every_loop_of_the_book() -> None:
    assert len(TASKS) >= 12
    assert {task.loop for task in TASKS.values()} == {"inner", "training", "product", "driving"}


@every_task
def test_the_answer_is_got_in_two_ways(task: CodeTask) -> None:
    for seed in seeds(200):
        for p in task.draws(str(seed)):
            assert same(task.target(p), task.count(p)), (seed, vars(p))


@every_task
def test_every_mistake_is_named(task: CodeTask) -> None:
    for seed in seeds(100):
        draws = task.draws(str(seed))
        for slip in task.slips:
            returned = []
            for p in draws:
                try:
                    returned.append(Returned(value=slip.wrong(p)))
                except ArithmeticError:  # in a limit case
                    returned.append(Returned(value=-1.0 if isinstance(task.target(p), float) else ()))
            assert judge_function(task, draws, returned).slips == (slip.key,), (seed, slip.key)


@every_task
def test_a_mistake_changes_the_code_and_its_sentence_does_not_print_the_right_line(task: CodeTask) -> None:
    assert len(task.changes) >= 4
    for change in task.changes:
        for right, wrong in change.pairs:
            assert right in task.body
            assert right != wrong
            assert right not in change.story
        assert task.changed(change) != task.solution


@every_task
def test_the_file_can_be_run_and_its_example_holds_for_the_solution(task: CodeTask) -> None:
    written = defined(task.solution, task.name)
    (example,) = doctest.DocTestFinder().find(written, task.name, globs={task.name: written})
    assert doctest.DocTestRunner(verbose=False).run(example) == (0, 1)
    for seed in ("a", "b"):
        ast.parse(task.starter(seed))
        assert task.solution not in task.starter(seed)
        assert all(len(line) <= 88 for line in task.starter(seed).splitlines())
    assert task.target_s > LONGEST_S  # asked by name: nobody writes code between two numbers


@every_task
def test_the_limit_case_is_told_to_whoever_fails_there_alone(task: CodeTask) -> None:
    draws = task.draws("limit")
    values = [task.target(p) for p in draws]
    last = values[-1]
    wrong = (*last, 7) if isinstance(last, tuple) else float(str(last)) + 1
    verdict = judge_function(task, draws, [Returned(value=value) for value in [*values[:-1], wrong]])
    assert (verdict.status, task.limit_case in verdict.message) == ("limit", True)


def test_a_mistake_to_be_found_differs_from_seed_to_seed() -> None:
    task = TASKS["code-training-loop"]
    assert len({task.shown(str(seed)) for seed in range(40)}) == len(task.changes)


def test_lists_are_compared_item_by_item_and_said_how_they_differ() -> None:
    task = TASKS["code-1f1b-order"]
    draws = task.draws("lists")
    values = [task.target(p) for p in draws]

    def said(*changed: object) -> str:
        return judge_function(task, draws, [Returned(value=value) for value in changed]).message  # type: ignore[arg-type]

    assert "Right on 5" in said(*values)
    assert "another length" in said(*(value[:-1] for value in values))  # type: ignore[index]
    assert "another order" in said(*(value[::-1] for value in values))  # type: ignore[index]
    assert "some of their items differ" in said(*(("F9", *value[1:]) for value in values))  # type: ignore[index,misc]
    assert "returned a number, not a list" in said(*(3.0 for _ in values))
