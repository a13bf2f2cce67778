"""What is done once per class is what nbgrader would do each time: the same pages, the same rows."""

import re

import bs4
import nbconvert.exporters.html
import pytest
from nbgrader.api import Gradebook, MissingEntry
from submissions import ROOT, asked, filled

from threeloops.classroom import summary
from threeloops.classroom.course import Course
from threeloops.classroom.stages import KeptGradebook
from threeloops.sandbox import walls

SET = "kv_cache"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    folder = tmp_path_factory.mktemp("pages")
    course = Course(root=ROOT, work=folder / "work", judge={"sandboxed": not walls.problem()})
    course.prepare(SET)
    for student in ("ada", "grace"):
        course.autograde(SET, student, filled(SET, student=student, wrong={"a-batch": "batch_cache = '1 GB'"}))
        course.feedback(SET, student)
    return course


def test_a_page_is_what_nbconvert_makes(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    assert summary._in_colour.cache_info().hits > 20, "two students, the same questions"
    quick = course.folder("feedback", "ada", SET) / f"{SET}.html"
    page = quick.read_text()
    plain = Course(root=ROOT, work=course.work, judge=course.judge)
    del plain.config["HTMLExporter"]["filters"]
    monkeypatch.setattr(nbconvert.exporters.html, "BeautifulSoup", bs4.BeautifulSoup)
    assert bs4.BeautifulSoup(plain.feedback(SET, "ada").read_text(), "html.parser") == bs4.BeautifulSoup(
        page, "html.parser"
    )


def test_a_page_asks_nothing_of_a_network(course: Course) -> None:
    page = bs4.BeautifulSoup((course.folder("feedback", "ada", SET) / f"{SET}.html").read_text(), "html.parser")
    asks = [
        tag.get(name) for tag in page.find_all(True) for name in ("src", "srcset", "data", "action") if tag.get(name)
    ]
    asks += [tag["href"] for tag in page.find_all("link")]
    asks += re.findall(
        r"(?:url\(|@import\s+)[\"']?(?!data:)([^\s)\"']+)", "".join(tag.text for tag in page.find_all("style"))
    )
    assert asks, "of fonts beside it, which are not there either"
    assert not [one for one in asks if "//" in one]


def test_a_row_is_the_one_that_nbgrader_finds(course: Course) -> None:
    theirs = Gradebook(course.database, "three_loops")
    with theirs, KeptGradebook(course.database, "three_loops") as ours:
        for student in ("ada", "grace"):
            for grade_id in asked(SET):
                names = (grade_id, SET, SET, student)
                assert ours.find_grade(*names).id == theirs.find_grade(*names).id
                assert ours.find_grade(*names).score == theirs.find_grade(*names).score
                answer = (f"{grade_id}-answer", SET, SET, student)
                assert ours.find_comment(*answer).id == theirs.find_comment(*answer).id
                for name in (grade_id, f"{grade_id}-answer"):
                    assert ours.find_source_cell(name, SET, SET).id == theirs.find_source_cell(name, SET, SET).id
                assert ours.find_graded_cell(*names[:3]).id == theirs.find_graded_cell(*names[:3]).id
        for find in (ours.find_grade, ours.find_comment):
            with pytest.raises(MissingEntry):
                find("no-such-cell", SET, SET, "ada")


def test_a_page_with_something_to_change_is_read_anew() -> None:
    for page in ('<img src="x">', "<IMG\n src='x'>", '<div class="jp-Notebook"></div>'):
        assert isinstance(summary.read_where_needed(page, "html.parser"), bs4.BeautifulSoup)
    assert str(summary.read_where_needed('<img src="x" alt="y"><br>', "html.parser")) == '<img src="x" alt="y"><br>'
