"""Prepares and sends launches."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumitui.app.runs.core import RunsCore
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.states import State

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lumitui.app.history.run import Run
    from lumitui.app.job.spec import JobSpec
    from lumitui.app.launch.send.drafts import Drafts
    from lumitui.app.launch.send.export import ExportedFolder
    from lumitui.app.launch.send.preview import Preview
    from lumitui.app.launch.send.submit import Report
    from lumitui.app.scale.lineage_overview import Overviews
    from lumitui.app.scale.resubmission import CodeNews, Resubmission
    from lumitui.app.scale.run_plan import CodeChoice, Follows, StartPoint
    from lumitui.app.scale.scaling.studies import Scalings
    from lumitui.app.survey.environments.site_environments import Environments
    from lumitui.app.survey.inquiry.inquiries import Inquiries
    from lumitui.app.survey.inquiry.start_places import StartPlace

_FRESH = 60.0
"""Seconds for which a run's state is up to date by any clock; Slurm remembers jobs for 300."""


class Launches(RunsCore):
    """Compose, export, send, resubmit, scale."""

    def preview(
        self, job: JobSpec | Path | str, folder: Path | None = None, *, job_file: Path | None = None
    ) -> Preview:
        """Return the exact job to send, without sending it.

        Args:
            job: a job file, or its contents.
            folder: the folder for relative paths; None: the job file's own.
            job_file: the file to record in the history, if `job` is not a file.

        Raises:
            InputError: the job file is invalid, cannot be composed, or has a grid.
        """
        from lumitui.app.launch.send.preview import only

        return only(self.previews(job, folder, job_file=job_file))

    def previews(
        self,
        job: JobSpec | Path | str,
        folder: Path | None = None,
        *,
        job_file: Path | None = None,
        changes: Mapping[str, Any] | None = None,
    ) -> tuple[Preview, ...]:
        """Return the previews of a job's runs: one, or those of its grid. See `preview`.

        `changes` has new values for keys of the job file.

        Raises:
            InputError: the job file is invalid or cannot be composed.
        """
        from lumitui.app.job.spec import at_line_of, changed, read_job

        if isinstance(job, Path | str):
            spec = read_job(Path(job))  # first: `resolve` raises an odd error for a link to itself
            job_file = Path(job).resolve()
            folder = folder or job_file.parent
        else:
            spec = job
        spec = changed(spec, dict(changes), "`changes`") if changes else spec
        try:
            return self.drafts.previews(spec, folder or Path.cwd(), job_file)
        except InputError as error:
            if isinstance(job, Path | str) and not changes:
                error.message = at_line_of(Path(job), error)
            raise

    def trial(self, job: Path | str) -> Preview:
        """Return the preview of a job's trial: one node, ten minutes, two steps.

        It uses the site's partition for trials, if the profile has one that fits.

        Raises:
            InputError: the job file is invalid or cannot be composed.
        """
        from lumitui.app.job.spec import read_job
        from lumitui.app.launch.trial import trial_of

        path = Path(job)
        spec = read_job(path)
        trial = trial_of(spec, self.sites.load(spec.site))
        return self.preview(trial, path.resolve().parent).as_trial()

    def debug(self, job: Path | str, *, seconds: int = 1800, idle: int = 1200) -> Preview:
        """Return the preview of a job that holds a job's nodes for a shell, and runs nothing.

        It holds them for `seconds`, or until no shell was open for `idle` seconds. It uses the
        site's partition for trials, if the profile has one that fits.

        Raises:
            InputError: the job file is invalid or cannot be composed, or a time is too short.
        """
        from lumitui.app.job.spec import read_job
        from lumitui.app.launch.trial import debug_of

        path = Path(job)
        spec = read_job(path)
        held = debug_of(spec, self.sites.load(spec.site), seconds, idle)
        return replace(self.preview(held, path.resolve().parent).as_trial(), note="#debug")

    def start_places(
        self,
        job: JobSpec | Path | str,
        folder: Path | None = None,
        *,
        sites: Mapping[str, str] | None = None,
        nodes: Sequence[int] = (),
    ) -> tuple[StartPlace, ...]:
        """Return where and when a job would start; nothing is submitted.

        Makes one request per site, with `sbatch --test-only` for each partition that accepts the
        job and each of `nodes`, by default the job file's.

        `sites` maps site names to accounts; by default it is the job's own site. The account ""
        stands for that of the newest run there, or the profile's default. `job` and `folder`: see
        `preview`.

        Raises:
            InputError: the job file is invalid or has a grid, or there is no such site.
        """
        from lumitui.app.job.grid import cells
        from lumitui.app.job.spec import JobSpec, read_job
        from lumitui.app.launch.send.preview import only
        from lumitui.app.survey.inquiry.start_places import start_places

        if isinstance(job, JobSpec):
            spec, base = job, folder or Path.cwd()
        else:
            spec, base = read_job(Path(job)), folder or Path(job).resolve().parent
        if spec.grid:
            raise InputError(
                "lumitui compares start times for one run, but `grid:` makes several.",
                "Remove `grid:`; `lumitui submit` sends all of its runs.",
            )
        spec = cells(spec)[0].spec
        recent: list[Preview] = []

        def preview(changed: JobSpec) -> Preview:
            made = only(self.drafts.previews(changed, base, recent=tuple(recent[:1])))
            recent.append(made)
            return made

        home = self.sites.load(spec.site)
        places: list[StartPlace] = []
        for name, account in (sites or {spec.site: ""}).items():
            site = self.sites.load(name)
            if name != spec.site and not account:
                last = next((run.brief.account for run in self.history.page(1, name)), "none")
                account = site.account.default if last == "none" else last
            connect = self._connections.get
            places += start_places(spec, site, home, account, nodes, preview, connect)
        return tuple(places)

    @cached_property
    def environments(self) -> Environments:
        """The container images and the virtual environments of sites."""
        from lumitui.app.follow.sites.inventory import unfinished_of
        from lumitui.app.survey.environments.site_environments import Environments

        unfinished = partial(unfinished_of, self.history)
        return Environments(self.sites, self._connections, self.history, self._data, unfinished)

    @cached_property
    def drafts(self) -> Drafts:
        """Drafts of job files, and previews of their runs."""
        from lumitui.app.launch.send.drafts import Drafts

        return Drafts(
            self.sites, self._connections, self.history, self._hashes,
            lambda site: self.environments.choices(site),
            lambda *previews: self.inquiries.known(*previews),
        )  # fmt: skip

    @cached_property
    def inquiries(self) -> Inquiries:
        """Queries of clusters about jobs, made on request."""
        from lumitui.app.survey.inquiry.inquiries import Inquiries

        return Inquiries(lambda site: self._connections.get(site), self._budgets)

    def export(self, preview: Preview, target: Path) -> ExportedFolder:
        """Write the job of `preview` as a folder for plain Slurm, without querying a site.

        Raises:
            InputError: as for `export.export`.
        """
        from lumitui.app.launch.send.export import export

        return export(preview, target, self._hashes)

    def send(
        self,
        preview: Preview,
        *,
        report: Report = lambda step, words: None,
        resubmission: Resubmission | None = None,
        begun: Callable[[Run], None] = lambda run: None,
        place: str = "",
        tried: Sequence[str] = (),
    ) -> Run:
        """Send `preview` and return its run.

        `begun` gets the run before the history records it and before anything is sent. `place` is a
        key that only one laptop can use; `tried` has the ids of earlier attempts.

        Raises:
            InputError: the adviser found errors, or a file is refused.
            AlreadySent: another laptop has sent it; the history then has its run.
            RefusedError, LinkError, OutcomeUnknown: as for `submit.send`.
        """
        from lumitui.app.follow.recover import adopt_sent
        from lumitui.app.launch.send.lock import sender_lock
        from lumitui.app.launch.send.shipment import folder_plan, shipment_of
        from lumitui.app.launch.send.submit import send
        from lumitui.app.runs.claims import once_of
        from lumitui.remote.site.errors import RefusedError
        from lumitui.remote.transfer.snapshots.once_mark import AlreadySent
        from lumitui.remote.transfer.snapshots.prepare import require_inherited

        preview.check()
        self._check_awaited(preview)
        connection = self._connections.get(preview.site)
        inheritance = resubmission.inheritance if resubmission else None
        shipment = shipment_of(preview, connection, self._hashes, inheritance)
        once = once_of(shipment, resubmission, self.history, place, tried)
        shipment = replace(shipment, once=once)
        require_inherited(connection.transport, folder_plan(shipment, {}))
        with sender_lock(self._locks, shipment.run.id, wait=True):
            begun(shipment.run)
            self._left_secrets.expect(shipment.run)
            try:
                check = partial(self._check_awaited, preview)
                return send(shipment, connection, self.history, report, check)
            except RefusedError as error:
                if isinstance(error, AlreadySent):
                    folder = shipment.run.folder.removesuffix(shipment.run.id) + error.run
                    adopt_sent(connection, shipment.run.site, folder, self.history)
                site, transport = shipment.run.site, connection.transport
                for words in self._left_secrets.sweep(self.history, site, transport).warnings:
                    report("record", words)
                raise

    def up_to_date(self, site: str, read: Callable[[], tuple[Run, ...]]) -> tuple[Run, ...]:
        """Return the runs of `read`, after a refresh of their site if a state is too old.

        Slurm forgets a job minutes after its end, and then refuses jobs that wait for it.

        Raises:
            LinkError: the site cannot be reached.
        """
        runs, now = read(), time.time()
        if all(abs(now - run.updated) <= _FRESH for run in runs):
            return runs
        failed = self.refresh(site).failed
        if site in failed:
            raise failed[site]
        return read()

    def _check_awaited(self, preview: Preview) -> None:
        """Query the runs that a job waits for.

        Raises:
            InputError: one of them has ended, or its state is unknown.
            LinkError: the site cannot be reached.
        """
        after = preview.launch.spec.after
        ids = after.run if after else ()
        for run in self.up_to_date(preview.site.name, lambda: tuple(map(self.history.get, ids))):
            if run.state.is_final:
                ended = f"{run.id} has since ended: {run.state}."
                raise InputError(ended, "Preview the job again.")
            if run.state is State.UNKNOWN:
                do = "Run `lumitui status`, then send the job again."
                raise InputError(f"The state of {run.id} is unknown.", do)

    def plan_resubmission(
        self,
        run_id: str,
        *,
        nodes: int | None = None,
        settings: Sequence[str] = (),
        code: CodeChoice = "same",
        start: StartPoint | None = None,
        follows: Follows | None = None,
    ) -> Resubmission:
        """Return the plan of a resubmission, without sending it.

        By default, a failed run continues from its last checkpoint if it can, and any other starts
        from scratch. With the current `code`, lumitui reads DeepSpeed's configuration again. It
        waits for no other run unless it `follows` one.

        Raises:
            InputError: there is no such run, a setting is invalid, or the batch cannot be split.
        """
        from lumitui.app.scale.resubmission import basis_of, following, made_ready
        from lumitui.app.scale.run_plan import ResubmissionRequest, plan
        from lumitui.remote.connect import submit_command

        parent = self.history.get(run_id)
        site = self.sites.load(parent.site)
        lineage = self.history.lineage(parent.id)
        slowest = self._slowest_save(parent, lineage)
        named = tuple(self.drafts.text_with_names(text, parent.spec, site) for text in settings)
        trained = self.history.metrics.global_batch(parent.id)
        request = ResubmissionRequest(nodes, named, code, start, follows, slowest, trained)
        basis = basis_of(parent, request)
        basis = following(basis, follows, site, self.history.get) if follows else basis
        planned = plan(basis, lineage, site, request)
        known = self.history.snapshots
        return made_ready(planned, site, submit_command(site), self._hashes, known)

    def _slowest_save(self, run: Run, lineage: Sequence[Run]) -> float | None:
        """Return the seconds of the slowest save of a run, or of its nearest ancestor with one."""
        by_id = {other.id: other for other in lineage}
        older: Run | None = run
        while older is not None:
            if slowest := self.history.metrics.slowest_save(older.id):
                return slowest
            older = by_id.get(older.parent or "")
        return None

    def code_news(self, run_id: str) -> CodeNews:
        """Return the changes in a run's project since it was sent, without querying a site.

        Raises:
            InputError: there is no such run.
        """
        from lumitui.app.scale.resubmission import code_news

        return code_news(self.history.get(run_id), self.history.snapshots, self._hashes)

    def resubmit(
        self, resubmission: Resubmission, *, report: Report = lambda step, words: None
    ) -> Run:
        """Send a planned resubmission; the new run has the old one as its parent.

        Raises:
            LumiError: as `send` does.
        """
        return self.send(resubmission.preview, report=report, resubmission=resubmission)

    @cached_property
    def overviews(self) -> Overviews:
        """The measurements of a run and its relatives."""
        from lumitui.app.scale.lineage_overview import Overviews

        return Overviews(self.history)

    @cached_property
    def scaling(self) -> Scalings:
        """Studies of how runs scale."""
        from lumitui.app.scale.scaling.studies import Scalings

        return Scalings(self.history, self.sites)
