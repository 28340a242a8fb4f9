"""The user's limits for agents, `agents:` of the settings file, and their used budget."""

import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from lumitui.app.runs import (
    AGENT_TAG,
    Filter,
    InputError,
    LumiError,
    Preview,
    Run,
    Runs,
    State,
    held_gpus,
    parse_filter,
    read_document,
    validate,
    walltime,
)

Power = Literal["preview", "submit", "cancel"]
_SBATCH = re.compile(r"--(?:exclude|constraint)=[\w.,:&|*()\[\]-]+", re.ASCII)
"""Options of `sbatch:` that do not request more nodes, GPUs or time. sbatch accepts abbreviations
such as `--tim=`, so a list of forbidden options would have gaps, and several options in one line,
so the value must not contain a space."""
NO_REQUEUE = "--no-requeue"
_ALL = 1_000_000


class Allowance(BaseModel):
    """The limits of agents; without `agents:`, they may read and preview."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    gpu_hours: Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)] = 0
    """The total budget of all agents' runs, each at its time limit until it has ended."""
    sites: tuple[str, ...] = ()
    """Sites where agents may submit and cancel."""
    may: tuple[Power, ...] = ("preview",)
    secrets: tuple[str, ...] = ()
    """Names that agents' job files may list under `secrets:`."""


class _AllowanceFile(BaseModel):
    model_config = ConfigDict(extra="forbid")  # a misspelt `agents:` must not count as absent

    agents: Allowance = Allowance()
    keys: object = None
    notify: object = None


def read_allowance(file: Path) -> Allowance:
    """Return `agents:` of a settings file, or the default; InputError if a value is invalid."""
    if not file.exists():
        return Allowance()
    document = read_document(file)
    return validate(
        document, _AllowanceFile, document.data, "`lumitui docs agents` lists the keys."
    ).agents


def hours_of_preview(preview: Preview) -> float:
    """Return the GPU-hours of a run that takes its full time limit, or all limits of its chain."""
    spec = preview.launch.spec
    held = held_gpus(spec, preview.site, preview.launch.layout)
    return held * spec.chain * _limit_hours(spec.time)


def requeues(preview: Preview) -> bool:
    """Return whether Slurm may start a job again after a failed node or a preemption.

    The run's GPU-hours would not cover that start. A chain's GPU-hours cover each of its attempts,
    and it has no further ones.
    """
    spec = preview.launch.spec
    return preview.site.scheduler == "slurm" and spec.chain == 1 and NO_REQUEUE not in spec.sbatch


def _limit_hours(time_limit: str) -> float:
    """Return the hours of a time limit as Slurm stores it: rounded up to a minute."""
    return math.ceil(walltime.seconds_of(time_limit) / 60) / 60


def used_hours(runs: Runs, now: float) -> dict[str, float]:
    """Return the GPU-hours of each run that an agent sent, by id; queries no site.

    A run counts with its time limit until it has ended, then with its actual time.
    """
    sent = runs.history.listed(_ALL, Filter(terms=parse_filter(AGENT_TAG)))
    return {run.id: _hours_of_run(runs, run, now) for run in sent}


def _hours_of_run(runs: Runs, run: Run, now: float) -> float:
    if run.state in (State.NOT_SENT, State.REFUSED):
        return 0.0
    try:
        held = held_gpus(run.spec, runs.sites.load(run.site), run.layout)
    except LumiError:  # the profile has changed since
        held = run.layout.nodes * run.layout.gpus_per_node
    limit = _limit_hours(run.brief.time)
    if not run.state.is_final or not _is_time_known(run):
        return held * max(run.brief.chain, run.attempt) * limit
    # Slurm reports only the last attempt's time. Earlier attempts count with their limits: their
    # times in attempts.jsonl come from the job itself, and an agent's job could forge them.
    return held * ((run.attempt - 1) * limit + run.elapsed(now) / 3600)


def _is_time_known(run: Run) -> bool:
    """Return whether the last attempt's time is known: it never began, or it began and ended."""
    if run.started is None:
        return run.state is State.CANCELLED
    return run.ended is not None and run.ended >= run.started


def refuse_outside(previews: Sequence[Preview], folder: Path) -> None:
    """Raise InputError if a job reads files of this machine outside `folder`.

    Even the job's findings would reveal which files exist.
    """
    for one in previews:
        spec = one.launch.spec
        paths = [item.path for item in spec.stage.values()]
        paths += [spec.deepspeed.config] if spec.deepspeed else []
        places = [one.project / os.path.expanduser(path) for path in paths]
        for place in (one.project, *places):
            if not place.resolve().is_relative_to(folder):
                raise InputError(
                    f"Agents may not read {place}.", f"Their projects are in {folder}."
                )


def refusal(
    allowance: Allowance, previews: Sequence[Preview], left: float, file: Path
) -> InputError | None:
    """Return why an agent may not send `previews`, or None.

    `left` are the remaining GPU-hours, and `file` is the settings file with the allowance.
    """
    ask = f"Ask the user, who can change `agents:` in {file}."
    if "submit" not in allowance.may:
        return InputError("Agents may not submit: `agents.may` does not list `submit`.", ask)
    for one in previews:
        for words in _breaches(allowance, one):
            return InputError(words, ask)
    if not allowance.gpu_hours:
        return InputError("Agents may use no GPU-hours: `agents.gpu_hours` is not set.", ask)
    hours = sum(map(hours_of_preview, previews))
    if hours > left:
        return InputError(
            f"The job may take {hours:.4g} GPU-hours, but agents have only {max(0.0, left):.4g} of "
            f"{allowance.gpu_hours:g} left.",
            f"Request fewer nodes or less time. {ask}",
        )
    return None


def _breaches(allowance: Allowance, preview: Preview) -> Iterator[str]:
    spec, site = preview.launch.spec, preview.site.name
    if site not in allowance.sites:
        yield f"Agents may not submit to {site}: `agents.sites` does not list it."
    for name in spec.secret_names:
        if name not in allowance.secrets:
            yield f"Agents may not send {name}: `agents.secrets` does not list it."
    if spec.ship_secrets or spec.follow_links:
        yield "Agents may not use `ship_secrets:` or `follow_links:`."
    for option in spec.sbatch:
        if option != NO_REQUEUE and not _SBATCH.fullmatch(option):
            yield f"Agents may not use {option} under `sbatch:`."
    if requeues(preview):
        yield f"Slurm could requeue this job: add {NO_REQUEUE} under `sbatch:`."
