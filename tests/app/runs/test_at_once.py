"""`at_once:`: at most so many runs of a grid run at the same time, by Slurm's own dependency."""

import re
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.follow.refresh import Refreshed
from lumitui.app.history.listing.series_runs import RunSeries
from lumitui.app.history.run import Run
from lumitui.app.launch.send.preview import Preview
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError, LinkError, LumiError
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import finish, hello_job, hello_project
from tests.support.program.command_line import Here

JOB = """name: vit
site: lumi
account: project_462000001
partition: small-g
nodes: 2
time: "01:00:00"
script: train.py
args: [--lr, "0.1", $$SCRATCH]
grid: {lr: [1, 2, 3, 4, 5]}
at_once: 2
"""


class Site:
    """Takes what is sent, and remembers what each member waits for."""

    def __init__(self, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs, self.waits = runs, dict[str, str]()
        self.refuse = self.refused = ""
        self.args: list[tuple[str, ...]] = []
        monkeypatch.setattr(runs, "send", self.send)

    def send(self, preview: Preview, *, begun: Callable[[Run], None], **rest: Any) -> Run:
        number = preview.cell.rpartition("=")[2]
        name = f"vit-{number}{'-again' if self.refused == number else ''}"
        run = a_run(name, site="lumi", spec=preview.launch.spec, state=State.SENDING,
                    created=time.time())  # fmt: skip
        begun(run)
        if number == self.refuse:
            self.refuse, self.refused = "", number
            raise LinkError("The link was lost.", "Try again.")
        self.runs.history.begin(run)
        job = f"10{number}"
        self.runs.history.update(
            run.id, state=State.QUEUED, job_id=job, updated=time.time(), note=preview.note
        )
        found = re.findall(r"^#SBATCH --dependency=(.*)$", preview.launch.script, re.MULTILINE)
        self.waits[number] = " ".join(found)
        self.args.append(preview.launch.spec.args)
        return self.runs.history.get(run.id)


@pytest.fixture
def site(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(runs, monkeypatch)


@pytest.fixture
def grid(runs: Runs, job: Path) -> RunSeries:
    """The grid of the job, of which nothing is sent yet."""
    return runs.series.begin_grid(runs.previews(job))


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path / "job.yaml"


def test_each_waits_for_the_end_of_the_one_in_its_lane(
    runs: Runs, site: Site, grid: RunSeries
) -> None:
    runs.series.send(grid.id)
    assert site.waits == {
        "1": "", "2": "", "3": "afterany:101", "4": "afterany:102", "5": "afterany:103:101"
    }  # fmt: skip
    # What a waiting run gets is what was agreed to, to the byte.
    assert site.args[4] == ("--lr", "5", "$SCRATCH")


def test_the_rest_waits_for_what_was_sent_before(runs: Runs, site: Site, grid: RunSeries) -> None:
    site.refuse = "4"
    runs.series.send(grid.id)
    assert list(site.waits) == ["1", "2", "3"]
    # Another process sends the rest, and the lane's run has ended meanwhile.
    runs.series._ready.clear()
    runs.history.update("vit-2", state=State.FAILED, updated=time.time())
    runs.series.send(grid.id)
    assert site.waits["4"] == "" and site.waits["5"] == "afterany:103:101"


def test_a_state_from_before_the_clock_was_set_back_is_queried_again(
    runs: Runs, site: Site, grid: RunSeries, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.refuse = "3"
    runs.series.send(grid.id)
    runs.series._ready.clear()
    runs.history.update("vit-1", updated=time.time() + 7200)

    def refresh(name: str, **given: object) -> Refreshed:
        runs.history.update("vit-1", state=State.DONE, updated=time.time())
        return Refreshed((), (), 1)

    monkeypatch.setattr(runs, "refresh", refresh)
    runs.series.send(grid.id)
    assert site.waits["3"] == ""


def test_a_site_that_does_not_answer_about_old_states_stops_the_grid(
    runs: Runs, site: Site, grid: RunSeries, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.series.send(grid.id, agreed=grid.members[:2])
    runs.series._ready.clear()
    runs.history.update("vit-1", updated=1.0)
    lost = LinkError("The link was lost.", "Try again.")
    monkeypatch.setattr(runs, "refresh", lambda site: Refreshed((), (), 1, failed={"lumi": lost}))
    outcomes = runs.series.send(grid.id, agreed=grid.members[2:3])
    assert [one.error for one in outcomes] == [lost] and "3" not in site.waits


def test_a_run_that_the_user_left_out_does_not_break_its_lane(
    runs: Runs, site: Site, grid: RunSeries
) -> None:
    agreed = [one for one in grid.members if one.place != 3]
    runs.series.send(grid.id, agreed=agreed)
    assert site.waits["5"] == "afterany:101"


def test_what_a_cancelled_run_waited_for_holds_back_the_next_one(
    runs: Runs, site: Site, grid: RunSeries
) -> None:
    runs.series.send(grid.id, agreed=grid.members[:3])
    runs.history.update("vit-3", state=State.CANCELLED)
    runs.series.send(grid.id, agreed=grid.members[4:])
    assert site.waits["5"] == "afterany:101"


def test_it_waits_for_after_too(runs: Runs, site: Site, job: Path) -> None:
    runs.history.begin(a_run("data-1", site="lumi", state=State.QUEUED, job_id="7"))
    job.write_text(JOB + "after: data-1\n")
    runs.series.send(runs.series.begin_grid(runs.previews(job)).id)
    assert site.waits["1"] == "afterok:7" and site.waits["3"] == "afterok:7,afterany:101"


def test_a_run_of_which_nobody_knows_whether_it_is_a_job_ends_the_grid(
    runs: Runs, site: Site, grid: RunSeries, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.series.send(grid.id, agreed=grid.members[:1])
    runs.history.update("vit-1", state=State.UNKNOWN, job_id=None, updated=time.time())
    monkeypatch.setattr(runs, "refresh", lambda site: Refreshed((), (), 0))
    outcomes = runs.series.send(grid.id, agreed=grid.members[2:3])
    assert isinstance(outcomes[0].error, LumiError) and "still unknown" in str(outcomes[0].error)
    assert "3" not in site.waits


def test_preview_says_how_they_wait(here: Here, job: Path) -> None:
    said = here("preview", str(job)).stderr
    assert "Only 2 of the 5 runs can run at a time" in said
    job.write_text(JOB.replace("at_once: 2", "at_once: 5"))
    assert "same time" not in here("preview", str(job)).stderr


def test_it_needs_a_grid_and_a_queue(runs: Runs, job: Path) -> None:
    job.write_text(re.sub("grid:.*\n", "", JOB))
    with pytest.raises(InputError, match="works only with `grid:`"):
        runs.previews(job)
    laptop = JOB.replace("site: lumi", "site: laptop").replace("small-g", "local")
    job.write_text(laptop.replace("nodes: 2", "nodes: 1"))
    with pytest.raises(InputError, match="has no queue"):
        runs.previews(job)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("grid: {lr: [1, 2], site: [lumi, roihu]}\n", "at several sites"),
        ("sbatch: ['--exclude=nid1 --depend=singleton']\n", "cannot be combined"),
        ("sbatch: [-d singleton]\n", "cannot be combined"),
    ],
)
def test_what_slurm_could_not_hold_back_is_refused(
    runs: Runs, job: Path, more: str, words: str
) -> None:
    job.write_text((re.sub("grid:.*\n", "", JOB) if "grid" in more else JOB) + more)
    with pytest.raises(InputError, match=words):
        runs.previews(job)


def test_a_dependency_of_your_own_beside_after_is_an_error(runs: Runs, job: Path) -> None:
    runs.history.begin(a_run("data-1", site="lumi", state=State.QUEUED, job_id="7"))
    job.write_text(re.sub("(grid|at_once):.*\n", "", JOB) + "sbatch: [--dependency=singleton]\n")
    assert "own-option" not in [one.rule for one in runs.preview(job).findings]
    job.write_text(job.read_text() + "after: data-1\n")
    assert "own-option" in [one.rule for one in runs.preview(job).findings]


@pytest.mark.cluster
def test_a_cancelled_run_lets_no_other_start_early(cluster_runs: Runs, tmp_path: Path) -> None:
    project = hello_project(tmp_path / "hello")
    (project / "hello.py").write_text("import time\ntime.sleep(8)\n")
    spec = hello_job(proof="off", gpus_per_node=1, grid={"--x": ["1", "2", "3"]}, at_once=1)
    series = cluster_runs.series.begin_grid(cluster_runs.previews(spec, project))
    first, second, third = [one.run for one in cluster_runs.series.send(series.id) if one.run]
    cluster_runs.cancel(second.id)
    first, third = finish(cluster_runs, first), finish(cluster_runs, third)
    assert (first.state, third.state) == (State.DONE, State.DONE)
    assert (first.ended or 0.0) <= (third.started or 0.0)


@pytest.mark.cluster
def test_no_more_run_at_the_same_time(cluster_runs: Runs, tmp_path: Path) -> None:
    project = hello_project(tmp_path / "hello")
    (project / "hello.py").write_text("import time\ntime.sleep(4)\n")
    spec = hello_job(proof="off", gpus_per_node=1, grid={"--x": ["1", "2", "3"]}, at_once=1)
    series = cluster_runs.series.begin_grid(cluster_runs.previews(spec, project))
    outcomes = cluster_runs.series.send(series.id)
    ended = [finish(cluster_runs, one.run) for one in outcomes if one.run]
    assert [run.state for run in ended] == [State.DONE] * 3
    times = sorted((run.started or 0.0, run.ended or 0.0) for run in ended)
    assert all(before[1] <= after[0] for before, after in pairwise(times))
