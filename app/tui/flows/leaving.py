"""Quitting: finishes running operations first, and asks about unsaved edits."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lumitui.app.runs import write_whole

if TYPE_CHECKING:
    from lumitui.app.runs import Draft
    from lumitui.app.tui.app import LumiApp


class Leaving:
    """The exit of an app after its running operations."""

    def __init__(self, app: LumiApp) -> None:
        self._app, self._edits = app, app.settings.data / "edits.json"
        self.quits_when_done = False
        self._given_up: Draft | None = None  # the edits that the user agreed to lose

    def ended(self, words: str, *, well: bool) -> None:
        """Record the end of an operation; quit if only this one delayed it.

        Stay if an error is shown.
        """
        app = self._app
        app.under_way.remove(words)
        self.quits_when_done = self.quits_when_done and well
        if not self.quits_when_done or app.under_way:
            return
        if self._unsaved() in (None, self._given_up):
            app.exit(0)
        else:
            self._ask()

    def _unsaved(self) -> Draft | None:
        """Return the job file that quitting now would lose."""
        open_now = [getattr(screen, "unsaved", None) for screen in self._app.screen_stack]
        drafts = (draft for draft in [*open_now, self._app.kept] if draft is not None)
        return next((draft for draft in drafts if draft.text != self._app.sent), None)

    def keep_edits(self) -> None:
        """Write unsaved edits to a file for the next start."""
        if (draft := self._unsaved()) is not None:
            path = str(draft.path) if draft.path else None
            parts = (draft.text, str(draft.folder), draft.origin, path, draft.saved)
            with suppress(OSError):  # such as a full disk: the app ends anyway
                write_whole(self._edits, json.dumps(parts))

    def restore_edits(self, job: Path | None) -> None:
        """Give the New screen the edits that a signal ended, unless it opens another `job`."""
        if not self._edits.exists():
            return
        from lumitui.app.runs import Draft

        with suppress(OSError, ValueError):
            text, folder, origin, path, saved = json.loads(self._edits.read_bytes())
            if job and path != str(job.absolute()):
                return  # edits of `job` would take their place
            self._edits.unlink()
            self._app.kept = Draft(text, Path(folder), origin, Path(path) if path else None, saved)
            words = f"New (2) has your unsaved edits of {self._app.kept.name}."
            self._app.notify(words, markup=False, timeout=20)

    def _left_behind(self) -> list[tuple[str, str]]:
        """Return running operations and unsaved edits for the dialog; empty if there are none."""
        lines = [("in progress", words) for words in self._app.under_way]
        if (draft := self._unsaved()) is not None:
            lines += [("not saved", draft.name), ("to save it", "n, then 2, then ctrl+w")]
        return lines

    def quit(self) -> None:
        """Quit; ask about running operations and unsaved edits together."""
        if self._left_behind():
            self._ask()
        else:
            self._app.exit(0)

    def _ask(self) -> None:
        from lumitui.app.tui.dialogs.confirm_dialog import Confirm

        app = self._app
        if app.screen.id == "leaving":
            return

        def answered(yes: bool | None) -> None:
            self._given_up = self._unsaved() if yes else None
            self.quits_when_done = bool(yes and app.under_way)
            if self.quits_when_done:
                app.notify(f"Quits after {', '.join(app.under_way)}.", markup=False)
            elif yes:
                app.exit(0)
            elif not self._left_behind():
                app.notify(f"Finished: {waited}. Press q to quit.", markup=False)

        waited = ", ".join(app.under_way)
        lost = " and lose the edits?" if self._unsaved() is not None else "?"
        title = f"Quit when it is finished{lost}" if app.under_way else f"Quit{lost}"
        question = Confirm(
            title, self._left_behind(), "Quit then" if app.under_way else "Quit",
            now=lambda: self._left_behind() or None,
        )  # fmt: skip
        question.id = "leaving"
        app.push_screen(question, answered)
