"""Moodle's headings and times in German, French, Spanish and Portuguese, beside English: it writes lists and worksheets
in the language of whoever downloads them.

Source:   Moodle's language packs for 4.4, langconfig.php (how times are written) and assign.php (when a file was last
          changed), and worksheets that were exported in these languages; the other headings are the usual words
"""

import contextlib
import datetime as dt
import re
import unicodedata
from collections.abc import Sequence
from zoneinfo import ZoneInfo

from threeloops.classroom.term import lists

MAIL_HEADINGS = ("email", "email address", "mail", "e mail")
# Moodle's headings in other languages, as they are compared, by the English one, with what schools write in place of
# its e-mail heading.
IN_ENGLISH = {
    "first name": ("vorname", "prénom", "nombre", "nombre s", "nome", "nome próprio", "given name", "forename"),
    "last name": (
        "nachname",
        "nom",
        "nom de famille",
        "apellido",
        "apellidos",
        "apellido s",
        "apelido",
        "apelidos",
        "sobrenome",
        "family name",
    ),
    "full name": ("vollständiger name", "nom complet", "nombre completo", "nome completo", "user full name"),
    "id number": (
        "id nummer",
        "numéro d identification",
        "número de id",
        "número id",
        "número de identificación",
        "número de identificação",
        "número de identificação id",
    ),
    "username": (
        "anmeldename",
        "nom d utilisateur",
        "nombre de usuario",
        "nome de utilizador",
        "identificação de usuário",
        "user name",
    ),
    "groups": ("gruppen", "gruppe", "groupes", "groupe", "grupos", "grupo"),
}
MAIL = re.compile(r"\be ?mails?\b|\bmail\b|\bcourriel\b|\bcorreo\b|\bcorreio\b")


def in_english(compared: str) -> str:
    """A heading of Moodle's as it is in English, so that nobody must change a site's language for a list.

    >>> [in_english(one) for one in ("vorname", "adresse de courriel", "dirección de correo", "id")]
    ['first name', 'email address', 'email address', 'id']
    """
    if MAIL.search(compared) and compared not in MAIL_HEADINGS:
        return "email address"
    return next((name for name, others in IN_ENGLISH.items() if compared in others), compared)


# Moodle writes headings and times in the language of whoever downloads: by what a column is called here.
HEADINGS = {
    "identifier": ("identifier", "id", "identifiant", "identificador"),
    "came": (
        "last modified submission",
        "zuletzt geändert abgabe",
        "dernière modification travail remis",
        "última modificación entrega",
        "última modificação envio",
        "última modificação submissão",
        "última atualização submissão",
    ),
    "graded": (
        "last modified grade",
        "zuletzt geändert bewertung",
        "dernière modification note",
        "última modificación calificación",
        "última modificação nota",
        "última atualização avaliação",
    ),
    "grade": ("grade", "bewertung", "note", "calificación", "nota", "avaliação"),
}
# Months by their number, German (Austrian, too), French, Spanish and Portuguese beside the English ones.
MONTHS = (
    "january januar jänner janvier enero janeiro",
    "february februar feber février febrero fevereiro",
    "march märz mars marzo março",
    "april avril abril",
    "may mai mayo maio",
    "june juni juin junio junho",
    "july juli juillet julio julho",
    "august août agosto",
    "september septembre septiembre setiembre setembro",
    "october oktober octobre octubre outubro",
    "november novembre noviembre novembro",
    "december dezember décembre diciembre dezembro",
)
MONTH = {name: number for number, names in enumerate(MONTHS, start=1) for name in names.split()}
SHORTEST_MONTH = 3  # letters of one that is cut short, with a dot: “14 set. 2026”
DAY_FIRST = re.compile(r"(?P<day>\d{1,2})\.?(?: de)? (?P<month>[^\W\d_]+)\.?(?: de)?,? (?P<year>\d{4})")
MONTH_FIRST = re.compile(r"(?P<month>[^\W\d_]+)\.? (?P<day>\d{1,2}),? (?P<year>\d{4})")
CLOCK = re.compile(r"(?P<hour>\d{1,2})[:h](?P<minute>\d{2})(?::\d{2})?(?:\s*(?P<half>[AaPp])\.?\s?[Mm]\.?)?$")


def worksheet_columns(headings: Sequence[str]) -> dict[str, str]:
    """Which of a worksheet's columns is what, by what they are called here and in English.

    >>> worksheet_columns(["ID", "Vollständiger Name", "Zuletzt geändert (Abgabe)"])
    {'identifier': 'id', 'full name': 'vollständiger name', 'came': 'zuletzt geändert abgabe'}
    """
    found: dict[str, str] = {}
    for one in map(lists.heading, headings):
        what = next((name for name, written in HEADINGS.items() if one in written), in_english(one))
        found.setdefault(what, one)
    return found


def moodle_time(written: str, zone: ZoneInfo, *, where: str) -> dt.datetime | None:
    """A time as Moodle writes it; None where nobody has handed in.

    Raises:   ValueError, in one sentence, for what is no time in these languages
    """
    if written in ("", "-"):
        return None
    with contextlib.suppress(ValueError):
        return dt.datetime.strptime(written, "%Y-%m-%d %H:%M").replace(tzinfo=zone)
    clock = CLOCK.search(written.strip())
    date = DAY_FIRST.search(written) or MONTH_FIRST.search(written)
    month = _month(date["month"]) if date else None
    if date and clock and month:
        hour, half = int(clock["hour"]), (clock["half"] or "").lower()
        with contextlib.suppress(ValueError):
            return dt.datetime(
                int(date["year"]),
                month,
                int(date["day"]),
                hour if not half else hour % 12 + 12 * (half == "p"),
                int(clock["minute"]),
                tzinfo=zone,
            )
    raise ValueError(
        f"{where}: {written!r} is no time that is known here; set Moodle to English before you download the worksheet"
    )


def _month(written: str) -> int | None:
    """A month's number by its name, or by the beginning of it.

    >>> _month("März"), _month("set"), _month("Ju"), _month("jui")
    (3, 9, None, None)
    """
    name = unicodedata.normalize("NFC", written).casefold()
    if name in MONTH:
        return MONTH[name]
    fits = {number for month, number in MONTH.items() if len(name) >= SHORTEST_MONTH and month.startswith(name)}
    return fits.pop() if len(fits) == 1 else None
