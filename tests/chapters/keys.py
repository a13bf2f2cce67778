"""Running a cell of a notebook in the browser, as a reader does: click into it, Ctrl+Enter."""

import re
from collections.abc import Callable
from typing import Any

# What JupyterLab shows when a kernel has died; it starts another by itself. One that has just begun dies where another
# process took one of its five ports in the moment before it could: the suite opens thousands.
RESTARTED = ".jp-Dialog:has-text('Kernel Restarting')"


def answer_restarts(page: Any) -> None:
    """Have the page say Ok to that dialog whenever it stands in the way."""
    page.add_locator_handler(page.locator(RESTARTED), lambda dialog: dialog.get_by_role("button").click())


def run(page: Any, cell: Any) -> None:
    """Run a cell by keyboard and wait until it has run. Ask again where the key was lost: a kernel that is still being
    connected, or is started again, forgets what it was asked, and JupyterLab, which draws a long notebook bit by bit,
    may take the focus.
    """
    prompt, restarted = cell.locator(".jp-InputPrompt").first, page.locator(RESTARTED)
    for _ in range(6):
        before = prompt.text_content()
        cell.scroll_into_view_if_needed()
        if cell.locator(".jp-InputPlaceholder").count():  # its code is folded
            cell.locator(".jp-InputPlaceholder .jp-Placeholder-contentContainer").click()
        cell.locator(".cm-content").click()
        if not within(page, 5, cell.locator(".cm-content:focus").count):
            continue
        page.keyboard.press("Control+Enter")
        if not within(page, 5, lambda: prompt.text_content() != before):  # noqa: B023
            continue
        assert within(page, 120, lambda: prompt.text_content() != "[*]:" or restarted.count()), "the cell goes on"
        if re.fullmatch(r"\[\d+\]:", prompt.text_content()):
            return
    raise AssertionError(f"the kernel did not take the cell: {before!r}")


def within(page: Any, seconds: float, true: Callable[[], Any]) -> bool:
    """Whether something has become true by then."""
    for _ in range(int(seconds * 20)):
        if true():
            return True
        page.wait_for_timeout(50)
    return False
