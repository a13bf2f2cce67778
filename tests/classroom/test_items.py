"""How questions did: formulas against those of numpy and scipy, and what a teacher reads of terms that were made to
have a bad question.
"""

import csv
import random
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from threeloops import cli
from threeloops.classroom.term import items
from threeloops.classroom.term.items import Answers

SET = "kv_cache"
HEAD = ("student", "status", "question", "drill", "outcome", "slips", "points", "maximum", "notes")
GOOD = ("one-token", "a-batch", "latent")
DRILL = {
    "one-token": "kv-bytes-per-token",
    "a-batch": "kv-whole-requests",
    "latent": "kv-latent",
    "scales": "kv-scales",
}


def run(*words: object) -> int:
    return cli.main(["classroom", *map(str, words)])


def term(folder: Path, students: int, *, seed: int, easier: float = 0.0, scales: str = "coin") -> Path:
    """A graded term whose students know more or less; three questions show it, `scales` shows what is asked for."""
    assert run("new", folder, "--timezone", "UTC", "--late", "none") == 0
    rng = random.Random(seed)
    rows = []
    for number in range(students):
        knows = rng.random()
        right = {one: rng.random() < min(1.0, knows + easier) for one in GOOD}
        right["scales"] = {"coin": rng.random() < 0.5, "all": True, "against": knows < 0.5}[scales]
        for question, well in right.items():
            slips = "" if well or rng.random() < 0.5 else "kv-heads"
            outcome = "right" if well else "wrong"
            rows.append((f"s{number}", "graded", question, DRILL[question], outcome, slips, int(well), 1, ""))
    rows.append(("absent", "missing", "", "", "", "", 0, "", "no notebook was handed in"))
    (folder / "graded").mkdir()
    with (folder / "graded" / f"grades-{SET}.csv").open("w", newline="") as file:
        csv.writer(file).writerows([HEAD, *rows])
    return folder


@pytest.mark.parametrize("seed", range(20))
def test_the_formulas_are_those_of_others(seed: int) -> None:
    rng = random.Random(seed)
    groups = [
        [(float(rng.random() < 0.6), round(10 * rng.random() + shift, 2)) for _ in range(rng.randrange(8, 40))]
        for shift in (0.0, 50.0)
    ]
    one = groups[0]
    r = items.discrimination([one])
    x, y = zip(*one, strict=True)
    if len(set(x)) < 2:
        assert r is None
        return
    assert r == pytest.approx(np.corrcoef(x, y)[0, 1])
    theirs = scipy.stats.pearsonr(x, y).confidence_interval(0.95)
    assert items.fisher_interval(r, len(one)) == pytest.approx((theirs.low, theirs.high))
    centred = [np.array(group) - np.mean(group, axis=0) for group in groups]
    together = np.concatenate(centred)
    assert items.discrimination(groups) == pytest.approx(np.corrcoef(together[:, 0], together[:, 1])[0, 1])


def test_a_stronger_class_is_not_taken_for_knowledge() -> None:
    """Where nobody's answer depends on what they know, two classes of different strength would correlate."""
    people = []
    for group, share in (("weak", 0.1), ("strong", 0.9)):
        rng = random.Random(group)
        for _ in range(400):
            points = {one: float(rng.random() < share) for one in ("a", "b", "c")}
            people.append(Answers(group=group, points=points, shares=points))
    for one in items.analysed(people):
        assert one.discrimination is not None
        assert abs(one.discrimination) < 0.1
    thrown = [Answers(group="", points=one.points, shares=one.shares) for one in people]
    assert all((one.discrimination or 0) > 0.5 for one in items.analysed(thrown))


def test_a_question_that_does_not_discriminate_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = term(tmp_path / "spring-26", 120, seed=1), term(tmp_path / "spring-27", 150, seed=2, easier=0.3)
    capsys.readouterr()
    assert run("items", SET, "--term", other, "--with", one) == 0
    out = capsys.readouterr().out
    assert out.startswith("kv_cache: 270 students (spring-27 150, spring-26 120).\n")
    look = out.partition("Look at:\n")[2].partition("\n\n")[0]
    assert look.splitlines()[0].startswith("  scales (What four bits really cost): it does not discriminate (")
    assert len(look.splitlines()) == 1
    (heads,) = [line for line in out.splitlines() if line.startswith("question")]
    assert heads.split() == [
        "question",
        "right",
        "spring-27",
        "spring-26",
        "discrimination",
        "most",
        "frequent",
        "mistake",
    ]
    assert "kv-heads, " in out
    assert "absent" not in out
    assert "few" not in out
    alone = term(tmp_path / "autumn", 12, seed=3, scales="all")
    capsys.readouterr()
    assert run("items", SET, "--term", alone) == 0
    out = capsys.readouterr().out
    assert "12 students: few. Below 30 an interval holds nearly everything" in out
    assert "scales (What four bits really cost): everybody has it right, so it tells nobody apart." in out
    against = term(tmp_path / "winter", 80, seed=4, scales="against")
    capsys.readouterr()
    assert run("items", SET, "--term", against) == 0
    assert "whoever knows the rest gets it wrong: read it again, and its key." in capsys.readouterr().out


def test_versions_of_an_exam_on_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = term(tmp_path / "spring-27", 1, seed=1)
    rng = random.Random(5)
    path = tmp_path / "marks.csv"
    lines = ["student;version;question;points;maximum"]
    for number in range(60):
        knows, version = rng.random(), "AB"[number % 2]
        for question in ("1", "2", "3"):
            well = rng.random() < knows * (0.5 if (version, question) == ("B", "3") else 1)
            lines.append(f"s{number};{version};{question};{4 * well};4")
    path.write_text("\n".join(lines) + "\n")
    capsys.readouterr()
    assert run("items", "midterm", "--results", path, "--term", folder) == 0
    out = capsys.readouterr().out
    assert out.startswith("midterm: 60 students (A 30, B 30).\n")
    (third,) = [line.split() for line in out.splitlines() if line.startswith("3 ")]
    a, b = float(third[3]), float(third[5])
    assert third[::2][:3] == ["3", "%", "%"]
    assert a > b + 10, "the version in which it is harder shows"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("student,question,points\na,1,1\n", "has no column maximum; a list of results has student, question, points"),
        ("student,question,points,maximum\na,1,one,1\n", "line 2: points 'one' must be a number of points"),
        ("student,question,points,maximum\na,1,3,2\n", "line 2: 3 of 2 points cannot be"),
        ("student,question,points,maximum\na,1,nan,2\n", "points 'nan' must be a number of points"),
        ("student,question,points,maximum\na,,,\n", "nobody has a graded answer there"),
        ("student,question,points,maximum,outcome\na,1,0,1,held\n", "nobody has a graded answer there"),
    ],
)
def test_a_wrong_list_is_refused(text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = term(tmp_path / "spring-27", 1, seed=1)
    (tmp_path / "marks.csv").write_text(text)
    capsys.readouterr()
    assert run("items", "midterm", "--results", tmp_path / "marks.csv", "--term", folder) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), told in err) == ("", 1, True), err
    words = ("--results", tmp_path / "marks.csv", "--with", folder, "--term", folder)
    assert run("items", "midterm", *words) == 2
    assert "leave --with out" in capsys.readouterr().err


def test_another_question_under_the_same_name_is_another(tmp_path: Path) -> None:
    drills: dict[str, str] = {}
    for name, drill in (("new.csv", "kv-scales"), ("old.csv", "kv-latent")):
        (tmp_path / name).write_text(f"student,question,drill,points,maximum\na,scales,{drill},1,1\n")
    (new,) = items.read(tmp_path / "new.csv", "new", drills)
    (old,) = items.read(tmp_path / "old.csv", "old", drills)
    assert (list(new.points), list(old.points)) == (["scales"], ["scales/kv-latent"])
    assert drills == {"scales": "kv-scales", "scales/kv-latent": "kv-latent"}
