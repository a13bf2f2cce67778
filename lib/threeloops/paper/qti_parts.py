"""The elements of a QTI 1.2 item, in the order that its document type definition wants them.

Source: IMS Global, Question and Test Interoperability: ASI XML Binding Specification, version 1.2, 2002 (items,
        sections, selection and ordering)
"""

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element, SubElement

RESPONSE = "response1"
FULL_SCORE = "100"


def metadata(parent: Element, fields: Mapping[str, str]) -> None:
    """Labelled fields; a platform reads those that it knows and leaves the others."""
    group = SubElement(parent, "qtimetadata")
    for label, entry in fields.items():
        one = SubElement(group, "qtimetadatafield")
        SubElement(one, "fieldlabel").text = label
        SubElement(one, "fieldentry").text = entry


def material(parent: Element, marked_up: str) -> None:
    """A piece of text, as HTML."""
    SubElement(SubElement(parent, "material"), "mattext", {"texttype": "text/html"}).text = marked_up


def number_item(
    parent: Element, ident: str, title: str, *, fields: Mapping[str, str], prompt: str, value: str, low: str, high: str
) -> None:
    """A question for a bare number, right from `low` to `high`."""
    item, presentation = _item(parent, ident, title, {"question_type": "numerical_question", **fields}, prompt)
    answer = SubElement(presentation, "response_str", {"ident": RESPONSE, "rcardinality": "Single"})
    SubElement(SubElement(answer, "render_fib", {"fibtype": "Decimal"}), "response_label", {"ident": "answer1"})
    either = SubElement(_right_when(item), "or")
    SubElement(either, "varequal", {"respident": RESPONSE}).text = value
    between = SubElement(either, "and")
    SubElement(between, "vargte", {"respident": RESPONSE}).text = low
    SubElement(between, "varlte", {"respident": RESPONSE}).text = high


def choice_item(
    parent: Element,
    ident: str,
    title: str,
    *,
    fields: Mapping[str, str],
    prompt: str,
    options: Sequence[str],
    right: int,
) -> None:
    """A question with one right option, which the platform shuffles."""
    item, presentation = _item(parent, ident, title, {"question_type": "multiple_choice_question", **fields}, prompt)
    answer = SubElement(presentation, "response_lid", {"ident": RESPONSE, "rcardinality": "Single"})
    offered = SubElement(answer, "render_choice", {"shuffle": "Yes"})
    for place, option in enumerate(options):
        material(SubElement(offered, "response_label", {"ident": f"option{place}"}), option)
    SubElement(_right_when(item), "varequal", {"respident": RESPONSE}).text = f"option{right}"


def _item(parent: Element, ident: str, title: str, fields: Mapping[str, str], prompt: str) -> tuple[Element, Element]:
    item = SubElement(parent, "item", {"ident": ident, "title": title})
    metadata(SubElement(item, "itemmetadata"), {"points_possible": "1.0", **fields})
    presentation = SubElement(item, "presentation")
    material(presentation, prompt)
    return item, presentation


def _right_when(item: Element) -> Element:
    """The condition under which the item scores in full, still to be filled in."""
    processing = SubElement(item, "resprocessing")
    score = {"maxvalue": FULL_SCORE, "minvalue": "0", "varname": "SCORE", "vartype": "Decimal"}
    SubElement(SubElement(processing, "outcomes"), "decvar", score)
    when = SubElement(processing, "respcondition", {"continue": "No"})
    condition = SubElement(when, "conditionvar")
    SubElement(when, "setvar", {"action": "Set", "varname": "SCORE"}).text = FULL_SCORE
    return condition


def pick_one(parent: Element, ident: str, title: str) -> Element:
    """A section of which every student gets one item."""
    section = SubElement(parent, "section", {"ident": ident, "title": title})
    selection = SubElement(SubElement(section, "selection_ordering"), "selection")
    SubElement(selection, "selection_number").text = "1"
    SubElement(SubElement(selection, "selection_extension"), "points_per_item").text = "1.0"
    return section


def written(root: Element) -> bytes:
    """A whole file."""
    ET.indent(root)
    body: str = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'.encode()
