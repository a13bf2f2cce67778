"""Open cases: asked in stages with the same numbers; estimates are right where their drill is and name its mistakes;
the choice is the one that trying every change gives; what is said is marked by whoever said it.
"""

import datetime as dt
import math
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.room.test_chains import named_wrongly, unsaid
from tests.seeds import seeds

from threeloops import wall_clock
from threeloops.drills.engine.answers_in_text import held
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.catalogued import part
from threeloops.room import ideas
from threeloops.room.attempts import Ask
from threeloops.room.history import History
from threeloops.room.kinds.cases import CASES
from threeloops.room.kinds.cases.case import TOPIC, Case, Talk, brief, marked, put
from threeloops.room.kinds.chains.chain import Step
from threeloops.room.letters import LETTERS
from threeloops.room.plan import IN_ORDER, LONGEST_S, Wish, questions
from threeloops.room.preparation import MOCK_S
from threeloops.room.progress import progress
from threeloops.room.session import Session

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history.sqlite3")


def test_there_are_thirteen_and_every_loop_has_two() -> None:
    assert len(CASES) == 13
    assert min(Counter(case.loop for case in CASES.values()).values()) >= 2
    assert {case.loop for case in CASES.values()} == set(ideas.LOOPS)


@every_case
def test_its_stages_come_in_order_and_each_is_made_again_from_idea_kind_and_seed(case: Case) -> None:
    names = [name for name, _ in case.stages]
    assert list(dict.fromkeys(names)) == ["requirements", "estimate", "design", "trade-off", "follow-up"]
    assert names.count("estimate") >= 3
    assert names.count("follow-up") >= 2
    for number, (idea, kind) in enumerate(case.kinds, 1):
        asked, again = put(case, number, "k"), ideas.pose(idea, kind, "k")
        assert (again.text, again.idea, again.kind) == (asked.text, idea, kind)
        assert f"{number} of {len(case)}" in asked.title
    assert case.target_s == sum(put(case, number, "k").target_s for number in range(1, len(case) + 1))
    assert LONGEST_S < case.target_s <= 0.6 * MOCK_S  # a mock has room for a chain beside it


@every_case
def test_an_estimate_is_right_where_its_drill_is_and_every_mistake_in_it_is_named(case: Case) -> None:
    for seed in map(str, seeds(8)):
        p = brief(case, seed)
        for number, (_, stage) in enumerate(case.stages, 1):
            if isinstance(stage, Step):
                assert named_wrongly(stage, p, put(case, number, seed)) == [], (seed, number)
                q, drill = stage.numbers(p), DRILLS[stage.drill]
                value = drill.derive(q).value
                text = stage.text(p) if stage.text else drill.prompt(q)
                assert not held(text, value, unit=drill.unit, tolerance=drill.tolerance), (seed, text)
                assert unsaid(stage, p) == [], (seed, stage.text and stage.text(p))


@every_case
def test_the_choice_is_what_trying_every_change_gives_and_not_always_the_same(case: Case) -> None:
    number = 1 + [name for name, _ in case.stages].index("trade-off")
    best, right = case.trade_off, Counter[str]()
    drill = DRILLS[best.drill]
    for seed in map(str, range(40)):
        p = brief(case, seed)
        after = {change.key: drill.derive(change.numbers(p)).value for change in best.changes}
        first = (max if best.more else min)(after, key=lambda key: after[key])
        asked = put(case, number, seed)
        (letter,) = [letter for letter in LETTERS[: len(after)] if asked.judge(letter).right]
        text = next(change.text(p) for change in best.changes if change.key == first)
        assert f"  {letter}  {text}\n" in asked.text
        assert all(drill.shown(value) in asked.working for value in after.values())
        assert all(line in asked.working for line in case.price)
        right[first] += 1
    assert len(right) >= 2
    assert len({change.key for change in best.changes}) == len(best.changes) >= 3


@every_case
def test_the_points_appear_after_the_talk_and_the_model_answer_has_this_draws_figures(case: Case) -> None:
    for talk, name in ((case.requirements, "requirements"), (case.design, "design")):
        assert isinstance(talk, Talk)
        number = 1 + [stage for stage, _ in case.stages].index(name)
        asked = put(case, number, "1")
        assert len(talk.points) >= 5
        assert not any(point in asked.text for point in talk.points)
        shown = asked.judge("I would begin with the load.")
        assert shown.status == "unreadable"  # asked again, held against nobody: the points to mark by
        assert all(point in shown.message and point in asked.unmarked for point in talk.points)
        letters = LETTERS[: len(talk.points)]
        assert asked.judge("all").right
        assert asked.judge(" ".join(letters[:-1]).lower()).right
        assert not asked.judge("none").right
        assert asked.judge("A").slips == tuple(f"unsaid:{letter}" for letter in letters[1:])
    p = brief(case, "1")
    told = case.design.model(p)
    figures = [DRILLS[step.drill] for step in case.estimates]
    assert sum(
        drill.shown(drill.derive(step.numbers(p)).value) in told
        or f"{drill.derive(step.numbers(p)).value * 100:.3g}" in told  # a share, said in percent
        for drill, step in zip(figures, case.estimates, strict=True)
    ) >= min(3, len(figures))


def test_the_replicas_of_a_model_answer_carry_its_prefill_and_its_decoding() -> None:
    """Each request's prefill alone, and its tokens' share of a full replica's steps, with the headroom left free."""
    case = CASES["case-serve-70b"]
    for seed in map(str, seeds(40)):
        p = brief(case, seed)
        told = re.search(r"with the same share free, (\d+) replicas", case.design.model(p))
        assert told
        prefill_s = 2 * p.parameters * p.prompt / (p.peak * p.utilisation)
        step_s = DRILLS["decode-tensor-parallel-step"].derive(case.trade_off.now(p)).value
        free = int(told[1]) - p.rate * (prefill_s + p.load.tokens * step_s / p.slots)
        assert free >= 0.99 * p.headroom * int(told[1]), seed


def test_a_failure_interval_that_is_told_is_the_one_that_youngs_rule_is_given() -> None:
    case = CASES["case-train-405b"]
    for seed in map(str, seeds(40)):
        p = brief(case, seed)
        told = re.search(r"so the job every ([\d.]+) h", case.requirements.model(p))
        assert told
        by_young = math.sqrt(2 * p.save_s * float(told[1]) * 3600)
        assert DRILLS["failure-save-interval"].derive(p).value == pytest.approx(by_young, rel=0.01), seed


def test_the_hours_between_failures_are_told_as_they_are_used() -> None:
    opened = CASES["case-train-405b"]
    number = next(n for n, (key, _) in enumerate(opened.kinds, 1) if key == "failure-dollars")
    for seed in map(str, range(5)):
        asked = put(opened, number, seed)
        told = re.search(r"fails every ([\d.]+) hours", asked.text)
        used = re.search(r"86,400 / ([\d,]+) ×", asked.hints[2])
        assert told
        assert used
        assert float(told[1]) * 3600 == pytest.approx(float(used[1].replace(",", "")), rel=0.005)


def test_the_tokens_of_a_model_answer_follow_from_its_printed_step() -> None:
    case = CASES["case-code-completion"]
    for seed in map(str, seeds(40)):
        p = brief(case, seed)
        told = re.search(r"a step takes ([\d.]+) ms, so without help (\d+)\b", case.design.model(p))
        assert told
        assert int(told[2]) == 1 + math.floor((p.deadline_ms - p.ttft_ms) / float(told[1])), seed


def test_no_kernel_of_a_small_model_is_faster_than_its_weights_are_read() -> None:
    for seed in map(str, seeds(40)):
        p = brief(CASES["case-small-model"], seed)
        assert p.kernel_s * p.layers * p.launches >= 2 * p.parameters / p.memory
        assert p.issue_s == p.launch_s  # one price of a launch in all stages


def test_a_busy_step_gives_matmuls_and_attention_the_time_that_they_need() -> None:
    # Both run forward, again before the backward pass, and twice as much backward: eight FLOPs a weight, four passes
    # over unfused attention's bytes. `best` is the fastest product that was measured.
    best = part("h100-sxm5")["best_gemm_flops_per_s_bf16"]
    for seed in map(str, seeds(40)):
        p = brief(CASES["case-low-mfu"], seed)
        step_s = p.gpus * p.batch * p.tokens / p.tokens_per_s
        matmuls_s = 8 * p.parameters * p.batch * p.tokens / best
        attention_s = 4 * p.layers * DRILLS["attention-unfused-traffic"].derive(p).value / p.memory
        assert p.shares[0] / 100 >= matmuls_s / step_s, seed
        assert p.shares[1] / 100 >= attention_s / step_s, seed
        assert f"says {sum(p.shares)} % utilisation" in CASES["case-low-mfu"].requirements.text(p)


@every_case
def test_what_is_told_in_the_brief_changes_with_the_numbers(case: Case) -> None:
    briefs = {case.requirements.model(brief(case, str(seed))) for seed in range(20)}
    designs = {case.design.model(brief(case, str(seed))) for seed in range(20)}
    assert min(len(briefs), len(designs)) > 10


@pytest.mark.parametrize(
    "written", ["a and c", "AC", "a c", "A, C.", "a & c", "(a) (c)", "ac", "all but B", "all except for b."]
)
def test_points_are_marked_as_people_write_letters_and_only_those_missing_are_shown_after_it(written: str) -> None:
    said = marked(written, ("one", "two", "three"))
    assert said.right
    assert said.message == "2 of 3 points said. Not said:\nB. two"
    few = marked("b", ("one", "two", "three"))
    assert few.message == "1 of 3 points said; 2 would do. Not said:\nA. one\nC. three"
    assert few.share == pytest.approx(1 / 3)
    assert marked("none", ("one", "two", "three")).message == "0 of 3 points said; 2 would do."  # all stand above


@pytest.mark.parametrize(
    "written", ["", "a b c x", "bad", "a, b, h", "cab", "A or B?", "all but x", "all but all of it"]
)
def test_what_marks_nothing_shows_the_points(written: str) -> None:
    assert marked(written, ("one", "two", "three")).status == "unreadable"


def test_a_case_is_asked_by_name_or_in_a_mock_and_never_in_pieces(history: History) -> None:
    long = {key for key, idea in ideas.IDEAS.items() if idea.target_s > LONGEST_S}
    assert set(CASES) == {key for key in long if ideas.IDEAS[key].topic != "code"}
    for mode in ("sprint", "warm-up"):
        for topic in (None, "product"):
            asked = questions(mode, Wish(topic=topic), history, seed="1", now=wall_clock.now())
            assert not any(ask.kind.startswith(IN_ORDER) or ask.idea in long for ask in asked)
    for mode in ("sprint", "warm-up", "mock"):
        one = questions(mode, Wish(topic="case-low-mfu"), history, seed="1", now=wall_clock.now())
        assert tuple((ask.idea, ask.kind) for ask in one) == CASES["case-low-mfu"].kinds
        assert len({ask.seed for ask in one}) == 1
    whole = questions("warm-up", Wish(topic=TOPIC), history, seed="1", now=wall_clock.now())
    assert len(whole) == sum(map(len, CASES.values()))


def test_what_is_missed_in_a_case_comes_back_as_its_drill_and_not_in_pieces(history: History) -> None:
    case = CASES["case-low-mfu"]
    held = Session(
        history, history.begin("warm-up", {"extra": 1.0}, [Ask(idea=i, kind=k, seed="m") for i, k in case.kinds])
    )
    held.answer("none")
    held.skip()
    held.next()
    held.answer("0.999")
    held.give_up()
    held.next()
    assert len(held.plan) == len(case)
    weak = questions("weak", Wish(), history, seed="w", now=wall_clock.now())
    assert [(ask.idea, ask.kind) for ask in weak] == [(case.kinds[1][0], "number")]
    month = wall_clock.now() + dt.timedelta(days=30)
    due = questions("today", Wish(), history, seed="t", now=month)
    assert [ask.idea for ask in due] == [case.kinds[1][0]]  # a conversation is not due on a day
    assert progress(history, now=month).due_now == 1
