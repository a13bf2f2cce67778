"""The parts of grading, one by one: reading what was handed in, transplanting it, judging values, naming a mistyped
id.
"""

import io
import json
import os
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from submissions import Notebook, asked, filled, released, right_number, set_source, signed

from threeloops.classroom import placing
from threeloops.classroom.intake import Person, handed_in, lone_notebook, person
from threeloops.classroom.judging import Examiner, judged, number_verdict, self_mark
from threeloops.classroom.questions import mark, questions, source
from threeloops.classroom.transplant import UnparsableError, disarmed, parsed, transplanted
from threeloops.sandbox import walls
from threeloops.sandbox.walls import Limits

SET = "kv_cache"
LIBRARY = Path(walls.__file__).parents[2]
SETS = ("all_reduce", "kv_cache")
RELEASE = json.dumps(released(SET)).encode()


# --- transplanting ------------------------------------------------------------------------------


def marked_cells(notebook: Notebook) -> list[tuple[object, ...]]:
    """All that nbgrader and the judge go by."""
    return [
        (cell["id"], cell["cell_type"], json.dumps(cell["metadata"], sort_keys=True))
        for cell in notebook["cells"]
        if not cell["id"].startswith("added-")
    ]


def test_a_notebook_transplanted_is_the_release_with_its_answers() -> None:
    made = transplanted(released(SET), filled(SET, student="ada"))
    assert [source(cell) for cell in made["cells"]] == [source(cell) for cell in filled(SET, student="ada")["cells"]]
    assert transplanted(released(SET), made) == made, "a second time changes nothing"


def test_added_code_stays_where_it_stood_and_counts_for_nothing_else() -> None:
    notebook = filled(SET, student="ada")
    where = [cell["id"] for cell in notebook["cells"]].index("paged-answer")
    notebook["cells"].insert(
        where, {"cell_type": "code", "source": "blocks = 7", "metadata": {}, "outputs": [{"secret": 1}], "id": "mine"}
    )
    notebook["cells"].insert(0, {"cell_type": "markdown", "source": "my notes", "metadata": {}, "id": "notes"})
    made = transplanted(released(SET), notebook)
    ids = [cell["id"] for cell in made["cells"]]
    assert source(made["cells"][ids.index("paged-answer") - 1]) == "blocks = 7"
    assert made["cells"][ids.index("paged-answer") - 1] == {**made["cells"][ids.index("added-0")]}
    assert made["cells"][ids.index("added-0")]["outputs"] == []
    assert marked_cells(made) == marked_cells(transplanted(released(SET), released(SET)))


def test_of_doubled_answers_the_last_one_written_counts() -> None:
    notebook = released(SET)
    (answer,) = [cell for cell in notebook["cells"] if cell["id"] == "one-token-answer"]
    notebook["cells"] += [{**answer, "source": "one_token = '1 B'"}, {**answer, "source": "one_token = '2 B'"}, answer]
    made = transplanted(released(SET), notebook)
    assert [source(cell) for cell in made["cells"] if cell["id"] == "one-token-answer"] == ["one_token = '2 B'"]


def test_transplanting_takes_no_longer_than_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: each cell is looked at a few times, however many cells the release has."""
    looks = []
    monkeypatch.setattr(placing, "mark", lambda cell, name: looks.append(name) or mark(cell, name))
    notebook = {"nbformat": 4, "cells": [*filled(SET, student="ada")["cells"], *[{}] * 4_000]}
    made = transplanted(released(SET), parsed(json.dumps(notebook).encode()))
    assert source(made["cells"][-1]) == source(released(SET)["cells"][-1])
    assert len(looks) < 4 * len(notebook["cells"])
    with pytest.raises(UnparsableError, match="at most 5,000"):
        parsed(json.dumps({"nbformat": 4, "cells": [{}] * 5_001}).encode())


FIELDS = some.sampled_from(["source", "metadata", "nbgrader", "grade_id", "id", "cell_type", "threeloops"])
ATOMS = some.none() | some.booleans() | some.floats() | some.text(max_size=8)
some_json = some.recursive(
    ATOMS, lambda inner: some.lists(inner, max_size=3) | some.dictionaries(FIELDS, inner, max_size=4)
)


@settings(max_examples=150, deadline=None)
@given(some.lists(some_json, max_size=6), some.randoms())
def test_no_notebook_whatever_changes_what_is_asked(odd: list[object], chance: object) -> None:
    notebook = filled(SET, student="ada")
    cells = [*notebook["cells"], *odd]
    chance.shuffle(cells)  # type: ignore[attr-defined]
    made = transplanted(released(SET), parsed(json.dumps({"nbformat": 4, "cells": cells}).encode()))
    assert marked_cells(made) == marked_cells(released(SET))
    assert questions(made) == questions(released(SET))


@given(some.binary(max_size=200))
def test_any_bytes_are_a_notebook_or_refused_in_one_sentence(content: bytes) -> None:
    with pytest.raises(UnparsableError) as refusal:
        parsed(content)
    assert "\n" not in str(refusal.value)


def test_the_nearest_notebook_is_read() -> None:
    assert parsed(RELEASE)["nbformat"] == 4
    assert parsed(b"\xef\xbb\xbf" + RELEASE)["nbformat"] == 4, "a byte order mark is no fault of a student's"


@pytest.mark.parametrize(
    "prose",
    [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "![x](http://a/b)",
        "[x][y]\n\n[y]: javascript:1",
        "<a href='x'>",
        "<http://x>",
    ],
)
def test_prose_is_shown_without_anything_that_acts(prose: str) -> None:
    import nbconvert.filters

    page = nbconvert.filters.markdown2html(disarmed(prose))
    assert not any(tag in page for tag in ("<script", "<img", 'href="javascript', "<a href='x'"))


# --- judging values -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ({"kind": "missing"}, "unanswered"),
        ({"kind": "unwritten"}, "unanswered"),
        ({}, "unanswered"),
        ({"kind": ["text"]}, "unanswered"),
        ({"kind": "text", "text": "24.5"}, "unreadable"),
        ({"kind": "text", "text": {"right": True}}, "unreadable"),
        ({"kind": "number", "text": "nan"}, "unreadable"),
        ({"kind": "number", "text": "1.0"}, "unreadable"),  # of what?
        ({"kind": "number", "text": "__import__('os')"}, "unreadable"),
        ({"kind": "other", "text": "dict"}, "unreadable"),
        ({"kind": "list", "text": "[1.0]"}, "unreadable"),
        ({"kind": "other", "text": "<script>"}, "unreadable"),
        ({"kind": "text", "text": "1 B"}, "off"),
    ],
)
def test_whatever_comes_back_is_judged(value: dict[str, object], status: str) -> None:
    verdict = number_verdict("kv-bytes-per-token", value, course="home", student="ada")
    assert verdict.status == status
    assert "<" not in verdict.message


def test_hidden_draws_follow_the_key_the_student_and_the_submission() -> None:
    def secret(key: bytes = b"k", student: str = "ada", words: str = "w") -> str:
        return Examiner(student=student, course="home", key=key).secret(words)

    assert secret() == secret()
    assert len({secret(), secret(key=b"other"), secret(student="grace"), secret(words="another")}) == 4


# --- who handed it in: unsandboxed, the code is ours --------------------------------------------


def as_handed_in(notebook: Notebook, folder: str) -> object:
    made = transplanted(released(SET), notebook)
    return judged(made, Examiner(student=folder, course="home", key=b"k", sandboxed=False))


def test_a_mistyped_id_is_named_and_its_answers_are_held() -> None:
    outcome = as_handed_in(filled(SET, student="adda"), "ada")
    numbers = [one.grade_id for one in asked(SET).values() if one.kind == "number"]
    assert {outcome.verdicts[grade_id].status for grade_id in numbers} <= {"held", "right"}  # type: ignore[attr-defined]
    assert "held" in {outcome.verdicts[grade_id].status for grade_id in numbers}  # type: ignore[attr-defined]
    assert any("student 'adda'" in note for note in outcome.notes)  # type: ignore[attr-defined]
    assert all(outcome.verdicts[one.grade_id].right for one in asked(SET).values() if one.kind == "function")  # type: ignore[attr-defined]


def test_a_mistyped_course_is_named_too_and_wrong_answers_stay_wrong() -> None:
    notebook = filled(SET, student="ada", course="hoem")
    set_source(notebook, "one-token-answer", "one_token = '1 B'")
    outcome = as_handed_in(notebook, "ada")
    assert outcome.verdicts["one-token"].status == "off"  # type: ignore[attr-defined]
    assert outcome.verdicts["a-batch"].status == "held"  # type: ignore[attr-defined]
    assert any("course 'hoem'" in note for note in outcome.notes)  # type: ignore[attr-defined]


def test_the_same_id_typed_otherwise_is_no_mistake() -> None:
    notebook = signed(filled(SET, student="ada-lovelace"), student=" Ada LOVELACE ")
    outcome = as_handed_in(notebook, "ada-lovelace")
    assert outcome.notes == []  # type: ignore[attr-defined]
    assert all(verdict.right for verdict in outcome.verdicts.values())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("code", "marked"),
    [
        ("print('\\ud83d'); self_marked = 2", 2.0),
        ("self_marked = '2'", 2.0),
        ("self_marked = float('nan')", None),
        ("self_marked = type('\\ud83d', (), {})()", None),
    ],
)
def test_half_a_character_or_an_odd_self_mark_costs_nothing(code: str, marked: float | None) -> None:
    """A program that was cut in the middle of an emoji prints half of it; no file and no database can hold that."""
    notebook = filled(SET, student="ada")
    set_source(notebook, "doubling-gpus-mark", code)
    outcome = as_handed_in(notebook, "ada")
    assert all(verdict.right for verdict in outcome.verdicts.values())  # type: ignore[attr-defined]
    assert outcome.self_marked == marked  # type: ignore[attr-defined]
    "".join(outcome.printed.values()).encode()  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", ["", "two", "1_0", [2], {}, None])
def test_a_self_mark_that_is_no_number_is_none(text: object) -> None:
    assert self_mark({"kind": "number", "text": text}) is None
    assert self_mark({"kind": "number"}) is None
    assert self_mark({"kind": "number", "text": "2.0"}) == 2


# --- the time that one submission has ------------------------------------------------------------


def test_a_submission_has_one_time_limit_for_all_its_starts() -> None:
    notebook = filled(
        SET, student="ada", wrong={"a-batch": "import os\nos._exit(1)", "latent": "import time\ntime.sleep(600)"}
    )
    start = time.monotonic()
    outcome = judged(
        transplanted(released(SET), notebook),
        Examiner(student="ada", course="home", key=b"k", sandboxed=False, limits=Limits(total_s=12, cell_s=600)),
    )
    assert time.monotonic() - start < 300, "the second start would have waited ten minutes"
    assert outcome.status == "died"
    assert "it took longer than 12 s in all" in outcome.notes
    assert outcome.verdicts["one-token"].right


# --- taking in ----------------------------------------------------------------------------------


def test_one_readers_notebook_is_told_from_a_class(tmp_path: Path) -> None:
    path = tmp_path / "kv_cache" / "kv_cache.ipynb"
    path.parent.mkdir()
    path.write_bytes(RELEASE)
    assert lone_notebook(path, SETS) == ("kv_cache", path)
    assert lone_notebook(path.parent, SETS) == ("kv_cache", path)
    assert lone_notebook(tmp_path, SETS) is None


def test_a_loose_notebook_makes_no_reader_of_a_class(tmp_path: Path) -> None:
    for path in ("kv_cache.ipynb", "ada/kv_cache.ipynb", ".ipynb_checkpoints/kv_cache.ipynb"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(path.encode())
    assert lone_notebook(tmp_path, SETS) is None
    found = handed_in(tmp_path, SETS)
    assert [(one.student, one.content) for one in found.submissions] == [("ada", b"ada/kv_cache.ipynb")]
    assert found.left_out == ("'kv_cache.ipynb', which lies in no student's folder",)
    for place in (tmp_path / "ada", tmp_path / "ada" / "kv_cache.ipynb"):
        (one,) = handed_in(place, SETS).submissions
        assert (one.student, one.content) == ("ada", b"ada/kv_cache.ipynb"), "one student of a class, by the folder"


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_uploads_of_learning_platforms_are_read(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "uploads.zip",
        {
            "Ada Lovelace_123_assignsubmission_file_/kv_cache.ipynb": b"1",
            "hoppergrace_LATE_12_34_kv_cache-1.ipynb": b"2",
            "curie/deep/er/kv_cache.ipynb": b"3",
            "__MACOSX/curie/._kv_cache.ipynb": b"no",
            "curie/.ipynb_checkpoints/kv_cache.ipynb": b"no",
            "readme.txt": b"no",
            "noether/essay.pdf": b"no",
            "noether/": b"",
        },
    )
    found = handed_in(path, SETS)
    assert found.name == "kv_cache"
    assert {one.student: one.content for one in found.submissions} == {
        "ada-lovelace": b"1",
        "hoppergrace": b"2",
        "curie": b"3",
        "noether": None,
    }


def test_a_zip_that_climbs_or_swells_stays_where_it_is(tmp_path: Path) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../../tmp/evil/kv_cache.ipynb", b"x")
        archive.writestr("/etc/kv_cache.ipynb", b"y")
        archive.writestr("swollen/kv_cache.ipynb", b"0" * 60_000_000)
        link = zipfile.ZipInfo("linked/kv_cache.ipynb")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    (tmp_path / "z.zip").write_bytes(bomb.getvalue())
    before = set(tmp_path.rglob("*"))
    found = handed_in(tmp_path / "z.zip", SETS)
    linked, swollen = found.submissions
    assert (linked.student, linked.read, swollen.student) == ("linked", None, "swollen")
    assert linked.others == ("'linked/kv_cache.ipynb' is a link, which is not followed",)
    assert [line for line in found.left_out if "leads out" in line] == list(found.left_out)
    assert len(found.left_out) == 2
    assert len(swollen.content or b"") == 20_000_001
    assert set(tmp_path.rglob("*")) == before


def test_a_damaged_member_hurts_nobody_else(tmp_path: Path) -> None:
    path = zipped(tmp_path / "z.zip", {"ada/kv_cache.ipynb": RELEASE * 3, "grace/kv_cache.ipynb": RELEASE})
    content = bytearray(path.read_bytes())
    content[200:260] = b"\0" * 60
    path.write_bytes(content)
    found = {one.student: one.content for one in handed_in(path, SETS).submissions}
    assert (found["ada"], found["grace"]) == (b"", RELEASE)


def test_folders_files_links_and_a_class_list(tmp_path: Path) -> None:
    for name in ("ada", "grace"):
        (tmp_path / name).mkdir()
    (tmp_path / "ada" / "kv_cache.ipynb").write_bytes(b"1")
    (tmp_path / "Curie_5_6_kv_cache.ipynb").write_bytes(b"2")
    os.symlink("/etc/passwd", tmp_path / "spy_1_2_kv_cache.ipynb")
    (tmp_path / "mole").mkdir()
    os.symlink("/etc/passwd", tmp_path / "mole" / "kv_cache.ipynb")
    found = handed_in(tmp_path, SETS, roster=["Ada", "Emmy"])
    assert {one.student: one.content for one in found.submissions} == {
        "ada": b"1",
        "curie": b"2",
        "emmy": None,
        "grace": None,
        "mole": None,
        "spy": None,
    }
    assert {one.student for one in found.submissions if one.others} == {"mole", "spy"}, "whose links are named"


def test_two_notebooks_of_one_student_are_said(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "z.zip",
        {"Ada_1_assignsubmission_file_/kv_cache.ipynb": b"1", "Ada_1_assignsubmission_file_/z/kv_cache.ipynb": b"2"},
    )
    (one,) = handed_in(path, SETS).submissions
    assert (one.student, one.content) == ("ada", b"2")
    assert "two notebooks" in one.problem


def test_a_notebook_of_another_set_stops_nobody(tmp_path: Path) -> None:
    members = {
        "ada/kv_cache.ipynb": b"1",
        "ada/all_reduce.ipynb": b"2",
        "grace/kv_cache.ipynb": b"3",
        "emmy/all_reduce.ipynb": b"4",
        "curie/kv_cache.ipynb": b"5",
    }
    path = zipped(tmp_path / "z.zip", members)
    found = handed_in(path, SETS)
    assert found.name == "kv_cache"
    assert [one.content for one in found.submissions] == [b"1", b"5", None, b"3"]
    assert found.left_out == ("all_reduce, handed in by 2; --set all_reduce grades that",)
    asked_for = handed_in(path, SETS, drill_set="all_reduce")
    assert [one.content for one in asked_for.submissions] == [b"2", None, b"4", None]
    with pytest.raises(ValueError, match="drill_set"):
        handed_in(path, SETS, drill_set="nothing")


def test_people_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    """By the platform's own number, or by the folder's name to the letter; nobody overwrites anybody."""
    members = {
        "John Smith_101_assignsubmission_file_/kv_cache.ipynb": b"1",
        "John Smith_202_assignsubmission_file_/kv_cache.ipynb": b"2",
        "Ada_9_assignsubmission_file__77_assignsubmission_file_/kv_cache.ipynb": b"3",
        "Ada_9_assignsubmission_file_/kv_cache.ipynb": b"4",
        "Grace/kv_cache.ipynb": b"5",
        "grace./kv_cache.ipynb": b"6",
        "curie_5_6_kv_cache.ipynb": b"7",
        "curie_8_9_kv_cache.ipynb": b"8",
        "../emmy/kv_cache.ipynb": b"no",
        "emmy/kv_cache.ipynb": b"9",
        "\N{GRINNING FACE}/kv_cache.ipynb": b"10",
        "!!!/kv_cache.ipynb": b"11",
    }
    found = handed_in(zipped(tmp_path / "z.zip", members), SETS, roster=["Grace", "GRACE", "Zoë", "zoë!"])
    assert sorted(one.content for one in found.submissions if one.content) == sorted(
        content for content in members.values() if content != b"no"
    )
    ids = {one.content: one.student for one in found.submissions}
    assert (ids[b"1"], ids[b"2"], ids[b"4"], ids[b"9"]) == ("john-smith~101", "john-smith~202", "ada", "emmy")
    assert ids[b"3"].startswith("ada-9-assign")
    assert {ids[content].partition("~")[0] for content in (b"5", b"6", b"7", b"8", b"10", b"11")} == {
        "grace",
        "curie",
        "",
    }
    assert len({one.student for one in found.submissions}) == 13, "eleven who handed in, and both who are called Zoë"
    assert all("people are called grace" in one.problem for one in found.submissions if "grace" in one.student)
    assert any("no letter" in one.problem for one in found.submissions)
    assert found.left_out == ("'../emmy/kv_cache.ipynb' leads out of the zip",)


def test_what_is_handed_in_is_read_one_file_at_a_time(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"s{number}").mkdir()
        with (tmp_path / f"s{number}" / "kv_cache.ipynb").open("wb") as file:
            file.truncate(20_000_000)  # a file with a hole: large to whoever reads it
    tracemalloc.start()
    try:
        found = handed_in(tmp_path, SETS)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
        assert [len(one.content or b"") for one in found.submissions] == [20_000_000] * 12
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()


def test_a_small_file_that_would_fill_the_memory_is_refused_unread() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(UnparsableError, match="lists and objects"):
            parsed(b'{"nbformat": 4, "cells": [' + b"[]," * 1_500_000 + b"0]}")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"ada/essay.ipynb": b"1"}, "no notebook of a drill set"),
        ({"a/kv_cache.ipynb": b"1", "a/all_reduce.ipynb": b"1"}, "--set all_reduce says which"),
    ],
)
def test_what_cannot_be_graded_is_refused_in_one_sentence(tmp_path: Path, members: dict[str, bytes], told: str) -> None:
    with pytest.raises(ValueError, match=told) as refusal:
        handed_in(zipped(tmp_path / "z.zip", members), SETS)
    assert "\n" not in str(refusal.value)
    with pytest.raises(ValueError, match="does not exist"):
        handed_in(tmp_path / "nowhere", SETS)
    (tmp_path / "x.zip").write_bytes(b"PK not a zip")
    with pytest.raises(ValueError, match="neither a notebook"):
        handed_in(tmp_path / "x.zip", SETS)


def test_a_students_name_is_read_from_what_platforms_make_of_it() -> None:
    assert person("a_b_c/kv_cache.ipynb") == Person("a_b_c", "a_b_c")
    assert person("kv_cache.ipynb").name == "kv_cache"


def test_the_id_cell_is_the_students_own() -> None:
    made = transplanted(released(SET), signed(released(SET), student="ada"))
    (cell,) = [cell for cell in made["cells"] if cell["id"] == "who"]
    assert "student = 'ada'" in source(cell)
    assert mark(cell, "grade_id") is None
    one = asked(SET)["one-token"]
    assert right_number(one, student="ada") != right_number(one, student="grace")
