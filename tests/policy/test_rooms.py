"""The house: each module in its room, each room on its floor; imports point down; no room is a lobby and no module a
corridor.
"""

import ast
import functools
import re
from pathlib import Path

import pytest
from test_light_door import loaded_by
from tests.touched import statements

LIB = Path(__file__).parents[2] / "lib" / "threeloops"
# From the ground up. On a floor, a room may ask the rooms named before it on its own line, and none after.
FLOORS = (
    ("units", "checks", "spelling", "dtypes", "wall_clock", "markup"),
    ("facts",),
    ("operations", "models"),
    (
        "foundations",
        "inner_loop",
        "training_loop.memory",
        "training_loop.network",
        "training_loop.parallelism",
        "training_loop.updates",
        "training_loop.run",
        "product_loop",
        "driving",
    ),
    ("simulate", "measure"),
    ("figures", "widgets", "drills"),
    ("sandbox",),
    ("contents", "quick_start", "room", "sheets", "paper", "classroom", "site"),
    ("desk", "doctor", "stand_in", "commands", "cli", "__main__"),
)
ROOMS = tuple(room for floor in FLOORS for room in floor)
IN_ORDER = FLOORS[2] + FLOORS[3]  # floors on which the order of the rooms is held, too
FORMULAS = FLOORS[2] + FLOORS[3]
LIGHT = tuple(room for floor in FLOORS[:4] for room in floor)
FORBIDDEN_NAMES = {"utils.py", "helpers.py", "common.py", "misc.py"}
MOST_FILES, MOST_LINES = 25, 300


def modules() -> list[Path]:
    return sorted(path for path in LIB.rglob("*.py") if path != LIB / "__init__.py")


def named(path: Path) -> str:
    """A file as its dotted name below threeloops."""
    parts = path.relative_to(LIB).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {named(path) for path in modules()}


def room(module: str) -> str:
    """The room of a module; a package that only holds rooms (training_loop) is a doorplate and has none."""
    return next((name for name in ROOMS if module == name or module.startswith(name + ".")), "")


def floor(module: str) -> int:
    return next(number for number, rooms in enumerate(FLOORS) if room(module) in rooms)


def imported(source: str) -> set[str]:
    """Modules of the book that a source imports, by dotted name below threeloops."""
    found = set()
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "threeloops":
            parent = (node.module or "").removeprefix("threeloops").lstrip(".")
            whole = {f"{parent}.{alias.name}".lstrip(".") for alias in node.names}
            found |= {name if name in NAMES else parent for name in whole}
        elif isinstance(node, ast.Import):
            found |= {
                alias.name.removeprefix("threeloops.") for alias in node.names if alias.name.startswith("threeloops.")
            }
    return found


@functools.cache
def graph() -> dict[str, set[str]]:
    """What each module imports: read when a test asks, by one worker."""
    return {named(path): imported(path.read_text()) for path in modules()}


def allowed(importer: str, asked: str) -> bool:
    """Down, or within the room; on the floors of formulas also a room named earlier; elsewhere the whole floor."""
    own, other = room(importer), room(asked)
    if floor(asked) != floor(importer) or own == other:
        return floor(asked) <= floor(importer)
    return own not in IN_ORDER or IN_ORDER.index(other) < IN_ORDER.index(own)


def test_every_module_has_a_room() -> None:
    doorplates = {"training_loop"}
    assert {name for name in NAMES if not room(name)} == doorplates


@pytest.mark.parametrize("own", ROOMS)
def test_imports_point_down(own: str) -> None:
    upward = [
        (name, asked)
        for name, all_asked in graph().items()
        if room(name) == own
        for asked in all_asked
        if not allowed(name, asked)
    ]
    assert not upward, f"{own} imports against the order of the house: {upward}"


def test_the_order_can_be_broken() -> None:
    assert not allowed("inner_loop.fusion", "training_loop.memory.fit")
    assert not allowed("models.parameters", "foundations.lines")
    assert allowed("training_loop.updates.adapters", "training_loop.memory.rank_states")
    assert imported(
        "import threeloops.cli\nfrom threeloops import measure\nfrom threeloops.drills.engine.judge import judge"
    ) == {
        "cli",
        "measure",
        "drills.engine.judge",
    }


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Some modules that import one another in a ring; empty if there are none."""
    done: set[str] = set()
    way: list[str] = []

    def visit(name: str) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        way.append(name)
        ring = next((found for asked in sorted(graph.get(name, ())) if (found := visit(asked))), [])
        way.pop()
        done.add(name)
        return ring

    return next((found for name in sorted(graph) if (found := visit(name))), [])


def test_no_circle() -> None:
    assert not circle(graph())
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in modules()}), ids=lambda folder: folder.relative_to(LIB).as_posix()
)
def test_no_room_is_a_lobby(folder: Path) -> None:
    files = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert len(files) <= MOST_FILES, f"{len(files)} modules: a newcomer no longer finds the door"


# A package of more is not read through: its first page says what is where.
UNSAID_MODULES = 10


def unsaid(folder: Path) -> set[str]:
    """Modules that the docstring of a large package does not name; an explorer's view is named with it."""
    held = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    held -= {"__init__"}
    words = set(re.findall(r"\w+", ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""))
    return (
        {name for name in held if not {name, name.removesuffix("_view")} & words}
        if len(held) > UNSAID_MODULES
        else set()
    )


def test_a_large_package_says_what_is_where(tmp_path: Path) -> None:
    packages = [path.parent for path in LIB.rglob("__init__.py")]
    assert not {folder.relative_to(LIB).as_posix(): names for folder in packages if (names := unsaid(folder))}
    for number in range(UNSAID_MODULES):
        (tmp_path / f"part{number}.py").touch()
    (tmp_path / "__init__.py").write_text('"""Parts: part1, part1_view."""')
    assert not unsaid(tmp_path)
    (tmp_path / "part1_view.py").touch()
    assert "part2" in unsaid(tmp_path)
    assert "part1_view" not in unsaid(tmp_path)


def test_formula_modules_load_only_the_standard_library() -> None:
    light = sorted(name for name in NAMES if room(name) in LIGHT)
    assert len(light) > 100
    assert loaded_by("import " + ", ".join(f"threeloops.{name}" for name in light)) == set()


def test_counting_needs_no_torch_and_no_formula() -> None:
    for path in (LIB / "simulate").rglob("*.py"):
        source = path.read_text()
        assert "torch" not in {
            word
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Import)
            for word in [node.names[0].name]
        }
        formulas = {name for name in imported(source) if room(name) in FORMULAS and name not in WORDS_OF_FORMULAS}
        assert not formulas, f"{path.name} counts with the formula it is meant to check: {formulas}"


# What a simulator may know of the rooms below: the shape of a model, the form in which a trace is written down. No
# formula among them.
WORDS_OF_FORMULAS = {"models.architecture", "inner_loop.trace"}


# Tables of data: the drills of a family, questions of the room. One is as long as what it lists.
TABLES = ("drills/", "room/kinds/")


def test_no_module_is_longer_than_one_sitting() -> None:
    lengths = {path.relative_to(LIB).as_posix(): path.read_text().count("\n") for path in modules()}
    assert not {name for name, lines in lengths.items() if lines > MOST_LINES and not name.startswith(TABLES)}


def test_no_module_is_called_by_a_name_that_says_nothing() -> None:
    assert not [path for path in LIB.rglob("*.py") if path.name in FORBIDDEN_NAMES]


# Follow one number: what HOUSE.md tells whoever has an evening to read.
MOST_TO_READ = 1200
STATION = re.compile(r"^\| \d+ \| \[.+?\]\((.+?)\) \| (.+?) \|", re.MULTILINE)


def lines_to_read(station: str, names: str) -> int:
    """Lines of a file, or of what is named in it."""
    source = (LIB.parents[1] / station).read_text(encoding="utf-8")
    if names == "all":
        return source.count("\n")
    lengths = {}
    for node in ast.parse(source).body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            lengths[node.name] = (node.end_lineno or first) - first + 1
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            lengths[node.targets[0].id] = (node.end_lineno or first) - first + 1
    return sum(lengths[name] for name in re.findall(r"`(\w+)`", names))


def test_one_number_can_be_followed_in_an_evening() -> None:
    root = LIB.parents[1]
    stations = STATION.findall((root / "HOUSE.md").read_text(encoding="utf-8"))
    assert len(stations) == 10
    assert 800 < sum(lines_to_read(*station) for station in stations) < MOST_TO_READ
    with pytest.raises(KeyError, match="no_such_formula"):
        lines_to_read(stations[2][0], "`no_such_formula`")
    for page in ("README.md", "CONTRIBUTING.md"):
        assert "](HOUSE.md#follow-one-number)" in (root / page).read_text(encoding="utf-8")
