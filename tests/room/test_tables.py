"""Tables to fill: each cell is judged by itself, mistakes are told apart from the answer, and the decision follows
from the figures.
"""

import itertools
import math

import pytest
from tests.seeds import seeds

from threeloops.drills.engine.drill import Draw
from threeloops.operations import kernels
from threeloops.room import ideas
from threeloops.room.kinds.table import Cell, Table, Word, draw_of, fill, judged
from threeloops.room.kinds.tables import PRODUCT, TABLES

SEEDS = [str(seed) for seed in range(1000)]
every_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.key)


def right(cell: Cell | Word, p: Draw) -> str:
    if isinstance(cell, Word):
        return cell.right(p)
    return f"{cell.drill.derive(cell.numbers(p)).value!r} {cell.drill.unit}".strip()


def line(table: Table, p: Draw) -> list[str]:
    return [right(cell, p) for cell in table.cells]


@every_table
def test_over_a_thousand_seeds_the_right_line_is_right_and_finite(table: Table) -> None:
    for seed in map(str, seeds(len(SEEDS))):
        p = draw_of(table, seed)
        assert judged(table, p, "; ".join(line(table, p))).message == f"Right, all {len(table.cells)}.", f"seed {seed}"
        for cell in table.cells:
            if isinstance(cell, Cell):
                value = cell.drill.derive(cell.numbers(p)).value
                assert math.isfinite(value)
                assert value > 0


@every_table
def test_over_a_thousand_seeds_no_slip_of_a_cell_is_near_its_answer(table: Table) -> None:
    for seed in map(str, seeds(len(SEEDS))):
        p = draw_of(table, seed)
        for cell in table.cells:
            if isinstance(cell, Cell):
                q = cell.numbers(p)
                value = cell.drill.derive(q).value
                for slip in cell.drill.slips:
                    off = abs(slip.wrong(q) - value)
                    # a mistake, or in these numbers none at all
                    assert off > 0.045 * value or off <= 1e-9 * value, (cell.name, slip.key, seed)


@every_table
def test_every_wrong_cell_is_named_with_its_mistake_and_the_others_stay_right(table: Table) -> None:
    p = draw_of(table, "4")
    for place, cell in enumerate(table.cells):
        if isinstance(cell, Word):
            wrongs = {word: "decision" for word in cell.words if word != cell.right(p)}
        else:
            q = cell.numbers(p)
            mistakes = [slip for slip in cell.drill.slips if slip.wrong(q) != pytest.approx(cell.drill.derive(q).value)]
            wrongs = {f"{slip.wrong(q)!r} {cell.drill.unit}".strip(): slip.key for slip in mistakes}
        assert wrongs
        for wrong, slip in wrongs.items():
            written = line(table, p)
            written[place] = wrong
            verdict = judged(table, p, "; ".join(written))
            assert verdict.status == "slip"
            assert verdict.message.count("Right.") == len(table.cells) - 1
            assert len(verdict.slips) == 1
            assert verdict.slips[0].startswith(f"{cell.name.lower()}:")
            if isinstance(cell, Word):
                assert verdict.slips[0].endswith(slip)


@every_table
def test_each_word_is_the_answer_of_some_seed_and_only_one_of_each(table: Table) -> None:
    for cell in table.cells:
        if isinstance(cell, Word):
            said = {cell.right(draw_of(table, seed)) for seed in SEEDS}
            assert said == set(cell.words)
            for seed in SEEDS[:50]:
                p = draw_of(table, seed)
                assert [word for word in cell.words if cell.judged(p, word).right] == [cell.right(p)]


@every_table
def test_what_cannot_be_read_is_asked_again_before_anything_is_judged(table: Table) -> None:
    p = draw_of(table, "2")
    whole = line(table, p)
    assert judged(table, p, "; ".join(whole[:-1])).status == "unreadable"
    assert judged(table, p, "; ".join([*whole[:-1], "perhaps"])).status == "unreadable"
    # a bare number, and a unit is wanted
    assert judged(table, p, "; ".join(["1", *whole[1:]])).status == "unreadable"


@every_table
def test_the_prompt_says_units_tolerance_and_order_and_its_example_is_wrong(table: Table) -> None:
    for seed in map(str, seeds(100)):
        p, asked = draw_of(table, seed), fill(table, seed)
        figures = [cell.drill for cell in table.cells if isinstance(cell, Cell)]
        assert asked.text.count(" %)") == sum(not drill.whole for drill in figures)
        assert asked.text.count("exact)") == sum(bool(drill.whole) for drill in figures)
        example = asked.text.rsplit("as in ", 1)[1].rstrip(".")
        verdict = judged(table, p, example)
        assert verdict.status in ("slip", "off", "pair", "unit")


def test_the_product_agrees_with_counting_every_multiplication_and_every_element() -> None:
    p = draw_of(PRODUCT, "1")
    p.m, p.k, p.n = 3, 5, 7
    flops = sum(2 for _ in itertools.product(range(p.m), range(p.k), range(p.n)))
    moved = p.bytes_per_element * sum(
        1
        for rows, columns in ((p.m, p.k), (p.k, p.n), (p.m, p.n))
        for _ in itertools.product(range(rows), range(columns))
    )
    work = kernels.gemm(m=p.m, n=p.n, k=p.k, bytes_per_element=p.bytes_per_element)
    assert (work.flops, work.moved_bytes) == (flops, moved)
    values = [cell.drill.derive(p).value for cell in PRODUCT.cells[:3] if isinstance(cell, Cell)]
    assert values == [flops, moved, flops / moved]


def test_the_room_asks_them() -> None:
    assert len(TABLES) >= 4
    for table in TABLES:
        assert ideas.pose(table.key, "table", "6").text == fill(table, "6").text
        assert set(table.prerequisites) <= set(ideas.IDEAS)
