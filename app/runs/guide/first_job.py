"""A user's first job on a cluster: the bundled training, in its own folder."""

from pathlib import Path

from lumitui.app.job import examples
from lumitui.remote.site.errors import LumiError
from lumitui.remote.site.profile import Site

FOLDER = Path("lumitui-first")
"""Its own folder, relative to the current one: a job sends its whole folder."""


def first_job(site: Site, account: str, folder: Path) -> Path:
    """Return the job file; create it if it is missing.

    Raises:
        LumiError: it cannot be written.
    """
    job = folder / FOLDER / "job.yaml"
    try:
        job.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LumiError(
            f"Cannot create the folder {job.parent}: {error.strerror}.",
            "Start lumitui in one of your folders.",
        ) from error
    if not job.exists():
        text = examples.text_for(site, examples.Beginning("first", account=account or None))
        examples.write_new(job, text)
    return job
