"""A history of sixty runs, and what damages its file."""

import contextlib
import os
import sqlite3
from pathlib import Path

from lumitui.app.history.history import History
from tests.support.jobs.made_runs import a_run


def filled_history(path: Path) -> None:
    """Write a history of sixty runs; its table has inner pages."""
    history = History(path)
    for number in range(60):
        history.begin(a_run(f"r-{number:06d}", script="x" * 3000, created=float(number)))
    history.close()


def truncated(path: Path) -> None:
    """Keep the first half."""
    os.truncate(path, path.stat().st_size // 2)


def no_byte(path: Path) -> None:
    """Keep nothing, as a disk that was full may."""
    os.truncate(path, 0)
    os.utime(path, (0, 0))


def no_header(path: Path) -> None:
    """Overwrite SQLite's header."""
    with path.open("r+b") as file:
        file.write(os.urandom(100))


def one_page(path: Path) -> None:
    """Overwrite a page in the middle: the leaf of the table that holds the newest runs."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        page = file.read(size)
        # An inner page of a table ends with its right-most child's number (bytes 8 to 12).
        leaf = int.from_bytes(page[8:12], "big") if page[0] == 5 else root
        file.seek((leaf - 1) * size)
        file.write(bytes(byte ^ 0xFF for byte in page))
