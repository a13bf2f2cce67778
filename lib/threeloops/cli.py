"""The `threeloops` command: calculations with their working shown, the catalogue's sources, this machine, the book
and its drills.

A wrong input gets one sentence on stderr and exit code 2.
"""

import argparse
import codecs
import io
import sys
from collections.abc import Sequence
from typing import NoReturn

from threeloops.commands.book import add_book
from threeloops.commands.classroom import add_classroom
from threeloops.commands.drills import add_drills
from threeloops.commands.evidence import add_evidence
from threeloops.commands.grade import add_grade
from threeloops.commands.log.own_log import add_log
from threeloops.commands.paper import add_paper
from threeloops.commands.room import ROOM, add_room
from threeloops.commands.trace.own_trace import add_trace
from threeloops.commands.typed import in_flags
from threeloops.contents import in_commands

# Other imports stand inside the functions below: `threeloops kv` must not wait for what `threeloops open` needs.
# For a terminal that knows no more than ASCII.
PLAIN = {
    "×": "x",
    "→": "->",
    "≤": "<=",
    "µ": "u",
    "α": "alpha",
    "β": "beta",
    "⌈": "ceil(",
    "⌉": ")",
    "⌊": "floor(",
    "⌋": ")",
    "·": "*",
    "−": "-",
    "…": "...",
    "“": '"',
    "”": '"',
}


# What one wants to know -> the commands that say it.
GROUPS = {
    "what a model needs, and whether it fits": ("kv", "fit", "memory"),
    "how fast it is, on how many GPUs, at what price": ("roofline", "serve", "plan", "step", "allreduce"),
    "where a number comes from, and how far it is off": ("sources", "measured", "doctor", "record"),
    "where the time of your own run went": ("trace", "log"),
    "read and practise": ("open", "reset", "site", "drill", "progress", "history", "sheet"),
    "teach": ("quiz", "grade", "classroom", "drills"),
}
EXIT_CODES = """exit codes: 0 answered (also where the answer is that something does not fit), 2 something given was
wrong, in one sentence on stderr, 130 stopped. --json prints results in base SI (bytes, seconds, FLOP)
under names without spaces, beside conclusion, assumes and sources."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}; `{self.prog} --help` shows what it takes", file=sys.stderr)
        raise SystemExit(2)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> NoReturn:
        import importlib.metadata

        print(f"Three Loops {importlib.metadata.version('threeloops')}")
        parser.exit()


def parser(command: str = "") -> argparse.ArgumentParser:
    """The whole command line; for a question in the terminal without the calculations, which take a while to load."""
    top = _Parser(
        prog="threeloops",
        description="Three Loops: predicted, counted and measured. `threeloops COMMAND --help` says what each takes.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument(
        "--version", action=_Version, nargs=0, dest=argparse.SUPPRESS, help="show program's version number and exit"
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser, help=argparse.SUPPRESS)
    if command not in ROOM:
        from threeloops.commands.calculations import add_calculations

        add_calculations(commands)
    add_evidence(commands)
    add_trace(commands)
    add_log(commands)
    add_book(commands)
    add_room(commands)
    add_paper(commands)
    add_grade(commands)
    add_drills(commands)
    add_classroom(commands)
    top.usage = "threeloops [-h] [--version] COMMAND ..."
    top.epilog = _grouped({action.dest: action.help or "" for action in commands._get_subactions()})
    return top


def _grouped(told: dict[str, str]) -> str:
    """The commands by what one wants to know, and what a script has to know of all of them."""
    rows = []
    for question, names in GROUPS.items():
        shown = [name for name in names if name in told]
        rows += [f"{question}:", *(f"  {name:<10} {told[name]}" for name in shown), ""] if shown else []
    return "\n".join([*rows, EXIT_CODES])


def _plainly(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "".join(PLAIN.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; a reader's mistake ends in one sentence and code 2, never in a traceback."""
    codecs.register_error("plainly", _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plainly")
    words = sys.argv[1:] if words is None else words
    command = parser(words[0] if words else "")
    given = command.parse_args(words)
    try:
        code: int = given.run(given) or 0
        sys.stdout.flush()
        return code
    except ValueError as error:
        print(f"threeloops: {in_commands(in_flags(str(error).splitlines()[0], command, words))}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("", "threeloops"):
            raise
        print(
            f"threeloops: {words[0]} needs {error.name}, which is not installed here: `pip install {error.name}`, or"
            " `python3 book.py` in a clone of the book, which sets up all of it",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `threeloops sources | head`
        sys.stderr.close()  # Python would complain there that stdout cannot be flushed
        return 0
    except OSError as error:
        print(
            f"threeloops: {error.strerror or error}" + (f": {error.filename}" if error.filename else ""),
            file=sys.stderr,
        )
        return 2
