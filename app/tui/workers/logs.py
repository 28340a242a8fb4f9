"""The log that is on the screen."""

import os
import time

from textual import on, work
from textual.worker import get_current_worker

from lumitui.app.tui import messages
from lumitui.app.tui.workers.core import CoreApp
from lumitui.remote.site.errors import LumiError

MOST_WAITING = 8
"""Messages with pieces of a log that its pane has not drawn yet."""
TICK = 1.5
"""Seconds between two readings of a log that grows line by line: each is drawn, and costs that."""
MUCH = 16_384
"""Bytes of a piece after which the next is read at once: more of them are waiting."""


class LogWorkers(CoreApp):
    """An app that follows one log."""

    @on(messages.FollowWanted)
    def _follow_wanted(self, event: messages.FollowWanted) -> None:
        self._follow(event)

    @work(thread=True, group="follow", exclusive=True, exit_on_error=False)
    def _follow(self, wanted: messages.FollowWanted) -> None:
        from lumitui.app.follow.log.log_follower import LogEnded, LogGrew
        from lumitui.app.follow.wait import rest

        worker = get_current_worker()
        pane, due = wanted.reply_to, 0.0

        def stop() -> bool:
            return worker.is_cancelled or self.leaving.is_set() or not pane.is_running

        try:
            for event in self.runs.show_log(
                wanted.run_id, attempt=wanted.attempt, offset=wanted.offset, stop=stop
            ):
                # A log that is written faster than it is drawn waits at the site.
                while pane.message_queue_size > MOST_WAITING and not stop():
                    time.sleep(0.05)
                pane.post_message(messages.LogNews(wanted.number, event))
                if isinstance(event, LogGrew) and len(event.data) < MUCH:
                    rest(due - time.monotonic(), stop)  # what comes meanwhile is one piece
                    due = time.monotonic() + TICK
        except LumiError:
            ended = LogEnded("stopped, press l to follow again")
            pane.post_message(messages.LogNews(wanted.number, ended))
            raise

    @on(messages.PageWanted)
    def _page_wanted(self, event: messages.PageWanted) -> None:
        self._read_page(event)

    @work(thread=True, group="page", exit_on_error=False)
    def _read_page(self, wanted: messages.PageWanted) -> None:
        from lumitui.remote.ssh.prompts import attendance

        pages = self.runs.pages
        try:
            with attendance(False):  # the log that is followed asks, where a login has questions
                page = (
                    pages.end(wanted.run_id, wanted.attempt)
                    if wanted.where == "end"
                    else pages.page(wanted.run_id, wanted.attempt, wanted.start, wanted.length)
                )
            found = messages.PageFound(wanted, page)
        except LumiError as error:
            found = messages.PageFound(wanted, None, error)
        wanted.reply_to.post_message(found)

    @on(messages.SearchWanted)
    def _search_wanted(self, event: messages.SearchWanted) -> None:
        self._search(event)

    @work(thread=True, group="search", exit_on_error=False)
    def _search(self, wanted: messages.SearchWanted) -> None:
        from lumitui.remote.ssh.prompts import attendance

        try:
            with attendance(False):
                result = self.runs.pages.find(
                    wanted.run_id, wanted.attempt, wanted.sought, wanted.at, forward=wanted.forward
                )
            found = messages.SearchFound(wanted, result)
        except LumiError as error:
            found = messages.SearchFound(wanted, None, error)
        wanted.reply_to.post_message(found)

    @on(messages.PagerWanted)
    def _pager_wanted(self, event: messages.PagerWanted) -> None:
        self._write_for_pager(event)

    @work(thread=True, group="pager", exit_on_error=False)
    def _write_for_pager(self, wanted: messages.PagerWanted) -> None:
        import tempfile
        from pathlib import Path

        handle, name = tempfile.mkstemp(prefix="lumitui-", suffix=".log")  # 0600
        os.close(handle)
        try:
            self.runs.pages.export(wanted.run_id, wanted.attempt, Path(name))
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        wanted.reply_to.post_message(messages.PagerReady(Path(name)))

    @on(messages.UnfollowWanted)
    def _unfollow_wanted(self) -> None:
        self.workers.cancel_group(self, "follow")
