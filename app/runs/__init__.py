"""Runs: everything a person can do with jobs. The TUI and the CLI call only this.

What lists and refreshes need is imported here; what one action needs, that action imports.
"""

from lumitui.app.runs.launches import Launches
from lumitui.app.runs.results import Results
from lumitui.app.runs.upkeep import Upkeep


class Runs(Launches, Results, Upkeep):
    """The headless core over history, profiles and connections. Threads may share it."""
