"""Start a program of Jupyter's in half the time: `python -m threeloops.quick_start jupyterlab ...` is `python -m
jupyterlab ...`.

Whatever loads jsonschema would compile grammars for addresses in non-Latin letters first, for one to two seconds of a
core; no notebook has one. Where the module of these grammars cannot be imported, jsonschema does without that one
format.

>>> import sys
>>> "rfc3987_syntax" in sys.modules
True
"""

import runpy
import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

if __name__ == "__main__":
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
