"""`threeloops trace`: a file, a folder of ranks, a page and its JSON, and what is refused."""

import io
import json
import math
import re
from html.parser import HTMLParser

import pytest
from tests.inner_loop.kineto_form import Run
from tests.inner_loop.nsys_form import export
from tests.inner_loop.test_engine_profile import GAP, ORIN, as_exported
from tests.inner_loop.test_profiled_ranks import run_of_ranks
from tests.policy.test_light_door import loaded_by

from threeloops.cli import main
from threeloops.commands.trace import own_trace, trace_page
from threeloops.drills.engine.bank import DRILLS
from threeloops.inner_loop.profiled.trace_suspects import TRY
from threeloops.simulate.inner_loop import ill_jobs


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["trace", *words]) == 0
    return capsys.readouterr().out


def with_products(tmp_path) -> str:
    run = Run()
    for step in range(1, 4):
        for _ in range(4):
            run.launch("nvjet_gemm", 500, op="aten::mm", dims=[[8192, 4096], [4096, 4096]])
        run.exchange(300, after=run.free[7])
        run.wait()
        run.step(step)
    return str(run.write(tmp_path / "run.json.gz"))


def test_every_suspect_has_something_to_try_and_a_drill_on_it() -> None:
    assert set(trace_page.DRILL) == set(TRY)
    assert set(trace_page.DRILL.values()) <= set(DRILLS)


def test_a_page_says_where_the_time_went_and_what_to_look_at(tmp_path, capsys) -> None:
    page = said(capsys, path := with_products(tmp_path), "--hardware", "h100-sxm")
    assert "run.json.gz: device 0 of rank 0 (NVIDIA H100 80GB HBM3), 3 steps in 6.91 ms" in page
    for row in (
        r"computes +86\.\d %",
        r"exchanges, not hidden +13\.\d % +0 % hidden",
        r"matmuls +12 +6\.00 ms +100 %",
    ):
        assert re.search(row, page)
    assert re.search(r"\[8,192, 4,096\] × \[4,096, 4,096\] bf16 +12 +6\.00 ms +3\.33 ms +\S+ ms +55\.6 %", page)
    first, second = re.findall(r"^(?:First suspect|Second): (.*?)\.", page, re.MULTILINE)
    assert (first, second) == ("below the roof", "exposed communication")
    assert "taught in  chapter 1, part 2, Roofline; `python3 book.py 1.2` opens it" in page
    assert "drill      threeloops drill roofline-measured-ceiling" in page
    assert "--hardware puts their roof beside them" in said(capsys, path)


def test_json_says_the_same_in_base_units(tmp_path, capsys) -> None:
    told = json.loads(said(capsys, with_products(tmp_path), "--hardware", "h100-sxm", "--json"))
    assert told["hardware"] == "h100-sxm5"
    assert sum(told["shares"].values()) == pytest.approx(1)
    (product,) = told["matmuls"]
    assert product["calls"] == 12
    assert product["bound_s"] < product["expected_s"]
    assert product["seconds"] == pytest.approx(6e-3)
    assert told["suspects"][0]["drill"] == "roofline-measured-ceiling"


def test_a_folder_is_one_run(tmp_path, capsys) -> None:
    run_of_ranks(tmp_path, ranks=3, slow=1, since=3)
    page = said(capsys, str(tmp_path))
    assert "waited for: rank 1, in every step since step 3; 6 exchanges found on all ranks of their group" in page
    assert "First suspect: straggling rank." in page
    assert "Rank 1 by itself: kernels of unknown roof" in page
    told = json.loads(said(capsys, str(tmp_path), "--json"))
    assert told["slowest"] == {"rank": 1, "since_step": "3"}
    assert [one["rank"] for one in told["ranks"]] == [0, 1, 2]
    assert "device 0 of rank 1" in said(capsys, str(tmp_path), "--rank", "1")


@pytest.mark.parametrize("illness", ["starved loader", "memory-bound"])
def test_a_simulated_job_can_be_tried(tmp_path, capsys, illness) -> None:
    path = str(tmp_path / "job.json.gz")
    assert "four steps of a simulated job" in said(capsys, path, "--simulated", illness)
    assert f"First suspect: {illness}." in said(capsys, path)
    assert illness in ill_jobs.KINDS


def test_a_simulated_job_is_written_over_none_but_its_like(tmp_path, capsys) -> None:
    own, path = with_products(tmp_path), str(tmp_path / "job.json")
    assert main(["trace", own, "--simulated", "starved loader"]) == 2
    assert "is there already, and holds no simulated job; give a name that is free" in capsys.readouterr().err
    assert "3 steps" in said(capsys, own)
    for illness in ("starved loader", "hidden syncs"):
        said(capsys, path, "--simulated", illness)
        assert f"First suspect: {illness}." in said(capsys, path)


def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path, capsys) -> None:
    run = Run()
    run.host("c10d::allreduce_", 5)
    (tmp_path / "empty").mkdir()
    for words, sentence in (
        ([str(tmp_path / "none.json")], "No such file or directory"),
        (
            [str(tmp_path / "empty")],
            "holds no .json, no .json.gz, no .sqlite; give a file, or a folder with one a rank",
        ),
        ([str(run.write(tmp_path / "a.json"))], "a.json holds nothing that computes between its first event"),
        ([with_products(tmp_path), "--rank", "4"], "--rank 4: the files are of rank 0"),
        ([with_products(tmp_path), "--hardware", "nvlink-4"], "--hardware nvlink-4: that has no arithmetic of its own"),
        (["x.json", "--simulated", "tired"], "--simulated 'tired' is not known. Known: starved loader, hidden syncs"),
    ):
        assert main(["trace", *words]) == 2
        told = capsys.readouterr().err
        assert sentence in told
        assert told.count("\n") == 1


def test_a_report_of_nsight_systems_is_read_the_same_way(tmp_path, capsys) -> None:
    runs = [Run(rank=rank) for rank in range(2)]
    for step in range(1, 4):
        for run in runs:
            run.launch("nvjet_gemm", 500)
            run.exchange(300, after=run.free[7])
            run.wait()
            run.step(step)
    export(path := tmp_path / "report.sqlite", runs)
    page = said(capsys, str(path))
    assert "report.sqlite: device 0 of rank 0 (NVIDIA H100 80GB HBM3), 3 steps in" in page
    assert "3 exchanges found on all ranks of their group" in page
    assert "schedule with warm-up" not in page
    assert "source:  NVIDIA, Nsight Systems, SQLite Export Schema Reference" in page
    (folder := tmp_path / "nodes").mkdir()
    for node in range(2):
        export(folder / f"node{node}.sqlite", runs)
    told = json.loads(said(capsys, str(folder), "--json"))
    assert [(one["rank"], one["file"]) for one in told["ranks"]] == [
        (0, "node0.sqlite"),
        (1, "node0.sqlite"),
        (2, "node1.sqlite"),
        (3, "node1.sqlite"),
    ]
    (tmp_path / "report.nsys-rep").write_bytes(b"x")
    assert main(["trace", str(tmp_path / "report.nsys-rep")]) == 2
    assert "`nsys export --type sqlite report.nsys-rep` makes of it" in capsys.readouterr().err


def test_a_file_that_was_cut_says_until_where_it_was_read(tmp_path, capsys) -> None:
    path = tmp_path / "run.json"
    run = Run()
    for _ in range(50):
        run.launch("gemm", 40)
    run.write(path)
    path.write_bytes(path.read_bytes()[:-900])
    assert re.search(r"run\.json ends in the middle: it was read until its event 1\d\d;", said(capsys, str(path)))


class Elements(HTMLParser):
    """What a browser makes of a page: elements, their attributes, and the text outside of styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_one_html_file_says_what_the_terminal_says_and_runs_nothing(tmp_path, capsys) -> None:
    hostile = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"
    run = Run()
    for step in range(1, 4):
        run.launch(f"nvjet_gemm{hostile}", 500)
        run.host(f"work{hostile}", 4000)
        run.step(step)
    path = str(run.write(tmp_path / "run.json.gz"))
    into = tmp_path / "page.html"
    assert "a browser opens it" in said(capsys, path, "--html", str(into))
    page = into.read_text(encoding="utf-8")
    seen = Elements(page)
    assert {tag for tag, _ in seen.tags} <= {
        *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "div", "i", "ul", "li", "section"),
        *("dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "code", "footer"),
    }
    assert not any(name in ("src", "href", "onerror") for _, attributes in seen.tags for name in attributes)
    assert any(f"nvjet_gemm{hostile}" in text for text in seen.texts)
    words = " ".join(" ".join(seen.texts).replace("`", "").split())
    for row in said(capsys, path).replace("`", "").splitlines():
        head = re.match(r"(First suspect|Second|Third): [^.]*", row)
        for part in [head[0]] if head else re.split(r"  +", row.strip()):
            assert part in words
    (bar,) = [attributes for tag, attributes in seen.tags if attributes.get("class") == "bar"]
    shares = [float(share) for share in re.findall(r"([\d.]+) %", bar["aria-label"] or "")]
    assert sum(shares) == pytest.approx(100, abs=0.5)
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page


def test_a_page_is_not_written_over_what_was_read(tmp_path, capsys) -> None:
    path = with_products(tmp_path)
    for words, sentence in (
        ([path, "--html", path], "is the file that is read; give the page another name"),
        ([path, "--html", ""], "--html '' names no file; give the page a name, like page.html"),
        ([path, "--html", "x.html", "--json"], "--html writes a page to read, and --json is for a script"),
        ([path, "--html", str(tmp_path / "no" / "x.html")], "No such file or directory"),
    ):
        assert main(["trace", *words]) == 2
        assert sentence in capsys.readouterr().err
    assert "3 steps" in said(capsys, path)


def test_what_rounding_leaves_is_neither_hidden_nor_a_pause(tmp_path, capsys) -> None:
    path = str(tmp_path / "job.json.gz")
    said(capsys, path, "--simulated", "hidden syncs")
    page = said(capsys, path)
    assert "  0 % hidden" in page
    assert not re.search(
        r"0\.0000|less than 10\.", page
    )  # no kernel of this job ends where the next one does not begin


def test_a_window_that_holds_next_to_nothing_sets_no_limit(tmp_path, capsys, monkeypatch) -> None:
    run = Run()
    run.launch("nvjet_tst_128x256", 10)
    run.at += 200_000
    run.launch("nvjet_tst_128x256", 10)
    path = str(run.write(tmp_path / "run.json"))
    page = said(capsys, path)
    assert "at most    no useful limit (over 100 times): the window holds little else" in page
    assert not re.search(r"\d{3} times as fast", page)
    assert "or         --drill 1 on this file: it asks you what half of it would bring" in page
    monkeypatch.setattr("sys.stdin", io.StringIO("2 times\n"))
    assert "You said 2; it comes out at 2. Well predicted." in said(capsys, path, "--drill")


def test_a_drill_with_the_traces_own_numbers(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("1.02\n"))
    page = said(capsys, with_products(tmp_path), "--hardware", "h100-sxm", "--drill")
    limit = re.search(
        r"First suspect: below the roof\..*?at most +([\d.]+) times", page[page.index("run.json.gz:") :], re.S
    )
    assert f"You said 1.02; it comes out at {limit[1]}" in page
    assert page.index("You said 1.02") < page.index("run.json.gz:")


def test_reading_needs_the_standard_library_alone(tmp_path) -> None:
    path = with_products(tmp_path)
    quietly = "import contextlib, io\nfrom threeloops.cli import main\nwith contextlib.redirect_stdout(io.StringIO()):"
    assert loaded_by(f"{quietly}\n    assert main(['trace', {path!r}]) == 0") == set()


def test_a_long_file_shows_how_far_it_is_read(tmp_path, capsys, monkeypatch) -> None:
    path = with_products(tmp_path)
    said(capsys, path)
    monkeypatch.setattr(own_trace, "BAR_FROM", 0)
    assert main(["trace", path]) == 0
    assert not capsys.readouterr().err  # nobody looks at a terminal
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["trace", path]) == 0
    assert "\rrun.json.gz: 100 % read \n" in capsys.readouterr().err


def test_each_suspect_has_a_drill_with_the_traces_own_numbers(tmp_path, capsys, monkeypatch) -> None:
    path = with_products(tmp_path)
    page = said(capsys, path, "--hardware", "h100-sxm")
    limits = re.findall(r"at most +([\d.]+) times", page)
    assert len(limits) == 2
    for place, (limit, name) in enumerate(zip(limits, ("First suspect", "Second"), strict=True), start=1):
        assert f"or         --drill {place} on this file: it asks you for this limit" in page
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{limit}\n"))
        told = said(capsys, path, "--hardware", "h100-sxm", "--drill", str(place))
        assert told.startswith(f"{name}: ")
        assert f"You said {limit}; it comes out at {limit}. Well predicted." in told
    assert "No drill: this file has 2 suspects, and --drill 3 asks for more." in said(capsys, path, "--drill", "3")


def test_what_takes_all_the_time_is_asked_about_by_its_half(tmp_path, capsys, monkeypatch) -> None:
    """A kernel that takes three quarters, of which no limit is known at 100 %: half of all is twice as fast."""
    run = Run()
    run.launch("attn_fwd", 10_000, ask=3)
    run.events = [event for event in run.events if event["cat"] == "kernel"]
    path = str(run.write(tmp_path / "run.json"))
    page = said(capsys, path)
    assert "Attention: 100 % of the time" in page
    assert "at most" not in page
    monkeypatch.setattr("sys.stdin", io.StringIO("2\n"))
    assert "You said 2; it comes out at 2. Well predicted." in said(capsys, path, "--drill")


def test_a_file_s_name_stands_before_a_bare_drill(tmp_path, capsys) -> None:
    path = with_products(tmp_path)
    with pytest.raises(SystemExit):
        main(["trace", "--drill", path])
    assert "a file's name stands before: threeloops trace FILE --drill" in capsys.readouterr().err


def test_a_leak_asks_when_the_memory_is_full(tmp_path, capsys, monkeypatch) -> None:
    said(capsys, path := str(tmp_path / "job.json.gz"), "--simulated", "memory leak", "--seed", "3")
    page = said(capsys, path)
    assert "or         --drill 1 on this file: it asks you when memory is full" in page
    ((kept, unit),) = re.findall(r"First suspect: memory leak\. Every step keeps ([\d.]+) (MB|GB) more", page)
    steps = math.floor(80 / float(kept) * (1000 if unit == "MB" else 1))
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{steps} steps\n"))
    told = said(capsys, path, "--drill")
    (counted,) = re.findall(rf"You said {steps}; it comes out at (\d+)", told)
    assert abs(int(counted) - steps) <= 1  # the page rounds what a step keeps
    assert "Well predicted." in told


def test_a_profile_of_tensorrt_is_told_by_kind_and_layer(tmp_path, capsys) -> None:
    log = tmp_path / "build.log"
    log.write_text("[I] Starting inference\n" + ORIN, encoding="utf-8")
    text = said(capsys, str(log))
    assert "4,932 runs: 1.11 ms a run" in text
    assert re.search(r"1\.03 ms +93\.1 % +whole block", text)
    assert text.index("Reformatting CopyNode for Input Tensor 0 to {") > text.index("ForeignNode[conv1/7x7")
    exported = tmp_path / "net.json"
    exported.write_text(as_exported(GAP, {0: "QuantizeLinear_2"}), encoding="utf-8")
    told = json.loads(said(capsys, str(exported), "--json"))
    assert told["runs"] == 1
    assert sum(layer["seconds"] for layer in told["layers"]) == pytest.approx(told["seconds"])
    assert told["by_kind"]["quantise"] == pytest.approx(95.232e-6)
    assert main(["trace", str(exported), "--html", str(tmp_path / "page.html")]) != 0
    assert "--html says nothing of it" in capsys.readouterr().err
