"""`threeloops log`: where the time of an engine or a training run went, by what it wrote."""

import argparse
import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from threeloops.commands.named import HARDWARE_HELP, MODEL_HELP
from threeloops.commands.trace import own_drill
from threeloops.commands.trace.own_trace import HTML_HELP
from threeloops.commands.typed import context, whole
from threeloops.units import MB, fmt_percent

EXAMPLE = "engine.log --model llama-3.1-8b --hardware h100-sxm"
BAR_FROM = 20 * MB  # of a file; smaller ones are read before anybody asks
LOOK_AGAIN, ENOUGH = 1000, 100  # lines: how often it is asked whose file this is, and from how many on it is clear
WORKS = (
    "what works: logs of vLLM, SGLang and llama.cpp's server with their periodic lines, their /metrics, and training"
    " logs of Megatron-LM, torchtitan and the HF Trainer; `threeloops trace` reads a profiler's file"
)


def add_log(commands: Any) -> None:
    """Add the command."""
    what = "your own engine or training run: what limits it, by its log or a scrape of its /metrics"
    log = commands.add_parser("log", help=what, description=what, epilog=f"example: threeloops log {EXAMPLE}")
    log.add_argument("path", metavar="FILE", help="engine.log, metrics.txt or train.log, packed (.gz) or not")
    log.add_argument("--model", help=f"where the log does not state it: {MODEL_HELP}")
    log.add_argument("--hardware", help=f"where the log does not state it: {HARDWARE_HELP}")
    log.add_argument("--catalog", metavar="FILE", help="your own parts and models, over the shipped catalogue")
    log.add_argument("--dtype", help="what is multiplied, where the log does not state it: bf16, fp16, fp8")
    log.add_argument("--weights", help="how the weights are stored, where it is not --dtype: fp8, awq, q4_k_m")
    log.add_argument("--cache", help="how keys and values are stored, where the log does not state it: bf16, fp8, q8_0")
    log.add_argument(
        "--gpus", "--tp", dest="gpus", type=whole, help="of the training run; that share an engine's model"
    )
    log.add_argument("--sequence", type=context, help="tokens of one sequence of the training run")
    log.add_argument("--batch", type=whole, help="sequences of one step of the training run, on all GPUs")
    log.add_argument("--max-num-seqs", type=whole, help="requests that an engine runs at once at most")
    log.add_argument("--html", metavar="FILE", help=HTML_HELP)
    own_drill.add_drill(log)
    log.add_argument("--json", action="store_true", help="print base SI units for a script")
    log.set_defaults(run=run)


class _Reader(Protocol):
    """Who takes lines of one kind of log."""

    record: Any
    taken: int

    def take(self, line: str) -> bool: ...


def run(given: argparse.Namespace) -> None:
    """Read, and say."""
    from threeloops.commands.trace import told_page

    own_drill.refuse_for_scripts(drill=given.drill, json=given.json, html=given.html)
    reader, cut = _read(Path(given.path))
    name = Path(given.path).name
    if hasattr(reader.record, "software"):
        from threeloops.commands.log import training_page

        said = training_page.answer(reader.record, given, name=name, cut=cut)
    else:
        from threeloops.commands.log import engine_page

        said = engine_page.answer(reader.record, given, name=name, cut=cut)
    print(told_page.written(said, given.html, read=given.path) if given.html else said)


def _readers() -> list[_Reader]:
    from threeloops.product_loop.logged.engine_lines import LlamaLines, SglangLines, VllmLines
    from threeloops.product_loop.logged.scraped_metrics import ScrapedMetrics
    from threeloops.training_loop.run.logged.step_lines import MegatronLines, TitanLines, TrainerLines

    return [VllmLines(), SglangLines(), LlamaLines(), ScrapedMetrics(), MegatronLines(), TitanLines(), TrainerLines()]


def _read(path: Path) -> tuple[_Reader, str]:
    """Whoever took most of its lines, and a sentence where the file was cut.

    Raises:   ValueError for a file that nobody here can read
    """
    from threeloops.product_loop.logged.scraped_metrics import ScrapedMetrics
    from threeloops.training_loop.run.logged.log_lines import LogLines

    if path.is_dir():
        raise ValueError(f"{path} is a folder; give one log of it")
    readers = _readers()
    with path.open("rb") as file:
        lines = LogLines(file, name=path.name, told=_bar(path))
        asked = readers
        for line in lines:
            for reader in asked:
                with contextlib.suppress(ValueError, OverflowError):  # a number of thousands of digits
                    reader.take(line)
            if len(asked) > 1 and lines.num_lines % LOOK_AGAIN == 0:
                asked = _whose(asked)
    best = max(readers, key=lambda reader: reader.taken)
    if isinstance(best, ScrapedMetrics):
        best.close()
    if best.taken:
        return best, lines.cut
    stated = [reader for reader in readers if getattr(reader.record, "kv_tokens", None)]
    if not stated:
        raise ValueError(f"{path.name} is no log that is known here ({lines.num_lines:,} lines were read); {WORKS}")
    return stated[0], lines.cut  # an engine's start, and nothing since


def _whose(readers: list[_Reader]) -> list[_Reader]:
    """Whoever alone has taken lines, and enough of them that the file is theirs; else all."""
    took = [reader for reader in readers if reader.taken]
    return took if len(took) == 1 and took[0].taken >= ENOUGH else readers


def _bar(file: Path) -> Callable[[int], object] | None:
    """How far a large file is read, on a terminal."""
    size = file.stat().st_size
    if size < BAR_FROM or not sys.stderr.isatty():
        return None

    def tell(at: int) -> None:
        print(
            f"\r{file.name}: {fmt_percent(at / size)} read ",
            end="\n" if at >= size else "",
            file=sys.stderr,
            flush=True,
        )

    return tell
