"""Runs: everything a person can do with jobs. The TUI and the CLI call only this.

What lists and refreshes need is imported here; what one action needs, that action imports.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from lumitui.app.history.history import History
from lumitui.app.send.lock import sender_lock
from lumitui.app.watch.left_secrets import LeftSecrets
from lumitui.app.watch.refresh import Watcher, refresh, unheard
from lumitui.app.watch.wait import never
from lumitui.remote.connect import Connections, connect
from lumitui.remote.errors import RefusedError
from lumitui.remote.site.sites import Sites

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from lumitui.app.explain.diagnose import Diagnosis
    from lumitui.app.explain.proof.binding_proof import Verdict
    from lumitui.app.history.file.sqlite_file import Tell
    from lumitui.app.history.run import Run
    from lumitui.app.job.spec import JobSpec
    from lumitui.app.results.comparison import Comparisons
    from lumitui.app.results.log_patterns import LogFigures
    from lumitui.app.results.run_files import RunFiles
    from lumitui.app.results.summary import Figures
    from lumitui.app.scale.overview import Overviews
    from lumitui.app.scale.resubmission import CodeChoice, Resubmission
    from lumitui.app.scale.scaling.studies import Scalings
    from lumitui.app.scale.start import Start
    from lumitui.app.send.drafts.drafts import Drafts
    from lumitui.app.send.export import Exported
    from lumitui.app.send.preview import Preview
    from lumitui.app.send.submit import Report
    from lumitui.app.settings import Settings
    from lumitui.app.watch.follow_log import LogEvent
    from lumitui.app.watch.log_pages import LogPages
    from lumitui.app.watch.recover import Recovered
    from lumitui.app.watch.refresh import Refreshed, Warn
    from lumitui.app.watch.sites.clusters import Clusters
    from lumitui.app.watch.wait import Stop
    from lumitui.remote.connect import Connect
    from lumitui.remote.doctor.check import Check
    from lumitui.remote.snapshots.fetch import FetchOutcome
    from lumitui.remote.snapshots.prune import Pruned
    from lumitui.remote.ssh.prompts import Ask
    from lumitui.remote.transport.footprint import Footprint
    from lumitui.remote.transport.protocol import Transport
    from lumitui.remote.transport.request_log import Request


class Runs:
    """The headless core over history, profiles and connections. Threads may share it."""

    def __init__(
        self,
        settings: Settings,
        *,
        ask: Ask = lambda question: None,
        connect: Connect = connect,
        tell: Tell = lambda words: None,
    ) -> None:
        """Open the history; no network before something needs it.

        `tell` receives what the person should read while an older version's history is converted.
        """
        self.sites = Sites(settings.profiles)
        self.history = History(settings.history, tell)
        self._locks, self._hashes = settings.data / "sending", settings.data / "hashes"
        self._kept_logs = settings.data / "logs"
        self._connections = Connections(ask, connect)
        self._left_secrets = LeftSecrets(settings.data / "secrets-left")
        self._watcher = Watcher(
            self.history, self._locks, self.sites, self._connections, self._left_secrets
        )

    def close(self) -> None:
        """Close connections and history."""
        self._connections.close()
        self.history.close()

    # -- compose

    def preview(self, spec: JobSpec, folder: Path, *, job_file: Path | None = None) -> Preview:
        """Return what `spec` would send; its `project` is relative to `folder`.

        Raises:
            InputError: it cannot be composed.
        """
        from lumitui.app.send.drafts.series import only

        return only(self.drafts.previews(spec, folder, job_file))

    @cached_property
    def drafts(self) -> Drafts:
        """Job files that are being written, and the runs of a grid."""
        from lumitui.app.send.drafts.drafts import Drafts

        return Drafts(self.sites, self._connections, self.history, self._hashes, self.send)

    def export(self, preview: Preview, target: Path) -> Exported:
        """Write the job of `preview` as a folder for plain Slurm; no site is asked.

        Raises:
            InputError: see `export.export`.
        """
        from lumitui.app.send.export import export

        return export(preview, target, self._hashes)

    # -- send

    def send(
        self,
        preview: Preview,
        *,
        report: Report = lambda step, words: None,
        resubmission: Resubmission | None = None,
    ) -> Run:
        """Send `preview` and return the run that became of it.

        Raises:
            InputError: the adviser found errors, or a file to ship is refused.
            RefusedError, LinkError, OutcomeUnknown: see `submit.send`.
        """
        from lumitui.app.send.shipment import shipment_of
        from lumitui.app.send.submit import send

        preview.check()
        connection = self._connections.get(preview.site)
        inheritance = resubmission.inheritance if resubmission else None
        shipment = shipment_of(preview, connection, self._hashes, inheritance)
        with sender_lock(self._locks, shipment.run.id, wait=True):
            self._left_secrets.expect(shipment.run)
            try:
                return send(shipment, connection, self.history, report)
            except RefusedError:
                site, transport = shipment.run.site, connection.transport
                for words in self._left_secrets.sweep(self.history, site, transport).warnings:
                    report("record", words)
                raise

    def plan_resubmission(
        self,
        run_id: str,
        *,
        nodes: int | None = None,
        settings: Sequence[str] = (),
        code: CodeChoice = "same",
        start: Start | None = None,
    ) -> Resubmission:
        """Return the run made ready again; nothing is sent.

        Without `start`, a failed run continues from its last checkpoint when it can, and any
        other starts from scratch. With the current `code` DeepSpeed's configuration is read anew.

        Raises:
            InputError: no such run, a wrong setting, a batch that cannot be split.
        """
        from lumitui.app.scale.resubmission import ResubmissionRequest, plan

        parent = self.history.get(run_id)
        site = self.sites.load(parent.site)
        request = ResubmissionRequest(nodes, tuple(settings), code, start)
        lineage = self.history.lineage(parent.id)
        command = self._connections.get(site).scheduler.command()
        return plan(parent, lineage, site, command, request, self._hashes)

    def resubmit(
        self, resubmission: Resubmission, *, report: Report = lambda step, words: None
    ) -> Run:
        """Send a planned resubmission; the new run has the old one as its parent."""
        return self.send(resubmission.preview, report=report, resubmission=resubmission)

    @cached_property
    def overviews(self) -> Overviews:
        """What a run and its relatives have measured."""
        from lumitui.app.scale.overview import Overviews

        return Overviews(self.history)

    @cached_property
    def comparisons(self) -> Comparisons:
        """Runs beside each other."""
        from lumitui.app.results.comparison import Comparisons

        return Comparisons(self.history, self._transport)

    @cached_property
    def files(self) -> RunFiles:
        """The files of runs' folders."""
        from lumitui.app.results.run_files import RunFiles

        return RunFiles(self.history, self._transport)

    @cached_property
    def scaling(self) -> Scalings:
        """How runs scale."""
        from lumitui.app.scale.scaling.studies import Scalings

        return Scalings(self.history, self.sites)

    # -- watch

    @cached_property
    def clusters(self) -> Clusters:
        """The sites as they are now: nodes, queue, reservations, budget."""
        from lumitui.app.watch.sites.clusters import Clusters

        return Clusters(self.history, self.sites, self._watcher.connection)

    def refresh(self, site_name: str | None = None, *, attended: bool = True) -> Refreshed:
        """Ask every site with unfinished runs, or the named one, and write what is new to history.

        A site that cannot be reached is a warning, not an error: its runs stay as they were.
        Not `attended`, no login asks a question.
        """
        return refresh(self._watcher, site_name, attended=attended)

    def requests(self) -> dict[str, list[Request]]:
        """Return what each site was asked lately, the newest first; no site is asked."""
        return self._connections.requests()

    def footprint(self, site_name: str) -> Footprint:
        """Return what this program has cost a site so far; no site is asked."""
        return self._connections.footprint(site_name)

    def cancel(self, run_id: str, *, warn: Warn = unheard) -> Run:
        """Cancel a run's job and return the run as it is then.

        `warn` is called where nothing was cancelled, or the site cannot be polled afterwards.

        Raises:
            InputError: it has ended.
            OutcomeUnknown: whether it has a job is not known yet.
            RefusedError, LinkError: the scheduler would not, or cannot be reached.
        """
        from lumitui.app.watch.cancel import cancel

        return cancel(self._watcher, self.history.get(run_id), warn)

    # -- logs

    @cached_property
    def pages(self) -> LogPages:
        """Any part of a run's log."""
        from lumitui.app.watch.log_pages import LogPages

        return LogPages(self._watcher, self._kept_logs)

    def read_log(
        self, run_id: str, *, attempt: int | None = None, last: int = 65536
    ) -> tuple[int, bytes]:
        """Return the offset of at most the `last` bytes of a log, and the bytes.

        Raises:
            InputError: no such run.
            RefusedError: there is no such log.
            LinkError: the site cannot be reached.
        """
        from lumitui.app.watch.follow_log import read_end

        run = self.history.get(run_id)
        start, data = read_end(self._transport(run), run, attempt, last)
        self.pages.kept.keep(run.id, attempt or run.attempt, start, data)
        return start, data

    def follow(
        self, run_id: str, *, last: int | None = None, stop: Stop = never
    ) -> Iterator[LogEvent]:
        """Yield a run's log from its `last` bytes on until the run has ended.

        The site is refreshed now and then.

        Raises:
            InputError: no such run.
            AnswerNeeded: the link was lost, and a new one needs a person.
            LinkError: the site cannot be reached, or the link was cut again and again.
        """
        from lumitui.app.watch.follow_log import FIRST_BYTES, follow

        last = FIRST_BYTES if last is None else last
        return follow(self._watcher, self.history.get(run_id), last=last, stop=stop)

    def show_log(
        self,
        run_id: str,
        *,
        attempt: int | None = None,
        offset: int = 0,
        stop: Stop = never,
    ) -> Iterator[LogEvent]:
        """Yield a run's log for a screen that has `offset` bytes of an attempt's log already.

        It costs one stream; the app's own refreshes bring the state of the run. A link that is
        lost is tried again for as long as the screen is there.

        Raises:
            InputError: no such run.
        """
        from lumitui.app.watch.follow_log import show

        run = self.history.get(run_id)
        events = show(self._watcher, run, attempt=attempt, offset=offset, stop=stop)
        return self.pages.keeping(run.id, attempt, events)

    def wait(
        self,
        run_id: str,
        *,
        timeout: float | None = None,
        stop: Stop = never,
        warn: Warn = unheard,
    ) -> Run:
        """Return the run when it has ended, or as it is after `timeout` seconds.

        Raises:
            InputError: no such run.
            AnswerNeeded: the link was lost, and a new one needs a person; the job goes on.
        """
        from lumitui.app.watch.wait import wait

        run = self.history.get(run_id)
        return wait(self._watcher, run, timeout=timeout, stop=stop, warn=warn)

    # -- after

    def note(self, run_id: str, text: str) -> Run:
        """Keep a line about a run; '' removes it.

        Raises:
            InputError: no such run, or the text is not one plain line.
        """
        from lumitui.app.history.run import one_line

        run = self.history.get(run_id)
        self.history.update(run.id, note=one_line(text))
        return replace(run, note=text)

    def proof(self, run: Run) -> Verdict:
        """Return what the run's probe says about its binding."""
        from lumitui.app.explain.proof.binding_proof import verdict_of

        return verdict_of(run)

    def figures(self, run_id: str) -> Figures:
        """Return the figures of a run's metrics; no site is asked."""
        from lumitui.app.results.summary import figures_of

        return figures_of(self.history, run_id)

    def log_figures(self, run_id: str) -> LogFigures:
        """Return what the job file's `metrics:` find in the run's log; its site may be asked."""
        from lumitui.app.results.log_patterns import log_figures_of

        run = self.history.get(run_id)
        return log_figures_of(run, lambda last: self.read_log(run_id, last=last)[1])

    def why(self, run_id: str) -> list[Diagnosis]:
        """Return why a run failed, the likeliest reason first; the site is asked for its log.

        Raises:
            InputError: no such run.
            LinkError: the site cannot be reached.
        """
        from lumitui.app.explain.diagnose import diagnose
        from lumitui.app.watch.ending import ending_of

        return diagnose(ending_of(self._watcher, self.history.get(run_id)))

    def fetch(self, run_id: str, target: Path, patterns: Sequence[str] = ()) -> FetchOutcome:
        """Bring results to `target`, verified by hash; files that are equal already stay.

        Without `patterns` the job file's `fetch:` counts, or else the trainer's, and the run's
        records come too.
        """
        from lumitui.app.results.fetch import bring

        run = self.history.get(run_id)
        return bring(run, self._transport(run), target, patterns)

    def prune(
        self, site_name: str, *, dry: bool = False, warn: Warn = unheard
    ) -> dict[str, Pruned]:
        """Remove snapshots that no unfinished run on a site uses; return what was freed, by root.

        The newest snapshot of each project stays: the next send builds on it. `dry` only counts.
        """
        from lumitui.remote.snapshots.prune import prune

        transport = self._watcher.connection(site_name).transport
        for words in self.refresh(site_name).warnings:
            warn(words)
        for words in self._left_secrets.sweep(self.history, site_name, transport).warnings:
            warn(words)
        return {
            root: prune(transport, f"{root}/code", keep, dry=dry)
            for root, keep in self.history.snapshots.in_use(site_name).items()
        }

    def recover(self, site_name: str, account: str = "") -> Recovered:
        """Rebuild the runs that the history does not know from their folders on a site.

        The runs that it knows stay as they are. Without `account` all accounts count that the
        person has there.

        Raises:
            InputError: no such site, or an account is needed and none is known.
            LinkError: the site cannot be reached.
        """
        from lumitui.app.watch.recover import recover

        return recover(self._watcher, site_name, account)

    def doctor(self, site_name: str, account: str = "") -> list[Check]:
        """Return what the live cluster says about a site's profile.

        Raises:
            InputError: no such site.
            LinkError: it cannot be reached.
        """
        from lumitui.remote.doctor.examine import examine

        site = self.sites.load(site_name)
        connection = self._watcher.connection(site_name)
        work_root = partial(connection.work_root, site)
        return examine(connection.transport, site, account, work_root, connection.notes)

    # -- inside

    def _transport(self, run: Run) -> Transport:
        return self._watcher.connection(run.site).transport
