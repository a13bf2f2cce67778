"""The commands of a term: from the platform's class list to marks in its gradebook. What they do stands in
`threeloops.classroom.term`.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threeloops import checks
from threeloops.commands.term.canvas import add_canvas
from threeloops.commands.term.decisions import add_decisions
from threeloops.commands.term.elsewhere import add_elsewhere
from threeloops.commands.term.explanations import add_explanations
from threeloops.commands.term.grading import add_grading
from threeloops.commands.term.groups import add_groups
from threeloops.commands.term.hub import add_init
from threeloops.commands.term.items import add_items
from threeloops.commands.term.requests import add_requests
from threeloops.commands.typed import whole

if TYPE_CHECKING:
    from threeloops.classroom.term.settings import Term


def add_classroom(commands: Any) -> None:
    """Add the group."""
    group = commands.add_parser("classroom", help="a term with a class: roster, sets, hand-ins, marks, class page")
    verbs = group.add_subparsers(required=True, metavar="VERB", parser_class=type(group))
    _before_the_term(verbs)
    _around_a_set(verbs)
    _after_grading(verbs)
    add_elsewhere(verbs)
    add_init(verbs)


def _before_the_term(verbs: Any) -> None:
    new = verbs.add_parser("new", help="begin a term: a folder with its term.toml")
    new.add_argument("folder", metavar="TERM", help="folder to make, like spring-27; nothing in it may be public")
    new.add_argument("--course", metavar="CODE", help="the public course code (default: the folder's name)")
    new.add_argument("--timezone", required=True, metavar="ZONE", help="of due dates, like Europe/Berlin")
    new.add_argument("--late", required=True, metavar="POLICY", help="what late costs: none, zero or per-day")
    new.add_argument("--off-per-day", type=float, default=0.0, metavar="SHARE", help="per-day: 0.1 is a tenth a day")
    new.add_argument("--last-day", type=whole, default=0, metavar="DAYS", help="per-day: later than this earns nothing")
    new.add_argument("--gradebook", metavar="URL", help="a PostgreSQL database for the scores, in place of a file")
    new.set_defaults(run=_new)
    roster = _verb(verbs, "roster", _roster, "read a class list of Canvas, Moodle or a spreadsheet, and check it")
    roster.add_argument("list", metavar="CLASS.csv")
    roster.add_argument("--id", metavar="COLUMN", help="which column holds the ids that students write")
    syllabus = verbs.add_parser("syllabus", help="the book's parts over so many weeks, prerequisites first")
    syllabus.add_argument("--weeks", type=whole, required=True, metavar="N", help="4, 8, 14 or another number")
    syllabus.add_argument("--short", action="store_true", help="only the parts' short ways")
    syllabus.set_defaults(run=_syllabus)


def _around_a_set(verbs: Any) -> None:
    release = _set_verb(verbs, "release", _release, "what to hand to students, with the course code in it")
    release.add_argument("--due", required=True, metavar="DATE", help="2027-04-12 (its last minute) or …T18:00")
    release.add_argument("--title", help="what the platform calls the assignment, as its gradebook must be told")
    add_groups(verbs)
    collect = _set_verb(verbs, "collect", _collect, "the platform's zip into one folder per student")
    collect.add_argument("path", metavar="ZIP|FOLDER")
    collect.add_argument("--worksheet", metavar="CSV", help="Moodle's grading worksheet: who it is, and when it came")
    collect.add_argument("--newer", action="store_true", help="take other files of students who have handed in already")
    collect.add_argument("--on-time", action="store_true", help="what has no time came in time")
    add_grading(verbs)
    _set_verb(verbs, "return", _return, "feedback pages, zipped for the platform's bulk upload")


def _after_grading(verbs: Any) -> None:
    export = _verb(verbs, "export", _export, "marks as Canvas, Moodle or a spreadsheet take them")
    export.add_argument("sets", nargs="*", metavar="SET", help="none means every set that is graded")
    export.add_argument("--format", required=True, help="canvas, moodle or csv (everything that is known)")
    export.add_argument("--worksheet", metavar="CSV", help="Moodle's grading worksheet, to be filled in")
    export.add_argument(
        "--missing", default="blank", metavar="HOW", help="whoever has nothing graded: blank or zero (default blank)"
    )
    add_canvas(verbs)
    add_decisions(verbs)
    add_explanations(verbs)
    add_requests(verbs)
    _set_verb(verbs, "class", _class, "which mistakes the class makes, and which part to teach again")
    add_items(verbs)
    similar = _set_verb(verbs, "similar", _similar, "how alike the functions are; names nobody")
    similar.add_argument("--ids", action="store_true", help="name the students after all")
    exam = _verb(verbs, "exam", _exam, "`threeloops quiz` in versions with keys, and who gets which version")
    exam.add_argument("sets", nargs="+", metavar="SET", help="drill sets, topics, loops or single ideas")
    exam.add_argument("--name", required=True, help="of the exam, one word: midterm")
    exam.add_argument("--versions", type=whole, required=True, metavar="N", help="how many")
    exam.add_argument("--questions", type=whole, required=True, metavar="K", help="how many in each")
    exam.add_argument("--minutes", type=whole, required=True, metavar="M", help="before anybody's extra time")
    exam.add_argument("--kind", default="number", help="number, choice or diagnosis (default number)")
    exam.add_argument("--format", default="html", help="html, docx, latex or text (default html)")
    exam.add_argument("--space", metavar="LENGTH", help="to write in, below each question: 5 cm (html, docx, latex)")
    exam.add_argument("--seed", metavar="WORD", help="the same exam again; default a new one, which is kept")


def _verb(verbs: Any, name: str, run: Any, told: str) -> Any:
    verb = verbs.add_parser(name, help=told)
    verb.add_argument("--term", default=".", metavar="FOLDER", help="where term.toml lies (default: this folder)")
    verb.set_defaults(run=run)
    return verb


def _set_verb(verbs: Any, name: str, run: Any, told: str) -> Any:
    verb = _verb(verbs, name, run, told)
    verb.add_argument("set", metavar="SET", help="a drill set, like kv_cache")
    return verb


def _term(given: argparse.Namespace) -> "Term":
    from threeloops.classroom.term import settings

    return settings.read(Path(given.term))


def _root() -> Path:
    from threeloops import contents

    return contents.book_root()


def _new(given: argparse.Namespace) -> None:
    from threeloops.classroom.term import settings
    from threeloops.classroom.term.settings import LatePolicy

    folder = Path(given.folder)
    late = LatePolicy(policy=given.late, off_per_day=given.off_per_day, last_day=given.last_day)
    term = settings.new(
        folder,
        course=given.course or folder.resolve().name,
        zone=given.timezone,
        late=late,
        gradebook=given.gradebook,
    )
    print(f"{folder / settings.FILE}: course code {term.course}, times of {term.zone}, {term.late.in_words}.")


def _roster(given: argparse.Namespace) -> None:
    from threeloops import units
    from threeloops.classroom.term import people

    term = _term(given)
    listed = people.class_list(Path(given.list), id_column=given.id)
    for sentence in people.keep(term.roster, listed):
        print(sentence)
    more = sum(one.extra_days > 0 for one in people.kept(term.roster))
    longer = sum(one.extra_time > 1 for one in people.kept(term.roster))
    print(
        f"{term.roster}: {units.counted(len(listed.people), 'student')} from a {listed.kind} list, {more} with extra"
        f" days, {longer} with extra time. Ids are those of “{listed.id_column}”, like {listed.people[0].student}:"
        " students write theirs into their notebooks."
    )


def _release(given: argparse.Namespace) -> None:
    from threeloops.classroom.term import handing_out, settings

    term, root = _term(given), _root()
    handing_out.known(given.set, root)
    before = term.sets.get(given.set)
    due = settings.due_date(given.due, term.zone)
    title = given.title or (before.title if before else given.set)
    term = settings.record(term, f"sets.{given.set}", {"due": due.isoformat(), "title": settings.quoted(title)})
    written = handing_out.hand_out(term, given.set, term.sets[given.set], root=root)
    moved = f" (it was {before.due:%Y-%m-%d %H:%M})" if before and before.due != due else ""
    print(f"{given.set} is due {due:%Y-%m-%d %H:%M %Z}{moved}. For students: {written[0]} and {written[1].name}.")


def _collect(given: argparse.Namespace) -> None:
    from threeloops import units
    from threeloops.classroom.term.collecting import collect

    done = collect(
        _term(given),
        given.set,
        Path(given.path),
        root=_root(),
        worksheet=Path(given.worksheet) if given.worksheet else None,
        newer=given.newer,
        on_time=given.on_time,
    )
    for sentence in done.said:
        print(f"Of several: {sentence}")
    for sentence in done.left_out:
        print(f"Left out: {sentence}")
    print(
        f"{units.counted(len(done.taken), 'hand-in')} new, {len(done.replaced)} newer than before,"
        f" {len(done.same)} unchanged, {len(done.left_out)} left out; {done.late} late, {done.undated} without a time."
    )


def _return(given: argparse.Namespace) -> None:
    from threeloops import units
    from threeloops.classroom.term.handing_back import pack

    packed = pack(_term(given), given.set)
    for path, pages in packed.zips.items():
        print(f"{path}: {units.counted(pages, 'page')}.")
    if packed.without:
        print(f"No page: {', '.join(packed.without)}; the table of `classroom grade` says why.")


def _export(given: argparse.Namespace) -> None:
    from threeloops.classroom.term import gradebooks
    from threeloops.classroom.term.marks import marks, without_points

    term = _term(given)
    names = given.sets or [name for name in term.sets if term.is_graded(name)]
    if not names:
        raise ValueError("no set of this term is graded, so there are no marks; `threeloops classroom grade SET` first")
    checks.one_of(("blank", "zero"), missing=given.missing)
    lines = marks(term, names, root=_root(), missing_zero=given.missing == "zero")
    worksheet = Path(given.worksheet) if given.worksheet else None
    path = gradebooks.export(term, lines, names, given.format, worksheet=worksheet)
    print(f"{path}: {', '.join(names)}; {term.late.in_words}.")
    for sentence in without_points(lines):
        print(sentence)
    waiting = sum(mark.waiting for one in lines for mark in one.marks.values())
    if waiting:
        print(
            f"{waiting} answers are graded by hand or wait for it; `threeloops classroom explanations SET` or `nbgrader"
            " formgrader` shows them."
        )


def _class(given: argparse.Namespace) -> None:
    from threeloops.classroom.term import class_page

    term = _term(given)
    found = class_page.read(term, given.set, root=_root())
    pages = class_page.write(term, found)
    print(class_page.as_text(found))
    print(f"The same to show or print: {pages[0]}")


def _similar(given: argparse.Namespace) -> None:
    from threeloops.classroom.term import similar

    print(similar.told(similar.report(_term(given), given.set, root=_root()), ids=given.ids))


def _syllabus(given: argparse.Namespace) -> None:
    from threeloops.classroom.term import syllabus

    steps = syllabus.steps(_root(), short=given.short)
    print(syllabus.told(syllabus.weeks(steps, given.weeks), syllabus.minutes_of_sets(_root())), end="")


def _exam(given: argparse.Namespace) -> None:
    from threeloops import units
    from threeloops.classroom.term import exam
    from threeloops.paper.quiz import Quiz

    term = _term(given)
    quiz = Quiz(
        title=f"{term.course}: {given.name}",
        topics=tuple(given.sets),
        questions=given.questions,
        versions=given.versions,
        seed=given.seed or exam.new_seed(),
        kind=given.kind,
    )
    written = exam.write(term, given.name, quiz, minutes=given.minutes, form=given.format, space=given.space)
    print(
        f"{units.counted(quiz.questions, 'question')}, {units.counted(quiz.versions, 'version')}, in"
        f" {written[0].parent}: {', '.join(path.name for path in written)}. The seed is kept in the term's file."
    )
