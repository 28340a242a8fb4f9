"""Each job script of the documents, as ours does it, is run on the mini cluster of its site."""

import json
import re
from pathlib import Path

import pytest

from lumitui.app.follow.results.summary import summarize
from lumitui.app.history.run import Run
from lumitui.app.job.launch import Launch, RankLayout
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.small_jobs import finish
from tests.support.program.home import Home
from tests.support.systems.outcome import Outcome
from tests.support.systems.rows import SHAPES, Row, table
from tests.support.systems.running import Systems

RANKS = """\
import json, os, sys
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
said = json.dumps({name: os.environ[name] for name in names})
sys.stdout.write(f"RANKS {said}\\n")  # at once: mpirun labels what arrives, even within a line
"""
"""A program that is no PyTorch: it says what it was started as."""

CASES = [
    pytest.param(site, row, id=row.name, marks=[] if row.ci else [pytest.mark.slow])
    for site in SHAPES
    for row in table().rows
    if table().site_of(row) == site
]


@pytest.mark.cluster
@pytest.mark.parametrize(("site", "row"), CASES)
def test_the_job_runs_as_planned(
    home: Home, tmp_path: Path, systems: Systems, site: str, row: Row
) -> None:
    system = systems.of(site)
    home.add_cluster(system.cluster, profile=system.profile, name=system.profile)
    if row.mpi:
        profile = home.config / "sites" / f"{system.profile}.yaml"
        mpi = json.dumps(row.mpi.model_dump(mode="json"))
        launchers = "launchers: [srun, torchrun, mpirun, plain]"
        profile.write_text(f"{profile.read_text()}mpi: {mpi}\n{launchers}\n")
    spec = table().job_of(row, system.profile, system.cluster.account)
    runs = Runs(home.settings)
    try:
        preview = runs.preview(spec, project(tmp_path))
        outcome = system.outcomes.get(preview.launch.script)
        if outcome is None:
            run = finish(runs, runs.send(preview), 900)
            outcome = checked(runs, run, row, preview.launch)
            system.outcomes[preview.launch.script] = outcome
        else:
            outcome = Outcome(**{**vars(outcome), "row": row.name, "same_as": outcome.row})
    finally:
        runs.close()
    outcome.keep()


def checked(runs: Runs, run: Run, row: Row, launch: Launch) -> Outcome:
    """Compare what a run showed with its plan: state, ranks, world size, cores of each rank."""
    log = runs.read_log(run.id)[1].decode()
    layout = launch.layout
    assert run.state is State.DONE, f"{run.reason}\n{log}"
    assert layout.ranks_per_node == row.ranks
    if run.spec.script:
        found = [json.loads(line) for line in re.findall(r"RANKS (\{.*?\})", log)]
        assert sorted(int(one["RANK"]) for one in found) == list(range(layout.world_size))
        world = {int(one["WORLD_SIZE"]) for one in found}
    else:
        world = {summarize(runs.history.metrics.of(run.id)).world_size or 0}
    assert world == {layout.world_size}
    proof = runs.proof(run)
    assert proof.measured == proof.expected == layout.world_size, proof.sentence
    assert proof.kind == expected_proof(layout), proof.sentence
    if layout.planned_cores and layout.exact:
        planned = dict(enumerate(layout.planned_cores))
        assert {(one.local_rank, one.found) for one in proof.rows} == set(planned.items())
    assert run.ended and run.started
    return Outcome(
        row=row.name,
        launched=f"{run.spec.launcher}, {run.spec.script or run.spec.strategy}",
        ranks=layout.world_size,
        proof=proof.kind if layout.planned_cores else f"not planned: {layout.unplanned}",
        measured=proof.measured,
        seconds=run.ended - run.started,
    )


def expected_proof(layout: RankLayout) -> str:
    """Return the verdict that a plan must get: cores of its own for each rank, or none."""
    if not layout.planned_cores:
        return "not measured"
    shared = layout.ranks_per_node > 1 and len(set(layout.planned_cores)) == 1
    return "unbound" if shared else "proved"


def project(folder: Path) -> Path:
    """Return a project that has the program of the rows that train nothing with PyTorch."""
    (folder / "ranks.py").write_text(RANKS)
    return folder
