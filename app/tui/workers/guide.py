"""Checks of a site for the guide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on, work

from lumitui.app.tui import messages
from lumitui.app.tui.workers.core import CoreApp
from lumitui.remote.site.errors import LumiError

if TYPE_CHECKING:
    from lumitui.remote.survey.doctor.check_result import Check


class GuideWorkers(CoreApp):
    """An app that checks a site."""

    @on(messages.SiteCheckWanted)
    def _site_check_wanted(self, event: messages.SiteCheckWanted) -> None:
        self._check_site(event)

    @work(thread=True, group="check", exit_on_error=False)
    def _check_site(self, wanted: messages.SiteCheckWanted) -> None:
        outcome: list[Check] | LumiError
        try:
            outcome = self.runs.doctor(wanted.site, wanted.account)
        except LumiError as error:
            outcome = error  # the guide shows it at its step
        wanted.reply_to.post_message(messages.SiteChecked(outcome))
