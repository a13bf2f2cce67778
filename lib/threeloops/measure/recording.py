"""Recording: every case of the suite on this machine, with a stamp that says which machine that is.

>>> made = recorded([Case(kind="launch", dtype="fp32", sizes={"operations": 10})], device="cpu", repeats=2)
>>> list(made.measured), made.stamp.device
(['launch-fp32-operations10'], 'cpu')
"""

import gc
import importlib.metadata
import os
import platform
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import torch

from threeloops import checks
from threeloops.facts.driver_names import DRIVER_NAMES
from threeloops.facts.recorded import Measured, Recording, Stamp
from threeloops.facts.recorded_cases import BYTES, SAMPLED, Case
from threeloops.measure import timing
from threeloops.measure.recorded_kernels import call
from threeloops.measure.recorded_needs import Skipped

SEED = 0
NOT_REPORTED = "not reported"
BUSY_CALLS = 600

WITH_MODELS = ("train_", "decode_", "prefill_", "loop_")  # how their kinds begin


def recorded(
    cases: Iterable[Case],
    *,
    device: str,
    repeats: int,
    part: str | None = None,
    note: str = "",
    leave_out: tuple[str, ...] = (),
    say: Callable[[str], None] = lambda _: None,
    keep: Callable[[Recording], None] = lambda _: None,
) -> Recording:
    """Time every case, or write down why this machine does not run it.

    Assumes:  nothing else competes for the machine; `leave_out` are kinds that were not asked for; `keep` is called
              after every case with what there is by then, so that a run that is stopped has lost nothing
    Raises:   ValueError for a device that is not there
    """
    checks.count(at_least=2, repeats=repeats)
    stamp = stamp_of(device=device, part=part, note=note)
    done: list[Case] = []
    measured: dict[str, Measured] = {}
    skipped: dict[str, str] = {}
    for case in cases:
        try:
            if case.kind in leave_out:
                raise Skipped("left out of a quick recording")
            measured[case.name] = _measured(case, device=device, repeats=repeats)
            say(f"{case.name}: {measured[case.name].words}")
        except Skipped as reason:
            skipped[case.name] = str(reason)
            say(f"{case.name}: skipped: {reason}")
        _forget(case, device)
        done.append(case)
        if case.kind == "gemm_long" and device == "cuda" and "after" not in stamp.clocks:
            stamp = replace(stamp, clocks=f"{stamp.clocks}; {_busy_clocks(case)}")
        keep(Recording(stamp=stamp, cases=tuple(done), measured=dict(measured), skipped=dict(skipped)))
    return Recording(stamp=stamp, cases=tuple(done), measured=measured, skipped=skipped)


def _measured(case: Case, *, device: str, repeats: int) -> Measured:
    torch.manual_seed(SEED)
    try:
        work = call(case, device=device)
        if case.kind in SAMPLED:
            return _spread(case, work())  # type: ignore[arg-type]
        if case.kind in BYTES:
            return _spread(case, [float(work()) for _ in range(repeats)])  # type: ignore[arg-type]
        result = timing.timed(work, repeats=repeats, device=device)
    except Skipped:
        raise
    # a compiler that is missing, memory that is too small: the suite goes on, and says which
    except Exception as error:
        raise Skipped(f"it ended in {type(error).__name__}") from error
    return Measured(
        case=case,
        n=result.num_samples,
        median=result.median_s,
        lower_quartile=result.lower_quartile_s,
        upper_quartile=result.upper_quartile_s,
        fastest=result.fastest_s,
    )


def _spread(case: Case, samples: list[float]) -> Measured:
    lower, median, upper = statistics.quantiles(samples, n=4, method="inclusive")
    return Measured(
        case=case,
        n=len(samples),
        median=median,
        lower_quartile=lower,
        upper_quartile=upper,
        fastest=min(samples),
        unit=case.unit,
    )


def _forget(case: Case, device: str) -> None:
    """Give back what a case held before the next one begins."""
    if case.kind.startswith(WITH_MODELS):
        gc.collect()  # models hold themselves in circles; in a large process to look for them takes a second
    if case.kind.endswith("_compiled"):
        torch.compiler.reset()
    if device == "cuda":
        torch.cuda.empty_cache()


def stamp_of(*, device: str, part: str | None = None, note: str = "") -> Stamp:
    """This machine as its driver or operating system names it; nothing that names its owner."""
    machine = timing.this_machine(device=device)
    name = machine.hardware if device == "cuda" else f"{machine.hardware}, {os.cpu_count()} cores"
    return Stamp(
        hardware=name,
        device=device,
        part=part if part is not None else DRIVER_NAMES.get(name, ""),
        clocks=_gpu_clocks() if device == "cuda" else _cpu_clock(),
        driver=_asked("driver_version") or NOT_REPORTED if device == "cuda" else "none",
        software=_software(),
        threads=machine.num_threads,
        measured=machine.measured,
        note=note,
    )


def _software() -> str:
    packages = [f"torch {torch.__version__}", *([f"CUDA {torch.version.cuda}"] if torch.version.cuda else [])]
    try:
        packages.append(f"triton {importlib.metadata.version('triton')}")
    except importlib.metadata.PackageNotFoundError:
        packages.append("no triton")
    return ", ".join([*packages, f"Python {platform.python_version()}", platform.system()])


def _asked(what: str) -> str:
    """What nvidia-smi says about the first GPU; empty where it says nothing."""
    if not shutil.which("nvidia-smi"):
        return ""
    query = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader", "--id=0"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _gpu_clocks() -> str:
    """The highest clocks that the driver allows, and the power limit, which decides how long they are kept."""
    answers = [answer.strip() for answer in _asked("clocks.max.sm,clocks.max.memory,power.limit").split(",")]
    if len(answers) != 3:
        return NOT_REPORTED
    return f"SM at most {answers[0]}, memory at most {answers[1]}, power limit {answers[2]}"


def _busy_clocks(case: Case) -> str:
    """What the driver reports while the card multiplies: asked beside a second of products, which only wait in the
    card's queue.
    """
    try:
        once = call(case, device="cuda")
    except Skipped:
        return NOT_REPORTED
    for _ in range(BUSY_CALLS):
        once()
    answers = [answer.strip() for answer in _asked("clocks.sm,power.draw,temperature.gpu").split(",")]
    torch.cuda.synchronize()
    if len(answers) != 3:
        return NOT_REPORTED
    return f"after {case.sizes['seconds']} s of matmuls SM {answers[0]}, {answers[1]}, {answers[2]} °C"


def _cpu_clock() -> str:
    """The clock that Linux reports at this moment."""
    source = Path("/proc/cpuinfo")
    lines = source.read_text().splitlines() if source.exists() else []
    clocks = [line.split(":", 1)[1].strip() for line in lines if line.startswith("cpu MHz")]
    return f"{float(clocks[0]):.0f} MHz now" if clocks else NOT_REPORTED


def default_device() -> str:
    """The GPU where torch sees one, else the CPU."""
    return "cuda" if torch.cuda.is_available() else "cpu"
