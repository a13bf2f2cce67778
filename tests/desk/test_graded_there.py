"""A drill set is graded where it stands, and the book is searched: what the server of the desk answers."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from threeloops import contents
from threeloops.desk import copies, grading, server
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.student_draws import HOME_COURSE, HOME_STUDENT, posed

BOOK = contents.book_root()


@pytest.mark.timeout(300)
def test_a_set_is_graded_as_the_command_grades_it(tmp_path: Path) -> None:
    for name in (f"drills/{contents.STARTER}", f"solutions/{contents.STARTER}"):
        shutil.copytree(BOOK / name, tmp_path / name)
    shutil.copy(BOOK / "nbgrader_config.py", tmp_path)
    own = next(path for key, path in copies.all_copies(tmp_path).items() if contents.STARTER in key)
    notebook = json.loads(own.read_text())
    drill = DRILLS["roofline-ridge-point"]
    value = drill.derive(posed(drill, course=HOME_COURSE, student=HOME_STUDENT)).value
    for cell in notebook["cells"]:
        if cell["id"] == "ridge-answer":
            cell["source"] = f'ridge_point = "{value!r} {drill.unit}"'
    own.write_text(json.dumps(notebook))
    told = json.loads(grading.graded(contents.STARTER, tmp_path))
    assert told["mark"] == "1 / 5"
    assert "1 of 5 points" in (tmp_path / told["page"]).read_text()
    own.write_text("{")
    broken = json.loads(grading.graded(contents.STARTER, tmp_path))
    assert (broken["mark"], broken["page"]) == ("", "")
    assert broken["said"]


def test_a_grading_that_takes_too_long_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading, "GRADES_S", 0.01)
    told = json.loads(grading.graded(contents.STARTER, tmp_path))
    assert (told["mark"], told["page"]) == ("", "")
    assert "took more than 0.01 s" in told["said"]
    assert f"book.py grade my/drills/{contents.STARTER}" in told["said"]


def test_a_feedback_page_is_found_where_my_is_a_link_and_told_where_it_is_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, disk = tmp_path / "book", tmp_path / "disk"
    (disk / "graded").mkdir(parents=True)
    root.mkdir()
    (root / "my").symlink_to(disk)
    (disk / "graded/marks.json").write_text('{"set": {"points": 1, "maximum": 5}}')

    def graded_into(page: Path) -> dict[str, str]:
        done = subprocess.CompletedProcess([], 0, stdout=f"Feedback: {page}\n", stderr="")
        monkeypatch.setattr(grading.subprocess, "run", lambda *_, **__: done)
        told: dict[str, str] = json.loads(grading.graded("set", root))
        return told

    for page in (root / "my/graded/a.html", disk / "graded/a.html"):
        assert graded_into(page)["mark"] == "1 / 5"
    assert graded_into(root / "my/graded/a.html")["page"] == "my/graded/a.html"
    outside = graded_into(tmp_path / "a.html")
    assert outside["page"] == ""
    assert outside["said"].endswith(
        f"That page is outside {root}, which is all that JupyterLab shows: a browser opens it as a file."
    )


def test_every_page_that_is_found_is_a_notebook_of_the_readers() -> None:
    told = json.loads(server.searched(BOOK))
    known = {place.copy for place in contents.places(BOOK)}
    assert known == set(told["copies"].values())
    assert {page for page, *_ in told["index"]["places"]} == set(told["copies"])
    assert "export function found" in told["script"]


def test_what_only_gets_ready_is_folded_and_a_way_leads_on_where_one_may_stop(tmp_path: Path) -> None:
    for name in ("chapters", "drills"):
        shutil.copytree(BOOK / name, tmp_path / name)
    for path in copies.all_copies(tmp_path).values():
        cells = json.loads(path.read_text())["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        folded = [cell for cell in code if cell["metadata"].get("jupyter", {}).get("source_hidden")]
        assert code[0] in folded or code[0]["source"][0].startswith("prediction"), path
        assert not [cell for cell in folded if cell["metadata"].get("threeloops", {}).get("card")], path
        stops = [text for cell in cells if "**You can stop here.**" in (text := "".join(cell["source"]))]
        if "chapters" in path.parts:
            assert len(stops) == 1, path
            assert "From here: " in stops[0], path
            assert "[Start](../../start.html)" in stops[0], path
