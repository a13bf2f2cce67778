"""Cells of the chapters as a page runs them: without any package, each from the beginning, and with the results that
the book prints.
"""

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.seeds import todays
from tests.site.conftest import ROOT
from threeloops.drills.engine import prediction
from threeloops.site import cells, chapters
from threeloops.site.links import Places
from threeloops.site.parts import Part, parts, text
from threeloops.site.running import kernel, marks, needs
from threeloops.site.running.names import names_of

# As in a page: what no package brings is all there is. One line a cell: its key and what was answered.
ALONE = """
import json, sys
class Without:
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if first != "threeloops" and first not in sys.stdlib_module_names and first not in {0!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Without())
from threeloops.site.running import kernel
for line in sys.stdin:
    key, sources = json.loads(line)
    print(json.dumps([key, json.loads(kernel.run(json.dumps(sources), lambda sentence, seconds: None))]))
"""
SILENT = lambda sentence, seconds: None  # noqa: E731


def code(*sources: str) -> list[dict[str, Any]]:
    return [{"cell_type": "code", "source": source, "metadata": {}, "outputs": []} for source in sources]


def ran(*sources: str) -> dict[str, Any]:
    return dict(json.loads(kernel.run(json.dumps([[source] for source in sources]), SILENT)))


def printed(cell: dict[str, Any]) -> str:
    """What the book shows for a cell, in words."""
    outputs = cell["outputs"]
    streams = ["".join(one["text"]) for one in outputs if one["output_type"] == "stream"]
    values = ["".join(one["data"].get("text/plain", "")) for one in outputs if one["output_type"] == "execute_result"]
    return "".join(streams).replace(prediction.NOT_YET, "") + "".join(values)


def said(answer: dict[str, Any]) -> str:
    return "".join(one.get("text") or f"{one['title']}. {one['alt']}" for one in answer["shown"])


def runnable(part: Part) -> dict[int, needs.Needs]:
    """The cells of a part that have a button; explorers say more in the book than their figure."""
    found = {}
    for place, need in needs.needs(part.cells).items():
        source = text(part.cells[place])
        asks = cells.ASKED.search(source) or cells.PREDICTION.match(source.strip())
        if not asks and not need.packages and "explorer()" not in source:
            found[place] = need
    return found


def test_what_has_a_button_shows_what_the_book_shows() -> None:
    from threeloops.site import wasm

    asked, expected = [], {}
    for part in todays(parts(ROOT)):
        for place, need in runnable(part).items():
            key = f"{part.page} {place}"
            asked.append(json.dumps([key, [[text(part.cells[one])] for one in (*need.above, place)]]))
            expected[key] = printed(part.cells[place])
    alone = ALONE.format(wasm.FROM_ELSEWHERE)
    done = subprocess.run(
        [sys.executable, "-c", alone], input="\n".join(asked), capture_output=True, text=True, cwd=ROOT
    )
    assert not done.returncode, done.stderr[-2000:]
    answers = dict(json.loads(line) for line in done.stdout.splitlines())
    assert set(answers) == set(expected)
    assert not {key: answer["problem"] for key, answer in answers.items() if answer["problem"]}
    differ = [key for key, answer in answers.items() if said(answer).split() != expected[key].split()]
    assert not differ, [said(answers[key]) for key in differ]


def test_half_of_the_books_cells_run_in_a_page() -> None:
    found = [need for part in parts(ROOT) for need in needs.needs(part.cells).values()]
    assert sum(not need.packages for need in found) > len(found) / 2


def test_a_cell_needs_the_cells_that_made_what_it_uses_and_no_others() -> None:
    found = needs.needs(
        code(
            "a, b = 1, {}",
            "c = 2",
            "b.setdefault(1, []).append(c)",
            "def twice(x):\n    return a * x",
            "print(twice(3))",
            "b",
        )
    )
    assert {place: need.above for place, need in found.items()} == {
        **{0: (), 1: (), 2: (0, 1), 3: (0,), 4: (0, 3)},
        5: (0, 1, 2),
    }


def test_only_what_comes_from_a_package_needs_it() -> None:
    found = needs.needs(
        code(
            "import torch\nfrom threeloops.operations import roofline\nx = torch.ones(2)\ny = 3",
            "print(roofline, y)",
            "z = x + y",
            "print(z)",
            "z = [torch for torch in (1, 2)]",
            "print(z)",
            "async def one():\n    await two()",
            "await one()",
        )
    )
    assert {place: sorted(need.packages) for place, need in found.items()} == {
        **{0: ["torch"], 1: [], 2: ["torch"], 3: ["torch"], 4: [], 5: [], 6: []},
        7: ["JupyterLab"],
    }
    assert needs.missing("threeloops.simulate.training_loop.collectives.simulated") == {"numpy"}, "when it is called"


def test_names_are_followed_as_python_does() -> None:
    read = names_of(
        "for one in all_:\n    total += one\nkept['x'] = [own for own in rows if (last := own)]\n"
        "class Thing:\n    size = width\nmatch here:\n    case [first, *_]:\n        pass\n"
        "try:\n    pass\nexcept KeyError as error:\n    raise\nf = lambda own=given: own + outer"
    )
    assert read.asked == {"all_", "total", "kept", "rows", "width", "here", "KeyError", "given", "outer"}
    assert {"one", "total", "kept", "Thing", "first", "error", "f"} <= read.made
    assert not {"own", "size"} & read.made


def test_each_run_begins_from_nothing() -> None:
    assert ran("a = [1]", "a.append(2)\na") == ran("a = [1]", "a.append(2)\na")
    assert ran("a") == {"shown": [], "problem": "line 1: a\nNameError: name 'a' is not defined"}


def test_an_error_is_told_with_its_line_and_what_was_printed_stays() -> None:
    answer = ran("print('before')\n\n1 / 0")
    assert answer == {"shown": [{"text": "before\n"}], "problem": "line 3: 1 / 0\nZeroDivisionError: division by zero"}
    assert "SyntaxError" in ran("def f(:")["problem"]
    assert ran("1 / 0", "2")["problem"].startswith("A cell above it ended with this:\nline 1: 1 / 0")


def test_what_is_missing_is_missed_where_it_is_used() -> None:
    assert ran("import no_such\nfrom no_such import one", "2")["shown"] == [{"text": "2"}]
    assert ran("import no_such\nx = no_such.x\ny = x + 1", "2")["shown"] == [{"text": "2"}], "what nobody asked for"
    assert (
        "No module named 'no_such': this page has Python and this book" in ran("import no_such\nno_such.x")["problem"]
    )
    assert "this page has Python" in ran("from no_such import one\none()")["problem"]


def test_what_is_left_out_above_hides_no_other_error() -> None:
    assert ran("import no_such\nx = no_such.x\nkept = 1 / 0", "2")["problem"].endswith(
        "line 3: kept = 1 / 0\nZeroDivisionError: division by zero"
    )
    assert ran("import no_such\nx = no_such.x", "y = unknown", "2")["problem"].endswith("'unknown' is not defined")


def test_what_is_printed_without_an_end_is_cut() -> None:
    (shown,) = ran("for number in range(10_000): print(number)")["shown"]
    assert shown["text"].endswith("[the rest was cut]\n")
    assert len(shown["text"]) < kernel.MOST + 30


def test_each_cell_tells_how_long_it_may_take() -> None:
    told: list[tuple[str, float]] = []
    kernel.run(json.dumps([["a = 1"], ["a"]]), lambda *words: told.append(words))
    assert [seconds for _, seconds in told] == [kernel.LIMIT_S, kernel.LIMIT_S, 0]
    assert told[0][0].startswith("A cell above it")


@pytest.mark.parametrize("package", ["torch", "numpy"])
def test_a_cell_that_cannot_run_says_what_it_needs(package: str) -> None:
    cell = code("x")[0]
    need = needs.Needs(packages=frozenset({package, "zlib"}), above=())
    told = marks.mark(3, cell, need, word="1.2", hidden=False)
    assert f"<code>{package}</code>, which a page has not: <code>python3 book.py 1.2</code>" in told
    assert "run-needs" not in marks.mark(3, cell, need, word="1.2", hidden=True)


def test_every_cell_that_another_needs_stands_on_the_page() -> None:
    """Also one that a page cannot run whole: what is taken from it may need no package."""
    pages, partly = parts(ROOT), 0
    known = Places(pages)
    for part in pages:
        found = needs.needs(part.cells)
        source = "".join(one["source"] for one in chapters.page(part, pages, known, ()) if one["cell_type"] != "code")
        marked = set(map(int, re.findall(r'<div class="run" data-place="(\d+)"', source)))
        assert {place for need in found.values() for place in need.above} <= marked, part.page
        partly += sum(bool(found[place].packages) for need in found.values() for place in need.above)
    assert partly > 50
