"""Asynchronous requests of a screen or pane to the history or a site, and their answers.

The call runs in a thread that touches no widget; the answer comes to the one who asked, between
its own messages. Who has been closed meanwhile is answered nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from textual.worker import get_current_worker

from lumitui.app.runs import LumiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.message_pump import MessagePump

    from lumitui.app.runs import Runs
    from lumitui.app.tui.app import LumiApp

Found = TypeVar("Found")


def tui(node: MessagePump) -> LumiApp:
    """Return the app of a screen or widget."""
    return cast("LumiApp", node.app)


def show_error(node: MessagePump, error: LumiError, *, repeats: bool = False) -> None:
    """Show an error behind a running operation; a repeated one (`repeats`) only once."""
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
    """Run `call` in a thread, and pass its result to `answer`.

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
    """Drop the pending answer to the request of `asker` with this key."""
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
        "Please report it. The history contains everything that lumitui sent.",
    )
