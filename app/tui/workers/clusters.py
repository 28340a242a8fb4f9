"""What a site says of itself: its nodes, queue, reservations and budget; GPUs of a job."""

import time

from textual import on, work

from lumitui.app.tui import messages
from lumitui.app.tui.workers.core import CoreApp
from lumitui.remote.site.errors import LumiError


class ClusterWorkers(CoreApp):
    """An app that asks sites for their overviews; by itself it asks none while nobody is there."""

    @on(messages.ClusterAsked)
    def _cluster_asked(self, event: messages.ClusterAsked) -> None:
        if not event.attended and self.schedule.is_idle(time.monotonic()):
            event.reply_to.post_message(messages.ClusterAnswered(event.site))
        else:
            self._ask_cluster(event)

    @work(thread=True, group="cluster", exit_on_error=False)
    def _ask_cluster(self, wanted: messages.ClusterAsked) -> None:
        fault = None
        try:
            self.runs.clusters.ask(wanted.site, attended=wanted.attended)
        except LumiError as error:
            fault = error  # the screen says it where the site's parts would be
        wanted.reply_to.post_message(messages.ClusterAnswered(wanted.site, fault))

    @on(messages.GpusWanted)
    def _gpus_wanted(self, event: messages.GpusWanted) -> None:
        if self.schedule.is_idle(time.monotonic()):
            event.reply_to.post_message(messages.GpusRead(None))
        else:
            self._read_gpus(event)

    @work(thread=True, group="gpus", exit_on_error=False)
    def _read_gpus(self, wanted: messages.GpusWanted) -> None:
        found, fault = None, None
        try:
            found = self.runs.clusters.gpus(wanted.run_id)
        except LumiError as error:
            fault = error  # the pane says it
        wanted.reply_to.post_message(messages.GpusRead(found, fault))
