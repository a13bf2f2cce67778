"""Formulas, set while the pages are built: by KaTeX, which then has nothing left to do in the reader's browser."""

import contextlib
import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from docutils import nodes

from threeloops.site import npm

SETTER = """
const katex = require(process.argv[1]);
require('readline').createInterface({input: process.stdin}).on('line', line => {
  const {tex, display} = JSON.parse(line);
  let said;
  try { said = {html: katex.renderToString(tex, {displayMode: display, output: 'htmlAndMathml', strict: 'ignore'})}; }
  catch (error) { said = {error: error.message}; }
  process.stdout.write(JSON.stringify(said) + '\\n');
});
"""

FORMULA = re.compile(r"\$([^$\n]+)\$")
OURS = re.compile(r'class="(?:drill|explorer)\b')  # they name prices: $0.35
# TeX, and with it JupyterLab, reads w_\max; KaTeX asks for w_{\max}.
BARE = re.compile(r"([_^])(\\[A-Za-z]+)(?![A-Za-z{])")


class Setter:
    """KaTeX in a process of its own: one formula in, its HTML out."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._known: dict[tuple[str, bool], str] = {}

    def set(self, tex: str, *, display: bool) -> str:
        """A formula as HTML with MathML in it, for those who hear the page.

        Raises:   ValueError for what KaTeX cannot read
        """
        if (tex, display) not in self._known:
            braced = BARE.sub(r"\1{\2}", tex)
            said = self._asked({"tex": braced, "display": display})
            if "error" in said:
                raise ValueError(f"the formula {tex!r} cannot be set: {said['error']}")
            self._known[tex, display] = said["html"]
        return self._known[tex, display]

    def _asked(self, question: dict[str, object]) -> dict[str, str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [*npm.node(), "-e", SETTER, str(npm.kept("katex") / "dist" / "katex.js")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        said: dict[str, str] = json.loads(self._process.stdout.readline())
        return said

    def close(self) -> None:
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()  # type: ignore[union-attr]
            self._process.wait()


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's door: formulas are set by us."""
    setter = Setter()

    def inline(translator: Any, node: nodes.math) -> None:
        translator.body.append(setter.set(node.astext(), display=False))
        raise nodes.SkipNode

    def block(translator: Any, node: nodes.math_block) -> None:
        name = f' id="{html.escape(node["ids"][0])}"' if node["ids"] else ""
        translator.body.append(
            f'<div class="formula" tabindex="0"{name}>{setter.set(node.astext(), display=True)}</div>'
        )
        raise nodes.SkipNode

    def within_html(_: Any, document: nodes.document, __: str) -> None:
        """A formula in a block of HTML, which JupyterLab sets as well."""
        for raw in document.findall(nodes.raw):
            if not OURS.search(raw.astext()):
                raw[:] = [
                    nodes.Text(FORMULA.sub(lambda tex: setter.set(html.unescape(tex[1]), display=False), raw.astext()))
                ]

    app.connect("doctree-resolved", within_html)
    app.add_html_math_renderer("threeloops", (inline, None), (block, None))
    app.connect("build-finished", lambda *_: setter.close())
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def copy_style(into: Path) -> None:
    """KaTeX's style sheet and its fonts, in the one format that every browser of today reads."""
    made = npm.kept("katex") / "dist"
    (into / "fonts").mkdir(parents=True, exist_ok=True)
    shutil.copy(made / "katex.min.css", into)
    for font in made.glob("fonts/*.woff2"):
        shutil.copy(font, into / "fonts")
