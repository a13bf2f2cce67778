"""`threeloops trace`: where the time of a run went, by what torch's profiler or Nsight Systems wrote of it."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threeloops import checks
from threeloops.commands.trace import own_drill
from threeloops.units import MB, fmt_percent

if TYPE_CHECKING:
    from threeloops.inner_loop.profiled.rank_account import RankAccount
    from threeloops.inner_loop.profiled.rank_record import RankRecord
    from threeloops.inner_loop.profiled.rank_waits import RankWaits

ENDINGS = (".json", ".json.gz", ".sqlite")
HTML_HELP = "write the page into one HTML file, for a browser, instead of printing it"
BAR_FROM = 20 * MB  # of a file; smaller ones are read before anybody asks


def add_trace(commands: Any) -> None:
    """Add the command."""
    what = "your own run: where its time went, by what torch's profiler or Nsight Systems wrote of it"
    epilog = "example: threeloops trace run.json.gz --hardware h100-sxm"
    trace = commands.add_parser("trace", help=what, description=what, epilog=epilog)
    trace.add_argument(
        "path",
        metavar="FILE|FOLDER",
        help="run.json, run.json.gz, or report.sqlite of `nsys export`; a folder with one file a rank; what"
        " `trtexec --exportProfile` wrote, or a .log of --dumpProfile",
    )
    trace.add_argument("--hardware", help="the device, for the roof of its matmuls: h100-sxm5, H200, 4090")
    trace.add_argument("--catalog", metavar="FILE", help="your own parts, over the shipped catalogue")
    trace.add_argument(
        "--rank", type=int, help="of a folder: the rank to take apart (default: the one that waits most)"
    )
    trace.add_argument("--json", action="store_true", help="print base SI units for a script")
    trace.add_argument("--html", metavar="FILE", help=HTML_HELP)
    own_drill.add_drill(trace)
    trace.add_argument(
        "--simulated",
        metavar="ILLNESS",
        help='read nothing: write a simulated job into FILE, to try this on ("starved loader", "hidden syncs", …)',
    )
    trace.add_argument("--seed", type=int, default=1, help="of --simulated: which job (default: 1)")
    trace.set_defaults(run=run)


def run(given: argparse.Namespace) -> None:
    """Read, or write a simulated trace."""
    from threeloops.commands.named import part_named
    from threeloops.commands.trace import engine_page, told_page, trace_page
    from threeloops.inner_loop.profiled.rank_account import held_together, rank_account

    if given.simulated:
        print(_simulated(given.simulated, Path(given.path), given.seed))
        return
    own_drill.refuse_for_scripts(drill=given.drill, json=given.json, html=given.html)
    if (engine := engine_page.profile_in(Path(given.path))) is not None:
        _refuse_for_engines(given)
        print(engine_page.engine_json(engine) if given.json else engine_page.engine_text(engine))
        return
    part = part_named("hardware", given.hardware, given.catalog) if given.hardware else None
    accounts = [rank_account(record, rank=rank, part=part) for rank, record in _records(Path(given.path))]
    waits, accounts = held_together(accounts)
    shown = _shown(accounts, waits, given.rank)
    if given.drill:
        own_drill.pose(shown.suspects, place=given.drill, asks=trace_page.asks_of(shown))
    form = trace_page.as_json if given.json else trace_page.as_html if given.html else trace_page.as_text
    said = form(accounts, waits, shown, part)
    print(told_page.written(said, given.html, read=given.path) if given.html else said)


def _refuse_for_engines(given: argparse.Namespace) -> None:
    asked = {
        "--html": given.html,
        "--drill": given.drill,
        "--rank": given.rank is not None,
        "--hardware": given.hardware,
    }
    if refused := [flag for flag, said in asked.items() if said]:
        raise ValueError(
            f"{given.path} is the profile of a TensorRT engine, which has layers and no kernels or ranks: {refused[0]}"
            " says nothing of it; leave it out"
        )


def _records(path: Path) -> Iterator[tuple[int, "RankRecord"]]:
    """A file's record, or those of a folder, each with its rank: the file's own word for it, else its place."""
    from threeloops.inner_loop.profiled.nsys_report import is_report, read_report
    from threeloops.inner_loop.profiled.rank_record import read_record

    files = [path]
    if path.is_dir():
        files = sorted(one for one in path.iterdir() if one.name.endswith(ENDINGS))
        if not files:
            raise ValueError(f"{path} holds no {', no '.join(ENDINGS)}; give a file, or a folder with one a rank")
    place = 0
    for file in files:
        bar = _bar(file)
        own = read_report(str(file), told=bar) if is_report(file) else [read_record(str(file), told=bar)]
        for record in own:
            # the processes of a report are counted, on from those of the reports before
            yield place if record.rank is None or len(own) > 1 else record.rank, record
            place += 1


def _bar(file: Path) -> Callable[[int], object] | None:
    """How far a large file is read, on a terminal."""
    size = file.stat().st_size
    if size < BAR_FROM or not sys.stderr.isatty():
        return None

    def tell(at: int) -> None:
        end = "\n" if at >= size else ""
        print(f"\r{file.name}: {fmt_percent(at / size)} read ", end=end, file=sys.stderr, flush=True)

    return tell


def _shown(accounts: Sequence["RankAccount"], waits: "RankWaits | None", asked: int | None) -> "RankAccount":
    ranks = {one.rank: one for one in accounts}
    if asked is not None and asked not in ranks:
        raise ValueError(f"--rank {asked}: the files are of rank {', '.join(map(str, sorted(ranks)))}")
    most = max(waits.shares, key=lambda rank: waits.shares[rank]) if waits else min(ranks)
    return ranks[most if asked is None else asked]


def _simulated(illness: str, path: Path, seed: int) -> str:
    from threeloops.inner_loop.profiled.written_trace import write_trace
    from threeloops.simulate.inner_loop import ill_jobs

    checks.one_of(ill_jobs.KINDS, simulated=illness)
    write_trace(ill_jobs.trace(illness, seed=seed), path)
    return (
        f"{path} holds four steps of a simulated job ({illness}); `threeloops trace {path}` reads it, and so do viewers"
    )
