"""Reads a job's script and its neighbouring modules, for the rules about their contents."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.deepspeed_batch import argument_words
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
"""Maximum number of modules to read from a folder."""


def texts_of(spec: JobSpec, project: Path) -> dict[str, str]:
    """Return the readable texts, keyed by their paths in the project."""
    if not spec.script:
        return {}
    script = Path(spec.script)
    beside = sorted((project / script).parent.glob("*.py"))[:_MOST_FILES]
    config, _places = argument_words(spec.args)
    inside = bool(config) and not config.startswith(("/", "$")) and ".." not in config
    configs = [Path(spec.workdir) / config] if inside else []
    names = [script, *(script.parent / path.name for path in beside), *configs]
    texts = {}
    for name in dict.fromkeys(names):
        try:
            texts[name.as_posix()] = read_plain(project / name, _MOST_BYTES).decode("utf-8")
        except (OSError, ValueError):
            continue  # `collect` reports the reason
    return texts


def installs_findings(texts: Mapping[str, str], spec: JobSpec, site: Site) -> Iterator[Finding]:
    """Yield a finding if the script installs packages from an index in the job."""
    match = _INSTALLS.search(texts.get(Path(spec.script).as_posix(), "")) if spec.script else None
    if match is None:
        return
    offline = not site.internet_on_compute_nodes
    reason = "each job repeats this while its GPUs wait"
    if offline:
        reason = f"the nodes of {site.name} cannot reach a package index"
    yield hit(
        "install-in-script",
        "script",
        f"{spec.script} has `{match[0].strip()[:100]}`, but {reason}.",
        "List the packages under `venv:`, which installs them once, before the launch.",
        severity="warning" if offline else None,
    )
