"""Attacks by code on what the judge compares, and on the functions that it calls."""

from attacks import KEPT, SET, Attack, attacked, function, running
from submissions import Notebook, asked, set_source

LIAR = """
class Liar(float):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __sub__(self, other): return Liar(0)
    def __rsub__(self, other): return Liar(0)
    def __abs__(self): return Liar(0)
    def __array_ufunc__(self, *a, **k): return True
    def __float__(self): return 0.0
    def __hash__(self): return 0
    def __repr__(self): return "24.5 GB"
"""

OWN_LIBRARY = """
import os, sys
os.makedirs('/tmp/threeloops/drills')
open('/tmp/threeloops/__init__.py', 'w').write('')
sys.path.insert(0, '/tmp')
for name in list(sys.modules):
    if name.startswith('threeloops'): del sys.modules[name]
import threeloops
"""

JUDGE_REPLACED = """
import threeloops.drills.engine.judge as judge
judge.judge = lambda *a: judge.Verdict(status='right', message='Right.')
"""

LEAK = """
import sys
def reserved_bytes(**given):
    print('STOLEN-BY', given)
    print('STOLEN-BY', given, file=sys.stderr)
    raise ValueError(f'STOLEN-BY {given}')
"""

LEAKING_TYPE = """
def reserved_bytes(**given):
    raise type(f'STOLEN-BY{sorted(given.values())}', (Exception,), {})()
"""

ALL_EQUAL = (
    LIAR + "batch_cache = latent_cache = quantised_cache = unwritten_share = conversations = config_cache = Liar()"
)

LYING_TEXT = """
class Text(str):
    def __str__(self): return '24.5 GB'
    def __getitem__(self, key): return self
    def __len__(self): return 3
    def encode(self, *a): return b'24.5 GB'
    def __eq__(self, other): return True
    def __hash__(self): return 0
batch_cache = latent_cache = quantised_cache = Text('1')
"""

LYING_CLASS = """
class Number:
    @property
    def __class__(self): return float
    def __float__(self): return 1.0
    def __repr__(self): return '1.0'
    def item(self): raise KeyboardInterrupt
batch_cache = Number()
class Index(int):
    def __index__(self): return 7
    def __float__(self): raise SystemExit
latent_cache = Index(3)
class Item:
    def item(self):
        import os
        print('from within'); return '24.5 GB'
quantised_cache = Item()
"""

SLOW_NAME = """
import time
class Slow(float):
    def __float__(self): time.sleep(100)
    def __repr__(self): time.sleep(100)
batch_cache = Slow(1)
"""

LEAKING_LINE = """
def reserved_bytes(**given):
    number = given['tokens'] % 100_000 + 100_000
    exec(compile(chr(10) * (number - 1) + 'raise ValueError', 'your file', 'exec'))
"""

LEAKING_SLOWLY = """
import time
def reserved_bytes(**given):
    open('/tmp/draws', 'a').write(f'STOLEN-BY {given}')
    open('/dev/shm/draws', 'a').write(f'STOLEN-BY {given}')
    raise LookupError
"""

LEAKING_BY_GLOBALS = """
import sys, math, json
def reserved_bytes(**given):
    math.isfinite = lambda x: (_ for _ in ()).throw(SystemExit)
    json.dumps = lambda *a: 'STOLEN-BY'
    return 1.0
"""


def exit_everywhere(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if cell["id"].endswith("-answer") and not cell["id"].startswith(KEPT) and cell["cell_type"] == "code":
            cell["source"] = "import os\nos._exit(0)"


def odd_answers(notebook: Notebook) -> None:
    values = ("float('nan')", "float('inf')", "10 ** 10000", "[1, 2]", "'9' * 10**6", "lambda: 3")
    numbers = [one for one in asked(SET).values() if one.kind == "number" and one.grade_id != KEPT]
    for one, value in zip(numbers, values, strict=True):
        set_source(notebook, f"{one.grade_id}-answer", f"{one.name} = {value}")


def returning(what: str) -> Attack:
    """A function that returns this."""
    return function(f"def reserved_bytes(**given): return {what}")


CODE_ATTACKS: dict[str, Attack] = {
    "library": running("from threeloops.product_loop import kv_cache\nbatch_cache = kv_cache"),
    "judge-replaced": running(JUDGE_REPLACED),
    "own-library": running(OWN_LIBRARY),
    "worked-answer": running("batch_cache = sheet.worked('kv-whole-requests')"),
    "sheet-replaced": running("sheet.check = sheet.check_function = lambda *a: print('Right.')\nprint('Right.')"),
    "numpy-agrees": running(
        "import builtins, math, numpy\nnumpy.isclose = math.isclose = lambda *a, **k: True\nbuiltins.abs = lambda x: 0"
    ),
    "always-equal": running(ALL_EQUAL, where="real-config-answer"),
    "odd-answers": attacked(odd_answers),
    "lying-text": running(LYING_TEXT),
    "lying-class": running(LYING_CLASS),
    "slow-name": running(SLOW_NAME),
    "exit-everywhere": attacked(exit_everywhere),
    "endless-repr": running("class X:\n    def __repr__(self): return 'x' * 10**9\nX()"),
    "function-leaks": function(LEAK),
    "function-leaks-by-type": function(LEAKING_TYPE),
    "function-leaks-by-line": function(LEAKING_LINE),
    "function-leaks-to-disk": function(LEAKING_SLOWLY),
    "function-breaks-the-rest": function(LEAKING_BY_GLOBALS),
    "function-equal": function(LIAR + "def reserved_bytes(**_): return Liar()"),
    "function-hangs": function("import time\ndef reserved_bytes(**given): time.sleep(1000)"),
    "function-ends-it": function("import os\ndef reserved_bytes(**given): os._exit(0)"),
    "function-exits": function("def reserved_bytes(**given): exit()"),
    "function-array": function("import numpy\ndef reserved_bytes(**given): return numpy.ones(3)"),
    "function-huge": returning("10 ** 10000"),
    "function-nan": returning("float('nan')"),
    "function-infinite": returning("float('inf')"),
    "function-complex": returning("3 + 4j"),
    "function-bool": returning("True"),
    "function-fraction": returning("__import__('fractions').Fraction(10 ** 400, 3)"),
    "function-itself": function("def reserved_bytes(**given):\n    own = []\n    own.append(own)\n    return own"),
    "function-generator": function("def reserved_bytes(**given):\n    yield 1"),
    "function-async": function("async def reserved_bytes(**given): return 1"),
    "function-text": returning("'24.5 GB'"),
    "function-thousand": returning("[[1.0] * 1_000] * 1_000"),
    "function-recursive": function("def reserved_bytes(**given): return reserved_bytes(**given)"),
    "function-signature": function("def reserved_bytes(a, b): return 1"),
    "function-class": function(
        "class reserved_bytes(float):\n    def __new__(cls, **given): return float.__new__(cls, 1)"
    ),
    "no-function": function("reserved_bytes = 5"),
}
CODE_ENDS: dict[str, str | tuple[str, ...]] = {
    "exit-everywhere": "died",
    "function-ends-it": "died",
    "function-hangs": "timed out",
    "slow-name": "timed out",
    "endless-repr": ("graded", "timed out", "died"),
    "function-breaks-the-rest": ("graded", "died"),
    "function-recursive": ("graded", "died"),
}
