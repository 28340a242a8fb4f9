"""The adviser's rules about launchers: whether ranks start, are bound, and get a stop signal."""

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
    # With `B:` the job script gets it under any launcher, and creates the file `stop`.
    passed = not spec.signal or spec.signal.startswith("B:") or place.launcher.signals != "none"
    if not passed and spec.chain == 1 and not place.trainer:
        yield hit(
            "signal-lost",
            "signal",
            f"The launcher {place.launcher.name} passes on no signals: `signal:` has no effect.",
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
            "With `binding: none` nothing binds the ranks to the cores nearest to their GPUs.",
            "Leave out `binding:` unless the program binds them itself.",
            severity="note",  # it is the user's choice
            fix=Fix("bind them", at_key("binding"), None),
        )


def _binding_of_torchrun(launch: Launch, place: Placement) -> Iterator[Finding]:
    unbound = place.launcher.binding == "torchrun" and place.runtime.torchrun_binding == "none"
    if unbound and place.whole_nodes and place.site.node.gpu_cores:
        yield hit(
            "torchrun-unbound",
            "launcher",
            "torchrun here does not bind its ranks to cores.",
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
            "No exact cores are planned here, so `proof: strict` has no effect.",
            "Leave out `binding: none`, or `proof: strict`."
            if unbound
            else "Use `launcher: srun` on whole nodes.",
            fix=Fix("bind the ranks", at_key("binding"), None) if unbound else None,
        )


def _use_srun(place: Placement) -> Fix | None:
    has_srun = "srun" in place.site.launchers
    return Fix("use srun", at_key("launcher"), "srun") if has_srun else None


RULES: tuple[LaunchRule, ...] = (
    _launcher, _signal, _binding, _binding_of_torchrun, _strict_proof,
)  # fmt: skip
