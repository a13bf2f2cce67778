"""Where the scores are kept: a file of the work folder, or a database on a PostgreSQL server, which nbgrader calls
`db_url`.
"""

import importlib.util
from pathlib import Path

SERVERS = ("postgresql", "postgresql+psycopg")
FILE, OWN = "gradebook.db", "its own file"
USED = "gradebook.txt"  # of a work folder: which server's database it goes with
INSTALL = '.venv/bin/python -m pip install -c requirements.lock -e ".[machines]"'


def kept_in(work: Path) -> str:
    """The URL of a work folder's own gradebook."""
    return f"sqlite:///{work / FILE}"


def is_server(url: str) -> bool:
    return not url.startswith("sqlite")


def checked(url: str) -> str:
    """A server's URL, understood, with what is needed to talk to it installed.

    Raises:   ValueError when the URL is none of a PostgreSQL database, or psycopg is not installed
    """
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        understood = make_url(url)
    except ArgumentError:
        understood = None
    if understood is None or understood.drivername not in SERVERS or not understood.database:
        shown = plain(url) if understood else "what was given"
        raise ValueError(
            f"{shown} is no gradebook: give postgresql://USER@HOST/DATABASE (the password in ~/.pgpass), or leave"
            " --gradebook out and a file of the work folder keeps the scores"
        )
    if importlib.util.find_spec("psycopg") is None:
        raise ValueError(
            f"a gradebook on a server needs psycopg, which is not installed here; in the book's folder: {INSTALL}"
        )
    return url


def plain(url: str) -> str:
    """A URL without its password.

    >>> plain("postgresql://ada:secret@db.example/spring")
    'postgresql://ada:***@db.example/spring'
    """
    from sqlalchemy import make_url

    return make_url(url).render_as_string(hide_password=True)


def needs_answer(url: str) -> None:
    """Tell a server that is gone, which every later hand-in would meet too, from a fault with one.

    Raises:   ValueError when it does not answer
    """
    if not is_server(url):
        return
    from sqlalchemy import create_engine, text
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    try:
        with create_engine(url, poolclass=NullPool).connect() as connection:
            connection.execute(text("SELECT 1"))
    except SQLAlchemyError as error:
        reason = " ".join(str(getattr(error, "orig", error)).split())[:200]
        raise ValueError(
            f"the gradebook at {plain(url)} does not answer ({reason}); what is graded is kept: give the same command"
            " again when it does"
        ) from None


def claim(url: str, work: Path) -> None:
    """Make a gradebook and a work folder go together, for good: the folder's judged notebooks, pages and marks are of
    the scores in that gradebook, and two folders would overwrite each other's.

    Raises:   ValueError when the folder goes with another gradebook, or the database holds another folder's scores
    """
    mark = work / USED
    before = mark.read_text(encoding="utf-8").strip() if mark.exists() else ""
    if not before and (work / FILE).exists():
        before = OWN
    now = plain(url) if is_server(url) else OWN
    if before and before != now:
        asked = "without --gradebook" if before == OWN else f"with --gradebook {before}"
        raise ValueError(f"{work} keeps its scores in {before}; grade there {asked}, or choose another --into")
    if not is_server(url):
        return
    needs_answer(url)
    if not before and _holds_scores(url):
        raise ValueError(
            f"{now} already holds scores that were not graded into {work}; give each --into a database of its own"
        )
    mark.write_text(now + "\n", encoding="utf-8")


def knows(url: str, work: Path, name: str) -> bool:
    """Has the gradebook been told what this set asks?"""
    if not is_server(url):
        return (work / FILE).exists()
    return _asked(url, "assignment", "WHERE name = :name", name=name)


def _holds_scores(url: str) -> bool:
    return _asked(url, "submitted_assignment")


def _asked(url: str, table: str, where: str = "", **words: str) -> bool:
    """Is there such a row?"""
    from sqlalchemy import create_engine, inspect, text
    from sqlalchemy.pool import NullPool

    engine = create_engine(url, poolclass=NullPool)
    if not inspect(engine).has_table(table):
        return False
    with engine.connect() as connection:
        return bool(connection.execute(text(f"SELECT EXISTS (SELECT 1 FROM {table} {where})"), words).scalar())
