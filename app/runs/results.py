"""The results of a run: its proof, figures, files, and why it failed."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from lumitui.app.runs.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lumitui.app.explain.proof.binding_proof import Verdict
    from lumitui.app.follow.ending import RaisingCode
    from lumitui.app.follow.results.comparison import Comparisons
    from lumitui.app.follow.results.log_patterns import LogFigures
    from lumitui.app.follow.results.result_files import RunFileLists
    from lumitui.app.follow.results.summary import Figures
    from lumitui.app.follow.results.sweep import Sweeps
    from lumitui.app.history.metric_points import MetricPoint
    from lumitui.app.history.run import Run
    from lumitui.app.knowledge.failure.diagnosis import Diagnosis
    from lumitui.remote.transfer.results.fetch_files import FetchOutcome


class Results(Watching):
    """Explain a run's results, and fetch its files."""

    def note(self, run_id: str, text: str) -> Run:
        """Save a note about a run; '' removes it. The run's tags stay.

        Raises:
            InputError: there is no such run, or the text is not one plain line.
        """
        from lumitui.app.history.listing.tags import with_text
        from lumitui.app.history.run import one_line

        run = self.history.get(run_id)
        note = one_line(with_text(run.note, text))
        self.history.update(run.id, note=note)
        return replace(run, note=note)

    def proof(self, run: Run) -> Verdict:
        """Return the proof of the run's binding."""
        from lumitui.app.explain.proof.binding_proof import verdict_of

        return verdict_of(run)

    def metrics(self, run_id: str) -> list[MetricPoint]:
        """Return the lines of a run's metrics.jsonl that `wait` and `refresh` have copied.

        Queries no site.

        Raises:
            InputError: there is no such run.
        """
        return self.history.metrics.of(self.history.get(run_id).id)

    def figures(self, run_id: str) -> Figures:
        """Return the figures from a run's metrics, without querying a site."""
        from lumitui.app.follow.results.summary import figures_of

        return figures_of(self.history, run_id)

    def log_figures(self, run_id: str) -> LogFigures:
        """Return the values of the job file's `metrics:` in the run's log; may query its site.

        Raises:
            InputError: there is no such run.
        """
        from lumitui.app.follow.results.log_patterns import keep_log_figures, log_figures_of

        run = self.history.get(run_id)
        figures = log_figures_of(run, lambda last: self.read_log(run_id, last=last))
        keep_log_figures(self.history, run, figures)
        return figures

    def why(self, run_id: str) -> list[Diagnosis]:
        """Return why a run failed, the likeliest cause first; reads its log from the site.

        The history keeps a short form of the first cause, for lists.

        Raises:
            InputError: there is no such run.
            LinkError: the site cannot be reached.
        """
        from lumitui.app.follow.ending import ending_of
        from lumitui.app.history.listing.state_filter import WENT_WRONG
        from lumitui.app.knowledge.failure.diagnose import diagnose

        run = self.history.get(run_id)
        causes = diagnose(ending_of(self._watcher, run))
        if run.state in WENT_WRONG and causes and causes[0].brief != run.cause:
            self.history.update(run.id, cause=causes[0].brief)
        return causes

    def raising_code(self, run_id: str, place: str) -> RaisingCode | None:
        """Return the code around a cause's `place` if the project still has it; query no site.

        Raises:
            InputError: there is no such run.
        """
        from lumitui.app.follow.ending import code_around

        run = self.history.get(run_id)
        return code_around(run, place, self.history.snapshots.manifest(run.site, run.root))

    def fetch(self, run_id: str, target: Path, patterns: Sequence[str] = ()) -> FetchOutcome:
        """Copy results to `target`, verified by hash; skip files that are already equal.

        Without `patterns`, this copies the files of the job file's or the trainer's `fetch:`, and
        the run's records.

        Raises:
            InputError: there is no such run, or a pattern leaves its folder.
            LinkError: the site cannot be reached.
        """
        from lumitui.app.follow.results.result_files import bring

        run = self.history.get(run_id)
        with self._watcher.connection(run.site).files() as transport:
            return bring(run, transport, target, patterns)

    @cached_property
    def sweeps(self) -> Sweeps:
        """Comparisons of the runs of grids."""
        from lumitui.app.follow.results.sweep import Sweeps

        return Sweeps(self.history)

    @cached_property
    def comparisons(self) -> Comparisons:
        """Comparisons of runs."""
        from lumitui.app.follow.results.comparison import Comparisons

        return Comparisons(self.history, self._transport)

    @cached_property
    def files(self) -> RunFileLists:
        """The files in runs' folders."""
        from lumitui.app.follow.results.result_files import RunFileLists

        return RunFileLists(self.history, self._transport)
