"""A user's first job on a cluster: the bundled training, in a folder of its own."""

from pathlib import Path

from lumitui.app.job import examples
from lumitui.remote.site.errors import LumiError
from lumitui.remote.site.profile import Site

FOLDER = Path("lumitui-first")
"""Where it is, from where the user is: a job ships its folder, and this one holds no other."""


def first_job(site: Site, account: str, folder: Path) -> Path:
    """Return the job file, made when it is missing.

    Raises:
        LumiError: it cannot be written.
    """
    job = folder / FOLDER / "job.yaml"
    try:
        job.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LumiError(
            f"The folder {job.parent} cannot be made: {error.strerror}.",
            "Start lumitui in a folder of yours.",
        ) from error
    if not job.exists():
        text = examples.text_for(site, examples.Beginning("first", account=account or None))
        examples.write_new(job, text)
    return job
