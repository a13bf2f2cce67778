"""The `threeloops` command: calculations with their working shown, the catalogue's sources, this machine, the book and its drills.

A wrong input gets one sentence on stderr and exit code 2.
"""

import argparse
import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from threeloops.hardware import Part
    from threeloops.models import Model
    from threeloops.workings.working import Working

# Imports stand inside the functions below: `threeloops kv` must not wait for what `threeloops open` needs.


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}; `{self.prog} --help` shows what it takes", file=sys.stderr)
        raise SystemExit(2)


def _model(name: str, overlay: str | None) -> "Model":
    """A model by its catalogue key, or from the path of a config.json or its folder."""
    from threeloops import hf_config, model_catalogue

    if name.endswith(".json") or "/" in name or Path(name).is_dir():
        return hf_config.from_hf_config(name)
    return model_catalogue.model(name, overlay=overlay)


def _part(name: str | None, overlay: str | None) -> "Part | None":
    from threeloops import hardware

    return hardware.part(name, overlay=overlay) if name else None


def _quantity(text: str, like: str) -> float:
    from threeloops.drills.answers import parse

    return parse(text, like=like).value


def _kv(given: argparse.Namespace) -> "Working":
    from threeloops import kv_allocators
    from threeloops.workings import kv

    options = {"block_tokens": given.block} if given.block else {}
    options |= {"max_tokens": given.reserve} if given.reserve else {}
    options |= {"max_batched_tokens": given.batched} if given.batched else {}
    allocator = kv_allocators.by_name(given.allocator, **options) if given.allocator else None
    if given.hardware and not given.weights:
        raise ValueError("--hardware asks what fits beside the weights; say how those are stored, for example --weights bf16")
    return kv.working(
        _model(given.model, given.catalog),
        tokens=given.tokens,
        batch=given.batch,
        dtype=given.dtype,
        tp=given.tp,
        allocator=allocator,
        part=_part(given.hardware, given.catalog),
        weights_dtype=given.weights,
        share=given.share,
    )


def _allreduce(given: argparse.Namespace) -> "Working":
    from threeloops.workings import allreduce

    if bool(given.link) == bool(given.bandwidth):
        raise ValueError("give the link by name (--link nvlink-4) or its one-way rate (--bandwidth 450GB/s), and not both")
    rate = _part(given.link, given.catalog)
    return allreduce.working(
        op=given.op,
        algorithm=given.algorithm,
        size_bytes=_quantity(given.size, "B"),
        ranks=given.ranks,
        alpha_s=_quantity(given.alpha, "s"),
        bytes_per_s_one_way=rate["bytes_per_s_one_way"] if rate else _quantity(given.bandwidth, "B/s"),
        link=rate.name if rate else "as given",
    )


def _roofline(given: argparse.Namespace) -> "Working":
    from threeloops import dtypes
    from threeloops.forward_step import Step
    from threeloops.workings import roofline

    part = _part(given.hardware, given.catalog)
    assert part is not None
    launch = _quantity(given.launch, "s")
    if bool(given.gemm) == bool(given.model):
        raise ValueError("say what runs: --gemm M N K, or --model NAME with --phase, --batch and --tokens")
    if given.gemm:
        m, n, k = given.gemm
        return roofline.gemm_working(m=m, n=n, k=k, dtype=given.dtype, part=part, launch_overhead_s=launch)
    step = Step(
        phase=given.phase,
        batch=given.batch,
        sequence=given.tokens,
        causal=given.causal,
        fused_attention=not given.unfused,
        logits="last",
        bytes_per_element=dtypes.bytes_per_element(given.dtype),
        latent="absorbed" if given.phase == "decode" else "expanded",
        routing="uniform",
    )
    return roofline.model_working(_model(given.model, given.catalog), step=step, dtype=given.dtype, part=part, launch_overhead_s=launch)


def _memory(given: argparse.Namespace) -> "Working":
    from threeloops import dtypes
    from threeloops.training_fit import Training
    from threeloops.workings import memory

    training = Training(
        model=_model(given.model, given.catalog),
        recipe=given.recipe,
        zero_stage=given.zero,
        dp=given.dp,
        tp=given.tp,
        pp=given.pp,
        ep=given.ep,
        expert_tp=given.expert_tp,
        sequence_parallel=given.sp,
        schedule=given.schedule,
        micro_batches=given.micro_batches,
        element_bytes=int(dtypes.bytes_per_element(given.dtype)),
        kernels=given.kernels,
        dropout=given.dropout,
        recompute=given.recompute,
        gathered_layers=given.gathered if given.zero == 3 else None,
    )
    return memory.working(training, micro_batch=given.micro_batch, sequence=given.sequence, part=_part(given.hardware, given.catalog), share=given.share)


def _calculations(commands: "argparse._SubParsersAction[_Parser]") -> None:
    """The four calculations and their flags. What a field disagrees about has no default."""

    def add(name: str, what: str, run: Callable[[argparse.Namespace], "Working"]) -> _Parser:
        command = commands.add_parser(name, help=what, description=what)
        command.add_argument("--json", action="store_true", help="print base SI units for a script")
        command.add_argument("--catalog", metavar="FILE", help="your own parts and models, over the shipped catalogue")
        command.set_defaults(run=lambda given: print(run(given).as_json() if given.json else run(given).as_text()))
        return command

    kv = add("kv", "KV cache: what a context costs in memory", _kv)
    kv.add_argument("--model", required=True, help="catalogue key, or path of a config.json")
    kv.add_argument("--tokens", type=int, required=True, help="prompt and answer together, per request")
    kv.add_argument("--batch", type=int, default=1, help="requests (default 1)")
    kv.add_argument("--dtype", required=True, help="how the cache is stored: bf16, fp8, …")
    kv.add_argument("--tp", type=int, default=1, help="tensor-parallel ranks (default 1)")
    kv.add_argument("--allocator", help="also what this allocator reserves: vllm-paged, hf-static, …")
    kv.add_argument("--block", type=int, help="tokens per block of a paged allocator")
    kv.add_argument("--reserve", type=int, help="tokens that a static allocator reserves")
    kv.add_argument("--batched", type=int, help="tokens that vllm-admission may prefill in one step")
    kv.add_argument("--hardware", help="how many such requests fit on this accelerator")
    kv.add_argument("--weights", help="how the weights are stored, for --hardware")
    kv.add_argument("--share", type=float, default=1.0, help="share of the memory that may be used, 0 to 1 (default 1: all that the driver reports)")

    allreduce = add("allreduce", "all-reduce and the other collectives: what communication costs", _allreduce)
    allreduce.add_argument("--size", required=True, help="NCCL's S, like 14GB")
    allreduce.add_argument("--ranks", type=int, required=True)
    allreduce.add_argument("--link", help="catalogue key of the link, like nvlink-4")
    allreduce.add_argument("--bandwidth", help="one-way rate of a link, like 50GB/s")
    allreduce.add_argument("--alpha", required=True, help="latency of one step, like 5us; 0s leaves it out")
    allreduce.add_argument("--op", default="all-reduce", help="all-reduce (default), reduce-scatter, all-gather, broadcast, all-to-all")
    allreduce.add_argument("--algorithm", default="ring", help="ring (default), halving-doubling, binomial-tree, pipelined-tree, …")

    roofline = add("roofline", "roofline: what binds a product or a whole forward pass", _roofline)
    roofline.add_argument("--hardware", required=True, help="catalogue key of the accelerator")
    roofline.add_argument("--dtype", required=True, help="number format: bf16, fp8, …")
    roofline.add_argument("--launch", default="0s", help="time to launch one kernel, like 5us (default 0s)")
    roofline.add_argument("--gemm", type=int, nargs=3, metavar=("M", "N", "K"))
    roofline.add_argument("--model", help="catalogue key, or path of a config.json")
    roofline.add_argument("--phase", choices=("prefill", "decode"), default="decode")
    roofline.add_argument("--batch", type=int, default=1)
    roofline.add_argument("--tokens", type=int, default=1024, help="prompt of a prefill, context of a decode step")
    roofline.add_argument("--causal", choices=("full", "half", "exact"), default="exact", help="how masked scores are counted (default exact: not at all)")
    roofline.add_argument("--unfused", action="store_true", help="attention writes its scores to memory")

    memory = add("memory", "training memory: what one GPU holds at its worst moment", _memory)
    memory.add_argument("--model", required=True, help="catalogue key, or path of a config.json")
    memory.add_argument("--recipe", required=True, help="megatron, zero-paper, autocast, pure-bf16, …")
    memory.add_argument("--zero", type=int, required=True, choices=(0, 1, 2, 3), help="ZeRO stage")
    memory.add_argument("--micro-batch", type=int, required=True)
    memory.add_argument("--sequence", type=int, required=True)
    memory.add_argument("--kernels", required=True, help="what is fused: korthikanti, eager, sdpa, fused")
    memory.add_argument("--recompute", required=True, choices=("none", "selective", "full"))
    memory.add_argument("--dropout", action="store_true")
    for degree in ("dp", "tp", "pp", "ep"):
        memory.add_argument(f"--{degree}", type=int, default=1)
    memory.add_argument("--expert-tp", type=int, help="tensor-parallel degree inside experts")
    memory.add_argument("--sp", action="store_true", help="sequence parallelism")
    memory.add_argument("--schedule", default="1f1b", help="gpipe, 1f1b (default), interleaved")
    memory.add_argument("--micro-batches", type=int, default=1, help="per step and pipeline (default 1)")
    memory.add_argument("--dtype", default="bf16", help="of activations (default bf16)")
    memory.add_argument("--gathered", type=int, default=2, help="ZeRO 3: layers gathered at once (default 2: one in use, one prefetched)")
    memory.add_argument("--hardware", help="does it fit this accelerator, and what would")
    memory.add_argument("--share", type=float, default=1.0, help="share of the memory that may be used, 0 to 1 (default 1)")


def _sources(given: argparse.Namespace) -> None:
    from threeloops.workings import sources

    print(sources.audit(key=given.key, overlay=given.catalog))


def _doctor(given: argparse.Namespace) -> None:
    from threeloops import doctor

    print(doctor.report())


def _open(given: argparse.Namespace) -> int:
    from threeloops import desk

    return desk.open_book(given.part, browser=not given.no_browser, root=desk.book_root())


def _reset(given: argparse.Namespace) -> None:
    from threeloops import desk

    copy, aside = desk.reset(given.part, desk.book_root())
    print(f"{copy} is fresh." + (f" The old one is kept as {aside}." if aside else " There was nothing of yours in it to keep."))


def _drill(given: argparse.Namespace) -> None:
    from threeloops.drills import terminal

    terminal.practise(given.topic, seed=given.seed)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = _Parser(prog="threeloops", description="Three Loops: predicted, counted and measured.")
    commands = top.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    _calculations(commands)
    sources = commands.add_parser("sources", help="every value of the catalogue with where it comes from")
    sources.add_argument("key", nargs="?", help="one part or model")
    sources.add_argument("--catalog", metavar="FILE")
    sources.set_defaults(run=_sources)
    commands.add_parser("doctor", help="what this machine has, and what the book will do without").set_defaults(run=_doctor)
    opener = commands.add_parser("open", help="open the reader's copy of the book in JupyterLab")
    opener.add_argument("part", nargs="?", help="number (2, 1.2) or a word of a part's title")
    opener.add_argument("--no-browser", action="store_true", help="print the address, open nothing")
    opener.set_defaults(run=_open)
    reset = commands.add_parser("reset", help="start a part's notebook afresh; the old one is kept aside")
    reset.add_argument("part")
    reset.set_defaults(run=_reset)
    drill = commands.add_parser("drill", help="questions in the terminal")
    drill.add_argument("topic", nargs="?", help="a family (kv_cache, …) or a drill's key")
    drill.add_argument("--seed", help="the same numbers again")
    drill.set_defaults(run=_drill)
    return top


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; a reader's mistake ends in one sentence and code 2, never in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may not know × and ⌈; a question mark is better than no answer
    given = parser().parse_args(words)
    try:
        return given.run(given) or 0
    except ValueError as error:
        print(f"threeloops: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `threeloops sources | head`
        return 0


if __name__ == "__main__":
    sys.exit(main())
