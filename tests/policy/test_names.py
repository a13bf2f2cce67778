"""One name for one thing, one thing for one name: in the rooms of facts and formulas, whose functions readers
call.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

LIB = Path(__file__).parents[2] / "lib" / "threeloops"
ROOMS = ("facts", "operations", "models", "foundations", "inner_loop", "training_loop", "product_loop", "driving")
# A name that somebody would try, and the one that this library settled on.
SETTLED = {
    "element_bytes": "bytes_per_element",
    "n_gpus": "num_gpus",
    "gpus": "num_gpus",
    "num_devices": "num_gpus",
    "n_layers": "num_layers",
    "n_heads": "num_heads",
    "recomputation": "recompute",
    "bandwidth": "memory_bytes_per_s",
    "peak_flops": "peak_flops_per_s",
    "utilization": "utilisation",
    "arrivals_per_s": "requests_per_s",
    "arrival_rate": "requests_per_s",
}
# What an argument of this name is, wherever it stands.
KINDS = {
    "parameters": ("ParameterBuckets",),  # a number of them is num_parameters
    "num_parameters": ("float", "int"),
    "num_layers": ("int", "str"),  # a str: the name of a config's field
    "zero_stage": ("int",),
    "recompute": ("str",),  # "none", "selective", "full"; never a yes or no
    # by level; one memory's is memory_bytes_per_s, one link's bytes_per_s_one_way
    "bytes_per_s": ("Mapping[str, float]",),
    "peak_flops_per_s": ("float", "dict[str, float]"),
    "memory_bytes_per_s": ("float",),
}
# torch's own names aside, identifiers are spelt as the prose is
AMERICAN = ("utiliz", "optimiz", "quantiz", "normaliz", "parallelize")


MEMORY = {"usable_bytes": {"training_loop"}, "free_bytes": {"product_loop"}}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for room in ROOMS:
        for path in sorted((LIB / room).rglob("*.py")):
            yield path.relative_to(LIB).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def public(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Functions and classes at the top of a module that anybody may call."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


def arguments(node: ast.FunctionDef | ast.ClassDef) -> Iterator[tuple[str, str]]:
    """(name, annotation) of what a function takes, or a dataclass holds."""
    if isinstance(node, ast.FunctionDef):
        for argument in (*node.args.args, *node.args.kwonlyargs):
            yield argument.arg, ast.unparse(argument.annotation) if argument.annotation else ""
        return
    for inner in node.body:
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            yield inner.target.id, ast.unparse(inner.annotation)


FOUND = [
    (path, node.name, name, kind) for path, tree in sources() for node in public(tree) for name, kind in arguments(node)
]


def test_arguments_have_the_settled_names() -> None:
    assert len(FOUND) > 1000
    wrong = [
        f"{path}: {function}({name}) should be {SETTLED[name]}" for path, function, name, _ in FOUND if name in SETTLED
    ]
    assert not wrong


def test_contributing_lists_what_is_settled() -> None:
    listed = (LIB.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n## Names\n")[2]
    words = set(re.findall(r"`(\w+)`", listed.partition("\n## ")[0]))
    assert {*SETTLED, *SETTLED.values(), *MEMORY} <= words


@pytest.mark.parametrize("name", KINDS)
def test_an_argument_is_the_same_kind_of_thing_everywhere(name: str) -> None:
    kinds = {(path, function, kind) for path, function, argument, kind in FOUND if argument == name}
    assert kinds, f"nothing is called {name} any more: take it out of the table"
    assert not {row for row in kinds if row[2].removesuffix(" | None") not in KINDS[name]}


def test_what_a_program_may_have_and_what_is_left_for_caches_are_two_names() -> None:
    """usable_bytes: of a device, all that a program may have, which training plans with. free_bytes: what weights and
    an engine's own needs leave of it for caches.
    """
    rooms = {name: {path.partition("/")[0] for path, _, argument, _ in FOUND if argument == name} for name in MEMORY}
    assert rooms == MEMORY


def test_no_two_public_things_share_a_name() -> None:
    places = defaultdict(list)
    for path, tree in sources():
        for node in public(tree):
            places[node.name].append(path)
    shared = {name: where for name, where in places.items() if len(where) > 1}
    assert not shared


# Where an argument is the bytes of one weight; weights_bytes are those of all.
OF_ONE_WEIGHT = {"training_loop/memory/offload.py", "training_loop/memory/recipes.py"}


def test_bytes_of_one_weight_and_of_all_have_names_of_their_own() -> None:
    assert {path for path, _, name, _ in FOUND if name == "weight_bytes"} == OF_ONE_WEIGHT
    assert not {path for path, _, name, _ in FOUND if name == "weights_bytes"} & OF_ONE_WEIGHT
    made = {node.name for _, tree in sources() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert "weight_bytes" not in made


def test_identifiers_are_spelt_as_the_prose_is() -> None:
    names = {(path, node.name) for path, tree in sources() for node in public(tree)} | {
        (path, name) for path, _, name, _ in FOUND
    }
    assert not {(path, name) for path, name in names for american in AMERICAN if american in name.lower()}
