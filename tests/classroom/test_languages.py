"""Moodle's lists and worksheets in the languages that it writes them in: headings as its packs have them, times as PHP
makes them from the packs' formats.
"""

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from threeloops.classroom.term import matching, people
from threeloops.classroom.term.languages import moodle_time, worksheet_columns

ZONE = ZoneInfo("Europe/Berlin")
WHEN = dt.datetime(2027, 3, 12, 21, 5, tzinfo=ZONE)
TIMES = {
    "en": "Friday, 12 March 2027, 9:05 PM",
    "en_us": "Friday, March 12, 2027, 9:05 PM",
    "de": "Freitag, 12. März 2027, 21:05",
    "fr": "vendredi 12 mars 2027, 21:05",
    "es": "viernes, 12 de marzo de 2027, 21:05",
    "pt": "sexta-feira, 12 de março de 2027 às 21:05",
    "pt_br": "sexta-feira, 12 mar. 2027, 21:05",
    "iso": "2027-03-12 21:05",
}
WORKSHEETS = {
    "en": "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade)\nParticipant 5,",
    "de": "ID,Vollständiger Name,E-Mail-Adresse,Status,Bewertung,Bestwertung,Bewertung kann geändert werden,"
    "Zuletzt geändert (Abgabe),Zuletzt geändert (Bewertung)\nTeilnehmer/in5,",
    "fr": "Identifiant,Nom complet,Adresse de courriel,Statut,Note,Note maximale,La note peut être modifiée,"
    "Dernière modification (travail remis),Dernière modification (note)\nParticipant 5,",
    "es": "Identificador,Nombre completo,Dirección de correo,Estado,Calificación,Calificación máxima,"
    "La calificación puede ser cambiada,Última modificación (entrega),Última modificación (calificación)\n"
    "Participante 5,",
    "pt": "Identificador,Nome completo,Endereço de e-mail,Estado,Avaliação,Nota máxima,A nota pode ser alterada.,"
    "Última atualização (submissão),Última atualização (avaliação)\nParticipante 5,",
    "pt_br": "Identificador,Nome completo,Endereço de email,Status,Nota,Nota máxima,Nota pode ser alterada,"
    "Última modificação (envio),Última modificação (nota)\nParticipante5,",
}


@pytest.mark.parametrize("language", TIMES)
def test_a_time_is_read_in_its_language(language: str) -> None:
    assert moodle_time(TIMES[language], ZONE, where="here") == WHEN


@pytest.mark.parametrize(
    "written",
    ["sometime", "venerdì, 12 marzo 2027, 99:05", "12/03/2027 21:05", "12 Ju 2027, 21:05", "31 February 2027, 9:05 PM"],
)
def test_what_may_be_two_days_or_none_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="is no time that is known here"):
        moodle_time(written, ZONE, where="here")


@pytest.mark.parametrize("language", WORKSHEETS)
def test_a_worksheet_is_read_in_its_language(language: str, tmp_path: Path) -> None:
    path = tmp_path / "worksheet.csv"
    path.write_text(f'{WORKSHEETS[language]}Ada L,ada@x,…,,"14,00",…,"{TIMES[language]}",-\n', encoding="utf-8")
    assert matching.worksheet(path, ZONE) == {"5": matching.Row(name="Ada L", email="ada@x", came=WHEN)}
    assert {"grade", "graded"} <= set(worksheet_columns(WORKSHEETS[language].partition("\n")[0].split(",")))


@pytest.mark.parametrize(
    "headings",
    [
        "First name,Last name,ID number,Email address,Groups",
        "Vorname,Nachname,ID-Nummer,E-Mail-Adresse,Gruppen",
        "Prénom,Nom de famille,Numéro d'identification,Adresse de courriel,Groupes",
        "Nombre,Apellido(s),Número de ID,Dirección de correo,Grupos",
        "Nome,Apelido,Número de identificação,Endereço de e-mail,Grupos",
        "Nome,Sobrenome,Número de identificação,Endereço de email,Grupos",
    ],
)
def test_a_class_list_is_read_in_its_language(headings: str, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(f"{headings}\nAda,Lovelace,1001,ada@x,A\n", encoding="utf-8")
    found = people.class_list(tmp_path / "list.csv")
    (ada,) = found.people
    assert (found.kind, ada.student, ada.name, ada.email, ada.section) == (
        "Moodle",
        "1001",
        "Ada Lovelace",
        "ada@x",
        "A",
    )
