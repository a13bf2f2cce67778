"""Attacks on the notebook itself: its cells, marks, text and pages."""

import copy
import json
import sys

from attacks import KEPT, SET, Attack, attacked, running
from submissions import Notebook, asked, released, set_source


def marks(notebook: Notebook) -> list[dict[str, object]]:
    return [cell["metadata"]["nbgrader"] for cell in notebook["cells"] if "nbgrader" in cell["metadata"]]


def graded_marks(notebook: Notebook) -> list[dict[str, object]]:
    return [fields for fields in marks(notebook) if fields["grade"]]


def drop_tests(notebook: Notebook) -> None:
    notebook["cells"] = [cell for cell in notebook["cells"] if not cell["metadata"].get("nbgrader", {}).get("grade")]


def edit_tests(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade"):
            cell["source"] = "pass"
            cell["metadata"]["nbgrader"] |= {"points": 100, "locked": False}


def swap_ids(notebook: Notebook) -> None:
    ids = [fields["grade_id"] for fields in graded_marks(notebook)]
    for fields, grade_id in zip(graded_marks(notebook), [*ids[1:], KEPT], strict=True):
        fields["grade_id"] = grade_id


def all_marks(**fields: object) -> Attack:
    return attacked(lambda notebook: [one.update(fields) for one in marks(notebook)] and None)


def doubled_tests(notebook: Notebook) -> None:
    tests = [copy.deepcopy(cell) for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade")]
    notebook["cells"] = [*tests, *notebook["cells"], *tests]


def doubled_answers(notebook: Notebook) -> None:
    answers = [
        copy.deepcopy(cell) for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("solution")
    ]
    notebook["cells"] += answers


def one_id_for_all(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["id"] = "same"


def stripped(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["metadata"] = {}


def answers_as_prose(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if cell["id"].endswith("-answer") and not cell["id"].startswith(KEPT):
            cell["cell_type"] = "markdown"


def graded_answers(notebook: Notebook) -> None:
    for fields in marks(notebook):
        if fields["solution"]:
            fields |= {"grade": True, "points": 50}


def invented_cell(notebook: Notebook) -> None:
    extra = copy.deepcopy(next(cell for cell in notebook["cells"] if cell["id"] == KEPT))
    extra["metadata"]["nbgrader"] |= {"grade_id": "bonus", "points": 50}
    notebook["cells"].append(extra | {"id": "bonus", "source": "pass"})


def odd_shapes(notebook: Notebook) -> None:
    notebook["cells"] += [
        None,
        7,
        [],
        {"cell_type": "code"},
        {"cell_type": "code", "source": 5, "metadata": []},
        {"cell_type": "what", "source": "x"},
    ]
    notebook["cells"] += [{"cell_type": "code", "source": ["a = 1\n", None], "metadata": {"nbgrader": [1]}, "id": {}}]
    notebook["metadata"] = {"kernelspec": {"name": "perl", "language": "perl", "display_name": "\ud800"}, "widgets": 5}


def script_everywhere(notebook: Notebook) -> None:
    attack = "<script>alert('x')</script><img src=x onerror=alert(1)>"
    for cell in notebook["cells"]:
        if cell["id"] == "doubling-gpus-answer":
            cell["source"] = f"My explanation {attack} [link](javascript:alert(1))"
    code = f"from IPython.display import HTML, display\nprint({attack!r})\ndisplay(HTML({attack!r}))\nHTML({attack!r})"
    set_source(notebook, "a-batch-answer", code)


EXPLANATION = "doubling-gpus-answer"
PROSE = {
    "svg": "<svg/onload=alert(1)>",
    "frame": "<iframe src='javascript:alert(1)'></iframe>",
    "comment": "<!-- --><script>alert(1)</script> <!--",
    "style": "<style>main.card { display: none }</style>",
    "entity": "&#60;script&#62;alert(1)&#60;/script&#62; &lt;img src=x onerror=alert(1)&gt;",
    "reference": "[x][1]\n\n[1]: javascript:alert(1)",
    "picture": "![x](javascript:alert(1)) ![y](http://127.0.0.1/track.png)",
    "bare": "<javascript:alert(1)> <https://127.0.0.1/> javascript:alert(1)",
    "formula": "$\\href{javascript:alert(1)}{click}$ $$\\class{x}{\\style{position:fixed}{y}}$$",
    "template": "{{ 7 * 7 }} {% include '/etc/passwd' %} {{ resources.nbgrader }}",
    "fence": "```html\n<script>alert(1)</script>\n```\n~~~\n</div></main><script>alert(1)</script>",
    "closing": "</div></details></main></body><script>alert(1)</script>",
}


def written(prose: str) -> Attack:
    """A notebook whose explanation is this."""
    return attacked(lambda notebook: set_source(notebook, EXPLANATION, prose))


def attached(notebook: Notebook) -> None:
    """Pictures that are pages, fastened to cells."""
    picture = {"x.svg": {"image/svg+xml": "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"}}
    for cell in notebook["cells"]:
        cell["attachments"] = picture
    set_source(notebook, EXPLANATION, "![x](attachment:x.svg)")


def shown_outputs(notebook: Notebook) -> None:
    """What a cell is said to have put out, among it a mark and a page."""
    made = {"text/html": "<script>alert(1)</script>", "application/javascript": "alert(1)"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [
                {"output_type": "display_data", "data": made, "metadata": {}},
                {"output_type": "stream", "name": "stdout", "text": "Right. 1 / 1"},
            ]
            cell["metadata"]["threeloops"] = {"status": "right", "slips": [], "message": "Right.", "yours": True}
    notebook["metadata"]["threeloops"] = {"status": "graded", "notes": ["all right"], "self_marked": 99}


def many_cells(notebook: Notebook) -> None:
    notebook["cells"] += [{"cell_type": "code", "source": "x = 1", "metadata": {}, "outputs": []}] * 4_500


def marked_as_yours(notebook: Notebook) -> None:
    """Every cell says that the student may write in it, and the questions ask nothing any more."""
    for cell in notebook["cells"]:
        cell["metadata"]["threeloops"] = {"yours": True, "written": "x"}
        if cell["metadata"].get("nbgrader", {}).get("grade"):
            cell["source"] = "sheet.check('kv-bytes-per-token', one_token)"


def one_question_everywhere(notebook: Notebook) -> None:
    """The question that was answered, under the ids of all the others."""
    (kept,) = [cell for cell in notebook["cells"] if cell["id"] == KEPT]
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade"):
            cell["source"] = kept["source"]


def swapped_answers(notebook: Notebook) -> None:
    """The honest answer under every other question's name, by its own cell."""
    for one in asked(SET).values():
        if one.grade_id != KEPT and one.kind == "number":
            set_source(notebook, f"{one.grade_id}-answer", f"{one.name} = one_token")


def long_ids(notebook: Notebook) -> None:
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"../../{number}/\x1b[31m\r\n" + "x" * 5_000


def odd_metadata(notebook: Notebook) -> None:
    deep: object = float("nan")
    for _ in range(60):
        deep = {"a": [deep]}
    notebook["metadata"] = {"deep": deep, "language_info": {"name": "../../x", "pygments_lexer": "<b>"}, "jupytext": {}}
    for cell in notebook["cells"]:
        cell["metadata"]["deep"] = deep
        cell["metadata"]["tags"] = ["remove-cell", "hide-input", "raises-exception", 5, None]
        cell["metadata"]["magics_language"] = "html"


def future_format(notebook: Notebook) -> None:
    notebook |= {"nbformat": 4.0, "nbformat_minor": 10**9}


def sources_as_lists(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["source"] = [*cell["source"], "", None, 3, ["x"]] if isinstance(cell["source"], list) else [cell["source"]]


CELLS: dict[str, Attack] = {
    "no-tests": attacked(drop_tests),
    "edited-tests": attacked(edit_tests),
    "swapped-ids": attacked(swap_ids),
    "tests-as-solutions": all_marks(solution=True, grade=False),
    "all-locked": all_marks(locked=True, solution=False),
    "old-schema": all_marks(schema_version=1),
    "future-schema": all_marks(schema_version=99),
    "points-as-text": all_marks(points="1e9"),
    "points-below-nothing": all_marks(points=-5, grade=True),
    "points-without-end": all_marks(points=float("inf")),
    "ids-as-lists": all_marks(grade_id=["one-token"]),
    "no-ids": all_marks(grade_id=None),
    "as-tasks": all_marks(task=True, grade=False, solution=False),
    "doubled-tests": attacked(doubled_tests),
    "doubled-answers": attacked(doubled_answers),
    "one-id-for-all": attacked(one_id_for_all),
    "metadata-gone": attacked(stripped),
    "answers-as-prose": attacked(answers_as_prose),
    "graded-answers": attacked(graded_answers),
    "invented-cell": attacked(invented_cell),
    "odd-shapes": attacked(odd_shapes),
    "half-characters": running("x = '\ud800'"),
    "outputs-shown": attacked(shown_outputs),
    "marked-as-yours": attacked(marked_as_yours),
    "one-question-everywhere": attacked(one_question_everywhere),
    "swapped-answers": attacked(swapped_answers),
    "many-cells": attacked(many_cells),
    "long-ids": attacked(long_ids),
    "odd-metadata": attacked(odd_metadata),
    "future-format": attacked(future_format),
    "sources-as-lists": attacked(sources_as_lists),
    "script-in-output": attacked(script_everywhere),
    "attachments": attacked(attached),
    "terminal-codes": running("print('\x1b]0;owned\x07\x1b[2J\x1b[31m\x00\x08\u202egnp.exe')"),
    "mark-of-the-richest": attacked(lambda notebook: set_source(notebook, "doubling-gpus-mark", "self_marked = 1e308")),
} | {f"prose-{name}": written(prose) for name, prose in PROSE.items()}

# what is no notebook at all: name -> bytes handed in
BROKEN: dict[str, bytes] = {
    "cut-off": json.dumps(released(SET)).encode()[:5000],
    "empty-file": b"",
    "a-list": b"[1, 2, 3]",
    "format-nine": json.dumps(released(SET) | {"nbformat": 9}).encode(),
    "format-in-words": json.dumps(released(SET) | {"nbformat": "4"}).encode(),
    "format-true": json.dumps(released(SET) | {"nbformat": True}).encode(),
    "no-cells": b'{"nbformat": 4, "cells": 3}',
    "binary": bytes(range(256)) * 40,
    "nested": b"[" * 100_000,
    "nested-objects": b'{"a":' * 90_000 + b"1" + b"}" * 90_000,
    "merge-conflict": b"<<<<<<< HEAD\n" + json.dumps(released(SET)).encode(),
    "enormous": b'{"nbformat": 4, "cells": [], "x": "' + b"x" * 20_000_001 + b'"}',
    "a-hundred-thousand-cells": json.dumps({"nbformat": 4, "cells": [{"cell_type": "code"}] * 100_000}).encode(),
    "a-million-brackets": b'{"nbformat": 4, "cells": [' + b"[]," * 1_200_000 + b"0]}",
    "a-giant-number": b'{"nbformat": 4, "cells": [], "x": ' + b"9" * (sys.get_int_max_str_digits() + 1) + b"}",
    "no-encoding": b'\xff\xfe{"nbformat": 4, "cells": []}',
    "two-notebooks": json.dumps(released(SET)).encode() * 2,
}
