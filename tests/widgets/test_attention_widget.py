"""The attention explorer, from state to text: no browser needed."""

import itertools

import numpy as np
import pytest

from threeloops.simulate.inner_loop import tiled_attention
from threeloops.widgets.inner_loop import attention as widget
from threeloops.widgets.inner_loop.attention_view import (
    BLOCKS,
    HEAD_DIM,
    TOKENS,
    State,
    numbers,
    view,
    walk,
    written_out_bytes,
)


@pytest.mark.parametrize("causal", [False, True])
def test_every_setting_gives_the_same_attention_and_every_block_is_met_once(causal: bool) -> None:
    q, k, v = (np.array([rows], dtype=np.float32) for rows in numbers())
    plain = tiled_attention.unfused_attention(q, k, v, causal=causal)
    assert written_out_bytes() == plain.moved_bytes
    for query_block, key_block in itertools.product(BLOCKS, BLOCKS):
        done = walk(query_block, key_block, causal)
        assert np.allclose(done.output, plain.output[0], atol=1e-5)
        counted = tiled_attention.fused_attention(q, k, v, causal=causal, query_block=query_block, key_block=key_block)
        assert done.moved_bytes == counted.moved_bytes
        met = [(query, key) for visit in done.visits for query in visit.queries for key in visit.keys]
        assert len(set(met)) == len(met), "no score is computed twice"
        due = {(query, key) for query in range(TOKENS) for key in range(TOKENS) if not causal or key <= query}
        assert due <= set(met)


def test_in_the_end_every_row_knows_the_sum_that_a_softmax_divides_by() -> None:
    q, k, _ = map(np.array, numbers())
    scores = q @ k.T / np.sqrt(HEAD_DIM)
    sums = np.exp(scores - scores.max(axis=1, keepdims=True)).sum(axis=1)
    last = [visit for visit in walk(4, 6, causal=False).visits if visit.keys.stop == TOKENS]
    assert np.allclose(np.concatenate([visit.seen for visit in last]), sums, rtol=1e-5)
    assert view(State(query_block=4, key_block=6, causal=False, step=4)).rows[0][4] == "100 %"


def test_the_bytes_of_the_blocks_are_those_of_the_formula() -> None:
    for query_block in BLOCKS:
        passes = TOKENS // query_block
        moved = TOKENS * HEAD_DIM * (2 + 2 * passes)  # queries and output once, keys and values once a block
        assert walk(query_block, 4, causal=False).moved_bytes == 4 * moved


def test_other_blocks_begin_anew_and_states_that_cannot_be_are_one_sentence() -> None:
    explorer = widget.explorer(State(query_block=6, key_block=4, causal=True, step=7))
    explorer.turn(key_block=8)
    assert explorer.state == State(query_block=6, key_block=8, causal=True, step=0)
    with pytest.raises(ValueError, match="key_block=5 must be one of 2, 3, 4"):
        State(query_block=6, key_block=5, causal=True, step=0)
    with pytest.raises(ValueError, match="step=17 must be at most 16"):
        State(query_block=6, key_block=4, causal=True, step=17)
