"""The pictures in README are what the library draws today, and README says in words what they show."""

import pytest

from tests.chapters.pictures import FOLDER, drawn


@pytest.mark.parametrize("name", drawn())
def test_a_committed_picture_is_todays_drawing(name: str) -> None:
    same = (FOLDER / name).read_bytes() == drawn()[name].png()  # told apart here: a picture's bytes explain nothing
    assert same, "draw it again: python -m tests.chapters.pictures"


@pytest.mark.parametrize("name", drawn())
def test_readme_shows_it_with_words(name: str) -> None:
    readme = (FOLDER.parents[1] / "README.md").read_text()
    (words,) = [line for line in readme.splitlines() if f"(chapters/pictures/{name})" in line]
    assert len(words.split("](")[0].split()) >= 15


def test_no_picture_lies_about_that_nobody_draws() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(drawn())
