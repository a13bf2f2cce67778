"""The flags of `threeloops record`, which must not wait for what measures."""

import argparse


def add_record_flags(record: argparse.ArgumentParser) -> None:
    """The flags of `threeloops record`."""
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
