"""Whose a hand-in is, and that none of them stops the others. nbgrader goes by the name of a hand-in's folder, which
anybody can choose, and only warns where somebody else owns it; it follows links, which would hand a student whatever
the teacher may read; and one file that cannot be copied ends its run.
"""

import os
import pwd
import shutil
from typing import Any

from nbgrader.exchange.default.collect import ExchangeCollect  # type: ignore[import-untyped]
from nbgrader.utils import ignore_patterns  # type: ignore[import-untyped]

LARGEST_BYTES = 100_000_000  # of one hand-in


class Collect(ExchangeCollect):  # type: ignore[misc]
    """nbgrader's collect, except that a hand-in is its owner's, since the kernel knows who wrote it; links stay links,
    and what cannot be copied is left out with a word.
    """

    def _path_to_record(self, path: str) -> dict[str, Any]:
        record: dict[str, Any] = super()._path_to_record(path)
        number = os.lstat(path).st_uid
        try:
            owner = pwd.getpwuid(number).pw_name
        except KeyError:
            owner = f"uid{number}"
        if owner != record["username"]:
            self.log.warning("%s was handed in by %s, and counts as theirs", record["filename"], owner)
        return record | {"username": owner}

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        coursedir = self.coursedir
        left_out = ignore_patterns(
            exclude=coursedir.ignore, include=coursedir.include, max_file_size=coursedir.max_file_size, log=self.log
        )
        try:
            if os.path.islink(src) or self.get_size(src) > LARGEST_BYTES:
                raise OSError(f"it is a link, or larger than {LARGEST_BYTES:,} bytes")
            shutil.copytree(src, dest, symlinks=True, ignore=left_out)
        except OSError as error:  # shutil.Error is one
            shutil.rmtree(dest, ignore_errors=True)
            self.log.warning("%s is left out: %s", os.path.basename(src), error)
