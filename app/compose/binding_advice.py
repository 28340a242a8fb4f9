"""The adviser's rules about cores: whether the ranks are bound, and whether that is checked."""

from collections.abc import Iterator

from lumitui.app.compose.container import container_of
from lumitui.app.compose.finding import Finding, Rule
from lumitui.app.compose.launchers import launcher_of
from lumitui.app.job.launch import Launch
from lumitui.remote.site.profile import Site


def _binding(launch: Launch, site: Site) -> Iterator[Finding]:
    spec, layout = launch.spec, launch.layout
    if not site.node.gpu_cores or layout.world_size == 1:
        return
    if not layout.whole_nodes:
        yield Finding(
            "shared-cores",
            "note",
            f"On {spec.partition} nodes are shared: Slurm chooses the cores, no masks are given.",
            "Use a partition of whole nodes, or `exclusive: true` when all GPUs are used.",
            "lumi-userguide, distribution-binding.md",
        )
    elif not layout.masks and spec.binding == "none":
        yield Finding(
            "no-binding",
            "warning",
            "Nothing binds the ranks to the cores nearest to their GPUs.",
            "Remove `binding: none`.",
            "LUMI-AI-Guide, 05-multi-gpu-and-node",
        )


def _binding_of_torchrun(launch: Launch, site: Site) -> Iterator[Finding]:
    launcher = launcher_of(launch.spec)
    if launcher.binding == "torchrun" and launch.layout.whole_nodes and site.node.gpu_cores:
        container = container_of(launch.spec, site)
        binding = container.torchrun_binding if container else site.torchrun_binding
        if binding == "none":
            yield Finding(
                "torchrun-unbound",
                "warning",
                "torchrun here does not bind its ranks to cores.",
                "Use `launcher: srun`, which gets masks.",
                "LUMI-AI-Guide #95",
            )


def _strict_proof(launch: Launch, site: Site) -> Iterator[Finding]:
    layout = launch.layout
    if launch.spec.proof == "strict" and not (layout.exact and layout.planned_cores):
        yield Finding(
            "strict-unchecked",
            "warning",
            "No exact cores are planned here: `proof: strict` stops nothing.",
            "Use `launcher: srun` on whole nodes.",
            "templates/job.sh.j2",
        )


RULES: tuple[Rule, ...] = (_binding, _binding_of_torchrun, _strict_proof)
