"""What a run has brought: its proof, its figures, its files, why it failed."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from lumitui.app.runs.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lumitui.app.explain.proof.binding_proof import Verdict
    from lumitui.app.follow.results.comparison import Comparisons
    from lumitui.app.follow.results.listed_files import RunFileLists
    from lumitui.app.follow.results.log_patterns import LogFigures
    from lumitui.app.follow.results.raising_code import RaisingCode
    from lumitui.app.follow.results.run_figures import Figures
    from lumitui.app.follow.results.sweep import Sweeps
    from lumitui.app.history.metric_points import MetricPoint
    from lumitui.app.history.run import Run
    from lumitui.app.knowledge.failure.diagnosis import Diagnosis
    from lumitui.remote.transfer.results.fetch_files import FetchOutcome


class Results(Watching):
    """Ask what became of a run, and fetch its files."""

    def note(self, run_id: str, text: str) -> Run:
        """Keep a line about a run; '' removes it. Its tags stay.

        Raises:
            InputError: no such run, or the text is not one plain line.
        """
        from lumitui.app.history.listing.tags import with_text
        from lumitui.app.history.run import one_line

        run = self.history.get(run_id)
        note = one_line(with_text(run.note, text))
        self.history.update(run.id, note=note)
        return replace(run, note=note)

    def proof(self, run: Run) -> Verdict:
        """Return what the run's probe says about its binding."""
        from lumitui.app.explain.proof.binding_proof import verdict_of

        return verdict_of(run)

    def metrics(self, run_id: str) -> list[MetricPoint]:
        """Return the lines of a run's metrics.jsonl that have arrived here; no site is asked.

        `wait` and `refresh` bring them.

        Raises:
            InputError: no such run.
        """
        return self.history.metrics.of(self.history.get(run_id).id)

    def figures(self, run_id: str) -> Figures:
        """Return what the metrics of a run come to; no site is asked."""
        from lumitui.app.follow.results.run_figures import figures_of

        return figures_of(self.history, run_id)

    def log_figures(self, run_id: str) -> LogFigures:
        """Return what the job file's `metrics:` find in the run's log; its site may be asked.

        Raises:
            InputError: no such run.
        """
        from lumitui.app.follow.results.log_patterns import keep_log_figures, log_figures_of

        run = self.history.get(run_id)
        found = log_figures_of(run, lambda last: self.read_log(run_id, last=last))
        keep_log_figures(self.history, run, found)
        return found

    def why(self, run_id: str) -> list[Diagnosis]:
        """Return why a run failed, the likeliest reason first; the site is asked for its log.

        The first is kept in a few words, so that lists say it without asking again.

        Raises:
            InputError: no such run.
            LinkError: the site cannot be reached.
        """
        from lumitui.app.follow.ending import ending_of
        from lumitui.app.history.listing.state_filter import WENT_WRONG
        from lumitui.app.knowledge.failure.diagnose import diagnose

        run = self.history.get(run_id)
        found = diagnose(ending_of(self._watcher, run))
        if run.state in WENT_WRONG and found and found[0].brief != run.cause:
            self.history.update(run.id, cause=found[0].brief)
        return found

    def raising_code(self, run_id: str, place: str) -> RaisingCode | None:
        """Return the code around a cause's `place`, if the project still has it; asks no site.

        Raises:
            InputError: no such run.
        """
        from lumitui.app.follow.results.raising_code import code_around

        run = self.history.get(run_id)
        return code_around(run, place, self.history.snapshots.manifest(run.site, run.root))

    def fetch(self, run_id: str, target: Path, patterns: Sequence[str] = ()) -> FetchOutcome:
        """Bring results to `target`, verified by hash; files that are equal already stay.

        Without `patterns` the job file's `fetch:` counts, or else the trainer's, and the run's
        records come too.

        Raises:
            InputError: no such run, or a pattern that leaves its folder.
            LinkError: the site cannot be reached.
        """
        from lumitui.app.follow.results.fetch_report import bring

        run = self.history.get(run_id)
        with self._watcher.connection(run.site).files() as transport:
            return bring(run, transport, target, patterns)

    @cached_property
    def sweeps(self) -> Sweeps:
        """The runs of grids beside each other."""
        from lumitui.app.follow.results.sweep import Sweeps

        return Sweeps(self.history)

    @cached_property
    def comparisons(self) -> Comparisons:
        """Runs beside each other."""
        from lumitui.app.follow.results.comparison import Comparisons

        return Comparisons(self.history, self._transport)

    @cached_property
    def files(self) -> RunFileLists:
        """The files of runs' folders."""
        from lumitui.app.follow.results.listed_files import RunFileLists

        return RunFileLists(self.history, self._transport)
