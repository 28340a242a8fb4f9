"""The rule about a Python that has no PyTorch: no container, no module, no environment."""

import re
from collections.abc import Iterator

from lumitui.app.job.launch import Launch
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.launch_rule import LaunchRule
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.source_position import at_key

_SYSTEM = re.compile(r"(?:/usr/bin/)?python3?")
_OWN = ("PATH", "PYTHONPATH", "PYTHONHOME")
"""Variables by which a job brings an environment of its own."""


def _bare(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec, site = launch.spec, place.site
    program = place.trainer is not None or (spec.script or "").endswith(".py")
    own = spec.venv or any(name in spec.env for name in _OWN)
    if place.container or not spec.container.none or site.modules or own or not program:
        return
    if _SYSTEM.fullmatch(place.runtime.python):
        yield Finding(
            "bare-python",
            "warning",
            f"Without a container and without modules, {place.runtime.python} is the system's own "
            f"at {site.name}, which has no PyTorch.",
            "Leave out `container: {none: true}`, install with `venv:`, or let a shell script "
            "bring an environment of yours.",
            "the site's profile, containers, modules and python",
            at=at_key("container"),
            fix=Fix("use the site's container", at_key("container"), None),
        )


RULES: tuple[LaunchRule, ...] = (_bare,)
