"""Keys that act on the marked runs or, without marks, on the displayed or selected run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from lumitui.app.explain import words
from lumitui.app.runs import InputError, LumiError, one_line
from lumitui.app.tui.asking import ask, show_error, tui
from lumitui.app.tui.screens.page import RunScreenBase

if TYPE_CHECKING:
    from collections.abc import Callable

    from lumitui.app.runs import Runs


class MarkedPage(RunScreenBase):
    """A screen of runs, on which the user may be able to mark some."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "tag", "Tag", id="runs.tag",
                tooltip="Tag the marked runs, or this one; / #tag finds them"),
        Binding("M", "note", "Note", show=False, id="runs.note",
                tooltip="Write a note about this run"),
        Binding("E", "fetch", "Fetch", id="runs.fetch",
                tooltip="Fetch the results of the marked runs, or of this one"),
    ]  # fmt: skip

    @property
    def marked(self) -> tuple[str, ...]:
        """The ids of the marked runs, in the order of marking."""
        return ()

    @property
    def under_cursor(self) -> tuple[str, ...]:
        """The ids of the runs on the current row: several if the row is a folded series."""
        return ()

    def unmark(self) -> None:
        """Unmark all runs."""

    def _ask(
        self,
        asked: tuple[str, str],
        value: str,
        check: Callable[[str], object],
        then: Callable[[str], object],
    ) -> None:
        """Ask for a line, initially `value`, and pass it to `then`; `asked`: title and text."""
        from lumitui.app.tui.dialogs.line_dialog import LineDialog

        def answered(line: str | None) -> None:
            if line is not None:
                then(line)
                self.unmark()

        self.app.push_screen(LineDialog(*asked, value, check=check), answered)

    def _with_meant(self, do: Callable[..., object]) -> None:
        """Call `do` with the marked runs or, without marks, with those on the current row."""
        try:
            do(*(self.marked or self.under_cursor or (self._chosen(),)))
        except InputError as error:
            show_error(self, error)

    def _named(self, runs: tuple[str, ...]) -> str:
        return runs[0] if len(runs) == 1 else words.count(len(runs), "run")

    def action_cancel(self) -> None:
        """Cancel the jobs of the marked runs, or of this row, after one confirmation."""
        self._with_meant(tui(self).cancels.cancel)

    def action_tag(self) -> None:
        self._with_meant(self._ask_tag)

    def _ask_tag(self, *runs: str) -> None:
        from lumitui.app.runs import with_tags

        text = "Words such as best; -best removes it. / #best finds the runs."
        asked = (f"Tag {self._named(runs)}", text)
        self._ask(asked, "", lambda line: with_tags("", line), lambda line: self._tag(runs, line))

    def action_note(self) -> None:
        """Ask for the note of the run under the cursor."""
        self._act(self._ask_note)

    def _ask_note(self, run_id: str) -> None:
        from lumitui.app.runs import split_tags

        note, tags = split_tags(self.runs.history.get(run_id).note)
        kept = f" Its tags stay: {tags}." if tags else ""
        asked = (f"Note on {run_id}", f"One line; an empty line removes the note.{kept}")
        self._ask(asked, note, one_line, lambda line: self._note(run_id, line))

    def _tag(self, run_ids: tuple[str, ...], line: str) -> None:
        from lumitui.app.runs import tags_text

        def tagged(_: object) -> None:
            tui(self).history_changed()
            self.notify(tags_text(self._named(run_ids), line, "/"), markup=False)

        ask(self, lambda runs: runs.history.tag(run_ids, line), tagged)

    def _note(self, run_id: str, line: str) -> None:
        ask(self, lambda runs: runs.note(run_id, line), lambda _: tui(self).history_changed())

    def action_fetch(self) -> None:
        """Ask for the folder to copy results to."""
        self._with_meant(self._ask_folder)

    def _ask_folder(self, *runs: str) -> None:
        from lumitui.app.tui.dialogs.line_dialog import folder_line

        several = len(runs) > 1
        each = ", which gets a subfolder for each run" * several
        asked = (f"Fetch the results of {self._named(runs)}", f"The folder on this laptop{each}.")
        value = "." if several else runs[0]
        self._ask(asked, value, folder_line, lambda line: self._fetch(runs, line))

    def _fetch(self, run_ids: tuple[str, ...], target: str) -> None:
        """Copy the results of one run into the folder `target`, or of several into subfolders."""
        folder = Path(os.path.expanduser(target))  # keeps `~nobody` unchanged
        app, several = tui(self), len(run_ids) > 1
        what = words.count(len(run_ids), "run")
        app.notify(f"Fetching the results of {what} to {target} …", markup=False)

        def fetch(runs: Runs) -> None:
            from lumitui.app.runs import result_files

            first: LumiError | None = None
            for run_id in run_ids:
                try:
                    there = folder / run_id if several else folder
                    found = runs.fetch(run_id, there)
                    told = [f"{run_id}: {words.count(len(found.files), 'file')} in {there}."]
                    told += (notes := result_files.notes(run_id, found, named=False))
                    app.notify(" ".join(told), severity="warning" if notes else "information",
                               markup=False, timeout=20 if notes else None)  # fmt: skip
                    result_files.check_fetch(found, named=False)
                except LumiError as error:
                    first = first or error
            if first is not None:
                raise first

        ask(app, fetch, lambda _: app.history_changed())
