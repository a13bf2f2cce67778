"""The reader's desk: notebooks that are theirs to write in, and the JupyterLab that opens them.

parts       one notebook per part, made from the committed chapter, with links that lead on
copies      what stands under my/: made, renewed while untouched, kept when not, started afresh
jupyter     settings and command of the JupyterLab that shows them; its extension is in lab/
grading     a set is graded where it stands
opening     `book.py`: from a word to an open book
"""

import os
from pathlib import Path

from threeloops.contents import reader_folder


def history_path() -> Path:
    """Where the reader's attempts are kept; another file where THREELOOPS_HISTORY names one."""
    return (
        Path(os.environ["THREELOOPS_HISTORY"])
        if os.environ.get("THREELOOPS_HISTORY")
        else reader_folder() / "history.sqlite3"
    )
