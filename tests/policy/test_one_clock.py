"""Date, time of day and waiting come from one module, which a test can set: nowhere else are they asked for."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLOCK = ROOT / "lib" / "threeloops" / "wall_clock.py"
SOURCES = [path for folder in ("lib", "tests") for path in sorted((ROOT / folder).rglob("*.py")) if path != CLOCK]
# module or class -> what is asked of wall_clock instead
ELSEWHERE = {
    "time": {"time", "time_ns", "sleep", "localtime", "gmtime", "ctime", "strftime"},
    "date": {"today"},
    "datetime": {"today", "now", "utcnow"},
}
# One of these stands in every source that asks; most hold none, and need not be taken apart.
OWNER, ASKED = "|".join(ELSEWHERE), "|".join(set().union(*ELSEWHERE.values()))
NAMED = re.compile(rf"\b(?:{OWNER})[\s)\\]*\.[\s\\]*(?:{ASKED})\b|\bfrom\s+(?:{OWNER})\s+import\b")


def asked(source: str) -> list[str]:
    """Where a source reads the date or the time of day, or sleeps, in the order of its lines."""
    found: dict[int, str] = {}
    if not NAMED.search(source):
        return []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
            if node.attr in ELSEWHERE.get(owner, ()):
                found[node.lineno] = f"line {node.lineno}: {owner}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module in ELSEWHERE:
            for name in {alias.name for alias in node.names} & ELSEWHERE[node.module]:
                found[node.lineno] = f"line {node.lineno}: {name}, from {node.module}"
    return [found[line] for line in sorted(found)]


@pytest.mark.parametrize("folder", ["lib", "tests"])
def test_nothing_but_wall_clock_reads_the_calendar_or_sleeps(folder: str) -> None:
    sources = [path for path in SOURCES if path.relative_to(ROOT).parts[0] == folder]
    found = {str(path.relative_to(ROOT)): lines for path in sources if (lines := asked(path.read_text("utf-8")))}
    assert not found, f"threeloops.wall_clock is the one clock, and it can be set: {found}"


def test_every_way_to_ask_is_seen() -> None:
    source = (
        "import time\nimport datetime as dt\nfrom time import sleep\ntime.sleep(1)\ndt.date.today()\n"
        "dt.datetime.now(dt.UTC)\ntime.monotonic()\nwall_clock.today()\nf(clock=time.time)\n'time.sleep(1)'\n"
    )
    assert [line.partition(":")[0] for line in asked(source)] == ["line 3", "line 4", "line 5", "line 6", "line 9"]
