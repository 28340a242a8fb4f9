"""The adviser's rule about processors: what was built for others does not start. Pure."""

import re
from collections.abc import Iterator

from lumitui.app.job.launch import Launch
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.launch_rule import LaunchRule
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.source_position import at_key

_NAMES = {
    kind: re.compile(rf"(?<![A-Za-z0-9])({words})(?![A-Za-z0-9])", re.IGNORECASE)
    for kind, words in {"x86_64": "x86[_-]?64|amd64", "aarch64": "aarch64|arm64"}.items()
}
"""How the names of images and environments say what they are built for (`uname -m`, OCI)."""


def _architecture(launch: Launch, place: Placement) -> Iterator[Finding]:
    choice, own = launch.spec.container, place.site.node.architecture
    for key, path in (("image", choice.image), ("venv", choice.venv)):
        built = {kind for kind, name in _NAMES.items() if path and name.search(path)}
        if built and own not in built:
            yield Finding(
                "architecture",
                "error",
                f"{path} is built for {min(built)}, by its name, but the nodes of "
                f"{place.site.name} are {own}: it would not start.",
                f"Use one that is built for {own}.",
                "the site's profile, node.architecture",
                at=at_key(f"container.{key}"),
            )


RULES: tuple[LaunchRule, ...] = (_architecture,)
