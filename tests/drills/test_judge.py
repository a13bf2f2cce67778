"""What is said to an answer: right, which slip, which two, which unit, how far off. Never an exception, never the
answer.
"""

import math
import re
from fractions import Fraction

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.each import each
from tests.seeds import todays

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn, seeded
from threeloops.drills.engine.judge import Verdict, judge

SIZE = 6 * 2**30  # 6.00 GiB, which is 6.44 GB


def slip(key: str, factor: float) -> Slip:
    return Slip(key, lambda p: p.answer * factor) | f"You made the slip called {key}."


def toy(*slips: Slip, unit: str = "B", tolerance: float = 0.02) -> Drill:
    """A drill whose answer stands in its draw, so that every answer below can be worked out in the head."""
    return Drill(
        key="toy",
        family="toys",
        title="A toy",
        taught=Taught("inner", "Toys"),
        unit=unit,
        target_s=30,
        draw=lambda rng: drawn(answer=SIZE),
        small=lambda rng: drawn(answer=1),
        prompt=lambda p: "How large is the box?",
        derive=lambda p: Derivation(value=p.answer, formula="a", substitution=f"{p.answer}", source="nobody, 2026"),
        count=lambda p: p.answer,
        slips=slips,
        tolerance=tolerance,
    )


BOX = toy(slip("half", 0.5), slip("triple", 3), slip("tenth", 0.1), slip("elevenfold", 11))


def verdict(written: object, drill: Drill = BOX, answer: float = SIZE) -> Verdict:
    return judge(drill, drawn(answer=answer), written)


@pytest.mark.parametrize(
    "written",
    [
        "6 GiB",
        "6.00 GiB",
        "6.44 GB",
        "6442450944 B",
        "6.44e9 bytes",
        "6,442,450,944 B",
        "51.5 Gbit",
        "0.00644 TB",
        "six GiB",
        "6,44 GB",
    ],
)
def test_an_answer_is_right_in_any_unit_that_fits(written: str) -> None:
    assert verdict(written) == Verdict(status="right", message="Right.")


def test_the_tolerance_ends_where_the_question_says() -> None:
    assert verdict("6.11 GiB").right  # 1.8 % above
    assert verdict("5.89 GiB").right
    assert not verdict("6.13 GiB").right  # 2.2 % above
    assert not verdict("5.87 GiB").right
    assert not verdict("6.11 GiB", toy(tolerance=0.01)).right


def test_only_right_is_right() -> None:
    statuses = {
        verdict(written).status: verdict(written).right for written in ("6 GiB", "3 GiB", "9 GiB", "6 GB", "7 GiB", "?")
    }
    assert statuses == {"right": True, "slip": False, "pair": False, "unit": False, "off": False, "unreadable": False}


def test_a_slip_is_named_by_its_story() -> None:
    assert verdict("3 GiB") == Verdict(status="slip", message="You made the slip called half.", slips=("half",))
    assert verdict("18 GiB").slips == ("triple",)


def test_of_two_slips_within_reach_the_nearer_is_named() -> None:
    close_by = toy(slip("half", 0.5), slip("nearly-half", 0.51))
    assert verdict("3 GiB", close_by).slips == ("half",)
    assert verdict("3.05 GiB", close_by).slips == ("nearly-half",)


def test_a_slip_of_the_drill_comes_before_a_slip_of_the_unit() -> None:
    assert verdict("48 GiB", toy(slip("eight-heads", 8))).slips == ("eight-heads",)
    assert verdict("6 GB", toy(slip("shrunk", 1e9 / 2**30))).slips == ("shrunk",)


def test_a_slip_of_the_unit_comes_before_two_slips_at_once() -> None:
    assert verdict("48 GiB", toy(slip("twofold", 2), slip("fourfold", 4))).slips == ("bits-and-bytes",)


def test_the_digits_have_to_be_right_for_the_other_unit() -> None:
    alone = toy()
    assert verdict("6.05 GB", alone).slips == ("binary-as-decimal",)
    assert verdict("6.1 GB", alone).status == "off"
    assert verdict("6.48 GiB", alone).slips == ("decimal-as-binary",)
    assert verdict("6.55 GiB", alone).status == "off"


@pytest.mark.parametrize(("written", "told"), [("12 GiB", "twice too large"), ("3 GiB", "Exactly half")])
def test_a_plain_factor_of_two_is_named_when_nothing_better_is(written: str, told: str) -> None:
    said = verdict(written, toy())
    assert said.slips == ("factor-two",)
    assert told in said.message
    assert verdict(written, toy(slip("better", 2 if "12" in written else 0.5))).slips == ("better",)


def test_two_slips_at_once_are_named_as_perhaps_both() -> None:
    both = verdict("9 GiB")  # 6 × 1/2 × 3
    assert both.status == "pair"
    assert both.slips == ("half", "triple")
    assert both.message.startswith("Perhaps both: ")
    assert "half" in both.message
    assert "triple" in both.message


def test_two_slips_are_not_named_when_two_other_ones_explain_it_as_well() -> None:
    ambiguous = toy(slip("half", 0.5), slip("triple", 3), slip("quarter", 0.25), slip("sixfold", 6))
    assert verdict("9 GiB", ambiguous).status == "off"


def test_two_slips_that_cancel_to_one_in_every_draw_are_not_named() -> None:
    plain = [drill for drill in DRILLS.values() if not drill.unit]
    assert len(plain) > 100
    for drill in plain:
        draws = [drill.draw(seeded("test", str(seed), drill.key)) for seed in range(3)]
        assert any(judge(drill, p, "1").status != "pair" for p in draws), drill.key


def test_one_slip_comes_before_two() -> None:
    assert verdict("9 GiB", toy(slip("half", 0.5), slip("triple", 3), slip("half-more", 1.5))).slips == ("half-more",)


@pytest.mark.parametrize(
    ("written", "named", "told"),
    [
        ("6 GB", "binary-as-decimal", "GiB is not GB"),
        ("6.44 GiB", "decimal-as-binary", "GB is not GiB"),
        ("6144 MB", "binary-as-decimal", "MiB is not MB"),
        ("6442 MiB", "decimal-as-binary", "MB is not MiB"),
        ("6291456 KB", "binary-as-decimal", "KiB is not KB"),
        ("48 GiB", "bits-and-bytes", "8 times too large"),
        ("51.5 GB", "bits-and-bytes", "8 times too large"),
        ("0.75 GiB", "bits-and-bytes", "8 times too small"),
        ("6.44 TB", "prefix", "too large by a thousand"),
        ("6.44 MB", "prefix", "too small by a thousand"),
        ("6.44 kB", "prefix", "too small by a million"),
        ("6.44 PB", "prefix", "too large by a million"),
        ("6 TiB", "prefix", "too large by a thousand"),
        ("6 MiB", "prefix", "too small by a thousand"),
        ("6 KiB", "prefix", "too small by a million"),
    ],
)
def test_slips_of_the_unit(written: str, named: str, told: str) -> None:
    said = verdict(written)
    assert (said.status, said.slips) == ("unit", (named,))
    assert told in said.message


@pytest.mark.parametrize(
    ("written", "unit", "answer", "named"),
    [
        ("400 GB/s", "B/s", 50e9, "bits-and-bytes"),  # a card of 400 Gbit/s
        ("50 Gbit/s", "B/s", 50e9, "bits-and-bytes"),
        ("46.6 GB/s", "B/s", 50e9, "binary-as-decimal"),
        ("128 kB/token", "B/token", 131072, "binary-as-decimal"),
        ("1.96 ms", "s", 1.96, "prefix"),
        ("1960 s", "s", 1.96, "prefix"),
        ("312 GFLOP/s", "FLOP/s", 312e12, "prefix"),
    ],
)
def test_slips_of_the_unit_in_other_units(written: str, unit: str, answer: float, named: str) -> None:
    assert verdict(written, toy(slip("elevenfold", 11), unit=unit), answer).slips == (named,)


def test_eight_means_bits_only_where_bytes_are_asked() -> None:
    assert verdict("8 s", toy(unit="s"), 1.0).status == "off"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("6.3 GiB", "close, but a little too large"),
        ("5.7 GiB", "close, but a little too small"),
        ("8 GiB", "too large, by less than half"),
        ("4.5 GiB", "too small, by less than half"),
        ("12.5 GiB", "about twice what it should be"),
        ("2.5 GiB", "about half of what it should be"),
        ("30 GiB", "several times too large"),
        ("1.3 GiB", "several times too small"),
        ("70 GiB", "about ten times too large"),
        ("650 GiB", "about a hundred times too large"),
        ("1 kB", "more than a million times too small"),
        ("1e50 B", "more than a million times too large"),
    ],
)
def test_how_far_off_in_coarse_words(written: str, told: str) -> None:
    said = verdict(written)
    assert said.status == "off"
    assert told in said.message


@pytest.mark.parametrize(
    ("written", "unit", "answer", "told"),
    [
        ("60 GiB", "B", SIZE, "ten times too large: is the decimal point in its place?"),
        ("0.06 GiB", "B", SIZE, "a hundred times too small: is the decimal point in its place?"),
        ("46", "", 0.46, "a hundred times too large: percent, or a plain share?"),
    ],
)
def test_right_digits_with_a_shifted_point_are_told_so(written: str, unit: str, answer: float, told: str) -> None:
    said = verdict(written, toy(unit=unit), answer)
    assert said.slips == ("decimal-point",)
    assert told in said.message


@pytest.mark.parametrize("written", ["0 B", "-6 GiB", "-1e-9 B"])
def test_zero_and_the_wrong_sign(written: str) -> None:
    assert "of the wrong sign or zero" in verdict(written).message


@pytest.mark.parametrize("written", ["1e-320 B", "1e300 B", "1e299 GB", "-1e300 B", "1e-9 B"])
def test_numbers_at_the_ends_of_the_range_are_only_off(written: str) -> None:
    assert verdict(written).status == "off"


@pytest.mark.parametrize(
    "written",
    [
        "",
        "6",
        6,
        6.44,
        "six or seven GiB",
        "6 to 7 GiB",
        "6 GiB or so, but who knows",
        "6 s",
        "6 Gb",
        "6 bananas",
        "1e308 GB",  # a number, but not with this unit
        math.nan,
        math.inf,
        -math.inf,
        "nan B",
        "inf B",
        None,
        True,
        ...,
        [6],
        {"GiB": 6},
        pytest.param(object(), id="an object"),  # two workers would call it by two addresses
        6j,
        Fraction(6, 7),
        10**400,
        numpy.array([6.0, 7.0]),
        numpy.float64("nan"),
        "9" * 5000 + " B",
        "\x00",
        "6 GiB\n7 GiB",
        "__import__('os').system('true') B",
    ],
    ids=lambda written: repr(written)[:30],
)
def test_what_is_no_answer_is_asked_again_in_one_sentence(written: object) -> None:
    said = verdict(written)
    assert said.status == "unreadable"
    assert said.slips == ()
    assert said.message[0].isupper() or not said.message[0].isalpha()
    assert said.message.endswith(".")
    assert "\n" not in said.message
    assert len(said.message) < 250


@pytest.mark.parametrize("written", [59, 59.4, "59", numpy.int64(59), numpy.float32(59)])
def test_a_plain_number_is_an_answer_where_no_unit_is_asked(written: object) -> None:
    assert verdict(written, toy(unit=""), 59.0).right


@pytest.mark.parametrize("written", [math.nan, math.inf, None, numpy.zeros(3), 10**400, "59 requests"], ids=repr)
def test_no_number_at_all_where_no_unit_is_asked(written: object) -> None:
    assert verdict(written, toy(unit=""), 59.0).status == "unreadable"


def test_zero_is_named_where_a_slip_leads_to_it() -> None:
    assert verdict("0 B", toy(slip("nothing", 0), slip("half", 0.5))).slips == ("nothing",)


# What may be said to a number that fits no slip: no figure at all.
OFF = re.compile(
    r"Not right: [a-z, ]+\. None of the usual mistakes leads there\.|Not right, and of the wrong sign or"
    r" zero\. [A-Za-z ]+\."
)


@given(some.floats(allow_nan=False, allow_infinity=False, min_value=-1e290, max_value=1e290))
def test_nothing_that_is_said_leaks_the_answer(number: float) -> None:
    said = verdict(f"{number!r} B")
    if said.status == "off":
        assert OFF.fullmatch(said.message)
    elif not said.right:
        assert not re.search(r"6[.,]?4|6\.0|\b6 ", said.message)


@given(some.text(max_size=40))
def test_nothing_that_is_typed_raises(text: str) -> None:
    assert verdict(text).status in ("right", "slip", "pair", "unit", "off", "unreadable")


@each("drill", DRILLS, by=lambda drill: drill.family)
def test_no_drill_gives_its_answer_away_however_wrong_the_guess(drill: Drill) -> None:
    for seed in todays(range(12), shares=6):
        p: Draw = drill.draw(seeded("leak", str(seed), drill.key))
        value = drill.derive(p).value
        shown = re.findall(r"\d[\d,.]*", drill.shown(value))
        for factor in (1e-4, 0.013, 0.07, 0.23, 0.29, 0.41, 0.71, 0.94, 1.07, 1.43, 2.3, 3.7, 13, 77, 1300, 1e5):
            guess = f"{value * factor!r}"
            said = judge(drill, p, f"{guess} {drill.unit}".strip())
            assert not said.right
            # what is asked about is the guess itself, with its point and without
            heard = said.message.replace(guess, "").replace(guess.replace(".", ""), "")
            # Stories may carry a figure of the question (16 bits, ten bits), never one of the answer.
            assert not any(len(figure) > 2 and figure in heard for figure in shown), (
                f"{said.message!r} contains one of {shown}"
            )


@pytest.mark.parametrize(
    ("key", "factor", "slip"),
    [
        ("serving-decode-step", 60, "minutes-and-seconds"),
        ("serving-decode-step", 1 / 3600, "hours-and-seconds"),
        ("serving-batch-throughput", 1 / 60, "minutes-and-seconds"),
        ("serving-decode-step", 1 / 8, "bits-and-bytes"),
        ("kv-offload-break-even", 8, "bits-and-bytes"),
        ("sensor-bus-share", 1 / 8, "bits-and-bytes"),
        ("compression-bits-per-weight", 1 / 8, "bits-and-bytes"),
        ("serving-decode-step", 2**20, "prefix"),
        ("serving-decode-step", 2**30 / 1e9, "binary-as-decimal"),
    ],
)
def test_what_a_clock_or_a_prefix_does_to_a_time(key: str, factor: float, slip: str) -> None:
    drill = DRILLS[key]
    p = drill.draw(seeded("test", "1", key))
    assert judge(drill, p, f"{drill.derive(p).value * factor!r} {drill.unit}").slips == (slip,)


def test_a_ratio_upside_down_and_the_rest_of_a_share_are_named() -> None:
    speed, share = DRILLS["amdahl-one-part"], DRILLS["sensor-bus-share"]
    p = speed.draw(seeded("test", "1", speed.key))
    assert judge(speed, p, f"{1 / speed.derive(p).value!r}").slips == ("upside-down",)
    p = share.draw(seeded("test", "1", share.key))
    assert judge(share, p, f"{1 - share.derive(p).value!r}").slips == ("the-other-part",)


def test_per_cent_more_is_not_times_as_much() -> None:
    drill = DRILLS["amdahl-one-part"]
    p = drill.draw(seeded("test", "1", drill.key))
    more = f"{100 * (drill.derive(p).value - 1):.2f} % faster"
    assert judge(drill, p, more).slips == judge(drill, p, f"+{more}").slips == ("percent-more",)
