"""On a page: what `threeloops serve` answers, asked by the fields of a form and told in the form's own words. It runs
in the reader's browser.

>>> import json
>>> asked = {"--model": "llama-3-8b", "--hardware": "h100-sxm5", "--prompt": "1k", "--answer": "100", "--users": "4"}
>>> told = json.loads(answered(json.dumps(asked), "", "", lambda sentence, seconds: None))
>>> told["refused"]
'“Users” needs the GPUs that they share, for example “GPUs” 8; how many a load needs says “Rate”'
>>> told = json.loads(answered(json.dumps(asked | {"--gpus": "1"}), "", "", lambda sentence, seconds: None))
>>> told["conclusion"][:23]
'4 users on 1 GPU, by ex'
"""

import argparse
import json
import re
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from threeloops.commands.named import model_named
from threeloops.commands.released import with_model_said
from threeloops.commands.serve.answer import from_flags
from threeloops.commands.serve.options import add_serve_flags
from threeloops.commands.typed import in_flags
from threeloops.commands.working import Working
from threeloops.site.serving.fields import LABELS

LIMIT_S = 600.0
Tell = Callable[[str, float], object]  # what begins now, as the sentence due if it does not end, and its seconds
# What a refusal says of other commands -> what helps on a page.
_ELSEWHERE = {
    "`threeloops sources --types` lists the types that are": "one of the catalogue's models may have its sizes",
    " The path of a config.json is taken, too.": "",
}
_FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)(?:/--[a-z-]+)*")  # with its second name, as argparse has it
_ENGINE_LINE = re.compile(r"in \S+'s flags(, (prefill|decode))?")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message.removeprefix("argument "))


def answered(asked: str, name: str, config: str, tell: Tell) -> str:
    """The calculation, or why there is none, as JSON. `config` is a config.json of the reader's own, a letter a byte;
    empty where the model is one of the catalogue.
    """
    tell(f"It did not come to its end in {LIMIT_S:g} s.", LIMIT_S)
    given = [(flag, value.strip()) for flag, value in json.loads(asked).items() if value.strip()]
    with tempfile.TemporaryDirectory() as folder:
        if config:
            path = Path(folder) / (Path(name).name or "config.json")
            path.write_bytes(config.encode("latin-1"))
            given = [("--model", str(path)), *given]
        try:
            working = _worked_out([f"{flag}={value}" for flag, value in given])
            told = _told(working, [word for both in given for word in both])
        except ValueError as error:
            told = {"refused": in_page_words(in_flags(str(error).splitlines()[0], _parser(), []))}
        said = json.dumps(told, ensure_ascii=False).replace(f"{folder}/", "")
    tell("", 0)
    return said


def _parser() -> _Parser:
    parser = _Parser(add_help=False, allow_abbrev=False)
    add_serve_flags(parser)
    parser.add_argument("--catalog")
    return parser


def _worked_out(words: list[str]) -> Working:
    given = _parser().parse_args(words)
    return with_model_said("serve", from_flags(given), given, model_named(given.model, given.catalog))


def _told(working: Working, words: list[str]) -> dict[str, Any]:
    said = in_page_words
    engine = {name: why for name, why in working.reasons if _ENGINE_LINE.fullmatch(name)}
    return {
        "title": working.title,
        "conclusion": said(working.conclusion),
        "inputs": [(name, said(value)) for name, value in working.inputs.items()],
        "table": working.table,
        "lines": [(line.name, line.formula, line.numbers, line.shown) for line in working.lines],
        "reasons": [(name, said(why)) for name, why in working.reasons if name not in engine],
        "engine": list(engine.items()),
        "assumes": [said(sentence) for sentence in working.assumes],
        "sources": working.sources,
        "command": shlex.join(["threeloops", "serve", *words]),
    }


def in_page_words(sentence: str) -> str:
    """A sentence of the command with the page's fields instead of its flags.

    >>> in_page_words("a rate needs a promise to be kept: --ttft 500ms, --itl 40ms or --tpot 40ms")
    'a rate needs a promise to be kept: “TTFT” 500ms, “ITL” 40ms or “TPOT” 40ms'
    """
    for there, here in _ELSEWHERE.items():
        sentence = sentence.replace(there, here)
    return _FLAG.sub(lambda flag: f"“{LABELS[flag[1]]}”" if flag[1] in LABELS else flag[0], sentence)
