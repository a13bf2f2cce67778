"""Who hands a set in together: `classroom groups`. What it does stands in `threeloops.classroom.term.groups`."""

import argparse
from pathlib import Path
from typing import Any


def add_groups(verbs: Any) -> None:
    """Add the verb to the group of a term's."""
    verb = verbs.add_parser("groups", help="a set is handed in by groups: one notebook counts for all members")
    verb.add_argument("--term", default=".", metavar="FOLDER", help="where term.toml lies (default: this folder)")
    verb.add_argument("set", metavar="SET", help="a drill set, like kv_cache")
    verb.add_argument(
        "list", nargs="?", metavar="GROUPS.csv", help="columns group and student (default: the roster's sections)"
    )
    verb.add_argument("--none", action="store_true", help="everybody hands in alone again")
    verb.set_defaults(run=_groups)


def _groups(given: argparse.Namespace) -> None:
    from threeloops import units
    from threeloops.classroom.term import groups, people, settings
    from threeloops.drills.engine.student_draws import plain_id

    term = settings.read(Path(given.term))
    if given.none:
        if given.list:
            raise ValueError("--none takes all groups back; leave the list out")
        groups.drop(term, given.set)
        print(f"{given.set}: everybody hands in alone; collect again what was collected of groups.")
        return
    found = groups.keep(term, given.set, Path(given.list) if given.list else None)
    for group, members in found.items():
        print(f"{group}: {', '.join(members)}")
    inside = {student for members in found.values() for student in members}
    alone = [one.student for one in people.kept(term.roster) if plain_id(one.student) not in inside]
    print(
        f"{given.set}: {units.counted(len(found), 'group')} of {units.counted(len(inside), 'student')}"
        + (f"; alone: {', '.join(alone)}" if alone else "")
        + ". What was collected before is as it was; collect it again."
    )
