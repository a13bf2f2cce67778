"""Ask first: in front of a reader, a cell that compares a prediction shows nothing until there is one, and a check
that is run before its answer says so in a sentence.

The book's JupyterLab sets THREELOOPS_READER for its kernels: only there is somebody who can be asked. Everywhere else
a cell without a prediction goes on and says what it comes out at.
"""

import ast
import builtins
import os
import sys
from typing import Any

READER = "THREELOOPS_READER"
_HOOK = "__threeloops_asks_first__"  # under this name the shell knows that it has been done
_PREDICTION = "First your prediction: the card above takes a number, or skip. Then run this cell again."
_CHECKS = ("check", "check_function")


def ask_first() -> None:
    """From here on, cells wait for what they need. Does nothing outside a notebook, and nothing twice.

    >>> ask_first()
    """
    shell: Any = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or _HOOK in shell.user_ns_hidden:
        return
    shell.user_ns_hidden[_HOOK] = True
    shell.ast_transformers.append(_Waiting(shell.user_ns))


class _Waiting(ast.NodeTransformer):
    """Puts a sentence in the place of what a cell would show too early, or of a check that cannot be made yet."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.known = known

    def visit_Module(self, node: ast.Module) -> ast.Module:
        sentence = waiting(node, self.known)
        if not sentence:
            return node
        if sentence == _PREDICTION:
            return _run_silently(node)
        # on stderr, which nbgrader counts as not passed: a check that was not answered may not stand there as right
        return ast.parse(f"import sys\nprint({sentence!r}, file=sys.stderr)")


def _run_silently(cell: ast.Module) -> ast.Module:
    """The cell with all it shows left out: what it makes is needed by those that follow."""
    silent = ast.parse(f"with __import__('IPython').utils.capture.capture_output():\n    pass\nprint({_PREDICTION!r})")
    silent.body[0].body = cell.body  # type: ignore[attr-defined]
    return ast.fix_missing_locations(silent)


def waiting(cell: ast.Module, known: dict[str, Any]) -> str:
    """Why a cell cannot be run yet; empty where it can.

    >>> waiting(ast.parse("sheet.check('kv-latent', cache)"), {})
    'This check needs `cache`, which is made in a cell above that has not been run: run that one first.'
    >>> waiting(ast.parse("sheet.check('kv-latent', cache)"), {"cache": "3 GB"})
    ''
    """
    made = {name.id for name in ast.walk(cell) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
    for call in (found for found in ast.walk(cell) if isinstance(found, ast.Call)):
        asked = _asked(call)
        name = asked.id if asked else ""
        if not asked or name in made or hasattr(builtins, name):
            continue
        if name not in known:
            kind = "comparison" if _called(call) == "compare" else "check"
            return (
                f"This {kind} needs `{name}`, which is made in a cell above that has not been run: run that one first."
            )
        if _called(call) == "compare" and known[name] is ... and os.environ.get(READER):
            return _PREDICTION
    return ""


def _called(call: ast.Call) -> str:
    function = call.func
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return ""
    whole = f"{function.value.id}.{function.attr}"
    return function.attr if whole in ("predicted.compare", *(f"sheet.{check}" for check in _CHECKS)) else ""


def _asked(call: ast.Call) -> ast.Name | None:
    """The variable that a comparison or a check looks at."""
    place = {"compare": 0, "check": 1, "check_function": 1}.get(_called(call))
    found = call.args[place] if place is not None and len(call.args) > place else None
    return found if isinstance(found, ast.Name) else None
