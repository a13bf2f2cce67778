"""nbgrader's gradebook, asked once per notebook: its steps ask for every cell's row by itself."""

from collections.abc import Callable
from typing import Any

from nbgrader.api import (  # type: ignore[import-untyped]
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
