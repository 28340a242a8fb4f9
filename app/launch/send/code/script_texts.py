"""What is read of a job's script and the modules beside it, and what they load or install."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.rules.job_file_catalogue import hit
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.plain_file import read_plain

_MOST_BYTES = 1_000_000
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
    texts = {}
    for name in dict.fromkeys(names):
        try:
            texts[name.as_posix()] = read_plain(project / name, _MOST_BYTES).decode("utf-8")
        except (OSError, ValueError):
            continue  # the send says what is wrong with it
    return texts


def installs_findings(texts: Mapping[str, str], spec: JobSpec, site: Site) -> Iterator[Finding]:
    """Yield what there is to say of a script that installs packages from an index in the job."""
    match = _INSTALLS.search(texts.get(Path(spec.script).as_posix(), "")) if spec.script else None
    if match is None:
        return
    offline = not site.internet_on_compute_nodes
    why = (
        f"the nodes of {site.name} reach no package index"
        if offline
        else "each job does it anew, while its GPUs wait"
    )
    yield hit(
        "install-in-script",
        "script",
        f"{spec.script} has `{match[0].strip()[:100]}`, and {why}.",
        "Name the packages under `venv:`: they are installed once, before the launch.",
        severity="warning" if offline else None,
    )
