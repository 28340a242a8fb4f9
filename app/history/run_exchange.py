"""The runs of a history as one file, and its merge into another laptop's history."""

import gzip
import json
import math
import os
import sqlite3
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lumitui.app.history.file.sqlite_file import Database
from lumitui.app.history.listing.series_runs import KINDS
from lumitui.app.history.metric_points import append_lines, parse_line
from lumitui.app.history.rows.kept_texts import (
    MANIFEST,
    LostText,
    drop_unused,
    insert_row,
    put_text,
    rewrite_texts,
    unpack,
)
from lumitui.app.history.rows.run_record import record_text, run_of
from lumitui.app.history.rows.run_row import (
    EMPTY,
    PLAIN,
    TEXTS,
    Column,
    from_row,
    numbers_of,
    to_row,
)
from lumitui.app.history.run import Changes
from lumitui.app.job.settings import version
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.reading.writer import is_newer
from lumitui.remote.site.states import State

Row = dict[str, Column]
"""A run as a table row, with its texts."""
FORMAT = 1
_MARK = "lumitui history"
_INVALID = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What invalid entries raise."""
_LINE_BYTES = 256 << 20
_AT_ONCE = 500
"""Metrics on one line: at 64 KiB each they stay below _LINE_BYTES."""
_GROWING = ("metrics_offset", "attempts_read", "exits", "attempt")
"""Fields whose larger value is kept, whichever laptop has the newer state."""
_FILLED = ("note", "cause", "snapshot", "binding", "patch")
"""Fields that are imported only if empty here: notes and patches have no time."""
_OWN = {*_GROWING, *_FILLED, "attempts"}
_NEWER = tuple(name for name in Changes.__annotations__ if name not in _OWN)
"""The fields that follow the newer state."""


@dataclass(frozen=True)
class ExportedRuns:
    """A file that was written."""

    path: Path
    runs: int
    left_out: int
    """Runs that are being sent right now, or that the disk has lost."""


@dataclass(frozen=True)
class ImportedRuns:
    """The result of an import."""

    added: tuple[str, ...]
    """The ids of the new runs."""
    updated: tuple[str, ...]
    """The ids of the runs that got newer values."""
    unchanged: int


class RunExchange:
    """The runs of one history, for another laptop."""

    def __init__(self, file: Database) -> None:
        self._file = file

    def export(self, target: Path) -> ExportedRuns:
        """Write all runs to the new file `target` (0600), atomically.

        Omits runs that are being sent: the other laptop would settle them meanwhile.

        Raises:
            InputError: `target` exists or cannot be written.
            HistoryError: the history cannot be read.
        """
        if os.path.lexists(target):
            raise InputError(f"{target} already exists.", "Choose a new file.")
        part = target.with_name(f".{target.name}.part-{os.getpid()}")
        try:
            done = self._file.read(lambda db: _write(db, part, target))
            os.link(part, target)  # unlike a rename, never replaces a file
        except OSError as error:
            raise InputError(
                f"{target} cannot be written: {error.strerror or error}.", "Choose another file."
            ) from error
        finally:
            with suppress(OSError):  # an unusable path is reported above
                part.unlink()
        return done

    def merge(self, source: Path) -> ImportedRuns:
        """Merge the runs of an exported file by their ids, in one transaction.

        A final state replaces an unfinished one; otherwise the later answer of the site counts.

        Raises:
            InputError: the file cannot be read, is damaged or not an exported history.
            HistoryError: the history cannot be written.
        """
        try:
            with source.open("rb") as opened, closing(_temporary()) as kept:
                # Checked without the lock, so that other processes can write meanwhile.
                ids = _checked(opened.fileno(), kept)
                with self._file.transaction() as db:
                    added, updated = _merge(db, kept, opened.fileno())
                return ImportedRuns(added, updated, len(ids) - len(added) - len(updated))
        except OSError as error:
            raise InputError(
                f"{source} cannot be read: {error.strerror or error}.", "Choose another file."
            ) from error
        except sqlite3.Error as error:  # of the temporary file: the history's are HistoryErrors
            raise InputError(
                f"{source} cannot be imported: {error}.",
                "Free space in the folder for temporary files (TMPDIR), then import it again.",
            ) from error
        except _NotExported as error:
            raise InputError(
                f"{source} cannot be imported: {error}.",
                "Export it again with `lumitui history --export FILE`. The history is unchanged.",
            ) from error


class _NotExported(Exception):
    """The file is damaged, or is not an exported history; the message states which."""


# ----------------------------------------------------------------------- written


def _write(db: sqlite3.Connection, part: Path, target: Path) -> ExportedRuns:
    number = os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(number, "wb") as raw:
        # One transaction, so that a run's metrics match its `metrics_offset`.
        db.execute("BEGIN")
        try:
            # mtime 0 and no name: the same runs give the same bytes.
            with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
                runs = lines = 0
                for entry in _entries_of(db):
                    packed.write(json.dumps(entry).encode() + b"\n")
                    runs, lines = runs + ("run" in entry), lines + 1
                packed.write(json.dumps({"end": lines}).encode() + b"\n")
            (total,) = db.execute("SELECT count(*) FROM runs").fetchone()
        finally:
            db.execute("COMMIT")
        raw.flush()
        os.fsync(raw.fileno())
    return ExportedRuns(target, runs, total - runs)


def _entries_of(db: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    yield {_MARK: FORMAT, "lumitui": version()}
    whole = set()
    texts = "SELECT id, packed, digest FROM blobs WHERE kind != ?"
    for number, packed, digest in db.execute(texts, (MANIFEST,)):
        with suppress(LostText):
            yield {"text": number, "is": unpack(packed, digest).decode("utf-8", "replace")}
            whole.add(number)
    names = (*PLAIN, *TEXTS, "broken_metrics")
    ids = set[Column]()
    where = "WHERE state != ? ORDER BY created, id"
    for row in db.execute(f"SELECT {', '.join(names)} FROM runs {where}", (State.SENDING.value,)):
        run = dict(zip(names, row, strict=True))
        lost = {kind: None for kind in TEXTS if run[kind] not in whole | {None}}
        valid = None if any(TEXTS[kind].needed for kind in lost) else _valid(db, run | lost)
        if valid:
            ids.add(valid["id"])
            yield {"run": valid}
            yield from _metrics_of(db, str(valid["id"]))
    yield from _series_of(db, ids)


def _valid(db: sqlite3.Connection, run: dict[str, Any]) -> Row | None:
    """Return a run's columns, or None if they are damaged: the other laptop would refuse all."""
    query = "SELECT packed, digest FROM blobs WHERE id = ?"
    rows = {kind: db.execute(query, (run[kind],)).fetchone() for kind in TEXTS}
    texts = {kind: unpack(*row).decode("utf-8", "replace") for kind, row in rows.items() if row}
    try:
        row = _checked_row(run | texts)
    except _INVALID:
        return None
    return run | {name: row[name] for name in PLAIN}


def _metrics_of(db: sqlite3.Connection, run_id: str) -> Iterator[dict[str, Any]]:
    cursor = db.execute("SELECT line FROM metrics WHERE run = ? ORDER BY ordinal", (run_id,))
    while rows := cursor.fetchmany(_AT_ONCE):
        lines = [str(line) for (line,) in rows if parse_line(str(line).encode()) is not None]
        yield {"metrics": run_id, "lines": lines}


def _series_of(db: sqlite3.Connection, ids: Collection[Column]) -> Iterator[dict[str, Any]]:
    """Yield the series whose runs are all in the file: without its run, a claim looks unsent."""
    for row in db.execute("SELECT id, kind, site, source, created, offered FROM series"):
        members = db.execute(
            "SELECT place, words, plan FROM series_members WHERE series = ? ORDER BY place", row[:1]
        )
        claims = db.execute(
            "SELECT run, place FROM series_runs WHERE series = ? ORDER BY rowid", row[:1]
        ).fetchall()
        parts = {"members": [list(one) for one in members], "runs": [list(c) for c in claims]}
        entry = {"series": list(row)} | parts
        with suppress(*_INVALID):
            _check_series(entry, ids)
            yield entry


# -------------------------------------------------------------------------- read


def _entries(number: int) -> Iterator[dict[str, Any]]:
    """Yield the lines of an exported file, without the first and last."""
    os.lseek(number, 0, os.SEEK_SET)
    with os.fdopen(os.dup(number), "rb") as raw, gzip.open(raw) as packed:
        count = 0
        try:
            entry = _entry(packed.readline(_LINE_BYTES))
            _check_format(entry)
            while "end" not in entry:
                if count:
                    yield entry
                count, entry = count + 1, _entry(packed.readline(_LINE_BYTES))
            if entry["end"] != count or packed.read(1):
                raise _NotExported("it is damaged")
        except gzip.BadGzipFile as error:
            why = "it is damaged" if count else "it is not an exported history"
            raise _NotExported(why) from error
        except (EOFError, zlib.error, ValueError, RecursionError) as error:
            raise _NotExported("it is damaged") from error


def _entry(line: bytes) -> dict[str, Any]:
    entry = json.loads(line) if line.endswith(b"\n") else None
    if not isinstance(entry, dict):
        raise _NotExported("it is damaged" if line else "it is not an exported history")
    return entry


def _check_format(entry: dict[str, Any]) -> None:
    if _MARK not in entry:
        raise _NotExported("it is not an exported history")
    if entry[_MARK] != FORMAT:
        raise _NotExported(f"lumitui {entry.get('lumitui')}, a newer version, wrote it; upgrade")


def _temporary() -> sqlite3.Connection:
    """Return a database for the texts and runs of a file, which may exceed the memory.

    It is in a temporary file, which SQLite removes.
    """
    kept = sqlite3.connect("")
    kept.execute("CREATE TABLE texts (number TEXT PRIMARY KEY, text TEXT)")
    kept.execute("CREATE TABLE runs (id TEXT PRIMARY KEY, content TEXT)")
    return kept


def _text(kept: sqlite3.Connection, number: object) -> str | None:
    query = "SELECT text FROM texts WHERE number = ?"
    return next((text for (text,) in kept.execute(query, (json.dumps(number),))), None)


def _checked(number: int, kept: sqlite3.Connection) -> set[str]:
    """Check an exported file as a whole, and keep its runs; return their ids."""
    ids: set[str] = set()
    writer = ""
    for entry in _entries(number):
        try:
            if "text" in entry:
                text = json.dumps(entry["text"]), _string(entry["is"])
                kept.execute("INSERT OR REPLACE INTO texts VALUES (?, ?)", text)
            elif "run" in entry:
                row = entry["run"] | {kind: _text(kept, entry["run"][kind]) for kind in TEXTS}
                writer = str(json.loads(row["spec"]).get("lumitui", ""))
                run = row["id"], json.dumps(_checked_row(row))
                kept.execute("INSERT OR REPLACE INTO runs VALUES (?, ?)", run)
                ids.add(row["id"])
            elif "metrics" in entry:
                _check_metrics(entry, ids)
            elif "series" in entry:
                _check_series(entry, ids)
        except _INVALID as error:
            if is_newer(writer):
                why = f"lumitui {writer}, a newer version, wrote it; upgrade"
            else:
                why = f"one of its entries was not written by lumitui ({str(error)[:200]})"
            raise _NotExported(why) from error
    return ids


def _checked_row(row: dict[str, Any]) -> Row:
    """Return a run's row, checked against the limits of a record on a site."""
    run = from_row(row | {kind: EMPTY[kind] for kind in TEXTS if row[kind] is None})
    broken = row["broken_metrics"]
    if type(broken) is not int or not 0 <= broken < 1 << 63:
        raise ValueError("broken_metrics: not a count")
    recorded = run_of(record_text(run).encode(), run.folder)
    if recorded.root != run.root:
        raise ValueError(f"root: {run.root} is not next to {recorded.root}")
    return to_row(run) | numbers_of(run)


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a string")
    return value.encode("utf-8", "replace").decode()


def _check_metrics(entry: dict[str, Any], runs: set[str]) -> None:
    if entry["metrics"] not in runs:
        raise ValueError("metrics without their run")
    for line in entry["lines"]:
        if parse_line(_string(line).encode()) is None:
            raise ValueError("a line that is not a metric")


def _check_series(entry: dict[str, Any], runs: Collection[Column]) -> None:
    kinds = (str, str, str, str, float, int)
    if [type(item) for item in entry["series"]] != list(kinds):
        raise ValueError("a series with other columns")
    if not math.isfinite(entry["series"][4]) or abs(entry["series"][5]) >= 1 << 63:
        raise ValueError("a series with a number that is too large")
    if entry["series"][1] not in KINDS:
        raise ValueError("a series of another kind")
    for place, words, plan in entry["members"]:
        if type(place) is not int or not isinstance(json.loads(_string(plan)), dict):
            raise ValueError("a member of a series with other columns")
        _string(words)
    if any(run not in runs or type(place) is not int for run, place in entry["runs"]):
        raise ValueError("a series of other runs")


# ------------------------------------------------------------------------ merged


def _merge(
    db: sqlite3.Connection, kept: sqlite3.Connection, number: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Merge a checked file; return the ids of the added and of the updated runs."""
    added, updated, fresh_metrics = list[str](), list[str](), set[str]()
    for run_id, content in kept.execute("SELECT id, content FROM runs ORDER BY rowid"):
        row = json.loads(content)
        found = db.execute("SELECT * FROM runs WHERE id = ?", (run_id,)).fetchone()
        if found is None:
            insert_row(db, row)
            added.append(run_id)
            fresh_metrics.add(run_id)
            continue
        known = dict(found)
        if known["token"] != row["token"]:
            raise _NotExported(
                f"its run {run_id} differs from the run with that id in this history"
            )
        restored = rewrite_texts(db, run_id, row)
        changes = _changes(db, known, row)
        if changes:
            _change(db, known, changes)
        if changes or restored:
            updated.append(run_id)
        if "metrics_offset" in changes:
            fresh_metrics.add(run_id)
    for run_id in fresh_metrics:
        db.execute("DELETE FROM metrics WHERE run = ?", (run_id,))
    for entry in _entries(number):
        if entry.get("metrics") in fresh_metrics:
            append_lines(db, entry["metrics"], map(_string, entry["lines"]))
        elif "series" in entry:
            _add_series(db, entry)
        elif "run" in entry and entry["run"]["id"] in fresh_metrics:
            values = (entry["run"]["broken_metrics"], entry["run"]["id"])
            db.execute("UPDATE runs SET broken_metrics = ? WHERE id = ?", values)
    return tuple(added), tuple(updated)


def _changes(db: sqlite3.Connection, known: dict[str, Any], other: Row) -> Row:
    """Return the fields of a run whose newer values the other laptop has."""
    changes: Row = {}
    if _age(other) > _age(known):
        changes |= {name: other[name] for name in _NEWER if other[name] != known[name]}
    changes |= {name: other[name] for name in _GROWING if _grown(other[name]) > _grown(known[name])}
    if "attempts_read" in changes:
        changes["attempts"] = other["attempts"]
    for name in _FILLED:
        if other[name] and not (_has_text(db, known[name]) if name in TEXTS else known[name]):
            changes[name] = other[name]
    return changes


def _has_text(db: sqlite3.Connection, number: object) -> bool:
    row = db.execute("SELECT packed, digest FROM blobs WHERE id = ?", (number,)).fetchone()
    try:
        return bool(row and unpack(*row))
    except LostText:
        return False


def _age(row: Mapping[str, Any]) -> tuple[bool, float]:
    return State(row["state"]).is_final, row["updated"]


def _grown(value: Column) -> tuple[bool, float]:
    """Return what grows: the bytes of a log (negative) too, but less than those of a file."""
    number = float(value or 0)
    return number > 0, abs(number)


def _change(db: sqlite3.Connection, known: dict[str, Any], changes: Row) -> None:
    values = {
        name: put_text(db, name, value) if name in TEXTS else value
        for name, value in changes.items()
    }
    sets = ", ".join(f"{name} = :{name}" for name in values)
    db.execute(f"UPDATE runs SET {sets} WHERE id = :id", values | {"id": known["id"]})
    for kind in TEXTS.keys() & values.keys():
        drop_unused(db, kind, known[kind])


def _add_series(db: sqlite3.Connection, entry: dict[str, Any]) -> None:
    series, closed = entry["series"][0], not entry["series"][5]
    new = db.execute("INSERT OR IGNORE INTO series VALUES (?, ?, ?, ?, ?, ?)", entry["series"])
    if new.rowcount:
        members = [(series, *member) for member in entry["members"]]
        db.executemany("INSERT INTO series_members VALUES (?, ?, ?, ?)", members)
    elif closed:
        db.execute("UPDATE series SET offered = 0 WHERE id = ?", (series,))
    claims = [(run, series, place) for run, place in entry["runs"]]
    db.executemany("INSERT OR IGNORE INTO series_runs VALUES (?, ?, ?)", claims)
    # The last claim of a place counts, by creation time of the runs on any laptop.
    ordered = db.execute(
        "SELECT run, series, place FROM series_runs LEFT JOIN runs ON id = run WHERE series = ?"
        " ORDER BY created, series_runs.rowid",
        (series,),
    ).fetchall()
    db.execute("DELETE FROM series_runs WHERE series = ?", (series,))
    db.executemany("INSERT INTO series_runs VALUES (?, ?, ?)", [tuple(row) for row in ordered])
