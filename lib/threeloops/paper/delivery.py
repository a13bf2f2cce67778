"""A quiz into a folder. Nothing that is there is overwritten: a printed version that no key fits would be worse than
no quiz.
"""

import dataclasses
from pathlib import Path

from threeloops import checks
from threeloops.paper import printed, qti
from threeloops.paper.quiz import Quiz, versions

FORMATS = ("text", "html", "qti")


def files(quiz: Quiz, form: str) -> dict[str, bytes]:
    """File name -> content."""
    checks.one_of(FORMATS, format=form)
    if form == "qti":
        return {"quiz-qti.zip": qti.package(dataclasses.replace(quiz, bare=quiz.kind == "number"))}
    made = versions(quiz)
    if form == "html":
        pages = {"questions.html": printed.html_sheets(quiz, made), "key.html": printed.html_key(quiz, made)}
    else:
        width = len(str(quiz.versions))
        pages = {f"version-{version.number:0{width}}.txt": printed.text_sheet(quiz, version) for version in made}
        pages["key.txt"] = printed.text_key(quiz, made)
    return {name: content.encode() for name, content in pages.items()}


def deliver(quiz: Quiz, form: str, folder: Path) -> list[Path]:
    """Write the files; returns where they are.

    Raises:   ValueError, in one sentence, if the folder already holds one of them
    """
    made = {folder / name: content for name, content in files(quiz, form).items()}
    there = [path for path in made if path.exists()]
    if there:
        raise ValueError(f"{there[0]} is already there; give another folder with --into, so that no key is lost")
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in made.items():
        path.write_bytes(content)
    return list(made)
