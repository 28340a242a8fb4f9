"""Whether a job's own script installs packages while it runs."""

import re
from pathlib import Path

from lumitui.app.job.spec import JobSpec
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.plain_file import read_plain
from lumitui.remote.site.source_position import at_key

_MOST_BYTES = 1_000_000
_INSTALLS = re.compile(
    r"^[^#\n]*\b((?:pip3?|conda|mamba|uv)\b[\"', ]+(?:pip[\"', ]+)?install\b(?!.*--no-index).*)$",
    re.MULTILINE,
)


def install_line(spec: JobSpec, project: Path) -> str:
    """Return the first line of the job's script that installs packages from an index; or ""."""
    if spec.script is None:
        return ""
    try:
        text = read_plain(project / spec.script, _MOST_BYTES + 1)
    except OSError:
        return ""  # what cannot be read has its own sentence
    match = _INSTALLS.search(text[:_MOST_BYTES].decode("utf-8", "replace"))
    return match[0].strip()[:100] if match else ""


def installs_finding(line: str, spec: JobSpec, site: Site) -> tuple[Finding, ...]:
    """Return what there is to say of a script with such a `line` at `site`."""
    if not line:
        return ()
    offline = not site.internet_on_compute_nodes
    why = (
        f"the nodes of {site.name} reach no package index"
        if offline
        else "each job does it anew, while its GPUs wait"
    )
    return (
        Finding(
            "install-in-script",
            "warning" if offline else "note",
            f"{spec.script} has `{line}`, and {why}.",
            "Name the packages under `venv:`: they are installed once, before the launch.",
            "the site's profile, internet_on_compute_nodes",
            at=at_key("script"),
        ),
    )
