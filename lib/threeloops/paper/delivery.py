"""A quiz into a folder. Nothing that is there is overwritten: a printed version that no key fits would be worse than
no quiz.
"""

import dataclasses
from pathlib import Path

from threeloops import checks
from threeloops.paper import latex, printed, qti, word
from threeloops.paper.answer_space import space_m
from threeloops.paper.quiz import Quiz, versions

FORMATS = ("text", "html", "docx", "latex", "qti")
WITH_SPACE = ("html", "docx", "latex")


def files(quiz: Quiz, form: str, *, space: str | None = None) -> dict[str, bytes]:
    """File name -> content, with so much space for each answer as is asked for, in a format that leaves any.

    Raises:   ValueError for a format or a space that is none
    """
    checks.one_of(FORMATS, format=form)
    if space is not None and form not in WITH_SPACE:
        raise ValueError(f"space={space!r}: the format {form} leaves no space; {', '.join(WITH_SPACE)} do")
    height = space_m(space)
    if form == "qti":
        return {"quiz-qti.zip": qti.package(dataclasses.replace(quiz, bare=quiz.kind == "number"))}
    made = versions(quiz)
    if form == "docx":
        return {"questions.docx": word.sheets(quiz, made, space_m=height), "key.docx": word.key(quiz, made)}
    if form == "latex":
        pages = {"questions.tex": latex.sheets(quiz, made, space_m=height), "key.tex": latex.key(quiz, made)}
    elif form == "html":
        sheets = printed.html_sheets(quiz, made, space_m=height if space else None)
        pages = {"questions.html": sheets, "key.html": printed.html_key(quiz, made)}
    else:
        width = len(str(quiz.versions))
        pages = {f"version-{version.number:0{width}}.txt": printed.text_sheet(quiz, version) for version in made}
        pages["key.txt"] = printed.text_key(quiz, made)
    return {name: content.encode() for name, content in pages.items()}


def deliver(quiz: Quiz, form: str, folder: Path, *, space: str | None = None) -> list[Path]:
    """Write the files; returns where they are.

    Raises:   ValueError, in one sentence, if the folder already holds one of them
    """
    made = {folder / name: content for name, content in files(quiz, form, space=space).items()}
    there = [path for path in made if path.exists()]
    if there:
        raise ValueError(f"{there[0]} is already there; give another folder with --into, so that no key is lost")
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in made.items():
        path.write_bytes(content)
    return list(made)
