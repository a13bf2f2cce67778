"""`threeloops log`: a page and its JSON of an engine's log, a scrape and a training log, and what is refused."""

import gzip
import html
import io
import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.policy.test_light_door import loaded_by
from tests.product_loop.engine_logs import scraped, vllm_v1
from tests.product_loop.test_engine_logs import crowded, llama
from tests.training_loop.step_logs import megatron, titan, trainer
from tests.training_loop.test_step_logs import STARVED, STEADY

from threeloops.cli import main
from threeloops.commands.log import own_log, suspect_rows
from threeloops.drills.engine.bank import DRILLS
from threeloops.product_loop.logged import engine_suspects
from threeloops.training_loop.run.logged import step_suspects

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def said(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(["log", *map(str, words)]) == 0
    return capsys.readouterr().out


def written(path: Path, lines: Iterable[str]) -> Path:
    data = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def engine(folder: Path, name: str = "engine.log") -> Path:
    return written(folder / name, vllm_v1(crowded(), seats=64, blocks=420))


def test_every_suspect_has_something_to_try_and_a_drill_on_it() -> None:
    assert set(suspect_rows.DRILL) == {*engine_suspects.TRY, *step_suspects.TRY}
    assert set(suspect_rows.DRILL.values()) <= set(DRILLS)


def test_the_page_about_an_engine(tmp_path, capsys) -> None:
    page = said(capsys, engine(tmp_path), "--hardware", "h100-sxm")
    assert page.startswith("engine.log: vLLM 0.10.2, 8 moments in 80.0 s\n  model llama-3.1-8b (the log: meta-llama/")
    for row in (
        r"the cache is full +75\.0 % +8\.\d +33\.\d",
        r"weights: 15\.0 GiB; by the formula 15\.0 GiB \(bf16\)",
        r"cache: 6,720 tokens, 840 MiB; by the formula 840 MiB, 1\.000 of what is stated",
        r"MFU \d\.\d+ %: 2 FLOP for each weight of llama-3\.1-8b that multiplies a token, of 1 × h100-sxm5's dense",
    ):
        assert re.search(row, page), row
    assert re.findall(r"^(?:First suspect|Second): (.*?)\.", page, re.MULTILINE) == ["cache full", "no demand"]
    assert "taught in  chapter 3, part 3, KV cache; `python3 book.py 3.3` opens it" in page
    assert "drill      threeloops drill kv-largest-batch" in page
    assert "preemptions: vllm:num_preemptions_total of its /metrics" in page


def test_a_packed_log_says_the_same_and_a_cut_one_until_where_it_was_read(tmp_path, capsys) -> None:
    plain = said(capsys, engine(tmp_path))
    packed = engine(tmp_path, "engine.log.gz")
    assert said(capsys, packed).replace("engine.log.gz", "engine.log") == plain
    packed.write_bytes(packed.read_bytes()[:-300])
    assert re.search(r"engine\.log\.gz ends in the middle: it was read until its line \d+;", said(capsys, packed))


def test_json_says_the_same_in_base_units(tmp_path, capsys) -> None:
    told = json.loads(said(capsys, engine(tmp_path), "--json"))
    assert (told["engine"], told["model"], told["hardware"]) == ("vLLM", "llama-3.1-8b", None)
    assert sum(one["share"] for one in told["admission"].values()) == pytest.approx(1)
    assert told["cache"]["formula_bytes"] == 6720 * 131072
    assert told["suspects"][0]["drill"] == "kv-largest-batch"
    told = json.loads(said(capsys, written(tmp_path / "t.log", titan(STARVED)), "--dtype", "bf16", "--json"))
    assert told["hardware"] == "h100-sxm5"
    assert told["step_s"] == pytest.approx(2.02, rel=1e-3)
    assert told["lost"]["long_steps"]["number"] == 10
    assert told["rates"][-1]["mfu"] == pytest.approx(8111 * 51.5e9 / 989.4e12, rel=0.02)  # 6 × 8.03e9 and attention


def test_the_page_about_a_scrape(tmp_path, capsys) -> None:
    page = said(capsys, written(tmp_path / "metrics.txt", [scraped(crowded(), at=3, names="vllm")]))
    assert "metrics.txt: vLLM, a scrape of /metrics, 1 moment" in page
    assert "the log's model 'm' is not in the catalogue: --model names it" in page
    assert "First suspect: cache full. 77.5 % of requests' time is spent in the queue; 13 preemptions" in page
    assert "at most    4.44 times as fast" in page
    assert "prefix hits: 25.0 % of prompt tokens" in page
    assert "--model and --gpus would put the formula's bytes beside it" in page


def test_the_time_of_a_token_has_its_floor_for_a_limit(tmp_path, capsys) -> None:
    """At best a token takes as long as reading the weights does: 4.9 GB at a 4090's 1,008 GB/s."""
    page = said(capsys, written(tmp_path / "llama.log", llama(layers=33, prompt_ms=300, answer_ms=9000)))
    step_ms, ratio = re.search(r"making tokens\..*: ([\d.]+) ms a token, ([\d.]+) times", page).groups()
    assert float(step_ms) == pytest.approx(9000 / 99, rel=0.01)
    assert float(step_ms) / float(ratio) == pytest.approx(4.9, rel=0.05)


def test_the_page_about_a_training_run(tmp_path, capsys) -> None:
    log = written(tmp_path / "train.log", megatron(STEADY, save_every=10, save_s=60, flops=412.5))
    page = said(capsys, log, "--model", "llama3-70b", "--hardware", "h100-sxm")
    assert "412 TFLOP/s of one GPU, MFU 41.7 %\n    FLOPs: Megatron-LM's own count" in page
    assert "more than the peak: the model, GPUs, sequence or dtype of this line are not those of the log" in page
    assert "First suspect: time between steps." in page
    assert "before most of it stands a checkpoint" in page
    assert "Second: the step itself. 58.3 % of a step's time is not FLOPs at the peak: MFU 41.7 %." in page
    bare = said(capsys, written(tmp_path / "hf.log", trainer(STEADY)))
    assert "First suspect: the step itself. How far the typical step is from the peak the log does not say." in bare
    assert "record     --model, --hardware and --dtype" in bare


def test_two_counts_of_a_step_that_lie_apart_are_said_to(tmp_path, capsys) -> None:
    """Figures of Megatron-LM's issue 756 (Mixtral 8x7B on 16 H100), read with twice the sequence that fits them."""
    lines = [
        f" [2024-04-06 02:55:{5 * step + 35}] iteration {step:8}/     100 | consumed samples: {128 * step:12} |"
        " elapsed time per iteration (ms): 5410.6 | throughput per GPU (TFLOP/s/GPU): 241.4 | learning rate:"
        " 6.000000E-07 | global batch size:   128 | lm loss: 2.003316E+00 | loss scale: 1.0 | grad norm: 6.603 |"
        " number of skipped iterations:   0 | number of nan iterations:   0 |"
        for step in range(2, 5)
    ]
    path = written(tmp_path / "train.log", lines)
    given = ("--model", "mixtral-8x7b", "--gpus", "16", "--dtype", "bf16", "--hardware", "h100-sxm")
    assert "the two counts of FLOPs are 2.1 times apart" in said(capsys, path, *given, "--sequence", "4096")
    assert "the two counts" not in said(capsys, path, *given, "--sequence", "2048")


def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path, capsys) -> None:
    (tmp_path / "empty.log").write_bytes(b"")
    (tmp_path / "blank.log").write_bytes(b"\n\n  \n")
    (tmp_path / "binary.log").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "torn.gz").write_bytes(gzip.compress(b"x" * 999)[:40] + b"torn")
    (tmp_path / "other.log").write_text("nginx: GET / 200\n" * 30)
    for words, sentence in (
        ([tmp_path / "none.log"], "No such file or directory"),
        ([tmp_path], "is a folder; give one log of it"),
        ([tmp_path / "empty.log"], "empty.log is empty; give what an engine or a training run wrote"),
        ([tmp_path / "blank.log"], "blank.log is empty"),
        ([tmp_path / "binary.log"], "binary.log is no text, and so no log"),
        ([tmp_path / "torn.gz"], "torn.gz"),
        ([tmp_path / "other.log"], "other.log is no log that is known here (30 lines were read); what works: logs of"),
        ([engine(tmp_path), "--hardware", "nvlink-4"], "--hardware nvlink-4: that has no arithmetic of its own"),
        ([engine(tmp_path), "--model", "lama"], "--model 'lama' is not known"),
    ):
        assert main(["log", *map(str, words)]) == 2
        told = capsys.readouterr().err
        assert sentence in told
        assert told.count("\n") == 1


def test_one_html_file_says_what_the_terminal_says(tmp_path, capsys) -> None:
    train = written(tmp_path / "train.log", titan(STARVED))
    for path, words in ((engine(tmp_path), ("--hardware", "h100-sxm")), (train, ())):
        into = tmp_path / f"{path.stem}.html"
        assert "a browser opens it" in said(capsys, path, *words, "--html", into)
        page = into.read_text(encoding="utf-8")
        plain = html.unescape(re.sub(r"<(?:/?code|style.*?</style)>", "", page, flags=re.DOTALL)).replace("\n", " ")
        for row in said(capsys, path, *words).replace("`", "").splitlines():
            for part in re.split(r"  +", row.strip()):
                first = re.sub(r"^((?:First suspect|Second|Third): .*?)\. .*", r"\1", part)
                assert first in plain, first
    (path := tmp_path / "odd.log").write_text(engine(tmp_path).read_text().replace("meta-llama/", "<b>meta/"))
    said(capsys, path, "--html", tmp_path / "odd.html")
    assert "<b>" not in (tmp_path / "odd.html").read_text(encoding="utf-8")
    assert main(["log", str(path), "--html", str(path)]) == 2
    assert "is the file that is read" in capsys.readouterr().err


def test_an_engine_that_only_began_says_what_it_stated(tmp_path, capsys) -> None:
    lines = [line for line in vllm_v1(crowded(), seats=64, blocks=420) if "Avg" not in line]
    page = said(capsys, written(tmp_path / "start.log", lines))
    assert "start.log: vLLM 0.10.2, no periodic line" in page
    assert "by the formula 840 MiB" in page
    assert "No suspect" in page


def test_utf_16_is_read_as_such(tmp_path, capsys) -> None:
    path = tmp_path / "powershell.log"
    path.write_bytes("\r\n".join(titan(STARVED)).encode("utf-16"))
    assert "First suspect: long steps." in said(capsys, path)


def test_reading_needs_the_standard_library_alone(tmp_path) -> None:
    path = str(engine(tmp_path))
    quietly = "import contextlib, io\nfrom threeloops.cli import main\nwith contextlib.redirect_stdout(io.StringIO()):"
    assert loaded_by(f"{quietly}\n    assert main(['log', {path!r}]) == 0") == set()


def test_a_drill_with_the_logs_own_numbers(tmp_path, capsys, monkeypatch) -> None:
    """75 % of the time some wait, so that the limit of the page, 2.48, is asked for before it is printed."""
    for typed, verdict in (("2.5x", "You said 2.5; it comes out at 2.48. Well predicted."), ("", "Skipped: it comes")):
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{typed}\n"))
        page = said(capsys, engine(tmp_path), "--drill")
        assert page.index("First suspect: cache full.") < page.index(verdict) < page.index("engine.log: vLLM")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    blank = [line for line in vllm_v1(crowded(), seats=64, blocks=420) if "Avg" not in line]
    page = said(capsys, written(tmp_path / "start.log", blank), "--drill")
    assert "No drill: this file has no suspects, and --drill 1 asks for more." in page
    assert main(["log", str(engine(tmp_path)), "--drill", "--json"]) == 2
    assert "--drill asks you a question, and --json is for a script" in capsys.readouterr().err


def test_a_suspect_without_a_limit_is_asked_about_with_another_number(tmp_path, capsys, monkeypatch) -> None:
    page = said(capsys, engine(tmp_path))
    assert "Second: no demand." in page
    assert "or         --drill 2 on this file: it asks you how long one request takes from token to token" in page
    (pace,) = re.findall(r"from token to token: ([\d.]+ m?s) with", page)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{pace}\n"))
    told = said(capsys, engine(tmp_path), "--drill", "2")
    running, rate = map(float, re.search(r"([\d.]+) run and ([\d.]+) tokens", told.replace(",", "")).groups())
    assert f"You said {pace}; it comes out at {pace}. Well predicted." in told
    assert running / rate == pytest.approx(float(pace.split()[0]) / (1000 if "ms" in pace else 1), rel=0.02)
    monkeypatch.setattr("sys.stdin", io.StringIO("43200\n"))  # 86,400 s / 2 s
    told = said(capsys, written(tmp_path / "hf.log", trainer(STEADY)), "--drill")
    assert "A typical step takes 2.00 s. How many fit into a day? You said 43200; it comes out at 43,200" in told
    assert "Well predicted." in told


def test_a_long_file_shows_how_far_it_is_read(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(own_log, "BAR_FROM", 0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["log", str(engine(tmp_path))]) == 0
    assert "\rengine.log: 100 % read \n" in capsys.readouterr().err


def test_the_example_of_the_help_runs_and_stands_in_the_readme(tmp_path, capsys, monkeypatch) -> None:
    assert f"$ threeloops log {own_log.EXAMPLE}\n" in README
    engine(tmp_path)
    monkeypatch.chdir(tmp_path)
    said(capsys, *own_log.EXAMPLE.split())
    with pytest.raises(SystemExit):
        main(["log", "--help"])
    assert f"example: threeloops log {own_log.EXAMPLE}" in " ".join(capsys.readouterr().out.split())


def test_a_number_of_thousands_of_digits_is_no_number(tmp_path, capsys) -> None:
    lines = list(vllm_v1(crowded(), seats=64, blocks=420))
    odd = [re.sub(r"(max_seq_len=|Running: )\d+", rf"\g<1>{'9' * 5000}", line) for line in lines[:8]]
    page = said(capsys, written(tmp_path / "odd.log", [*odd, *lines]))
    assert "First suspect: cache full." in page
    assert "inf" not in page
    assert "llama.log is no log that is known here" in refused(capsys, tmp_path, f"n_slots = {'9' * 400}")


def refused(capsys, tmp_path, line: str) -> str:
    assert main(["log", str(written(tmp_path / "llama.log", [line]))]) == 2
    return str(capsys.readouterr().err)
