"""Every attempt ever made, in one SQLite file: safe against a killed process, a full disk and two windows at once.

An attempt is one judged question of one session. Its place (session, position) is its key, so that it can be written
twice but never counted twice. What an answer does to an idea's schedule is written in the same transaction as the
answer.
"""

import contextlib
import datetime as dt
import json
import secrets
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

from threeloops import wall_clock
from threeloops.room import schedule
from threeloops.room.attempts import ANSWERED, DESK, Ask, Attempt, SessionRecord, plan_of, plan_text
from threeloops.room.trouble import plainly

FORMAT = 1
TABLES = Path(__file__).with_name("history.sql").read_text(encoding="utf-8")
NOWHERE = ":memory:"  # SQLite's name for a history that ends with the process
WAIT_S = 10.0  # for another window that is writing


class HistoryError(ValueError):
    """The history cannot be read or written; the message says why and what would help, in one sentence."""


class History:
    """The file of attempts. Open it once per process; every method is one transaction."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        # what the disk did not take: written with the next answer, or by `write_waiting`
        self._waiting: list[tuple[Attempt, Sequence[Ask] | None]] = []
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(self.path, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
            self._file.execute("pragma journal_mode=wal")
            self._file.execute("pragma synchronous=full")
            with self._transaction():
                for statement in filter(str.strip, TABLES.split(";")):
                    self._file.execute(statement)
                self._add_columns()
                self._file.execute("insert or ignore into settings values ('format', ?)", [str(FORMAT)])
        except (sqlite3.Error, OSError) as error:
            raise HistoryError(plainly(error, path=self.path, wait_s=WAIT_S)) from error
        if (found := self.setting("format")) != str(FORMAT):
            raise HistoryError(
                f"{self.path} has format {found}, of another edition; this one reads {FORMAT}. Move it aside to begin"
                " anew"
            )

    def _add_columns(self) -> None:
        """A file from before answers could be right in part, or said to be sure, gets the columns for it."""
        columns = [row[1] for row in self._file.execute("pragma table_info(attempts)")]
        for name, kind in (("share", "real not null default 0"), ("sure", "real")):
            if name not in columns:
                self._file.execute(f"alter table attempts add column {name} {kind}")

    @property
    def kept(self) -> bool:
        """Whether anything outlasts this process."""
        return str(self.path) != NOWHERE

    def close(self) -> None:
        self._file.close()

    # --- sessions --------------------------------------------------------------------------------

    def begin(self, mode: str, options: dict[str, object], plan: Sequence[Ask]) -> str:
        """Keep a new session; its id."""
        name, now_s = secrets.token_hex(16), wall_clock.now_s()
        self.keep(SessionRecord(id=name, mode=mode, options=options, plan=tuple(plan), started_s=now_s, ended_s=None))
        return name

    def keep(self, record: SessionRecord) -> None:
        """Keep a session that was begun here or elsewhere."""
        row = [record.id, record.mode, json.dumps(record.options), plan_text(record.plan), record.started_s]
        with self._writing():
            self._file.execute("insert into sessions values (?, ?, ?, ?, ?, ?)", [*row, record.ended_s])

    def end(self, session: str) -> None:
        with self._writing():
            self._file.execute(
                "update sessions set ended_s = coalesce(ended_s, ?) where id = ?", [wall_clock.now_s(), session]
            )

    def session(self, name: str) -> SessionRecord:
        row = self._row("select id, mode, options, plan, started_s, ended_s from sessions where id = ?", name)
        if row is None:
            raise HistoryError(f"{self.path} knows no session {name!r}")
        try:
            kept = SessionRecord(
                id=row[0],
                mode=row[1],
                options=json.loads(row[2]),
                plan=plan_of(row[3]),
                started_s=row[4],
                ended_s=row[5],
            )
        except (ValueError, TypeError) as error:
            raise HistoryError(f"{self.path}: the sitting {name} is damaged; begin another") from error
        changed = [plan for attempt, plan in self._waiting if attempt.session == name and plan is not None]
        return replace(kept, plan=tuple(changed[-1])) if changed else kept

    def planned(self, mode: str) -> list[tuple[Ask, ...]]:
        """What every session of a mode asks, the latest first; a damaged one is left out."""
        asked = []
        for (plan,) in self._rows("select plan from sessions where mode = ? order by started_s desc, rowid desc", mode):
            with contextlib.suppress(ValueError, TypeError):
                asked.append(plan_of(str(plan)))
        return asked

    def begun(self, mode: str) -> list[float]:
        """When each session of a mode was begun (Unix time)."""
        return [float(str(row[0])) for row in self._rows("select started_s from sessions where mode = ?", mode)]

    def unfinished(self) -> str | None:
        """The last session that was begun and not ended."""
        row = self._row("select id from sessions where ended_s is null order by started_s desc limit 1")
        return str(row[0]) if row else None

    def answered(self, session: str) -> set[int]:
        """The places of a session that have an attempt."""
        taken = {int(str(row[0])) for row in self._rows("select position from attempts where session = ?", session)}
        return taken | {attempt.position for attempt, _ in self._waiting if attempt.session == session}

    def score(self, session: str) -> tuple[float, int]:
        """(right, answered) of a session so far, in whichever door; an answer in parts counts by its share."""
        rows = self._rows("select status, share from attempts where session = ?", session)
        points = [1.0 if status == "right" else float(str(share)) for status, share in rows if status in ANSWERED]
        return sum(points), len(points)

    def statuses(self, session: str) -> Counter[str]:
        """How many questions of a session ended in which way."""
        return Counter(str(row[0]) for row in self._rows("select status from attempts where session = ?", session))

    def shown(self, session: str, position: int, at_s: float | None = None) -> float:
        """When the question was first put (Unix time): now, or at a time kept elsewhere, unless a killed process or
        another window put it before.
        """
        now_s = wall_clock.now_s() if at_s is None else at_s
        with self._writing():
            self._file.execute("insert or ignore into shown values (?, ?, ?)", [session, position, now_s])
        row = self._row("select at_s from shown where session = ? and position = ?", session, position)
        return float(row[0]) if row else now_s

    # --- attempts --------------------------------------------------------------------------------

    def record(self, attempt: Attempt, plan: Sequence[Ask] | None = None) -> bool:
        """Keep an attempt, what it does to the idea's schedule, and the session's plan if it changed. False if that
        place already has an attempt.

        Raises: HistoryError if the disk does not take it; the attempt is then written together with the next one
        """
        self._waiting.append((attempt, plan))
        return self.write_waiting()

    @property
    def waiting(self) -> list[Attempt]:
        """Attempts that the disk has not taken yet."""
        return [attempt for attempt, _ in self._waiting]

    def write_waiting(self) -> bool:
        """Write what waits; whether the last of it was new.

        Raises: HistoryError if the disk still does not take it
        """
        kept = False
        with self._writing():
            for one, its_plan in self._waiting:
                kept = self._insert(one)
                if kept and its_plan is not None:
                    self._file.execute("update sessions set plan = ? where id = ?", [plan_text(its_plan), one.session])
        self._waiting.clear()
        return kept

    def _insert(self, attempt: Attempt) -> bool:
        values = asdict(attempt)
        marks = ", ".join("?" * len(values))
        new = self._file.execute(
            f"insert or ignore into attempts ({', '.join(values)}) values ({marks})", [*values.values()]
        ).rowcount
        if new and attempt.rated:
            card = self._row("select card from cards where idea = ?", attempt.idea)
            before = card[0] if card and schedule.readable(card[0]) else None
            self._file.execute(
                "insert or replace into cards values (?, ?)", [attempt.idea, schedule.reviewed(before, attempt)]
            )
        return bool(new)

    def attempts(self, *, desk: bool = False) -> list[Attempt]:
        """Every attempt in the room, oldest first; with those on a notebook's cards where `desk` says so."""
        names, kinds = [field.name for field in fields(Attempt)], "" if desk else f"where kind != '{DESK}'"
        rows = self._rows(f"select {', '.join(names)} from attempts {kinds} order by at_s, session, position")
        try:
            return [Attempt(**dict(zip(names, row, strict=True))) for row in rows]  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise HistoryError(f"{self.path} is damaged ({error}); move it aside to begin anew") from error

    def cards(self) -> dict[str, str]:
        """Idea -> its FSRS card (JSON). A damaged card is worked out again from the attempts."""
        cards: dict[str, str] = dict(self._rows("select idea, card from cards"))  # type: ignore[arg-type]
        if all(map(schedule.readable, cards.values())):
            return cards
        return self._replayed()

    # --- settings, moving house, starting over ---------------------------------------------------

    def setting(self, name: str) -> str | None:
        row = self._row("select value from settings where name = ?", name)
        return str(row[0]) if row else None

    def set(self, name: str, value: str | None) -> None:
        with self._writing():
            if value is None:
                self._file.execute("delete from settings where name = ?", [name])
            else:
                self._file.execute("insert or replace into settings values (?, ?)", [name, value])

    @property
    def interview(self) -> dt.date | None:
        """The day of the interview, while it lies ahead."""
        written = self.setting("interview")
        try:
            date = dt.date.fromisoformat(written) if written else None
        except ValueError as error:
            raise HistoryError(f"{self.path} holds no date for the interview: {error}; set it again") from error
        return date if date and date >= wall_clock.today() else None

    def add(self, attempts: Sequence[Attempt]) -> int:
        """Take in attempts from elsewhere; those already here are left alone. How many were new. Schedules are worked
        out again from all attempts.
        """
        with self._writing():
            new = sum(self._insert(attempt) for attempt in attempts)
            self._replay()
        return new

    def forget(self, idea: str | None) -> int:
        """Delete the attempts of one idea, or all of them (None); how many there were."""
        with self._writing():
            if idea is None:
                gone = self._file.execute("delete from attempts").rowcount
                for table in ("cards", "sessions", "shown"):
                    self._file.execute(f"delete from {table}")
                return gone
            gone = self._file.execute("delete from attempts where idea = ?", [idea]).rowcount
            self._file.execute("delete from cards where idea = ?", [idea])
            return gone

    def _replayed(self) -> dict[str, str]:
        """Every card, worked out from the attempts alone."""
        cards: dict[str, str] = {}
        for attempt in self.attempts():
            if attempt.rated:
                cards[attempt.idea] = schedule.reviewed(cards.get(attempt.idea), attempt)
        return cards

    def _replay(self) -> None:
        cards = self._replayed()
        self._file.execute("delete from cards")
        self._file.executemany("insert into cards values (?, ?)", cards.items())

    # --- SQLite ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._file.execute("begin immediate")
        try:
            yield
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._file.execute("rollback")
            raise
        self._file.execute("commit")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with self._transaction():
                yield
        except sqlite3.Error as error:
            raise HistoryError(plainly(error, path=self.path, wait_s=WAIT_S)) from error

    def _rows(self, query: str, *values: object) -> list[tuple[object, ...]]:
        try:
            return self._file.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise HistoryError(plainly(error, path=self.path, wait_s=WAIT_S)) from error

    def _row(self, query: str, *values: object) -> tuple | None:  # type: ignore[type-arg]
        rows = self._rows(query, *values)
        return rows[0] if rows else None
