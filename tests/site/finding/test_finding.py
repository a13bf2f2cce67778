"""What readers look for stands on top: in either spelling, as they type, with the chapter in its name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.site.conftest import ROOT, Page, Visit
from tests.site.test_site_axe import RULES, findings
from threeloops.site import npm
from threeloops.site.finding import index
from threeloops.site.finding.spelt import spelt, tokens
from threeloops.site.parts import parts, text

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
# What is looked for -> the part that has to be on top.
TOP = {
    **dict.fromkeys(("allreduce", "all reduce", "all-reduce", "ring", "NCCL", "overlap"), "2.4"),
    **dict.fromkeys(("tensor parallel", "tensor parallelism", "sequence parallelism"), "2.6"),
    **dict.fromkeys(("quantization", "quantisation", "pruning", "NVFP4"), "3.9"),
    **dict.fromkeys(("speculative decoding", "speculat"), "3.8"),
    **dict.fromkeys(("kv cache", "kv cache size", "GQA", "grouped query attention"), "3.3"),
    **dict.fromkeys(("arithmetic intensity", "memory bound", "HBM", "roofline"), "1.2"),
    **dict.fromkeys(("paged attention", "prefix cache"), "3.4"),
    **dict.fromkeys(("flash attention", "FlashAttention", "softmax", "kernel fusion"), "1.6"),
    **dict.fromkeys(("FSDP", "ZeRO"), "2.5"),
    **dict.fromkeys(("bubble", "pipeline bubble"), "2.7"),
    **dict.fromkeys(("bank conflict", "coalesced"), "1.4"),
    **dict.fromkeys(("CUDA graph", "torch.compile", "launch overhead"), "1.7"),
    **dict.fromkeys(("straggler", "mean time between failures"), "2.10"),
    **{"TTFT": "3.1", "p99": "4.5", "MFU": "2.1", "occupancy": "1.3", "profiler": "1.8", "continuous batching": "3.5"},
    **{"mixture of experts": "2.8", "InfiniBand": "2.9", "queues": "3.6", "Amdahl": "1.1", "cost per token": "3.11"},
    **{"rate monotonic": "4.5", "activation recomputation": "2.2"},
}
FIND = """async queries => {
  const {read, found, tokens} = await import(new URL('finding.js', threeloops.STATIC));
  const index = read(await (await fetch(new URL('search.json', threeloops.STATIC))).json());
  return queries.map(query => found(index, query).map(one => one.part));
}"""
SPELL = """async words => {
  const {spelt, tokens} = await import(new URL('finding.js', threeloops.STATIC));
  return [words.map(spelt), tokens(words.join(' '))];
}"""


def test_what_is_looked_for_stands_on_top_and_words_are_spelt_alike(visit: Callable[..., Visit]) -> None:
    assert len(TOP) >= 40
    page = visit("404.html").page
    found = dict(zip(TOP, page.evaluate(FIND, [*TOP]), strict=True))
    assert not {query: found[query][:3] for query, top in TOP.items() if not found[query][:1][0].startswith(f"{top} ")}
    assert page.evaluate(FIND, ["", "qqqq", "—"]) == [[], [], []]
    of_every_object, plain = page.evaluate(FIND, ["constructor roofline", "roofline"])
    assert plain[0] in of_every_object
    every = sorted({word for part in parts(ROOT) for cell in part.cells for word in text(cell).split()})
    assert len(every) > 10_000
    spelt_there, tokens_there = page.evaluate(SPELL, every)
    differ = [word for word, there in zip(every, spelt_there, strict=True) if spelt(word) != there]
    assert not differ
    assert tokens(" ".join(every)) == tokens_there


def test_it_is_found_as_one_types_and_the_index_comes_when_it_is_asked_for(visit: Callable[..., Visit]) -> None:
    seen = visit("1_inner_loop/2_roofline.html", reduced_motion="reduce")
    page = seen.page
    page.get_by_role("button", name="Search").first.click()
    field = page.get_by_role("searchbox", name="Search the book")
    assert not [address for address in seen.asked if "search.json" in address or "finding.js" in address]
    field.press_sequentially("quantizat")
    dialog = page.locator("#pst-search-dialog")
    dialog.locator(".found-part").first.wait_for()
    assert dialog.locator(".found-part").first.inner_text() == "3.9 Compression"
    page.evaluate((npm.kept("axe-core") / "axe.min.js").read_text(encoding="utf-8"))
    for scheme in RULES:
        page.evaluate("scheme => { document.documentElement.dataset.theme = scheme; }", scheme)
        assert not findings(seen, scheme)
    field.press("Enter")
    page.wait_for_url("**/3_product_loop/9_compression.html")


def test_a_link_to_what_is_found_opens_it(visit: Callable[..., Visit]) -> None:
    page = visit("search.html?q=bank+conflict", width=390).page
    first = page.locator(".found li").first
    assert first.locator(".found-part").inner_text() == "1.4 The programming model"
    below = first.locator("li a").first
    name = below.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    below.click()
    page.wait_for_url("**/4_the_programming_model.html#*")
    heading = page.evaluate("document.getElementById(decodeURIComponent(location.hash.slice(1))).textContent")
    assert name.split()[0] in heading


def test_where_the_index_does_not_come_a_sentence_says_so(visit: Callable[..., Visit]) -> None:
    page = visit("search.html").page
    page.evaluate("window.there = fetch; window.fetch = async () => new Response('', {status: 404})")
    field = page.locator(".bd-search-container").get_by_role("searchbox")
    field.fill("warp")
    said = page.locator(".bd-search-container .found-count")
    said.get_by_text("The list of what stands where did not come.").wait_for()
    page.evaluate("() => { window.fetch = there; }")
    said.get_by_role("button", name="Try again").click()
    page.locator(".bd-search-container .found-part", has_text="1.3 The GPU").first.wait_for()
    field.fill("qqqq")
    said.get_by_text("Nothing in the book is called so.").wait_for()


def test_every_place_of_the_index_is_there(pages: dict[str, Page], folder: Path) -> None:
    told = json.loads((folder / "_static" / index.FILE).read_text(encoding="utf-8"))
    lost = [
        (page, anchor)
        for page, anchor, *_ in told["places"]
        if f"{page}.html" not in pages or (anchor and anchor not in pages[f"{page}.html"].ids)
    ]
    assert not lost
    assert len(told["places"]) > 500
    assert not list(folder.rglob("searchindex.js")), "of Sphinx's own search"


def test_a_term_is_found_under_its_other_names() -> None:
    told: dict[str, Any] = json.loads(index.index(parts(ROOT), {}))
    (place,) = [place for place in told["places"] if place[3] == "Same weights, other samples, one sum"]
    assert "allreduce" in place[5]
    called = {name for place in told["places"] for name in place[5]}
    assert "threadblock" in called, "what papers call a block"
