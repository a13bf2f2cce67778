"""Nobody is kept out: axe-core's rules in both themes, and nothing lost on the narrowest screen."""

from collections.abc import Callable

import pytest

from tests.seeds import todays
from tests.site.conftest import Page, Visit
from threeloops.site import npm

pytestmark = [
    pytest.mark.timeout(1500),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
# Every rule; and in the dark those of colour again.
RULES = {
    "light": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
    "dark": ["color-contrast", "link-in-text-block"],
}
# `preload` fetches every style once more, for rules that are not among these.
RUN = "rules => axe.run(document, {runOnly: rules, preload: false, resultTypes: ['violations']})"
UNFOLD = "for (const one of document.querySelectorAll('details')) one.open = true"  # what is folded is not looked at
ALWAYS = (
    "index.html",
    "practise.html",
    "memory.html",
    "room.html",
    "offline.html",
    "serve.html",
)  # what is turned, answered and pressed
WIDE, NARROW = 1280, 320  # pixels: the narrow one is the wide one at 400 %


@pytest.fixture(scope="module")
def axe() -> str:
    return (npm.kept("axe-core") / "axe.min.js").read_text(encoding="utf-8")


def findings(visit: Visit, scheme: str) -> list[str]:
    """What axe has to say of a page."""
    found = visit.page.evaluate(RUN, RULES[scheme])["violations"]
    return [f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}" for one in found]


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_axe_finds_nothing(visit: Callable[..., Visit], pages: dict[str, Page], axe: str, width: int) -> None:
    # a colour on its way to another one has no contrast of its own
    seen = visit("index.html", width=width, reduced_motion="reduce")
    found = {}
    for name in sorted({*todays(list(pages)), *ALWAYS}):
        seen.page.goto(name)
        seen.page.evaluate(UNFOLD)
        seen.page.evaluate(axe)
        for scheme in RULES:
            seen.page.evaluate("scheme => { document.documentElement.dataset.theme = scheme; }", scheme)
            found[f"{name}, {scheme}"] = findings(seen, scheme)
    assert not {name: said for name, said in found.items() if said}


def test_axe_finds_what_is_wrong(visit: Callable[..., Visit], axe: str) -> None:
    seen = visit("index.html")
    seen.page.evaluate("document.querySelector('article').append(document.createElement('button'))")
    seen.page.evaluate(axe)
    assert any(said.startswith("button-name") for said in findings(seen, "light"))


def test_on_a_narrow_screen_nothing_is_lost(visit: Callable[..., Visit], pages: dict[str, Page]) -> None:
    page = visit("index.html", width=NARROW).page
    wide = {}
    for name in sorted({*todays(list(pages)), *ALWAYS}):
        page.goto(name)
        wide[name] = page.evaluate("document.documentElement.scrollWidth")
    assert not {name: width for name, width in wide.items() if width > NARROW}
