"""Interview numbers: the drill's own formula on figures that people ask, judged in bands, with a question where two
mistakes look alike.
"""

import math
import re
from types import SimpleNamespace

from tests.each import each
from tests.seeds import seeds

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, Slip, changed, seeded
from threeloops.room import examples, ideas
from threeloops.room.kinds.band_draws import INTERVIEW, MAGNITUDE, draws
from threeloops.room.kinds.bands import BAND, BONUS, DECADE, band, judged, suspects

EDGES = {"": "within 20 %", "up": "up to 20 % more", "down": "up to 20 % less", "exact": "has to be exact"}
SEEDS = [str(seed) for seed in range(1000)]
every_key = each("key", {key: key for key in INTERVIEW}, by=lambda key: DRILLS[key].family)


def said(key: str, value: float) -> str:
    return f"{value!r} {DRILLS[key].unit}".strip()


def target(key: str, p: Draw) -> float:
    return DRILLS[key].derive(p).value


@every_key
def test_a_drill_has_at_least_three_interview_draws_of_its_own_kind(key: str) -> None:
    drill = DRILLS[key]
    assert len(draws(key)) >= 3
    assert len({drill.prompt(p) for p in draws(key)}) == len(draws(key))
    names = set(vars(drill.draw(seeded("names"))))
    for p in draws(key):
        assert set(vars(p)) >= names
        assert math.isfinite(target(key, p))
        assert target(key, p) > 0
        for slip in drill.slips:
            assert math.isfinite(slip.wrong(p))


@every_key
def test_the_example_in_the_prompt_is_nobodys_answer(key: str) -> None:
    drill = DRILLS[key]
    for p in draws(key):
        for written in examples.example(drill.unit, drill.prompt(p), whole=bool(drill.whole)).split(" or "):
            assert not judged(drill, p, written, magnitude=key in MAGNITUDE).right, written


@every_key
def test_what_the_drill_never_varies_is_as_its_words_say(key: str) -> None:
    """A drill whose numbers are always in 16 bits may say so in fixed words; an interview draw in 8 bits would then
    ask one thing and grade another.
    """
    drill = DRILLS[key]
    usual = [drill.draw(seeded("usual", str(seed))) for seed in range(100)]
    fixed = {
        name: value for name, value in vars(usual[0]).items() if all(getattr(other, name) == value for other in usual)
    }
    for p in draws(key):
        for name in fixed:
            as_usual = SimpleNamespace(**(vars(p) | {name: fixed[name]}))
            assert drill.prompt(as_usual) != drill.prompt(p) or target(key, as_usual) == target(key, p), name
        assert not re.search(r"\b1 [a-z]+s\b", drill.prompt(p))


@every_key
def test_a_thousand_seeds_ask_with_a_unit_and_a_band_and_take_the_answer(key: str) -> None:
    told = "order of magnitude" if key in MAGNITUDE else EDGES[DRILLS[key].whole]
    for seed in seeds(len(SEEDS)):
        asked = band(DRILLS[key], str(seed))
        assert told in asked.text, f"seed {seed}"
        assert "Answer with a" in asked.text, f"seed {seed}"
    p = next(p for p in draws(key) if DRILLS[key].prompt(p) in band(DRILLS[key], "1").text)
    assert band(DRILLS[key], "1").judge(said(key, target(key, p))).right


@every_key
def test_every_interview_draw_is_asked_by_some_seed_and_nothing_else_is(key: str) -> None:
    assert len({band(DRILLS[key], str(seed)).text for seed in {*range(200), *seeds(len(SEEDS))}}) == len(draws(key))


@every_key
def test_the_edges_of_the_band(key: str) -> None:
    drill = DRILLS[key]
    for p in draws(key):
        right = target(key, p)
        if drill.whole:
            assert judged(drill, p, said(key, right)).right
            for factor in (1 - BAND + 0.01, 1 + BAND - 0.01):
                near = whole(right, right * factor, inwards=True)
                safe = drill.whole == ("up" if factor > 1 else "down")
                assert judged(drill, p, said(key, near)).right == (safe or near == right), factor
                beyond = whole(right, right * factor, inwards=False)
                assert safe or not judged(drill, p, said(key, beyond)).right, factor
            continue
        if key in MAGNITUDE:
            factors = {DECADE * 0.99: True, 0.99 / DECADE * 1.02: True, DECADE * 1.01: False, 0.99 / DECADE: False}
        else:
            factors = {1 + BAND - 0.01: True, 1 - BAND + 0.01: True, 1 + BAND + 0.01: False, 1 - BAND - 0.01: False}
            for edge, told in ((BONUS - 0.001, True), (BONUS + 0.001, False)):
                assert ("bonus" in judged(drill, p, said(key, right * (1 + edge))).message) == told
        for factor, accepted in factors.items():
            written = said(key, right * factor)
            assert judged(drill, p, written, magnitude=key in MAGNITUDE).right == accepted, factor


def whole(target: float, value: float, *, inwards: bool) -> int:
    """The whole number next to a value, towards the target or away from it."""
    return math.floor(value) if (value > target) == inwards else math.ceil(value)


def test_what_is_counted_is_right_as_a_whole_number_only() -> None:
    drill = DRILLS["serving-replicas"]
    p = next(p for p in draws(drill.key) if target(drill.key, p) == 5)
    assert judged(drill, p, "5").right
    assert judged(drill, p, "5 replicas").right
    unrounded = judged(drill, p, "4.46")
    assert not unrounded.right
    assert unrounded.slips == ("not-rounded-up",)
    assert unrounded.message.startswith("Not rounded up")
    assert judged(drill, p, "6").right  # enough, in one's head
    assert not judged(drill, p, "4").right  # less is not, however near
    assert judged(drill, changed(p, rate=p.rate * 10), "44").slips == ("too-few",)
    assert judged(drill, p, "4.2").slips == ("not-rounded-up",)  # within the band, and still no number of replicas
    assert "Answer with a whole number" in band(drill, "1").text


@every_key
def test_a_mistake_outside_the_band_is_named_and_never_called_right(key: str) -> None:
    drill = DRILLS[key]
    for p in draws(key):
        right = target(key, p)
        for slip in drill.slips:
            wrong, verdict = slip.wrong(p), judged(drill, p, said(key, slip.wrong(p)), magnitude=key in MAGNITUDE)
            inside = 1 / DECADE <= wrong / right <= DECADE if key in MAGNITUDE else abs(wrong - right) <= BAND * right
            if drill.whole and (inside or wrong != round(wrong)):
                continue  # what is counted comes whole, and is exact on one side: the edges above
            assert verdict.right == inside
            if not inside:
                assert slip.key in verdict.slips
                assert slip.story in verdict.message


def test_two_mistakes_with_one_answer_are_asked_about() -> None:
    """With 2 ranks' worth of collision: the drill's own prompt, but slips that lead to the same number."""
    told = 0
    for key in INTERVIEW:
        for p in draws(key):
            for slip in DRILLS[key].slips:
                verdict = judged(DRILLS[key], p, said(key, slip.wrong(p)))
                if len(verdict.slips) > 1:
                    told += 1
                    assert re.search(r"Either: .+ Or: .+ Which did you make\?", verdict.message)
                    assert all(other.story in verdict.message for other in suspects(DRILLS[key], p, slip.wrong(p)))
    assert told


def test_the_nearest_mistake_is_named_before_those_further_off() -> None:
    drill = DRILLS["kv-bytes-per-token"]
    stories = [
        Slip(key, lambda p, value=value: value, key)
        for key, value in (("far", 118.0), ("near", 104.0), ("nearer", 101.0))
    ]
    toy = SimpleNamespace(slips=stories)
    assert [slip.key for slip in suspects(toy, None, 100.0)] == ["nearer", "near"]  # type: ignore[arg-type]
    assert suspects(drill, draws(drill.key)[0], 1.0) == []


def test_a_bare_number_is_asked_again() -> None:
    assert band(DRILLS["kv-bytes-per-token"], "1").judge("131").status == "unreadable"


def test_enough_drills_have_them_and_an_order_of_magnitude_takes_less_time() -> None:
    assert len(INTERVIEW) >= 15
    for key in INTERVIEW:
        asked = ideas.pose(key, "band", "1")
        assert asked.kind == "band"
        assert (asked.target_s < DRILLS[key].target_s) == (key in MAGNITUDE)
