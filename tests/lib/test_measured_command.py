"""`threeloops measured`: a reader's own recording stands beside others' kernels, and a broken one is named."""

import datetime
from pathlib import Path

import pytest

from threeloops.cli import main
from threeloops.commands.measured import kernels
from threeloops.facts import recorded
from threeloops.facts.recorded import Measured, Recording, Stamp
from threeloops.facts.recorded_cases import Case
from threeloops.operations.expected_times import expected_product

SIZES = ((256, 4096, 4096), (1024, 4096, 4096), (64, 4096, 4096))


def took(m: int, n: int, k: int, *, times: float) -> Measured:
    """A matmul that takes so many times what it is expected to."""
    seconds = times * expected_product("l40s", m=m, n=n, k=k, format="bf16").seconds
    case = Case(kind="gemm", dtype="bf16", sizes={"m": m, "n": n, "k": k})
    return Measured(
        case=case, n=20, median=seconds, lower_quartile=seconds, upper_quartile=seconds, fastest=seconds / 2
    )


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A reader's folder with a recording: matmuls of many rows took twice, and four times, what is expected."""
    made = [took(*sizes, times=times) for sizes, times in zip(SIZES, (2, 4, 1), strict=True)]
    stamp = Stamp(
        hardware="NVIDIA L40S",
        device="cuda",
        part="l40s",
        clocks="not locked",
        driver="580",
        software="torch 2.9",
        threads=8,
        measured=datetime.date(2026, 1, 2),
    )
    measured = {one.case.name: one for one in made}
    recording = Recording(stamp=stamp, cases=tuple(one.case for one in made), measured=measured, skipped={})
    folder = tmp_path / "recorded"
    folder.mkdir()
    (folder / "mine.json").write_text(recorded.as_text(recording), encoding="utf-8")
    monkeypatch.setattr(kernels, "reader_folder", lambda: tmp_path)
    return folder


def test_a_readers_recording_stands_beside_the_tables(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measured", "l40s"]) == 0
    many, few = (line.split() for line in capsys.readouterr().out.splitlines() if "recorded 2026-01-02" in line)
    assert many[-6:] == ["62.5", "%", "72.5", "%", "-62.5", "%"]  # half of the time, and a quarter
    assert many[many.index("2026-01-02") + 1] == "2"
    assert few[-6:-2] == ["0.0", "%", "0.0", "%"]


def test_a_recording_of_another_card_is_not_among_them(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measured", "b200"]) == 0
    assert "2026-01-02" not in capsys.readouterr().out


def test_a_broken_recording_is_named(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (mine / "half.json").write_text('{"stamp": ', encoding="utf-8")
    assert main(["measured", "l40s"]) == 2
    assert "half.json" in capsys.readouterr().err


def test_a_library_s_own_rates_stand_beside_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measured", "h100-sxm"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "printed, deepgemm on h800-sxm" in line]
    assert [line.split("fp8-block")[0].split(None, 1)[1].strip() for line in lines] == [
        "matmul, 128 rows and more",
        "matmul, below 128 rows",
    ]
