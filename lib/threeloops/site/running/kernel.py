"""A cell of a chapter, run in a page: after the cells above it that it needs, each time from the beginning, so that
nothing is left over from what was run before.

Words go in and JSON comes out, as in answering. Python in a browser cannot interrupt itself, so the page is told
before each cell how long it may take, as in functions.

>>> json.loads(run('[["a = 6"], ["print(a)\\\\na * 7"]]', lambda sentence, seconds: None))["shown"]
[{'text': '6\\n'}, {'text': '42'}]
"""

import ast
import contextlib
import io
import json
import linecache
import traceback
from collections.abc import Callable
from typing import Any

from threeloops.drills.engine import prediction
from threeloops.figures import look
from threeloops.figures.figure import SCHEMA, Figure
from threeloops.site.running.names import names_of
from threeloops.widgets.explorer import Explorer

LIMIT_S = 60  # for one cell: a few seconds at the desk
MOST = 20_000  # letters that a cell may print
OWN = "your code"  # how a traceback calls a cell
NOT_HERE = "_not_in_this_page"  # what stands in for a module that a page has not
LEFT_OUT = "_left_out"  # names that statements of cells above would have made, which were left out
# Told what begins now, as the sentence that is due if it does not end, and the seconds that it has.
Tell = Callable[[str, float], object]


class NotHere:
    """What stands for a name whose module a page has not: it says so when it is used."""

    def __init__(self, why: ImportError) -> None:
        self._why = why

    def __getattr__(self, name: str) -> Any:
        raise ModuleNotFoundError(f"{self._why}: this page has Python and this book, and nothing else")

    def __call__(self, *_: object, **__: object) -> Any:
        return self.__getattr__("")


class _Tolerant(ast.NodeTransformer):
    """Imports one name after the other, and goes on without what is not here."""

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for alias in node.names:
            alone = ast.copy_location(type(node)(**{**dict(ast.iter_fields(node)), "names": [alias]}), node)
            name = (alias.asname or alias.name).partition(".")[0]
            stand_in = f"try:\n    pass\nexcept ImportError as _why:\n    {name} = {NOT_HERE}(_why)"
            tried = ast.parse(stand_in).body[0]
            assert isinstance(tried, ast.Try)
            tried.body = [alone]
            made.append(ast.fix_missing_locations(ast.copy_location(tried, node)))
        return made

    visit_ImportFrom = visit_Import

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """What a function imports, it imports when it is called."""
        return node


def run(told: str, tell: Tell) -> str:
    """What the last of some cells shows, or why it could not be run. Each is a list of its source alone."""
    sources = [source for (source,) in json.loads(told)]
    space: dict[str, Any] = {"__name__": "__main__", NOT_HERE: NotHere, LEFT_OUT: set()}
    shown: list[dict[str, Any]] = []
    problem = ""
    for number, source in enumerate(sources):
        here = number == len(sources) - 1
        tell(f"{'It' if here else 'A cell above it'} did not come to its end in {LIMIT_S} s.", LIMIT_S)
        shown, problem = _cell(source, space, above=not here)
        if problem:
            problem = problem if here else f"A cell above it ended with this:\n{problem}"
            break
    tell("", 0)  # everything has come back
    return json.dumps({"shown": shown if not problem or len(sources) == number + 1 else [], "problem": problem})


def _cell(source: str, space: dict[str, Any], *, above: bool) -> tuple[list[dict[str, Any]], str]:
    linecache.cache[OWN] = (len(source), None, source.splitlines(keepends=True), OWN)
    said, value, problem = io.StringIO(), None, ""
    try:
        tree = _Tolerant().visit(ast.parse(source, OWN))
        last = tree.body.pop() if not above and tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            for one in tree.body:
                _statement(one, space, above=above)
            if last:
                value = eval(compile(ast.Expression(last.value), OWN, "eval"), space)
    except Exception as error:
        problem = _told(error)
    printed = said.getvalue().replace(prediction.NOT_YET, "")
    printed = printed if len(printed) <= MOST else f"{printed[:MOST]}\n[the rest was cut]\n"
    return [*([{"text": printed}] if printed else []), *([] if value is None else _shown(value))], problem


def _statement(one: ast.stmt, space: dict[str, Any], *, above: bool) -> None:
    """A statement of a cell above that needs what is not here, or a name that was left out with it, is left out: what
    was asked for needs none of it. Every other error is told.
    """
    try:
        exec(compile(ast.Module([one], []), OWN, "exec"), space)
    except Exception as error:
        read = names_of(ast.unparse(one))
        if not above or not (read.asked & space[LEFT_OUT] or isinstance(error, ModuleNotFoundError)):
            raise
        space[LEFT_OUT] |= read.made


def _told(error: Exception) -> str:
    """A traceback without what is not the reader's."""
    if isinstance(error, SyntaxError):
        return "".join(traceback.format_exception_only(error)).rstrip()
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == OWN]
    lines = [f"line {frame.lineno}: {frame.line}" for frame in own]
    return "\n".join([*lines, "".join(traceback.format_exception_only(error)).rstrip()])


def _shown(value: Any) -> list[dict[str, Any]]:
    """The value of a cell's last line: a figure as what draws it, everything else in words."""
    if isinstance(value, Figure):
        return [_drawn(value)]
    if isinstance(value, Explorer):
        return [{"text": value.view.summary}, _drawn(value.view.figure)]
    bundle = getattr(value, "_repr_mimebundle_", None)
    return [{"text": bundle()["text/plain"] if bundle else repr(value)}]


def _drawn(figure: Figure) -> dict[str, Any]:
    about = {"$schema": SCHEMA, "config": {**look.config(), "background": "transparent"}}
    slim = figure.narrow_body
    return {
        "title": figure.title,
        "caption": figure.caption,
        "alt": figure.alt,
        "chart": {**about, **figure.body},
        "slim": {**about, **slim} if slim else None,
    }
