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

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from threeloops.inner_loop.profiled.rank_record import (
    CALL,
    COPY,
    GRAPH,
    KERNEL,
    LOADERS,
    NOTE,
    OPERATOR,
    SET,
    STEP,
    RankRecord,
    RecordReader,
    rank_in,
)
from threeloops.units import counted, ns, us

MAGIC = b"SQLite format 3\x00"
OWN_FORMATS = (".nsys-rep", ".qdrep", ".qdstrm")  # which only Nsight Systems itself opens
NSIGHT = "NVIDIA, Nsight Systems, SQLite Export Schema Reference (StringIds, CUPTI_ACTIVITY_KIND_*, NVTX_EVENTS)"
RECORDS = "`nsys profile --trace=cuda,nvtx` and `nsys export --type sqlite` make one that is"
KERNELS, GRAPHS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
COPIES, SETS = "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"
CALLS, RANGES = "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"
COPY_KINDS = {1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH",
              10: "PtoP"}  # fmt: skip
VERSION = re.compile(r"(_pt[sd][zs])?_v\d+(_pt[sd][zs])?$")  # of a call: cudaLaunchKernel_v7000
PID_BITS = 24
PAGE_SIZE, NUM_PAGES = slice(16, 18), slice(28, 32)  # of a file of SQLite, in its first 100 bytes
# Ranges of NVTX that are steps, waits for data, and operators as torch's emit_nvtx writes them; others say where in the
# program something was, and not what the host did.
STEPS = re.compile(r"(?:profiler|train(?:ing)?)?[ _]?(?:step|iter(?:ation)?)[ _#:=]*(\d*)$", re.I)
LOADING = re.compile(r"enumerate\(Data|data.?load|load.?(batch|data)|(next|get|fetch).?(batch|data)", re.I)
OPERATORS = re.compile(r"(\w+::\w+|autograd::engine.*?|Optimizer\..*?)(?:, (?:seq|op_id|sizes) = .*)?$")


class _Table(NamedTuple):
    """What is read of a table: columns that it must have, and those that older versions lack."""

    needed: tuple[str, ...]
    others: tuple[str, ...] = ()


LINKS = ("streamId", "correlationId", "globalPid")
TABLES = {
    KERNELS: _Table(("start", "end", "deviceId"), (*LINKS, "demangledName", "shortName")),
    GRAPHS: _Table(("start", "end", "deviceId"), (*LINKS, "graphId")),
    COPIES: _Table(("start", "end", "deviceId", "copyKind"), LINKS),
    SETS: _Table(("start", "end", "deviceId"), LINKS),
    CALLS: _Table(("start", "end", "nameId"), ("globalTid", "correlationId")),
    RANGES: _Table(("start", "end"), ("text", "textId", "globalTid")),
}  # fmt: skip
CATEGORIES = {KERNELS: KERNEL, GRAPHS: KERNEL, COPIES: COPY, SETS: SET}
Event = dict[str, Any]


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


class _Report:
    """One open database."""

    def __init__(self, database: sqlite3.Connection, file: Path, told: Callable[[int], object] | None) -> None:
        self._database, self._file, self._told = database, file, told
        self._columns = {
            name: {row[1] for row in database.execute("SELECT * FROM pragma_table_info(?)", (name,))}
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        self._readers: dict[int, RecordReader] = {}
        self._names: dict[int, str] = {}
        self._calls: dict[int, str] = {}  # of the driver, without their version
        self._devices: dict[int, set[int]] = {}  # that a process computed on
        told_of = [self._columns[table] for table in (KERNELS, GRAPHS) if table in self._columns]
        self._one_process = not all("globalPid" in columns for columns in told_of)
        self._read = self._untimed = 0

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
            take = self._range if table == RANGES else self._call if table == CALLS else self._on_device
            for number, row in enumerate(self._rows(table), start=1):
                try:
                    take(table, row)
                except (KeyError, TypeError, AttributeError) as error:
                    said = f"{name}: row {number:,} of {table} is none that Nsight Systems writes ({error!r})"
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

    def _rows(self, table: str) -> Iterator[Mapping[str, Any]]:
        columns = [one for one in (*TABLES[table].needed, *TABLES[table].others) if one in self._columns[table]]
        where = ' WHERE "end" > start' if table == RANGES else ""  # a mark has no end, or one before its start
        listed = ", ".join(f'"{column}"' for column in columns)
        for row in self._database.execute(f"SELECT {listed} FROM {table}{where}"):
            yield dict(zip(columns, row, strict=True))

    def _reader(self, process: int) -> RecordReader:
        reader = self._readers.get(process)
        if reader is None:
            reader = self._readers[process] = RecordReader(RankRecord(name=self._file.name, source=NSIGHT))
        return reader

    def _event(self, category: str, name: str, row: Mapping[str, Any], thread: int, **args: Any) -> Event:
        start = row["start"]
        return {
            "ph": "X", "cat": category, "name": name, "ts": start * (ns / us), "dur": (row["end"] - start) * (ns / us),
            "tid": thread, "args": args,
        }  # fmt: skip

    def _on_device(self, table: str, row: Mapping[str, Any]) -> None:
        if row["end"] == 0:  # CUPTI writes 0 for a time that it could not take
            self._untimed += 1
            return
        device, correlation = row["deviceId"], row.get("correlationId", -1)
        if not isinstance(device, int):
            raise TypeError(f"its device is {device!r}")
        process = 0 if self._one_process else row["globalPid"] >> PID_BITS
        self._devices.setdefault(process, set()).add(device)
        args = {"device": device, "correlation": correlation, "External id": correlation}
        args["Process Group Name"] = f"stream {row.get('streamId')}"  # no group is told, and each has its stream
        name, stream = self._named(table, row), row.get("streamId", 0)
        event = self._event(CATEGORIES[table], name, row, stream, **args)
        self._reader(process).take(event)

    def _named(self, table: str, row: Mapping[str, Any]) -> str:
        if table == KERNELS:
            number = row.get("demangledName", row.get("shortName"))
            return self._names[number]
        if table == GRAPHS:
            return f"{GRAPH}{row.get('graphId', '')}"
        return "Memset" if table == SETS else f"Memcpy {COPY_KINDS.get(row['copyKind'], row['copyKind'])}"

    def _call(self, _: str, row: Mapping[str, Any]) -> None:
        process, thread = self._owner(row)
        name = self._calls.get(row["nameId"])
        if name is None:
            name = self._calls[row["nameId"]] = VERSION.sub("", self._names[row["nameId"]])
        self._reader(process).take(self._event(CALL, name, row, thread, correlation=row.get("correlationId", -1)))

    def _owner(self, row: Mapping[str, Any]) -> tuple[int, int]:
        """Process and thread; where kernels do not name their process, all is of one."""
        number = row.get("globalTid") or 0
        return (0, number) if self._one_process else (number >> PID_BITS, number & (1 << PID_BITS) - 1)

    def _range(self, _: str, row: Mapping[str, Any]) -> None:
        name = row.get("text") or self._names.get(row.get("textId") or -1, "")
        process, thread = self._owner(row)
        reader = self._reader(process)
        if step := STEPS.match(name):
            number = step[1] or str(len(reader.record.steps) + 1)
            reader.take(self._event(NOTE, STEP + number, row, thread))
        elif LOADING.search(name):
            reader.take(self._event(NOTE, name if name.startswith(LOADERS) else LOADERS[0] + name, row, thread))
        elif operator := OPERATORS.match(name):
            reader.take(self._event(OPERATOR, operator[1], row, thread))

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
