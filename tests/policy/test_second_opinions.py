"""Every formula names its source, and who counts or measures the same number without knowing the formula.

A formula is a public function of the rooms below that states a `Formula:`. Its docstring, or its module's, has a line
`Source:` ("by definition" where nobody has to be believed); its own has `Counted:` or `Measured:` with dotted names: a
simulator, real code, a drill with its count, a function of the tests. What is named exists, and a test compares the
two.
"""

import pytest
from second_opinions import Book, book

# Rooms that are held to it, one after the other.
HELD = ("operations", "models", "foundations", "inner_loop", "training_loop", "product_loop", "driving")
ALL = book()


@pytest.mark.parametrize("room", HELD)
def test_every_formula_has_a_source_and_a_second_opinion(room: str) -> None:
    formulas = ALL.formulas((room,))
    assert formulas
    faults = [f"{name} {fault}" for name, says in formulas.items() for fault in ALL.faults(name, *says)]
    assert not faults, "\n".join(faults)


PLANTED = {
    "operations.area": '''
def area(side):
    """A square.

    Formula:  side * side
    """
''',
    "simulate.tiles": "\n".join(f"def {name}(side): ..." for name in ("laid", "alone", "refused", "apart", "filled")),
    "measure.ruler": "def read(side): ...",
    "tests.test_area": """
from threeloops.operations.area import area
from threeloops.simulate import tiles
from threeloops.measure.ruler import read

def by_hand(side):
    return sum(1 for _ in range(side) for _ in range(side))

def retyped(side):
    return area(side)

def agree(found, side):
    assert found == area(side)

def test_tiles():
    agree(tiles.laid(3), 3)

def test_both_without_comparing():
    tiles.alone(3), area(3)

def test_refusals():
    with pytest.raises(ValueError):
        assert tiles.refused(-1) == area(-1)

def test_two_things_apart():
    assert tiles.apart(3)
    assert area(3) == 9

def test_filled():
    rows = []
    for side in range(3):
        rows.append(tiles.filled(side))
    told = [area(side) for side in range(3)]
    assert rows == told

def test_ruler():
    assert read(3) == area(3)

def test_by_hand():
    assert area(3) == by_hand(3)

def test_retyped():
    assert area(3) == retyped(3)
""",
}
SOURCE = "Source:   Euclid, 1482\n"


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (SOURCE + "Counted:  simulate.tiles.laid", ""),
        (SOURCE + "Measured: measure.ruler.read", ""),
        (SOURCE + "Counted:  simulate.tiles.laid,\n          tests.test_area.by_hand", ""),
        (SOURCE + "Counted:  tests.test_area.test_by_hand", ""),
        (SOURCE + "Counted:  tests.test_area.test_tiles", ""),
        (SOURCE + "Counted:  tests.test_area.test_both_without_comparing", "asserts nothing of it"),
        ("Source:   by definition\nCounted:  drills.roofline.intensity.RIDGE", "does not ask for it"),
        ("Counted:  simulate.tiles.laid", "names no Source"),
        ("Source:\nCounted:  simulate.tiles.laid", "names no Source"),
        (SOURCE, "names neither"),
        (SOURCE + "Counted:  simulate.tiles.lost", "does not exist"),
        (SOURCE + "Counted:  simulate.tiles.filled", ""),
        (SOURCE + "Counted:  simulate.tiles.alone", "is compared with it in no test"),
        (SOURCE + "Counted:  simulate.tiles.refused", "is compared with it in no test"),
        (SOURCE + "Counted:  simulate.tiles.apart", "is compared with it in no test"),
        (SOURCE + "Counted:  by hand", "is no dotted name"),
        (SOURCE + "Counted:  measure.ruler.read", "is no dotted name below simulate"),
        (SOURCE + "Measured: simulate.tiles.laid", "is no dotted name below measure"),
        (SOURCE + "Counted:  operations.area.area", "is no dotted name"),
        (SOURCE + "Counted:  tests.test_area.retyped", "knows the formula"),
        (SOURCE + "Counted:  drills.engine.drill.Drill", "is no drill"),
    ],
)
def test_what_is_not_so_is_found(lines: str, fault: str) -> None:
    planted = Book(
        PLANTED | {name: "RIDGE = Drill = 1" for name in ("drills.roofline.intensity", "drills.engine.drill")}
    )
    ((name, (says, module_says)),) = planted.formulas(("operations",)).items()
    found = list(planted.faults(name, f"{says}\n{lines}", module_says))
    assert len(found) == bool(fault)
    assert all(fault in one for one in found)


def test_a_source_may_stand_once_for_the_whole_module() -> None:
    assert not list(
        Book(PLANTED).faults("operations.area.area", "Counted: simulate.tiles.laid", "Source:   Euclid, 1482")
    )


def test_a_formula_that_hides_is_found_where_it_is_handed_on() -> None:
    handing = {"operations.shapes": "from threeloops.operations.area import area"}
    tests = {
        "tests.test_area": PLANTED["tests.test_area"].replace("operations.area import", "operations.shapes import")
    }
    assert not list(
        Book(PLANTED | handing | tests).faults("operations.area.area", SOURCE + "Counted: simulate.tiles.laid")
    )


@pytest.mark.parametrize("drill", ["drills.foundations.linear_maps.COSINE"])
def test_a_drill_counts_what_it_asks_for(drill: str) -> None:
    says = SOURCE + f"Counted: {drill}"
    assert not list(ALL.faults("foundations.similarity.cosine", says))
    assert len(list(ALL.faults("operations.roofline.ridge_point", says))) == 1
