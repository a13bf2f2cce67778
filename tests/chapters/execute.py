"""Execute chapters the way they are committed: clean kernel, figures kept, nothing that changes from run to run.

python tests/chapters/execute.py chapters/1_inner_loop.ipynb         executes in place
python tests/chapters/execute.py "chapters/1_inner_loop.ipynb#5 "    the part whose heading begins so, alone
"""

import base64
import copy
import io
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

from threeloops import stand_in

Notebook = Any  # nbformat's own type is a dict with attributes
ROOT = Path(__file__).parents[2]
LIMIT_S = 300  # per cell
COLOURS = 256  # of a kept picture: a drawing has fewer, and its file is half as large
KEPT_MIME = ("text/plain", "image/png", "text/html", "text/markdown")
MEASURED = re.compile(r"(?<=measured ).*(?:\n\nIt comes out at .*)?")  # an unanswered prediction takes three lines


def parts(notebook: Notebook) -> list[tuple[str, Notebook]]:
    """(heading, notebook of that part alone); what stands before the first part belongs to it in name only."""
    found: list[tuple[str, Notebook]] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith(("# ", "## ")):
            alone = copy.copy(notebook)
            alone.cells = []
            found.append((cell.source.splitlines()[0].lstrip("# "), alone))
        found[-1][1].cells.append(cell)
    return found


def executed(notebook: Notebook) -> Notebook:
    """The notebook run from a clean kernel at the book's root; an error in a cell ends in an exception that shows
    it.
    """
    fresh = copy.deepcopy(notebook)
    run_through(fresh)
    return fresh


def run_through(notebook: Notebook, limit_s: float = LIMIT_S, root: Path = ROOT) -> None:
    """Run a notebook's cells in a new kernel, which is begun again where it dies before its first word, as JupyterLab
    does: another process took one of its ports in the moment before it could.
    """
    client = NotebookClient(
        notebook, timeout=limit_s, kernel_name="python3", resources={"metadata": {"path": str(root)}}
    )
    for again in (True, True, False):
        try:
            client.execute()
        except RuntimeError as stopped:
            if not again or "died before replying" not in str(stopped):
                raise
        else:
            return


def stripped(notebook: Notebook) -> Notebook:
    """Without widget state, timestamps, execution metadata and mime types that only a live kernel can show."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    count = 0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        cell.metadata.pop("execution", None)
        count += 1
        cell.execution_count = count
        cell.outputs = streams_whole(cell.outputs)
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = count
            if "data" in output:
                output.data = {mime: value for mime, value in output.data.items() if mime in KEPT_MIME}
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = with_a_palette(output.data["image/png"])
    return notebook


def streams_whole(outputs: list[Any]) -> list[Any]:
    """What a cell prints without a pause comes in one piece or in several, as the kernel's clock has it: in one."""
    whole: list[Any] = []
    for output in outputs:
        before = whole[-1] if whole else None
        if before and output.output_type == before.output_type == "stream" and output.name == before.name:
            before.text += output.text
        else:
            whole.append(output)
    return whole


def with_a_palette(picture: str) -> str:
    """A PNG in base64 with a table of colours, where that is smaller; see-through ones stay as they are."""
    drawn = Image.open(io.BytesIO(base64.b64decode(picture)))
    if drawn.mode == "P" or (drawn.mode == "RGBA" and drawn.getextrema()[3][0] < 255):
        return picture
    small, file = drawn.convert("RGB").quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=0), io.BytesIO()
    small.save(file, "PNG", optimize=True)
    return min(base64.b64encode(file.getvalue()).decode(), picture, key=len)


def rounded_text(notebook: Notebook) -> dict[str, list[str]]:
    """Cell id -> its printed text, with measured values masked and numbers rounded to three figures."""
    return {cell.id: [_rounded(text) for text in _texts(cell)] for cell in notebook.cells if cell.cell_type == "code"}


def pictures(notebook: Notebook) -> dict[str, int]:
    """Cell id -> how many pictures it shows."""
    return {
        cell.id: sum("image/png" in output.get("data", {}) for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    }


def _texts(cell: Any) -> list[str]:
    found = []
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stdout":
            found.append(output.text)
        elif "text/plain" in output.get("data", {}) and "image/png" not in output.data:
            found.append(output.data["text/plain"])
    return ["".join(found)] if found else []


def _rounded(text: str) -> str:
    masked = MEASURED.sub("…", text)
    return re.sub(r"\d+\.\d+(e[-+]?\d+)?", lambda figure: f"{float(figure[0]):.3g}", masked)


def run_on() -> str:
    """Where and when the chapter is run, in words: a reader on whose machine a cell cannot run is shown its output
    with this beside it.
    """
    from threeloops.measure import recording  # loads torch, which the rest of this file does without

    stamp = recording.stamp_of(device="cpu")
    return f"{stamp.hardware}, {stamp.software}, on {stamp.measured}"


def with_part(notebook: Notebook, begins: str) -> Notebook:
    """The notebook with one part run anew: the part whose heading begins so. All others stay as they are.

    Raises KeyError, with the headings, where none or several begin so.
    """
    headings = [heading for heading, _ in parts(notebook)]
    found = [alone for heading, alone in parts(notebook) if heading.startswith(begins)]
    if len(found) != 1:
        raise KeyError(f"{len(found)} parts begin with {begins!r}; there are: {', '.join(headings)}")
    fresh = {cell.id: cell for cell in executed(found[0]).cells}
    together = copy.copy(notebook)
    together.cells = [fresh.get(cell.id, cell) for cell in notebook.cells]
    stamp = notebook.metadata[stand_in.STAMP]  # of the whole chapter's run: one part's says nothing of the others
    stripped(together).metadata[stand_in.STAMP] = stamp
    return together


def main(places: list[str]) -> None:
    for place in places:
        name, _, part = place.partition("#")
        path = Path(name)
        notebook = nbformat.read(path, as_version=4)
        notebook = with_part(notebook, part) if part else stripped(executed(notebook))
        if not part:
            notebook.metadata[stand_in.STAMP] = {"run_on": run_on()}
        nbformat.write(notebook, path)
        print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
