"""Compiling: how often torch.compile starts again, how much it is given to compile, and which kernels come out.

Recompilations and operations are counted with a backend that runs what it is given, which needs no C++ compiler.
Kernels do need one.

>>> compilations(lambda x: (x * 2).relu(), [(torch.ones(3),), (torch.ones(4),)], dynamic=False)
[1, 2]
"""

import contextlib
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
import torch._dynamo
from torch import Tensor

from threeloops import checks


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

    with alone(), torch._dynamo.config.patch(recompile_limit=limit):
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

    with alone():
        torch.compile(function, backend=backend)(*arguments)
    return sizes


class MissingCompiler(ValueError):
    """This machine has no C++ compiler, so no code can be generated."""


def missing_compiler() -> str:
    """Why code cannot be generated on this machine, in one sentence; empty if it can."""
    wanted = os.environ.get("CXX", "")
    if any(shutil.which(name) for name in (wanted, "g++", "clang++", "cl") if name):
        return ""
    return "no C++ compiler here (Debian: apt install g++ python3-dev; macOS: xcode-select --install)"


def generated_kernels(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """Names of the kernels that the generated program calls, in order: library calls and fused ones.

    Raises:   MissingCompiler, a ValueError
    """
    if missing_compiler():
        raise MissingCompiler(f"generated_kernels needs a compiler: {missing_compiler()}")
    from torch._inductor.utils import run_and_get_code

    with alone():
        _, programs = run_and_get_code(torch.compile(function), *arguments)
    (program,) = programs
    body = program[program.index("def call(") :]
    return re.findall(r"^\s+(?:extern_kernels\.)?(mm|addmm|bmm|cpp_fused_\w+|triton_\w+)[.(]", body, flags=re.MULTILINE)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Nothing compiled before or after, and no warnings: what they would say is what is counted here.

    >>> with alone():
    ...     torch._dynamo.explain(lambda x: (x * 2).relu())(torch.ones(3)).graph_count
    1
    """
    before = logging.root.manager.disable
    torch._dynamo.reset()
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
        torch._dynamo.reset()
