"""How quick the interview room is. Prints medians and 95th percentiles; fails on nothing.

python tests/bench/room.py             the terminal, the engine, the page of progress, and the notebook in a real
                                       browser
python tests/bench/room.py terminal    only that (or engine, progress, notebook)
python tests/bench/room.py --smoke     the smallest run of them all

What is meant to hold: the first question after 0.5 s of the processor's time at most, where the packages are there and
Python has compiled them (not so with PYTHONDONTWRITEBYTECODE); the next question on the screen within 100 ms of the
last answer (95th percentile, both doors), progress over 10,000 attempts in about 300 ms. The minute from a clone to the
first question is mostly the download of packages; what this prints of it is what is left when they are there.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from threeloops import wall_clock
from threeloops.room import progress
from threeloops.room.attempts import Ask, Attempt
from threeloops.room.history import History
from threeloops.room.ideas import IDEAS
from threeloops.room.notebook import interview


@dataclass(frozen=True)
class Size:
    questions: int = 100
    starts: int = 10
    attempts: int = 10_000
    pages: int = 20


BOOK = (str(Path(__file__).parents[2] / "book.py"),)
WHOLE, SMOKE = Size(), Size(questions=3, starts=1, attempts=40, pages=1)


def told(what: str, samples: Sequence[float]) -> None:
    ordered = sorted(samples)
    print(
        f"{what:58} median {statistics.median(ordered) * 1e3:6.0f} ms   p95"
        f" {ordered[int(0.95 * (len(ordered) - 1))] * 1e3:6.0f} ms   of {len(ordered)}",
        flush=True,
    )


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def plan(size: Size) -> list[Ask]:
    """So many questions, every kind among them."""
    rng = random.Random("bench")
    ideas = [rng.choice(list(IDEAS.values())) for _ in range(size.questions)]
    return [
        Ask(idea=idea.key, kind=rng.choice(list(idea.ask)), seed=f"bench-{place}") for place, idea in enumerate(ideas)
    ]


# --- the light door -----------------------------------------------------------------------------


class Terminal:
    """`threeloops drill`, or `book.py drill`, on two pipes."""

    def __init__(self, *words: str, of: Sequence[str] = ("-m", "threeloops")) -> None:
        command = [sys.executable, *of, "drill", *words]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"PYTHONIOENCODING": "utf-8"}
        )

    def until_asked(self) -> str:
        """What is printed until the prompt."""
        assert self.process.stdout is not None
        seen = b""
        while not seen.endswith(b"\n> ") and (more := os.read(self.process.stdout.fileno(), 65536)):
            seen += more
        return seen.decode()

    def processor_s(self) -> float:
        """What the process took of the processor until it ended; nothing is known of it on Windows."""
        if not hasattr(os, "wait4"):
            self.process.wait()
            return float("nan")
        used = os.wait4(self.process.pid, 0)[2]
        self.process.returncode = 0
        return used.ru_utime + used.ru_stime

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()


def starts(folder: Path, size: Size, mode: str) -> None:
    """From the command to the first question, as `book.py drill` begins: on the clock, and on the processor, which
    other work on the machine does not lengthen.
    """
    waited, worked = [], []
    for number in range(size.starts):
        begun = time.perf_counter()
        door = Terminal("--mode", mode, "--history", str(folder / f"{mode}-{number}.sqlite3"), of=BOOK)
        door.until_asked()
        waited.append(time.perf_counter() - begun)
        door.say("quit")
        worked.append(door.processor_s())
    told(f"terminal: `book.py drill --mode {mode}` to its first question", waited)
    told(f"terminal: the processor's time of it, {mode}", worked)


def terminal(folder: Path, size: Size) -> None:
    for mode in ("warm-up", "sprint", "mock"):
        starts(folder, size, mode)
    History(folder / "terminal.sqlite3").begin("sprint", {"extra": 1.0}, plan(size))
    door, samples = Terminal("--continue", "--history", str(folder / "terminal.sqlite3")), []
    door.until_asked()
    for place in range(1, size.questions):
        # whatever the question wants; what it cannot read it asks again at once
        for answer in ("1 GB", "A", "A B", "1", "skip"):
            begun = time.perf_counter()
            door.say(answer)
            if f"\n[{place + 1} of {size.questions}]" in door.until_asked():
                break
        samples.append(time.perf_counter() - begun)
    door.say("quit")
    door.process.wait()
    assert len(History(folder / "terminal.sqlite3").attempts()) == size.questions - 1
    told("terminal: answer to verdict and next question", samples)


# --- the engine, as both doors use it -----------------------------------------------------------


def engine(folder: Path, size: Size) -> None:
    room = interview.room(folder / "engine.sqlite3")
    room.history.begin("sprint", {"extra": 1.0}, plan(size))
    told("notebook: its cell, without the browser", [timed(lambda: interview.room(folder / "engine.sqlite3"))])
    room.act({"do": "continue"})
    judged, following = [], []
    for _ in range(size.questions - 1):
        judged.append(timed(lambda: room.act({"do": "give up"})))
        following.append(timed(lambda: room.act({"do": "next"})))
    told("notebook's kernel: answer to verdict", judged)
    told("notebook's kernel: next to the next question", following)


def page_of_progress(folder: Path, size: Size) -> None:
    rng, history, ideas = random.Random("bench"), History(folder / "progress.sqlite3"), list(IDEAS.values())
    history.add([_attempt(place, rng.choice(ideas), rng) for place in range(size.attempts)])
    told(
        f"progress over {size.attempts:,} attempts: the page",
        [timed(lambda: interview.progress(folder / "progress.sqlite3").html) for _ in range(size.pages)],
    )
    command = [sys.executable, "-m", "threeloops", "progress", "--history", str(folder / "progress.sqlite3")]
    told(
        f"progress over {size.attempts:,} attempts: the command",
        [timed(lambda: subprocess.run(command, capture_output=True, check=True)) for _ in range(min(size.pages, 5))],
    )
    assert sum(topic.answered for topic in progress.progress(history, now=wall_clock.now()).topics) > size.attempts / 2


def _attempt(place: int, idea: Any, rng: random.Random) -> Attempt:
    status = rng.choice(["right", "right", "wrong", "given-up", "skipped"])
    return Attempt(
        session=f"bench-{place // 20}",
        position=place % 20,
        idea=idea.key,
        topic=idea.topic,
        kind="number",
        seed="bench",
        written="1 GB",
        status=status,
        slips="binary-as-decimal" if status == "wrong" else "",
        seconds=rng.uniform(5, 200),
        target_s=idea.target_s,
        extra=1.0,
        hints=0,
        at_s=1.7e9 + 600 * place,
    )


# --- the room with a view -----------------------------------------------------------------------

# From the press to the frame after the one in which the words have changed; a pause between presses, as no reader is
# without.
PRESSES = """async count => {
  const frame = () => new Promise(requestAnimationFrame);
  const button = name => [...document.querySelectorAll('.interview-room button')].find(one => one.textContent === name);
  const changed = element => new Promise(seen => {
    const watch = new MutationObserver(() => { watch.disconnect(); seen(); });
    watch.observe(element, {attributes: true, childList: true, characterData: true, subtree: true});
  });
  const timed = async (name, element) => {
    await new Promise(rested => setTimeout(rested, 100));
    const start = performance.now(), change = changed(element);
    button(name).click();
    await change;
    await frame();
    return performance.now() - start;
  };
  const judged = [], following = [];
  for (let n = 0; n < count; n++) {
    judged.push(await timed('give up', button('next')));
    following.push(await timed('next', document.querySelector('.interview-room h3')));
  }
  return {judged, following};
}"""


def notebook(folder: Path, size: Size) -> None:
    import shutil

    from playwright.sync_api import sync_playwright

    from tests.chapters.conftest import ROOT, chromium_path, running
    from tests.chapters.keys import run
    from tests.chapters.test_browser_interview import CELL, ROOM

    root = folder / "book"
    (root / "drills").mkdir(parents=True)
    shutil.copytree(ROOT / "chapters", root / "chapters")
    shutil.copy(ROOT / "drills" / "interview.ipynb", root / "drills")
    os.environ["THREELOOPS_HISTORY"] = str(folder / "notebook.sqlite3")
    History(folder / "notebook.sqlite3").begin("sprint", {"extra": 1.0}, plan(size))
    code = (
        "from pathlib import Path; from threeloops.desk import opening;"
        f" opening.open_book('drills/interview', browser=False, root=Path({str(root)!r}))"
    )
    with running([sys.executable, "-c", code], root, folder / "jupyter") as door, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium_path(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(door.page)
        page.wait_for_selector(CELL, timeout=60_000)
        page.wait_for_selector(".threeloops-bar[data-kernel='idle']", timeout=60_000)
        run(page, page.locator(CELL).nth(ROOM))
        page.locator(".interview-room").get_by_role("button", name="continue", exact=True).click()
        page.get_by_role("heading", name="Question 1 of").wait_for()
        samples = page.evaluate(PRESSES, size.questions - 1)
        browser.close()
    told("notebook in a browser: answer to verdict", [sample / 1e3 for sample in samples["judged"]])
    told("notebook in a browser: next to the next question", [sample / 1e3 for sample in samples["following"]])


PARTS = {"terminal": terminal, "engine": engine, "progress": page_of_progress, "notebook": notebook}


def main(words: list[str]) -> None:
    size = SMOKE if "--smoke" in words else WHOLE
    for name in [word for word in words if word != "--smoke"] or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            PARTS[name](Path(folder), size)


if __name__ == "__main__":
    main(sys.argv[1:])
