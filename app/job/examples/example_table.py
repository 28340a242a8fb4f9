"""The table of the examples in `templates/examples`, by group."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lumitui.app.job.spec import JobSpec, parse_job

EXAMPLES = Path(__file__).resolve().parents[3] / "templates" / "examples"
GROUPS = {
    "mnist": "Digits (MNIST), in minutes",
    "models": "Larger models",
    "benchmarks": "Benchmarks",
    "scripts": "Scripts of your own",
}
"""The folders of the examples, and their titles."""
_RUN_FILE = EXAMPLES / "lumitui_run.py"
_JOB = "job.yaml"


@dataclass(frozen=True)
class JobExample:
    """One example."""

    name: str
    group: str
    """The group's title."""
    summary: str
    """What it is, in one line."""
    text: str
    """Its job file."""
    files: tuple[tuple[str, str], ...] = ()
    """Name and text of the files that belong beside the job file."""

    @property
    def spec(self) -> JobSpec:
        """Its job file, read."""
        return parse_job(self.text, self.name)


@cache
def examples() -> dict[str, JobExample]:
    """Return the examples by name, group by group."""
    rows = (
        _example(path, title)
        for folder, title in GROUPS.items()
        for path in sorted((EXAMPLES / folder).iterdir())
    )
    return {example.name: example for example in rows}


def _example(path: Path, group: str) -> JobExample:
    # pip compiles what it installs, which adds the folder `__pycache__`.
    here = sorted(path.iterdir()) if path.is_dir() else []
    beside = [item for item in here if item.is_file() and item.name != _JOB]
    text = (path / _JOB if path.is_dir() else path).read_text(encoding="utf-8")
    summary = text.partition("\n")[0].removeprefix("# ")
    files = tuple((item.name, item.read_text(encoding="utf-8")) for item in beside)
    if any(f"import {_RUN_FILE.stem}" in program for _, program in files):
        files += (run_file(),)
    return JobExample(path.stem, group, summary, text, files)


@cache
def run_file() -> tuple[str, str]:
    """Return the name and text of the module with which a script stops, saves and reports."""
    return _RUN_FILE.name, _RUN_FILE.read_text(encoding="utf-8")


def names() -> list[str]:
    """Return the names of the examples, group by group."""
    return list(examples())
