"""The desk: copies, editions, reset, places. The reader's own work is never lost."""

import ast
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from threeloops import contents, desk
from threeloops.desk import copies, jupyter, opening, parts
from threeloops.site import behind
from threeloops.site import parts as site_parts

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


def text(notebook: dict[str, Any], name: str) -> str:
    (found,) = ["".join(cell["source"]) for cell in notebook["cells"] if cell["id"] == name]
    return found


def answer(copy: Path, words: str, name: str = "code-1") -> None:
    notebook = read(copy)
    for found in notebook["cells"]:
        if found["id"] == name:
            found["source"] = [words]
    copy.write_text(json.dumps(notebook))


ROOFLINE = "chapters/1_inner_loop.ipynb#card-1"


def roofline(root: Path) -> Path:
    return copies.all_copies(root)[ROOFLINE]


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


def test_every_part_is_a_notebook_of_its_own(root: Path) -> None:
    made = [path.relative_to(root / "my").as_posix() for path in copies.all_copies(root).values()]
    assert made == [
        "chapters/1_inner_loop/1_three_loops.ipynb",
        "chapters/1_inner_loop/2_roofline.ipynb",
        "chapters/1_inner_loop/3_what_a_kernel_is.ipynb",
        "chapters/2_training_loop/1_rings.ipynb",
    ]
    (first, second, *_) = copies.all_copies(root).values()
    assert [cell["id"] for cell in read(first)["cells"]] == ["desk-top", "title", "card-0", "code-0", "desk-end"]
    assert [cell["id"] for cell in read(second)["cells"]] == ["desk-top", "card-1", "code-1", "desk-end"]


def test_a_copy_has_everything_but_the_outputs(root: Path) -> None:
    committed = [cell for cell in read(root / "chapters/1_inner_loop.ipynb")["cells"] if cell["id"].endswith("-1")]
    copy = read(roofline(root))
    said = ["".join(one["source"]).replace("## 2 Roofline", "## 1.2 Roofline") for one in committed]
    assert said == [text(copy, one["id"]) for one in committed]
    assert all(not one.get("outputs") and one.get("execution_count") is None for one in copy["cells"])
    assert committed[1]["outputs"], "the committed chapter is left as it is"


def test_the_ways_lead_to_the_parts_before_and_after_and_to_the_start(root: Path) -> None:
    found = copies.all_copies(root)
    for copy in found.values():
        links = [
            target for cell in read(copy)["cells"] for target in re.findall(r"\]\(([^)#]+)\)", "".join(cell["source"]))
        ]
        assert "../../start.html" in links
        assert all((copy.parent / target).is_file() for target in links if not target.endswith("start.html"))
    last = text(read(found["chapters/2_training_loop.ipynb#rings-card"]), "desk-top")
    assert "before: [1.3 What a kernel is](../1_inner_loop/3_what_a_kernel_is.ipynb)" in last
    assert "after:" not in last


def test_links_of_the_chapter_lead_to_the_notebooks(root: Path) -> None:
    with_drills(root)
    markdown = (
        "[a](#1-Three-loops-·-40-min) [b](#2-Roofline-·-60-min) [c](../drills/kv_cache/kv_cache.ipynb)"
        " [d](2_training_loop.ipynb#1-Rings-·-45-min) [e](https://a.b/c)"
        ' <a href="#3-What-a-kernel-is-%C2%B7-70-min">f</a>'
        " `[g](#1-Three-loops-·-40-min)` [h](#nowhere) [i](pictures/x.png) [j](#Deep)"
    )
    cells = chapter()
    cells[2]["source"], cells[3]["source"] = [f"{PARTS[1]}\n\n{markdown}"], [f"{PARTS[1]}\n\n{markdown}"]
    cells[1]["source"] = [f"{PARTS[0]}\n\n### Deep"]
    cells[2]["cell_type"], cells[2]["source"] = "code", ["1"]
    write(root / "chapters/1_inner_loop.ipynb", cells)
    assert text(read(roofline(root)), "card-1").split("\n\n", 1)[1] == (
        "[a](1_three_loops.ipynb) [b](#2-Roofline-·-60-min) [c](../../drills/kv_cache/kv_cache.ipynb)"
        ' [d](../2_training_loop/1_rings.ipynb) [e](https://a.b/c) <a href="3_what_a_kernel_is.ipynb">f</a>'
        " `[g](#1-Three-loops-·-40-min)` [h](#nowhere) [i](../../../chapters/pictures/x.png)"
        " [j](1_three_loops.ipynb#Deep)"
    )


def test_the_same_edition_gives_the_same_copy_with_the_readers_work(root: Path) -> None:
    copy = roofline(root)
    answer(copy, "prediction = 'mine'")
    assert roofline(root) == copy
    assert text(read(copy), "code-1") == "prediction = 'mine'"


def test_a_new_edition_renews_untouched_copies_and_leaves_other_parts_alone(root: Path) -> None:
    first, second = list(copies.all_copies(root).values())[:2]
    answer(first, "prediction = 'mine'", "code-0")
    cells = chapter("## 4 New · 10 min")
    cells[4]["source"] = ["prediction = ...  # better said"]
    write(root / "chapters/1_inner_loop.ipynb", cells)
    found = copies.all_copies(root)
    assert text(read(first), "code-0") == "prediction = 'mine'"
    assert text(read(second), "code-1") == "prediction = ...  # better said"
    assert found["chapters/1_inner_loop.ipynb#card-3"].name == "4_new.ipynb"


def test_what_jupyterlab_writes_into_a_copy_that_was_only_looked_at_is_no_work(root: Path) -> None:
    copy = roofline(root)
    notebook = read(copy)
    for one in notebook["cells"]:
        one["source"] = "".join(one["source"]).splitlines(keepends=True)
        one["metadata"]["collapsed"] = False
    copy.write_text(json.dumps(notebook | {"metadata": {}}, indent=2))
    edited(root)
    assert roofline(root) == copy
    assert "edited" in text(read(copy), "card-1")
    assert [path.name for path in copy.parent.glob("2_*")] == [copy.name]


def edited(root: Path, words: str = "edited") -> None:
    cells = chapter()
    cells[3]["source"] = [f"{PARTS[1]}\n\n> {words}"]
    write(root / "chapters/1_inner_loop.ipynb", cells)


def test_a_new_edition_takes_its_place_and_the_readers_copy_stays_beside_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = roofline(root)
    answer(copy, "prediction = 'mine'")
    edited(root)
    assert roofline(root) == copy, "other parts link to it by this name"
    (kept,) = copy.parent.glob("2_roofline.yours-*.ipynb")
    assert (
        f"part 2 of chapter 1, Roofline, is here; your own copy stays beside it as {kept.name}"
        in capsys.readouterr().out
    )
    assert text(read(kept), "code-1") == "prediction = 'mine'"
    assert text(read(copy), "code-1") == "prediction = ..."


def test_work_survives_three_editions(root: Path) -> None:
    for edition in range(3):
        edited(root, f"edition {edition}")
        answer(roofline(root), f"prediction = {edition}")
    found = {text(read(path), "code-1") for path in (root / "my/chapters/1_inner_loop").glob("2_roofline*.ipynb")}
    assert found == {f"prediction = {edition}" for edition in range(3)}


def test_a_renamed_part_is_led_to_by_its_neighbours_and_keeps_its_work(root: Path) -> None:
    first, second = list(copies.all_copies(root).values())[:2]
    answer(first, "prediction = 'mine'", "code-0")
    cells = chapter()
    cells[3]["source"] = ["## 2 The roof · 60 min"]
    write(root / "chapters/1_inner_loop.ipynb", cells)
    assert roofline(root).name == "2_the_roof.ipynb"
    assert not second.exists()
    assert "(2_the_roof.ipynb)" in text(read(first), "desk-end")
    assert text(read(first), "code-0") == "prediction = 'mine'"


@pytest.mark.parametrize("record", ["{broken", "{}"])
def test_a_lost_or_broken_record_costs_no_work(root: Path, record: str) -> None:
    answer(roofline(root), "prediction = 'mine'")
    (root / "my/editions.json").write_text(record)
    copies.all_copies(root)
    found = [text(read(path), "code-1") for path in (root / "my/chapters/1_inner_loop").glob("2_roofline*.ipynb")]
    assert "prediction = 'mine'" in found


def test_a_copy_that_is_no_notebook_is_kept_and_made_afresh(root: Path) -> None:
    copy = roofline(root)
    copy.write_text("half a file")
    assert text(read(roofline(root)), "code-1") == "prediction = ..."
    assert [path.read_text() for path in copy.parent.glob("2_roofline.yours-*")] == ["half a file"]


# --- whole chapters ---


def test_an_earlier_whole_copy_with_work_stays_and_is_said_once(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write(root / "my/chapters/1_inner_loop.ipynb", chapter())
    answer(old, "prediction = 'mine'")
    copies.all_copies(root)
    assert (
        "Your whole chapter with what you wrote stays as it is: my/chapters/1_inner_loop.ipynb"
        in capsys.readouterr().out
    )
    copies.all_copies(root)
    assert capsys.readouterr().out == ""
    assert text(read(old), "code-1") == "prediction = 'mine'"


def test_an_earlier_whole_copy_without_work_goes(root: Path) -> None:
    old = write(root / "my/chapters/1_inner_loop.ipynb", chapter())
    written = hashlib.sha256(old.read_bytes()).hexdigest()
    record = {"copy": "chapters/1_inner_loop.ipynb", "edition": "any", "written": written}
    (root / "my/editions.json").write_text(json.dumps({"chapters/1_inner_loop.ipynb": record}))
    copies.all_copies(root)
    assert not old.exists()


def test_a_whole_chapter_can_be_asked_for_and_started_afresh(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert copies.find_notebook("chapters/1_inner_loop", root) == ("chapters/1_inner_loop.ipynb", None)
    copy = copies.whole_copy(root / "chapters/1_inner_loop.ipynb", root)
    assert [one["id"] for one in read(copy)["cells"]] == [one["id"] for one in chapter()]
    answer(copy, "prediction = 'mine'")
    copies.all_copies(root)
    assert copies.whole_copy(root / "chapters/1_inner_loop.ipynb", root) == copy
    assert text(read(copy), "code-1") == "prediction = 'mine'"
    assert capsys.readouterr().out == ""
    fresh, aside = copies.reset("chapters/1_inner_loop", root)
    assert fresh == copy
    assert aside is not None
    assert text(read(aside), "code-1") == "prediction = 'mine'"
    with pytest.raises(ValueError, match="chapter='9' is not known"):
        copies.find_notebook("chapters/9", root)


# --- reset ---


def test_reset_keeps_the_old_copy_aside(root: Path) -> None:
    copy = roofline(root)
    answer(copy, "prediction = 'mine'")
    fresh, aside = copies.reset("roofline", root)
    assert fresh == copy
    assert text(read(fresh), "code-1") == "prediction = ..."
    assert aside is not None
    assert text(read(aside), "code-1") == "prediction = 'mine'"


def test_reset_of_an_untouched_copy_keeps_nothing_aside(root: Path) -> None:
    assert copies.reset("roofline", root) == (root / "my/chapters/1_inner_loop/2_roofline.ipynb", None)


def test_a_copy_with_work_in_it_is_not_written_again(root: Path) -> None:
    """JupyterLab saves texts in lines, and asks about a file that has changed under an open notebook."""
    copy = roofline(root)
    answer(copy, "prediction = 'mine'")
    saved = read(copy)
    for one in saved["cells"]:
        one["source"] = "".join(one["source"]).splitlines(keepends=True)
    copy.write_text(json.dumps(saved))
    before = copy.read_bytes()
    assert roofline(root) == copy
    assert copy.read_bytes() == before


# --- cards ---


def test_cells_that_wait_for_a_number_are_marked_with_what_stands_around_it(root: Path) -> None:
    sources = {
        "load": "from threeloops import stand_in\n\nstand_in.watch()",
        "plain": 'prediction = ...  # like "3 GB"',
        "broken": "prediction = (\n    ...\n)  # bytes",
        "named": "# What share?\nprediction_update = ...",
        "check": 'sheet.ask("kv-latent")\nsheet.check(\n    "kv-latent", ...\n)  # your answer',
        "own": "lengths = ...",
        "result": 'predicted.compare(prediction, 3e9, "B")',
        "more": "prediction = ...\nprint(prediction)",
        "cache-ask": 'sheet.ask("kv-latent")',
        "cache-answer": "cache = ...  # number and unit\n# Your work goes here.",
        "cache": '"""Right within 2 %."""\n\nsheet.check("kv-latent", cache)',
    }
    cells = [cell("markdown", PARTS[1], "card-1")] + [cell("code", words, name) for name, words in sources.items()]
    write(root / "chapters/1_inner_loop.ipynb", cells)
    found = {one["id"]: one["metadata"].get("threeloops", {}).get("card") for one in read(roofline(root))["cells"]}
    kinds = {name: about["kind"] for name, about in found.items() if about}
    assert kinds == {
        "plain": "prediction", "broken": "prediction", "named": "prediction", "check": "check", "cache-answer": "answer"
    }  # fmt: skip
    for name in kinds:
        assert found[name]["before"] + "..." + found[name]["after"] == sources[name]
        assert found[name]["needs"] == ["load"]
    assert found["plain"]["hint"] == 'like "3 GB"'
    assert found["named"]["hint"] == "What share?"
    assert [found[name].get("unit") for name in ("plain", "broken", "named")] == [None, "B", None]
    assert "Answer with a unit" in found["check"]["question"]
    assert found["cache-answer"]["asks"] == ["cache-ask"]
    assert found["cache-answer"]["then"] == ["cache"]
    assert {name: about.get("key") for name, about in found.items() if about} == {
        "plain": None, "broken": None, "named": None, "check": "kv-latent", "cache-answer": "kv-latent"
    }  # fmt: skip


def test_every_card_of_the_book_can_be_written_into(tmp_path: Path) -> None:
    """What stands before and after the dots is the cell, and with a number there it is still Python."""
    kinds = Counter()
    for source in copies.sources(contents.book_root()):
        for one in source.notebook["cells"]:
            about = one["metadata"].get("threeloops", {}).get("card")
            if about:
                kinds[about["kind"]] += 1
                assert about["before"] + "..." + about["after"] == "".join(one["source"])
                ast.parse(about["before"] + json.dumps('3 GB, "about"') + about["after"])
    assert min(kinds[kind] for kind in ("prediction", "check", "answer")) > 20


def test_what_the_pages_fold_is_out_of_sight_at_the_desk_too() -> None:
    """By id: the pages cut a cell where a part begins, and no heading is ever hidden."""
    book = contents.book_root()
    folded = {part.cells[place]["id"] for part in site_parts.parts(book) for place in behind.waiting(part.cells)}
    hidden = set()
    for source in copies.sources(book):
        cells = {one["id"]: one for one in source.notebook["cells"]}
        for one in cells.values():
            hides = one["metadata"].get("threeloops", {}).get("hides", [])
            assert set(hides) <= set(cells)
            assert not hides or re.search(r"=\s*\(?\s*\.\.\.", "".join(one["source"])), "what behind.js looks for"
            hidden |= set(hides)
    assert hidden == folded
    assert len(hidden) > 200


# --- JupyterLab ---


def test_the_settings_stay_in_the_books_own_folder(root: Path) -> None:
    folder = jupyter.lab_settings(root, teach=False)
    assert folder == root / "my/lab"
    notes = read(folder / "overrides.json")["@jupyterlab/apputils-extension:notification"]
    assert notes == {"fetchNews": "false", "checkForUpdates": False}


@pytest.mark.parametrize("teach", [False, True])
def test_what_a_teacher_needs_is_there_for_teachers(root: Path, teach: bool) -> None:
    off = read(jupyter.lab_settings(root, teach=teach) / "page_config.json")["disabledExtensions"]
    assert ("@jupyter/nbgrader" in off) is not teach
    extensions = read(jupyter.lab_config(root, teach=teach))["ServerApp"]["jpserver_extensions"]
    assert extensions["nbgrader.server_extensions.formgrader"] is teach
    assert extensions["threeloops.desk.server"] is True


def test_the_command_opens_a_notebook_with_the_books_extension(root: Path) -> None:
    command = jupyter.lab_command(root / "my/chapters/1 inner.ipynb", browser=False, root=root)
    assert "--LabApp.default_url=/lab/tree/my/chapters/1%20inner.ipynb" in command
    assert "--no-browser" in command
    assert f"--LabApp.workspaces_dir={root / 'my/lab/workspaces'}" in command, "no tabs of another folder's"
    (folder,) = [word.partition("=")[2] for word in command if "extra_labextensions_path" in word]
    package = read(Path(folder) / "threeloops/package.json")["jupyterlab"]
    assert (Path(folder) / "threeloops" / package["_build"]["load"]).is_file()
    assert "--no-browser" not in jupyter.lab_command(None, browser=True, root=root)
    assert "--LabApp.default_url=/lab" in jupyter.lab_command(None, browser=True, root=root)


def test_a_book_without_chapters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="chapters/ holds no notebook"):
        opening.open_book(None, browser=False, root=tmp_path)


SERVER = """import json, os, pathlib, signal, sys, time
print("the server's log")
runtime = pathlib.Path(os.environ["JUPYTER_RUNTIME_DIR"])
runtime.mkdir(parents=True, exist_ok=True)
about = {"url": "http://localhost:1/", "token": "t0", "root_dir": sys.argv[1]}
(runtime / "jpserver-1.json").write_text(json.dumps(about))
time.sleep(0.5)
"""


def test_one_line_says_where_the_book_is_and_the_log_is_in_its_file(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(root / "runtime"))
    jupyter.lab_settings(root, teach=False)
    assert opening.serve([sys.executable, "-c", SERVER, str(root)], root) == 0
    said = capsys.readouterr().out
    assert "The book is open: http://localhost:1/lab?token=t0" in said
    assert "my/lab/server.log" in said
    assert "the server's log" in (root / "my/lab/server.log").read_text()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signal that asks a process to end")
def test_opened_in_the_background_it_says_how_to_close_it_and_leaves_no_server(root: Path) -> None:
    """As a shell's & opens it: Ctrl-C is ignored by all that is started."""
    jupyter.lab_settings(root, teach=False)
    server = SERVER.replace("sleep(0.5)", "sleep(600)").replace("print(", "print(os.getpid(), ")
    code = (
        "import sys; from pathlib import Path; from threeloops.desk import opening;"
        f" sys.exit(opening.serve([sys.executable, '-c', {server!r}, {str(root)!r}], Path({str(root)!r})))"
    )
    began = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"JUPYTER_RUNTIME_DIR": str(root / "runtime"), "PYTHONUNBUFFERED": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert began.stdout is not None
    assert began.stdout.readline().startswith("The book is open: http://localhost:1/lab?token=t0")
    assert f"`kill {began.pid}` closes it" in began.stdout.readline()
    began.terminate()
    began.communicate(timeout=60)
    pid = int((root / "my/lab/server.log").read_text().split()[0])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.fixture
def answering() -> Iterator[str]:
    """A server that knows the start page's address, and no other."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/threeloops/start?token=t0" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_book_that_is_open_is_not_opened_twice(
    root: Path, answering: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was killed has left its note behind, and somebody's own JupyterLab in this folder is not the book."""
    runtime = root / "runtime"
    runtime.mkdir()
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(runtime))
    started: list[list[str]] = []
    monkeypatch.setattr(opening, "serve", lambda command, _: started.append(command) or 0)
    for number, (url, folder) in enumerate(
        [("http://127.0.0.1:1/", root), (f"{answering}other/", root), (answering, root.parent)]
    ):
        note = {"url": url, "token": "t0", "root_dir": str(folder)}
        (runtime / f"jpserver-{number}.json").write_text(json.dumps(note))
    assert opening.open_book("roofline", browser=False, root=root) == 0
    assert len(started) == 1
    note = {"url": answering, "token": "t0", "root_dir": str(root)}
    (runtime / "jpserver-9.json").write_text(json.dumps(note))
    assert opening.open_book("roofline", browser=False, root=root) == 0
    told = f"The book is open already: {answering}lab/tree/my/chapters/1_inner_loop/2_roofline.ipynb?token=t0"
    assert told in capsys.readouterr().out
    assert len(started) == 1
    opening.open_book(None, browser=False, root=root)
    assert f"{answering}lab?token=t0" in capsys.readouterr().out


def test_a_server_that_does_not_start_is_told_with_its_log(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jupyter.lab_settings(root, teach=False)
    assert opening.serve([sys.executable, "-c", "raise SystemExit(3)"], root) == 3
    assert "did not start; its log says why" in capsys.readouterr().err


# --- drill sets ---


def with_drills(root: Path) -> Path:
    """The book with one drill set in it."""
    folder = root / "drills" / "kv_cache"
    folder.mkdir(parents=True)
    (folder / "kv_cache.ipynb").write_bytes(next(root.glob("chapters/*.ipynb")).read_bytes())
    return root


def test_drill_sets_are_copied_opened_and_reset_like_parts(root: Path) -> None:
    copy = copies.all_copies(with_drills(root))["drills/kv_cache/kv_cache.ipynb"]
    assert copy == root / "my" / "drills" / "kv_cache" / "kv_cache.ipynb"
    assert copies.find_notebook("drills/kv_cache", root) == ("drills/kv_cache/kv_cache.ipynb", None)
    copy.write_text(copy.read_text().replace("[", "[ ", 1))
    fresh, aside = copies.reset("drills/kv_cache", root)
    assert fresh == copy
    assert aside is None or aside.exists()


def test_a_new_edition_of_a_drill_set_stands_beside_one_with_work(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "drills/kv_cache/kv_cache.ipynb"
    old = copies.all_copies(with_drills(root))[key]
    answer(old, "prediction = 'mine'")
    write(root / key, chapter("## 4 New · 10 min"))
    new = copies.all_copies(root)[key]
    assert new.name.startswith("kv_cache.edition-")
    assert "A new edition of kv_cache.ipynb is here; your own copy stays beside it." in capsys.readouterr().out
    assert text(read(old), "code-1") == "prediction = 'mine'"
    assert copies.all_copies(root)[key] == new, "and from now on the new one is opened"


def test_a_drill_set_leads_back_to_its_part_and_to_the_start(root: Path) -> None:
    cells = chapter()
    cells[3]["source"] = [f"{PARTS[1]}\n\n> Drills: [kv_cache](../drills/kv_cache/kv_cache.ipynb)"]
    write(with_drills(root) / "chapters/1_inner_loop.ipynb", cells)
    copy = copies.all_copies(root)["drills/kv_cache/kv_cache.ipynb"]
    assert text(read(copy), parts.TOP) == (
        "[Start](../../start.html) · goes with [1.2 Roofline](../../chapters/1_inner_loop/2_roofline.ipynb)"
    )


def test_an_unknown_drill_set_is_refused_with_the_known_ones(root: Path) -> None:
    with pytest.raises(ValueError, match="drill_set='kv_cash' is not known; did you mean 'kv_cache'"):
        copies.find_notebook("drills/kv_cash", with_drills(root))


def test_the_interview_room_is_copied_and_opened_like_a_drill_set(root: Path) -> None:
    (with_drills(root) / "drills" / "interview.ipynb").write_bytes(next(root.glob("chapters/*.ipynb")).read_bytes())
    assert copies.all_copies(root)["drills/interview.ipynb"] == root / "my" / "drills" / "interview.ipynb"
    assert copies.find_notebook("drills/interview", root) == ("drills/interview.ipynb", None)
    assert copies.find_notebook("drills/kv_cache", root) == ("drills/kv_cache/kv_cache.ipynb", None)


def test_attempts_are_kept_in_my_unless_another_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("THREELOOPS_HISTORY", raising=False)
    assert desk.history_path() == contents.book_root() / "my" / "history.sqlite3"
    monkeypatch.setenv("THREELOOPS_HISTORY", str(tmp_path / "other.sqlite3"))
    assert desk.history_path() == tmp_path / "other.sqlite3"
