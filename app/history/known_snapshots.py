"""The last snapshot known to be in each project's folder on a site."""

from lumitui.app.history.run import UNFINISHED
from lumitui.app.history.sqlite_file import Database


class KnownSnapshots:
    """What the history knows of the code that was sent to sites."""

    def __init__(self, file: Database) -> None:
        """Read and write it in `file`."""
        self._file = file

    def remember(self, site: str, root: str, manifest_text: str, manifest_id: str) -> None:
        """Keep the manifest of the last snapshot known to be in `root` on `site`."""
        with self._file.transaction() as db:
            db.execute(
                "INSERT INTO manifests (site, root, id, manifest) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET id = excluded.id, manifest = excluded.manifest",
                (site, root, manifest_id, manifest_text),
            )

    def manifest(self, site: str, root: str) -> str | None:
        """Return the manifest's text of the last snapshot in `root`; None when none is known."""
        rows = self._file.rows(
            "SELECT manifest FROM manifests WHERE site = ? AND root = ?", (site, root)
        )
        return str(rows[0][0]) if rows else None

    def in_use(self, site: str) -> dict[str, set[str]]:
        """Return, for each project's folder on `site`, the snapshots that must stay.

        Those are the snapshots of unfinished runs, which may still be copied; of their parents,
        whose snapshot a resubmission that is being sent uses; and the last one that was sent,
        on which the next builds.
        """
        kept: dict[str, set[str]] = {}
        for root, snapshot in self._file.rows(
            "SELECT DISTINCT root, NULL FROM runs WHERE site = ?1"
            " UNION SELECT root, id FROM manifests WHERE site = ?1",
            (site,),
        ):
            kept.setdefault(root, set()).update({snapshot} - {None})
        marks = ", ".join("?" for _ in UNFINISHED)
        for root, snapshot in self._file.rows(
            "SELECT used.root, used.snapshot FROM runs r JOIN runs used"
            f" ON used.id IN (r.id, r.parent) WHERE r.site = ? AND r.state IN ({marks})",
            (site, *UNFINISHED),
        ):
            kept.setdefault(root, set()).update({snapshot} - {None})
        return kept
