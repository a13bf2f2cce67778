"""A class on a hub, for real: accounts, JupyterHub and its proxy, nbgrader's exchange, one browser window each for the
teacher and two students. A set is released, fetched, answered, handed in, graded, and read about by those who did it.
"""

import contextlib
import json
import re
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from private_machine import Machine, machine, why_not
from submissions import asked, filled, maximum, released, right_number
from tests.chapters.conftest import chromium as chromium

from threeloops import wall_clock
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.student_draws import question

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=f"a hub needs accounts of its own: {why_not()}"),
]
SET, CODE = "kv_cache", "spring-27"
HUB = "/srv/hub"
TEACHER, STUDENTS = "grace", ("ada", "bob.x")
FORGER = "mallory"  # hands in a link under Ada's name
PASSWORD = "correct horse"
PATIENCE_MS = 120_000
FIRST = "one-token"  # the question that Bob answers, in the browser
DISABLED = ("Formgrader", "Create Assignment")
COMMAND = (sys.executable, "-m", "threeloops", "classroom")


@dataclass
class Story:
    """What the three saw, and how long each step took."""

    seconds: dict[str, float] = field(default_factory=dict)
    menus: dict[str, list[str]] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)  # of the whole notebook
    shown: dict[str, str] = field(default_factory=dict)  # the first question, as the browser shows it
    feedback: dict[str, str] = field(default_factory=dict)
    memory_bytes: dict[str, float] = field(default_factory=dict)
    marked: str = ""
    refused: dict[str, int] = field(default_factory=dict)  # address -> status, for a student

    @contextlib.contextmanager
    def timed(self, step: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[step] = time.monotonic() - began
        print(f"{self.seconds[step]:6.1f} s  {step}")


def free_ports() -> int:
    """The first of three ports in a row that nobody listens at."""
    for port in range(21000, 40000, 7):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for number in range(3):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port + number))
            return port
    raise AssertionError("no three free ports in a row")


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with machine(tmp_path_factory.mktemp("machine")) as opened:
        yield opened


@pytest.fixture(scope="module")
def hub(inside: Machine, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A hub, made by the commands of its README.md; its address."""
    assert inside.run("useradd", "--create-home", TEACHER).returncode == 0
    inside.path("/srv/class.csv").write_text("student,name\n" + "".join(f"{one},\n" for one in (*STUDENTS, FORGER)))
    port = free_ports()
    signed = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout /srv/key -out /srv/certificate"
    assert inside.run(*signed.split()).returncode == 0
    words = ("init", HUB, "--course", "Spring 27", "--teacher", TEACHER, "--roster", "/srv/class.csv")
    words += ("--authenticator", "pam", "--port", str(port), "--certificate", "/srv/certificate", "--key", "/srv/key")
    made = inside.run(*COMMAND, *words)
    assert made.returncode == 0, made.stderr
    made = inside.run("sh", f"{HUB}/accounts.sh")
    assert made.returncode == 0, made.stderr
    passwords = "\n".join(f"{name}:{PASSWORD}" for name in (TEACHER, *STUDENTS))
    assert inside.run("sh", "-c", f"echo '{passwords}' | chpasswd").returncode == 0
    log = tmp_path_factory.mktemp("hub") / "log"
    process = inside.start(sys.executable, "-m", "jupyterhub", "-f", f"{HUB}/jupyterhub_config.py", log=log)

    def runs() -> bool:
        return "JupyterHub is now running" in log.read_text()

    wall_clock.until(lambda: runs() or process.poll() is not None, limit_s=90, step_s=0.1)
    assert runs(), log.read_text()
    return f"https://127.0.0.1:{port}"


def logged_in(page: Any, hub: str, name: str) -> None:
    """Give name and password; the server is still to start."""
    page.goto(f"{hub}/hub/login")
    page.fill("input[name=username]", name)
    page.fill("input[name=password]", PASSWORD)
    page.click("#login_submit", no_wait_after=True)


def handed_out(page: Any, story: Story) -> None:
    """The teacher's part before the class: Formgrader, in its own tab, makes and releases the set."""
    row = page.locator("tr", has=page.locator("td.name a", has_text=re.compile(f"^{SET}$")))
    for step, button in (("generate", ".assign a"), ("release", ".release a")):
        with story.timed(step):
            row.locator(button).click()
            expect(page.locator(".modal")).to_contain_text("Success")
        page.locator(".modal").get_by_role("button", name="OK").click()
        expect(page.locator(".modal")).to_have_count(0)


def list_opened(page: Any) -> list[str]:
    """Open the assignment list; what else is in that menu."""
    page.locator(".lm-MenuBar-item", has_text="Nbgrader").click()
    labels = page.locator(".lm-Menu-itemLabel").all_text_contents()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile("^Assignment List$")).click()
    return [label for label in labels if label]


def fetched(page: Any) -> None:
    page.locator("#released_assignments_list").get_by_role("button", name="Fetch").click()
    page.locator("#fetched_assignments_list").get_by_role("button", name="Submit").wait_for()


def opened(page: Any) -> None:
    """Open the fetched notebook from the list."""
    fetched_list = page.locator("#fetched_assignments_list")
    fetched_list.locator("a.assignment-notebooks-link").click()
    fetched_list.locator(".nested_list_item a").click()
    page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()  # a cell run earlier asks for a kernel


def cell(page: Any, name: str) -> Any:
    """A cell of the set, brought into view: a long notebook draws no others."""
    ids = [one["id"] for one in released(SET)["cells"]]
    found = page.locator(f'.jp-Notebook .jp-Cell[data-windowed-list-index="{ids.index(name)}"]')
    found.scroll_into_view_if_needed()
    return found


def shown(page: Any, name: str) -> str:
    """What stands under a cell, as soon as anything does: a notebook that has just been run still moves."""
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < deadline:
        found = "\n".join(cell(page, name).locator(".jp-OutputArea-output").all_inner_texts())
        if found.strip():
            return found
        page.wait_for_timeout(200)
    raise AssertionError(f"nothing is shown under {name}")


def run_all(page: Any, path: Path) -> str:
    """Run every cell and save; what the notebook then holds as printed."""
    page.locator(".lm-MenuBar-item", has_text=re.compile("^Run$")).click()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile("^Run All Cells$")).click()
    deadline, cells = time.monotonic() + PATIENCE_MS / 1000, [{"execution_count": None}]
    while time.monotonic() < deadline:
        page.keyboard.press("Control+s")
        page.wait_for_timeout(200)
        with contextlib.suppress(ValueError):  # half of it is written
            cells = [one for one in json.loads(path.read_text())["cells"] if one["cell_type"] == "code"]
        if cells[-1]["execution_count"]:
            return "".join("".join(shown.get("text", "")) for one in cells for shown in one["outputs"])
    raise AssertionError("the notebook did not run to its end")


def submitted(page: Any) -> None:
    page.locator(".lm-TabBar-tabLabel", has_text="Assignments").click()
    page.locator("#fetched_assignments_list").get_by_role("button", name="Submit").click()
    page.locator("#submitted_assignments_list").get_by_role("button", name="Fetch Feedback").wait_for()


def feedback_read(page: Any) -> str:
    """Fetch the feedback, follow the list's own link, open the page: what it says."""
    listed = page.locator("#submitted_assignments_list")
    listed.get_by_role("button", name="Fetch Feedback").click()
    listed.locator("a", has_text="view feedback").click()
    page.locator(".jp-DirListing-item", has_text=f"{SET}.html").dblclick()
    body = page.frame_locator("iframe").locator("body")
    expect(body).to_contain_text("points")
    return str(body.inner_text())


def answered(student: str) -> dict[str, Any]:
    """All answers right, in a notebook that does not say whose it is: the hub knows."""
    notebook = filled(SET, student=student, course=CODE)
    (who,) = [cell for cell in notebook["cells"] if cell["id"] == "who"]
    who["source"] = 'student = "reader"\ncourse = "home"'
    return notebook


def written(inside: Machine, name: str, notebook: dict[str, Any]) -> None:
    """Put answers into a fetched notebook, as its owner's editor would."""
    path = inside.path(f"/home/{name}/{SET}/{SET}.ipynb")
    path.write_text(json.dumps(notebook))


def typed(page: Any, grade_id: str, text: str) -> None:
    """Write one answer into its cell, by keyboard."""
    cell(page, f"{grade_id}-answer").locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.type(text)


def forged(inside: Machine) -> None:
    """Somebody hands in under Ada's name, later than she did: a link to what the teacher will have collected."""
    folder = f"{HUB}/exchange/{CODE}/inbound/ada+{SET}+2099-01-01 00:00:00.000000 UTC+forged"
    link = f"ln -s {HUB}/course/collected/ada/{SET}/{SET}.ipynb '{folder}/{SET}.ipynb'"
    done = inside.run("sh", "-c", f"mkdir '{folder}' && {link} && touch '{folder}/timestamp.txt'", user=FORGER)
    assert done.returncode == 0, done.stderr


def in_terminal(page: Any, hub: str, inside: Machine, command: str) -> str:
    """Type a command into a terminal of JupyterLab; what it says, and last how it ended."""
    page.goto(f"{hub}/user/{TEACHER}/lab")
    page.locator(".jp-LauncherCard[data-category=Other]", has_text="Terminal").click()
    page.locator(".jp-Terminal .xterm-screen").click()
    page.keyboard.type(f"({command}; echo ended $?) > told.txt 2>&1\n")
    told = inside.path(f"/home/{TEACHER}/told.txt")
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not told.exists() or "\nended " not in told.read_text():
        assert time.monotonic() < deadline, told.read_text() if told.exists() else "nothing was typed"
        page.wait_for_timeout(200)
    assert told.read_text().endswith("\nended 0\n"), told.read_text()
    return told.read_text()


def memory_bytes(inside: Machine, name: str) -> float:
    """What a student's processes hold, a page that several share counted in shares (PSS)."""
    listed = inside.run("sh", "-c", f"for p in $(pgrep -u {name}); do cat /proc/$p/smaps_rollup; done").stdout
    return sum(float(found) for found in re.findall(r"^Pss: +(\d+) kB", listed, re.MULTILINE)) * 1024


@pytest.fixture(scope="module")
def story(hub: str, inside: Machine, chromium: Any) -> Story:
    """The whole of it, once."""
    told = Story()
    expect.set_options(timeout=PATIENCE_MS)
    with contextlib.ExitStack() as stack:
        pages = {}
        for name in (TEACHER, *STUDENTS):
            context = chromium.new_context(ignore_https_errors=True, viewport={"width": 1280, "height": 1000})
            stack.callback(context.close)
            context.set_default_timeout(PATIENCE_MS)
            pages[name] = context.new_page()
        with told.timed("log in, three at once"):
            for name, page in pages.items():
                logged_in(page, hub, name)
            pages[TEACHER].locator("td.name a").first.wait_for()
            for name in STUDENTS:
                pages[name].locator(".lm-MenuBar-item", has_text="Nbgrader").wait_for()
        handed_out(pages[TEACHER], told)
        for name in STUDENTS:
            page = pages[name]
            with told.timed(f"fetch ({name})"):
                told.menus[name] = list_opened(page)
                fetched(page)
            if name == "ada":
                written(inside, name, answered(name))
            with told.timed(f"open ({name})"):
                opened(page)
            if name != "ada":
                one = asked(SET)[FIRST]
                typed(page, FIRST, f"{one.name} = {right_number(one, student=name, course=CODE)!r}")
            with told.timed(f"run all ({name})"):
                told.outputs[name] = run_all(page, inside.path(f"/home/{name}/{SET}/{SET}.ipynb"))
            told.shown[name] = shown(page, f"{FIRST}-ask")
            told.memory_bytes[name] = memory_bytes(inside, name)
            with told.timed(f"hand in ({name})"):
                submitted(page)
        forged(inside)
        with told.timed("collect, grade, hand back"):
            told.marked = in_terminal(pages[TEACHER], hub, inside, f"threeloops classroom hub-mark {SET}")
        for name in STUDENTS:
            with told.timed(f"read feedback ({name})"):
                told.feedback[name] = feedback_read(pages[name])
        for address in ("/user/ada/formgrader", f"/user/{TEACHER}/lab", "/user/bob.x/lab", "/hub/admin"):
            answer = pages["ada"].context.request.get(hub + address)
            told.refused[address] = answer.status
    for name, held in told.memory_bytes.items():
        print(f"{held / 1e6:6.0f} MB {name}: server and kernel")
    return told


def test_each_student_reads_and_answers_their_own_numbers(story: Story) -> None:
    drill = DRILLS["kv-bytes-per-token"]
    for name in STUDENTS:
        own = question(drill, course=CODE, student=name)
        other = question(drill, course=CODE, student=STUDENTS[1 - STUDENTS.index(name)])
        assert story.shown[name].split() == own.split() != other.split()
    assert "Numbers for ada, course spring-27." in story.outputs["ada"]
    assert story.outputs["ada"].count("Right") >= len(asked(SET))


def test_grading_draws_the_same_numbers_and_feedback_comes_back(story: Story) -> None:
    best = f"{maximum(SET):g}"
    assert f"{best} of {best} points" in story.feedback["ada"]
    assert f"1 of {best} points" in story.feedback["bob.x"]
    assert re.search(rf"^ada +graded +{best} / {best}", story.marked, re.MULTILINE)
    assert re.search(rf"^bob-x +graded +1 / {best}", story.marked, re.MULTILINE)
    assert "the notebook says" not in story.marked, "who the hub knows need not write their name"


def test_a_hand_in_under_another_name_changes_nobodys_mark(story: Story, inside: Machine) -> None:
    assert f"was handed in by {FORGER}, and counts as theirs" in story.marked
    assert re.search(rf"^{FORGER} +no notebook", story.marked, re.MULTILINE)
    assert inside.path(f"{HUB}/course/collected/{FORGER}/{SET}/{SET}.ipynb").is_symlink(), "a link stays a link"


def test_students_have_nothing_of_a_teachers(story: Story) -> None:
    for name in STUDENTS:
        assert "Assignment List" in story.menus[name]
        assert not {*DISABLED} & {*story.menus[name]}
    assert all(status in (403, 404) for status in story.refused.values()), story.refused


@pytest.mark.parametrize(
    "words",
    [
        "cat /home/bob.x/kv_cache/kv_cache.ipynb",
        "ls /home/bob.x",
        f"ls {HUB}/course",
        f"cat {HUB}/course/solutions/{SET}/{SET}.ipynb",
        f"cat {HUB}/course/graded/grading.key",
        f"ls {HUB}/state",
        f"ls {HUB}/exchange/{CODE}/inbound",
        f"ls {HUB}/exchange/{CODE}/feedback",
        f"mv {HUB}/exchange/{CODE} {HUB}/exchange/mine",
        f"touch {HUB}/exchange/{CODE}/outbound/mine",
    ],
)
def test_what_a_student_may_not(words: str, story: Story, inside: Machine) -> None:
    tried = inside.run("sh", "-c", words, user="ada")
    assert tried.returncode != 0
    assert re.search("Permission denied|Operation not permitted", tried.stderr), tried.stderr


def test_the_limits_hold_for_what_a_student_starts(story: Story, inside: Machine) -> None:
    listed = inside.run("sh", "-c", "for p in $(pgrep -u ada); do cat /proc/$p/limits; done").stdout
    told = json.loads(inside.path(f"{HUB}/hub.json").read_text())
    held = re.findall(r"^Max data size +(\d+) +(\d+)", listed, re.MULTILINE)
    assert held
    assert {one for pair in held for one in pair} == {str(told["memory_bytes"])}
    assert set(re.findall(r"^Max processes +(\d+)", listed, re.MULTILINE)) == {str(told["processes"])}


def test_homes_are_closed_whatever_they_were(inside: Machine, story: Story) -> None:
    for name in (TEACHER, *STUDENTS):
        assert inside.path(f"/home/{name}").stat().st_mode & 0o777 == 0o700
