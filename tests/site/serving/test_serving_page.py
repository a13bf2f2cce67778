"""The page that sizes a service, as it is used: a load, a config.json of one's own, and what is wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lib.test_serve_on_page import TINY, USERS, told
from tests.site.conftest import Visit
from tests.site.test_site_phone import PHONE, wrong

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
DROP = """([name, content]) => {
  const held = new DataTransfer();
  held.items.add(new File([content], name));
  const told = {dataTransfer: held, bubbles: true, cancelable: true};
  for (const kind of ['dragover', 'drop']) {
    document.querySelector('#my-serving').dispatchEvent(new DragEvent(kind, told));
  }
}"""


def fill(page: Any, fields: dict[str, str]) -> None:
    """Put values into the fields, by their flags; what is not named is emptied, where it is typed."""
    for place in page.locator("#my-serving summary").all()[:5]:
        place.click()
    for box in page.locator(".serving-form input[type=text]").all():
        box.fill(fields.get(box.get_attribute("name"), ""))
    for flag in fields.keys() & {"--model", "--hardware", "--weights", "--cache", "--lengths", "--engine"}:
        page.locator(f".serving-form select[name='{flag}']").select_option(fields[flag])


def works_out(page: Any) -> str:
    """What is said in the end."""
    page.get_by_role("button", name="Work it out").click()
    page.wait_for_function(
        "() => !document.querySelector('.serving-form [type=submit]').disabled"
        " && !document.querySelector('#my-serving [role=status]').textContent.startsWith('Working')"
    )
    return str(page.locator("#my-serving [role=status]").inner_text())


def test_a_load_is_answered_as_by_the_command_and_a_wrong_one_by_its_field(visit: Callable[..., Visit]) -> None:
    page = visit("serve.html", scheme="dark").page
    asked = USERS | {"--weights": "bf16", "--cache": "bf16", "--lengths": "", "--engine": "vLLM"}
    asked |= {"--share": "0.92", "--other": "3GB"}
    fill(page, asked)
    here, there = works_out(page), told(asked)
    assert here == there["conclusion"]
    answer = page.locator("#serving-answer")
    answer.get_by_text(there["engine"][0][1]).wait_for()
    assert answer.locator("tbody tr").count() == len(there["table"]) - 1
    answer.get_by_text("The working, line by line").click()
    for name, formula, numbers, shown in there["lines"]:
        assert answer.get_by_text(name, exact=True).count() == 1
        assert all(answer.get_by_text(words).count() for words in (formula, numbers, shown))
    page.get_by_label("Rate", exact=True).fill("50/s")
    refused = works_out(page)
    assert "not both" in refused
    assert "“Users” 64" in refused
    assert not answer.inner_text()


def test_a_config_is_dropped_and_a_wrong_one_refused_on_a_phone(visit: Callable[..., Visit], tmp_path: Path) -> None:
    page = visit("serve.html", **PHONE).page
    fill(page, {flag: USERS[flag] for flag in USERS if flag != "--model"})
    page.evaluate(DROP, ["mine.json", json.dumps(TINY)])
    page.get_by_text("mine.json is the model now.").wait_for()
    assert works_out(page).startswith("4 users on 1 GPU")
    assert page.get_by_text("threeloops serve --model mine.json").count() == 1
    assert wrong(page) == []
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": [], "model": {}}))
    page.get_by_label("A config.json of your own").set_input_files(tmp_path / "tokenizer.json")
    page.get_by_text("tokenizer.json is the model now.").wait_for()
    refused = works_out(page)
    assert "is a tokenizer" in refused
    assert "--" not in refused
    (tmp_path / "empty.json").write_text("")
    page.get_by_label("A config.json of your own").set_input_files(tmp_path / "empty.json")
    page.get_by_text("empty.json is empty").wait_for()
