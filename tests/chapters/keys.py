"""Running a cell of a notebook in the browser, as a reader does: click into it, Ctrl+Enter."""

import re
from collections.abc import Callable
from typing import Any


def run(page: Any, cell: Any) -> None:
    """Run a cell by keyboard and wait until it has run. Ask again where the key was lost: a kernel that is still being
    connected forgets what it was asked, and JupyterLab, which draws a long notebook bit by bit, may take the focus.
    """
    prompt = cell.locator(".jp-InputPrompt").first
    before = prompt.text_content()
    for _ in range(6):
        cell.scroll_into_view_if_needed()
        cell.locator(".cm-content").click()
        if not within(page, 5, cell.locator(".cm-content:focus").count):
            continue
        page.keyboard.press("Control+Enter")
        if within(page, 5, lambda: prompt.text_content() != before):
            assert within(page, 120, lambda: re.fullmatch(r"\[\d+\]:", prompt.text_content())), "the cell goes on"
            return
    raise AssertionError(f"the kernel did not take the cell: {before!r}")


def within(page: Any, seconds: float, true: Callable[[], Any]) -> bool:
    """Whether something has become true by then."""
    for _ in range(int(seconds * 4)):
        if true():
            return True
        page.wait_for_timeout(250)
    return False
