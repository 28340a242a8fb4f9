"""The adviser's rules about launchers: whether a stop signal reaches a user's own script."""

from collections.abc import Iterator

from lumitui.app.job.launch import Launch
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.job_file_catalogue import LaunchRule, hit
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.source_position import at_key


def _signal(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec = launch.spec
    # With `B:` the job script gets it, whatever the launcher: the program finds the file `stop`.
    passed = not spec.signal or spec.signal.startswith("B:") or place.launcher.signals != "none"
    if not passed and spec.chain == 1 and not place.trainer:
        yield hit(
            "signal-lost",
            "signal",
            f"The launcher {place.launcher.name} passes no signal on: `signal:` has no effect.",
            f"Use `launcher: srun`; or `signal: B:{spec.signal}`, at which the file `stop` appears "
            "in RUN_DIR.",
            fix=Fix("use srun", at_key("launcher"), "srun")
            if "srun" in place.site.launchers
            else None,
        )


RULES: tuple[LaunchRule, ...] = (_signal,)
