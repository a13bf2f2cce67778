"""Attention view: what the explorer shows for a state, as figure, sentences and table. No widget in here.

>>> shown = view(State(query_block=8, key_block=8, causal=True, step=2))
>>> print(shown.summary.partition(";")[0])
Step 2 of 6: queries 8 to 15 meet keys 0 to 7
"""

import functools
import math
import random
from dataclasses import dataclass

from threeloops import checks
from threeloops.figures.figure import Figure
from threeloops.operations import kernels
from threeloops.simulate.inner_loop.attention_rows import Visit, Walked, walked
from threeloops.units import fmt_bytes, fmt_percent
from threeloops.widgets.inner_loop import attention_tiles
from threeloops.widgets.inner_loop.attention_tiles import Tile, span
from threeloops.widgets.view import View

TOKENS, HEAD_DIM, NUMBER_BYTES = (
    24,
    8,
    4,
)  # few enough to be seen; a real head is 64 to 256 wide and has thousands of tokens
BLOCKS = (2, 3, 4, 6, 8, 12, 24)
MASKS = {"none: every key": False, "causal: no later key": True}
COLUMNS = ("query of the block", "largest score", "sum before, times", "sum so far", "of its whole sum")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    query_block: int
    key_block: int
    causal: bool
    step: int  # how many meetings of two blocks have been

    def __post_init__(self) -> None:
        for name in ("query_block", "key_block"):
            if getattr(self, name) not in BLOCKS:
                raise ValueError(f"{name}={getattr(self, name)!r} must be one of {', '.join(map(str, BLOCKS))}")
        checks.count(at_least=0, step=self.step)
        last = len(walk(self.query_block, self.key_block, self.causal).visits)
        if self.step > last:
            raise ValueError(f"step={self.step} must be at most {last}, where the last two blocks have met")


@functools.lru_cache(maxsize=64)
def walk(query_block: int, key_block: int, causal: bool) -> Walked:
    """One head of random queries, keys and values, walked through in blocks."""
    q, k, v = numbers()
    sides = {"query_block": query_block, "key_block": key_block}
    return walked(q, k, v, causal=causal, bytes_per_number=NUMBER_BYTES, **sides)


def numbers() -> list[list[list[float]]]:
    """Queries, keys and values: [token][number] each."""
    rng = random.Random(6)
    return [[[rng.gauss() for _ in range(HEAD_DIM)] for _ in range(TOKENS)] for _ in range(3)]


def written_out_bytes() -> int:
    """What moves with the scores written out, masked or not."""
    work = kernels.attention(
        batch=1,
        num_heads=1,
        num_kv_heads=1,
        head_dim=HEAD_DIM,
        query_tokens=TOKENS,
        context_tokens=TOKENS,
        causal="full",
        fused=False,
        bytes_per_element=NUMBER_BYTES,
    )
    return round(work.moved_bytes)


def view(state: State) -> View:
    """What to show for a state: which blocks have met, what each row knows by then, and what that has moved."""
    done = walk(state.query_block, state.key_block, state.causal)
    seen = done.visits[: state.step]
    ended = state.step == len(done.visits)
    moved = done.moved_bytes if ended else (seen[-1].moved_bytes if seen else 0)
    figure = _figure(state, done, moved)
    if not seen:
        said = "nothing has been loaded"
    else:
        shrunk = sum(factor < 1 for factor in seen[-1].shrunk) if seen[-1].keys.start else 0
        higher = f"{shrunk} of {len(seen[-1].queries)} rows met a higher score and shrank what they had"
        said = f"queries {span(seen[-1].queries)} meet keys {span(seen[-1].keys)}; {higher}"
    summary = (
        f"Step {state.step} of {len(done.visits)}: {said}."
        f" {fmt_bytes(moved, base=10)} moved, {fmt_bytes(written_out_bytes(), base=10)} with all scores kept."
    )
    return View(columns=COLUMNS, figure=figure, summary=summary, rows=_rows(done, seen[-1]) if seen else ())


def _figure(state: State, done: Walked, moved: int) -> Figure:
    share = done.moved_bytes / written_out_bytes()
    scores = f"{state.query_block * state.key_block} of {TOKENS * TOKENS:,}"
    ways = [
        ("in blocks", float(moved), float(done.moved_bytes)),
        ("written out", float(written_out_bytes()), float(written_out_bytes())),
    ]
    most = 1.02 * max(end for *_, end in ways)
    return Figure(
        title=f"{fmt_percent(share)} of the bytes, and {scores} scores at a time",
        caption=(
            f"One head, {TOKENS} tokens, {HEAD_DIM} wide, 4 bytes a number. Orange: the two blocks that meet; blue:"
            " met; grey: masked, never loaded."
        ),
        alt=(
            f"{state.step} of {len(done.visits)} meetings of two blocks are over. Bytes moved: in blocks {moved:,} of"
            f" {done.moved_bytes:,}, with the scores written out {written_out_bytes():,}."
        ),
        body={
            "hconcat": [
                attention_tiles.matrix(_tiles(state, done), TOKENS),
                attention_tiles.bars(ways, most),
            ],
            "spacing": 30,
        },
    )


def _tiles(state: State, done: Walked) -> list[Tile]:
    places = {(visit.queries, visit.keys): place for place, visit in enumerate(done.visits, start=1)}
    tiles = []
    for first in range(0, TOKENS, state.query_block):
        for key in range(0, TOKENS, state.key_block):
            both = range(first, first + state.query_block), range(key, key + state.key_block)
            place = places.get(both)
            kind = "never" if place is None else "waits" if place > state.step else "done"
            kind = "now" if place == state.step else kind
            tiles.append(Tile(queries=both[0], keys=both[1], kind=kind))
    return tiles


def _rows(done: Walked, last: Visit) -> tuple[tuple[str, ...], ...]:
    """What every row of the block knows now, beside what it will know in the end."""
    (final,) = [visit for visit in done.visits if visit.queries == last.queries][-1:]
    return tuple(
        (
            f"{query}",
            f"{last.largest[row]:.2f}",
            f"{last.shrunk[row]:.2f}" if last.keys.start else "nothing before",
            f"{last.seen[row]:.2f}",
            fmt_percent(last.seen[row] * math.exp(last.largest[row] - final.largest[row]) / final.seen[row]),
        )
        for row, query in enumerate(last.queries)
    )
