"""The notebook surface: what it prints, where, and that nothing a learner passes in stops the notebook."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as some

from threeloops.drills.engine import sheet
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.student_draws import plain_id, posed

KEY = "kv-bytes-per-token"
DRILL = DRILLS[KEY]


class Hostile:
    """An object that breaks whenever it is looked at."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)


class Comparing(str):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = str.__hash__


@pytest.fixture(autouse=True)
def ada(capsys: pytest.CaptureFixture[str]) -> None:
    sheet.begin(student="Ada", course="Spring 26")
    assert capsys.readouterr().out == "Numbers for ada, course spring-26.\n"


def said(capsys: pytest.CaptureFixture[str], answer: object) -> tuple[str, str]:
    sheet.check(KEY, answer)
    return capsys.readouterr()


def right() -> float:
    return DRILL.derive(posed(DRILL, course="spring-26", student="ada")).value


def test_the_question_is_that_students(capsys: pytest.CaptureFixture[str]) -> None:
    sheet.ask(KEY)
    mine = capsys.readouterr().out
    assert DRILL.prompt(posed(DRILL, course="spring-26", student="ada")) in mine.replace("\n", " ")
    assert max(map(len, mine.splitlines())) <= 96
    sheet.begin(student="Grace", course="Spring 26")
    sheet.ask(KEY)
    assert mine not in capsys.readouterr().out


def test_right_goes_to_stdout_and_all_else_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, f"{right()} B") == ("Right.\n", "")
    assert said(capsys, f"{right() * 1.3} B")[0] == ""
    out, err = said(capsys, f"{right() / 2} B")
    assert (out, "both" in err) == ("", True)


ODD: list[Callable[[], object]] = [
    *(
        lambda value=value: value
        for value in (..., None, math.nan, math.inf, -math.inf, 1j, [], {}, (1,), 24.5, len, Hostile)
    ),
    *(
        lambda value=value: value
        for value in ("", "GB", "24.5", "<script>", "1e999 GB", "0 GB", "-5 GB", "nan GB", b"1 GB")
    ),
    lambda: 10**5000,
    lambda: "9" * 10**6,
    lambda: lambda: 1,
    Hostile,
    lambda: Comparing("1 GB"),
]  # made on the spot: pytest looks at its parameters, and some of these break when looked at


@pytest.mark.parametrize("make", ODD)
def test_nothing_raises_and_nothing_is_given_away(
    capsys: pytest.CaptureFixture[str], make: Callable[[], object]
) -> None:
    out, err = said(capsys, make())
    assert out == ""
    assert err.count("\n") == 1
    assert err.strip()
    assert f"{right():g}" not in err


def test_tensors_and_arrays_are_answers_to_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    numpy, torch = pytest.importorskip("numpy"), pytest.importorskip("torch")
    for answer in (numpy.ones(3), numpy.array("x"), torch.ones(2), torch.tensor(math.nan)):
        out, err = said(capsys, answer)
        assert (out, bool(err)) == ("", True)


@given(some.one_of(some.text(max_size=40), some.floats(), some.integers(), some.binary(), some.lists(some.integers())))
def test_no_answer_whatever_raises(answer: object) -> None:
    sheet.check(KEY, answer)


@pytest.mark.parametrize("make", [lambda: "kv-bytes-per-tokens", lambda: None, lambda: 7, list, Hostile])
def test_an_unknown_question_is_named_not_raised(
    capsys: pytest.CaptureFixture[str], make: Callable[[], object]
) -> None:
    for surface in (sheet.ask, sheet.check, sheet.check_function, sheet.worked):
        surface(make())  # type: ignore[operator]
        out, err = capsys.readouterr()
        assert (out, bool(err)) == ("", True)


def test_a_function_is_checked_on_the_spot(capsys: pytest.CaptureFixture[str]) -> None:
    key = "kv-paged-blocks"
    sheet.check_function(
        key, lambda block, tokens, per_token, requests: requests * -(-tokens // block) * block * per_token
    )
    assert capsys.readouterr().out.startswith("Right")
    for wrong, told in (
        (None, "No function yet"),
        (lambda a: a, "by name: block, tokens"),
        (lambda **_: None, "returns nothing yet"),
        (5, "No function yet"),
    ):
        sheet.check_function(key, wrong)  # type: ignore[arg-type]
        out, err = capsys.readouterr()
        assert (out, told in err) == ("", True)


def test_a_worked_answer_is_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    answer = sheet.worked(KEY)
    assert "Source:" in capsys.readouterr().out
    assert said(capsys, answer) == ("Right.\n", "")


def test_an_id_is_the_same_however_it_is_typed() -> None:
    assert {plain_id(name) for name in ("Ada Lovelace", " ada-lovelace", "ADA_LOVELACE ", "ada.lovelace")} == {
        "ada-lovelace"
    }
    assert plain_id("ada") != plain_id("adda")
    assert plain_id("李") == "李"
    assert {plain_id(odd) for odd in (None, 5, "", "../..", ["x"])} == {""}


def test_an_empty_id_is_the_lone_readers(capsys: pytest.CaptureFixture[str]) -> None:
    sheet.begin(student="  ", course=None)
    assert capsys.readouterr().out == "Numbers for reader, course home.\n"
