"""Functions that are alike: what does not matter does not count, and chance makes less than copying."""

import json
import random
from pathlib import Path

import pytest
from submissions import filled

from threeloops import cli
from threeloops.classroom.term import similar
from threeloops.classroom.term.normal_form import nodes, normal_form
from threeloops.classroom.term.similar import alike

SET = "kv_cache"
ONE = """
def reserved_bytes(*, block, tokens, per_token, requests):
    blocks = -(-tokens // block)
    return requests * blocks * block * per_token
"""
SAME = {
    "other names": ONE.replace("blocks", "n"),
    "another order": ONE.replace("requests * blocks * block * per_token", "per_token * (block * blocks) * requests"),
    "in one line": ONE.replace("    blocks = -(-tokens // block)\n", "").replace("blocks *", "-(-tokens // block) *"),
    "words around it": ONE.replace(":\n    blocks", ": # reserve\n    '''Bytes.'''\n    pass\n    blocks: int").replace(
        "*, block,", "*, block: int,"
    ),
    "two of them, the last one counts": f"def reserved_bytes(**given):\n    return 0\n\n{ONE}",
}
OTHER = {
    "another way": ONE.replace("-(-tokens // block)", "math.ceil(tokens / block)"),
    "a mistake": ONE.replace("-(-tokens // block)", "tokens // block"),
    "another number": ONE.replace("return", "return 2 *"),
    "minus is no plus": ONE.replace("* per_token", "- per_token"),
}


@pytest.mark.parametrize("code", SAME.values(), ids=SAME)
def test_what_does_not_matter_makes_no_other_form(code: str) -> None:
    assert normal_form(code, "reserved_bytes") == normal_form(ONE, "reserved_bytes") is not None


@pytest.mark.parametrize("code", OTHER.values(), ids=OTHER)
def test_what_matters_does(code: str) -> None:
    assert normal_form(code, "reserved_bytes") not in (None, normal_form(ONE, "reserved_bytes"))


def test_a_form_is_still_the_function() -> None:
    """It runs, and returns the same."""
    for code in (ONE, *SAME.values()):
        place: dict[str, object] = {}
        exec(normal_form(code, "reserved_bytes"), place)
        assert place["reserved_bytes"](block=16, tokens=33, per_token=10, requests=2) == 2 * 48 * 10


@pytest.mark.parametrize("code", ["def reserved_bytes(:", "x = 1", "\0", "(" * 5000, "%matplotlib inline"])
def test_what_cannot_be_read_has_no_form(code: str) -> None:
    assert normal_form(code, "reserved_bytes") is None
    assert nodes(code, "reserved_bytes") == 0


@pytest.mark.parametrize("depth", [90, 300, 900, 20_000])
def test_what_nobody_writes_stops_nothing(depth: int) -> None:
    for deep in ("-" * depth + "1", "1" + " - 1" * depth, "1" + " + 1" * depth, "x" + "[0]" * depth):
        normal_form(f"def reserved_bytes(x):\n    return {deep}", "reserved_bytes")


def test_chance_is_not_told_and_copying_is() -> None:
    """Sixty people, three functions, each form drawn from a dozen ways, common ones and rare ones: nobody is told of.
    Two who share rare forms in all three are.
    """
    rng, books = random.Random(3), {"f": "way 0", "g": "way 0", "h": "way 0"}
    students = [f"s{number}" for number in range(60)]
    weights = [1 / way for way in range(1, 13)]
    for _ in range(5):
        forms = {function: {one: f"way {rng.choices(range(12), weights)[0]}" for one in students} for function in books}
        assert alike(forms, books)[0] == ()
    for function in books:
        forms[function] |= {"s5": f"{function} alone", "s9": f"{function} alone"}
    groups, bound = alike(forms, books)
    assert groups == (("s5", "s9"),)
    assert bound > 0
    for function in books:
        forms[function] |= dict.fromkeys(students[:3], "way 0")
    assert all({"s0", "s1"} - {*group} for group in alike(forms, books)[0]), "the book's own form is everybody's"


def test_the_report_names_nobody_unless_it_is_told_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    term, students = tmp_path / "spring-27", [f"student{number:02}" for number in range(24)]
    (tmp_path / "class.csv").write_text("id\n" + "\n".join(students))
    for words in (
        ("new", term, "--timezone", "UTC", "--late", "none"),
        ("roster", tmp_path / "class.csv", "--term", term),
        ("release", SET, "--due", "2027-04-12", "--term", term),
    ):
        assert cli.main(["classroom", *map(str, words)]) == 0
    rng = random.Random(1)
    for number, student in enumerate(students):
        copied = number in (7, 19)
        text = filled(SET, student=student)
        for cell in text["cells"]:
            for name in ("reserved_bytes", "readable_bytes", "gpu_bytes"):
                if f"def {name}" in "".join(cell["source"]):
                    body = "0 if tokens < 1 else 7" if copied else f"{rng.randrange(1, 7)} * tokens"
                    cell["source"] = f"def {name}(*, tokens, **rest):\n    return {body}"
        path = tmp_path / "in" / student / f"{SET}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(text))
    assert cli.main(["classroom", "collect", SET, str(tmp_path / "in"), "--on-time", "--term", str(term)]) == 0
    capsys.readouterr()
    assert cli.main(["classroom", "similar", SET, "--term", str(term)]) == 0
    out = capsys.readouterr().out
    assert "student" not in out.replace("students", "")
    assert "paged " in out
    assert "24        " in out
    assert out.count("share rare forms in more functions") == 1
    assert "--ids names them" in out
    assert cli.main(["classroom", "similar", SET, "--ids", "--term", str(term)]) == 0
    assert "student07, student19: share rare forms" in capsys.readouterr().out


def test_a_short_function_is_said_to_be_short() -> None:
    one = similar.Function(grade_id="f", handed_in=9, book_nodes=5, forms=2, commonest=8, book=8, rare=0)
    report = similar.Report(functions=(one,), groups=(), bound_bits=3.0, numbers={})
    assert "short: alike says nothing" in similar.told(report, ids=False)
    assert f"more across the functions than {similar.DEALS} deals" in similar.told(report, ids=False)
