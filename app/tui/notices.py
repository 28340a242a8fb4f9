"""Notifications of runs' events: toasts, the terminal, a webhook; and the catch-up."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING, Literal

from lumitui.app.runs import LumiError, State
from lumitui.app.tui.asking import ask

if TYPE_CHECKING:
    from lumitui.app.runs import Event, Runs
    from lumitui.app.tui.app import LumiApp

TOAST_SECONDS = 4.0
"""Toasts lie on the rows that they report."""
PATIENCE = 60.0
"""Maximum seconds that the catch-up waits for the sites."""


class Notices:
    """An app's notifications."""

    def __init__(self, app: LumiApp) -> None:
        """Load the runs that were unfinished when the TUI was last open."""
        self._app = app
        self._file = app.settings.data / "last-seen"
        self._states: dict[str, State] | None = None
        self._warned: set[str] = set()
        self._began = time.monotonic()
        self._away: set[str] | None = self._unknown()
        """Unfinished runs when the TUI was last open; None once the catch-up is over."""

    def _unknown(self) -> set[str] | None:
        from lumitui.app.runs import read_last_seen

        seen = read_last_seen(self._file)
        if seen is None:
            return None
        try:
            begun = self._app.runs.history.begun_since(seen.at)
            return {*seen.unfinished, *begun} - seen.told
        except LumiError:
            return None  # the first draw shows the error

    def tell_news(self, states: dict[str, State]) -> None:
        """Notify of events since the last call; `states` contains every unfinished run.

        Raises:
            LumiError: history cannot be read.
        """
        before, self._states = self._states, states
        if before is None or before == states:
            return
        from lumitui.app.runs import event_of, runs_with_events

        expected = (self._away or set()) | self._app.own_cancels
        moved = [run_id for run_id in runs_with_events(before, states) if run_id not in expected]
        history = self._app.runs.history
        events = (event_of(history.get(run_id), before[run_id]) for run_id in moved)
        found = [event for event in events if event is not None]
        self._app.own_cancels -= set(before) - set(states)
        if found:
            self._tell(found)
        # A terminal window may close without notice, so save what was shown now, or it would be
        # shown again.
        self.keep_last_seen()

    def catch_up(self) -> None:
        """Show once, after querying the sites, the runs that ended while the TUI was closed.

        Raises:
            LumiError: history cannot be read.
        """
        if self._away is None:
            return
        schedule = self._app.schedule
        waiting = [link for link in self._app.links if schedule.site(link.site).never_ended]
        if waiting and time.monotonic() - self._began < PATIENCE:
            return
        states = self._app.runs.history.states(self._away)
        self._away = None
        from lumitui.app.runs import away_words

        if words := away_words(states.values()):
            bad = any(state.is_final and state is not State.DONE for state in states.values())
            self._toast(f"{words}.", bad=bad)
            self._app.absence = words

    def keep_last_seen(self) -> None:
        """Save which events the user has seen, for the next start."""
        if self._states is None:
            return
        from lumitui.app.runs import write_last_seen

        # Runs that the catch-up has not shown yet are shown next time.
        pending = self._away or set()
        try:
            write_last_seen(self._file, time.time(), sorted({*self._states, *pending}))
        except OSError as error:
            self._warn_once(f"{self._file} cannot be written: {error.strerror}.")

    def _tell(self, found: list[Event]) -> None:
        from lumitui.app.runs import MOST_SINGLE_EVENTS, Happened, joint_sentence

        single = len(found) <= MOST_SINGLE_EVENTS
        sentences = [event.sentence for event in found] if single else [joint_sentence(found)]
        failed = any(event.happened is Happened.FAILED for event in found)
        seen = all(self._shows(event.run_id) for event in found)
        for sentence in [] if seen else sentences:
            self._toast(sentence, bad=failed)
        self._tell_outside(found)
        ended = [event.run_id for event in found if event.happened is Happened.FAILED]
        if ended and single:  # for many runs, logs are read on demand only
            self._find_causes(ended)

    def _shows(self, run_id: str) -> bool:
        """Return whether the screen in front shows the state of a run."""
        from lumitui.app.tui.screens.run_screen import RunScreen
        from lumitui.app.tui.screens.runs_screen import RunsScreen

        front = self._app.screen
        own = isinstance(front, RunScreen) and front.chosen == run_id
        return own or isinstance(front, RunsScreen)

    def _find_causes(self, run_ids: list[str]) -> None:
        """Find once why runs failed, one request each; the list notices the changed history."""

        def find(runs: Runs) -> None:
            from lumitui.app.runs import attendance

            for run_id in run_ids:
                # The key for the cause shows the error.
                with attendance(False), contextlib.suppress(LumiError):
                    runs.why(run_id)

        ask(self._app, find)

    def _toast(self, words: str, *, bad: bool, seconds: float = TOAST_SECONDS) -> None:
        severity: Literal["warning", "information"] = "warning" if bad else "information"
        self._app.notify(words, severity=severity, timeout=seconds, markup=False)

    def _tell_outside(self, found: list[Event]) -> None:
        """Send notifications outside the TUI; the program's exit would wait for a worker."""

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the app has ended meanwhile
                self._outside(found)

        threading.Thread(target=tell, name="notices", daemon=True).start()

    def _outside(self, found: list[Event]) -> None:
        """Notify according to the settings; show one warning per failure."""
        # Imported late, because the settings import pydantic and events are rare.
        from lumitui.app.runs import joint_sentence, outside, read_notify

        try:
            notify = read_notify(self._app.settings.files)
        except LumiError as error:
            self._app.call_from_thread(self._warn_once, str(error))
            return
        wanted = [event for event in found if event.happened in notify.events]
        if not wanted:
            return
        words = wanted[0].sentence if len(wanted) == 1 else joint_sentence(wanted)
        app = self._app
        if app.schedule.focused is False:
            sequence = outside.sequence(words, notify.terminal, os.environ)
            app.call_from_thread(app.write_out, sequence)
        troubles = [outside.post(event, notify) for event in wanted] if notify.webhook else []
        for trouble in filter(None, dict.fromkeys(troubles)):
            app.call_from_thread(self._warn_once, trouble)

    def _warn_once(self, words: str) -> None:
        if words not in self._warned:
            self._warned.add(words)
            self._toast(words, bad=True, seconds=15)
