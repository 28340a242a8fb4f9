"""The last snapshot known to be in each project's folder on a site."""

from lumitui.app.history.file.sqlite_file import Database
from lumitui.app.history.rows.kept_texts import (
    MANIFEST,
    LostText,
    drop_unused,
    put_text,
    unpack,
)
from lumitui.app.history.run import UNFINISHED


class KnownSnapshots:
    """The history's records of code sent to sites."""

    def __init__(self, file: Database) -> None:
        self._file = file

    def remember(self, site: str, root: str, manifest_text: str, manifest_id: str) -> None:
        """Store the manifest of the last snapshot known to be in `root` on `site`."""
        with self._file.transaction() as db:
            earlier = db.execute(
                "SELECT manifest FROM manifests WHERE site = ? AND root = ?", (site, root)
            ).fetchone()
            db.execute(
                "INSERT INTO manifests (site, root, id, manifest) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET id = excluded.id, manifest = excluded.manifest",
                (site, root, manifest_id, put_text(db, MANIFEST, manifest_text)),
            )
            if earlier:
                drop_unused(db, MANIFEST, earlier[0])

    def manifest(self, site: str, root: str) -> str | None:
        """Return the manifest of the last snapshot in `root`, or None.

        None also if the text is damaged: all files are then compared with the site's.
        """
        rows = self._file.rows(
            "SELECT packed, digest FROM manifests LEFT JOIN blobs ON blobs.id = manifest"
            " WHERE site = ? AND root = ?",
            (site, root),
        )
        try:
            return unpack(*rows[0]).decode("utf-8", "replace") if rows else None
        except LostText:
            return None

    def in_use(self, site: str) -> dict[str, set[str]]:
        """Return, for each project's folder on `site`, the snapshots that must stay.

        These are the snapshots of unfinished runs, which may still be copied; of their parents,
        which a resubmission in progress may use; and the last one sent, on which the next one
        builds.
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
