"""What every explorer keeps: both ends of every control, a picture and words where no kernel runs, and turns that
leave the browser most of the time. No browser needed; tests/chapters/test_browser_explorers.py looks at the pages.
"""

import base64
import importlib
import itertools
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from threeloops import widgets
from threeloops.figures import still
from threeloops.units import ms
from threeloops.widgets.controls import Control, several, slider
from threeloops.widgets.explorer import Explorer

FOLDER = Path(widgets.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(FOLDER).with_suffix("").parts)
    for path in FOLDER.rglob("*.py")
    if "\ndef explorer(" in path.read_text(encoding="utf-8")
)
every_explorer = pytest.mark.parametrize("name", MODULES)


def made(name: str) -> Explorer[Any]:
    return importlib.import_module(f"threeloops.widgets.{name}").explorer()


def told(explorer: Explorer[Any]) -> dict[str, Any]:
    """What the page was told last."""
    return json.loads(explorer.panel.shown)


def test_all_explorers_of_the_book_are_looked_at() -> None:
    chapters = [path.read_text() for path in Path(__file__).parents[2].glob("chapters/*.ipynb")]
    assert sum(len(re.findall(r"\.explorer\(\)", chapter)) for chapter in chapters) <= len(MODULES)
    assert len(MODULES) >= 18


@every_explorer
def test_every_control_goes_to_both_ends_whatever_the_others_do(name: str) -> None:
    explorer, shown = made(name), set()
    before: tuple[tuple[Control, Any], ...] = ()
    ends = [[(control, end) for end in control.ends] for control in explorer.controls.values()]
    for stand in itertools.product(*ends):
        for control, end in [moved for moved in stand if moved not in before]:
            explorer.turn(**{control.name: _nearest(explorer.controls[control.name], end)})
            assert "cannot be shown" not in told(explorer)["said"], (name, stand)
        shown.add(explorer.panel.shown)
        before = stand
    assert len(shown) > 1


def _nearest(control: Control, end: Any) -> Any:
    """The end, or the last option where another control has taken it away."""
    return end if control.kind == "several" or end in control.values else control.values[-1]


@every_explorer
def test_the_drawing_fits_a_column_at_both_ends_of_every_control(name: str) -> None:
    explorer = made(name)
    for control in list(explorer.controls.values()):
        for end in control.ends:
            explorer.turn(**{control.name: _nearest(explorer.controls[control.name], end)})
            figure = explorer.view.figure
            assert _width(figure.spec) <= 640, (name, control.name, end)
            slim = figure.live_narrow_body or figure.body
            bare = {key: value for key, value in figure.spec.items() if key not in {"title", *figure.body}}
            # shown in 358 pixels, letters of 13 are 11
            assert name == "system_map" or _width(bare | slim) <= 358 / 11 * 13, (name, control.name, end)


def _width(spec: dict[str, Any]) -> float:
    return float(re.search(r'<svg[^>]* width="([\d.]+)"', still.svg(spec))[1])


@every_explorer
def test_every_place_gets_something_to_show(name: str) -> None:
    explorer = made(name)
    data, metadata = explorer._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == explorer.panel.model_id
    picture = base64.b64decode(data["image/png"])
    assert picture.startswith(still.SIGNATURE)
    assert len(picture) < 120_000
    assert explorer._viewed(explorer.still).figure.title in data["text/plain"]  # the picture may stand elsewhere
    assert len(metadata["image/png"]["alt"]) > 60
    page = told(explorer)
    assert page["said"] == explorer.view.summary
    assert page["table"] == explorer.view.table
    assert page["alt"] == explorer.view.figure.alt
    assert {control["name"] for control in page["controls"]} == set(page["standing"])


@pytest.mark.parametrize("name", [name for name in MODULES if name != "system_map"])  # it has no chart on the page
def test_the_page_draws_from_its_parts_what_the_still_picture_shows(name: str) -> None:
    explorer = made(name)
    page, figure = told(explorer), explorer.view.figure
    params = [{"name": signal, "value": value} for signal, value in page["signals"].items()]
    rows = {row: json.loads(values) for row, values in page["rows"].items()}
    drawn = still.svg({**json.loads(explorer.panel.chart), "params": params, "datasets": rows})
    whole = {key: value for key, value in figure.spec.items() if key not in ("title", "description")}
    whole["config"] = {**whole["config"], "background": "transparent"}
    assert _uncounted(drawn) == _uncounted(still.svg(whole))
    slim, chart = figure.live_narrow_body, json.loads(explorer.panel.chart)
    form = {**chart, **chart.get("usermeta", {}).get("narrow", {})}
    drawn = still.svg({**form, "params": params, "datasets": rows})
    assert _uncounted(drawn) == _uncounted(still.svg({k: v for k, v in whole.items() if k not in figure.body} | slim))
    assert '"values": [{' not in explorer.panel.chart


def _uncounted(svg: str) -> str:
    """Without the numbers that the renderer gives to clips, which go on from drawing to drawing."""
    return re.sub(r"clip\d+", "clip", svg)


def test_new_rows_and_other_ends_of_an_axis_leave_the_specification() -> None:
    """What is not built anew is drawn in a third of the time."""
    for name, turn in {
        "inner_loop.roofline": {"batch": 64},
        "training_loop.memory": {"micro_batch": 2},
        "product_loop.batching": {"step": 44},
        "driving.sensor_data": {"cameras": 7},
    }.items():
        explorer = made(name)
        before = explorer.panel.chart
        explorer.turn(**turn)
        assert explorer.panel.chart == before, name


@every_explorer
def test_a_turn_leaves_the_browser_most_of_the_time(name: str) -> None:
    """A redraw may take 60 ms in all. The best of some, so that a busy machine does not fail it."""
    explorer, taken = made(name), []
    for control in list(explorer.controls.values()):
        for end in control.ends:
            start = time.process_time()
            explorer.turn(**{control.name: _nearest(explorer.controls[control.name], end)})
            taken.append(time.process_time() - start)
    assert min(taken) < 0.05


def test_a_setting_that_cannot_be_shown_is_said_and_leaves_the_last_one() -> None:
    def view(state: Any) -> Any:
        if state.batch == 64:
            raise ValueError("batch=64 must be at most 8")
        return importlib.import_module("threeloops.widgets.inner_loop.roofline_view").view(state)

    from threeloops.widgets.inner_loop import roofline

    explorer = Explorer(roofline.START, view=view, controls=roofline.controls)
    explorer.turn(batch=64)
    assert told(explorer)["said"] == "This cannot be shown: batch=64 must be at most 8."
    assert explorer.state == roofline.START
    assert told(explorer)["standing"]["batch"] == explorer.controls["batch"].place(8)


def test_a_control_that_is_not_there_is_refused_with_the_ones_that_are() -> None:
    with pytest.raises(ValueError, match="control='bacth' is not known; did you mean 'batch'"):
        made("inner_loop.roofline").turn(bacth=8)


def test_a_value_that_is_no_option_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="micro_batch=5 must be one of 1, 2, 3, 4, 6, 8"):
        made("training_loop.memory").turn(micro_batch=5)


def test_a_page_that_is_behind_stays_within_the_options() -> None:
    explorer = made("training_loop.scaling")
    explorer.panel.turned = {"serial": 1, "turns": [["gpus", 400]]}
    assert explorer.state.gpus == explorer.controls["gpus"].values[-1]


def test_turns_that_come_together_count_in_the_order_of_the_reader() -> None:
    """A busy kernel is told of several at once: the last slider's time belongs to the stage that was chosen before."""
    explorer = made("driving.deadline")
    stage, own = explorer.controls["stage"], explorer.controls["own_s"]
    turns = [["stage", stage.place("lift")], ["own_s", own.place(5 * ms)], ["stage", stage.place("heads")]]
    explorer.panel.turned = {"serial": 1, "turns": [*turns, ["own_s", own.place(3 * ms)]]}
    assert explorer.state.own[stage.place("lift")] == 5 * ms
    assert explorer.state.own[stage.place("heads")] == 3 * ms
    assert told(explorer)["standing"]["own_s"] == own.place(3 * ms)


def test_places_and_values_go_both_ways() -> None:
    one = slider("share", "share", {"a half": 0.5, "all": 1.0})
    assert [one.at(one.place(value)) for value in one.values] == [0.5, 1.0]
    some = several("formats", "formats", ("E2M1", "BF16"))
    assert some.place(("BF16",)) == [1]
    assert some.at([1, 0]) == ("E2M1", "BF16")
    assert some.at([]) == ()
