"""The judge as steps of nbgrader: registered in nbgrader_config.py, so that `nbgrader autograde` and its formgrader
grade as `threeloops grade` does.
"""

from pathlib import Path
from typing import Any

from nbformat import from_dict
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades  # type: ignore[import-untyped]
from traitlets import Bool, Enum, Float, Unicode, default

from threeloops.classroom.course import grading_key
from threeloops.classroom.intake import whose_numbers
from threeloops.classroom.judging import Examiner, Outcome, judged
from threeloops.classroom.questions import HOW_FUNCTIONS, Question, own_mark, question
from threeloops.classroom.transplant import parsed, transplanted
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.judge import Verdict
from threeloops.drills.engine.student_draws import HOME_COURSE, plain_id, posed, wrapped
from threeloops.sandbox import walls
from threeloops.sandbox.walls import Limits

Resources = Any
Pair = tuple[NotebookNode, Resources]


class WrittenAnswers(NbGraderPreprocessor):  # type: ignore[misc]
    """At generate_assignment: switch the written explanations on, as nbgrader cells graded by hand."""

    points = Float(0.0, help="Points of each written explanation; 0 leaves it ungraded.").tag(config=True)

    def preprocess_cell(self, cell: NotebookNode, resources: Resources, cell_index: int) -> Pair:
        name = own_mark(cell, "written")
        if self.points and name:
            marks = {
                "grade": True,
                "solution": True,
                "locked": False,
                "task": False,
                "schema_version": 3,
                "cell_type": "markdown",
            }
            cell.metadata["nbgrader"] = _nodes({"grade_id": name, "points": self.points, **marks})
        return cell, resources


class Transplant(NbGraderPreprocessor):  # type: ignore[misc]
    """At autograde, first: the student's answers in the released notebook, and nothing else of the file."""

    def preprocess(self, notebook: NotebookNode, resources: Resources) -> Pair:
        directory = self.parent.parent.coursedir
        names = resources["nbgrader"]
        folder = directory.format_path(directory.release_directory, ".", names["assignment"])
        release = parsed((Path(folder) / f"{names['notebook']}.ipynb").read_bytes())
        return _nodes(transplanted(release, notebook)), resources


def _nodes(value: Any) -> Any:
    """Plain dictionaries as nbformat's."""
    return from_dict(value)  # type: ignore[no-untyped-call]


class Judge(NbGraderPreprocessor):  # type: ignore[misc]
    """At autograde, in place of Execute: run the student's side, judge on this one, and leave each verdict as its
    cell's output.
    """

    course = Unicode(HOME_COURSE, help="The course code that the students were given.").tag(config=True)
    key_folder = Unicode("build", help="Where the key lies that seeds the hidden draws; made on first use.").tag(
        config=True
    )
    sandboxed = Bool(help="Run the student's side in bubblewrap; by default wherever that works.").tag(config=True)
    apart = Bool(False, help="Without bubblewrap, run the student's side as nobody; needs root.").tag(config=True)
    show_working = Bool(False, help="Let feedback show the worked answer of every question that was answered.").tag(
        config=True
    )
    functions = Enum(
        HOW_FUNCTIONS, "all", help="Points of a function: if all draws are right, or the share that is."
    ).tag(config=True)
    cell_s = Float(Limits().cell_s, help="Seconds that a cell may take.").tag(config=True)
    call_s = Float(Limits().call_s, help="Seconds that one call of a student's function may take.").tag(config=True)
    total_s = Float(Limits().total_s, help="Seconds that a submission may take.").tag(config=True)

    @default("sandboxed")
    def _wherever_it_works(self) -> bool:
        return not walls.problem()

    def preprocess(self, notebook: NotebookNode, resources: Resources) -> Pair:
        limits = Limits(cell_s=self.cell_s, call_s=self.call_s, total_s=self.total_s, apart=self.apart)
        names = {"student": whose_numbers(resources["nbgrader"]["student"]), "course": plain_id(self.course)}
        examiner = Examiner(
            **names,
            key=grading_key(Path(self.key_folder)),
            limits=limits,
            sandboxed=self.sandboxed,
            functions=self.functions,
        )
        if not self.sandboxed:
            self.log.warning(
                "Without a sandbox: %s. Students' code runs with your rights.", walls.problem() or "switched off"
            )
        outcome = judged(notebook, examiner)
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                asked = question(cell)
                text = outcome.printed.get(index, "")
                cell.outputs = _verdict_output(outcome.verdicts[asked.grade_id], asked) if asked else _stream(text)
                if asked:
                    cell.metadata["threeloops"] = _nodes(_recorded(outcome.verdicts[asked.grade_id]))
                if (
                    asked
                    and asked.kind == "number"
                    and self.show_working
                    and outcome.verdicts[asked.grade_id].status != "unanswered"
                ):
                    p = posed(DRILLS[asked.drill], **names)
                    cell.outputs += _stream(wrapped(f"Worked:\n{DRILLS[asked.drill].working(p)}"))
        notebook.metadata["threeloops"] = _nodes(_summary(outcome))
        return notebook, resources


def _stream(text: str) -> Any:
    return _nodes([{"output_type": "stream", "name": "stdout", "text": text}]) if text else []


def _verdict_output(verdict: Verdict, asked: Question) -> Any:
    """What nbgrader reads a score from: an error is no points, a result that is a number is that many, anything else
    is all of them.
    """
    if verdict.right:
        return _stream(verdict.message)
    if verdict.share and asked.kind == "function":
        points = {"text/plain": f"{verdict.share * asked.points:.6g}"}
        result = {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": points}
        return [*_stream(wrapped(verdict.message) + "\n"), *_nodes([result])]
    return _nodes(
        [
            {
                "output_type": "error",
                "ename": verdict.status,
                "evalue": verdict.message,
                "traceback": [wrapped(verdict.message)],
            }
        ]
    )


def _recorded(verdict: Verdict) -> dict[str, Any]:
    return {"status": verdict.status, "slips": list(verdict.slips), "message": verdict.message}


def _summary(outcome: Outcome) -> dict[str, Any]:
    return {"status": outcome.status, "notes": outcome.notes, "self_marked": outcome.self_marked}


class SaveGrades(SaveAutoGrades):  # type: ignore[misc]
    """nbgrader's own scores, except that a held answer waits for a person."""

    def _add_score(self, cell: NotebookNode, resources: Resources) -> None:
        super()._add_score(cell, resources)
        if cell.metadata.get("threeloops", {}).get("status") == "held":
            names = (cell.metadata["nbgrader"]["grade_id"], self.notebook_id, self.assignment_id, self.student_id)
            grade = self.gradebook.find_grade(*names)
            grade.auto_score, grade.needs_manual_grade = None, True
            self.gradebook.db.commit()
