"""A run as Nsight Systems exports it: tables and columns by its schema's reference, rows from a run in torch's form."""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from tests.inner_loop.kineto_form import Run

COPIED = "start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL,"
COPIED += " correlationId INT, globalPid INT"
SCHEMA = f"""
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (vmId INT NOT NULL, id INT NOT NULL, name TEXT, busLocation TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT NULL, eventClass INT NOT NULL, globalTid INT,
    correlationId INT, nameId INT NOT NULL, returnValue INT NOT NULL, callchainId INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({COPIED}, demangledName INT NOT NULL, shortName INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY ({COPIED}, bytes INT NOT NULL, copyKind INT NOT NULL);
CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT NOT NULL, rangeId INT, text TEXT, globalTid INT,
    textId INT);
"""
KINDS = {"HtoD": 1, "DtoH": 2, "DtoD": 8}
PUSH_POP, MARK = 59, 34


def export(path: Path, runs: Sequence[Run], *, hardware: Sequence[str] = ("NVIDIA H100 80GB HBM3",)) -> Path:
    """One report of one process for each run; rank n computes on device n."""
    ids: dict[str, int] = {}

    def named(name: str) -> int:
        return ids.setdefault(name, len(ids) + 1)

    with closing(sqlite3.connect(path)) as made:
        made.executescript(SCHEMA)
        for place, run in enumerate(runs):
            _rows(made, run, place, named)
        made.executemany("INSERT INTO StringIds VALUES (?, ?)", ((number, name) for name, number in ids.items()))
        gpus = ((0, number, name, "") for number, name in enumerate(hardware))
        made.executemany("INSERT INTO TARGET_INFO_GPU VALUES (?, ?, ?, ?)", gpus)
        made.commit()
    return path


def _rows(made: sqlite3.Connection, run: Run, place: int, named) -> None:
    process = 4000 + place
    thread = (process << 24) + process
    for event in run.events:
        start, end = (round(1000 * (event["ts"] + more)) for more in (0, event["dur"]))
        args, name = event["args"], event["name"]
        correlation = args.get("correlation", 0)
        on = (start, end, place, 1, event["tid"], correlation, process << 24)
        if event["cat"] == "kernel":
            short = name.split("<")[0].rsplit("::")[-1]
            insert(made, "CUPTI_ACTIVITY_KIND_KERNEL", (*on, named(name), named(short)))
        elif event["cat"] == "gpu_memcpy":
            insert(made, "CUPTI_ACTIVITY_KIND_MEMCPY", (*on, 4096, KINDS[name.split()[1]]))
        elif event["cat"] == "cuda_runtime":
            row = (start, end, 0, thread, correlation, named(f"{name}_v3020"), 0, None)
            insert(made, "CUPTI_ACTIVITY_KIND_RUNTIME", row)
        elif event["cat"] == "user_annotation":  # by turns, as a text and as a text that was registered
            text, registered = (None, named(name)) if "Step" in name else (name, None)
            insert(made, "NVTX_EVENTS", (start, end, PUSH_POP, None, text, thread, registered))
    insert(made, "NVTX_EVENTS", (5, None, MARK, None, "step 99", thread, None))


def insert(made: sqlite3.Connection, table: str, row: Iterable[object]) -> None:
    """One row."""
    row = tuple(row)
    made.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
