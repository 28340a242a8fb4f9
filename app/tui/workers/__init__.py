"""The workers of the TUI: everything that may take time, in threads that touch no widget.

The app starts each of them, so that one handler sees every error; they answer by messages.
A send, a cancel and a resubmission are never exclusive: Textual marks the first of two as
cancelled, but both run.
"""

from lumitui.app.tui.workers.clusters import ClusterWorkers
from lumitui.app.tui.workers.drafts import DraftWorkers
from lumitui.app.tui.workers.files import FileWorkers
from lumitui.app.tui.workers.guide import GuideWorkers
from lumitui.app.tui.workers.launches import LaunchWorkers
from lumitui.app.tui.workers.logs import LogWorkers
from lumitui.app.tui.workers.marks import MarkWorkers
from lumitui.app.tui.workers.refreshes import RefreshWorkers
from lumitui.app.tui.workers.results import ResultWorkers
from lumitui.app.tui.workers.scaling import ScalingWorkers


class WorkerApp(
    RefreshWorkers,
    ClusterWorkers,
    LaunchWorkers,
    DraftWorkers,
    ResultWorkers,
    LogWorkers,
    ScalingWorkers,
    MarkWorkers,
    FileWorkers,
    GuideWorkers,
):
    """An app that refreshes the sites, and does in threads what its screens want."""
