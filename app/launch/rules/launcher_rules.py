"""The adviser's rules about launchers and attempts, of `chain:` and `relaunch:`.

Ranks must start, be bound and get a stop signal; attempts must end in time and resume.
"""

from collections.abc import Iterator

from lumitui.app.job.launch import Launch
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.job_file_catalogue import LaunchRule, hit
from lumitui.remote.site.finding import Finding, Fix
from lumitui.remote.site.source_position import at_key


def _launcher(launch: Launch, place: Placement) -> Iterator[Finding]:
    if launch.spec.launcher not in place.site.launchers:
        yield hit(
            "launcher",
            "launcher",
            f"The launcher {launch.spec.launcher} does not work at {place.site.name}.",
            f"Use {' or '.join(place.site.launchers)}.",
            fix=Fix(f"use {place.site.launchers[0]}", at_key("launcher"), place.site.launchers[0]),
        )


def _signal(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec = launch.spec
    # With `B:`, the job script gets the signal under any launcher, and creates the file `stop`.
    passed = not spec.signal or spec.signal.startswith("B:") or place.launcher.signals != "none"
    if not passed and spec.chain == 1 and not place.trainer:
        yield hit(
            "signal-lost",
            "signal",
            f"The launcher {place.launcher.name} does not forward signals: `signal:` has no "
            "effect.",
            f"Use `launcher: srun`; or `signal: B:{spec.signal}`, which creates the file `stop` in "
            "RUN_DIR.",
            fix=_use_srun(place),
        )


def _binding(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec, layout = launch.spec, launch.layout
    if not place.site.node.gpu_cores or layout.world_size == 1:
        return
    if layout.whole_nodes and not layout.masks and spec.binding == "none":
        yield hit(
            "no-binding",
            "binding",
            "With `binding: none`, ranks are not bound to the cores nearest to their GPUs.",
            "Omit `binding:` unless the program binds them itself.",
            severity="note",  # it is the user's choice
            fix=Fix("bind them", at_key("binding"), None),
        )


def _binding_of_torchrun(launch: Launch, place: Placement) -> Iterator[Finding]:
    unbound = place.launcher.binding == "torchrun" and place.runtime.torchrun_binding == "none"
    if unbound and place.whole_nodes and place.site.node.gpu_cores:
        yield hit(
            "torchrun-unbound",
            "launcher",
            "At this site, torchrun does not bind its ranks to cores.",
            "Use `launcher: srun`, which binds each rank with a mask.",
            fix=_use_srun(place),
        )


def _strict_proof(launch: Launch, place: Placement) -> Iterator[Finding]:
    layout = launch.layout
    unbound = (
        launch.spec.binding == "none"
        and layout.whole_nodes
        and place.launcher.binding in ("masks", "wrapper")
    )
    if launch.spec.proof == "strict" and not (layout.exact and layout.planned_cores):
        yield hit(
            "strict-unchecked",
            "binding" if unbound else "proof",
            "This job has no planned cores, so `proof: strict` has no effect.",
            "Omit `binding: none`, or `proof: strict`."
            if unbound
            else "Use `launcher: srun` on whole nodes.",
            fix=Fix("bind the ranks", at_key("binding"), None) if unbound else None,
        )


def _use_srun(place: Placement) -> Fix | None:
    has_srun = "srun" in place.site.launchers
    return Fix("use srun", at_key("launcher"), "srun") if has_srun else None


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
            "Omit `chain:`, and resubmit from the checkpoint after each time limit.",
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
            "Each attempt of the chain would start over: the job file does not define how the "
            "script resumes.",
            "Set `resume:` to the arguments that resume from $RUN_DIR/checkpoints.",
        )
    if place.trainer is None:
        yield from _own_script(launch, place)


def _own_script(launch: Launch, place: Placement) -> Iterator[Finding]:
    if not launch.spec.signal or place.launcher.signals == "none":
        yield hit(
            "chain-signal",
            "signal",
            "The script gets no signal before its time limit, so no attempt ends in time.",
            "Set the signal on which the script saves and exits with 85, like `signal: "
            "USR1@120`; the launcher srun forwards it.",
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
            "On the signal, save to $RUN_DIR/checkpoints and exit with 85; exit with 0 when "
            "training is done.",
        )


def _resume(launch: Launch, place: Placement) -> Iterator[Finding]:
    if launch.spec.relaunch and not place.resume_arguments:
        yield hit(
            "relaunch-resume",
            "relaunch",
            "Each launch would start over: the job file does not define how the script resumes.",
            "Set `resume:` to the arguments that resume from $RUN_DIR/checkpoints, or omit "
            "`relaunch:`.",
            fix=Fix("launch it once", at_key("relaunch"), None),
        )


RULES: tuple[LaunchRule, ...] = (
    _site, _program, _resume, _launcher, _signal, _binding, _binding_of_torchrun, _strict_proof,
)  # fmt: skip
