"""A quiz for a learning platform: a QTI 1.2 package, each question drawn by the platform from as many variants as
there are versions.

Platforms grade bare numbers, so each question names the unit to answer in, and each variant brings the interval of
numbers that count as right.

Source: IMS Global, Question and Test Interoperability, version 1.2, 2002; IMS Content Packaging, version 1.1.3 (the
        manifest). Field names question_type and
points_possible are those that Canvas reads; others ignore them.
"""

import html
import io
import re
import zipfile
from xml.etree.ElementTree import Element, SubElement

from threeloops.drills.engine.drill import seeded
from threeloops.paper import bare_numbers, qti_parts
from threeloops.paper import quiz as quizzes
from threeloops.paper.quiz import Asked, Quiz
from threeloops.room import question
from threeloops.room.kinds import choices

QTI_NAMESPACE = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
PACKAGE_NAMESPACE = "http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1"
CANVAS_NAMESPACE = "http://canvas.instructure.com/xsd/cccv1p0"
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the same quiz makes the same file, to the last byte
MEANT = {
    "k": "10^3",
    "M": "10^6",
    "G": "10^9",
    "T": "10^12",
    "P": "10^15",
    "Ki": "2^10",
    "Mi": "2^20",
    "Gi": "2^30",
    "Ti": "2^40",
}


def package(quiz: Quiz) -> bytes:
    """The zip to upload."""
    name = f"three-loops-{_plain(quiz.seed)}-{quiz.kind}"
    files = {
        "imsmanifest.xml": _manifest(name),
        f"{name}/{name}.xml": qti_parts.written(assessment(quiz, name)),
        f"{name}/assessment_meta.xml": _canvas_details(quiz, name),
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path, LONG_AGO), content)
    return packed.getvalue()


def assessment(quiz: Quiz, name: str) -> Element:
    """The questions: one section per idea, one item per variant."""
    root = Element("questestinterop", {"xmlns": QTI_NAMESPACE})
    whole = SubElement(root, "assessment", {"ident": name, "title": quiz.title})
    qti_parts.metadata(whole, {"cc_maxattempts": "1"})
    top = SubElement(whole, "section", {"ident": "root_section"})
    for idea in quizzes.picked(quiz):
        asked = quizzes.variants(quiz, idea.key)
        section = qti_parts.pick_one(top, f"{name}.{idea.key}", idea.title)
        unit = quizzes.unit_of(asked)
        for number, one in enumerate(asked, start=1):
            _item(section, one, unit, f"{name}.{idea.key}.{number}")
    return root


def _item(section: Element, asked: Asked, unit: str, ident: str) -> None:
    p = question.draw_of(asked.drill, asked.question.seed)
    fields = {"threeloops_idea": asked.idea, "threeloops_seed": asked.seed, "threeloops_unit": unit}
    title, prompt = asked.question.title, asked.drill.prompt(p)
    if asked.question.kind == "number":
        low, value, high = (
            bare_numbers.plain(number, counted=bool(asked.drill.whole)) for number in bare_interval(asked, unit)
        )
        told = _marked_up(prompt, wanted(asked, unit))
        qti_parts.number_item(section, ident, title, fields=fields, prompt=told, value=value, low=low, high=high)
        return
    rng = seeded("platform", asked.question.seed, asked.idea)
    if asked.question.kind == "choice":
        wrong = rng.sample(asked.drill.slips, min(choices.MOST_SLIPS, len(asked.drill.slips)))
        told, right = _marked_up(prompt, "Which is right?"), asked.drill.shown(quizzes.value(asked))
        others = [asked.drill.shown(slip.wrong(p)) for slip in wrong]
    else:
        made, *rest = rng.sample(asked.drill.slips, min(choices.MOST_SLIPS, len(asked.drill.slips)))
        told = _marked_up(
            prompt, f"A colleague says: {asked.drill.shown(made.wrong(p))}. That is wrong. What would you tell them?"
        )
        right, others = made.story, [slip.story for slip in rest]
    options = rng.sample([right, *others], len(others) + 1)
    qti_parts.choice_item(
        section,
        ident,
        title,
        fields=fields,
        prompt=told,
        options=[html.escape(option) for option in options],
        right=options.index(right),
    )


def bare_interval(asked: Asked, unit: str) -> tuple[float, float, float]:
    """Lowest, exact and highest right number in that unit."""
    scale = bare_numbers.factor(unit, like=asked.drill.unit)
    exact = quizzes.value(asked) / scale
    low, high = (edge / scale for edge in asked.drill.exactness.span(quizzes.value(asked)))
    return low, exact, high


def wanted(asked: Asked, unit: str) -> str:
    """How to answer a platform that compares bare numbers."""
    within = f"{asked.drill.exactness.told}."
    if unit == "times":
        return f"Give a plain number, a share as a decimal; {within}"
    prefix = re.match(r"(Ki|Mi|Gi|Ti|k|M|G|T|P)(?=B|FLOP)", unit)
    meant = f" (1 {unit} is {MEANT[prefix[1]]} {unit.removeprefix(prefix[1])})" if prefix else ""
    return f"Give the number in {unit}{meant}, and only the number, without the unit; {within}"


def _marked_up(prompt: str, last: str) -> str:
    return "".join(f"<p>{html.escape(line)}</p>" for line in [*prompt.splitlines(), last] if line.strip())


def _plain(seed: str) -> str:
    """The seed as it may stand in a file name; ASCII alone, and different seeds stay different."""
    return "".join(sign if re.match(r"[A-Za-z0-9-]", sign) else f"_{ord(sign):x}_" for sign in seed)


def _manifest(name: str) -> bytes:
    root = Element("manifest", {"identifier": f"{name}.manifest", "xmlns": PACKAGE_NAMESPACE})
    metadata = SubElement(root, "metadata")
    SubElement(metadata, "schema").text = "IMS Content"
    SubElement(metadata, "schemaversion").text = "1.1.3"
    SubElement(root, "organizations")
    resources = SubElement(root, "resources")
    questions = SubElement(resources, "resource", {"identifier": name, "type": "imsqti_xmlv1p2"})
    SubElement(questions, "file", {"href": f"{name}/{name}.xml"})
    SubElement(questions, "dependency", {"identifierref": f"{name}.details"})
    details = f"{name}/assessment_meta.xml"
    kind = "associatedcontent/imscc_xmlv1p1/learning-application-resource"
    SubElement(
        SubElement(resources, "resource", {"identifier": f"{name}.details", "type": kind, "href": details}),
        "file",
        {"href": details},
    )
    return qti_parts.written(root)


def _canvas_details(quiz: Quiz, name: str) -> bytes:
    """What Canvas keeps beside the questions; other platforms leave it."""
    root = Element("quiz", {"identifier": name, "xmlns": CANVAS_NAMESPACE})
    words = {
        "title": quiz.title,
        "description": f"Every question comes with one of {quiz.versions} sets of numbers.",
        "shuffle_answers": "true",
        "quiz_type": "assignment",
        "points_possible": f"{quiz.questions}.0",
        "allowed_attempts": "1",
    }
    for field, entry in words.items():
        SubElement(root, field).text = entry
    return qti_parts.written(root)
