"""Trouble with a history file, told plainly: a full disk, a folder that cannot be written, another window, damage."""

from pathlib import Path


def plainly(error: Exception, *, path: Path, wait_s: float) -> str:
    """What went wrong with a history file, in a sentence that says what would help."""
    said = str(error).lower()
    if "full" in said or getattr(error, "errno", 0) == 28:
        return f"the disk is full: {path} takes nothing more; free some space"
    if "readonly" in said or "unable to open" in said or isinstance(error, PermissionError):
        return f"{path} cannot be written here; make its folder writable, or name another file with --history"
    if "locked" in said or "busy" in said:
        return f"another program kept {path} busy for {wait_s:g} s; close it, or try again"
    if "malformed" in said or "not a database" in said:
        return f"{path} is no history file, or a damaged one; move it aside to begin anew"
    return f"{path}: {error}"
