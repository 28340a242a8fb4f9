"""What is read of a job's script and the modules beside it, and what they load or install."""

import re
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
_MOST_CALLS = 5
_INSTALLS = re.compile(
    r"^[^#\n]*\b((?:pip3?|conda|mamba|uv)\b[\"', ]+(?:pip[\"', ]+)?install\b(?!.*--no-index).*)$",
    re.MULTILINE,
)
_MOST_FILES = 64
"""Of one folder: a program with more modules than that is read without the others."""


def texts_of(spec: JobSpec, project: Path) -> dict[str, str]:
    """Return the texts by their paths in the project; what cannot be read is not among them."""
    if not spec.script:
        return {}
    script = Path(spec.script)
    beside = sorted((project / script).parent.glob("*.py"))[:_MOST_FILES]
    names = [script, *(script.parent / path.name for path in beside)]
    found = {}
    for name in dict.fromkeys(names):
        try:
            found[name.as_posix()] = read_plain(project / name, _MOST_BYTES).decode("utf-8")
        except (OSError, ValueError):
            continue  # the send says what is wrong with it
    return found


def download_findings(spec: JobSpec, project: Path, site: Site) -> Iterator[Finding]:
    """Yield what a preview says of a script that downloads where nodes reach no internet."""
    if site.internet_on_compute_nodes or not (spec.script or "").endswith(".py"):
        return
    try:
        text = read_plain(project / str(spec.script), _MOST_BYTES).decode(errors="replace")
    except (OSError, ValueError):
        return  # the send says what is wrong with it
    found = list(downloads(read_python(text, str(spec.script))))
    if found:
        more = f" and {len(found) - _MOST_CALLS} more" if len(found) > _MOST_CALLS else ""
        calls = ", ".join(f"{one.words} in line {one.at.line}" for one in found[:_MOST_CALLS])
        yield Finding(
            "offline-script",
            "warning",
            f"The nodes of {site.name} reach no internet, and {spec.script} would download: "
            f"{calls}{more}.",
            STAGE_IT,
            "the site's profile, internet_on_compute_nodes",
            at=at_key("script"),
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
