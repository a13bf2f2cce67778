"""`threeloops record`: measure this machine into one small file, and hold what is recorded against what is
predicted.
"""

import argparse
import importlib.util
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from threeloops.contents import reader_folder
from threeloops.facts import recorded
from threeloops.facts.kernel_counts import counts_as_text
from threeloops.facts.recorded import Recording, Stamp
from threeloops.facts.recorded_cases import DEVICES, Case
from threeloops.facts.recorded_suite import suite
from threeloops.facts.traced_steps import traces_as_text
from threeloops.inner_loop import prediction_error
from threeloops.inner_loop.prediction_error import Row
from threeloops.units import fmt_seconds

REPEATS = {False: 20, True: 5}  # by whether the recording is a quick one
SLOW_TO_BEGIN = (
    "decode_compiled",
    "layernorm_compiled",
    "train_compiled",
)  # a compiler has to start: not in a quick recording


def run(given: argparse.Namespace) -> None:
    """What the flags ask for."""
    if given.list:
        print(
            "\n".join(
                dict.fromkeys(
                    case.name
                    for device in DEVICES
                    for quick in (False, True)
                    for case in suite(device=device, quick=quick)
                )
            )
        )
        return
    folder = Path(given.into) if given.into else reader_folder() / "recorded"
    if given.table:
        print(tables([*recorded.shipped(), *recorded.in_folder(folder)], origin=given.ceilings))
        return
    if given.counters:
        print(_counted(Path(given.into) if given.into else reader_folder() / "counted"))
        return
    if given.traces:
        print(_traced(Path(given.into) if given.into else reader_folder() / "traced"))
        return
    folder.mkdir(parents=True, exist_ok=True)
    made = _recorded(given, folder)
    path = folder / file_name(made, quick=given.quick)
    print(f"{len(made.measured)} cases measured, {len(made.skipped)} skipped: {path}")


def _needs_torch() -> None:
    if importlib.util.find_spec("torch") is None:
        raise ValueError(
            "torch is not installed here, and nothing can be measured without it; `threeloops record --table` shows"
            " what others recorded"
        )


def _counted(folder: Path) -> str:
    _needs_torch()
    from threeloops.measure import counted_kernels

    stamp, kernels = counted_kernels.counted()
    return f"{len(kernels)} kernels counted: {_kept(stamp, counts_as_text(stamp, kernels), folder)}"


def _traced(folder: Path) -> str:
    _needs_torch()
    from threeloops.measure import traced_kernels

    stamp, steps = traced_kernels.traced()
    return f"{len(steps)} steps traced: {_kept(stamp, traces_as_text(stamp, steps), folder)}"


def _kept(stamp: Stamp, text: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{file_stem(stamp)}.json"
    path.write_text(text, encoding="utf-8")
    return path


def _recorded(given: argparse.Namespace, folder: Path) -> Recording:
    _needs_torch()
    from threeloops.measure import recording

    device = given.device or recording.default_device()
    cases = suite(device=device, quick=given.quick)
    known: list[Recording] = []
    if given.missing:
        hardware = recording.stamp_of(device=device, part=given.part).hardware
        found = [*recorded.shipped(), *recorded.in_folder(folder)]
        known = [one for one in found if one.stamp.hardware == hardware]
    return recording.recorded(
        missing(cases, known),
        device=device,
        repeats=REPEATS[given.quick],
        part=given.part,
        note=given.note,
        leave_out=SLOW_TO_BEGIN if given.quick else (),
        say=print,
        keep=lambda made: _write(made, folder / file_name(made, quick=given.quick), add=given.missing),
    )


def missing(cases: Sequence[Case], known: Iterable[Recording]) -> list[Case]:
    """The cases that none of these recordings has measured, and `launch`, which sets a ceiling of every recording."""
    names = {name for recording in known for name in recording.measured}
    return [case for case in cases if case.name not in names or case.kind == "launch"]


def _write(made: Recording, path: Path, *, add: bool) -> None:
    """In one movement, so that a run that is stopped leaves the cases that it had, and no half of a file. What an
    earlier run of the same day measured stays, where only what is missing is added.
    """
    if add and path.exists():
        made = recorded.joined(recorded.read(path), made)
    beside = path.with_suffix(".part")
    beside.write_text(recorded.as_text(made), encoding="utf-8")
    beside.replace(path)


def file_name(made: Recording, *, quick: bool) -> str:
    """Hardware and day, in letters that every file system takes."""
    return file_stem(made.stamp) + ("-quick" if quick else "") + ".json"


def file_stem(stamp: Stamp) -> str:
    """The same without an ending."""
    words = re.findall(r"[a-z0-9]+", stamp.hardware.lower().replace("(r)", "").replace("(tm)", ""))
    return "-".join([*words, stamp.measured.isoformat()])


def tables(recordings: Sequence[Recording], *, origin: str | None) -> str:
    """One table per recording, and the count over all of them.

    Raises:   ValueError where nothing was recorded at all
    """
    if not recordings:
        raise ValueError("nothing is recorded yet; `threeloops record` measures this machine")
    found = [
        prediction_error.rows(recording, origin=origin or prediction_error.origin_for(recording))
        for recording in recordings
    ]
    blocks = [
        table(recording, rows, origin=origin or prediction_error.origin_for(recording))
        for recording, rows in zip(recordings, found, strict=True)
    ]
    return "\n\n".join([*blocks, summary([row for rows in found for row in rows])])


def table(recording: Recording, rows: Sequence[Row], *, origin: str) -> str:
    """Predicted, recorded and their ratio, case by case; what was not measured stands below with its reason."""
    stamp = recording.stamp
    width = max((len(row.case.label) for row in rows), default=0)
    lines = [
        f"{stamp.hardware}, {stamp.clocks}, driver {stamp.driver}; {stamp.software}; {stamp.measured}"
        + (f"; {stamp.note}" if stamp.note else "")
    ]
    lines += [f"  predicted from {origin} ceilings"]
    lines += [
        f"  {row.case.label:<{width}}  predicted {fmt_seconds(row.predicted_s):>8}  recorded"
        f" {fmt_seconds(row.measured.median):>8}  ratio {row.ratio:.2f}"
        for row in rows
    ]
    reasons = dict.fromkeys(recording.skipped.values())
    lines += [
        f"  skipped, {reason}:"
        f" {', '.join(case.label for case in recording.cases if recording.skipped.get(case.name) == reason)}"
        for reason in reasons
    ]
    return "\n".join(lines)


def summary(rows: Iterable[Row]) -> str:
    """How many predictions were close."""
    rows = list(rows)
    close, near = (prediction_error.within(rows, share) for share in (0.2, 0.5))
    return f"{len(rows)} cases with a prediction: {close} recorded within 20 % of it, {near} within 50 %."
