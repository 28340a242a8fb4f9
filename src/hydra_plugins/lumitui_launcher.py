"""Hydra's launcher `lumitui`: a multirun becomes one grid of a job file's runs.

Hydra loads each module of the namespace `hydra_plugins`, and takes launchers from nowhere else.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus, configure_log
from hydra.errors import CompactHydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from lumitui.app.cli.confirmation import ask, grid_lines
from lumitui.app.runs import InputError, LumiError, Preview, Run, Runs, State

_LOG = logging.getLogger(__name__)
_LONGEST_NAME = 100
_ON_SITE = ("hydra/launcher=basic", "hydra.run.dir=${oc.env:RUN_DIR}/hydra")
"""What each job gets besides its own overrides: the site needs no lumitui, and the code's folder,
which other runs share, is not written to."""


@dataclass
class LumituiLauncherConf:
    """The launcher's part of the configuration, `hydra.launcher`."""

    _target_: str = "hydra_plugins.lumitui_launcher.LumituiLauncher"
    job: str = "job.yaml"
    """The job file of each run; its `script:` is the Hydra application."""
    wait: bool = False
    """Whether to return when all runs have ended; else when they are submitted."""
    result: str = ""
    """The metric whose last value a job returns to the sweeper, with `wait`; "": the run's id."""


ConfigStore.instance().store(
    group="hydra/launcher", name="lumitui", node=LumituiLauncherConf, provider="lumitui"
)


class LumituiLauncher(Launcher):
    """Submits a multirun."""

    def __init__(self, job: str, wait: bool, result: str) -> None:
        self._job, self._wait, self._result = job, wait, result

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Take the application's configuration; its function runs on the site alone."""
        self._config = config

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Submit a run for each list of overrides; return how each ended, or that it was sent.

        Raises:
            CompactHydraException: the job file has a mistake, or not all runs were sent.
        """
        configure_log(self._config.hydra.hydra_logging, self._config.hydra.verbose)
        try:
            with Runs(ask=ask) as runs:
                sent = self._send(runs, job_overrides)
                return [
                    self._outcome(runs, run, overrides)
                    for run, overrides in zip(sent, job_overrides, strict=True)
                ]
        except LumiError as error:
            raise CompactHydraException(str(error)) from error

    def _send(self, runs: Runs, job_overrides: Sequence[Sequence[str]]) -> Sequence[Run]:
        job = Path(self._config.hydra.runtime.cwd) / self._job
        base = runs.preview(job)
        if base.cell:
            raise InputError(
                "A job file for a Hydra multirun cannot have a `grid:`: Hydra makes the runs.",
                "Remove `grid:`, and give its values to Hydra, like `lr=0.1,0.2`.",
            )
        previews = [self._preview(runs, job, base, overrides) for overrides in job_overrides]
        for line in grid_lines(previews):
            _LOG.info(line)
        return runs.send_grid(previews, sent=lambda run: _LOG.info("sent %s", run.id))

    def _preview(self, runs: Runs, job: Path, base: Preview, overrides: Sequence[str]) -> Preview:
        """Return one run of the grid: the job file with the overrides as arguments."""
        spec, config = base.launch.spec, self._config.hydra.job.config_name
        own = [one for one in overrides if not one.startswith("hydra")]
        # Hydra's parser takes no options between overrides.
        options = [f"--config-name={config}"] if config else []
        name = re.sub(r"[^\w.+-]+", "_", "-".join([spec.name, *own]))[:_LONGEST_NAME]
        changes = {"args": [*options, *spec.args, *_ON_SITE, *own], "name": name}
        (made,) = runs.previews(job, changes=changes)
        return replace(made, cell=" ".join(own) or name)

    def _outcome(self, runs: Runs, run: Run, overrides: Sequence[str]) -> JobReturn:
        outcome = JobReturn(overrides, working_dir=run.folder, task_name=run.id)
        outcome.status, outcome.return_value = JobStatus.COMPLETED, run.id
        if not self._wait:
            return outcome
        run = runs.wait(run.id)
        if run.state is not State.DONE:
            outcome.status = JobStatus.FAILED
            words = f"{run.id}: {run.state}. `lumitui why {run.id}` explains it."
            outcome.return_value = CompactHydraException(words)
        elif self._result:
            outcome.return_value = _last(runs, run, self._result)
        return outcome


def _last(runs: Runs, run: Run, name: str) -> float:
    """Return the last value of a metric.

    Raises:
        LumiError: the run has written none.
    """
    for point in reversed(runs.metrics(run.id)):
        value = getattr(point, name, None)
        value = point.extra.get(name) if value is None else value
        if isinstance(value, int | float):
            return float(value)
    raise LumiError(f"{run.id} has no metric {name!r}.", "Write it to $RUN_DIR/metrics.jsonl.")
