"""What editors and people make of a notebook: every answer reaches its question, or it is said which does not."""

import ast
import copy
import io
import json
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from editors import EDITORS, pasted
from submissions import Notebook, asked, filled, released, set_source

from threeloops.classroom import recognising, sources_only, uploads
from threeloops.classroom.intake import handed_in, lone_notebook
from threeloops.classroom.questions import bound, question, source
from threeloops.classroom.transplant import UnparsableError, parsed, told, worked_in

SET = "kv_cache"
SETS = ("all_reduce", "first_steps", "kv_cache")
WHY = "Heads are copied, so nothing shrinks."
PLACEHOLDER = "*Your explanation goes here.*"


def done() -> Notebook:
    """Everything answered, explained and marked."""
    notebook = filled(SET, student="ada")
    set_source(notebook, "doubling-gpus-answer", WHY)
    set_source(notebook, "doubling-gpus-mark", "self_marked = 2")
    return notebook


def reaches(notebook: Notebook) -> dict[str, Any]:
    """What each question would be given, by running the cells; a function by its code. These cells are our own."""
    names: dict[str, Any] = {"sheet": types.SimpleNamespace(**dict.fromkeys(("begin", "ask"), lambda *_, **__: None))}
    given: dict[str, Any] = {}
    for name in ("check", "check_function"):
        setattr(names["sheet"], name, lambda *_: None)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            one = question(cell)
            if one:
                value = names.get(one.name)
                given[one.grade_id] = value.__code__.co_code if callable(value) else value
                continue
            text = source(cell).replace("from threeloops.drills.engine import sheet", "")
            exec(compile(text, "cell", "exec"), names)
    (why,) = [source(cell) for cell in notebook["cells"] if cell["id"] == "doubling-gpus-answer"]
    return given | {name: names.get(name) for name in ("student", "course", "self_marked")} | {"why": why}


WANTED = reaches(done())


def cell_of(notebook: Notebook, key: str) -> dict[str, Any]:
    return next(cell for cell in notebook["cells"] if cell["id"] == key)


def after(notebook: Notebook, key: str, new: dict[str, Any]) -> None:
    where = [cell["id"] for cell in notebook["cells"]].index(key)
    notebook["cells"].insert(where + 1, {"metadata": {}, "id": "new"} | new)


def retyped(notebook: Notebook) -> None:
    cell_of(notebook, "a-batch-answer")["cell_type"] = "markdown"
    cell_of(notebook, "paged-answer")["cell_type"] = "raw"
    cell_of(notebook, "doubling-gpus-answer")["cell_type"] = "code"


def answers(notebook: Notebook) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["id"].endswith("-answer") and cell["cell_type"] == "code"]


def reordered(notebook: Notebook) -> None:
    moved = answers(notebook)
    notebook["cells"] = [cell for cell in notebook["cells"] if cell not in moved] + moved[::-1]


def merged_below(notebook: Notebook) -> None:
    first, second = cell_of(notebook, "one-token-answer"), cell_of(notebook, "one-token")
    first["source"] = source(first) + "\n" + source(second)
    notebook["cells"].remove(second)


def merged_down(notebook: Notebook) -> None:
    first, second = cell_of(notebook, "one-token-answer"), cell_of(notebook, "a-batch-answer")
    first["source"] = source(first) + "\n" + source(second)
    notebook["cells"].remove(second)


def merged_up(notebook: Notebook) -> None:
    first, second = cell_of(notebook, "one-token-answer"), cell_of(notebook, "a-batch-answer")
    second["source"] = source(first) + "\n" + source(second)
    notebook["cells"].remove(first)


def split_in_a_function(notebook: Notebook) -> None:
    cell = cell_of(notebook, "paged-answer")
    *head, last = source(cell).splitlines()
    after(notebook, "paged-answer", copy.deepcopy(cell) | {"source": last, "id": "second half"})
    cell["source"] = "\n".join(head)


def split_between_lines(notebook: Notebook) -> None:
    cell = cell_of(notebook, "one-token-answer")
    value = source(cell).partition("=")[2]
    after(
        notebook, "one-token-answer", copy.deepcopy(cell) | {"source": "one_token = bytes_of_one", "id": "second half"}
    )
    cell["source"] = f"bytes_of_one = {value}"


def all_in_one(notebook: Notebook, *, on_top: bool) -> None:
    moved = answers(notebook)
    one = {"cell_type": "code", "metadata": {}, "id": "mine", "source": "\n\n".join(map(source, moved))}
    others = [cell for cell in notebook["cells"] if cell not in moved]
    notebook["cells"] = [one, *others] if on_top else [*others, one]


def only_answers(notebook: Notebook) -> None:
    kept = {"who", "doubling-gpus-answer", "doubling-gpus-mark"}
    notebook["cells"] = pasted(
        {"cells": [cell for cell in notebook["cells"] if cell["id"] in kept or cell in answers(notebook)]}
    )["cells"]


def in_the_locked_cell(notebook: Notebook) -> None:
    locked = cell_of(notebook, "one-token")
    locked["source"] = source(cell_of(notebook, "one-token-answer")) + "\n" + source(locked)
    cell_of(notebook, "one-token-answer")["source"] = source(cell_of(released(SET), "one-token-answer"))


def explained_in_the_question(notebook: Notebook) -> None:
    asks = cell_of(notebook, "doubling-gpus-question")
    asks["source"] = source(asks) + "\n\n" + WHY
    cell_of(notebook, "doubling-gpus-answer")["source"] = PLACEHOLDER


def explained_below(notebook: Notebook) -> None:
    cell_of(notebook, "doubling-gpus-answer")["source"] = PLACEHOLDER
    after(notebook, "doubling-gpus-answer", {"cell_type": "markdown", "source": WHY})


def windows_lines(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["source"] = source(cell).replace("\n", "\r\n")
    notebook["cells"] = pasted(notebook)["cells"]


MANGLED: dict[str, Callable[[Notebook], Any]] = {
    one.__name__: one
    for one in (
        retyped,
        reordered,
        merged_below,
        merged_down,
        merged_up,
        split_in_a_function,
        split_between_lines,
        only_answers,
        in_the_locked_cell,
        explained_in_the_question,
        explained_below,
        windows_lines,
    )
} | {
    "all_on_top": lambda notebook: all_in_one(notebook, on_top=True),
    "all_at_the_end": lambda notebook: all_in_one(notebook, on_top=False),
}
SILENT = {"colab", "kaggle", "vscode", "jetbrains"}  # they keep what tells a cell, so there is nothing to say


@pytest.mark.parametrize("editor", EDITORS)
def test_what_an_editor_leaves_is_graded_in_full(editor: str) -> None:
    left = parsed(json.dumps(EDITORS[editor](done())).encode())
    made, notes = told(released(SET), left)
    assert reaches(made) == WANTED
    assert bool(notes) == (editor not in SILENT)
    assert all("the cells' ids and marks are gone" in note for note in notes)
    assert recognising.set_within(json.dumps(left).encode(), SETS) == SET


@pytest.mark.parametrize("editor", ["as it was", *EDITORS])
@pytest.mark.parametrize("how", MANGLED)
def test_moved_merged_and_split_answers_reach_their_questions(how: str, editor: str) -> None:
    notebook = done()
    MANGLED[how](notebook)
    if editor != "as it was":
        notebook = EDITORS[editor](notebook)
    made, notes = told(released(SET), notebook)
    assert reaches(made) == WANTED
    assert notes or how in ("reordered", "merged_below", "split_in_a_function", "split_between_lines")
    again, more = told(released(SET), made)
    assert reaches(again) == WANTED, "a second time changes nothing"
    assert not any("not in the notebook" in note for note in more)


def test_what_is_gone_is_said_and_nothing_else() -> None:
    notebook = done()
    notebook["cells"] = [cell for cell in notebook["cells"] if cell["id"] not in ("who", "latent-answer")]
    set_source(notebook, "scales-answer", "my_number = '1 GB'")
    cell_of(notebook, "a-batch-answer").update(cell_type="markdown", source="It is about 3 GB, I think.")
    made, notes = told(released(SET), notebook)
    assert notes == (
        "no code, for the cell was turned into text: a-batch",
        "the name that the question asks for does not stand in the answer's cell: scales",
        "not in the notebook, nor found in another cell: who, latent",
    )
    assert reaches(made)["student"] == "", "nobody is said to be the reader whom the release names"
    assert told(released(SET), released(SET))[1] == (), "an empty one hides nothing"
    long = done()
    set_source(long, "latent-answer", "latent_cache = '1 GB'" + "#" * 100_000)
    assert "1 cell of more than 100,000 characters not read" in told(released(SET), long)[1]


def test_characters_of_a_word_processor_are_read_and_other_slips_of_the_pen_told() -> None:
    notebook = done()
    for cell in answers(notebook):
        cell["source"] = source(cell).replace(" ", "\u00a0").replace("'", "\u2019").replace('"', "\u201d")
    made, notes = told(released(SET), notebook)
    assert reaches(made) == WANTED
    assert notes == ("10 cells with quotes or blanks of a word processor, read as plain ones",)
    broken = done()
    set_source(broken, "latent-answer", "latent_cache = 1 GB")
    set_source(broken, "scales-answer", "%%time\n" + source(cell_of(broken, "scales-answer")))
    assert told(released(SET), broken)[1] == ("Python cannot read the answer's cell: latent",)
    curly = done()
    set_source(curly, "latent-answer", source(cell_of(curly, "latent-answer")) + "  # as they said: “all of it”")
    assert told(released(SET), curly)[1] == (), "in a comment they are at home"


def test_what_a_notebook_runs_has_no_note_and_a_comment_alone_has_one() -> None:
    for how in ("  {}", ">>> {}", "{}\none_token?", "%%time\n{}", "{};"):
        notebook = done()
        set_source(notebook, "one-token-answer", how.format(source(cell_of(notebook, "one-token-answer"))))
        assert told(released(SET), notebook)[1] == (), how
    notebook = done()
    set_source(notebook, "one-token-answer", "# " + source(cell_of(notebook, "one-token-answer")))
    assert told(released(SET), notebook)[1] == ("nothing but a comment stands in the answer's cell: one-token",)


def test_sources_are_read_as_other_programs_write_them() -> None:
    lines = done()
    for cell in lines["cells"]:
        cell["source"] = source(cell).splitlines()
    assert reaches(told(released(SET), lines)[0]) == WANTED
    pictured = done()
    set_source(pictured, "doubling-gpus-answer", f"{WHY}![](data:image/png;base64,{'iVBORw0' * 40_000})")
    made, notes = told(released(SET), pictured)
    assert reaches(made)["why"].startswith(WHY)
    assert notes == ()
    lines["cells"][-1]["source"] = 5
    assert "1 cell whose source is no text not read" in told(released(SET), lines)[1]
    german = done()
    set_source(german, "doubling-gpus-answer", "Die Köpfe werden kopiert.")
    content = json.dumps(german, ensure_ascii=False)
    assert {source(parsed(content.encode(code))["cells"][-1]) for code in ("cp1252", "utf-16-le", "utf-32")} == {
        source(german["cells"][-1])
    }
    for content, what in ((packed({"kv_cache.ipynb": b"{}"}), "a zip"), (b"\x1f\x8b\x08", "packed by gzip")):
        with pytest.raises(UnparsableError, match=f"the file is {what}"):
            parsed(content)


def test_names_are_found_as_python_binds_them() -> None:
    """Against Python's own reading of the same lines."""
    text = (
        "a = 1\nb: str = 'x'\nc = d = 2\ne, f = 1, 2\ndef g(): h = 1\nasync def i(): ...\nprint(j='x')\nk == 1\nl += 1"
    )
    tree = ast.parse(text)
    stored = {node.id for one in tree.body[:4] for node in ast.walk(one) if isinstance(node, ast.Name)} - {"str"}
    assert bound(text) | {"d"} == stored | {"g", "i"}


def test_looking_for_names_is_quick_in_any_text() -> None:
    for text in ("a " * 50_000, "a" + " " * 99_999, "a" + "=" * 99_999, "def " * 25_000, "a,\n" * 33_000):
        bound(text)


# --- outputs ------------------------------------------------------------------------------------


def with_outputs(notebook: Notebook, text: str) -> bytes:
    cell_of(notebook, "begin")["outputs"] = [{"output_type": "stream", "name": "stdout", "text": [text]}]
    return json.dumps(notebook).encode()


def test_large_outputs_are_no_reason() -> None:
    content = with_outputs(done(), 'a \\"[{]} \\\\ ' * 1_800_000)
    assert len(content) > 20_000_000
    assert reaches(told(released(SET), parsed(content))[0]) == WANTED
    brackets = with_outputs(done(), "x").replace(b'"x"', b"[], " * 1_100_000 + b"[]")
    assert reaches(told(released(SET), parsed(brackets))[0]) == WANTED


def test_pieces_come_to_the_same_wherever_they_are_cut() -> None:
    content = with_outputs(done(), 'end\\\\" "outputs": [ {\\')
    whole = b"".join(sources_only.without_outputs([content]))
    assert json.loads(whole)["cells"] == [
        cell | ({"outputs": []} if "outputs" in cell else {}) for cell in json.loads(content)["cells"]
    ]
    for size in (1, 7, 64, 1000):
        pieces = (content[at : at + size] for at in range(0, len(content), size))
        assert b"".join(sources_only.without_outputs(pieces)) == whole


def test_outputs_that_swell_are_given_up() -> None:
    endless = (b'{"cells": [{"outputs": ["' if not number else b"x" * (1 << 20) for number in range(10**6))
    assert len(sources_only.shortened(endless, 1_000)) > 1_000
    brackets = (b'{"cells": [{"outputs": [' if not number else b"[]," * 100_000 for number in range(10**6))
    assert len(sources_only.shortened(brackets, 1_000)) > 1_000


# --- what it is called --------------------------------------------------------------------------

NAMES = (
    "Copy of kv_cache.ipynb",
    "kv_cache-Copy1.ipynb",
    "kv_cache (1)-2.ipynb",
    "KV_Cache.IPYNB",
    "kv_cache_Ana_Garcia.ipynb",
    "kv_cache.ipynb.txt",
    "kv_cache.json",
    "Untitled7.ipynb",
    "Kopie von kv_cache",
    "all_reduce.ipynb",
)


def packed(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, inner in files.items():
            archive.writestr(name, inner)
    return content.getvalue()


def test_a_notebook_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    content = json.dumps(done()).encode()
    files = {f"s{number}_{number}_{number}_{name}": content for number, name in enumerate(NAMES)}
    files |= {f"Moodle {number}_{number}_assignsubmission_file/{name}": content for number, name in enumerate(NAMES)}
    (tmp_path / "in.zip").write_bytes(packed(files))
    found = handed_in(tmp_path / "in.zip", SETS, drill_set=SET)
    assert [one.content for one in found.submissions] == [content] * len(files)
    assert not any(one.others or one.problem for one in found.submissions)


OTHERS = {
    "kv_cache.html": (b"<!DOCTYPE html>", "is a web page"),
    "link.html": (b"<html>", "is a web page"),
    "kv_cache.pdf": (b"%PDF-1.7", "is a PDF"),
    "kv_cache.py": (b"x = 1", "is a Python script"),
    "kv_cache.rar": (b"Rar!", "is an archive of another kind than zip"),
    "answers.docx": (b"PK", "is a text document"),
    "my.gdoc": (b"{}", "is a shortcut to a file elsewhere"),
    "notes.txt": (b"see my notebook", "is no notebook"),
    "Untitled.ipynb": (b'{"cells": []}', "is a notebook that asks nothing of a drill set"),
    "kv_cache-2.ipynb": (json.dumps(released("all_reduce")).encode(), "is a notebook of all_reduce"),
    "work.zip": (b"PK\x03\x04", "is a zip that is damaged"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_of_another_kind_is_named(name: str, tmp_path: Path) -> None:
    content, words = OTHERS[name]
    (tmp_path / "in.zip").write_bytes(packed({f"ada_1_2_{name}": content, f"zoe_3_4_{SET}.ipynb": b"{"}))
    ada, zoe = handed_in(tmp_path / "in.zip", SETS, drill_set=SET).submissions
    assert ada.read is None
    assert ada.others == (f"'ada_1_2_{name}' {words}",)
    assert (zoe.content, zoe.others) == (b"{", ()), "one that cannot be read is of the set that it is called by"


def test_a_zip_in_the_zip_is_looked_through_within_bounds(tmp_path: Path) -> None:
    content = json.dumps(done()).encode()
    inner = packed({"my work/Copy of kv_cache.ipynb": content, "__MACOSX/._x.ipynb": b"x", "../../etc/passwd": b"x"})
    files = {
        "ada_1_2_work.zip": inner,
        "bomb_3_4_work.zip": packed({f"{number}.ipynb": b"" for number in range(uploads.MOST_WITHIN + 1)}),
        "deep_5_6_work.zip": packed({"again.zip": inner}),
        "fat_7_8_work.zip": packed({"kv_cache.ipynb": b"0" * 60_000_000}),
        f"zoe_9_9_{SET}.ipynb": content,
    }
    (tmp_path / "in.zip").write_bytes(packed(files))
    found = {one.folder: one for one in handed_in(tmp_path / "in.zip", SETS, drill_set=SET).submissions}
    assert found["ada"].content == found["zoe"].content == content
    assert found["ada"].label == "ada_1_2_work.zip", "feedback goes back under the platform's name"
    assert found["bomb"].others == ("'bomb_3_4_work.zip' is a zip of more than 2,000 files",)
    assert found["deep"].others == (
        "'deep_5_6_work.zip/again.zip' is a zip in a zip, or one too many, which is not opened",
    )
    assert len(found["fat"].content or b"") == 20_000_001
    assert [path.name for path in tmp_path.iterdir()] == ["in.zip"]


def test_of_two_files_the_one_that_was_worked_in_counts(tmp_path: Path) -> None:
    content, empty = json.dumps(done()).encode(), json.dumps(released(SET)).encode()
    for folder, files in {"ada": (empty, content), "zoe": (content, empty), "eve": (content, content + b" ")}.items():
        (tmp_path / folder).mkdir()
        for name, inner in zip((f"{SET}.ipynb", f"{SET}-Copy1.ipynb"), files, strict=True):
            (tmp_path / folder / name).write_bytes(inner)
    found = {one.student: one for one in handed_in(tmp_path, SETS).submissions}
    assert found["ada"].content == found["zoe"].content == content
    assert (
        "'ada/kv_cache-Copy1.ipynb' counts, which holds 12 answers; 'ada/kv_cache.ipynb' holds 0" in found["ada"].chosen
    )
    assert lone_notebook(tmp_path / "ada", SETS) == (SET, tmp_path / "ada" / f"{SET}-Copy1.ipynb")
    assert lone_notebook(tmp_path / "zoe", SETS) == (SET, tmp_path / "zoe" / f"{SET}.ipynb")
    assert lone_notebook(tmp_path / "eve", SETS) == (SET, tmp_path / "eve" / f"{SET}.ipynb"), "its own name, of equals"
    (tmp_path / "zoe" / f"{SET}.edition-abcdef.ipynb").write_bytes(content)
    assert lone_notebook(tmp_path / "zoe", SETS) == (SET, tmp_path / "zoe" / f"{SET}.ipynb"), "not the book's own copy"
    assert worked_in(released(SET), done()) == len(asked(SET)) + 2, "the explanation and its mark, too"
    begun = released(SET)
    for cell in begun["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = "".join(cell["source"]).replace("# Your work goes here.", "# I do not know.\n")
    assert worked_in(released(SET), begun) == 0, "a comment is no answer"


def test_every_set_is_told_from_every_other() -> None:
    """By its questions, by its cells without metadata, and each in a copy that was cut off on its way."""
    names = sorted(
        path.parent.name for path in Path(__file__).parents[2].glob("drills/*/*.ipynb") if path.stem == path.parent.name
    )
    for name in names:
        for notebook in (released(name), pasted(released(name))):
            content = json.dumps(notebook).encode()
            assert recognising.set_within(content, names) == name
            assert recognising.set_within(content[: len(content) * 3 // 4], names) == name
    assert recognising.set_within(b'{"cells": []}', names) is None
