"""Compiling: how many graphs torch.compile makes of a function, why it cuts, how often it starts again, and which
kernels come out.

Graphs, cuts and recompilations are counted with a backend that runs what it is given, which needs no C++ compiler.
Kernels do need one.

>>> found = graphs(lambda x: (x * 2).relu(), torch.ones(3))
>>> found.graphs, found.operations, found.reasons
(1, 2, ())
"""

import contextlib
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch._dynamo
from torch import Tensor

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Graphs:
    """What tracing made of one call of a function."""

    graphs: int
    operations: int  # in all graphs together
    reasons: tuple[str, ...]  # one per cut, its first line


def graphs(function: Callable[..., Any], *arguments: Any) -> Graphs:
    """How many graphs one call falls into, and the reason for each cut.

    Assumes:  only the path that these arguments take is seen
    Source:   PyTorch documentation, torch._dynamo.explain, 2.13
    """
    with _alone():
        found = torch._dynamo.explain(function)(*arguments)
    reasons = tuple(cut.reason.splitlines()[0] for cut in found.break_reasons)
    return Graphs(
        graphs=found.graph_count, operations=sum(_operations(graph) for graph in found.graphs), reasons=reasons
    )


def _operations(module: torch.fx.GraphModule) -> int:
    return sum(node.op in ("call_function", "call_method", "call_module") for node in module.graph.nodes)


def compilations(
    function: Callable[..., Any], calls: Iterable[Sequence[Any]], *, dynamic: bool | None, limit: int = 8
) -> list[int]:
    """How many graphs had been compiled after each call.

    `dynamic` is torch.compile's own: False makes every size a constant, None makes a size a symbol once it has
    changed, True at once. Beyond `limit` versions of one function torch gives up and runs it uncompiled.

    Assumes:  the function has no cuts; then a graph is a compilation
    """
    checks.count(limit=limit)
    counted: list[int] = []
    compiled = 0

    def backend(module: torch.fx.GraphModule, _: list[Tensor]) -> Callable[..., Any]:
        nonlocal compiled
        compiled += 1
        return module.forward

    with _alone(), torch._dynamo.config.patch(recompile_limit=limit):
        traced = torch.compile(function, backend=backend, dynamic=dynamic)
        for arguments in calls:
            traced(*arguments)
            counted.append(compiled)
    return counted


def traced_operations(function: Callable[..., Any], *arguments: Any) -> list[int]:
    """Operations in each graph that had to be compiled for one call, in order: what the compiler is given to chew
    on.
    """
    sizes: list[int] = []

    def backend(module: torch.fx.GraphModule, _: list[Tensor]) -> Callable[..., Any]:
        sizes.append(_operations(module))
        return module.forward

    with _alone():
        torch.compile(function, backend=backend)(*arguments)
    return sizes


def missing_compiler() -> str:
    """Why code cannot be generated on this machine, in one sentence; empty if it can."""
    wanted = os.environ.get("CXX", "")
    if any(shutil.which(name) for name in (wanted, "g++", "clang++", "cl") if name):
        return ""
    return "no C++ compiler here (Debian: apt install g++ python3-dev; macOS: xcode-select --install)"


def generated_kernels(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """Names of the kernels that the generated program calls, in order: library calls and fused ones.

    Raises:   ValueError if there is no C++ compiler
    """
    if missing_compiler():
        raise ValueError(f"generated_kernels needs a compiler: {missing_compiler()}")
    from torch._inductor.utils import run_and_get_code

    with _alone():
        _, programs = run_and_get_code(torch.compile(function), *arguments)
    (program,) = programs
    body = program[program.index("def call(") :]
    return re.findall(r"^\s+(?:extern_kernels\.)?(mm|addmm|bmm|cpp_fused_\w+|triton_\w+)[.(]", body, flags=re.MULTILINE)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Nothing compiled before or after, and no warnings: what they would say is what is counted here."""
    before = logging.root.manager.disable
    torch._dynamo.reset()
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
        torch._dynamo.reset()
