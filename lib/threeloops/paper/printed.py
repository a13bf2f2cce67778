"""A quiz on paper: question sheets without a trace of an answer, and one key for all of them. Plain text, or HTML to
print; `word` and `latex` say the same in theirs.
"""

from collections.abc import Sequence

from threeloops import units
from threeloops.drills.engine.student_draws import wrapped
from threeloops.markup import Content, Markup, element, lines, page, table, text
from threeloops.paper import quiz as quizzes
from threeloops.paper.quiz import Asked, Quiz, Version

HOW = "Show the formula, the numbers put in, and the result with its unit. No devices."
HOW_LETTERS = "Write the letters. No devices."
KEY_NOTE = "For whoever marks. A wrong answer that stands under “would have written” is told the sentence beside it."
STYLE = """
@page { margin: 18mm 16mm }
body { font: 11pt/1.4 Georgia, "Times New Roman", serif; max-width: 46em; margin: 0 auto; padding: 1em; color: #000; background: #fff }
section.version + section.version { break-before: page; border-top: 1px solid #555; margin-top: 2em }
h1 { font-size: 15pt; margin: 1em 0 .2em } h2 { font-size: 12pt; margin: 1.2em 0 .2em }
.question { break-inside: avoid } .asked, .working { white-space: pre-line; margin: .2em 0 } .working { font-family: monospace; font-size: 9pt }
.who { margin: .4em 0 1em } .space { height: 7em; border-bottom: 1px solid #555 } .id { font-size: 9pt; color: #333; margin: .2em 0 }
table { border-collapse: collapse; font-size: 9pt } th, td { text-align: left; vertical-align: top; padding: .15em .8em .15em 0; border-top: 1px solid #999 }
@media print { section.version + section.version { border-top: 0; margin-top: 0 } body { padding: 0 } }
""".strip()  # noqa: E501


def identity(asked: Asked) -> str:
    """What the question was made from."""
    return f"{asked.idea} · seed {asked.seed}"


def head(quiz: Quiz, version: Version) -> str:
    """What stands on top of a version."""
    return f"{quiz.title} · version {version.number} of {quiz.versions}"


def _minutes(version: Version) -> str:
    return units.counted(
        max(1, round(sum(asked.question.allowed_s for asked in version.questions) / units.minute)), "minute"
    )


def how(quiz: Quiz, version: Version) -> str:
    """How many questions, how long, and how to answer."""
    asked = units.counted(len(version.questions), "question")
    return f"{asked}, {_minutes(version)} for somebody fluent. {HOW if quiz.kind == 'number' else HOW_LETTERS}"


# --- text ---------------------------------------------------------------------------------------


def text_sheet(quiz: Quiz, version: Version) -> str:
    """One version to print from a terminal."""
    rows = [head(quiz, version), "Name: ________________________   Id: ____________", wrapped(how(quiz, version))]
    for place, asked in enumerate(version.questions, start=1):
        rows += [
            "",
            f"{place}. {asked.question.title}",
            wrapped(asked.question.text),
            "",
            "Answer: ________________________",
            f"[{identity(asked)}]",
        ]
    return "\n".join(rows) + "\n"


def text_key(quiz: Quiz, versions: Sequence[Version]) -> str:
    """The key to all versions."""
    rows = [f"{quiz.title} · KEY", wrapped(KEY_NOTE), f"Quiz seed: {quiz.seed}"]
    for version in versions:
        rows += ["", f"Version {version.number}"]
        for place, asked in enumerate(version.questions, start=1):
            rows += [
                "",
                f"{place}. {asked.question.title} [{identity(asked)}]",
                f"Right: {right(asked)}",
                asked.question.working,
            ]
            rows += [wrapped(f"  would have written {wrong}: {story}") for wrong, story in quizzes.slips(asked)]
    return "\n".join(rows) + "\n"


def right(asked: Asked) -> str:
    """The answer, and what else counts."""
    span = quizzes.accepted(asked)
    return quizzes.answer(asked) + (f"; {span}" if span else "")


# --- HTML ---------------------------------------------------------------------------------------


def html_sheets(quiz: Quiz, versions: Sequence[Version], *, space_m: float | None = None) -> str:
    """All versions in one file, each beginning on a page of its own; below each question so many metres to write in,
    or seven lines.
    """
    style = STYLE if space_m is None else STYLE.replace("height: 7em", f"height: {space_m / units.mm:g}mm")
    return page(quiz.title, lines([_html_sheet(quiz, version) for version in versions]), style)


def _html_sheet(quiz: Quiz, version: Version) -> Markup:
    rows = [
        Markup(f'<section class="version" id="version-{version.number}">'),
        element("h1", head(quiz, version)),
        element("p", "Name: ______________________________ Id: ________________", class_="who"),
        element("p", how(quiz, version)),
    ]
    for place, asked in enumerate(version.questions, start=1):
        question = [
            element("h2", f"{place}. {asked.question.title}"),
            element("p", asked.question.text, class_="asked"),
            element("p", "Answer:", class_="space"),
            element("p", identity(asked), class_="id"),
        ]
        rows.append(element("div", lines(question), class_="question"))
    return lines(rows, Markup("</section>"))


def html_key(quiz: Quiz, versions: Sequence[Version]) -> str:
    """The key to all versions, in a file of its own."""
    rows: list[Content] = [element("p", f"{KEY_NOTE} Quiz seed: {quiz.seed}")]
    for version in versions:
        rows.append(text(Markup('<section class="version">'), element("h1", f"{head(quiz, version)} · KEY")))
        rows += [_html_key_entry(place, asked) for place, asked in enumerate(version.questions, start=1)]
        rows.append(Markup("</section>"))
    return page(f"{quiz.title} · KEY", lines(rows), STYLE)


def _html_key_entry(place: int, asked: Asked) -> Markup:
    rows = [
        element("h2", f"{place}. {asked.question.title}: {right(asked)}"),
        element("p", asked.question.working, class_="working"),
    ]
    if slips := quizzes.slips(asked):
        rows.append(table(("would have written", "tell them"), slips))
    return element("div", lines(rows, element("p", identity(asked), class_="id")), class_="question")
