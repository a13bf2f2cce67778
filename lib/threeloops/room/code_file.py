"""A task in code as the reader's own file: written where their work lies, opened in their editor, never overwritten."""

import functools
import itertools
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from threeloops.room.history import History
from threeloops.room.question import Question

FOLDER = "code"
LONGEST_READ = 1_000_000  # bytes: no answer is longer


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFile:
    """The file of one question."""

    path: Path
    aside: Path | None = None  # where an earlier file of the same name was put

    @property
    def told(self) -> str:
        """Where it is, in a sentence."""
        kept = f" What you wrote there before is kept as {self.aside.name}." if self.aside else ""
        return f"Your file: {self.path}.{kept}"

    def text(self) -> str:
        """What it holds now.

        Raises:   ValueError, in words for the reader, where it cannot be read
        """
        try:
            with self.path.open("rb") as file:
                return file.read(LONGEST_READ).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no text in UTF-8"
            raise ValueError(f"{self.path} cannot be read ({why}); save it again under that name") from None

    def write(self, text: str) -> None:
        """Save it.

        Raises:   ValueError, in words for the reader, where the disk does not take it
        """
        try:
            self.path.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise ValueError(f"{self.path} cannot be written ({error.strerror}); copy your code to be safe") from None

    def edit(self) -> bool:
        """Open it in the reader's editor and wait for that; whether the file has changed.

        Raises:   ValueError, in words for the reader, where no editor is set or it does not start
        """
        before, words = self.text(), editor()
        if not words:
            raise ValueError("no editor is set in $VISUAL or $EDITOR; open the file in one, save it, and press Enter")
        try:
            subprocess.run([*words, str(self.path)], check=False)
        except OSError as error:
            raise ValueError(
                f"your editor, {words[0]!r}, did not start ({error.strerror}); open the file otherwise, save it, and"
                " press Enter"
            ) from None
        return self.text() != before


def editor() -> list[str]:
    """The command of the reader's editor: $VISUAL, or $EDITOR, or none."""
    return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "", posix=sys.platform != "win32")


def how() -> str:
    """How it is answered, in a sentence."""
    opened = "`edit` opens it in your editor again" if editor() else "open it in any editor"
    return f"Enter runs it as it is saved; {opened}. What the function prints is shown by running the file yourself."


def reader(file: CodeFile, line: Callable[[], str], *, opens: bool) -> Callable[[], str]:
    """What reads an answer: the file when the reader presses Enter or comes back from their editor with something
    changed; any other line is a word to the room (hint, show, quit). `opens`: the editor is opened at the beginning.
    """
    unopened = opens and bool(editor())

    def read() -> str:
        nonlocal unopened
        while True:
            try:
                word, unopened = ("edit" if unopened else line().strip()), False
                if not word or (word.lower() == "edit" and file.edit()):
                    return file.text()
                if word.lower() != "edit":
                    return word
                print("Nothing in it has changed. Enter runs it as it is.")
            except ValueError as error:
                print(f"{str(error)[:1].upper()}{str(error)[1:]}.")

    return read


@functools.cache
def _unkept() -> tempfile.TemporaryDirectory[str]:
    """A folder that goes with the process, for somebody who asked that nothing be kept."""
    return tempfile.TemporaryDirectory(prefix="three-loops-code-")


def placed(question: Question, history: History) -> CodeFile:
    """The file of a question, beside the history: as it was left, if it is of this question; otherwise a new one, with
    what stood there put aside.

    Raises:   ValueError, in words for the reader, where nothing can be written
    """
    folder = history.path.parent / FOLDER if history.kept else Path(_unkept().name)
    path, aside = folder / f"{question.idea.removeprefix('code-')}.py", None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            if path.read_text(encoding="utf-8", errors="replace").splitlines()[:1] == question.starter.splitlines()[:1]:
                return CodeFile(path=path)
            aside = next(
                other
                for number in itertools.count(1)
                if not (other := path.with_name(f"{path.stem}-{number}.py")).exists()
            )
            path.rename(aside)
        path.write_text(question.starter, encoding="utf-8")
    except OSError as error:
        raise ValueError(
            f"{path} cannot be written ({error.strerror}); make room or make its folder writable"
        ) from None
    return CodeFile(path=path, aside=aside)
