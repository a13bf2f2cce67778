"""Benchmark of the pages: python tests/bench/site.py [--smoke]. How long they take to build, how large they are, how
heavy the heaviest page is, how soon there is text, how long from a click to the first verdict: from this machine, on
return, and over a line of 25 Mbit/s and 40 ms; and from a key on the opening page's explorer to its redraw.
"""

import argparse
import contextlib
import http.server
import re
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.widget import WATCH, presses
from threeloops import units, wall_clock
from threeloops.site import build, explorers, papers, serve
from threeloops.site.drawn import anew
from threeloops.site.epub import volume
from threeloops.site.front import page as front
from threeloops.units import MB

ROOT = Path(__file__).parents[2]
LINE_BYTES_PER_S, LINE_DELAY_S = 25e6 / units.BITS_PER_BYTE, 0.040
FIRST_TEXT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
WAIT_MS = 300_000


def slow_server(folder: Path) -> http.server.ThreadingHTTPServer:
    """The pages behind a line that all requests share."""
    made = serve.server(folder)
    lock, free_at = threading.Lock(), [0.0]

    class Slow(serve.Files):
        def copyfile(self, source: Any, outputfile: Any) -> None:
            wall_clock.pause(LINE_DELAY_S)
            while chunk := source.read(16384):
                with lock:
                    free_at[0] = max(free_at[0], time.monotonic()) + len(chunk) / LINE_BYTES_PER_S
                    wait = free_at[0] - time.monotonic()
                wall_clock.pause(wait)
                outputfile.write(chunk)

    made.RequestHandlerClass = lambda *words: Slow(*words, directory=str(folder))
    return made


@contextlib.contextmanager
def running(server: http.server.ThreadingHTTPServer) -> Iterator[str]:
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield serve.address(server)
        server.shutdown()


def visited(context: Any, address: str) -> tuple[float, float]:
    """Seconds to the first text of a page, and from the first key in its card to the first verdict."""
    page = context.new_page()
    page.goto(address + "practise.html")
    page.wait_for_function(FIRST_TEXT)
    text_s = page.evaluate(FIRST_TEXT) / 1e3
    begun = time.perf_counter()
    page.get_by_role("textbox").fill("3")
    page.get_by_role("button", name="Check").click()
    page.locator(".drill-said.drill-wrong, .drill-said.drill-right").wait_for(timeout=WAIT_MS)
    judged_s = time.perf_counter() - begun
    page.close()
    return text_s, judged_s


def measured(browser: Any, server: http.server.ThreadingHTTPServer, told: str, visits: tuple[str, ...]) -> None:
    with running(server) as address:
        context = browser.new_context()
        for which in visits:
            text_s, judged_s = visited(context, address)
            print(f"{told}, {which}: first text {text_s:.2f} s, first verdict {judged_s:.2f} s after the first key")
        context.close()


def redrawn(browser: Any, address: str, count: int) -> str:
    """From a key on the batch's slider to the frame after the one with the new drawing, Python being there already."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(address)
    page.get_by_label("batch").focus()
    page.evaluate(WATCH, ".explorer .tl-explorer")
    times = []
    for key, batch in presses(count + 1):
        page.evaluate(f"window.waiting = window.once('{batch:,}'); undefined")
        page.keyboard.press(key)
        times.append(page.evaluate("window.waiting"))
        page.wait_for_timeout(60)
    page.close()
    first, *others = times
    late = sorted(others)[int(0.95 * len(others))]
    return (
        f"explorer: first redraw {first / 1e3:.2f} s after the first key, then {statistics.median(others):.0f} ms"
        f" (median), {late:.0f} ms (95 of 100)"
    )


def weight(folder: Path) -> str:
    """The page that brings the most bytes with its pictures, the styles and scripts that all share aside."""
    sizes = {}
    for path in folder.rglob("*.html"):
        source = path.read_text(encoding="utf-8")
        pictures = {(path.parent / name).resolve() for name in re.findall(r'<img[^>]* src="([^"]+)"', source)}
        sizes[path] = len(source.encode()) + sum(one.stat().st_size for one in pictures if one.is_file())
    name = max(sizes, key=lambda path: sizes[path])
    return f"{name.relative_to(folder).as_posix()}, {sizes[name] / MB:.2f} MB with its pictures"


def one_page(root: Path, sources: Path, prints: Sequence[str]) -> None:
    """In place of the whole book, where only the way of it is tried."""
    sources.mkdir()
    index = f"# Pages\n\n{explorers.block(front.MOVES)}```{{toctree}}\npractise\n```\n"
    (sources / "index.md").write_text(index, encoding="utf-8")
    (sources / "practise.md").write_text(papers.practise(), encoding="utf-8")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--smoke", action="store_true", help="one page in place of the book")
    smoke = words.parse_args().smoke
    visits = ("first visit",) if smoke else ("first visit", "on return")
    if smoke:
        build.write_sources = one_page
        volume.write = lambda parts, folder, told: folder  # of one page there is no EPUB
        anew.drawings = lambda pages: {}
    with tempfile.TemporaryDirectory() as work:
        begun = time.perf_counter()
        folder = build.build(ROOT, Path(work) / "site").parent
        print(f"built in {time.perf_counter() - begun:.1f} s")
        chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            measured(browser, serve.server(folder), "from this machine", visits)
            with running(serve.server(folder)) as address:
                print(redrawn(browser, address, 2 if smoke else 60))
            if not smoke:
                measured(browser, slow_server(folder), "over 25 Mbit/s and 40 ms", visits)
            browser.close()
        print(f"heaviest page: {weight(folder)}")
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        print(f"folder of pages: {sum(sizes) / MB:.1f} MB in {len(sizes)} files")


if __name__ == "__main__":
    main()
