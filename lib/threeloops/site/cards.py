"""A drill as a card on a page: the question as it is read without a script, with the numbers of one seed; and its
working, folded, where the book shows it. A script (static/cards.js) makes it one that can be answered.
"""

import html
import itertools

from threeloops import units
from threeloops.drills.coding.tasks import TASKS
from threeloops.drills.engine.bank import DRILLS, FAMILIES
from threeloops.drills.engine.code_task import CodeTask
from threeloops.room import preparation
from threeloops.site.answering import SEED, put


def quick_check(key: str) -> str:
    """A question between the paragraphs of a part, its working folded."""
    working = html.escape(put(key, SEED).working)
    folded = f'<details><summary>The working</summary><pre tabindex="0">{working}</pre></details>'
    return _card(key, folded, said=f"Quick check: {DRILLS[key].title}")


def graded(key: str) -> str:
    """A question of a drill set. Its answer is nowhere on the page."""
    return _card(key, "", said=DRILLS[key].title)


def function(key: str, name: str, stub: str, title: str) -> str:
    """A function to be written, with what stands there before anything is. A script (static/functions.js) lets it be
    written and tried.
    """
    about = f'data-function="{key}" data-name="{name}" data-kind="{"task" if key in TASKS else "drill"}"'
    return (
        f'<section class="drill" id="{key}" {about} aria-label="{html.escape(title)}">'
        f'<p class="drill-title">{html.escape(title)}</p>'
        f'<pre class="drill-stub" tabindex="0">{html.escape(stub)}</pre></section>'
    )


def task(one: CodeTask) -> str:
    """A small task to be written as code."""
    return function(one.key, one.name, one.starter(SEED), f"{one.title}: {one.target_s / units.minute:g} minutes")


def _card(key: str, below: str, *, said: str) -> str:
    about = f'data-drill="{key}" data-family="{DRILLS[key].family}"'
    return (
        f'<section class="drill" {about} aria-label="{html.escape(said)}">'
        f'<p class="drill-title">{html.escape(said)}</p>'
        f'<div class="drill-question">{_paragraphs(put(key, SEED).text)}</div>{below}</section>'
    )


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{html.escape(line)}</p>" for line in text.splitlines() if line.strip())


def any_drill() -> str:
    """A list of every drill, and a card for the one that is chosen; hidden until a script can fill it."""
    groups = "".join(
        f'<optgroup label="{html.escape(family.replace("_", " "))}">'
        + "".join(
            f'<option value="{drill.key}" data-loop="{drill.loop}">{html.escape(drill.title)}</option>'
            for drill in drills
        )
        + "</optgroup>"
        for family, drills in FAMILIES.items()
    )
    tracks = "".join(
        f'<option value="track:{track}" data-loops="{" ".join(loops)}">{track}</option>'
        for track, loops in preparation.TRACKS.items()
        if track != preparation.EVERYTHING
    )
    families = "".join(
        f'<option value="family:{name}">{name}</option>' for name in (family.replace("_", " ") for family in FAMILIES)
    )
    first = next(itertools.chain.from_iterable(FAMILIES.values()))
    return (
        '<div id="drill-ways" class="drill-form" hidden><label for="drill-among">Among</label>'
        ' <select id="drill-among">'
        f'<option value="">all drills</option><optgroup label="interview tracks">{tracks}</optgroup>'
        f'<optgroup label="families">{families}</optgroup></select>'
        ' <button type="button" id="drill-random">At random</button>'
        ' <button type="button" id="drill-due">What is due</button></div>'
        '<p><label for="drill-choice">Drill</label> '
        f'<select id="drill-choice">{groups}</select></p>'
        f'<section class="drill" id="any-drill" data-drill="{first.key}" data-family="{first.family}"'
        f' aria-label="{html.escape(first.title)}" hidden>'
        f'<p class="drill-title" data-named>{html.escape(first.title)}</p>'
        f'<div class="drill-question">{_paragraphs(put(first.key, SEED).text)}</div>'
        '<p><a id="drill-address" href="?">The address of this very question</a></p></section>'
    )
