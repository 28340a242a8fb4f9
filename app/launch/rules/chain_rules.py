"""The adviser's rules about `chain:` and `relaunch:`: attempts must end in time and resume."""

from collections.abc import Iterator

from lumitui.app.job.launch import Launch
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.job_file_catalogue import LaunchRule, hit
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.source_position import at_key

_ONE = Fix("take one time limit", at_key("chain"), None)


def _site(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec = launch.spec
    forbids = [option for option in spec.sbatch if option.startswith("--no-requeue")]
    if spec.chain > 1 and (forbids or not place.site.requeue):
        who = forbids[0] if forbids else place.site.name
        yield hit(
            "chain-requeue",
            "chain",
            f"{who} forbids requeueing, which `chain:` needs.",
            "Leave out `chain:`, and resubmit from the checkpoint after each time limit.",
            fix=_ONE,
        )


def _program(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec = launch.spec
    if spec.chain == 1:
        return
    if not place.resume_arguments:
        yield hit(
            "chain-resume",
            "resume",
            "Each attempt of the chain would start over: the job file does not say how the script "
            "resumes.",
            "Set `resume:` to the arguments that resume from $RUN_DIR/checkpoints.",
        )
    if place.trainer is None:
        yield from _own_script(launch, place)


def _own_script(launch: Launch, place: Placement) -> Iterator[Finding]:
    if not launch.spec.signal or place.launcher.signals == "none":
        yield hit(
            "chain-signal",
            "signal",
            "No signal warns the script before its time limit, so no attempt ends in time.",
            "Set the signal on which the script saves and exits with 85, like `signal: USR1@300`; "
            "the launcher srun passes it on.",
        )
    elif place.launcher.signals == "torchrun":
        yield hit(
            "chain-exit",
            "launcher",
            f"{place.launcher.name} exits with 1 if the script exits with 85, so the chain "
            "continues only if the script also reports the stop in metrics.jsonl.",
            "End the script with finish() from lumitui_run.py (`lumitui new --run-file`), or use "
            "the launcher srun.",
            fix=Fix("use srun", at_key("launcher"), "srun"),
        )
    else:
        yield hit(
            "chain-contract",
            "chain",
            "The chain continues only if the script exits with 85.",
            "On the signal, save to $RUN_DIR/checkpoints and exit with 85; exit with 0 when the "
            "training is done.",
        )


def _resume(launch: Launch, place: Placement) -> Iterator[Finding]:
    if launch.spec.relaunch and not place.resume_arguments:
        yield hit(
            "relaunch-resume",
            "relaunch",
            "Each launch would start over: the job file does not say how the script resumes.",
            "Set `resume:` to the arguments that resume from $RUN_DIR/checkpoints, or leave out "
            "`relaunch:`.",
            fix=Fix("launch it once", at_key("relaunch"), None),
        )


RULES: tuple[LaunchRule, ...] = (_site, _program, _resume)
