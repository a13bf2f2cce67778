"""The desk: copies, editions, reset, places. The reader's own work is never lost."""

import json
from pathlib import Path
from typing import Any

import pytest

from threeloops import contents, desk

PARTS = ["## 1 Three loops · 40 min", "## 2 Roofline · 60 min", "## 3 What a kernel is · 70 min"]


def cell(kind: str, source: str, name: str) -> dict[str, Any]:
    outputs = (
        {"outputs": [{"output_type": "stream", "name": "stdout", "text": ["42"]}], "execution_count": 7}
        if kind == "code"
        else {}
    )
    return {"cell_type": kind, "id": name, "metadata": {}, "source": [source], **outputs}


def write(path: Path, cells: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def chapter(*extra: str) -> list[dict[str, Any]]:
    cells = [cell("markdown", "# 1 The inner loop", "title")]
    for number, heading in enumerate([*PARTS, *extra]):
        cells += [
            cell("markdown", f"{heading}\n\n> A card.", f"card-{number}"),
            cell("code", "prediction = ...", f"code-{number}"),
        ]
    return cells


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "chapters/1_inner_loop.ipynb", chapter())
    write(
        tmp_path / "chapters/2_training_loop.ipynb",
        [cell("markdown", "## 1 Rings · 50 min", "rings-card"), cell("code", "## 9 Not a heading", "code")],
    )
    return tmp_path


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def answer(copy: Path, text: str) -> None:
    notebook = read(copy)
    notebook["cells"][2]["source"] = [text]
    copy.write_text(json.dumps(notebook))


# --- places ---


def test_places_are_the_parts_in_reading_order(root: Path) -> None:
    found = [(place.chapter, place.number, place.title, place.cell) for place in contents.places(root)]
    assert found == [
        ("1", "1", "Three loops", "card-0"),
        ("1", "2", "Roofline", "card-1"),
        ("1", "3", "What a kernel is", "card-2"),
        ("2", "1", "Rings", "rings-card"),
    ]


@pytest.mark.parametrize("word", ["2", "1.2", "roofline", " ROOF "])
def test_a_part_is_found_by_number_or_by_any_piece_of_its_title(root: Path, word: str) -> None:
    assert contents.find_place(word, root).title == "Roofline"


def test_a_word_that_fits_several_parts_or_none_is_refused_with_the_choice(root: Path) -> None:
    with pytest.raises(ValueError, match=r"2 parts fit '1'; choose one of: 1.1 Three loops; 2.1 Rings"):
        contents.find_place("1", root)
    with pytest.raises(ValueError, match=r"no part is called 'quantum'; choose one of: 1.1 Three loops; 1.2 Roofline"):
        contents.find_place("quantum", root)
    with pytest.raises(ValueError, match="no part is called ''"):
        contents.find_place("", root)


# --- copies ---


def test_a_copy_has_everything_but_the_outputs(root: Path) -> None:
    source = root / "chapters/1_inner_loop.ipynb"
    copy = desk.readers_copy(source, root)
    assert copy == root / "my/chapters/1_inner_loop.ipynb"
    assert [c["source"] for c in read(copy)["cells"]] == [c["source"] for c in read(source)["cells"]]
    assert all(not c.get("outputs") and c.get("execution_count") is None for c in read(copy)["cells"])
    assert read(source)["cells"][2]["outputs"], "the committed chapter is left as it is"


def test_the_same_edition_gives_the_same_copy_with_the_readers_work(root: Path) -> None:
    source = root / "chapters/1_inner_loop.ipynb"
    copy = desk.readers_copy(source, root)
    answer(copy, "prediction = 'mine'")
    assert desk.readers_copy(source, root) == copy
    assert read(copy)["cells"][2]["source"] == ["prediction = 'mine'"]


def test_a_new_edition_renews_an_untouched_copy(root: Path) -> None:
    source = root / "chapters/1_inner_loop.ipynb"
    copy = desk.readers_copy(source, root)
    write(source, chapter("## 4 New · 10 min"))
    assert desk.readers_copy(source, root) == copy
    assert any("New" in "".join(c["source"]) for c in read(copy)["cells"])


def test_a_new_edition_stands_beside_a_copy_with_work(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = root / "chapters/1_inner_loop.ipynb"
    old = desk.readers_copy(source, root)
    answer(old, "prediction = 'mine'")
    write(source, chapter("## 4 New · 10 min"))
    new = desk.readers_copy(source, root)
    assert new != old
    assert "your own copy stays beside it" in capsys.readouterr().out
    assert read(old)["cells"][2]["source"] == ["prediction = 'mine'"]
    assert desk.readers_copy(source, root) == new  # and from now on the new one is opened


def test_work_survives_three_editions(root: Path) -> None:
    source = root / "chapters/1_inner_loop.ipynb"
    copies = []
    for edition in range(3):
        write(source, chapter(f"## 4 Edition {edition} · 10 min"))
        copies.append(desk.readers_copy(source, root))
        answer(copies[-1], f"prediction = {edition}")
    assert len(set(copies)) == 3
    assert [read(copy)["cells"][2]["source"] for copy in copies] == [
        [f"prediction = {edition}"] for edition in range(3)
    ]


def test_a_lost_or_broken_record_costs_no_work(root: Path) -> None:
    source = root / "chapters/1_inner_loop.ipynb"
    copy = desk.readers_copy(source, root)
    answer(copy, "prediction = 'mine'")
    (root / "my/editions.json").write_text("{broken")
    desk.readers_copy(source, root)
    assert read(copy)["cells"][2]["source"] == ["prediction = 'mine'"]


# --- reset ---


def test_reset_keeps_the_old_copy_aside(root: Path) -> None:
    copy = desk.readers_copy(root / "chapters/1_inner_loop.ipynb", root)
    answer(copy, "prediction = 'mine'")
    fresh, aside = desk.reset("roofline", root)
    assert fresh == copy
    assert read(fresh)["cells"][2]["source"] == ["prediction = ..."]
    assert aside is not None
    assert read(aside)["cells"][2]["source"] == ["prediction = 'mine'"]


def test_reset_of_an_untouched_copy_keeps_nothing_aside(root: Path) -> None:
    assert desk.reset("roofline", root) == (root / "my/chapters/1_inner_loop.ipynb", None)


# --- JupyterLab ---


def test_the_settings_stay_in_the_books_own_folder(root: Path) -> None:
    folder = desk.lab_settings(root)
    assert folder == root / "my/lab"
    notes = read(folder / "overrides.json")["@jupyterlab/apputils-extension:notification"]
    assert notes == {"fetchNews": "false", "checkForUpdates": False}


def test_the_command_opens_the_part_with_the_books_extension(root: Path) -> None:
    copy, place = root / "my/chapters/1 inner loop.ipynb", contents.find_place("roofline", root)
    command = desk.lab_command(copy, place, browser=False, root=root)
    # Jupyter prints this address with "?token=…" at its end: a # in it would hide the token from the server.
    assert "--LabApp.default_url=/lab/tree/my/chapters/1%20inner%20loop.ipynb" in command
    (config,) = [word.partition("=")[2] for word in command if word.startswith("--config=")]
    page = read(Path(config))["ServerApp"]["tornado_settings"]["page_config_data"]
    assert page == {"threeloopsCell": "card-1", "threeloopsNotebook": "my/chapters/1 inner loop.ipynb"}
    assert "--no-browser" in command
    (folder,) = [word.partition("=")[2] for word in command if "extra_labextensions_path" in word]
    package = read(Path(folder) / "threeloops/package.json")["jupyterlab"]
    assert (Path(folder) / "threeloops" / package["_build"]["load"]).is_file()
    assert "--no-browser" not in desk.lab_command(copy, place, browser=True, root=root)


def test_without_a_part_no_cell_is_asked_for(root: Path) -> None:
    config = desk.lab_config("my/chapters/x.ipynb", None, root)
    assert read(config)["ServerApp"]["tornado_settings"]["page_config_data"] == {}


def test_a_book_without_chapters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="chapters/ holds no notebook"):
        desk.open_book(None, browser=False, root=tmp_path)


def with_drills(root: Path) -> Path:
    """The book with one drill set in it."""
    folder = root / "drills" / "kv_cache"
    folder.mkdir(parents=True)
    (folder / "kv_cache.ipynb").write_bytes(next(root.glob("chapters/*.ipynb")).read_bytes())
    return root


def test_drill_sets_are_copied_opened_and_reset_like_parts(root: Path) -> None:
    copies = desk.all_copies(with_drills(root))
    copy = copies["drills/kv_cache/kv_cache.ipynb"]
    assert copy == root / "my" / "drills" / "kv_cache" / "kv_cache.ipynb"
    assert desk.find_notebook("drills/kv_cache", root) == ("drills/kv_cache/kv_cache.ipynb", None)
    copy.write_text(copy.read_text().replace("[", "[ ", 1))
    fresh, aside = desk.reset("drills/kv_cache", root)
    assert fresh == copy
    assert aside is None or aside.exists()


def test_an_unknown_drill_set_is_refused_with_the_known_ones(root: Path) -> None:
    with pytest.raises(ValueError, match="drill_set='kv_cash' is not known; did you mean 'kv_cache'"):
        desk.find_notebook("drills/kv_cash", with_drills(root))


def test_the_interview_room_is_copied_and_opened_like_a_drill_set(root: Path) -> None:
    (with_drills(root) / "drills" / "interview.ipynb").write_bytes(next(root.glob("chapters/*.ipynb")).read_bytes())
    assert desk.all_copies(root)["drills/interview.ipynb"] == root / "my" / "drills" / "interview.ipynb"
    assert desk.find_notebook("drills/interview", root) == ("drills/interview.ipynb", None)
    assert desk.find_notebook("drills/kv_cache", root) == ("drills/kv_cache/kv_cache.ipynb", None)


def test_attempts_are_kept_in_my_unless_another_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("THREELOOPS_HISTORY", raising=False)
    assert desk.history_path() == contents.book_root() / "my" / "history.sqlite3"
    monkeypatch.setenv("THREELOOPS_HISTORY", str(tmp_path / "other.sqlite3"))
    assert desk.history_path() == tmp_path / "other.sqlite3"
