"""What takes time with several runs: cancels, tags, notes, fetches."""

from __future__ import annotations

import os
from pathlib import Path

from textual import on, work

from lumitui.app.explain import words
from lumitui.app.tui import messages
from lumitui.app.tui.workers.core import CoreApp
from lumitui.remote.site.errors import LumiError


class MarkWorkers(CoreApp):
    """An app that acts on the runs that a person has marked."""

    @work(thread=True, group="cancel", exit_on_error=False)
    def cancel_runs(self, run_ids: tuple[str, ...]) -> None:
        """Cancel the jobs of runs, one after the other; one that fails does not stop the others."""
        done: list[str] = []
        failed: list[tuple[str, LumiError]] = []
        warnings: list[str] = []
        try:
            for run_id in run_ids:
                try:
                    done.append(self.runs.cancel(run_id, warn=warnings.append).id)
                except LumiError as error:
                    failed.append((run_id, error))
        finally:
            ended = messages.ManyCancelled(run_ids, tuple(done), tuple(failed), tuple(warnings))
            self.post_message(ended)

    @on(messages.TagsWanted)
    def _tags_wanted(self, event: messages.TagsWanted) -> None:
        self._tag(event)

    @work(thread=True, group="notes", exit_on_error=False)
    def _tag(self, wanted: messages.TagsWanted) -> None:
        from lumitui.app.history.listing.tags import told

        self.runs.history.tag(wanted.run_ids, wanted.words)
        self.call_from_thread(self.history_changed)
        runs = wanted.run_ids
        named = runs[0] if len(runs) == 1 else words.count(len(runs), "run")
        self.notify(told(named, wanted.words, "/"), markup=False)

    @on(messages.NoteWanted)
    def _note_wanted(self, event: messages.NoteWanted) -> None:
        self._note(event)

    @work(thread=True, group="notes", exit_on_error=False)
    def _note(self, wanted: messages.NoteWanted) -> None:
        self.runs.note(wanted.run_id, wanted.note)
        self.call_from_thread(self.history_changed)

    @on(messages.FetchWanted)
    def _fetch_wanted(self, event: messages.FetchWanted) -> None:
        what = words.count(len(event.run_ids), "run")
        self.notify(f"Fetching the results of {what} to {event.target} …", markup=False)
        self._fetch(event)

    @work(thread=True, group="fetch", exit_on_error=False)
    def _fetch(self, wanted: messages.FetchWanted) -> None:
        from lumitui.app.follow.results import fetch_report as results

        folder = Path(os.path.expanduser(wanted.target))  # leaves `~nobody` as it is
        several = len(wanted.run_ids) > 1
        first: LumiError | None = None
        for run_id in wanted.run_ids:
            try:
                target = folder / run_id if several else folder
                found = self.runs.fetch(run_id, target)
                said = [f"{run_id}: {words.count(len(found.files), 'file')} in {target}."]
                said += results.notes(found, named=False)
                self.post_message(messages.RunFetched(" ".join(said)))
                results.check(found, named=False)
            except LumiError as error:
                first = first or error
        if first is not None:
            raise first
