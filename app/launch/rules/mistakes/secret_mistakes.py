"""The rule about `ship_secrets:` that names everything."""

import re
from collections.abc import Iterator

from lumitui.app.job.launch import Launch
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.launch_rule import LaunchRule
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.source_position import at_key

_ALL = re.compile(r"(?:\./)?(?:\*\*/)*(?:\*+|\.\*|\*\.\*|\.)?/?")


def _everything(launch: Launch, place: Placement) -> Iterator[Finding]:
    for pattern in launch.spec.ship_secrets:
        if _ALL.fullmatch(pattern):
            yield Finding(
                "ship-all-secrets",
                "warning",
                f"`ship_secrets: [{pattern}]` sends every file that looks like a secret, those too "
                "that the project gets later.",
                "Name the one file that the job needs, like `ship_secrets: [config/dev.env]`.",
                "docs/scripts.md; SECURITY.md",
                at=at_key("ship_secrets"),
            )


RULES: tuple[LaunchRule, ...] = (_everything,)
