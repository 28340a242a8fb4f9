"""What became of a run: its log, its files, its curves, and how it differs from another."""

from lumitui.app.follow.log.log_follower import LogGrew
from lumitui.app.follow.results import fetch_report
from lumitui.app.follow.results.comparison import Contrast, FileChange
from lumitui.app.follow.results.event_files import check_installed, command

__all__ = [
    "Contrast",
    "FileChange",
    "LogGrew",
    "check_installed",
    "command",
    "fetch_report",
]
