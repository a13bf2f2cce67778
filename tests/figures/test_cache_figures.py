"""Figures of the product loop: what they show, in numbers and words, and what they refuse."""

import pytest

from threeloops.facts import hardware
from threeloops.figures import curves, still
from threeloops.figures.product_loop import memory_bar, page_table, phases, token_cache
from threeloops.models import catalogue
from threeloops.simulate.product_loop.shared_blocks import SharedBlocks


def test_boxes_of_a_token_add_up_to_its_elements() -> None:
    figure = token_cache.token_cache(
        {"latent": (("vector", 512), ("position key", 64))}, unit=128, title="A finding", caption="What to see."
    )
    boxes = figure.body["layer"][0]["data"]["values"]
    assert sum(box["x2"] - box["x"] for box in boxes) == pytest.approx(576 / 128 * token_cache.CELL)
    assert "576 in all" in figure.alt
    with pytest.raises(ValueError, match="rows is empty"):
        token_cache.token_cache({}, unit=128, title="A finding", caption="What to see.")


def test_curves_refuse_what_cannot_be_read() -> None:
    axis = curves.Axis(title="tokens")
    with pytest.raises(ValueError, match="0 lines"):
        curves.curves({}, x=axis, y=axis, title="A finding", caption="What to see.")
    with pytest.raises(ValueError, match="points of one=0"):
        curves.curves({"one": []}, x=axis, y=axis, title="A finding", caption="What to see.")


def test_a_bar_of_memory_says_what_it_shows() -> None:
    figure = memory_bar.memory_bar(
        {"weights": 90e9}, memory_bytes=80e9, budget_bytes=72e9, title="A finding", caption="What to see."
    )
    low, high = figure.body["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low == 0 < 90 < high  # a bar longer than the card is still inside
    assert "weights 90.0 GB" in figure.alt


def test_a_prompt_lies_at_the_roof_and_a_token_on_the_slope() -> None:
    llama, h100 = catalogue.model("llama-3-8b"), hardware.part("h100-sxm5")
    prompt = phases.whole_pass(llama, phases.one_pass("prefill", batch=1, tokens=2048), on=h100, name="prompt")
    token = phases.whole_pass(llama, phases.one_pass("decode", batch=1, tokens=2048), on=h100, name="token")
    assert (prompt.bound, prompt.flops_per_s) == ("compute", h100.peak_flops_per_s("bf16"))
    assert token.bound == "memory"
    assert token.arithmetic_intensity == pytest.approx(1, rel=0.1)  # two FLOPs for each weight of two bytes


def test_a_page_table_shows_who_shares_what() -> None:
    pool = SharedBlocks(num_blocks=5, block_tokens=2)
    for name, text in (("A", [0, 1, 2, 3, 4]), ("B", [0, 1, 2, 5, 4])):
        pool.admit(name, text)
    figure = page_table.page_table(pool, left="A", right="B", words=list("abcdef"), title="One", caption="Two")
    assert "Request A: blocks 0, 1, 2. Request B: blocks 0, 3, 4. Shared: 0." in figure.alt
    arrows = next(layer for layer in figure.body["layer"] if layer["mark"].get("shape") == "wedge")
    assert len(arrows["data"]["values"]) == 6  # three entries in each table
    assert still.size(figure.png())[0] <= 640


def test_levels_are_drawn_and_told() -> None:
    axis = curves.Axis(title="tokens")
    figure = curves.curves(
        {"one": [(1, 1), (2, 4)]}, x=axis, y=axis, levels={"limit": 3}, title="A finding", caption="What to see."
    )
    assert "Dashed: limit." in figure.alt
    assert "limit" in still.svg(figure.spec)
