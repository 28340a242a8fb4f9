"""The proof of binding on the mini cluster, held against what the ranks themselves measure."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from lumitui.app.history.run import Run
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.core_sets import parse_cores
from tests.support.jobs.binding.binding_jobs import CONTAINERS, Proving, where_job


@dataclass(frozen=True)
class Case:
    """One launch of the matrix."""

    launcher: str
    container: str
    ranks: int
    nodes: int
    site: str = "minilumi"

    def __str__(self) -> str:
        return f"{self.launcher}-{self.container}-{self.ranks}x{self.nodes}"


# Each launcher and each container, 1, 2 and 8 nodes; 6 of 8 GPUs are more than two steps can have
# side by side. Each combination is among the slow tests: 64 ranks start 128 Pythons, and each
# torchrun takes five seconds of a processor to import torch.
LEAN = [
    Case("srun", "laif", 8, 1),
    Case("srun", "laif", 1, 8),
    Case("srun", "legacy", 6, 2),
    Case("srun", "none", 2, 8),
    Case("torchrun", "laif", 2, 2),
    Case("torchrun", "none", 1, 1),
    Case("accelerate", "laif", 2, 1),
    Case("mpirun", "none", 2, 2, "hydra"),
]


def send(proving: Proving, case: Case) -> Run:
    return proving.send(
        where_job(
            site=case.site,
            launcher=case.launcher,
            container=case.container,
            ranks=case.ranks,
            nodes=case.nodes,
        ),
        # Eight torchruns on two CPUs may take longer than a minute.
        lambda script: script.replace("limit=60 ", "limit=300 "),
    )


def assert_right(proving: Proving, case: Case, run: Run) -> None:
    """Plan, probe and program say the same of every rank."""
    log = proving.log(run)
    assert (run.state, run.rc) == (State.DONE, 0), log
    world = case.ranks * case.nodes
    layout = run.layout
    reports = json.loads((Path(run.folder) / "binding.json").read_text())
    reports.sort(key=lambda item: item["rank"])
    program = proving.where(run)
    assert [item["rank"] for item in reports] == list(range(world)), log
    assert [item.rank for item in program] == list(range(world)), log
    for report, own in zip(reports, program, strict=True):
        assert report["local_rank"] == own.local_rank == own.rank % case.ranks
        assert report["host"] == own.host
        assert parse_cores(report["cores"]) == own.cores
        assert report["gpus"] == own.gpus == ",".join(map(str, range(case.ranks)))
    assert len({item.host for item in program}) == case.nodes
    found = proving.runs.proof(run)
    if case.launcher != "torchrun" or case.site == "masks":
        for own in program:
            assert own.cores == parse_cores(layout.planned_cores[own.local_rank])
        assert found.kind == "proved", found.sentence
    else:
        # One mask for the agent and all its ranks: that is a proof only where a node has one.
        assert {own.cores for own in program} == {parse_cores(layout.planned_cores[0])}
        assert len(program[0].cores) == 56
        assert found.kind == ("unbound" if case.ranks > 1 else "proved"), found.sentence
    assert (found.measured, found.expected) == (world, world)


def test_plan_probe_and_program_agree(proving: Proving) -> None:
    sent = [send(proving, case) for case in LEAN]
    for case, run in zip(LEAN, proving.finish(sent), strict=True):
        assert_right(proving, case, run)


@pytest.mark.slow
@pytest.mark.parametrize("nodes", range(1, 9))
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("launcher", ["srun", "torchrun", "deepspeed", "accelerate", "mpirun"])
def test_plan_probe_and_program_agree_everywhere(
    proving: Proving, launcher: str, container: str, nodes: int
) -> None:
    cases = [Case(launcher, container, ranks, nodes) for ranks in range(1, 9)]
    sent = [send(proving, case) for case in cases]
    for case, run in zip(cases, proving.finish(sent, seconds=900), strict=True):
        assert_right(proving, case, run)
