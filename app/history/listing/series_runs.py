"""Series of runs, as a grid, a sequence or a ladder, and the state of each member.

The members are written before the first is sent, and which run one becomes before that run is:
a process that is killed leaves behind what the next one needs to know.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from lumitui.app.history.file.sqlite_file import Database
from lumitui.remote.site.errors import InputError

Kind = Literal["grid", "ladder", "then"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class SeriesMember:
    """One run of a series, sent or not."""

    place: int
    """From 1 on, in the order in which they are sent."""
    words: str
    """Its own settings: `--lr=1e-3`, `4 nodes`."""
    plan: str
    """Its plan, as JSON."""
    run: str | None = None
    """Its latest run, possibly still being created; None if it was never begun."""


@dataclass(frozen=True)
class RunSeries:
    """Runs that are sent after one yes."""

    id: str
    kind: Kind
    site: str
    source: str
    """The job file of a grid or of `then:`, or the run that is sent again; "": neither."""
    created: float
    members: tuple[SeriesMember, ...]

    @property
    def again(self) -> bool:
        """Whether it sends a run again: at several sizes, or with the runs that follow it."""
        return bool(self.source) and not self.source.startswith("/")


class KnownSeries:
    """The series of one history.

    What reads or writes them raises HistoryError where that is not possible.
    """

    def __init__(self, file: Database) -> None:
        self._file = file

    def begin(self, series: RunSeries) -> None:
        """Write a series of which nothing was sent; after a HistoryError, nothing may be."""
        with self._file.transaction() as db:
            values = (series.id, series.kind, series.site, series.source, series.created)
            db.execute("INSERT INTO series VALUES (?, ?, ?, ?, ?, 1)", values)
            db.executemany(
                "INSERT INTO series_members VALUES (?, ?, ?, ?)",
                [(series.id, one.place, one.words, one.plan) for one in series.members],
            )

    def claim(self, series_id: str, place: int, run_id: str) -> None:
        """Write that a member is about to become a run; it is on the disk when this returns.

        Raises:
            HistoryError: it could not be written, so that it may not be sent.
        """
        with self._file.transaction() as db:
            db.execute("INSERT INTO series_runs VALUES (?, ?, ?)", (run_id, series_id, place))

    def tried(self, series_id: str, place: int) -> list[str]:
        """Return the runs that a member became or was about to become, the first one first."""
        rows = self._file.rows(
            "SELECT run FROM series_runs WHERE series = ? AND place = ? ORDER BY rowid",
            (series_id, place),
        )
        return [str(row[0]) for row in rows]

    def close(self, series_id: str) -> None:
        """Offer the rest of a series no more."""
        with self._file.transaction() as db:
            db.execute("UPDATE series SET offered = 0 WHERE id = ?", (series_id,))

    def offered(self) -> list[RunSeries]:
        """Return the series that may have members to send, the newest first."""
        rows = self._file.rows("SELECT id FROM series WHERE offered ORDER BY created DESC, id")
        return [self.get(str(row[0])) for row in rows]

    def newest_of(self, source: str) -> RunSeries | None:
        """Return the newest series of a job file or a parent, or None."""
        rows = self._file.rows(
            "SELECT id FROM series WHERE source = ? ORDER BY created DESC, id LIMIT 1", (source,)
        )
        return self.get(str(rows[0][0])) if rows else None

    def of_run(self, run_id: str) -> RunSeries | None:
        """Return the series of a run, or None."""
        rows = self._file.rows("SELECT series FROM series_runs WHERE run = ?", (run_id,))
        return self.get(str(rows[0][0])) if rows else None

    def member_of(self, run_id: str) -> str | None:
        """Return a run that belongs to a series, or the ancestor of which it is a resubmission."""
        rows = self._file.rows(
            "WITH RECURSIVE up(id, parent) AS (SELECT id, parent FROM runs WHERE id = ?1"
            " UNION SELECT r.id, r.parent FROM runs r JOIN up ON r.id = up.parent)"
            " SELECT id FROM up WHERE id IN (SELECT run FROM series_runs) LIMIT 1",
            (run_id,),
        )
        return str(rows[0][0]) if rows else None

    def get(self, series_id: str) -> RunSeries:
        """Return a series; InputError if there is none of that name."""
        rows = self._file.rows(
            "SELECT id, kind, site, source, created FROM series WHERE id = ?", (series_id,)
        )
        if not rows:
            raise InputError(f"{series_id!r} is not a series.", "Check the list of runs.")
        name, kind, site, source, created = rows[0]
        return RunSeries(name, kind, site, source, created, tuple(self._members(series_id)))

    def _members(self, series_id: str) -> Sequence[SeriesMember]:
        rows = self._file.rows(
            "SELECT m.place, m.words, m.plan, (SELECT r.run FROM series_runs r"
            " WHERE r.series = m.series AND r.place = m.place ORDER BY r.rowid DESC LIMIT 1)"
            " FROM series_members m WHERE m.series = ? ORDER BY m.place",
            (series_id,),
        )
        return [SeriesMember(int(row[0]), str(row[1]), str(row[2]), row[3]) for row in rows]
