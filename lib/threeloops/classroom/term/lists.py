"""CSV files as platforms and spreadsheets write them: UTF-8 with or without a mark, commas, semicolons or tabs."""

import csv
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from threeloops.classroom.course import write_whole

MOST_BYTES = 20_000_000
KEPT_DIGITS = 15  # of a whole number in a spreadsheet: those behind become zeros
MONTH = "Jan|Feb|Fev|Fév|Mar|Mär|Mrz|Apr|Avr|Abr|May|Mai|Jun|Jul|Aug|Ago|Sep|Set|Oct|Okt|Out|Nov|Dec|Dez|Déc|Dic|Ene"
DATE = re.compile(
    rf"\d{{1,2}}[-. ]+(?:{MONTH})|(?:{MONTH})[-. ]+\d{{2}}|\d{{1,2}}([./])\d{{1,2}}\1(?:\d\d){{1,2}}"
    r"|(?:19|20)\d\d-[01]\d-[0-3]\d"
)
DELIMITERS = ",;\t"
SAID = re.compile(r"sep=([,;\t])", re.IGNORECASE)
TEXT_ALONE = re.compile(r'="([^"]*)"')
# What a spreadsheet would calculate when it opens a file: a student may be called that.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def heading(written: str) -> str:
    """A column's heading as it is compared.

    >>> heading("Email address"), heading(" Extra_Days ")
    ('email address', 'extra days')
    """
    return re.sub(r"[\W_]+", " ", written.casefold()).strip()


def text(path: Path) -> str:
    """What a list's file says.

    Raises:   ValueError, in one sentence, for what is no text in UTF-8, or empty
    """
    if not path.is_file():
        raise ValueError(f"{path} does not exist; give a CSV file")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} is larger than {MOST_BYTES:,} bytes, so it is no class list")
    if zipfile.is_zipfile(path):
        raise ValueError(f"{path} is a workbook or a zip, not a CSV file; save it as “CSV UTF-8”")
    try:
        found = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not written in UTF-8; save it as “CSV UTF-8”") from None
    if found.lstrip().startswith("<"):
        raise ValueError(f"{path} is a web page, not a CSV file; was it saved where one had to sign in first?")
    if not found.strip():
        raise ValueError(f"{path} is empty; expected a row of headings and a row for each student")
    return found


def delimiter(path: Path) -> str:
    """What stands between its cells: what its first line says to a spreadsheet (sep=;), or of the three the one that
    its first line has most of.
    """
    first = next(line for line in text(path).splitlines() if line.strip())
    return said[1] if (said := SAID.fullmatch(first.strip(" \r\n"))) else max(DELIMITERS, key=first.count)


def rows(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """(headings as they are written, (line, values by compared heading) of every row that is not empty).

    Raises:   ValueError, in one sentence, for what is no CSV file with a row of headings
    """
    content = text(path)
    try:
        reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter(path), strict=True)
        numbered = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise ValueError(f"{path} is no CSV file: {error}") from None
    if SAID.fullmatch(delimiter(path).join(numbered[0][1])):
        numbered = numbered[1:]
    if not numbered:
        raise ValueError(f"{path} is empty; expected a row of headings and a row for each student")
    headings = [_meant(cell.strip()) for cell in numbered[0][1]]
    names = [heading(cell) for cell in headings]
    _as_wide(path, headings, numbered[1:])
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice:
        raise ValueError(f"{path} has two columns called {twice!r}; leave one of them out")
    return headings, [
        (line, dict(zip(names, (_meant(cell.strip()) for cell in row), strict=False))) for line, row in numbered[1:]
    ]


def _as_wide(path: Path, headings: Sequence[str], numbered: Sequence[tuple[int, list[str]]]) -> None:
    """Refuse rows with more cells than headings: their cells would stand under the wrong ones. What every row has
    too many of, and empty, is a program's habit.
    """
    surplus = {len(row) - len(headings) for _, row in numbered}
    same = len(surplus) == 1
    for line, row in numbered:
        more = row[len(headings) :]
        if any(cell.strip() for cell in more) or (more and not same):
            raise ValueError(
                f"{path}, line {line} has {len(row)} cells under {len(headings)} headings: what holds the separator, as"
                ' a name may, must stand in quotes ("Lovelace, Ada")'
            )


def spoiled(cell: str) -> str:
    """What a spreadsheet has made of an id, in words; nothing where none has.

    >>> spoiled("1.23457E+11"), spoiled("12345.0"), spoiled("s1e5")
    ('rounded by a spreadsheet', 'turned into a fraction by a program', '')
    >>> spoiled("2-Mar"), spoiled("1,001"), spoiled("mar-rob1")
    ('taken for a date by a spreadsheet', 'grouped by thousands by a spreadsheet', '')
    """
    if re.fullmatch(r"\d(?:[.,]\d+)?E[+-]?\d+", cell, re.IGNORECASE):
        return "rounded by a spreadsheet"
    if re.fullmatch(r"\d{3,}[.,]0+", cell):
        return "turned into a fraction by a program"
    if len(digits := re.sub(r"\D", "", cell)) > KEPT_DIGITS and set(digits[KEPT_DIGITS:]) == {"0"} and cell.isdecimal():
        return "rounded by a spreadsheet, which keeps 15 digits"
    if DATE.fullmatch(cell):
        return "taken for a date by a spreadsheet"
    if re.fullmatch(r"\d{1,3}(?:([, '’\u00a0\u202f])\d{3})(?:\1\d{3})*", cell):
        return "grouped by thousands by a spreadsheet"
    if cell.startswith("="):
        return "left by a spreadsheet as a formula"
    if re.fullmatch(r"#+|#(?:N/A|NAME\?|VALUE!|REF!|NUM!|NV|WERT!)", cell, re.IGNORECASE):
        return "replaced by a spreadsheet's error"
    return ""


def shorter(ids: Sequence[str]) -> list[str]:
    """A sentence where most ids are numbers of one length and some are shorter.

    >>> shorter(["100234", "100235", "4567"])[0].partition(":")[0]
    '4567 is shorter than the other ids, which have 6 digits'
    """
    lengths = Counter(len(one) for one in ids if one.isdecimal())
    usual, times = lengths.most_common(1)[0] if lengths else (0, 0)
    short = [one for one in ids if one.isdecimal() and len(one) < usual]
    if not short or 2 * times <= len(ids):
        return []
    return [
        f"{', '.join(short[:3])}{', …' if len(short) > 3 else ''} {'is' if len(short) == 1 else 'are'} shorter than the"
        f" other ids, which have {usual} digits: has a spreadsheet taken zeros from the front? Then take the list from"
        " the platform again."
    ]


def safe(cell: object) -> str:
    """A cell that a spreadsheet shows and does not calculate.

    >>> safe("=1+1"), safe("-3"), safe(-3.5)
    ("'=1+1", "'-3", '-3.5')
    """
    text = "" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell)
    return f"'{text}" if isinstance(cell, str) and cell.startswith(FORMULA) else text


def _meant(cell: str) -> str:
    """A cell that `safe` has written, as it was; and the text in a formula that is nothing but text, as programs write
    an id so that a spreadsheet leaves its zeros.

    >>> _meant("'=1+1"), _meant("'tis"), _meant('="0123"')
    ('=1+1', "'tis", '0123')
    """
    if text_alone := TEXT_ALONE.fullmatch(cell):
        return text_alone[1]
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell


def write(
    path: Path,
    headings: Sequence[str],
    lines: Iterable[Mapping[str, object] | Sequence[object]],
    *,
    exact: bool = False,
    marked: bool = False,
) -> Path:
    """Write a CSV file, whole or not at all; `exact` for a program that wants its own cells back as they came, `marked`
    as UTF-8 for a spreadsheet in which words are typed, which takes accents for other letters without it.
    """
    file = io.StringIO(newline="")
    written = csv.writer(file)
    written.writerow(headings)
    for line in lines:
        cells = [line.get(name, "") for name in headings] if isinstance(line, Mapping) else line
        written.writerow(cells if exact else [safe(cell) for cell in cells])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "\ufeff" * marked + file.getvalue())
    return path


def aside(path: Path) -> Path | None:
    """Keep what is there under another name; None where there is nothing."""
    if not path.exists():
        return None
    number = 1
    while (kept := path.with_name(f"{path.name}.earlier-{number}")).exists():
        number += 1
    return path.rename(kept)
