"""Jobs that the tests of rescaling start from, on the profile of LUMI."""

from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import JobSpec, changed, parse_job
from lumitui.app.launch.compose import compose
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
