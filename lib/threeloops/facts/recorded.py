"""Recorded: measurements that somebody made on a real machine, kept in small stamped files and replayed where no such
machine is at hand.

A recording is one JSON file: a stamp that says what was measured on, with which software and when, and a list of
cases, each measured or skipped with a reason. Nothing else may stand in it, and nothing is filled in: what nobody
measured is "not yet recorded".

>>> find("gemm-bf16-m8192-n8192-k8192", "h100-sxm5", recordings=()).words
'not yet recorded'
"""

import datetime
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from threeloops import checks
from threeloops.facts import hardware
from threeloops.facts.recorded_cases import DEVICES, Case
from threeloops.facts.recorded_suite import suite
from threeloops.units import fmt_bytes, fmt_percent, fmt_seconds

FORMAT = 1
NOT_YET = "not yet recorded"
MEASURED_FIELDS = ("unit", "n", "median", "lower_quartile", "upper_quartile", "fastest")
STAMP_FIELDS = ("hardware", "device", "part", "clocks", "driver", "software", "threads", "measured", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """On what, with what and when."""

    hardware: str  # as the driver or the operating system names it
    device: str  # cpu or cuda
    part: str  # key of the same part in the catalogue; empty where it is not known to be there
    clocks: str  # in words, as the system reports them
    driver: str
    software: str
    threads: int  # of torch on the host
    measured: datetime.date
    note: str = ""  # what else bears on the figures: "a laptop on battery"

    def __post_init__(self) -> None:
        words = {"hardware": self.hardware, "clocks": self.clocks, "driver": self.driver, "software": self.software}
        for name, value in words.items():
            if not isinstance(value, str) or not value.strip():
                raise ValueError(f"{name}={value!r} must be words, as the system reports them")
        if not isinstance(self.note, str):
            raise ValueError(f"note={self.note!r} must be words, or empty")
        checks.one_of(DEVICES, device=self.device)
        checks.count(threads=self.threads)
        if self.part:
            checks.one_of(hardware.part_keys(), see="`threeloops sources --keys` lists all.", part=self.part)

    @property
    def fields(self) -> dict[str, Any]:
        """As they stand in a file."""
        return {name: getattr(self, name) for name in STAMP_FIELDS} | {"measured": self.measured.isoformat()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Seconds per call of one case, or the bytes that a call allocates."""

    case: Case
    n: int  # samples
    median: float
    lower_quartile: float
    upper_quartile: float
    fastest: float  # the least
    unit: str = "s"

    def __post_init__(self) -> None:
        checks.one_of((self.case.unit,), unit=self.unit)
        checks.count(at_least=2, n=self.n)
        checks.positive(
            fastest=self.fastest,
            lower_quartile=self.lower_quartile,
            median=self.median,
            upper_quartile=self.upper_quartile,
        )
        if not self.fastest <= self.lower_quartile <= self.median <= self.upper_quartile:
            raise ValueError(
                f"median={self.median!r} must lie between the quartiles, and the fastest sample below both"
            )

    @property
    def spread(self) -> float:
        """The distance between the quartiles over the median."""
        return (self.upper_quartile - self.lower_quartile) / self.median

    @property
    def words(self) -> str:
        median = fmt_seconds(self.median) if self.unit == "s" else fmt_bytes(self.median, base=10)
        return f"{median}, spread {fmt_percent(self.spread)} of {self.n} samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """A case without a measurement, and why; counts as false."""

    name: str
    words: str  # "not yet recorded", or "skipped: …"

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One file."""

    stamp: Stamp
    cases: tuple[Case, ...]  # in the order of the file
    measured: Mapping[str, Measured]  # by name of the case
    skipped: Mapping[str, str]  # name of the case -> reason

    def find(self, case: str) -> Measured | Absent:
        """One case of this recording."""
        if case in self.measured:
            return self.measured[case]
        return Absent(name=case, words=f"skipped: {self.skipped[case]}" if case in self.skipped else NOT_YET)


def find(case: str, on: str, *, recordings: Sequence[Recording] | None = None) -> Measured | Absent:
    """The latest measurement of a case on a piece of hardware, by catalogue key or by the name that it reports; else
    why there is none.

    Assumes:  recordings: those that come with the library, where none are given
    Raises:   ValueError for a case that is in no suite and no recording, and for hardware that neither the catalogue
              nor a recording names
    """
    known = shipped() if recordings is None else recordings
    names = {one.name for device in DEVICES for quick in (False, True) for one in suite(device=device, quick=quick)}
    checks.one_of(
        names | {one.name for recording in known for one in recording.cases},
        see="`threeloops record --list` lists all.",
        case=case,
    )
    reported = {recording.stamp.hardware for recording in known}
    checks.one_of(
        [*hardware.part_keys(), *reported], see="`threeloops sources --keys` lists the catalogue.", hardware=on
    )
    found: Measured | Absent = Absent(name=case, words=NOT_YET)
    for recording in sorted(known, key=lambda recording: recording.stamp.measured):
        if on in (recording.stamp.part, recording.stamp.hardware) and (
            case in recording.measured or (not found and case in recording.skipped)
        ):
            found = recording.find(case)
    return found


def joined(earlier: Recording, later: Recording) -> Recording:
    """Two recordings of one machine as one, with the later one's stamp; what both measured, from the later one.

    Raises:   ValueError for recordings of different hardware
    """
    if earlier.stamp.hardware != later.stamp.hardware:
        raise ValueError(f"{earlier.stamp.hardware} and {later.stamp.hardware} are not one machine; keep two files")
    measured = {**earlier.measured, **later.measured}
    cases = {case.name: case for case in (*earlier.cases, *later.cases)}
    skipped = {name: why for name, why in {**earlier.skipped, **later.skipped}.items() if name not in measured}
    return Recording(stamp=later.stamp, cases=tuple(cases.values()), measured=measured, skipped=skipped)


@functools.cache
def shipped() -> tuple[Recording, ...]:
    """The recordings that come with the library, in name order."""
    folder = resources.files("threeloops.facts") / "recordings"
    files = (
        sorted((entry for entry in folder.iterdir() if entry.name.endswith(".json")), key=lambda entry: entry.name)
        if folder.is_dir()
        else []
    )
    return tuple(parsed(entry.read_text(encoding="utf-8"), where=entry.name) for entry in files)


def in_folder(folder: str | Path) -> tuple[Recording, ...]:
    """The recordings of a folder, in name order; none where there is no such folder."""
    return tuple(read(path) for path in sorted(Path(folder).glob("*.json")))


def read(path: str | Path) -> Recording:
    """One recording.

    Raises:   ValueError, in one sentence that names the file and the place, for a file that is missing, is not JSON
              or is not a recording
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"recording {Path(path).name!r} cannot be read ({getattr(error, 'strerror', None) or 'it is not text'})"
        ) from error
    return parsed(text, where=Path(path).name)


def parsed(text: str, *, where: str) -> Recording:
    """A recording from its text; `where` is its name in a refusal."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"recording {where!r} is not JSON: {error}") from error
    try:
        _fields(content, ("format", "stamp", "cases"), "a recording")
        if content["format"] != FORMAT:
            raise ValueError(f"format={content['format']!r} must be {FORMAT}; record again with this edition")
        stamp = parsed_stamp(content["stamp"])
        if not isinstance(content["cases"], list):
            raise ValueError(f"cases={content['cases']!r} must be a list")
        rows = [_row(row) for row in content["cases"]]
        names = [case.name for case, _ in rows]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ValueError(f"{twice} stands there twice")
    except ValueError as error:
        raise ValueError(f"recording {where!r}: {error}") from error
    return Recording(
        stamp=stamp,
        cases=tuple(case for case, _ in rows),
        measured={case.name: result for case, result in rows if isinstance(result, Measured)},
        skipped={case.name: result for case, result in rows if isinstance(result, str)},
    )


def as_text(recording: Recording) -> str:
    """The file of a recording; six figures of every second are kept."""
    rows = []
    for case in recording.cases:
        row: dict[str, Any] = {"case": case.name, "kind": case.kind, "dtype": case.dtype, "sizes": dict(case.sizes)}
        if case.name in recording.measured:
            result = recording.measured[case.name]
            seconds = {name: float(f"{getattr(result, name):.6g}") for name in MEASURED_FIELDS[2:]}
            rows.append(row | {"unit": result.unit, "n": result.n} | seconds)
        else:
            rows.append(row | {"skipped": recording.skipped[case.name]})
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
    fields = json.dumps(recording.stamp.fields, ensure_ascii=False)
    return f'{{\n "format": {FORMAT},\n "stamp": {fields},\n "cases": [\n{lines}\n ]\n}}\n'


def _fields(row: Any, needed: Sequence[str], what: str) -> None:
    """Refuse a table that lacks a field or has another one."""
    if not isinstance(row, Mapping):
        raise ValueError(f"{what} must be a table of names and values, not {row!r}")
    for name in needed:
        if name not in row:
            raise ValueError(f"{name!r} is missing; {what} needs {', '.join(needed)}")
    for name in row:
        checks.one_of(needed, field=name)


def parsed_stamp(row: Any) -> Stamp:
    """A stamp from its table in a file.

    Raises:   ValueError for a field too many or too few, or a value that cannot be one
    """
    _fields(row, STAMP_FIELDS, "a stamp")
    try:
        day = datetime.date.fromisoformat(row["measured"])
    except (TypeError, ValueError):
        raise ValueError(f"measured={row['measured']!r} must be a day, like '2026-11-22'") from None
    return Stamp(**{**row, "measured": day})


def _row(row: Any) -> tuple[Case, Measured | str]:
    """One line of the file: the case, and its measurement or the reason why there is none."""
    skipped = isinstance(row, Mapping) and "skipped" in row
    _fields(row, ("case", "kind", "dtype", "sizes", *(("skipped",) if skipped else MEASURED_FIELDS)), "a case")
    try:
        case = Case(kind=row["kind"], dtype=row["dtype"], sizes=row["sizes"])
        if case.name != row["case"]:
            raise ValueError(f"its sizes belong to {case.name}")
        if skipped:
            if not isinstance(row["skipped"], str) or not row["skipped"].strip():
                raise ValueError("skipped must give the reason in words")
            return case, row["skipped"]
        return case, Measured(case=case, **{name: row[name] for name in MEASURED_FIELDS})
    except ValueError as error:
        raise ValueError(f"case {row['case']!r}: {error}") from error
