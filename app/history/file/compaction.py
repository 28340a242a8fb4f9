"""A history's file that is mostly empty, made small again."""

import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

from lumitui.app.history.file.sqlite_errors import FAULTS

_SPARE = 16_000_000
"""Free bytes that a file may keep inside for what comes."""


def compact(db: sqlite3.Connection, path: Path) -> None:
    """Give back the space of a file that is mostly empty, as one is after a conversion."""
    pages, free, each = (
        int(db.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    if free * 2 < pages or free * each < _SPARE:
        return
    # It is copied to a temporary file and from there into the log.
    if shutil.disk_usage(path.parent).free < 3 * (pages - free) * each:
        return
    with suppress(*FAULTS):  # another process is writing: the next start does it
        db.execute("VACUUM")
