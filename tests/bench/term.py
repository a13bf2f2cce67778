"""What a term's commands take, from the platform's zip to marks and pages to upload: a class of 300 on Canvas, one set,
every command in a process of its own, as a teaching assistant types it.

Run it as a script; `--smoke` is the smallest run, `--record` keeps the figures in term_recorded.json, which TEACHING.md
quotes. The class: two thirds have everything right, a third one number wrong, one in ten is late.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.grading import WRONG
from tests.classroom.submissions import canvas_zip, filled
from threeloops import wall_clock
from threeloops.units import fmt_seconds

SET, COURSE, STUDENTS, SMOKE = "kv_cache", "spring-27", 300, 3
RECORDED = Path(__file__).with_name("term_recorded.json")
BEGIN = ("new", "roster", "release")  # once a term, or once a set, before anybody hands in


def hand_ins(number: int) -> dict[str, str]:
    """Files of a class, as Canvas names them."""
    return {
        f"name{one:04d}_{'LATE_' * (one % 10 == 9)}{1000 + one}_{5000 + one}_{SET}.ipynb": json.dumps(
            filled(SET, student=f"s{one:04d}", course=COURSE, wrong=WRONG if one % 3 == 0 else {})
        )
        for one in range(number)
    }


def walk(folder: Path, number: int) -> dict[str, float]:
    """Seconds of every command."""
    heads = "Student,ID,SIS User ID,SIS Login ID,Section\n"
    people = "".join(f'"Name, {one:04d}",{1000 + one},,s{one:04d},A\n' for one in range(number))
    (folder / "class.csv").write_text(heads + people)
    canvas_zip(folder / "submissions.zip", hand_ins(number))
    term = ("--term", str(folder / COURSE))
    commands = {
        "new": [str(folder / COURSE), "--timezone", "UTC", "--late", "zero"],
        "roster": [str(folder / "class.csv"), *term],
        "release": [SET, "--due", "2027-04-12", *term],
        "collect": [SET, str(folder / "submissions.zip"), *term],
        "grade": [SET, *term],
        "class": [SET, *term],
        "similar": [SET, *term],
        "return": [SET, *term],
        "export": [SET, "--format", "canvas", *term],
    }
    took = {}
    for name, words in commands.items():
        began = time.perf_counter()
        command = [sys.executable, "-m", "threeloops", "classroom", name, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        took[name] = time.perf_counter() - began
        assert done.returncode == 0, f"{name}: {done.stderr}"
    return took


def main() -> None:
    number = SMOKE if "--smoke" in sys.argv else STUDENTS
    with tempfile.TemporaryDirectory() as folder:
        took = walk(Path(folder), number)
    for name, seconds in took.items():
        print(f"classroom {name}: {fmt_seconds(seconds)}")
    after = {name: seconds for name, seconds in took.items() if name not in BEGIN}
    if "--record" in sys.argv:
        kept = {
            "hand_ins": number,
            "cores": len(os.sched_getaffinity(0)),
            "load": round(os.getloadavg()[0], 1),  # more than the cores: other work ran beside it, and it took longer
            "measured": wall_clock.today().isoformat(),
            "seconds": {name: round(seconds, 1) for name, seconds in took.items()},
        }
        RECORDED.write_text(json.dumps(kept, indent=1) + "\n")
    print(
        f"{number} hand-ins, {len(after)} commands from the zip to marks and pages: {fmt_seconds(sum(after.values()))}"
    )


if __name__ == "__main__":
    main()
