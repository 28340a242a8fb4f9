"""What is about to be sent: a launch, its submit command, and what the adviser says about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lumitui.app.job.launch import Launch
from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.send.code.project_files import Files
from lumitui.app.launch.send.code.script_texts import installs_findings
from lumitui.app.launch.send.staging_plan import findings_of as staged_findings
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site


@dataclass(frozen=True)
class Preview:
    """A launch exactly as it would be sent, with what the adviser says about it."""

    launch: Launch
    site: Site
    command: str
    """The submit command line, byte for byte."""
    findings: tuple[Finding, ...]
    files: Files
    """What there is to say of the files that are sent."""
    job_file: Path | None = None
    cell: str = ""
    """What this run of a grid has of its own, like `--lr=1e-3`; "": there is no grid."""
    at_once: int | None = None
    """How many runs of its grid may run at the same time; None: there is no limit, or no grid."""
    note: str = ""
    """A line that is kept with the run."""
    forced: bool = False
    """Whether the user wants it sent with the adviser's errors, which they have seen."""

    @property
    def name(self) -> str:
        """The job's name."""
        return self.launch.spec.name

    @property
    def project(self) -> Path:
        """The folder that is sent."""
        return self.files.project

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are errors."""
        return tuple(item for item in self.findings if item.severity == "error")

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """The findings that keep it from being sent."""
        return tuple(item for item in self.errors if item.final or not self.forced)

    def check(self) -> None:
        """Raise InputError with the first finding that keeps it from being sent."""
        for error in self.blocking:
            raise InputError(error.message, error.do)


def preview_of(
    launch: Launch, site: Site, command: str, files: Files, job_file: Path | None, cell: str = ""
) -> Preview:
    """Return the preview of `launch`, which `command` submits at `site` with `files`."""
    installs = installs_findings(files.programs, launch.spec, site)
    staged = staged_findings(launch.spec, files.project, site) if files.ships_code else ()
    advice = findings(launch, site, files.programs)
    everything = (*advice, *installs, *files.findings, *staged)
    return Preview(launch, site, command, everything, files, job_file, cell)


def only(previews: Sequence[Preview]) -> Preview:
    """Return the preview of a job file that is one run.

    Raises:
        InputError: it has a grid of several.
    """
    if len(previews) > 1:
        raise InputError(
            f"The job file has a grid of {len(previews)} runs, and this is about one.",
            "Remove `grid:`, or use `lumitui submit`, which sends them all.",
            field="grid",
        )
    return previews[0]
