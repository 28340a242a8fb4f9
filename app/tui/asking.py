"""How a screen or pane asks the history or a site for something, and how it is answered.

The call runs in a thread that touches no widget; the answer comes to the one who asked, between
its own messages. Who has been closed meanwhile is answered nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from textual.reactive import var
from textual.worker import get_current_worker

from lumitui.app.runs import LumiError
from lumitui.app.tui.loop.key_order import OrderedKeysApp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from threading import Event

    from textual.message_pump import MessagePump

    from lumitui.app.runs import Draft, Preview, Run, Runs, Schedule, Settings, SiteLink

Found = TypeVar("Found")


class Sending(Protocol):
    """What sends runs, after asking."""

    def send(self, preview: Preview) -> None:
        """Send what the user has confirmed."""

    def send_grid(self, previews: tuple[Preview, ...]) -> None:
        """Send the runs of a grid, which the user has confirmed."""

    def resubmit(self, run_id: str, factor: int, settings: tuple[str, ...] = ()) -> None:
        """Open the dialog that sends a run again on `factor` times its nodes."""


class Cancelling(Protocol):
    """What cancels runs, after asking."""

    def cancel(self, run_id: str) -> None:
        """Cancel a run."""

    def cancel_many(self, run_ids: tuple[str, ...]) -> None:
        """Cancel several runs."""


class TuiApp(OrderedKeysApp):
    """The app as its screens and its parts know it: they do not import the app itself."""

    absence: var[str] = var("")
    """What ended while the TUI was closed; the title bars show it until a key is pressed."""
    links: var[tuple[SiteLink, ...]] = var(())
    """The sites with unfinished runs, and whether they answer; every title bar shows them."""
    settings: Settings
    runs: Runs
    schedule: Schedule
    ending: Event
    """Set when the app ends: threads that wait for something stop waiting."""
    under_way: list[str]
    """Each send and cancel under way, in words; the app ends only after them."""
    own_cancels: set[str]
    """Runs that the user cancels here, who needs no notice of their end."""
    kept: Draft | None = None
    """The job file that a user left without saving it."""
    sends: Sending
    cancels: Cancelling

    def notify(self, message: str, **options: Any) -> None:
        """Show a toast beside the newest one: two at most."""
        for older in list(self._notifications)[:-1]:
            self._unnotify(older, refresh=False)
        super().notify(message, **options)

    def open_run(self, run_id: str, pane: str = "overview") -> None:
        """Open a run at one of its panes."""
        raise NotImplementedError

    def open_compare(self, run_ids: tuple[str, ...]) -> None:
        """Show two to four runs beside each other."""
        raise NotImplementedError

    def open_scaling(self, run_id: str) -> None:
        """Open the screen that says how a run scales."""
        raise NotImplementedError

    def open_job(self, job: Path, *, demo: bool = False) -> None:
        """Open a job file on the screen New; esc leads back to where the user was."""
        raise NotImplementedError

    def to_first(self) -> None:
        """Close every screen but the first."""
        raise NotImplementedError

    def run_of(self, run_id: str) -> Run | None:
        """Return a run; None, after its error is shown, if history cannot be read."""
        raise NotImplementedError

    def history_changed(self) -> None:
        """Let every screen that is seen read history again."""
        raise NotImplementedError

    def tick(self, *, asked: bool = False) -> None:
        """Refresh every site that is due; `asked`: the user wants it now."""
        raise NotImplementedError

    def show_error(self, error: BaseException, *, repeats: bool = False) -> None:
        """Show an error in a dialog; every error of the TUI is shown here."""
        raise NotImplementedError

    def write_out(self, sequence: str) -> None:
        """Write a control sequence to the terminal."""
        if sequence and self._driver is not None:
            self._driver.write(sequence)


def tui(node: MessagePump) -> TuiApp:
    """Return the app of a screen or widget."""
    return cast("TuiApp", node.app)


def show_error(node: MessagePump, error: LumiError, *, repeats: bool = False) -> None:
    """Show an error behind what is under way; one that `repeats` each second is shown once."""
    app = tui(node)
    app.call_later(app.show_error, error, repeats=repeats)


def ask(
    asker: MessagePump,
    call: Callable[[Runs], Found],
    answer: Callable[[Found], object] | None = None,
    *,
    failed: Callable[[LumiError], object] | None = None,
    quietly: bool = False,
    key: str = "",
) -> None:
    """Do `call` in a thread, and hand what it returns to `answer`.

    An error is shown, after `failed` has heard of it; `quietly`: `failed` shows it itself, unless
    it is a defect of the program. What is asked again with the same `key` takes the place of what
    the asker asked before; never give one to what changes something on a site, since a thread
    cannot be stopped. Who was closed hears nothing, not even an error: what a user must hear
    whatever is open, the app itself asks.
    """
    app = tui(asker)

    def work() -> None:
        worker = get_current_worker()

        def deliver(to: Callable[[], object]) -> None:
            asker.call_later(lambda: None if worker.is_cancelled else to())

        try:
            found = call(app.runs)
        except Exception as error:
            shown = as_lumi_error(error)
            if failed is not None:
                deliver(lambda: failed(shown))
            if not (quietly and shown is error):
                deliver(lambda: app.call_later(app.show_error, shown))
        else:
            if answer is not None:
                deliver(lambda: answer(found))

    group = _group(asker, key) if key else "ask"
    app.run_worker(work, thread=True, group=group, exclusive=bool(key), exit_on_error=False)


def forget(asker: MessagePump, key: str) -> None:
    """Let nothing come any more of what `asker` asked with this key."""
    app = tui(asker)
    app.workers.cancel_group(app, _group(asker, key))


def _group(asker: MessagePump, key: str) -> str:
    return f"{key} of {id(asker)}"


def as_lumi_error(error: BaseException) -> LumiError:
    """Return an error as a user reads it; any other than ours is a defect of the program."""
    if isinstance(error, LumiError):
        return error
    return LumiError(
        f"lumitui failed with an internal error: {type(error).__name__}: {error}.",
        "Please report it. What was sent is in the history.",
    )
