"""Draw the pictures that README shows; a test holds the committed ones against a fresh drawing.

python -m tests.chapters.pictures
"""

from dataclasses import replace
from pathlib import Path

from threeloops.figures.figure import Figure
from threeloops.widgets.inner_loop import roofline

FOLDER = Path(__file__).parents[2] / "chapters" / "pictures"


def drawn() -> dict[str, Figure]:
    """File name -> its figure."""
    state = replace(roofline.START, accelerator="h100-sxm5", phase="prefill", batch=1)
    return {"roofline.png": roofline.view(state).figure}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, figure in drawn().items():
        (FOLDER / name).write_bytes(figure.png())
        print(FOLDER / name)
