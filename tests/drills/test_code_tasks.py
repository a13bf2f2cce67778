"""Tasks in code: the solution agrees with another way to the answer, and each mistake is one and is named."""

import ast
import doctest
import random
from typing import Any

import pytest
from tests.seeds import seeds

from threeloops.drills.coding.tasks import TASKS
from threeloops.drills.engine.code_task import CodeTask, defined
from threeloops.drills.engine.drill import drawn
from threeloops.drills.engine.functions import Returned, judge_function, same
from threeloops.drills.engine.kernel_task import KernelTask
from threeloops.drills.engine.schedule_task import ScheduleTask, vectors
from threeloops.room.idea import LONGEST_S
from threeloops.simulate.inner_loop.benches.bundles import run

every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


SOUGHT = ("code-bpe", "code-thread-safe-batcher")


def some(task: CodeTask, most: int) -> list[int]:
    """Seeds to try a task on: few of a kernel, which a simulator runs lane by lane, and of what takes long to draw."""
    return seeds(most)[:: 40 if isinstance(task, KernelTask) else 5 if task.key in SOUGHT else 1]


def test_there_are_many_and_some_in_every_loop_of_the_book() -> None:
    assert len(TASKS) >= 27
    assert {task.loop for task in TASKS.values()} == {"inner", "training", "product", "driving"}


@every_task
def test_the_answer_is_got_in_two_ways(task: CodeTask) -> None:
    for seed in some(task, 200):
        for p in task.draws(str(seed)):
            assert same(task.target(p), task.count(p)), (seed, vars(p))


@every_task
def test_every_mistake_is_named(task: CodeTask) -> None:
    for seed in some(task, 100):
        draws = task.draws(str(seed))
        assert task.verdict(draws, [task.ran(task.solution, p) for p in draws]).right
        for change in task.changes:
            returned = []
            for p in draws:
                try:
                    returned.append(task.ran(task.changed(change), p))
                except ArithmeticError:  # in a limit case
                    returned.append(Returned(value=-1.0 if isinstance(task.target(p), float) else ()))
            assert task.verdict(draws, returned).slips == (change.key,), (seed, change.key)


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
    (example,) = doctest.DocTestFinder().find(written, task.name, globs=written.__globals__)  # type: ignore[attr-defined]
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


@pytest.mark.parametrize("vectors_asked", [1, 3, 5, 24])
def test_the_schedule_as_given_is_right_and_takes_what_the_task_says(vectors_asked: int) -> None:
    task = TASKS["code-vliw-schedule"]
    assert isinstance(task, ScheduleTask)
    n = vectors_asked
    p = drawn(**vectors(random.Random(n), n))
    cycles = []
    for source in (task.head + task.gap, task.solution):
        program = task.ran(source, p).value
        ran = run([[str(word) for word in bundle] for bundle in program], x=p.x, constants=vars(p))  # type: ignore[union-attr]
        assert tuple(one for place in range(n) for one in ran.y[place]) == task.count(p)
        cycles.append(ran.cycles)
    assert cycles == [15 * n, 2 * n + 9 if n >= 5 else n + 14]
    assert cycles[1] == task.bound(n), "the bound is reached"
    draws = task.draws("as given")
    given = task.verdict(draws, [task.ran(task.head + task.gap, q) for q in draws])
    assert (given.slips, "no program takes fewer than" in given.message) == (("waits",), True)
    reached = task.verdict(draws, [task.ran(task.solution, q) for q in draws])
    assert "the bound, reached" in reached.message


KERNEL = "code-gpu-transpose"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (("refused", "index 7 of x"), "asks what the machine refuses: index 7 of x"),
        (((1, 2), (0,) * 11, (("x", "many"),)), "that the machine does not give"),
        (((1, 2), (0,), ()), "that the machine does not give"),
        (3.0, "that the machine does not give"),
    ],
)
def test_what_no_machine_gives_is_one_sentence(value: Any, told: str) -> None:
    task = TASKS[KERNEL]
    draws = task.draws("a")
    verdict = task.verdict(draws, [Returned(value=value)] * len(draws))
    assert (verdict.status, told in verdict.message) == ("failed", True), verdict.message


@pytest.mark.parametrize("value", [(3.0,), (("load v0 x 0", ""),), 7.0, "load v0 x 0"])
def test_what_is_no_program_is_one_sentence(value: Any) -> None:
    task = TASKS["code-vliw-schedule"]
    draws = task.draws("a")
    verdict = task.verdict(draws, [Returned(value=value)] * len(draws))
    assert (verdict.status, verdict.right) == ("failed", False), verdict.message
