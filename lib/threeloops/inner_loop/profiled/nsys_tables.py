"""Nsight Systems' tables: which of them are read, which of their columns, and what a range of NVTX stands for.

>>> stands_for("load batch", steps=0), stands_for("iteration 7", steps=0)
(('user_annotation', 'enumerate(DataLoader)#load batch'), ('user_annotation', 'ProfilerStep#7'))
>>> stands_for("aten::mm, op_id = 3, sizes = [[4, 8], [8, 2]]", steps=0), stands_for("forward", steps=0)
(('cpu_op', 'aten::mm'), None)

Source: NVIDIA, Nsight Systems, SQLite Export Schema Reference, and CUPTI, CUpti_ActivityMemcpyKind
"""

import re
from typing import NamedTuple

from threeloops.inner_loop.profiled.rank_record import COPY, KERNEL, LOADERS, NOTE, OPERATOR, SET, STEP

KERNELS, GRAPHS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
COPIES, SETS = "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"
CALLS, RANGES = "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"
COPY_KINDS = {1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH",
              10: "PtoP"}  # fmt: skip
# Ranges of NVTX that are steps, waits for data, and operators as torch's emit_nvtx writes them; others say where in the
# program something was, and not what the host did.
STEPS = re.compile(r"(?:profiler|train(?:ing)?)?[ _]?(?:step|iter(?:ation)?)[ _#:=]*(\d*)$", re.I)
LOADING = re.compile(r"enumerate\(Data|data.?load|load.?(batch|data)|(next|get|fetch).?(batch|data)", re.I)
OPERATORS = re.compile(r"(\w+::\w+|autograd::engine.*?|Optimizer\..*?)(?:, (?:seq|op_id|sizes) = .*)?$")


class Columns(NamedTuple):
    """What is read of a table, in this order: columns that it must have, and those that older versions lack, of a few
    the first that is there.
    """

    needed: tuple[str, ...]
    others: tuple[tuple[str, ...], ...] = ()


ON, LINKS = ("start", "end", "deviceId"), (("globalPid",), ("streamId",))
TABLES = {
    KERNELS: Columns(ON, (("demangledName", "shortName"), *LINKS)),
    GRAPHS: Columns(ON, (("graphId",), *LINKS)),
    COPIES: Columns((*ON, "copyKind"), LINKS),
    SETS: Columns(ON, ((), *LINKS)),
    CALLS: Columns(("start", "end", "nameId"), (("globalTid",),)),
    RANGES: Columns(("start", "end"), (("text",), ("textId",), ("globalTid",))),
}
CATEGORIES = {KERNELS: KERNEL, GRAPHS: KERNEL, COPIES: COPY, SETS: SET}


def stands_for(name: str, *, steps: int) -> tuple[str, str] | None:
    """Category and name, as torch's profiler would have them, of a range; `steps` were there before."""
    if step := STEPS.match(name):
        return NOTE, STEP + (step[1] or str(steps + 1))
    if LOADING.search(name):
        return NOTE, name if name.startswith(LOADERS) else LOADERS[0] + name
    operator = OPERATORS.match(name)
    return (OPERATOR, operator[1]) if operator else None
