"""Page numbers in the contents of a chapter's PDF."""

import gc
from pathlib import Path

import pikepdf

from threeloops.site.front import printed


def test_a_file_needs_nothing_of_the_one_before_it(tmp_path: Path) -> None:
    for name in ("first.pdf", "second.pdf"):
        with pikepdf.new() as made:
            for _ in range(2):
                made.add_blank_page()
            made.Root.Dests = pikepdf.Dictionary()
            assert not printed.number(made, 2), "nothing is listed there"
            made.save(tmp_path / name)
        del made
        gc.collect()
    with pikepdf.open(tmp_path / "second.pdf") as made:
        assert made.pages[1].Resources.Font.ThreeLoops.BaseFont == pikepdf.Name.Helvetica
