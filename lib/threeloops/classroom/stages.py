"""nbgrader's own converters, kept from one student to the next: templates, preprocessors and the way to the gradebook
are made once a run, where nbgrader makes them anew for every notebook.
"""

import contextlib
import functools
import io
import logging
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import nbconvert.exporters.html
import nbgrader.api  # type: ignore[import-untyped]
from alembic.script import ScriptDirectory
from jinja2.meta import find_referenced_templates
from nbconvert.writers.files import FilesWriter
from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    GradeCell,
    Notebook,
    SourceCell,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.converters import Autograde, GenerateFeedback  # type: ignore[import-untyped]
from nbgrader.coursedir import CourseDirectory  # type: ignore[import-untyped]
from nbgrader.dbutil import ALEMBIC_DIR  # type: ignore[import-untyped]
from sqlalchemy import create_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

from threeloops.classroom import summary

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
nbconvert.exporters.html.BeautifulSoup = summary.read_where_needed  # type: ignore[assignment,attr-defined]


class _Held(Session):
    """A session that holds back what is committed cell by cell."""

    def commit(self) -> None:
        self.flush()

    def commit_all(self) -> None:
        super().commit()


class AskedOnce(Gradebook):  # type: ignore[misc]
    """The same answers as Gradebook's. Rows are kept for as long as the session that they belong to; one that is not
    among them is asked for as before.
    """

    def find_grade(self, grade_cell: str, notebook: str, assignment: str, student: str) -> Any:
        known = self._known(Grade, self._of_student, notebook, assignment, student)
        return known.get(grade_cell) or super().find_grade(grade_cell, notebook, assignment, student)

    def find_comment(self, solution_cell: str, notebook: str, assignment: str, student: str) -> Any:
        known = self._known(Comment, self._of_student, notebook, assignment, student)
        return known.get(solution_cell) or super().find_comment(solution_cell, notebook, assignment, student)

    def find_source_cell(self, name: str, notebook: str, assignment: str) -> Any:
        known = self._known(SourceCell, self._of_set, notebook, assignment)
        return known.get(name) or super().find_source_cell(name, notebook, assignment)

    def find_graded_cell(self, name: str, notebook: str, assignment: str) -> Any:
        known = self._known(GradeCell, self._of_set, notebook, assignment)
        return known.get(name) or super().find_graded_cell(name, notebook, assignment)

    def _known(self, kind: Any, query: Callable[..., Any], *names: str) -> dict[str, Any]:
        """Every row of a kind that a notebook has, by its cell's name."""
        kept: dict[Any, dict[str, Any]] = self.db().info
        if (kind, *names) not in kept:
            kept[(kind, *names)] = dict(query(kind, *names).all())
        return kept[(kind, *names)]

    def _of_set(self, kind: Any, notebook: str, assignment: str) -> Any:
        return (
            self.db.query(kind.name, kind)
            .join(Notebook, Notebook.id == kind.notebook_id)
            .join(Assignment, Assignment.id == Notebook.assignment_id)
            .filter(Notebook.name == notebook, Assignment.name == assignment)
        )

    def _of_student(self, kind: Any, notebook: str, assignment: str, student: str) -> Any:
        return (
            self.db.query(BaseCell.name, kind)
            .join(BaseCell, BaseCell.id == kind.cell_id)
            .join(SubmittedNotebook, SubmittedNotebook.id == kind.notebook_id)
            .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
            .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
            .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
            .join(Student, Student.id == SubmittedAssignment.student_id)
            .filter(Notebook.name == notebook, Assignment.name == assignment, Student.id == student)
        )


class KeptGradebook(AskedOnce):
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

    _ready = False

    def make_ready(self: Any) -> None:
        if not self._ready:
            self.exporter = self.exporter_class(parent=self, config=self.config)
            for step in self.preprocessors:
                self.exporter.register_preprocessor(step)
            self._ready = True

    def start(self: Any) -> None:
        """What nbgrader's own does, except for what is there."""
        self.init_notebooks()
        self.make_ready()
        # A writer makes its folder when it is told of another one; a folder that was removed since it does not make.
        self.writer = FilesWriter(parent=self, config=self.config)  # type: ignore[no-untyped-call]
        with contextlib.chdir(self.coursedir.root):
            self.convert_notebooks()


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

    def make_ready(self) -> None:
        if self._ready:
            return
        super().make_ready()
        environment = self.exporter.environment
        for later in ("highlight_code", "filter_data_type"):  # each notebook brings its own
            self.exporter.register_filter(later, repr)
        names = [self.exporter.template.name]
        for name in names:  # and of those that it extends, which would wait for the first page
            text, _, _ = environment.loader.get_source(environment, name)
            environment.get_template(name)
            names += {other for other in find_referenced_templates(environment.parse(text)) if other} - {*names}


class Stage:
    """One of nbgrader's converters, ready to be run for one student after the other."""

    def __init__(self, converter: type, config: Any, gradebook: KeptGradebook | None = None) -> None:
        self._directory = CourseDirectory(config=config)
        self._converter: Any = converter(coursedir=self._directory, config=config)
        self._converter.force = True
        self._converter.log = logging.Logger("nbgrader", logging.INFO)  # its own: nothing on the reader's screen
        self._converter.log.addHandler(logging.NullHandler())
        self._gradebook = gradebook

    def make_ready(self) -> None:
        """Load now what the first student would wait for."""
        self._converter.make_ready()

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
