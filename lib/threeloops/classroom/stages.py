"""nbgrader's own converters, kept from one student to the next: templates, preprocessors and the way to the gradebook
are made once a run, where nbgrader makes them anew for every notebook.
"""

import contextlib
import functools
import io
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import nbgrader.api  # type: ignore[import-untyped]
from alembic.script import ScriptDirectory
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, GenerateFeedback  # type: ignore[import-untyped]
from nbgrader.coursedir import CourseDirectory  # type: ignore[import-untyped]
from nbgrader.dbutil import ALEMBIC_DIR  # type: ignore[import-untyped]
from sqlalchemy import create_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

PATIENCE_S = 120  # for others who write into the same gradebook


class StageError(Exception):
    """A stage of nbgrader failed; the message is its log."""

    def __repr__(self) -> str:
        return str(self)


@functools.cache
def _newest_tables() -> str:
    """The version of nbgrader's tables that a new gradebook begins with. nbgrader starts the program `alembic` to ask
    for it, which must be found first and takes seconds.
    """
    return str(ScriptDirectory(ALEMBIC_DIR).get_current_head())


nbgrader.api.get_alembic_version = _newest_tables


class _Held(Session):
    """A session that holds back what is committed cell by cell."""

    def commit(self) -> None:
        self.flush()

    def commit_all(self) -> None:
        super().commit()


class KeptGradebook(Gradebook):  # type: ignore[misc]
    """nbgrader's gradebook, made once. What is done in one `with` is written together at its end, or not at all; no
    connection stays open after it.
    """

    def __init__(self, url: str, course_id: str) -> None:
        super().__init__(url, course_id)
        super().close()
        patience = {"timeout": PATIENCE_S} if url.startswith("sqlite") else {}
        self.engine = create_engine(url, poolclass=NullPool, connect_args=patience)
        self.db = scoped_session(sessionmaker(class_=_Held, autoflush=True, bind=self.engine))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.db().commit_all()
        finally:
            self.db.remove()  # and what was not committed with it


@contextlib.contextmanager
def _everywhere(gradebook: KeptGradebook | None) -> Iterator[None]:
    """Every step of nbgrader's opens a gradebook by that name: while this holds, they get the one that is open."""
    if gradebook is None:
        yield
        return
    users = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("nbgrader.") and vars(module).get("Gradebook") is Gradebook
    ]
    for module in users:
        vars(module)["Gradebook"] = lambda *_, **__: gradebook
    try:
        yield
    finally:
        for module in users:
            vars(module)["Gradebook"] = Gradebook


class _Kept:
    """A converter that begins with what it has from the last time."""

    _started = False

    def start(self) -> None:
        if not self._started:
            super().start()  # type: ignore[misc]
            self._started = True
            return
        self.init_notebooks()  # type: ignore[attr-defined]
        before = os.getcwd()
        os.chdir(self.coursedir.root)  # type: ignore[attr-defined]
        try:
            self.convert_notebooks()  # type: ignore[attr-defined]
        finally:
            os.chdir(before)


class KeptAutograde(_Kept, Autograde):  # type: ignore[misc]
    """nbgrader's Autograde with its steps made once."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._steps: dict[bool, list[Any]] = {}

    def _init_preprocessors(self) -> None:
        if self._sanitizing not in self._steps:
            super()._init_preprocessors()
            self._steps[self._sanitizing] = self.exporter._preprocessors
        self.exporter._preprocessors = self._steps[self._sanitizing]


class KeptFeedback(_Kept, GenerateFeedback):  # type: ignore[misc]
    """nbgrader's GenerateFeedback with its page's template made once."""


class Stage:
    """One of nbgrader's converters, ready to be run for one student after the other."""

    def __init__(self, converter: type, config: Any, gradebook: KeptGradebook | None = None) -> None:
        self._directory = CourseDirectory(config=config)
        self._converter: Any = converter(coursedir=self._directory, config=config)
        self._converter.force = True
        self._converter.log = logging.Logger("nbgrader", logging.INFO)  # its own: nothing on the reader's screen
        self._gradebook = gradebook

    def run(self, *, name: str, student: str) -> None:
        """Convert one set's notebook of one student.

        Raises:   StageError with nbgrader's log
        """
        self._directory.assignment_id, self._directory.student_id = name, student
        told = io.StringIO()
        handler = logging.StreamHandler(told)
        self._converter.log.addHandler(handler)
        try:
            with warnings.catch_warnings(), _everywhere(self._gradebook):
                warnings.simplefilter("ignore")
                self._converter.start()
        except Exception as error:
            raise StageError(told.getvalue() + traceback.format_exc()) from error
        finally:
            self._converter.log.removeHandler(handler)
