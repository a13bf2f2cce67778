"""The calculations among the commands: what each is for, an example of it, and how its result is printed. Each
declares its flags itself. What a field disagrees about has no default.
"""

import argparse
import importlib
from collections.abc import Callable
from typing import Any

from threeloops.commands import allreduce, fit, kv, training_flags
from threeloops.commands.memory.flags import add_memory_flags
from threeloops.commands.named import model_named
from threeloops.commands.released import with_model_said
from threeloops.commands.roofline import asked as roofline
from threeloops.commands.serve.options import add_serve_flags
from threeloops.commands.working import Working

# What --help shows of each, as it can be typed.
EXAMPLES = {
    "kv": "--model llama3-8b --tokens 8k --cache bf16 --hardware h100-sxm --weights bf16 --share 0.9",
    "fit": "--model qwen3-32b --weights q4_k_m --hardware 4090 --tokens 32k",
    "allreduce": "--size 14GB --ranks 8 --link nvlink-3 --alpha 5us",
    "roofline": "--model llama3-8b --hardware h200 --dtype bf16 --phase decode --batch 8 --tokens 2048",
    "memory": (
        "--model llama3-70b --recipe megatron --zero 1 --dp 8 --tp 8 --pp 5 --sp --micro-batches 16 --micro-batch 1"
        " --sequence 4096 --kernels fused --recompute selective"
    ),
    "plan": (
        "--model llama3-70b --hardware h100-sxm --gpus 64 --sequence 8k --batch 128 --network infiniband-ndr"
        " --tokens 1T --price 2.50"
    ),
    "serve": (
        "--model llama-3.3-70b --hardware h100-sxm --weights fp8 --rate 50/s --prompt 2k --answer 500 --ttft 500ms"
        " --tpot 40ms"
    ),
    "step": (
        "--model llama3-70b --hardware h100-sxm --sequence 8k --batch 128 --network infiniband-ndr --tp 8 --pp 2 --dp 4"
        " --zero 1 --recompute selective"
    ),
}


def add_calculations(commands: Any) -> None:
    """kv, fit, serve, allreduce, roofline, memory, plan and step, with their flags."""

    def add(name: str, what: str, run: Callable[[argparse.Namespace], Working]) -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = commands.add_parser(
            name,
            help=what,
            description=what,
            epilog=f"example: threeloops {name} {EXAMPLES[name]}",
            formatter_class=_Help,
        )
        command.add_argument("--json", action="store_true", help="print base SI units for a script")
        command.add_argument("--catalog", metavar="FILE", help="your own parts and models, over the shipped catalogue")
        command.set_defaults(run=lambda given: _print(name, run(given), given))
        return command

    kv.add_flags(add("kv", "KV cache: what a context costs in memory", kv.from_flags))
    fit.add_flags(add("fit", "does this model, in this format, fit on this card with this context", fit.from_flags))
    add_serve_flags(add("serve", "the GPUs that a load needs, or what users see of given GPUs", _later("serve.answer")))
    collectives = "all-reduce and the other collectives: what communication costs"
    allreduce.add_flags(add("allreduce", collectives, allreduce.from_flags))
    roofline.add_flags(add("roofline", "roofline: what binds a matmul or a whole forward pass", roofline.from_flags))
    add_memory_flags(add("memory", "training memory: what one GPU holds at its worst moment", _later("memory.whole")))
    training_flags.add_plan_flags(
        add("plan", "the best training layouts on a cluster, and why the others lost", _later("plan"))
    )
    training_flags.add_step_flags(
        add("step", "where the time of one training step goes under a layout", _later("step"))
    )


def _print(command: str, working: Working, given: argparse.Namespace) -> None:
    """The working; of a model, with what was made of its name and what of its checkpoint is not counted."""
    if getattr(given, "model", None):
        working = with_model_said(command, working, given, model_named(given.model, given.catalog))
    print(working.as_json() if given.json else working.as_text())


def _later(name: str) -> Callable[[argparse.Namespace], Working]:
    """A calculation whose module is imported when it is asked for, and not before."""

    def run(given: argparse.Namespace) -> Working:
        found: Working = importlib.import_module(f"threeloops.commands.{name}").from_flags(given)
        return found

    return run


class _Help(argparse.HelpFormatter):
    """An example stays on one line, so that it can be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("example: ") else super()._fill_text(text, width, indent)
