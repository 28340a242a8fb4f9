"""The texts that the adviser's rules read of a project: the script, and the modules beside it."""

from pathlib import Path

from lumitui.app.job.spec import JobSpec
from lumitui.remote.site.reading.plain_file import read_plain

_MOST_BYTES = 1_000_000
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
