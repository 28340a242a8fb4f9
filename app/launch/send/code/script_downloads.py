"""Calls in the job's script that download something, found without running it. Reads the script."""

from collections.abc import Iterator
from pathlib import Path

from lumitui.app.job.spec import JobSpec
from lumitui.app.knowledge.program.downloads import STAGE_IT, downloads
from lumitui.app.knowledge.program.python_reader import read_python
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.plain_file import read_plain
from lumitui.remote.site.source_position import at_key

_MOST_BYTES = 1_000_000
_MOST = 5


def findings_of(spec: JobSpec, project: Path, site: Site) -> Iterator[Finding]:
    """Yield what a preview says of a script that downloads where nodes reach no internet."""
    if site.internet_on_compute_nodes or not (spec.script or "").endswith(".py"):
        return
    try:
        text = read_plain(project / str(spec.script), _MOST_BYTES).decode(errors="replace")
    except (OSError, ValueError):
        return  # the send says what is wrong with it
    found = list(downloads(read_python(text, str(spec.script))))
    if found:
        more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
        calls = ", ".join(f"{one.words} in line {one.at.line}" for one in found[:_MOST])
        yield Finding(
            "offline-script",
            "warning",
            f"The nodes of {site.name} reach no internet, and {spec.script} would download: "
            f"{calls}{more}.",
            STAGE_IT,
            "the site's profile, internet_on_compute_nodes",
            at=at_key("script"),
        )
