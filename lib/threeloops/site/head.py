"""The first script of every page, within it: no file that may not come. And where the manifest lies."""

from pathlib import Path
from typing import Any

from threeloops.site import offline

SCRIPT = Path(__file__).with_name("static") / "head.js"


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's door."""
    script = f"<script>\n{SCRIPT.read_text(encoding='utf-8')}</script>\n"

    def say(_: Any, __: str, ___: str, context: dict[str, Any], ____: Any) -> None:
        manifest = f'<link rel="manifest" href="{context["pathto"](offline.MANIFEST, resource=True)}" />\n'
        context["metatags"] = context.get("metatags", "") + manifest + script

    app.connect("html-page-context", say)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
