"""The commands that say where a number comes from: sources, measured, doctor and record. What they do stands in
`sources`, `measured`, `record` and `threeloops.doctor`, which take a while to load.
"""

import argparse
from typing import Any


def add_evidence(commands: Any) -> None:
    """Add the four commands."""
    sources = commands.add_parser("sources", help="every value of the catalogue with where it comes from")
    sources.add_argument("key", nargs="?", help="one part or model")
    sources.add_argument("--keys", action="store_true", help="only the names of parts and models")
    sources.add_argument("--types", action="store_true", help="only the model types of a config.json that are read")
    sources.add_argument("--catalog", metavar="FILE")
    sources.set_defaults(run=_sources)
    measured = commands.add_parser(
        "measured", help="what kernels, steps and servers took on others' GPUs, and how far expected times are from it"
    )
    measured.add_argument(
        "part",
        nargs="?",
        help="one accelerator; `steps`: training steps; `served`: served tokens; `simulated`: the same, every request"
        " by itself (default: all accelerators)",
    )
    measured.set_defaults(run=_measured)
    commands.add_parser("doctor", help="what this machine has, and what the book will do without").set_defaults(
        run=_doctor
    )
    record = commands.add_parser(
        "record", help="measure this machine's GPU, or its CPU, into a stamped file that the book replays"
    )
    record.add_argument(
        "--quick",
        action="store_true",
        help="small sizes, a few seconds, no compiler; such cases have names of their own",
    )
    record.add_argument("--device", help="cpu or cuda (default: the GPU where torch sees one)")
    record.add_argument(
        "--part",
        metavar="KEY",
        help="the catalogue's key of this hardware, where the name that it reports does not say it",
    )
    record.add_argument(
        "--note", default="", metavar="WORDS", help='what else bears on the figures, for the stamp: "on battery"'
    )
    record.add_argument(
        "--into", metavar="FOLDER", help="where to write, and where --table looks too (default my/recorded in the book)"
    )
    record.add_argument(
        "--table", action="store_true", help="measure nothing: every recorded case beside its prediction"
    )
    record.add_argument(
        "--ceilings",
        help=(
            "for --table: predict from the datasheet, or from what was measured (default: the datasheet, where there is"
            " one)"
        ),
    )
    record.add_argument(
        "--missing", action="store_true", help="only the cases that no recording of this hardware has yet"
    )
    record.add_argument(
        "--counters",
        action="store_true",
        help="count instead of timing: sectors, turns and instructions of our kernels, by NVIDIA's ncu",
    )
    record.add_argument(
        "--traces", action="store_true", help="take single steps apart, kernel by kernel, by torch's profiler"
    )
    record.add_argument("--list", action="store_true", help="measure nothing: the names of all cases")
    record.set_defaults(run=_record)


def _sources(given: argparse.Namespace) -> None:
    from threeloops.commands import sources

    if given.types:
        print(sources.types())
    else:
        keys = sources.keys(overlay=given.catalog) if given.keys else ""
        print(keys or sources.audit(key=given.key, overlay=given.catalog))


def _measured(given: argparse.Namespace) -> None:
    from threeloops.commands.measured import kernels, served, steps

    of = {
        "steps": steps.report,
        "served": served.report,
        "simulated": served.simulated_report,
    }
    print(of[given.part]() if given.part in of else kernels.report(given.part))


def _doctor(given: argparse.Namespace) -> None:
    from threeloops import doctor

    print(doctor.report())


def _record(given: argparse.Namespace) -> None:
    from threeloops.commands import record

    record.run(given)
