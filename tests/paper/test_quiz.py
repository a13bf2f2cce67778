"""Quizzes on paper and for a platform, read back by code that knows nothing of how they are written: text, HTML and
XML, with the standard library alone.

What the reader knows is what is printed: a question's idea and its seed. From these the drill is drawn again, and its
answer is held against the key.
"""

import io
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from threeloops import cli
from threeloops.drills.engine.answers import parse
from threeloops.drills.engine.bank import DRILLS, FAMILIES
from threeloops.drills.engine.drill import Draw, seeded
from threeloops.drills.engine.judge import judge
from threeloops.paper import bare_numbers
from threeloops.paper.quiz import Quiz, variants, versions

SEED = "a-test"
TOPICS = ("kv_cache", "driving", "amdahl")


def drawn_again(idea: str, seed: str) -> Draw:
    """The numbers that `threeloops drill IDEA --seed SEED` asks with; spelt out here, so that a change of the scheme
    is noticed.
    """
    return DRILLS[idea].draw(seeded("room", f"{seed}-0", idea))


def made(
    folder: Path,
    form: str,
    *,
    topics: tuple[str, ...] = TOPICS,
    count: int = 6,
    sets: int = 30,
    seed: str = SEED,
    kind: str = "number",
) -> Path:
    words = [
        "quiz",
        *topics,
        "--versions",
        str(sets),
        "--questions",
        str(count),
        "--seed",
        seed,
        "--format",
        form,
        "--kind",
        kind,
        "--into",
        str(folder),
    ]
    assert cli.main(words) == 0
    return folder


def one_line(text: str) -> str:
    """Without line breaks, those after a hyphen included."""
    return re.sub(r"(?<=\w-)\s+(?=\w)", "", re.sub(r"\s+", " ", text)).strip()


# --- reading what is printed --------------------------------------------------------------------


@dataclass(frozen=True)
class Read:
    """A question as it stands on paper."""

    idea: str
    seed: str
    text: str


def read_text(sheet: str) -> list[Read]:
    blocks = re.split(r"\n\n(?=\d+\. )", sheet)[1:]
    identities = [re.search(r"\[([\w.-]+) · seed ([\w.-]+)\]", block) for block in blocks]
    assert all(identities)
    return [Read(found[1], found[2], one_line(block)) for block, found in zip(blocks, identities, strict=True) if found]


class Pages(HTMLParser):
    """Sections of a page, and in each the paragraphs with their class."""

    def __init__(self) -> None:
        super().__init__()
        self.sections: list[list[tuple[str, str]]] = []
        self.kind = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.kind = dict(attrs).get("class") or tag
        if tag == "section":
            self.sections.append([])
        elif self.sections and tag in ("p", "h2"):
            self.sections[-1].append((self.kind, ""))

    def handle_data(self, data: str) -> None:
        if self.sections and self.sections[-1]:
            kind, text = self.sections[-1][-1]
            self.sections[-1][-1] = (kind, text + data)


def read_html(page: str) -> list[list[Read]]:
    pages = Pages()
    pages.feed(page)
    sheets = []
    for section in pages.sections:
        asked = [one_line(text) for kind, text in section if kind == "asked"]
        ids = [one_line(text) for kind, text in section if kind == "id"]
        sheets.append(
            [Read(*re.split(" · seed ", one, maxsplit=1), text) for one, text in zip(ids, asked, strict=True)]
        )
    return sheets


def prompt_of(read: Read) -> str:
    return one_line(DRILLS[read.idea].prompt(drawn_again(read.idea, read.seed)))


@pytest.fixture(scope="module")
def text_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("quiz") / "text", "text")


@pytest.fixture(scope="module")
def html_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("quiz") / "html", "html")


@pytest.fixture(scope="module")
def sheets(text_folder: Path) -> list[list[Read]]:
    return [read_text(path.read_text(encoding="utf-8")) for path in sorted(text_folder.glob("version-*.txt"))]


def test_every_printed_question_is_its_drill_with_the_numbers_of_its_seed(
    sheets: list[list[Read]], html_folder: Path
) -> None:
    pages = read_html((html_folder / "questions.html").read_text(encoding="utf-8"))
    assert len(sheets) == len(pages) == 30
    for sheet in (*sheets, *pages):
        assert len(sheet) == 6
        for read in sheet:
            assert prompt_of(read) in read.text
            assert DRILLS[read.idea].exactness.told in read.text


def test_text_and_html_are_the_same_quiz(sheets: list[list[Read]], html_folder: Path) -> None:
    pages = read_html((html_folder / "questions.html").read_text(encoding="utf-8"))
    assert [[(read.idea, read.seed) for read in sheet] for sheet in sheets] == [
        [(read.idea, read.seed) for read in page] for page in pages
    ]


def test_every_version_has_the_same_ideas_with_numbers_and_an_order_of_its_own(sheets: list[list[Read]]) -> None:
    assert len({frozenset(read.idea for read in sheet) for sheet in sheets}) == 1
    assert len({tuple(read.idea for read in sheet) for sheet in sheets}) > 20
    for idea in {read.idea for read in sheets[0]}:
        assert len({read.text for sheet in sheets for read in sheet if read.idea == idea}) == 30
    asked = [DRILLS[read.idea] for read in sheets[0]]
    assert {one.loop if one.loop in TOPICS else one.family for one in asked} == set(TOPICS)


def key_entries(key: str) -> Iterator[tuple[str, str, str]]:
    """(idea, seed, what counts as right) for every question in the key."""
    yield from re.findall(r"\[([\w.-]+) · seed ([\w.-]+)\]\nRight: (.+)", key)


def test_the_key_holds_the_answer_of_the_drill_drawn_again(text_folder: Path, sheets: list[list[Read]]) -> None:
    entries = list(key_entries((text_folder / "key.txt").read_text(encoding="utf-8")))
    assert [(idea, seed) for idea, seed, _ in entries] == [(read.idea, read.seed) for sheet in sheets for read in sheet]
    for idea, seed, right in entries:
        p, drill = drawn_again(idea, seed), DRILLS[idea]
        if drill.whole and not drill.loose:
            assert right == f"{drill.shown(drill.derive(p).value)}; exactly"
            continue
        told = re.match(r"(.+?)(?: \(.+\))?; from ([\d.,e+-]+) to ([\d.,e+-]+)(.*) counts$", right)
        assert told
        assert judge(drill, p, told[1]).right
        low, high = (parse(f"{bound}{told[4]}", like=drill.unit).value for bound in (told[2], told[3]))
        answer = drill.derive(p).value
        assert (low, high) == pytest.approx(drill.exactness.span(answer), rel=2e-3)


def test_that_check_can_fail(text_folder: Path) -> None:
    entries = list(key_entries((text_folder / "key.txt").read_text(encoding="utf-8")))
    elsewhere = [
        judge(DRILLS[idea], drawn_again(idea, seed + "x"), right.split(" (")[0].split(";")[0]).right
        for idea, seed, right in entries
    ]
    assert sum(elsewhere) < len(entries) / 5  # two draws may lie close to each other


def test_no_sheet_holds_an_answer_a_slip_or_a_derivation(
    text_folder: Path, html_folder: Path, sheets: list[list[Read]]
) -> None:
    page = one_line((html_folder / "questions.html").read_text(encoding="utf-8"))
    assert "KEY" not in page
    for path, sheet in zip(sorted(text_folder.glob("version-*.txt")), sheets, strict=True):
        printed = one_line(path.read_text(encoding="utf-8"))
        for read in sheet:
            drill, p = DRILLS[read.idea], drawn_again(read.idea, read.seed)
            for secret in (drill.derive(p).in_numbers, drill.derive(p).source, *(slip.story for slip in drill.slips)):
                assert one_line(secret) not in printed
                assert one_line(secret) not in page
            for shown in re.findall(
                r"[\d,.]+ [A-Za-zµ]*[BP]\b(?:/\w+)?", drill.shown(drill.derive(p).value)
            ):  # bytes and FLOP: a plain count may be in the prompt
                assert not re.search(rf"(?<![\d,.]){re.escape(shown)}", printed)


def test_the_drill_command_asks_the_printed_question_again(sheets: list[list[Read]]) -> None:
    for read in sheets[4]:
        command = [sys.executable, "-m", "threeloops", "drill", read.idea, "--seed", read.seed, "--history", "none"]
        asked = subprocess.run(
            command,
            input="quit\n",
            capture_output=True,
            encoding="utf-8",
            env=os.environ | {"PYTHONIOENCODING": "utf-8"},
            timeout=60,
        )
        assert prompt_of(read) in one_line(asked.stdout)


def test_html_is_one_file_that_prints_each_version_on_a_page_of_its_own(html_folder: Path) -> None:
    page = (html_folder / "questions.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=|url\(|@import", page)
    assert "break-before: page" in page
    assert 'lang="en"' in page
    assert len(set(re.findall(r'id="(version-\d+)"', page))) == 30


# --- the command --------------------------------------------------------------------------------


def test_the_same_seed_makes_the_same_files_and_another_seed_others(tmp_path: Path) -> None:
    for form in ("text", "html", "qti"):
        first, again, other = (
            made(tmp_path / f"{form}{number}", form, sets=3, count=3, seed=seed)
            for number, seed in enumerate((SEED, SEED, "another"))
        )
        for path in first.iterdir():
            assert path.read_bytes() == (again / path.name).read_bytes()
        assert any(path.read_bytes() != (other / path.name).read_bytes() for path in first.iterdir())


def test_without_a_seed_every_quiz_is_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seeds = set()
    for name in "ab":
        assert (
            cli.main(["quiz", "kv_cache", "--versions", "1", "--questions", "2", "--into", str(tmp_path / name)]) == 0
        )
        seeds.add(re.search(r"seed (\w+)", capsys.readouterr().out)[1])  # type: ignore[index]
    assert len(seeds) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["kv_cash"], "did you mean 'kv_cache'"),
        (["--format", "pdf"], "--format 'pdf' is not known"),
        (["--kind", "essay"], "--kind 'essay' is not known"),
        (["--questions", "0"], "--questions 0 "),
        (["kv_cache", "--questions", "500"], f"the {len(FAMILIES['kv_cache'])} that kv_cache can ask"),
        (["--versions", "1000"], "more than the 200"),
        (["--seed", "two words"], "must be one word"),
    ],
)
def test_a_wrong_order_is_one_sentence(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["quiz", *words, "--into", str(tmp_path / "new")]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_quiz_that_is_there_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path / "quiz", "text", sets=2, count=2)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert cli.main(["quiz", "--into", str(folder), "--versions", "2", "--questions", "2"]) == 2
    assert "is already there" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("kind", ["choice", "diagnosis"])
def test_letters_of_the_key_are_right_and_all_others_wrong(kind: str) -> None:
    from threeloops.paper.quiz import answer

    for asked in versions(Quiz(title="t", topics=("kv_cache",), questions=8, versions=3, seed=SEED, kind=kind))[
        0
    ].questions:
        right = answer(asked)
        assert asked.question.judge(right).right
        others = [
            letters for letters in ("A", "B", "C", "D", "E", "A B", "B A", "C D", "E A", "D B") if letters != right
        ]
        assert not any(asked.question.judge(letters).right for letters in others)


def test_a_draw_with_few_numbers_repeats_itself_only_when_it_must() -> None:
    quiz = Quiz(title="t", topics=(), questions=1, versions=30, seed=SEED)
    for idea in DRILLS:
        prompts = [one.question.text for one in variants(quiz, idea)]
        assert len(prompts) == 30
        assert len(set(prompts)) >= 10


# --- the package for a platform -----------------------------------------------------------------

QTI = "{http://www.imsglobal.org/xsd/ims_qtiasiv1p2}"
PACKAGE = "{http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1}"
# The children that our elements may have, in this order, as the standard's document type definition has them.
ORDER = {
    "questestinterop": ("assessment",),
    "assessment": ("qtimetadata", "section"),
    "section": ("selection_ordering", "item", "section"),
    "selection_ordering": ("selection",),
    "selection": ("selection_number", "selection_extension"),
    "item": ("itemmetadata", "presentation", "resprocessing"),
    "itemmetadata": ("qtimetadata",),
    "qtimetadata": ("qtimetadatafield",),
    "qtimetadatafield": ("fieldlabel", "fieldentry"),
    "presentation": ("material", "response_lid", "response_str"),
    "response_str": ("render_fib",),
    "response_lid": ("render_choice",),
    "render_fib": ("response_label",),
    "render_choice": ("response_label",),
    "response_label": ("material",),
    "material": ("mattext",),
    "resprocessing": ("outcomes", "respcondition"),
    "outcomes": ("decvar",),
    "respcondition": ("conditionvar", "setvar"),
    "conditionvar": ("or", "varequal"),
    "or": ("varequal", "and"),
    "and": ("vargte", "varlte"),
    "selection_extension": ("points_per_item",),  # what the standard leaves open; this is the field that Canvas reads
}
REQUIRED = {
    "item": {"ident"},
    "section": {"ident"},
    "assessment": {"ident", "title"},
    "response_str": {"ident"},
    "response_lid": {"ident"},
}
REQUIRED |= {
    "varequal": {"respident"},
    "vargte": {"respident"},
    "varlte": {"respident"},
    "response_label": {"ident"},
    "mattext": {"texttype"},
}


def package(folder: Path) -> tuple[ET.Element, ET.Element]:
    """The manifest and the questions, found as a platform finds them."""
    with zipfile.ZipFile(io.BytesIO((folder / "quiz-qti.zip").read_bytes())) as archive:
        assert archive.testzip() is None
        manifest = ET.fromstring(archive.read("imsmanifest.xml"))
        files = [file.get("href") for file in manifest.iter(f"{PACKAGE}file")]
        assert {*files, "imsmanifest.xml"} == set(archive.namelist())
        resources = {resource.get("identifier"): resource for resource in manifest.iter(f"{PACKAGE}resource")}
        assert {one.get("identifierref") for one in manifest.iter(f"{PACKAGE}dependency")} <= set(resources)
        questions = next(resource for resource in resources.values() if resource.get("type") == "imsqti_xmlv1p2")
        return manifest, ET.fromstring(archive.read(str(questions[0].get("href"))))


def problems(root: ET.Element) -> list[str]:
    """Where a package departs from the structure that the standard asks for."""
    found = []
    for element in root.iter():
        name = element.tag.removeprefix(QTI)
        children = [child.tag.removeprefix(QTI) for child in element]
        if any(child not in ORDER.get(name, ()) for child in children) or children != sorted(
            children, key=ORDER.get(name, ()).index
        ):
            found.append(f"{name} holds {children[:5]}")
        if not REQUIRED.get(name, set()) <= set(element.attrib):
            found.append(f"{name} lacks {REQUIRED[name] - set(element.attrib)}")
    idents = [element.get("ident") for name in ("assessment", "section", "item") for element in root.iter(QTI + name)]
    return found + [f"{ident} twice" for ident in set(idents) if idents.count(ident) > 1]


def text_at(element: ET.Element, path: str) -> str:
    found = element.find("/".join(QTI + step for step in path.split("/")))
    assert found is not None, path
    return found.text or ""


def scoring(item: ET.Element) -> dict[str, str]:
    """The exact, least and largest number of a numeric item."""
    return {name: next(item.iter(QTI + name)).text or "" for name in ("varequal", "vargte", "varlte")}


def fields(item: ET.Element) -> dict[str, str]:
    return {text_at(one, "fieldlabel"): text_at(one, "fieldentry") for one in item.iter(f"{QTI}qtimetadatafield")}


def plain_text(marked_up: str) -> str:
    parser = HTMLParser()
    words: list[str] = []
    parser.handle_data = words.append  # type: ignore[method-assign]
    parser.feed(marked_up)
    return one_line(" ".join(words))


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> ET.Element:
    return package(made(tmp_path_factory.mktemp("quiz") / "qti", "qti"))[1]


@pytest.mark.parametrize("kind", ["number", "choice", "diagnosis"])
def test_the_package_has_the_structure_of_the_standard(kind: str, tmp_path: Path) -> None:
    manifest, root = package(made(tmp_path / "q", "qti", kind=kind, sets=3))
    assert problems(root) == []
    assert [child.tag.removeprefix(PACKAGE) for child in manifest] == ["metadata", "organizations", "resources"]


def test_that_structure_check_can_fail(platform: ET.Element) -> None:
    again = ET.fromstring(ET.tostring(platform))
    items = list(again.iter(f"{QTI}item"))
    items[0].set("ident", str(items[1].get("ident")))
    items[2].append(items[2][0])
    del items[3].attrib["ident"]
    assert len(problems(again)) >= 3


def test_every_question_is_a_bank_of_thirty_of_which_one_is_asked(platform: ET.Element) -> None:
    banks = [section for section in platform.iter(f"{QTI}section") if section.find(f"{QTI}item") is not None]
    assert len(banks) == 6
    for bank in banks:
        assert text_at(bank, "selection_ordering/selection/selection_number") == "1"
        items = bank.findall(f"{QTI}item")
        assert len(items) == 30
        assert len({fields(item)["threeloops_idea"] for item in items}) == 1
        assert len({fields(item)["threeloops_unit"] for item in items}) == 1
        assert len({text_at(item, "presentation/material/mattext") for item in items}) == 30


def test_every_item_is_its_drill_and_scores_its_answer_and_nothing_else(platform: ET.Element) -> None:
    for item in platform.iter(f"{QTI}item"):
        known = fields(item)
        drill, p = DRILLS[known["threeloops_idea"]], drawn_again(known["threeloops_idea"], known["threeloops_seed"])
        told = plain_text(text_at(item, "presentation/material/mattext"))
        assert told.startswith(one_line(drill.prompt(p)))
        unit = known["threeloops_unit"]
        assert (f"in {unit}" if unit != "times" else "a plain number") in told
        exact, low, high = scoring(item).values()
        assert all(re.fullmatch(r"-?\d+(\.\d+)?", number) for number in (exact, low, high))
        scored = {
            name: parse(f"{number} {unit}", like=drill.unit).value
            for name, number in (("exact", exact), ("low", low), ("high", high))
        }
        answer = drill.derive(p).value
        assert scored["exact"] == pytest.approx(answer, rel=1e-5)
        assert (scored["low"], scored["high"]) == pytest.approx(drill.exactness.span(answer), rel=1e-4)
        assert not any(scored["low"] <= slip.wrong(p) <= scored["high"] for slip in drill.slips)


def test_an_item_with_another_drills_numbers_would_be_noticed(platform: ET.Element) -> None:
    item = next(platform.iter(f"{QTI}item"))
    idea, seed = fields(item)["threeloops_idea"], fields(item)["threeloops_seed"]
    exact = parse(f"{scoring(item)['varequal']} {fields(item)['threeloops_unit']}", like=DRILLS[idea].unit).value
    assert exact != pytest.approx(DRILLS[idea].derive(drawn_again(idea, seed + "7")).value, rel=1e-5)


@pytest.mark.parametrize("kind", ["choice", "diagnosis"])
def test_one_option_of_a_choice_is_right_and_the_others_are_slips(kind: str, tmp_path: Path) -> None:
    for item in package(made(tmp_path / "q", "qti", kind=kind, sets=4))[1].iter(f"{QTI}item"):
        known = fields(item)
        drill, p = DRILLS[known["threeloops_idea"]], drawn_again(known["threeloops_idea"], known["threeloops_seed"])
        options = {
            label.get("ident"): plain_text(text_at(label, "material/mattext"))
            for label in item.iter(f"{QTI}response_label")
        }
        right = options.pop(text_at(item, "resprocessing/respcondition/conditionvar/varequal"))
        stories = {one_line(slip.story): slip for slip in drill.slips}
        if kind == "choice":
            assert right == drill.shown(drill.derive(p).value)
            assert set(options.values()) <= {drill.shown(slip.wrong(p)) for slip in drill.slips}
        else:
            told = plain_text(text_at(item, "presentation/material/mattext"))
            assert f"A colleague says: {drill.shown(stories[right].wrong(p))}." in told
            assert set(options.values()) < set(stories)
        assert right not in options.values()
        assert len(options) >= 3


def test_a_student_is_not_shown_where_the_numbers_come_from(platform: ET.Element) -> None:
    for item in platform.iter(f"{QTI}item"):
        assert fields(item)["threeloops_seed"] not in plain_text(text_at(item, "presentation/material/mattext"))
        assert SEED not in str(item.get("title"))


def test_every_drill_has_a_unit_to_be_asked_in(tmp_path: Path) -> None:
    quiz = Quiz(title="t", topics=(), questions=1, versions=10, seed=SEED)
    left_out = []
    for idea, drill in DRILLS.items():
        values = [drill.derive(drawn_again(idea, one.seed)).value for one in variants(quiz, idea)]
        if not bare_numbers.typable(drill.unit, values, capacity=drill.capacity):
            left_out.append(idea)
        unit = bare_numbers.unit_for(drill.unit, values, capacity=drill.capacity)
        assert parse(f"1 {unit}", like=drill.unit).value > 0
    assert "format-largest" in left_out  # up to 10^38
    assert len(left_out) < len(DRILLS) / 20
