"""The preview of a send: a launch, its submit command, and the adviser's findings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from posixpath import normpath

from lumitui.app.job.fields.mapping_fields import When
from lumitui.app.job.launch import Launch
from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.draft.printed_series import offers
from lumitui.app.launch.rules.script_texts import installs_findings
from lumitui.app.launch.send.code.project_files import Files
from lumitui.app.launch.send.staging_plan import findings_of as staged_findings
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site


@dataclass(frozen=True)
class Preview:
    """A launch exactly as it would be sent, with the adviser's findings."""

    launch: Launch
    site: Site
    command: str
    """The submit command line, byte for byte."""
    findings: tuple[Finding, ...]
    files: Files
    job_file: Path | None = None
    cell: str = ""
    """This run's settings in a grid, like `--lr=1e-3`, or its name in a sequence; else ""."""
    at_once: int | None = None
    """Maximum number of the grid's simultaneous runs; None: as many as Slurm starts."""
    follows: When | None = None
    """Required end of the previous run; None if it does not wait for one."""
    note: str = ""
    forced: bool = False
    """Whether the user accepted the adviser's errors."""

    @property
    def name(self) -> str:
        """The job's name."""
        return self.launch.spec.name

    @property
    def project(self) -> Path:
        """The folder to send."""
        return self.files.project

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are errors."""
        return tuple(item for item in self.findings if item.severity == "error")

    @property
    def program(self) -> str:
        """The script's text; "" if the project lacks it."""
        return self.files.programs.get(normpath(str(self.launch.spec.script)), "")

    @property
    def offers(self) -> tuple[Finding, ...]:
        """What `lumitui fix` offers besides the findings' fixes."""
        return offers(self.launch.spec.model_dump(mode="json", exclude_defaults=True), self.program)

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """The errors that prevent a send."""
        return tuple(item for item in self.errors if item.final or not self.forced)

    def as_trial(self) -> "Preview":
        """Return the preview without notes on its partition: lumitui chooses one for trials."""
        notes = ("note", "partition")
        kept = (one for one in self.findings if (one.severity, one.at.field) != notes)
        return replace(self, findings=tuple(kept))

    def check(self) -> None:
        """Raise InputError with the first error that prevents a send."""
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
    """Return the preview of a job file; InputError if it has several runs: a grid, or `then:`."""
    if len(previews) > 1:
        key = "then" if previews[-1].follows else "grid"
        raise InputError(
            f"The job file has {len(previews)} runs (`{key}:`), but this works only for one run.",
            f"Remove `{key}:`, or send all runs with `lumitui submit`.",
            field=key,
        )
    return previews[0]
