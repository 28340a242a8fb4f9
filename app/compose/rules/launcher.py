"""The adviser's rules about launchers: whether a stop signal reaches a person's own script."""

from collections.abc import Iterator

from lumitui.app.compose.placement import Placement
from lumitui.app.compose.rules.finding import Finding, Fix, Rule
from lumitui.app.job.launch import Launch


def _signal(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec = launch.spec
    if spec.signal and spec.chain == 1 and not place.trainer and place.launcher.signals == "none":
        yield Finding(
            "signal-lost",
            "warning",
            f"The launcher {place.launcher.name} passes no signal on: `signal:` has no effect.",
            "Use `launcher: srun`, or leave out `signal:`.",
            "sbatch(1) --signal; deepspeed/launcher/launch.py",
            field="signal",
            fix=Fix("use srun", "launcher", "srun") if "srun" in place.site.launchers else None,
        )


RULES: tuple[Rule, ...] = (_signal,)
