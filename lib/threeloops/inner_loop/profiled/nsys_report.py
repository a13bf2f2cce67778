"""Nsight Systems' report: what `nsys export --type sqlite` wrote, row by row, as a record of each process in it.

>>> import sqlite3, tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "report.sqlite"
>>> with sqlite3.connect(path) as made:
...     _ = made.executescript(
...         "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
...         "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, demangledName INT);"
...         "INSERT INTO StringIds VALUES (7, 'gemm');"
...         "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 6000, 0, 7)"
...     )
>>> (record,) = read_report(str(path))
>>> round(record.devices["0"].kernels.seconds, 9), record.names
(5e-06, ['gemm'])

Source: NVIDIA, Nsight Systems, SQLite Export Schema Reference (tables are made where something was recorded; times in
        nanoseconds; process in a globalTid's bits from the 24th on, thread below), and CUPTI, CUpti_ActivityMemcpyKind
"""

import itertools
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from threeloops.inner_loop.profiled.nsys_tables import (
    CALLS,
    CATEGORIES,
    COPY_KINDS,
    GRAPHS,
    KERNELS,
    RANGES,
    SETS,
    TABLES,
    stands_for,
)
from threeloops.inner_loop.profiled.rank_record import GRAPH, LAUNCHING, RankRecord, RecordReader, rank_in
from threeloops.inner_loop.profiled.span_columns import Spans
from threeloops.units import counted, ns, us

MAGIC = b"SQLite format 3\x00"
OWN_FORMATS = (".nsys-rep", ".qdrep", ".qdstrm")  # which only Nsight Systems itself opens
NSIGHT = "NVIDIA, Nsight Systems, SQLite Export Schema Reference (StringIds, CUPTI_ACTIVITY_KIND_*, NVTX_EVENTS)"
RECORDS = "`nsys profile --trace=cuda,nvtx` and `nsys export --type sqlite` make one that is"
NO_COLUMN, NO_LINK = "NULL", -1
VERSION = re.compile(r"(_pt[sd][zs])?_v\d+(_pt[sd][zs])?$")  # of a call: cudaLaunchKernel_v7000
PID_BITS = 24
PAGE_SIZE, NUM_PAGES = slice(16, 18), slice(28, 32)  # of a file of SQLite, in its first 100 bytes


def is_report(path: Path) -> bool:
    """Whether a file is one of SQLite.

    Raises:   ValueError for a report in Nsight Systems' own format; OSError for what cannot be opened
    """
    if path.suffix in OWN_FORMATS:
        raise ValueError(
            f"{path.name} is Nsight Systems' own format, which nothing else reads; `nsys export --type sqlite"
            f" {path.name}` makes of it what is read here"
        )
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_report(path: str, *, told: Callable[[int], object] | None = None) -> list[RankRecord]:
    """A record of each process that computed on a device, in the order of their devices; its rank is its place there,
    or of a single process what the file's name states.

    Raises:   ValueError for what is no report of Nsight Systems, was cut, or holds no kernel; OSError for what cannot
              be opened
    """
    file = Path(path)
    _refuse_cut(file)
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            database.text_factory = lambda data: data.decode("utf-8", "replace")
            return _Report(database, file, told).records()
    except sqlite3.Error as error:
        raise ValueError(f"{file.name} is damaged, so that SQLite cannot read it ({error}); export it again") from error


def _refuse_cut(file: Path) -> None:
    with file.open("rb") as opened:
        head = opened.read(100)
    if len(head) < 100:
        raise ValueError(f"{file.name} ends in its first 100 bytes, so that nothing of it can be read")
    page = int.from_bytes(head[PAGE_SIZE], "big")
    whole = (65536 if page == 1 else page) * int.from_bytes(head[NUM_PAGES], "big")
    size = file.stat().st_size
    if size < whole:
        raise ValueError(
            f"{file.name} was cut: it has {size:,} of {whole:,} bytes, and what stands where is said all over it;"
            " copy or export it again"
        )


# Columns' append, the name and the link that are appended, and when a record begins
Append = Callable[[Any], None]
Adder = tuple[Append, Append, Append, Append, int, int, int]


def _append(add: Adder, start: int, end: int) -> None:
    """One row."""
    starts, ends, names, links, name, link, origin = add
    if not end >= start:
        raise TypeError(f"it lasts {end - start} ns")
    starts((start - origin) * ns)
    ends((end - origin) * ns)
    names(name)
    links(link)


class _Report:
    """One open database."""

    def __init__(self, database: sqlite3.Connection, file: Path, told: Callable[[int], object] | None) -> None:
        self._database, self._file, self._told = database, file, told
        self._columns = {
            name: {row[1] for row in database.execute("SELECT * FROM pragma_table_info(?)", (name,))}
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        self._readers: dict[int, RecordReader] = {}
        self._origins: dict[int, int] = {}  # process -> its first row's start
        self._names: dict[int, str] = {}
        self._devices: dict[int, set[int]] = {}  # that a process computed on
        told_of = [self._columns[table] for table in (KERNELS, GRAPHS) if table in self._columns]
        self._one_process = not all("globalPid" in columns for columns in told_of)
        self._read = self._untimed = 0
        self._count = itertools.count()  # of the rows of a table

    def records(self) -> list[RankRecord]:
        name, there = self._file.name, [table for table in TABLES if table in self._columns]
        if "StringIds" not in self._columns:
            raise ValueError(f"{name} is a file of SQLite, but none of Nsight Systems: it has no StringIds; {RECORDS}")
        if missing := sorted({"id", "value"} - self._columns["StringIds"]):
            raise ValueError(f"{name}: table StringIds has no column {', '.join(missing)}; {RECORDS}")
        if not {KERNELS, GRAPHS} & set(there):
            raise ValueError(f"{name} holds no kernel: it has no table {KERNELS}; {RECORDS}")
        for table in there:
            missing = sorted(set(TABLES[table].needed) - self._columns[table])
            if missing:
                raise ValueError(f"{name}: table {table} has no column {', '.join(missing)}; {RECORDS}")
        self._names = dict(self._database.execute("SELECT id, value FROM StringIds"))
        rows = {table: self._rows_in(table) for table in there} if self._told else dict.fromkeys(there, 0)
        for table in there:
            take = self._ranges if table == RANGES else self._driver_calls if table == CALLS else self._on_device
            self._count = itertools.count()
            try:
                take(table)
            except (KeyError, TypeError, AttributeError) as error:
                said = f"{name}: row {next(self._count):,} of {table} is none that Nsight Systems writes ({error!r})"
                raise ValueError(said) from error
            self._tell(rows, table)
        return self._finished()

    def _rows_in(self, table: str) -> int:
        """About how many rows a table has, without counting them."""
        (most,) = self._database.execute(f"SELECT max(rowid) FROM {table}").fetchone()
        return most or 0

    def _tell(self, rows: Mapping[str, int], table: str) -> None:
        self._read += rows[table]
        if self._told:
            self._told(round(self._file.stat().st_size * self._read / max(1, sum(rows.values()))))

    def _rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        """What TABLES says, None where a table lacks a column."""
        there, read = self._columns[table], TABLES[table]
        columns = [f'"{column}"' for column in read.needed]
        columns += [next((f'"{one}"' for one in some if one in there), NO_COLUMN) for some in read.others]
        where = ' WHERE "end" > start' if table == RANGES else ""  # a mark has no end, or one before its start
        return self._database.execute(f"SELECT {', '.join(columns)} FROM {table}{where}")

    def _reader(self, process: int) -> RecordReader:
        reader = self._readers.get(process)
        if reader is None:
            record = RankRecord(name=self._file.name, source=NSIGHT)
            reader = self._readers[process] = RecordReader(record, origin_us=0.0)
        return reader

    def _on_device(self, table: str) -> None:
        adders: dict[tuple[Any, ...], Adder] = {}  # millions of rows have a few hundred of these
        for _, (start, end, *key) in zip(self._count, self._rows(table), strict=False):
            if end == 0:  # CUPTI writes 0 for a time that it could not take
                self._untimed += 1
                continue
            add = adders.get(own := tuple(key))
            if add is None:
                add = adders[own] = self._place(table, start, *key)
            _append(add, start, end)

    def _place(self, table: str, start: int, device: object, what: Any, process_id: Any, stream: object) -> "Adder":
        """Where kernels and copies of one name belong, from the first of them."""
        if not isinstance(device, int):
            raise TypeError(f"its device is {device!r}")
        process = 0 if self._one_process else process_id >> PID_BITS
        reader = self._reader(process)
        self._devices.setdefault(process, set()).add(device)
        name = self._named(table, what)
        rows = reader.record.devices[str(device)]
        spans = rows.of(CATEGORIES[table], name)
        # no group of an exchange is told, and each has its stream
        link = reader.number(f"stream {stream}") if spans is rows.exchanges else NO_LINK
        return self._adder(process, spans, reader.number(name), link, start)

    def _adder(self, process: int, spans: Spans, name: int, link: int, start: int) -> "Adder":
        origin = self._origins.setdefault(process, start)
        return spans.start.append, spans.end.append, spans.name.append, spans.link.append, name, link, origin

    def _named(self, table: str, what: Any) -> str:
        if table == KERNELS:
            return self._names[what]
        if table == GRAPHS:
            return f"{GRAPH}{'' if what is None else what}"
        return "Memset" if table == SETS else f"Memcpy {COPY_KINDS.get(what, what)}"

    def _driver_calls(self, table: str) -> None:
        adders: dict[tuple[Any, Any], Adder] = {}
        for _, (start, end, name_id, thread_id) in zip(self._count, self._rows(table), strict=False):
            add = adders.get((name_id, thread_id))
            if add is None:
                process, thread = self._owner(thread_id)
                name, reader = VERSION.sub("", self._names[name_id]), self._reader(process)
                spans, _ = reader.record.of_call(name, str(thread))
                add = adders[name_id, thread_id] = self._adder(process, spans, reader.number(name), NO_LINK, start)
            _append(add, start, end)
        for reader in self._readers.values():
            record = reader.record
            number_of = sum((Counter(spans.name) for spans in record.calls.values()), Counter[int]())
            record.num_launches = sum(n for name, n in number_of.items() if LAUNCHING.search(record.names[name]))

    def _owner(self, thread_id: int | None) -> tuple[int, int]:
        """Process and thread; where kernels do not name their process, all is of one."""
        number = thread_id or 0
        return (0, number) if self._one_process else (number >> PID_BITS, number & (1 << PID_BITS) - 1)

    def _ranges(self, table: str) -> None:
        for _, (start, end, text, text_id, thread_id) in zip(self._count, self._rows(table), strict=False):
            name = text or self._names.get(text_id or -1, "")
            process, thread = self._owner(thread_id)
            reader = self._reader(process)
            found = stands_for(name, steps=len(reader.record.steps))
            if found:
                at = start - self._origins.setdefault(process, start)
                lasts = {"ts": at * (ns / us), "dur": (end - start) * (ns / us)}
                reader.take({"ph": "X", "cat": found[0], "name": found[1], "tid": thread, **lasts})

    def _finished(self) -> list[RankRecord]:
        """The records of processes that computed."""
        if not self._devices:
            why = "holds no kernel with a time" if self._untimed else "holds no kernel: its tables of them are empty"
            raise ValueError(f"{self._file.name} {why}; {RECORDS}")
        order = sorted(self._devices, key=lambda process: (min(self._devices[process]), process))
        hardware, found = self._hardware(), [self._readers[process].record for process in order]
        for place, (process, record) in enumerate(zip(order, found, strict=True)):
            record.rank = place if len(order) > 1 else rank_in(self._file.name)
            record.remarks = self._remarks(record)
            record.hardware = hardware.get(min(self._devices[process]), "")
        return found

    def _remarks(self, record: RankRecord) -> tuple[str, ...]:
        said = []
        if not record.steps:
            said.append("no range of NVTX is named step or iteration: what follows is of the whole, its start included")
        if not (record.num_launches or record.calls or len(record.waits)):
            said.append("no call of the driver was recorded, so that what the host did is not known")
        if any(name.startswith(GRAPH) for name in record.names):
            said.append("CUDA graphs were recorded as wholes: `nsys profile --cuda-graph-trace=node` records kernels")
        if self._untimed:
            said.append(f"{counted(self._untimed, 'row')} of kernels and copies without a time left out")
        if self._one_process and len({row[0] for row in self._processes()}) > 1:
            said.append("kernels do not name their process: all processes of the report are taken for one")
        return tuple(said)

    def _processes(self) -> Iterator[tuple[int]]:
        if "globalTid" in self._columns.get(CALLS, ()):
            yield from self._database.execute(f"SELECT DISTINCT globalTid >> {PID_BITS} FROM {CALLS}")

    def _hardware(self) -> dict[int, str]:
        """Device -> its name; one name of all is that of each."""
        if not {"id", "name"} <= self._columns.get("TARGET_INFO_GPU", set()):
            return {}
        names = dict(self._database.execute("SELECT id, name FROM TARGET_INFO_GPU"))
        devices = {device for some in self._devices.values() for device in some}
        return names if len(set(names.values())) > 1 else dict.fromkeys(devices, *names.values()) if names else {}
