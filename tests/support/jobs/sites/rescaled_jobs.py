"""Jobs that the tests of rescaling start from, on the profile of LUMI."""

from collections.abc import Sequence
from dataclasses import dataclass

from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import JobSpec, changed, parse_job
from lumitui.app.launch.compose import compose
from lumitui.app.scale.changes import PlanChange, changes_between
from lumitui.app.scale.rescale import Written, apply_settings
from lumitui.app.scale.rescale import rescale as rescaled
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites

LUMI = Sites([BUILT_IN]).load("lumi")
DDP = parse_job(
    "name: t\nsite: lumi\naccount: project_462000001\npartition: standard-g\ntime: '01:00:00'\n"
    "trainer: ddp\nargs: [--batch-size, 32, --lr, 0.01]\n",
    "t",
)
CONFIG = '{"train_batch_size": 32, "optimizer": {"type": "Adam", "params": {"lr": 0.001}},}'
"""DeepSpeed's configuration."""
LINEAR: dict[str, object] = {"batch": {"keep": "per_gpu"}, "lr": {"rule": "linear"}}
"""A rule: the batch grows with the ranks, and the learning rate with the batch."""


def launched(spec: JobSpec, config: str | None = None) -> Launch:
    """Return the launch of `spec` at LUMI."""
    return compose(spec, LUMI, deepspeed_config=config)


def job(**changes: object) -> JobSpec:
    """Return the job of the DDP trainer with `changes`."""
    return changed(DDP, changes, "t")


def zero(**changes: object) -> JobSpec:
    """Return the job of the DeepSpeed trainer with `changes`."""
    return job(**({"trainer": "deepspeed_zero", "strategy": "zero1", "args": []} | changes))


@dataclass(frozen=True)
class Scaled:
    """A launch on other nodes or with settings, and what is told of it."""

    launch: Launch
    changes: tuple[PlanChange, ...]
    notes: tuple[str, ...]


def rescale(
    earlier: Launch,
    site: Site,
    *,
    nodes: int | None = None,
    settings: Sequence[str] = (),
    deepspeed_config: str | None = None,
) -> Scaled:
    """Return `earlier` with `settings` on `nodes` nodes, as a plan makes it of a run."""
    text, ranks = deepspeed_config, earlier.layout.world_size
    notes = list[str]()
    launch = rescaled(
        earlier,
        apply_settings(earlier.spec, settings),
        site,
        notes,
        nodes=nodes,
        settings=settings,
        written=None if text is None else Written(text, ranks),
    )
    return Scaled(launch, changes_between(earlier, launch), tuple(notes))
