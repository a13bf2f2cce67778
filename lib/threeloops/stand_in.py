"""Stand in: where a cell cannot run here, show what it printed when the book was made, and say why.

A chapter's cells marked "torch" need torch, and some of them processes or a compiler. `watch()`, called where a part
loads what it needs, lets such a cell show its recorded output (from the committed chapter) where torch is not
installed, where processes cannot be started or did not answer, where the operating system does not tell what is
asked, where a middleware is not installed or gets no memory, and where torch.compile finds no compiler. Every other
error is the reader's to see, and so is every error in a cell that the reader has changed.
"""

import ast
import functools
import importlib.util
import json
import sys
from dataclasses import dataclass
from typing import Any

from threeloops.contents import book_root
from threeloops.drills.engine.ask_first import ask_first

# of a marked cell; of the notebook that says where it was run (tests/chapters/execute.py writes it)
TAG, STAMP = "torch", "threeloops"
# Named, so that nothing of torch is imported to recognise them.
_NO_PROCESSES = ("RankError", "ProcessSilent", "PermissionError", "BlockingIOError")
_NO_SUCH_SYSTEM = ("UnsupportedSystem",)
_NO_MIDDLEWARE = ("MiddlewareMissing",)
# of iceoryx2, where the machine gives it no room: a node, a topic, or an end of one cannot be made
_NO_ROOM = (
    "NodeCreationFailure",
    *(f"{kind}{verb}Error" for kind in ("PublishSubscribe", "Event") for verb in ("Create", "Open", "OpenOrCreate")),
    *(f"{end}CreateError" for end in ("Publisher", "Subscriber", "Notifier", "Listener")),
)
_NO_COMPILER = ("MissingCompiler", "InvalidCxxCompiler", "CppCompileError", "InductorError", "BackendCompilerFailed")
_STARTED = "__threeloops_stands_in__"  # the name under which the wrapped cell finds this module's watcher


@dataclass(frozen=True, slots=True)
class RecordedCell:
    """What a cell showed when its chapter was run for the book, and where and when that was."""

    outputs: tuple[dict[str, Any], ...]
    run_on: str


@functools.cache
def recorded_cells() -> dict[str, RecordedCell]:
    """Source of every marked cell of the committed chapters -> its recorded run."""
    found = {}
    for path in sorted(book_root().glob("chapters/*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if STAMP not in notebook["metadata"]:
            continue  # a chapter that is being written and was not run yet: there is nothing to show
        for cell in notebook["cells"]:
            if TAG in cell["metadata"].get("tags", ()):
                found["".join(cell["source"]).strip()] = RecordedCell(
                    tuple(cell["outputs"]), notebook["metadata"][STAMP]["run_on"]
                )
    return found


def torch_missing() -> bool:
    """Whether torch cannot be imported here."""
    try:
        return importlib.util.find_spec("torch") is None
    except ValueError:  # what Python answers for a module that was blocked
        return True


def reason(error: Exception, *, after_another: bool) -> str:
    """Why a recorded run may stand in for a cell that ended with this error; "" where it may not.

    >>> reason(ZeroDivisionError("division by zero"), after_another=False)
    ''
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    first_line = str(error).partition("\n")[0]
    if names & set(_NO_PROCESSES):
        return f"the processes of this cell did not do their work here ({first_line})"
    if names & set(_NO_SUCH_SYSTEM):
        return f"this system does not tell what the cell asks for ({first_line})"
    if names & set(_NO_MIDDLEWARE):
        return first_line
    if names & set(_NO_ROOM):
        return f"iceoryx2 cannot set up its shared memory here ({first_line})"
    if names & set(_NO_COMPILER):
        return f"torch.compile found no working compiler here ({first_line}; `threeloops doctor` says what to install)"
    if after_another and isinstance(error, NameError):
        return "this cell needs what an earlier one could not make here"
    return ""


class Watcher(ast.NodeTransformer):
    """Wraps marked cells, as they are run, in a `try` that shows the recorded run."""

    def __init__(self) -> None:
        self.recorded: RecordedCell | None = None  # of the cell that is run now, None where it is not marked
        self.stood_in = False

    def cell_starts(self, info: Any) -> None:
        self.recorded = recorded_cells().get((info.raw_cell or "").strip())

    def visit_Module(self, node: ast.Module) -> ast.Module:
        if not self.recorded or not node.body:
            return node
        if torch_missing():
            return _parsed(f"{_STARTED}.show('torch is not installed here (`python3 book.py setup` installs it)')")
        wrapped = _parsed(
            f"try:\n    pass\nexcept Exception as {_STARTED}error:\n    if not {_STARTED}.shows({_STARTED}error): raise"
        )
        last = node.body[-1]
        if isinstance(last, ast.Expr):  # inside a try its value would not be shown
            call = _parsed("__import__('sys').displayhook(None)").body[0]
            call.value.args = [last.value]  # type: ignore[attr-defined]
            node.body[-1] = ast.copy_location(call, last)
        wrapped.body[0].body = node.body  # type: ignore[attr-defined]
        return ast.fix_missing_locations(wrapped)

    def shows(self, error: Exception) -> bool:
        """Show the recorded run if it may stand in for this error."""
        why = reason(error, after_another=self.stood_in)
        if why:
            self.show(why)
        return bool(why)

    def show(self, why: str) -> None:
        from IPython.display import display

        assert self.recorded  # only a marked cell comes here
        self.stood_in = True
        print(f"Recorded run: {why}. What follows was measured on {self.recorded.run_on}.\n")
        for output in self.recorded.outputs:
            if output["output_type"] == "stream":
                print("".join(output["text"]), end="")
            elif "data" in output:
                display({mime: _joined(value) for mime, value in output["data"].items()}, raw=True)


def watch() -> None:
    """From here on, marked cells that cannot run show their recorded run, and cells that compare a prediction wait for
    it. Does nothing outside a notebook, and nothing twice.

    >>> watch()
    """
    shell = _shell()
    if shell is None or _STARTED in shell.user_ns:
        return
    watcher = Watcher()
    shell.user_ns[_STARTED] = watcher
    shell.user_ns_hidden[_STARTED] = watcher
    shell.events.register("pre_run_cell", watcher.cell_starts)
    shell.ast_transformers.append(watcher)
    ask_first()


def _shell() -> Any:
    """The running IPython, None outside one."""
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def _joined(value: Any) -> Any:
    return "".join(value) if isinstance(value, list) else value
