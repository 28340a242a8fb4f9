"""The facade over the recording, which sends nothing."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from lumitui.app.history.listing.series_runs import RunSeries, SeriesMember
from lumitui.app.history.run import Run
from lumitui.app.job.settings import settings
from lumitui.app.launch.send.preview import Preview
from lumitui.app.launch.send.shipment import Inheritance, shipment_of
from lumitui.app.runs.facade import Runs
from lumitui.app.runs.tour.recorded_site import (
    Player,
    RecordedFiles,
    RecordedSlurm,
    connection,
    refused,
)
from lumitui.app.runs.tour.recording import RecordedJob, RecordedRun, read_recording
from lumitui.remote.site.shell_text import quote
from lumitui.remote.site.states import State

_FIRST_JOB = 8_124_190


class RecordedRuns(Runs):
    """The recorded history in its own folder, with a queue and logs that progress."""

    def __init__(self, folder: Path) -> None:
        """Write the history into `folder` as lumitui would have, and play the jobs."""
        own = ("config", "data", "system")  # none of the user's folders
        self.own = settings({f"LUMITUI_{name.upper()}_DIR": str(folder / name) for name in own})
        self.project = folder / "vision"
        self._recording = read_recording()
        self._root = f"/scratch/{self._recording.project}"
        files = RecordedFiles(folder / "site", self._root)
        self._jobs: dict[str, RecordedJob] = {}
        self._previews: dict[str, tuple[Preview, ...]] = {}
        slurm = partial(RecordedSlurm, jobs=self._jobs, nodes=self._recording.nodes)
        user = self._recording.user
        super().__init__(
            self.own, connect=lambda site, ask: connection(site, ask, files, slurm, user)
        )
        self.project.mkdir()
        for name, file in self._recording.jobs.items():
            (self.project / f"{name}.yaml").write_text(file.text, encoding="utf-8")
        opened = time.time()
        for number, facts in enumerate(self._recording.runs):
            self._begin(facts, opened, str(_FIRST_JOB + number))
        self._begin_grids()
        jobs = {
            job.run.folder.removeprefix(self._root).lstrip("/"): job for job in self._jobs.values()
        }
        folders = {folder / "site" / path: job for path, job in jobs.items()}
        self._player = Player(folders)
        self._player.start()
        self.refresh()

    def close(self) -> None:
        """Stop the recording."""
        self._player.close()
        super().close()

    def send(self, *arguments: Any, **options: Any) -> Run:
        """Send nothing.

        Raises:
            RefusedError: always.
        """
        raise refused()

    def cancel(self, *arguments: Any, **options: Any) -> Run:
        """Cancel nothing.

        Raises:
            RefusedError: always.
        """
        raise refused()

    def _begin(self, facts: RecordedRun, opened: float, job_id: str) -> None:
        """Write a run in the state after Slurm accepted its job."""
        preview, inheritance = self._prepared(facts)
        connection_ = self._connections.get(preview.site)
        shipment = shipment_of(preview, connection_, self._hashes, inheritance)
        run = replace(
            shipment.run,
            id=facts.id,
            created=opened - 60 * facts.sent - 2,
            folder=f"{self._root}/runs/{facts.id}",
            root=self._root,
            snapshot=shipment.snapshot,
            job_id=job_id,
            state=State.QUEUED,
            note=facts.note,
        )
        self.history.adopt([run])  # long ago, in any order
        first = self._jobs[facts.parent].file if facts.parent else None
        file = first or self._recording.jobs[facts.job]
        self._jobs[run.id] = RecordedJob(facts, file, run, opened)

    def _prepared(self, facts: RecordedRun) -> tuple[Preview, Inheritance | None]:
        if not facts.parent:
            if facts.job not in self._previews:  # a grid takes half a second
                self._previews[facts.job] = self.previews(self.project / f"{facts.job}.yaml")
            return next(one for one in self._previews[facts.job] if one.cell == facts.cell), None
        planned = self.plan_resubmission(
            facts.parent, nodes=facts.nodes, settings=facts.settings, start="scratch"
        )
        return planned.preview, planned.inheritance

    def _begin_grids(self) -> None:
        grids: dict[str, list[RecordedRun]] = {}
        for facts in self._recording.runs:
            if facts.cell:
                grids.setdefault(facts.job, []).append(facts)
        for name, members in grids.items():
            sent = self._jobs[members[0].id].submitted
            every = [SeriesMember(at, one.cell, "") for at, one in enumerate(members, 1)]
            site = self.history.get(members[0].id).site
            series = RunSeries(f"{name}-grid", "grid", site, "", sent, tuple(every))
            self.history.series.begin(series)
            for member, one in zip(every, members, strict=True):
                self.history.series.claim(series.id, member.place, one.id)
            self.history.series.close(series.id)


@contextmanager
def recorded_runs() -> Iterator[RecordedRuns]:
    """Yield the recording in a temporary folder, and remove the folder at the end."""
    folder = Path(tempfile.mkdtemp(prefix="lumitui-tour-"))
    if quote(str(folder)) != str(folder):  # scripts contain it without quotes
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="lumitui-tour-", dir="/tmp"))
    try:
        runs = RecordedRuns(folder)
        try:
            yield runs
        finally:
            runs.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
