"""The adviser's rules about `relaunch:`: a program that is launched again can continue."""

from collections.abc import Iterator

from lumitui.app.job.launch import Launch
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.launch_rule import LaunchRule
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.source_position import at_key


def _resume(launch: Launch, place: Placement) -> Iterator[Finding]:
    if launch.spec.relaunch and not place.resume_arguments:
        yield Finding(
            "relaunch-resume",
            "error",
            "Each launch would begin anew: nothing says how the script continues.",
            "Name the arguments that make it continue from $RUN_DIR/checkpoints: `resume:`; or "
            "leave out `relaunch:`.",
            "templates/job/relaunch.sh",
            at=at_key("relaunch"),
            fix=Fix("launch it once", at_key("relaunch"), None),
        )


RULES: tuple[LaunchRule, ...] = (_resume,)
