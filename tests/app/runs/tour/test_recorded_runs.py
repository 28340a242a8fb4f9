"""The recording of the tour: what it holds, that it plays on, and that nothing leaves it."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lumitui.app.runs.tour.recorded_runs import RecordedRuns, recorded_runs
from lumitui.remote.site.errors import LumiError, RefusedError
from lumitui.remote.site.states import State
from lumitui.remote.survey.profile.ask_cluster import HostAddress
from tests.support.program.home import Home

LARGEST, FAILED = "vit-l16-b83d5e", "vit-l16-f60a27"


@pytest.fixture(scope="module")
def recorded() -> Iterator[RecordedRuns]:
    with recorded_runs() as runs:
        yield runs


def test_it_has_a_lineage_on_four_sizes_each_proved_and_measured(recorded: RecordedRuns) -> None:
    lineage = recorded.history.lineage(LARGEST)
    sizes = {run.layout.nodes: run.id for run in lineage if run.id != FAILED}
    assert list(sizes) == [1, 2, 4, 8]
    for run_id in sizes.values():
        assert recorded.proof(recorded.history.get(run_id)).kind == "proved"
    measured = [size.nodes for size in recorded.scaling.of(LARGEST).sizes if size.measured]
    assert measured == [1, 2, 4, 8]


def test_it_has_a_failure_with_its_cause_and_a_grid_with_its_advice(recorded: RecordedRuns) -> None:
    run = recorded.history.get(FAILED)
    assert (run.state, run.failed_rank) == (State.FAILED, 9)
    assert recorded.why(FAILED)[0].brief.endswith("A GPU ran out of memory")
    (advice,) = recorded.sweeps.of("resnet50-a8f216").advice
    assert advice.startswith("Use --workers=4")


def test_no_job_file_of_it_has_an_error(recorded: RecordedRuns) -> None:
    for file in sorted(recorded.project.glob("*.yaml")):
        for preview in recorded.previews(file):
            assert not preview.errors, file


def test_the_log_and_the_metrics_of_its_running_job_grow(recorded: RecordedRuns) -> None:
    def grown() -> tuple[int, int]:
        recorded.refresh("lumi")
        start, data = recorded.read_log(LARGEST)
        return start + len(data), recorded.history.get(LARGEST).metrics_offset

    before, deadline = grown(), time.monotonic() + 60
    assert recorded.history.get(LARGEST).state is State.RUNNING
    while (now := grown()) and not (now[0] > before[0] and now[1] > before[1]):
        assert time.monotonic() < deadline, (before, now)
        time.sleep(0.2)


ATTEMPTS: dict[str, Callable[[RecordedRuns], object]] = {
    "send": lambda runs: runs.send(runs.previews(runs.project / "vit.yaml")[0]),
    "send again": lambda runs: runs.resubmit(runs.plan_resubmission(LARGEST, nodes=16)),
    "cancel": lambda runs: runs.cancel(LARGEST),
    "shell": lambda runs: runs.prepare_shell(LARGEST, ["true"]),
    "forward": lambda runs: runs.forward(LARGEST, 6006),
    "fetch": lambda runs: runs.fetch(LARGEST, runs.project / "results"),
    "check": lambda runs: runs.doctor("lumi", "project_462000001"),
    "recover": lambda runs: runs.recover("lumi"),
    "prune": lambda runs: runs.prune("lumi"),
    "describe": lambda runs: runs.surveys.describe("other", HostAddress("other.example.org")),
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_nothing_sends_cancels_or_connects(attempt: str, recorded: RecordedRuns) -> None:
    before = recorded.history.count()
    with pytest.raises(LumiError, match="This is a recording") as caught:
        ATTEMPTS[attempt](recorded)
    assert "lumitui demo" in caught.value.hint
    assert recorded.history.count() == before


def test_a_script_that_does_not_only_read_is_refused(
    recorded: RecordedRuns, tmp_path: Path
) -> None:
    run = recorded.history.get(LARGEST)
    with pytest.raises(RefusedError):
        recorded._transport(run).run(f"touch {tmp_path}/made")
    assert not list(tmp_path.iterdir())


def test_it_leaves_nothing_behind_and_touches_nothing_of_the_user(home: Home) -> None:
    before = sorted(home.data.parent.rglob("*"))
    with recorded_runs() as runs:
        folder = runs.own.data.parent
        assert folder.exists()
    assert not folder.exists()
    assert sorted(home.data.parent.rglob("*")) == before
