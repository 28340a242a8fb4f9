"""How a job ends under each launcher: the failed rank and its code, and no process that stays."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from lumitui.app.history.run import Run
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.binding import binding_jobs
from tests.support.jobs.binding.binding_jobs import Proving, where_job
from tests.support.jobs.small_jobs import wait_until
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

PROGRAM = """\
#!/bin/bash
: >"$RUN_DIR/began-$RANK"
case $HOW:$RANK in
  code:3) exit 7 ;;
  signal:3) kill -9 $$ ;;
esac
sleep 600 & wait
"""


@dataclass(frozen=True)
class Case:
    """A job, how it ends, and what its exit file says then."""

    launcher: str
    nodes: int
    how: str
    rank: int | None = None
    site: str = "minilumi"


CHEAP = [
    Case("mpirun", 2, "code", 3),
    Case("mpirun", 2, "code", 3, site="hydra"),
    Case("mpirun", 2, "cancel"),
]
ALL = [
    *(Case("mpirun", nodes, how, 3) for nodes in (1, 2) for how in ("code", "signal")),
    *(Case("mpirun", nodes, "signal", 3, site="hydra") for nodes in (1, 2)),
    Case("mpirun", 1, "code", 3, site="hydra"),
    *(Case("deepspeed", 1, how, 3) for how in ("code", "signal")),
    Case("deepspeed", 1, "cancel"),
    *(Case("deepspeed", 2, how, 3) for how in ("code", "signal")),
    *(Case("accelerate", nodes, how, 3) for nodes in (1, 2) for how in ("code", "signal")),
    Case("accelerate", 2, "cancel"),
    *(Case("torchrun", 2, how, 3, site="masks") for how in ("code", "signal")),
    Case("torchrun", 2, "cancel", site="masks"),
    Case("mpirun", 2, "cancel", site="hydra"),
    *(Case("mpirun", 2, "time", site=site) for site in ("minilumi", "hydra")),
    *(Case("deepspeed", 1, "time"), Case("accelerate", 2, "time")),
]


@pytest.fixture
def jobs(home: Home, cluster: Cluster, tmp_path: Path) -> Iterator[Proving]:
    """The core with the mini cluster, and a project whose ranks end as HOW says."""
    program = tmp_path / "ends"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    with binding_jobs.proving(home, cluster, tmp_path) as opened:
        yield opened


def has_begun(run: Run) -> bool:
    """Whether all four ranks run the program."""
    return all((Path(run.folder) / f"began-{rank}").exists() for rank in range(4))


def is_gone(run: Run) -> bool:
    """Whether no process is left that knows the run's folder."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            if f"RUN_DIR={run.folder}\0".encode() in (entry / "environ").read_bytes():
                return False
    return True


def send(jobs: Proving, case: Case) -> Run:
    spec = where_job(
        launcher=case.launcher,
        nodes=case.nodes,
        ranks=4 // case.nodes,
        site=case.site,
        script="ends",
        proof="off",
        time="00:01:00" if case.how == "time" else "00:05:00",
        env={"HOW": case.how},
    )
    return jobs.send(spec)


def assert_ended(jobs: Proving, cases: list[Case]) -> None:
    runs = [send(jobs, case) for case in cases]
    for case, run in zip(cases, runs, strict=True):
        if case.how == "cancel":
            wait_until(partial(has_begun, run), 240, f"{case} began")
            jobs.runs.cancel(run.id)
    for case, run in zip(cases, jobs.finish(runs, seconds=500), strict=True):
        log = jobs.log(run)
        wait_until(partial(is_gone, run), 60, f"{case} left nothing behind")
        if case.how == "cancel":
            assert run.state is State.CANCELLED, (case, log)
        elif case.how == "time":
            assert run.state is State.TIMEOUT, (case, log)
        else:
            code = {"code": 7, "signal": 137}[case.how]
            assert (run.state, run.rc) == (State.FAILED, code), (case, log)
            assert run.failed_rank == case.rank, (case, log)


def test_a_rank_that_fails_ends_all_and_is_named(jobs: Proving) -> None:
    assert_ended(jobs, CHEAP)


@pytest.mark.slow
def test_a_job_of_each_launcher_ends_whole(jobs: Proving) -> None:
    assert_ended(jobs, ALL)
