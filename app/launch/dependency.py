"""The runs that a job waits for, as Slurm's dependency on their jobs. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lumitui.app.history.run import Run
from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.rules.job_file_catalogue import hit
from lumitui.app.launch.site_names import mapped
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import at_key
from lumitui.remote.site.states import State

_TYPES = {"done": "afterok", "failed": "afternotok", "any": "afterany"}
"""Slurm's types of dependencies (sbatch(1), `--dependency`)."""
_AFTER_DIR = re.compile(r"\$(?:\{AFTER_DIR\}|AFTER_DIR(?!\w))", re.ASCII)
"""Matches the variable in job files for the folder of the first run that the job waits for."""
_NEVER = frozenset({State.REFUSED, State.NOT_SENT})
"""The states of a run that never became a job."""


_NO_FOLDER = hit(
    "literal-argument",
    "args",
    "The job file uses $AFTER_DIR, but has no `after:`: the program gets the literal text.",
    "Add `after: RUN`, or submit the job with `--after RUN`.",
)


@dataclass(frozen=True)
class Dependency:
    """A job file with the run ids of its `after:`, and the dependency in Slurm's form."""

    spec: JobSpec
    """The job file, without `after:` if all runs in it have already ended as required."""
    options: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def dependency_of(
    spec: JobSpec,
    site: Site,
    run_of: Callable[[str], Run],
    lane: Sequence[Run] = (),
    *,
    follows: bool = False,
) -> Dependency:
    """Return the dependency of `spec.after`; `run_of` finds the run for a word.

    `$AFTER_DIR` in the job's texts becomes the folder of the first of those runs. The job also
    waits for the unfinished runs of `lane`, sent with it, to end in any state. A job that `follows`
    another one waits for a run that is not sent yet.

    Slurm forgets a job minutes after its end, so this function itself judges ended runs. A requeued
    chain keeps its job, so its dependents wait for its last attempt.

    Raises:
        InputError: there is no such run, it is at another site, it has no job, or it did not end
            as required.
    """
    if spec.after is None:
        named = not follows and mapped(spec, lambda text: _AFTER_DIR.sub("", text)) != spec
        return Dependency(spec, _options(_ends(lane)), (_NO_FOLDER,) if named else ())
    if site.scheduler != "slurm":
        raise _error(
            f"{site.name} has no queue in which a job could wait.",
            "Omit --after, or remove `after:`.",
        )
    runs = [run_of(word) for word in spec.after.run]
    spec = mapped(spec, lambda text: _AFTER_DIR.sub(lambda _: runs[0].folder, text))
    assert spec.after is not None
    ids, jobs, ended = list[str](), list[str](), list[str]()
    for run in runs:
        _check(run, site, spec.after.when)
        if run.state.is_final:
            ended.append(f"{run.id} ({run.state})")
        else:
            ids.append(run.id)
            jobs.append(str(run.job_id))
    findings = tuple(
        Finding("after", "note", f"The job does not wait for {words}, which has ended.",
                source="sbatch(1)", at=at_key("after"))
        for words in ended
    )  # fmt: skip
    after = spec.after.model_copy(update={"run": tuple(dict.fromkeys(ids))}) if ids else None
    kinds = [f"{_TYPES[spec.after.when]}:{':'.join(dict.fromkeys(jobs))}"] if jobs else []
    options = _options([*kinds, *_ends(lane)])
    return Dependency(spec.model_copy(update={"after": after}), options, findings)


def _ends(lane: Sequence[Run]) -> list[str]:
    return [":".join((_TYPES["any"], *(str(run.job_id) for run in lane)))] if lane else []


def _options(kinds: Sequence[str]) -> tuple[str, ...]:
    """Return the options for dependencies that must all hold."""
    if not kinds:
        return ()
    # Without the second option, some sites cancel a job that can never start, and give no reason.
    return f"--dependency={','.join(kinds)}", "--kill-on-invalid-dep=no"


def _check(run: Run, site: Site, when: str) -> None:
    if run.site != site.name:
        raise _error(
            f"{run.id} is a run at {run.site}, but the job is for {site.name}.",
            "Slurm waits only for jobs of its own cluster: choose another run.",
        )
    if run.state in _NEVER or (run.job_id is None and run.state.is_final):
        raise _error(f"{run.id} never became a job ({run.state}).", "Choose another run.")
    if run.job_id is None or run.state is State.UNKNOWN:
        raise _error(
            f"It is unknown whether {run.id} became a job ({run.state})."
            if run.job_id is None
            else f"The state of {run.id} is unknown.",
            "Run `lumitui status`, then try again.",
        )
    fits = {"done": run.state is State.DONE, "failed": run.state is not State.DONE, "any": True}
    if run.state.is_final and not fits[when]:
        raise _error(
            f"{run.id} has ended as {run.state}, so a job that waits for it to "
            f"{'fail' if when == 'failed' else 'be done'} would never start.",
            "Choose another run, or change `when:`.",
        )


def _error(message: str, hint: str) -> InputError:
    return InputError(message, hint, field="after")
