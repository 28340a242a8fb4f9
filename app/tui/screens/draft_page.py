"""A screen with a draft: saving, unsaved edits, and the user's editor."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from lumitui.app.runs import Draft, InputError, LumiError, Runs, save_draft
from lumitui.app.tui.asking import show_error
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.app.tui.dialogs.line_dialog import LineDialog
from lumitui.app.tui.panes.compose.compose_views import DraftViews
from lumitui.app.tui.screens.page import FullScreen


def path_of(text: str) -> Path:
    """Return the path that a user typed; `~` is the home folder."""
    return Path(os.path.expanduser(text))  # leaves `~nobody` as it is


def _path(text: str) -> None:
    if not text:
        raise InputError("Type a path.", "lumitui saves the job file there.")


class DraftPage(FullScreen):
    """Saves its draft, opens it in an editor, and asks about unsaved edits."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+w", "save", "Save", id="new.save", tooltip="Save the job file"),
        Binding("e", "editor", "Editor", id="new.editor", tooltip="Edit the text in $EDITOR"),
    ]

    def __init__(self, runs: Runs) -> None:
        """A screen over `runs`, without a draft."""
        super().__init__(runs)
        self._draft: Draft | None = None
        self._opened = ""
        """The text that the draft began with: there is nothing to lose yet."""

    @property
    def unsaved(self) -> Draft | None:
        """The unsaved draft, or None."""
        draft = self._draft
        lost = draft is not None and draft.unsaved and draft.text != self._opened
        return draft if lost else None

    def show_saved(self) -> None:
        """Show whether something is not saved."""
        self.query_one(DraftViews).mark(unsaved=self.unsaved is not None)

    def action_save(self) -> None:
        """Save the job file; ask for its path if it has none."""
        if self._draft is None:
            return
        if self._draft.path is not None:
            self._save(None)
            return

        def named(path: str | None) -> None:
            if path is not None:
                self._save(path_of(path).absolute())

        path = str(self._draft.folder / "job.yaml")
        words = "lumitui does not overwrite an existing file."
        self.app.push_screen(LineDialog("Save the job file as", words, path, check=_path), named)

    def _save(self, path: Path | None) -> bool:
        assert self._draft is not None
        try:
            self._draft = save_draft(self._draft, path)
        except LumiError as error:
            show_error(self, error)
            return False
        if path is not None:
            self._draft = replace(self._draft, folder=path.parent, origin=path.name)
            self.query_one(DraftViews).post_message(DraftViews.CheckDue())
        self._opened = self._draft.text
        self.show_saved()
        self.notify(f"Saved {self._draft.path}.", markup=False)
        return True

    def action_editor(self) -> None:
        """Edit the text in the user's editor."""
        if self._draft is None:
            return
        from lumitui.app.tui.panes.compose.editor import edited

        try:
            text = edited(self.app, self._draft.text)
        except LumiError as error:
            show_error(self, error)
            return
        if text != self._draft.text:
            self.query_one(DraftViews).write(text)

    def _guard(self, then: Callable[[], object]) -> None:
        """Do `then` after asking about unsaved edits."""
        draft = self.unsaved
        if draft is None:
            then()
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._opened = draft.text
                then()

        lines = [("not saved", draft.name), ("to save it", "n, then ctrl+w")]
        self.app.push_screen(Confirm("Lose the edits?", lines, "Discard", patient=True), answered)

    def action_back(self) -> None:
        """Leave the screen after asking about unsaved edits."""
        self._guard(super().action_back)
