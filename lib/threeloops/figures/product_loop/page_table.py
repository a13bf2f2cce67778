"""Page table: the blocks of a pool in the middle, the tables of two requests beside it, and which entry names which
block.

>>> from threeloops.simulate.product_loop.shared_blocks import SharedBlocks
>>> pool = SharedBlocks(num_blocks=4, block_tokens=2)
>>> _ = pool.admit("A", [0, 1, 2]), pool.admit("B", [0, 1, 3])
>>> figure = page_table(pool, left="A", right="B", words="be so good bad".split(), title="One block", caption="Two.")
>>> print(figure.alt)
A pool of 4 blocks of 2 tokens. Request A: blocks 0, 1. Request B: blocks 0, 2. Shared: 0. In the blocks: 0 "be so", 1 "good", 2 "bad"; one block is empty.
"""  # noqa: E501

from collections.abc import Sequence

from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.figure import Figure
from threeloops.simulate.product_loop.shared_blocks import SharedBlocks
from threeloops.units import counted

ROW, HEAD = 38, 24  # pixels
TABLE, GAP, POOL = 96, 66, 250


def page_table(pool: SharedBlocks, *, left: str, right: str, words: Sequence[str], title: str, caption: str) -> Figure:
    """Both tables and the pool. Token number n is written as words[n].

    A block is blue where both requests use it, orange where one does, green where neither does but its text is kept.
    """
    middle, far = TABLE + GAP, TABLE + GAP + POOL + GAP
    plan = [
        Box(x=0, y=0, width=TABLE, height=HEAD, kind="off", text=f"table of {left}"),
        Box(x=middle, y=0, width=POOL, height=HEAD, kind="off", text="blocks in memory"),
        Box(x=far, y=0, width=TABLE, height=HEAD, kind="off", text=f"table of {right}"),
    ]
    for block in range(pool.num_blocks):
        text = " ".join(words[token] for token in pool.held.get(block, ()))
        kind = _kind(pool, block)
        shown = f"{block}: {text}" if text else f"{block}: empty"
        plan.append(Box(x=middle, y=_top(block), width=POOL, height=ROW - 6, kind=kind, text=shown))
    arrows = []
    for name, x, edge, to in ((left, 0, TABLE, middle), (right, far, far, middle + POOL)):
        for place, block in enumerate(pool.table(name)):
            plan.append(Box(x=x, y=_top(place), width=TABLE, height=ROW - 6, kind="frame", text=f"{place} → {block}"))
            tip = -8 if to > edge else 8
            arrows.append(Arrow(x=edge, y=_middle(place), to_x=to + tip, to_y=_middle(block)))
    return boxes(plan, arrows=arrows, title=title, caption=caption, alt=_alt(pool, left, right, words))


def _top(row: int) -> float:
    return HEAD + 8 + row * ROW


def _middle(row: int) -> float:
    return _top(row) + (ROW - 6) / 2


def _kind(pool: SharedBlocks, block: int) -> str:
    if block in pool.empty:
        return "frame"
    users = pool.users[block]
    return "compute" if users > 1 else "memory" if users else "control"


def _alt(pool: SharedBlocks, left: str, right: str, words: Sequence[str]) -> str:
    tables = " ".join(f"Request {name}: blocks {', '.join(map(str, pool.table(name)))}." for name in (left, right))
    shared = [str(block) for block in sorted(pool.users) if pool.users[block] > 1]
    inside = ", ".join(
        f'{block} "{" ".join(words[token] for token in pool.held[block])}"' for block in sorted(pool.held)
    )
    left_over = len(pool.empty)
    empty = "one block is" if left_over == 1 else f"{left_over} blocks are"
    return (
        f"A pool of {pool.num_blocks} blocks of {counted(pool.block_tokens, 'token')}. {tables} Shared:"
        f" {', '.join(shared) or 'none'}. In the blocks: {inside}; {empty} empty."
    )
