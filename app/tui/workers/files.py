"""The files of a run's folder."""

from textual import on, work

from lumitui.app.tui import messages
from lumitui.app.tui.workers.core import CoreApp


class FileWorkers(CoreApp):
    """An app that lists, previews and fetches the files of runs."""

    @on(messages.FilesWanted)
    def _files_wanted(self, event: messages.FilesWanted) -> None:
        self._list_files(event)

    @work(thread=True, group="files", exit_on_error=False)
    def _list_files(self, wanted: messages.FilesWanted) -> None:
        found = None
        try:
            found = self.runs.files.list(wanted.run_id)
        finally:
            wanted.reply_to.post_message(messages.FilesFound(found))

    @on(messages.FileWanted)
    def _file_wanted(self, event: messages.FileWanted) -> None:
        self._read_file(event)

    @work(thread=True, group="file", exit_on_error=False)
    def _read_file(self, wanted: messages.FileWanted) -> None:
        found = None
        try:
            found = self.runs.files.preview(wanted.run_id, wanted.name)
        finally:
            wanted.reply_to.post_message(messages.FileRead(found))

    @on(messages.FileFetchWanted)
    def _file_fetch_wanted(self, event: messages.FileFetchWanted) -> None:
        self._fetch_file(event)

    @work(thread=True, group="fetch", exit_on_error=False)
    def _fetch_file(self, wanted: messages.FileFetchWanted) -> None:
        from lumitui.app.follow.results.fetch_report import check
        from lumitui.app.follow.results.listed_files import pattern_of

        path = None
        try:
            brought = self.runs.fetch(wanted.run_id, wanted.target, [pattern_of(wanted.name)])
            check(brought, named=True)
            path = wanted.target / wanted.name
        finally:
            wanted.reply_to.post_message(messages.FileFetchEnded(wanted.name, path))
