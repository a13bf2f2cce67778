"""Follow-ups: every step is made again from idea, kind and seed; the numbers carry over; the decision follows from
them.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.room.test_bands import EDGES, whole
from tests.seeds import seeds

from threeloops import wall_clock
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, seeded
from threeloops.drills.engine.trial import evaluated
from threeloops.room import examples, ideas, plan
from threeloops.room.attempts import Ask
from threeloops.room.history import History
from threeloops.room.kinds.bands import BAND
from threeloops.room.kinds.cases import CASES
from threeloops.room.kinds.cases.case import PREFIX as STAGE
from threeloops.room.kinds.cases.case import brief
from threeloops.room.kinds.chains import CHAINS
from threeloops.room.kinds.chains.chain import PREFIX, Chain, Step, asked, column, numbers
from threeloops.room.kinds.chains.gains import _car_gains, _part_gains
from threeloops.room.kinds.chains.memory import BY_MEMORY, _smallest_card, _states
from threeloops.room.kinds.chains.time import OFFERED, _node_gains, _rates
from threeloops.room.plan import Wish
from threeloops.room.preparation import MOCK_S
from threeloops.room.question import Question
from threeloops.room.session import Session

SEEDS = [str(seed) for seed in range(1000)]
every_chain = pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history.sqlite3")


def planned(history: History, **wish: object) -> list[Ask]:
    return plan.questions("mock", Wish(**wish), history, seed="s", now=wall_clock.now())  # type: ignore[arg-type]


@every_chain
def test_over_many_seeds_each_answer_is_finite_and_no_prompts_example_is_it(chain: Chain) -> None:
    for seed in map(str, seeds(300)):
        p = numbers(chain, seed)
        for step in chain.steps:
            drill = DRILLS[step.drill]
            value = drill.derive(step.numbers(p)).value
            assert math.isfinite(value), f"seed {seed}"
            assert value > 0, f"seed {seed}"
    for seed in map(str, seeds(8)):
        p = numbers(chain, seed)
        for number, step in enumerate(chain.steps, 1):
            drill, question = DRILLS[step.drill], asked(chain, number, seed)
            value = drill.derive(step.numbers(p)).value
            assert question.judge(f"{value!r} {drill.unit}".strip()).right
            for edge, accepted in ((BAND - 0.01, drill.whole in ("", "up")), (BAND + 0.01, False)):
                near = value * (1 + edge)
                near = whole(value, near, inwards=accepted) if drill.whole else near
                assert question.judge(f"{near!r} {drill.unit}".strip()).right == accepted
            assert EDGES[drill.whole] in question.text
            for written in examples.example(drill.unit, question.text, whole=bool(drill.whole)).split(" or "):
                assert not question.judge(written).right


def named_wrongly(step: Step, p: Draw, asked_now: Question) -> list[str]:
    """What the question says of the right answer, and of each mistake beyond the band, that it should not."""
    drill, q = DRILLS[step.drill], step.numbers(p)
    value = drill.derive(q).value
    wrong = [] if asked_now.judge(f"{value!r} {drill.unit}".strip()).right else ["the right answer"]
    for slip in drill.slips:
        missed = float(slip.wrong(q))
        if abs(missed - value) <= BAND * value:  # right in one's head; a mistake that near is asked after
            continue
        verdict = asked_now.judge(f"{missed!r} {drill.unit}".strip())
        if verdict.status != "slip" or slip.key not in verdict.slips:
            wrong.append(slip.key)
    return wrong


@every_chain
def test_every_mistake_in_a_step_is_named(chain: Chain) -> None:
    for seed in map(str, seeds(8)):
        p = numbers(chain, seed)
        for number, step in enumerate(chain.steps, 1):
            assert named_wrongly(step, p, asked(chain, number, seed)) == [], (seed, number)


def unsaid(step: Step, p: Draw) -> list[str]:
    """Numbers that the answer needs and the step's own words do not say; a drill's words are its own tests' matter."""
    if step.text is None:
        return []
    q, derive, text = step.numbers(p), DRILLS[step.drill].derive, step.text(p)
    missing = []
    for name, value in vars(q).items():
        if (
            not isinstance(value, int | float)
            or value == 1
            or name in ("bytes_per_element", "generated", "reaction_ms")
        ):
            continue  # in words: one card, 16 bits, what the answers before add up to
        try:
            matters = derive(type(q)(**(vars(q) | {name: value * 2}))).value != derive(q).value
        except ValueError:
            continue
        scales = (1, 1e-3, 0.01, 100, 1e3, 1e6, 1e9, 1e12, 1e15)
        forms = {f"{value / scale:{style}}" for scale in scales for style in (",", "g", ".3g", ".1f", ".2f", ",.0f")}
        if matters and not any(re.search(rf"(?<![\d.]){re.escape(form)}(?![\d])", text) for form in forms):
            missing.append(name)
    return missing


@pytest.mark.parametrize("key", [*CHAINS, *CASES])
def test_the_working_of_a_step_comes_to_its_answer(key: str) -> None:
    """A drill's own draws fit its working; a conversation's numbers must, too: sizes that no tile divides, say."""
    for seed in map(str, seeds(20)):
        p = numbers(CHAINS[key], seed) if key in CHAINS else brief(CASES[key], seed)
        for step in (CHAINS[key] if key in CHAINS else CASES[key]).steps:
            derivation = DRILLS[step.drill].derive(step.numbers(p))
            assert evaluated(derivation.substitution) == pytest.approx(derivation.value, rel=1e-9), step.drill
            if not DRILLS[step.drill].whole:  # at an edge, decimals that binary numbers have not step over it
                assert evaluated(derivation.in_numbers) == pytest.approx(derivation.value, rel=0.005), step.drill


@every_chain
def test_a_step_says_every_number_that_its_answer_needs(chain: Chain) -> None:
    """A sitting can be left between two steps; what was said before it must not be needed."""
    for seed in SEEDS[:20]:
        p = numbers(chain, seed)
        for step in chain.steps:
            assert unsaid(step, p) == [], (step.drill, step.text and step.text(p))


@every_chain
def test_exactly_one_option_is_right_and_it_is_the_computed_one(chain: Chain) -> None:
    keys = set()
    for seed in SEEDS[:60]:
        p, question = numbers(chain, seed), asked(chain, len(chain), seed)
        offered = dict(re.findall(r"^  ([A-H])  (.+)$", question.text, re.MULTILINE))
        (right,) = [letter for letter in offered if question.judge(letter).right]
        options = {option.key: option.text for option in chain.decision.options(p)}
        assert len(set(options.values())) == len(options) == len(offered) >= 3
        assert offered[right] == options[chain.decision.right(p)]
        assert column(chain.decision, p, seed).letter == right
        keys.add(chain.decision.right(p))
    assert len(keys) >= 2  # the best choice depends on the numbers


def test_decisions_are_what_trying_every_option_gives() -> None:
    for seed in map(str, seeds(300)):
        p = numbers(CHAINS["cache"], seed)
        holds = {
            key: DRILLS["kv-largest-batch"].derive(CHAINS["cache"].steps[2].numbers(p)).value for key in ("h100-sxm5",)
        }
        assert (_smallest_card(p) in BY_MEMORY[:2]) == (holds["h100-sxm5"] >= p.users)
        p = numbers(CHAINS["states"], seed)
        stage = int(CHAINS["states"].decision.right(p))
        assert _states(p, stage) <= p.memory_bytes / 2
        assert stage == 0 or _states(p, stage - 1) > p.memory_bytes / 2
        for key, gains in (("nodes", _node_gains), ("parts", _part_gains), ("car", _car_gains)):
            p = numbers(CHAINS[key], seed)
            first, second = sorted(gains(p).values(), reverse=True)[:2]
            assert first > 1.1 * second
            assert gains(p)[CHAINS[key].decision.right(p)] == first
        p = numbers(CHAINS["product"], seed)
        first, second = sorted(_rates(p).values(), reverse=True)[:2]
        assert first > 1.1 * second
        assert set(_rates(p)) == set(OFFERED)


def test_the_stages_that_a_chain_asks_for_are_the_drills_own() -> None:
    p = numbers(CHAINS["states"], "1")
    assert _states(p, 0) == DRILLS["memory-model-states"].derive(CHAINS["states"].steps[0].numbers(p)).value
    assert _states(p, 2) == DRILLS["memory-zero-2"].derive(CHAINS["states"].steps[2].numbers(p)).value


def test_a_sped_up_step_shrinks_by_what_the_options_say_they_save() -> None:
    """The gains of the chain on parts, by taking a step of 100 to pieces."""
    for seed in SEEDS[:50]:
        p = numbers(CHAINS["parts"], seed)
        rest = 100 - p.products - p.waiting
        now = p.products / p.factor + p.waiting + rest
        after = {
            "again": p.products / (2 * p.factor) + p.waiting + rest,
            "waiting": p.products / p.factor + rest,
            "small": now - rest + rest / 2,
        }
        assert min(after, key=lambda key: after[key]) == CHAINS["parts"].decision.right(p)


@every_chain
def test_a_step_is_made_again_from_idea_kind_and_seed(chain: Chain) -> None:
    assert len(chain) >= 4
    for number, (idea, kind) in enumerate(chain.kinds, 1):
        again = ideas.pose(idea, kind, "k")
        assert (again.text, again.kind, again.idea) == (asked(chain, number, "k").text, kind, idea)
        assert f"{number} of {len(chain)}" in again.title


def talks_of(asks: Sequence[Ask]) -> list[str]:
    """The cases and chains of a sitting, in order."""
    return list(dict.fromkeys(ask.kind.rpartition(":")[0] for ask in asks if ask.kind.startswith(plan.IN_ORDER)))


def test_a_mock_holds_a_case_and_a_chain_in_order_with_single_questions_between(history: History) -> None:
    for seed in range(10):
        asks = plan.questions("mock", Wish(), history, seed=str(seed), now=wall_clock.now())
        whole = {f"{PREFIX}{key}": chain.kinds for key, chain in CHAINS.items()}
        whole |= {f"{STAGE}{key}": case.kinds for key, case in CASES.items()}
        names = talks_of(asks)
        assert 2 <= len(names) <= 3
        assert sum(name.startswith(STAGE) for name in names) == 1
        places = {name: [at for at, ask in enumerate(asks) if ask.kind.startswith(f"{name}:")] for name in names}
        for name, found in places.items():
            assert found == list(range(found[0], found[0] + len(whole[name])))
            assert tuple((asks[at].idea, asks[at].kind) for at in found) == whole[name]
            assert len({asks[at].seed for at in found}) == 1
        ends = sorted((found[0], found[-1]) for found in places.values())
        assert ends[0][0] > 0
        if len(asks) - sum(map(len, places.values())) >= len(ends):  # single questions enough for one before each
            assert all(later[0] > earlier[1] + 1 for earlier, later in itertools.pairwise(ends))
        assert sum(ideas.pose(ask.idea, ask.kind, ask.seed).allowed_s for ask in asks) <= MOCK_S


def test_three_mocks_in_a_row_do_not_repeat_and_in_time_every_conversation_comes(history: History) -> None:
    """Sat or only begun: what was asked is not asked again."""
    now, sat = wall_clock.now(), []
    for seed in range(50):
        asks = plan.questions("mock", Wish(), history, seed=str(seed), now=now)
        history.begin("mock", {}, asks)
        sat.append(asks)
    for place in range(len(sat) - 2):
        three = sat[place : place + 3]
        talks = [talk for asks in three for talk in talks_of(asks)]
        assert len(set(talks)) == len(talks)
        alone = [ask.idea for asks in three for ask in asks if not ask.kind.startswith(plan.IN_ORDER)]
        assert len(set(alone)) == len(alone)
        asked_in = [{ideas.IDEAS[ask.idea].loop for ask in asks} for asks in three]
        assert all(len(loops) >= 2 for loops in asked_in)
    assert {talk.split(":")[1] for asks in sat for talk in talks_of(asks)} == set(CHAINS) | set(CASES)


def test_chains_are_spread_over_the_loops() -> None:
    assert len(CHAINS) >= 20
    assert min(Counter(chain.loop for chain in CHAINS.values()).values()) >= 5
    assert {chain.loop for chain in CHAINS.values()} == set(ideas.LOOPS)


def test_a_short_mock_or_one_on_a_topic_keeps_to_the_wish(history: History) -> None:
    assert len(planned(history, length=3)) == 3
    assert len(planned(history, length=12)) == 12
    assert len(planned(history, length=20)) == 20
    on_topic = planned(history, topic="kv_cache")
    assert {ideas.IDEAS[ask.idea].topic for ask in on_topic} == {"kv_cache"}
    assert talks_of(on_topic) == [f"{PREFIX}cache"]
    assert planned(history, topic="numbers")
    loop = planned(history, topic="driving")
    assert {ideas.IDEAS[ask.idea].loop for ask in loop} == {"driving"}
    assert any(talk.startswith(STAGE) for talk in talks_of(loop))


def test_a_mock_left_in_the_middle_of_a_chain_goes_on_there(history: History) -> None:
    asks = [Ask(idea=idea, kind=kind, seed="m") for idea, kind in CHAINS["car"].kinds]
    held = Session(history, history.begin("mock", {"extra": 1.0}, asks))
    held.answer("1 s")
    held.next()
    again = Session(history, history.unfinished() or "")
    assert again.question is not None
    assert again.question.text == asked(CHAINS["car"], 2, "m").text


def test_the_two_ages_of_a_late_frame_lie_further_apart_than_the_band() -> None:
    chain = next(
        chain for chain in CHAINS.values() if any(step.drill == "deadlines-late-frame" for step in chain.steps)
    )
    for seed in SEEDS[:40]:
        p = numbers(chain, seed)
        first, second = sorted((p.period_ms + p.late_ms, -(-p.late_ms // p.period_ms) * p.period_ms + p.usual_ms))
        assert first < (1 - BAND) * second


def test_drawing_a_chain_ends(history: History) -> None:
    for chain in CHAINS.values():
        chain.draw(seeded("once"))
