"""The cores of this machine, shared out among the ranks of a node."""

from pathlib import Path

import pytest

from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.compose import compose
from lumitui.remote.site import node
from lumitui.remote.site.node import NO_AFFINITY, TOO_FEW, allowed_cores, shape_here
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites


def here() -> Site:
    """Return the site of this machine, read again."""
    known = Sites([BUILT_IN])
    return next(site for site in map(known.load, known.names()) if site.node.this_machine)


@pytest.mark.parametrize(
    ("allowed", "reserved", "shares"),
    [
        (range(2), "", ("0", "1")),
        (range(8), "", ("0-3", "4-7")),
        (range(5), "", ("0-1", "2-3")),  # a core that stays over belongs to nobody
        ((2, 3, 6, 7), "0-1,4-5", ("2-3", "6-7")),
        ((900, 5), "0-4,6-899", ("5", "900")),
    ],
)
def test_each_rank_gets_as_many_cores(
    allowed: range, reserved: str, shares: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = shape_here(allowed, 2)
    assert (shape["reserved_cores"], shape["gpu_cores"]) == (reserved, shares)
    monkeypatch.setattr(node, "allowed_cores", lambda: frozenset(allowed))
    site = here()
    assert site.node.gpu_cores == shares and site.node.usable_cores == set(allowed)


@pytest.mark.parametrize(("allowed", "why"), [((), NO_AFFINITY), ((3,), TOO_FEW)])
def test_without_cores_to_share_nothing_is_promised(
    allowed: tuple[int, ...], why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(node, "allowed_cores", lambda: frozenset(allowed))
    site = here()
    partition = next(iter(site.partitions))
    spec = JobSpec(name="a", site=site.name, partition=partition, time="00:05:00",
                   launcher="srun", strategy="ddp", trainer="ddp")  # fmt: skip
    layout = compose(spec, site).layout
    assert layout.planned_cores == () and layout.unplanned == why and layout.on_cpu


def test_a_system_without_affinity_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    assert allowed_cores() == frozenset()
