"""No question of the room holds its answer: not the drills', which tests/drills sweeps, and not those with numbers of
their own.
"""

import random
from dataclasses import replace

import pytest
from tests.each import each
from tests.seeds import seeds

from threeloops.drills.engine.answers_in_text import figures, held
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, Drill
from threeloops.drills.engine.fair_draws import TRIES, fair
from threeloops.room import examples
from threeloops.room.kinds.band_draws import INTERVIEW, draws
from threeloops.room.kinds.chains import CHAINS, chain
from threeloops.room.kinds.flash import BAND
from threeloops.room.kinds.flash_numbers import FLASHES
from threeloops.room.kinds.table import Cell, Table, draw_of
from threeloops.room.kinds.tables import TABLES


def holds(drill: Drill, p: Draw, text: str) -> str:
    return held(text, drill.derive(p).value, unit=drill.unit, tolerance=drill.tolerance)


@each("key", {key: key for key in INTERVIEW}, by=lambda key: "bands")
def test_no_interview_question_holds_its_answer(key: str) -> None:
    for p in draws(key):
        assert not holds(DRILLS[key], p, DRILLS[key].prompt(p))


@pytest.mark.parametrize("key", CHAINS)
def test_no_step_of_a_chain_holds_its_answer(key: str) -> None:
    for seed in seeds(60):
        p = chain.numbers(CHAINS[key], str(seed))
        for step in CHAINS[key].steps:
            q = step.numbers(p)
            assert not holds(DRILLS[step.drill], q, step.text(p) if step.text else DRILLS[step.drill].prompt(q))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.key)
def test_no_table_holds_what_is_to_be_filled_in(table: Table) -> None:
    for seed in seeds(60):
        p = draw_of(table, str(seed))
        for cell in table.cells:
            if isinstance(cell, Cell):
                assert not holds(cell.drill, cell.numbers(p), table.prompt(p)), cell.name


def test_no_flash_card_holds_its_number_in_the_name_of_its_part() -> None:
    for asked in FLASHES:
        number = asked.number()
        assert not held(asked.question, number.value, unit=number.unit, tolerance=BAND), asked.key
    assert len({asked.question for asked in FLASHES}) == len(FLASHES)


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("a card of 80GB", 80e9, "B"),
        ("a card of 80 GiB", 80 * 2**30, "B"),
        ("links of 450 GB/s", 450e9, "B/s"),
        ("an answer of 1,250 tokens", 1250, "token"),
        ("every 21 min", 1260, "s"),
        ("30 pictures per second on 8 GPUs", 8, ""),
        ("for 40 % of the time", 0.4, ""),
        ("makes 2,100 tokens per second", 2100, "token/s"),
        ("7.5 billion parameters", 7.5e9, ""),
    ],
)
def test_a_figure_is_found_however_it_is_written(text: str, value: float, unit: str) -> None:
    found = held(text, value, unit=unit, tolerance=0.01)
    assert found
    assert found in text
    assert not held(text, 1.1 * value, unit=unit, tolerance=0.01)


def test_an_example_says_without_the_reader_of_units_what_it_says_with_it() -> None:
    for unit in examples.EXAMPLES:
        for written in examples.every(unit):
            answer = examples.read(written, unit)
            assert [amount for _, amount in figures(written, unit)] == [answer.value], written


def test_a_drill_that_always_tells_is_refused_by_name() -> None:
    drill = DRILLS["kv-bytes-per-token"]
    telling = replace(drill, prompt=lambda p: f"It is {drill.derive(p).value:.0f} {drill.unit}.")
    with pytest.raises(ValueError, match=f"{drill.key}.*{TRIES}.*holds its answer"):
        fair(telling).draw(random.Random(1))
