"""The pictures of blocks and of what requests share: every text can be read back from the drawing."""

import pytest

from threeloops.figures.product_loop import page_table, prefix_tree
from threeloops.simulate.product_loop.shared_blocks import SharedBlocks

TEXTS = {
    "A": ("system", "hello", "yes"),
    "B": ("system", "hello", "no", "why"),
    "C": ("system", "bye"),
    "D": ("system", "hello"),
    "E": ("alone",),
}


def read_back(run, before=()):
    """(request, text) for each request that ends in this run or below it."""
    text = (*before, *run.pieces)
    below = {name for child in run.children for name in child.requests}
    found = [(name, text) for name in run.requests if name not in below]
    return found + [pair for child in run.children for pair in read_back(child, text)]


def test_every_text_can_be_read_from_a_root_to_where_it_ends():
    assert dict(pair for root in prefix_tree.runs(TEXTS) for pair in read_back(root)) == TEXTS


def test_a_run_ends_only_where_texts_part_or_one_of_them_ends():
    shared, alone = prefix_tree.runs(TEXTS)
    assert (shared.pieces, alone.pieces) == (("system",), ("alone",))
    assert [(run.pieces, run.requests) for run in shared.children] == [
        (("hello",), ("A", "B", "D")),
        (("bye",), ("C",)),
    ]
    assert [run.pieces for run in shared.children[0].children] == [("yes",), ("no", "why")]


def test_no_two_boxes_of_the_tree_overlap():
    figure = prefix_tree.prefix_tree(TEXTS, title="A finding", caption="What to see.")
    places = figure.body["layer"][0]["data"]["values"]
    assert len(places) == 6
    for number, one in enumerate(places):
        for other in places[:number]:
            apart = one["x2"] <= other["x"] or other["x2"] <= one["x"]
            assert apart or one["y2"] <= other["y"] or other["y2"] <= one["y"]
    assert len(figure.body["layer"][2]["data"]["values"]) == 4  # one arrow to each box that is no root
    with pytest.raises(ValueError, match="texts is empty"):
        prefix_tree.prefix_tree({}, title="a", caption="b")


def test_the_words_of_a_page_table_count_the_empty_blocks():
    for blocks, words in ((3, "one block is empty."), (5, "3 blocks are empty.")):
        pool = SharedBlocks(num_blocks=blocks, block_tokens=2)
        pool.admit("A", [0, 1])
        pool.admit("B", [2])
        figure = page_table.page_table(pool, left="A", right="B", words=("a", "b", "c"), title="t", caption="c")
        assert figure.alt.endswith(words)
