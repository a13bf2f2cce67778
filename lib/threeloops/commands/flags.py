"""The flags of the calculations, and from flags to a calculation. What a field disagrees about has no
default.
"""

import argparse
import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

from threeloops import checks, dtypes
from threeloops.commands import fit, training_flags
from threeloops.commands.budget import (
    WEIGHTS_HELP,
    add_budget_flags,
    besides_without_hardware,
    budget_of,
    weights_format,
)
from threeloops.commands.cache_lines import CACHE_HELP
from threeloops.commands.named import HARDWARE_HELP, MEMORY_HELP, MODEL_HELP, memory_named, model_named, part_named
from threeloops.commands.released import with_model_said
from threeloops.commands.serve.options import DCP_HELP, add_serve_flags
from threeloops.commands.typed import context, quantity, whole
from threeloops.commands.working import Working
from threeloops.models.forward_step import ForwardStep
from threeloops.product_loop import kv_allocators
from threeloops.product_loop.kv_allocators import Allocator
from threeloops.product_loop.kv_quantisation import cache_format
from threeloops.product_loop.sizing.stored_weights import mean_weight_bytes
from threeloops.training_loop.network.collective_algorithms import algorithms

# Which flag sets which option of an allocator.
ALLOCATOR_FLAGS = {
    "block_tokens": "block",
    "max_tokens": "reserve",
    "max_batched_tokens": "batched",
    "ubatch_tokens": "ubatch",
}


def _allocator(given: argparse.Namespace) -> Allocator | None:
    """The allocator that was asked for, with the options that it has."""
    set_options = {
        option: getattr(given, flag) for option, flag in ALLOCATOR_FLAGS.items() if getattr(given, flag) is not None
    }
    if not given.allocator:
        if set_options:
            raise ValueError(
                f"--{ALLOCATOR_FLAGS[next(iter(set_options))]} belongs to an allocator; name it, for example"
                " --allocator vllm-paged"
            )
        return None
    checks.one_of(kv_allocators.ALLOCATORS, allocator=given.allocator)
    kind = kv_allocators.ALLOCATORS[given.allocator]
    has = {field.name: field.default is dataclasses.MISSING for field in dataclasses.fields(kind)}
    for option in set_options:
        if option not in has:
            fits = [
                name
                for name, other in kv_allocators.ALLOCATORS.items()
                if option in {field.name for field in dataclasses.fields(other)}
            ]
            raise ValueError(
                f"--{ALLOCATOR_FLAGS[option]} has no meaning for {given.allocator}; it belongs to {', '.join(fits)}"
            )
    for option, required in has.items():
        if required and option not in set_options:
            raise ValueError(
                f"{given.allocator} needs --{ALLOCATOR_FLAGS[option]} TOKENS, for example --{ALLOCATOR_FLAGS[option]}"
                " 8192"
            )
    return kv_allocators.by_name(given.allocator, **set_options)


def _kv(given: argparse.Namespace) -> Working:
    from threeloops.commands import kv

    if bool(given.hardware) != bool(given.weights):
        raise ValueError(
            "--hardware and --weights go together: what fits beside the weights depends on how they are stored, for"
            " example --weights bf16"
        )
    if not given.hardware and (without := besides_without_hardware(given)):
        raise ValueError(f"{without} is taken from an accelerator's memory: name it with --hardware")
    beside = None
    if given.hardware:
        beside = kv.Beside(
            budget=budget_of(given, memory_named(given.hardware, given.catalog)),
            weights=_weights_format(given.weights),
        )
    model = model_named(given.model, given.catalog)
    return kv.working(
        model,
        tokens=given.tokens,
        batch=given.batch,
        cache=cache_format(model, cache=given.cache),
        tp=given.tp,
        dcp=given.dcp,
        allocator=_allocator(given),
        beside=beside,
    )


def _allreduce(given: argparse.Namespace) -> Working:
    from threeloops.commands import allreduce

    if bool(given.link) == bool(given.bandwidth):
        both = ", and not both" if given.link else ""
        raise ValueError(f"give the link by name (--link nvlink-4) or its one-way rate (--bandwidth 450GB/s){both}")
    link = part_named("link", given.link, given.catalog) if given.link else None
    return allreduce.working(
        op=given.op,
        algorithm=given.algorithm or algorithms(given.op)[0],
        size_bytes=quantity(given.size, "B"),
        ranks=given.ranks,
        alpha_s=quantity(given.alpha, "s"),
        bytes_per_s_one_way=link["bytes_per_s_one_way"] if link else quantity(given.bandwidth, "B/s"),
        link=link.name if link else "as given",
    )


def _roofline(given: argparse.Namespace) -> Working:
    from threeloops.commands import roofline

    if bool(given.gemm) == bool(given.model):
        raise ValueError("say what runs: --gemm M N K, or --model NAME with --phase, --batch and --tokens")
    dtype = dtypes.dtype_named(dtype=given.dtype)
    machine = roofline.Machine(
        part=part_named("hardware", given.hardware, given.catalog),
        engine=given.engine,
        power_mode=given.power_mode,
        launch_overhead_s=quantity(given.launch, "s") if given.launch is not None else 0.0,
    )
    if given.gemm:
        if given.weights or given.cache:
            raise ValueError("--weights and --cache belong to --model; of a --gemm all operands are in --dtype")
        m, n, k = given.gemm
        return roofline.gemm_working(m=m, n=n, k=k, dtype=dtype, machine=machine)
    model = model_named(given.model, given.catalog)
    stored = _weights_format(given.weights)
    step = ForwardStep(
        phase=given.phase,
        batch=given.batch,
        sequence=given.tokens,
        causal=given.causal,
        fused_attention=not given.unfused,
        logits="last",
        bytes_per_element=dtypes.bytes_per_element(dtype),
        weight_bytes_per_element=mean_weight_bytes(model, stored) if stored else None,
        kv_bytes_per_element=cache_format(model, cache=given.cache).mean_bytes_per_element if given.cache else None,
        latent="absorbed" if given.phase == "decode" else "expanded",
        routing="uniform",
    )
    return roofline.model_working(
        model, step=step, dtype=dtype, machine=machine, stored=stored, cache=given.cache or ""
    )


def _weights_format(typed: str | None) -> str:
    return weights_format(typed) if typed else ""


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

    _kv_flags(add("kv", "KV cache: what a context costs in memory", _kv))
    fit.add_flags(add("fit", "does this model, in this format, fit on this card with this context", fit.from_flags))
    add_serve_flags(add("serve", "the GPUs that a load needs, or what users see of given GPUs", _later("serve.answer")))
    _allreduce_flags(add("allreduce", "all-reduce and the other collectives: what communication costs", _allreduce))
    _roofline_flags(add("roofline", "roofline: what binds a matmul or a whole forward pass", _roofline))
    training_flags.add_memory_flags(
        add("memory", "training memory: what one GPU holds at its worst moment", _later("memory.whole"))
    )
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


def _kv_flags(kv: argparse.ArgumentParser) -> None:
    kv.add_argument("--model", required=True, help=MODEL_HELP)
    kv.add_argument("--tokens", type=context, required=True, help="prompt and answer together, like 8192 or 32k")
    kv.add_argument("--batch", type=whole, default=1, help="requests (default 1)")
    kv.add_argument("--cache", "--dtype", dest="cache", required=True, help=CACHE_HELP)
    kv.add_argument("--allocator", help="also what this allocator reserves: vllm-paged, llama.cpp, hf-static, …")
    kv.add_argument("--block", type=whole, help="tokens per block of a paged allocator")
    kv.add_argument("--reserve", type=context, help="tokens that a static allocator reserves")
    kv.add_argument("--batched", type=context, help="tokens that vllm-admission may prefill in one step")
    kv.add_argument("--ubatch", type=whole, help="tokens of llama.cpp's micro-batch (its default is 512)")
    kv.add_argument("--hardware", help=f"how many such requests fit on it: {MEMORY_HELP}")
    kv.add_argument("--weights", help=f"for --hardware: {WEIGHTS_HELP}")
    add_budget_flags(kv)
    kv.add_argument("--dcp", type=whole, default=1, help=DCP_HELP)


def _allreduce_flags(allreduce: argparse.ArgumentParser) -> None:
    allreduce.add_argument("--size", required=True, help="NCCL's S, like 14GB")
    allreduce.add_argument("--ranks", type=whole, required=True)
    allreduce.add_argument("--link", help="catalogue key of the link, like nvlink-4")
    allreduce.add_argument("--bandwidth", help="one-way rate of a link, like 50GB/s")
    allreduce.add_argument("--alpha", required=True, help="latency of one step, like 5us; 0s leaves it out")
    allreduce.add_argument(
        "--op",
        default="all_reduce",
        help="all_reduce (default), reduce_scatter, all_gather, broadcast, reduce, all_to_all, send_recv",
    )
    allreduce.add_argument(
        "--algorithm",
        help="ring, halving-doubling, binomial-tree, pipelined-tree, … (default: ring, or pairwise for all_to_all)",
    )


def _roofline_flags(roofline: argparse.ArgumentParser) -> None:
    roofline.add_argument("--hardware", required=True, help=HARDWARE_HELP)
    roofline.add_argument("--engine", help="of a system on a chip: gpu, dla")
    roofline.add_argument("--power-mode", help="of a system on a chip: maxn, 30w, …")
    roofline.add_argument("--dtype", required=True, help="number format: bf16, fp8, …")
    roofline.add_argument("--launch", help="time to launch one kernel, like 5us (default 0s)")
    roofline.add_argument("--gemm", type=whole, nargs=3, metavar=("M", "N", "K"))
    roofline.add_argument("--model", help=MODEL_HELP)
    roofline.add_argument("--weights", help=f"a narrower format that they are read in: {WEIGHTS_HELP}")
    roofline.add_argument("--cache", help=f"{CACHE_HELP} (default as --dtype)")
    roofline.add_argument("--phase", choices=("prefill", "decode"), default="decode")
    roofline.add_argument("--batch", type=whole, default=1)
    roofline.add_argument(
        "--tokens", type=context, default=1024, help="prompt of a prefill, context of a decode step (default 1024)"
    )
    roofline.add_argument(
        "--causal",
        choices=("full", "half", "exact"),
        default="exact",
        help="how masked scores are counted (default exact: not at all)",
    )
    roofline.add_argument("--unfused", action="store_true", help="attention writes its scores to memory")
