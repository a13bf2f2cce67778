"""A workflow that grades at every push, in each student's own repository on GitHub: a folder with what a template
repository needs, from which a classroom's tool, or `gh repo create --template`, makes a repository for each student.

GitHub Classroom itself was retired on 28 August 2026; repositories, and GitHub's own Actions, on which this runs, are
what they were (https://github.com/orgs/community/discussions/205975, read 28 November 2026). The names of the workflow
and its job, and the notices that hold the points, are those that Classroom and tools beside it look for
(https://github.com/classroom-resources/autograding-grading-reporter).

A student may change everything in a repository of theirs, the workflow included, so nothing in it is secret: no key,
no class list, no solution. Hidden numbers are drawn by a key that is made for the run and gone with it.
"""

from pathlib import Path

from threeloops.classroom.elsewhere import packing
from threeloops.classroom.term import handing_out
from threeloops.classroom.term.settings import Term
from threeloops.drills.engine.student_draws import plain_id

TEMPLATES = Path(__file__).parents[1] / "templates" / "actions"
WORKFLOW = ".github/workflows/classroom.yml"
GRADER = ".github/three-loops/grader.zip"
PROGRAMS = ("setup.sh", "grade.sh")


def pack(term: Term, name: str, into: Path, *, root: Path) -> list[Path]:
    """Write the folder of a template repository: the notebook, the workflow and the grader.

    Raises:   ValueError when the set was not released, or something else lies there
    """
    handed = term.handed_out(name)
    if into.exists() and (not into.is_dir() or any(one.name != ".git" for one in into.iterdir())):
        raise ValueError(f"--into {into} must be a new folder, or an empty repository: nothing is written over")
    files = {program: (TEMPLATES / program).read_bytes() for program in PROGRAMS}
    files["requirements.txt"] = ("\n".join(packing.PACKAGES) + "\n").encode()
    files |= {f"{packing.BOOK}/{path}": content for path, content in packing.book(root, name)}
    files[packing.SETTINGS] = packing.settings(set=name, course=plain_id(term.course), functions=handed.functions)
    grader = packing.write(into / GRADER, files, programs=PROGRAMS)
    written = [into / f"{name}.ipynb", into / "README.md", into / WORKFLOW]
    written[2].parent.mkdir(parents=True)
    notebook, note = handing_out.hand_out(term, name, handed, root=root)
    written[0].write_bytes(notebook.read_bytes())
    written[1].write_text(note.read_text(encoding="utf-8") + "\n" + HOW, encoding="utf-8")
    written[2].write_bytes((TEMPLATES / "classroom.yml").read_bytes())
    for path in (*written, grader):
        path.chmod(0o644)
    return [*written, grader]


HOW = (
    "Here that means: commit the notebook and push. Each push is graded; *Actions* shows a table of your answers, and"
    " your numbers are those of the id that you wrote into the first code cell.\n"
)
