"""Sheets and keys as Word and LaTeX, read back by code that knows nothing of how they are written."""

import io
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from threeloops import cli
from threeloops.drills.engine.bank import DRILLS
from threeloops.paper import delivery, latex, printed, word
from threeloops.paper import quiz as quizzes
from threeloops.paper.answer_space import space_m
from threeloops.paper.quiz import Quiz, versions

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
QUIZ = Quiz(title="Caches & <more> of 50 %", topics=("kv_cache",), questions=3, versions=2, seed="spring")


def paragraphs(document: bytes) -> list[tuple[str, str]]:
    """(style, text) of every paragraph, in cells, too."""
    with zipfile.ZipFile(io.BytesIO(document)) as archive:
        body = ElementTree.fromstring(archive.read("word/document.xml"))
    found = []
    for one in body.iter(f"{W}p"):
        style = one.find(f"{W}pPr/{W}pStyle")
        assert style is not None
        text = "".join("\n" if part.tag == f"{W}br" else part.text or "" for part in one.iter() if part.tag in READ)
        found.append((style.get(f"{W}val", ""), text))
    return found


READ = (f"{W}t", f"{W}br")


def test_a_package_has_the_parts_that_it_names() -> None:
    document = word.sheets(QUIZ, versions(QUIZ), space_m=0.05)
    with zipfile.ZipFile(io.BytesIO(document)) as archive:
        assert archive.testzip() is None
        names = set(archive.namelist())
        trees = {name: ElementTree.fromstring(archive.read(name)) for name in names}
    (types,) = [tree for name, tree in trees.items() if name == "[Content_Types].xml"]
    overridden = {one.get("PartName", "")[1:] for one in types if one.get("PartName")}
    assert overridden < names
    for name, tree in trees.items():
        if name.endswith(".rels"):
            base = Path(name).parent.parent
            for one in tree:
                assert (base / one.get("Target", "")).as_posix() in names, name
    styles = {one.get(f"{W}styleId") for one in trees["word/styles.xml"]}
    assert {style for style, _ in paragraphs(document)} <= styles
    assert document == word.sheets(QUIZ, versions(QUIZ), space_m=0.05), "the same quiz makes the same file"


def test_a_question_keeps_to_one_page_in_word() -> None:
    with zipfile.ZipFile(io.BytesIO(word.sheets(QUIZ, versions(QUIZ), space_m=0.05))) as archive:
        body = ElementTree.fromstring(archive.read("word/document.xml"))
    made = [one.find(f"{W}pPr") for one in body.iter(f"{W}p")]
    held = {"".join(one.tag.removeprefix(W) + " " for one in style or ()) for style in made}
    assert held == {"pStyle ", "pStyle pageBreakBefore ", "pStyle keepNext keepLines "}, "in the order of the schema"
    asked = sum(len(one.questions) for one in versions(QUIZ))
    assert sum(style is not None and style.find(f"{W}keepLines") is not None for style in made) == 2 * asked, (
        "the text to its box, the box to its identity"
    )


def test_a_document_says_what_the_printed_sheet_says() -> None:
    made = versions(QUIZ)
    found = [text for _, text in paragraphs(word.sheets(QUIZ, made, space_m=0.05))]
    assert found[0] == "Caches & <more> of 50 % · version 1 of 2"
    for version in made:
        for place, asked in enumerate(version.questions, start=1):
            at = found.index(f"{place}. {asked.question.title}", found.index(printed.head(QUIZ, version)))
            assert found[at + 1 : at + 4] == [asked.question.text, "Answer:", printed.identity(asked)]
            assert not any(quizzes.answer(asked) in text for text in found), "no trace of an answer"
    key = [text for _, text in paragraphs(word.key(QUIZ, made))]
    for version in made:
        for asked in version.questions:
            assert asked.question.working in key
            for wrong, story in quizzes.slips(asked):
                assert key[key.index(story) - 1] == wrong or key.count(story) > 1


@pytest.mark.parametrize(("written", "twips"), [("5 cm", 2835), ("2in", 2880), ("12.5 mm", 709)])
def test_the_space_is_the_one_that_was_chosen(written: str, twips: int) -> None:
    made = versions(QUIZ)
    with zipfile.ZipFile(io.BytesIO(word.sheets(QUIZ, made, space_m=space_m(written)))) as archive:
        body = ElementTree.fromstring(archive.read("word/document.xml"))
    heights = [int(one.get(f"{W}val", 0)) for one in body.iter(f"{W}trHeight")]
    assert heights == [twips] * 6
    millimetres = f"{round(twips / 1440 * 25.4, 1):g}mm"
    assert latex.sheets(QUIZ, made, space_m=space_m(written)).count(rf"\vspace*{{{millimetres}}}") == 6
    assert printed.html_sheets(QUIZ, made, space_m=space_m(written)).count(f"height: {millimetres}") == 1
    assert "height: 7em" in printed.html_sheets(QUIZ, made)


def test_characters_that_no_xml_may_hold_do_not_break_a_document() -> None:
    told = "a\x00b\x1b[2J & <c> \ud800 😀"
    (only,) = paragraphs(word.document([word.paragraph(told)]))
    assert only == ("Normal", "a b [2J & <c>   😀")


def set_in_latex(source: str) -> str:
    """What a reader of the page sees: commands undone by a table of LaTeX's own names, written anew here."""
    names = {
        "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<", "textgreater": ">",
        "textbar": "|", "textquotedbl": '"', "textdegree": "°", "textmu": "µ", "texteuro": "€", "ldots": "…",
        "textendash": "–", "textemdash": "—", "textquoteleft": "‘", "textquoteright": "’", "textquotedblleft": "“",
        "textquotedblright": "”", "times": "×", "pm": "±", "cdot": "·", "div": "÷", "surd": "√", "approx": "≈",
        "leq": "≤", "geq": "≥", "neq": "≠", "infty": "∞", "rightarrow": "→", "lfloor": "⌊", "rfloor": "⌋",
        "lceil": "⌈", "rceil": "⌉", "alpha": "α", "beta": "β", "gamma": "γ", "sigma": "σ", "lambda": "λ", "mu": "μ",
    }  # fmt: skip
    raised = dict(zip("0123456789T", "⁰¹²³⁴⁵⁶⁷⁸⁹ᵀ", strict=True))
    lowered = dict(zip("0123456789", "₀₁₂₃₄₅₆₇₈₉", strict=True))
    token = re.compile(
        r"\\textsuperscript\{(?P<up>.)\}|\\textsubscript\{(?P<down>.)\}|\\\(\\(?P<maths>\w+)\\\)|\\\((?P<minus>-)\\\)"
        r"|\\(?P<name>[a-z]+)\{\}|\\(?P<sign>[{}$&#_%])|(?P<tie>~)|(?P<apart>\{\})|(?P<plain>[^\\{}$&#_%~^])",
        re.IGNORECASE | re.DOTALL,
    )
    found, at = "", 0
    while at < len(source):
        one = token.match(source, at)
        assert one, f"LaTeX would stumble over {source[at : at + 20]!r}"
        kind = one.lastgroup
        value = one[kind or 0]
        found += {
            "up": raised.get(value, ""), "down": lowered.get(value, ""), "maths": names.get(value, ""), "minus": "−",
            "name": names.get(value, ""), "sign": value, "tie": "\u00a0", "apart": "", "plain": value,
        }[kind or ""]  # fmt: skip
        at = one.end()
    return found


@pytest.mark.parametrize(
    "text", ["\\{}$&#_%~^<>|\"'`", "a--b ``c'' ,,d ?`e", "3 × 10⁻ⁿ".replace("⁻ⁿ", "²"), "−µ·√≥→⌈α⌉ é ü"]
)
def test_every_character_is_set_as_it_is(text: str) -> None:
    assert set_in_latex(latex.escaped(text)) == text
    for ligature in ("--", "``", "''", ",,", "?`", "!`"):
        assert ligature not in latex.escaped(text)


def test_every_drill_can_be_set() -> None:
    for key in DRILLS:
        (one,) = versions(Quiz(title="All", topics=(key,), questions=1, versions=1, seed="all"))
        (asked,) = one.questions
        stories = (part for pair in quizzes.slips(asked) for part in pair)
        for text in (asked.question.title, asked.question.text, asked.question.working, printed.right(asked), *stories):
            for line in text.split("\n"):
                assert set_in_latex(latex.escaped(line)) == line, key


def test_what_is_begun_is_ended() -> None:
    made = versions(QUIZ)
    for source in (latex.sheets(QUIZ, made, space_m=0.05), latex.key(QUIZ, made)):
        depth, open_ones = 0, list[str]()
        for what, name in re.findall(r"\\(begin|end)\{(\w+)\}", source):
            open_ones.append(name) if what == "begin" else open_ones.remove(name)
        assert open_ones == []
        for one in re.sub(r"\\[\\{}]", "", source):
            depth += (one == "{") - (one == "}")
            assert depth >= 0
        assert depth == 0
        assert source.count(r"\clearpage") == 1
        assert r"Caches \& \textless{}more\textgreater{} of 50 \%" in source


def test_the_command_writes_both_and_refuses_what_is_no_space(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["quiz", "kv_cache", "--questions", "2", "--versions", "2", "--seed", "w"]
    for form, ending in (("docx", "docx"), ("latex", "tex")):
        into = tmp_path / form
        assert cli.main([*words, "--format", form, "--space", "6 cm", "--into", str(into)]) == 0
        assert {path.name for path in into.iterdir()} == {f"questions.{ending}", f"key.{ending}"}
    capsys.readouterr()
    for form, space, sentence in (
        ("docx", "much", "space='much' must be a length in mm, cm or in, like '5 cm'"),
        ("latex", "30 cm", "space='30 cm' must be above 0 and at most 18 cm"),
        ("html", "0 cm", "space='0 cm' must be above 0"),
        ("text", "5 cm", "the format text leaves no space; html, docx, latex do"),
    ):
        assert cli.main([*words, "--format", form, "--space", space, "--into", str(tmp_path / "no")]) == 2
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "no").exists()
    assert cli.main([*words, "--title", "漢", "--format", "latex", "--into", str(tmp_path / "no")]) == 2
    assert "LaTeX's usual fonts have no '漢' (in '漢 · version 1 of 2'); write it otherwise, or take docx" in (
        capsys.readouterr().err
    )
    assert set(delivery.WITH_SPACE) < set(delivery.FORMATS)
