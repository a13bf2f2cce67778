"""The attention explorer, from state to text: no browser needed."""

import itertools

import numpy as np
import pytest

from threeloops.widgets.inner_loop import attention as widget
from threeloops.widgets.inner_loop.attention_view import BLOCKS, HEAD_DIM, TOKENS, State, view, walk


@pytest.mark.parametrize("causal", [False, True])
def test_every_setting_gives_the_same_attention_and_every_block_is_met_once(causal: bool) -> None:
    for query_block, key_block in itertools.product(BLOCKS, BLOCKS):
        done = walk(query_block, key_block, causal)
        assert np.allclose(done.fused.output, done.unfused.output, atol=1e-5)
        met = [(query, key) for visit in done.visits for query in visit.queries for key in visit.keys]
        assert len(set(met)) == len(met), "no score is computed twice"
        due = {(query, key) for query in range(TOKENS) for key in range(TOKENS) if not causal or key <= query}
        assert due <= set(met)


def test_in_the_end_every_row_knows_the_sum_that_a_softmax_divides_by() -> None:
    rng = np.random.default_rng(6)
    q, k, _ = (rng.standard_normal((TOKENS, HEAD_DIM)).astype(np.float32) for _ in range(3))
    scores = q @ k.T / np.sqrt(HEAD_DIM)
    sums = np.exp(scores - scores.max(axis=1, keepdims=True)).sum(axis=1)
    last = [visit for visit in walk(4, 6, causal=False).visits if visit.keys.stop == TOKENS]
    assert np.allclose(np.concatenate([visit.seen for visit in last]), sums, rtol=1e-5)
    assert view(State(query_block=4, key_block=6, causal=False, step=4)).rows[0][4] == "100 %"


def test_the_bytes_of_the_blocks_are_those_of_the_formula() -> None:
    for query_block in BLOCKS:
        passes = TOKENS // query_block
        numbers = TOKENS * HEAD_DIM * (2 + 2 * passes)  # queries and output once, keys and values once a block
        assert walk(query_block, 4, causal=False).fused.moved_bytes == 4 * numbers


def test_other_blocks_begin_anew_and_states_that_cannot_be_are_one_sentence() -> None:
    explorer = widget.explorer(State(query_block=6, key_block=4, causal=True, step=7))
    explorer.turn(key_block=8)
    assert explorer.state == State(query_block=6, key_block=8, causal=True, step=0)
    with pytest.raises(ValueError, match="key_block=5 must be one of 2, 3, 4"):
        State(query_block=6, key_block=5, causal=True, step=0)
    with pytest.raises(ValueError, match="step=17 must be at most 16"):
        State(query_block=6, key_block=4, causal=True, step=17)
