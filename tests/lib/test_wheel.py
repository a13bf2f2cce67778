"""The library installed as a wheel, without the book: every command answers in its own words, from another folder, with
no package beside those that the wheel declares.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from threeloops.cli import GROUPS
from threeloops.contents import book_root

# What the three declared packages need in their turn.
NEEDED = {"flexcache", "flexparser", "fsrs", "pint", "platformdirs", "prompt_toolkit", "typing_extensions", "wcwidth"}
RUN = """
import contextlib, importlib.abc, io, json, sys

class Alone(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if first not in {*sys.stdlib_module_names, "threeloops", *NEEDED} and not first.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

NEEDED = set(json.loads(sys.argv[1]))
sys.meta_path.insert(0, Alone())
import threeloops
from threeloops.cli import main
found = {"": threeloops.__file__}
for words, typed in json.loads(sys.argv[2]):
    out, err = io.StringIO(), io.StringIO()
    sys.stdin = io.StringIO(typed)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words.split())
        except SystemExit as end:
            code = end.code
    found[words] = (code, out.getvalue(), err.getvalue())
print(json.dumps(found))
"""
ANSWERED = {
    "kv --model llama3-8b --tokens 8k --cache q8_0": "544 MiB",
    "fit --model qwen3-32b --weights q4_k_m --hardware 4090 --tokens 8k": "fits on NVIDIA GeForce RTX 4090",
    "roofline --gemm 4096 4096 4096 --hardware h200 --dtype bf16": "TFLOP/s",
    "serve --model llama3-8b --hardware h100-sxm --users 4 --gpus 1 --prompt 1k --answer 100 --tp 1": "4 users on 1",
    "allreduce --size 14GB --ranks 8 --link nvlink-3 --alpha 5us": "all_reduce",
    "memory --model gpt2 --recipe megatron --zero 0 --micro-batch 1 --sequence 1k --kernels sdpa --recompute full": "G",
    "plan --model gpt2-xl --hardware a100-sxm4-80gb --gpus 4 --sequence 1k --batch 16 --node 2 --network 100g": "dp",
    "step --model gpt2-xl --hardware a100-sxm4-80gb --sequence 1k --batch 16 --dp 4 --zero 1 --recompute none": "s",
    "sources llama-3-8b": "config",
    "sources --types": "llama",
    "measured h100-sxm5": "github.com/ai-dynamo",
    "doctor": "not here",
    "record --list": "gemm",
    "progress": "Nothing answered yet. `threeloops drill --mode sprint`",
    "history export attempts.json": "0 attempts written",
    "drill kv-bytes-per-token --seed a": "`threeloops drill --continue",
    "drill code --seed a": ".threeloops",
    "quiz kv_cache --versions 2 --questions 2 --into quiz --seed a": "key.txt",
    "sheet interview": "Distributed training",
    "sheet references": "papers",
    "drills list kv_cache": "kv-bytes-per-token",
    "trace job.json --simulated launch-bound": "four steps of a simulated job",
    "trace job.json": "launch-bound",
    "log started.log": "by the formula 3.81 GiB",
    "grade --help": "my/drills/kv_cache",
    "classroom --help": "syllabus",
}
# An engine's log of its first seconds; a path in a model's name is looked up by its last folder.
STARTED = """\
INFO 10-06 00:00:02 [core.py:76] Initializing a V1 LLM engine (v0.10.2) with config: model='/m/Llama-3.1-8B',\
 dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=1, kv_cache_dtype=auto
INFO 10-06 00:00:10 [gpu_worker.py:276] Available KV cache memory: 3.81 GiB
INFO 10-06 00:00:10 [kv_cache_utils.py:849] GPU KV cache size: 31,232 tokens
"""
ASKS_FOR_THE_BOOK = ("open", "open 1.2", "reset roofline", "site", "grade hand-in")
# What needs a package beside those, and says which.
ASKS_FOR_NUMPY = "measured simulated"
HERE = "this needs the book itself, and here is the library alone"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel holds."""
    made = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(book_root() / name, made / name)
    shutil.copytree(
        book_root() / "lib", made / "lib", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyc")
    )
    build = "import setuptools.build_meta as made; print(made.build_wheel('.'))"
    told = subprocess.run([sys.executable, "-c", build], cwd=made, capture_output=True, text=True, check=True).stdout
    with zipfile.ZipFile(made / told.split()[-1]) as wheel:
        wheel.extractall(made / "installed")
    return made / "installed"


def test_every_command_answers_without_the_book(alone: Path, tmp_path: Path) -> None:
    (tmp_path / "started.log").write_text(STARTED, encoding="utf-8")
    asked = [[words, "1 kB\nquit\n"] for words in (*ANSWERED, *ASKS_FOR_THE_BOOK, ASKS_FOR_NUMPY)]
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(sorted(NEEDED)), json.dumps(asked)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(alone), "HOME": str(tmp_path), "USERPROFILE": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert Path(found.pop("")).is_relative_to(alone)
    for words, told in ANSWERED.items():
        code, out, err = found[words]
        assert (code, told in out) == (0, True), (words, out[-400:], err)
        assert "book.py" not in out or words == "doctor" or words.startswith(("sheet", "record")), (words, out[-400:])
    for words in ASKS_FOR_THE_BOOK:
        code, out, err = found[words]
        assert (code, out, err.count("\n"), HERE in err) == (2, "", 1, True), (words, out, err)
    code, out, err = found[ASKS_FOR_NUMPY]
    assert (code, out) == (2, "")
    assert err.startswith("threeloops: measured needs numpy, which is not installed here: `pip install numpy`, or")
    assert {command for names in GROUPS.values() for command in names} == {words.split()[0] for words in found}


def test_the_packages_that_are_let_in_are_those_that_are_declared() -> None:
    declared = tomllib.loads((book_root() / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    assert {one.partition(">")[0].replace("-", "_") for one in declared} == {"fsrs", "pint", "prompt_toolkit"} & NEEDED
