"""Asynchronous requests from a screen or pane to the history or a site, and their answers.

The call runs in a thread that touches no widget. The asking widget receives the answer between its
other messages, unless it has been closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from textual.worker import get_current_worker

from lumitui.app.runs import LumiError, unusable_path

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
    """Show an error after the running operation; show a repeated one (`repeats`) only once."""
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

    An error is passed to `failed`, then shown. With `quietly`, only `failed` shows it, unless it is
    an internal error. A request replaces the asker's previous one with the same `key`; never set
    `key` if `call` changes a site, because a thread cannot be stopped. A closed asker receives
    neither answer nor error: if the user must learn of them in any case, pass the app as `asker`.
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
    """Drop the pending answer to `asker`'s request with this key."""
    app = tui(asker)
    app.workers.cancel_group(app, _group(asker, key))


def _group(asker: MessagePump, key: str) -> str:
    return f"{key} of {id(asker)}"


def as_lumi_error(error: BaseException) -> LumiError:
    """Return the error to show; any exception but ours becomes an internal error."""
    if isinstance(error, LumiError):
        return error
    if isinstance(error, Exception) and (refused := unusable_path(error)):
        return refused
    said = f"lumitui failed with an internal error: {type(error).__name__}: {error}."
    return LumiError(said, "Please report it. The history contains everything that lumitui sent.")
