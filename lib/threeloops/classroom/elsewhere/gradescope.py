"""An autograder for Gradescope: a zip with setup.sh and run_autograder at its root, the judge, and one drill set.

Gradescope builds an image from it, in which the zip lies unpacked as /autograder/source, runs setup.sh once there, and
run_autograder for every hand-in, in a fresh container with the student's files in /autograder/submission and who they
are in /autograder/submission_metadata.json. What run_autograder leaves in /autograder/results/results.json is shown
("Autograder Specifications", https://gradescope-autograders.readthedocs.io/en/latest/specs/, read 28 November 2026).
"""

from pathlib import Path

from threeloops.classroom.course import grading_key
from threeloops.classroom.elsewhere import packing, whose
from threeloops.classroom.term import people
from threeloops.classroom.term.settings import Term
from threeloops.drills.engine.student_draws import plain_id

TEMPLATES = Path(__file__).parents[1] / "templates" / "gradescope"
PROGRAMS = ("setup.sh", "run_autograder")


def pack(term: Term, name: str, into: Path, *, root: Path, without_sandbox: bool = False) -> Path:
    """Write the zip of a set that was released. It holds the grading key and the class list: it is for the upload and
    for no eyes.

    Raises:   ValueError when the set was not released, or there is no roster
    """
    handed = term.handed_out(name)
    listed = people.kept(term.roster)
    if into.suffix != ".zip":
        raise ValueError(f"--into {into} must be a zip, like {name}.zip: Gradescope takes no other file")
    files = {program: (TEMPLATES / program).read_bytes() for program in PROGRAMS}
    files["requirements.txt"] = ("\n".join(packing.PACKAGES) + "\n").encode()
    files |= {f"{packing.BOOK}/{path}": content for path, content in packing.book(root, name)}
    files[packing.SETTINGS] = packing.settings(
        set=name,
        course=plain_id(term.course),
        people=whose.packed(listed),
        without_sandbox=without_sandbox,
        functions=handed.functions,
    )
    files[packing.KEY] = (grading_key(term.graded).hex() + "\n").encode()
    return packing.write(into, files, programs=PROGRAMS)
