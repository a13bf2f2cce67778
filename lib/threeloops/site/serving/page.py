"""The page that sizes a service: its words and its form. A script (static/serving_page.js) shows the form, and Python
in the browser answers it (commands/serve/on_page.py).
"""

import html

from threeloops.facts import hardware
from threeloops.models import catalogue
from threeloops.site.serving.fields import FIELDS, FOLDED, Field

WORDS = """\
How many GPUs carry a load so that its promises hold, or what so many users see of given GPUs: the calculator of
`threeloops serve`, with its working. A model comes from the catalogue, or from a `config.json` of your own, dropped on
this page. Everything is worked out on your machine and nothing is sent; with the first answer Python comes to your
browser, about ten megabytes. Requests are then simulated one by one, which takes from some seconds to a minute or two.

What stands here between bound and expected is taught in chapter 3; what each field means, `threeloops serve --help`
says."""


def serving() -> str:
    """The page, as markdown."""
    return f"(page-serve)=\n# Size a service\n\n{WORDS}\n\n```{{raw}} html\n{form()}\n```\n"


def form() -> str:
    """The form, hidden until a script can answer it."""
    groups = "".join(_group(title, fields) for title, fields in FIELDS.items())
    return (
        '<div id="my-serving" hidden><form class="serving-form" novalidate>'
        '<div class="serving-drop"><p><label>A config.json of your own, chosen or dropped anywhere on this form'
        ' <input type="file" accept=".json"></label></p></div>'
        f'{groups}<p class="drill-form"><button type="submit" class="drill-main">Work it out</button></p></form>'
        '<p role="status" class="drill-said"></p><div id="serving-answer"></div></div>'
    )


def _group(title: str, fields: tuple[Field, ...]) -> str:
    asked = f'<div class="serving-fields">{"".join(map(_field, fields))}</div>'
    if title in FOLDED:
        return f"<details><summary>{html.escape(title)}</summary>{asked}</details>"
    return f"<fieldset><legend>{html.escape(title)}</legend>{asked}</fieldset>"


def _field(field: Field) -> str:
    choices = _choices(field)
    if not choices:
        told = f'value="{html.escape(field.first)}" placeholder="{html.escape(field.like)}"'
        control = f'<input type="text" name="{field.flag}" {told} autocomplete="off" spellcheck="false">'
    else:
        control = f'<select name="{field.flag}">{"".join(_option(field, *one) for one in choices.items())}</select>'
    return f"<label>{html.escape(field.label)} {control}</label>"


def _choices(field: Field) -> dict[str, str]:
    """What may be chosen -> how it is shown."""
    if field.flag == "--model":
        return {key: key for key in sorted(catalogue.model_keys())}
    if field.flag == "--hardware":
        parts = (hardware.part(key) for key in hardware.part_keys())
        return {part.key: part.name for part in parts if part.peaks and part.family != "cpus"}
    return {choice: choice or "none: two means" for choice in field.choices}


def _option(field: Field, value: str, shown: str) -> str:
    chosen = " selected" if value == field.first else ""
    return f'<option value="{html.escape(value)}"{chosen}>{html.escape(shown)}</option>'
