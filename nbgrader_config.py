"""nbgrader for this book: solutions/ is its source, drills/ its release, and everything that grading makes lies in
build/, which git ignores.

nbgrader generate_assignment kv_cache --force --no-db     solutions/kv_cache -> drills/kv_cache
nbgrader autograde kv_cache                               build/submitted -> build/autograded, with this book's judge
"""

import os
from pathlib import Path

import nbgrader

from threeloops import classroom

c = get_config()  # type: ignore[name-defined]  # noqa: F821
ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "build"
if os.access(ROOT, os.W_OK):  # on a hub the book is root's, and a course's folders lie elsewhere
    BUILD.mkdir(mode=0o700, exist_ok=True)

c.CourseDirectory.course_id = "three_loops"
c.CourseDirectory.root = str(ROOT)
c.CourseDirectory.db_url = f"sqlite:///{BUILD}/gradebook.db"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "drills"
for step in ("submitted", "autograded", "feedback", "solution", "source_with_tests"):
    setattr(c.CourseDirectory, f"{step}_directory", f"build/{step}")

# What a student finds where the solution stood.
c.ClearSolutions.code_stub = {"python": "# Your work goes here."}
c.ClearSolutions.text_stub = "*Your explanation goes here.*"

# Written explanations are not graded unless a teacher says for how many points: c.WrittenAnswers.points = 3
stages = "nbgrader.preprocessors."
own = "threeloops.classroom.preprocessors."
c.GenerateAssignment.preprocessors = [own + "WrittenAnswers"] + [
    stages + name
    for name in (
        "LockCells",
        "ClearSolutions",
        "ClearOutput",
        "CheckCellMetadata",
        "ComputeChecksums",
        "SaveCells",
        "ComputeChecksums",
        "CheckCellMetadata",
    )
]
c.Autograde.sanitize_preprocessors = [own + "Transplant"] + [
    stages + name for name in ("ClearOutput", "OverwriteKernelspec", "OverwriteCells")
]
c.Autograde.autograde_preprocessors = [
    own + "Judge",
    stages + "LimitOutput",
    own + "SaveGrades",
    stages + "AssignLatePenalties",
]
# All that nbgrader goes by comes from the release, whose cells were checked when it was made: one look at the end.
c.Exporter.optimistic_validation = True

# The course code that students write into their notebooks, and the folder of the key that seeds hidden draws and
# never leaves this machine.
c.Judge.course = "home"
c.Judge.key_folder = str(BUILD)

# Feedback: a card that says first what went wrong, and under it nbgrader's own page.
c.GenerateFeedback.preprocessors = [
    stages + "GetGrades",
    "threeloops.classroom.summary.FeedbackCard",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
c.HTMLExporter.filters = {"highlight_code": "threeloops.classroom.summary.in_colour"}
c.HTMLExporter.template_name = "threeloops"
c.HTMLExporter.template_file = "card.html.j2"
c.HTMLExporter.extra_template_basedirs = [
    str(Path(package).parent / place)
    for package, place in (
        (classroom.__file__, "templates"),
        (nbgrader.__file__, "server_extensions/formgrader/templates"),
    )
]
