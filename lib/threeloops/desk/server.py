"""The server's half of the book's JupyterLab: it says, whenever the start page is looked at, how things stand."""

from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web
from tornado.ioloop import IOLoop

from threeloops.desk import start_page


class StartPage(JupyterHandler):
    """GET threeloops/start: the start page's content."""

    @web.authenticated
    async def get(self) -> None:
        root = Path(self.settings["server_root_dir"]).expanduser()
        self.set_header("Content-Type", "application/json")
        self.finish(await IOLoop.current().run_in_executor(None, start_page.as_json, root))


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: Any) -> None:
    server.web_app.add_handlers(
        ".*$", [(url_path_join(server.web_app.settings["base_url"], "threeloops", "start"), StartPage)]
    )
