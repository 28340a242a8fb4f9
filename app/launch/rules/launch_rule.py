"""What a rule about a job file is."""

from collections.abc import Callable, Iterator

from lumitui.app.job.launch import Launch
from lumitui.app.launch.placement import Placement
from lumitui.remote.site.finding import Finding

LaunchRule = Callable[[Launch, Placement], Iterator[Finding]]
"""Yields what it finds wrong or unwise about a launch at a site."""
