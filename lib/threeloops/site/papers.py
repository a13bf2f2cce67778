"""The pages beside the chapters: lists of drill sets and sheets, the sheets themselves, what stands
in the book's own papers, and the statement on accessibility.
"""

import re
from pathlib import Path

from threeloops.drills.coding.tasks import TASKS
from threeloops.sheets import layout, sheet
from threeloops.site import cards, drill_sets

STATEMENT = Path(__file__).with_name("accessibility.md")
MEMORY = STATEMENT.with_name("memory.md")
OFFLINE = STATEMENT.with_name("offline.md")
# Papers of the repository that are pages, too: name on the page -> file.
PAPERS = {"errata": "ERRATA.md", "teaching": "TEACHING.md", "changelog": "CHANGELOG.md"}

# The pages beside the chapters, in their order: page -> title.
BESIDE = {
    "drills/index": "Drills",
    "practise": "Practise",
    "code": "Code",
    "room": "Interview room",
    "serve": "Size a service",
    "memory": "Memory",
    "offline": "Offline",
    "sheets/index": "Sheets",
    "terms": "Terms",
    "teaching": "Teaching",
    "errata": "Errata",
    "changelog": "Changes",
    "accessibility": "Accessibility",
}


def contents(chapters: list[tuple[str, str]]) -> str:
    """Every page of the book in order, for the navigation of the first page. Chapters come as (title, page)."""
    return (
        _toctree(chapters, depth=2, hidden=True)
        + "\n"
        + _toctree([(title, name) for name, title in BESIDE.items()], depth=1, hidden=True)
    )


def practise() -> str:
    """The page that asks any drill."""
    words = (
        "Choose a drill, or have one chosen: at random, or what is due for you today, among all of them, in a family or"
        " for an interview of one kind. Its numbers are fresh each time; a wrong answer is told which mistake it looks"
        " like, never the answer. Fresh numbers are drawn by Python, which your browser fetches once, with the first of"
        " them: about 11 megabytes. After that nothing is fetched, and nothing that you write leaves your machine."
    )
    return f"(page-practise)=\n# Practise\n\n{words}\n\n```{{raw}} html\n{cards.any_drill()}\n```\n"


def code() -> str:
    """The page of the small tasks to write as code."""
    words = (
        "Small functions to write, to finish or to mend, as `python3 book.py drill code` asks them. Each is tried in"
        " your browser on five hidden calls, one of them a limit case; a wrong one is told which mistake it looks like."
        " What you write stays in this browser, and code that never ends is stopped."
    )
    loops = {"inner": "Inner loop", "training": "Training loop", "product": "Product loop", "driving": "Driving"}
    groups = [
        f"## {title}\n\n"
        + "\n\n".join(f"```{{raw}} html\n{cards.task(one)}\n```" for one in TASKS.values() if one.loop == loop)
        for loop, title in loops.items()
    ]
    return "\n\n".join(["(page-code)=\n# Code", words, *groups]) + "\n"


def accessibility() -> str:
    """What is done for everybody, what was checked, and what was not."""
    return f"(page-accessibility)=\n{STATEMENT.read_text(encoding='utf-8')}"


def memory() -> str:
    """The page on which the reader's own attempts are seen, taken along, brought in and deleted."""
    return f"(page-memory)=\n{MEMORY.read_text(encoding='utf-8')}"


def offline() -> str:
    """The page on which the whole book is kept in the browser."""
    return f"(page-offline)=\n{OFFLINE.read_text(encoding='utf-8')}"


def drills_index(root: Path) -> str:
    """The list of drill sets."""
    entries = [(drill_sets.title(path), path.stem) for path in drill_sets.paths(root)]
    return "\n".join(
        [
            "(page-drills-index)=",
            "# Drills",
            "",
            "The first set is for whoever is new: five numbers in about twelve minutes. Any other is about two hours: a few numbers, functions to write, one explanation. A wrong answer is told which mistake it looks like, never the answer.",  # noqa: E501
            "",
            "(page-drills-interview)=",
            "## The interview room",
            "",
            "It asks what the sets ask, one question at a time and against a clock, and remembers what you got wrong:"
            " [on its page](#page-room), or at the desk:",
            "",
            "```text\npython3 book.py drills/interview\n```",
            "",
            "## The sets",
            "",
            _toctree(entries, depth=1),
        ]
    )


def sheets_index() -> str:
    """The list of sheets."""
    entries = [(f"{name}: {told.partition(';')[0]}", name) for name, told in sheet.SHEETS.items()]
    words = "A page of numbers or formulas each, to read the evening before or to print: `python3 book.py sheet NAME`."
    return f"(page-sheets-index)=\n# Sheets\n\n{words}\n\n{_toctree(entries, depth=1)}"


def sheet_page(name: str) -> str:
    """One sheet, as markdown; where it asks something, without the answers."""
    first, *more = sheet.pages(name, answers=False)
    lines = [f"(page-sheets-{name})=", f"# {layout.escaped(first.title)}", *_content(first)]
    for page in more:
        lines += [f"## {layout.escaped(page.title)}", *_content(page)]
    return "\n".join(lines)


def _content(page: layout.Page) -> list[str]:
    # a command in an intro stands between backticks, as it does everywhere
    lines = ["", *(layout.escaped(line).replace(r"\`", "`") + "\n" for line in page.intro.splitlines()), ""]
    for table in page.tables:
        lines += [layout.as_markdown(table), ""]
    if page.listing:
        lines += ["```python", page.listing.rstrip(), "```", ""]
    if page.sources:
        lines += ["**Sources**", "", *(f"- {layout.escaped(source)}" for source in page.sources), ""]
    return lines


def paper(name: str, root: Path) -> str:
    """A paper of the repository. A link to one of its files, which no page shows, becomes the file's name."""
    source = (root / PAPERS[name]).read_text(encoding="utf-8")
    named = re.sub(r"\[([^\]]*)\]\((?![a-z]+:|#)([^)]*)\)", r"\1 (`\2`)", source)
    return f"(page-{name})=\n{named}"


def _toctree(entries: list[tuple[str, str]], *, depth: int, hidden: bool = False) -> str:
    lines = ["```{toctree}", f":maxdepth: {depth}", *([":hidden:"] if hidden else []), ""]
    return "\n".join([*lines, *(f"{title} <{page}>" for title, page in entries), "```", ""])
