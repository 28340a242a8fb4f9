"""Runs that are sent together: each exactly once, whatever ends the program in between."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.history.run import Run
from lumitui.app.launch.send.draft import Draft
from lumitui.app.launch.send.lock import sender_lock
from lumitui.app.launch.send.preview import Preview
from lumitui.app.launch.send.shipment import slug
from lumitui.app.runs import Runs
from lumitui.app.scale.series_words import sent_of, series_failure, why_stopped
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError, LinkError, LumiError, OutcomeUnknown
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.trained_runs import train

JOB = """name: vit
site: lumi
account: project_462000001
partition: small-g
nodes: 2
time: "01:00:00"
script: train.py
args: [--lr, "0.1"]
grid: {lr: [1e-3, 3e-4, 1e-4]}
"""
LRS = ["--lr=1e-3", "--lr=3e-4", "--lr=1e-4"]


class Killed(BaseException):
    """The program ends here."""


@dataclass
class Site:
    """Takes what is sent; `at` says what happens to the first try of a member."""

    runs: Runs
    at: dict[str, Callable[[Run], None]] = field(default_factory=dict)
    jobs: list[str] = field(default_factory=list)
    """The members that became a job, in order."""

    def send(self, preview: Preview, *, begun: Callable[[Run], None], **rest: Any) -> Run:
        words = preview.cell or str(preview.launch.layout.nodes)
        spec, name = preview.launch.spec, f"vit-{len(self.jobs)}{len(self.at)}{abs(hash(words))}"
        run = a_run(name, site="lumi", spec=spec, note=preview.note, state=State.SENDING)
        begun(run)
        if trouble := self.at.pop(words, None):
            trouble(run)
        else:
            self.runs.history.begin(run)
        self.jobs.append(words)
        self.runs.history.update(run.id, state=State.QUEUED, job_id=str(len(self.jobs)))
        return self.runs.history.get(run.id)


@pytest.fixture
def site(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> Site:
    found = Site(runs)
    monkeypatch.setattr(runs, "send", found.send)
    return found


@pytest.fixture
def previews(runs: Runs, tmp_path: Path) -> tuple[Preview, ...]:
    (tmp_path / "train.py").write_text("print(1)\n")
    found = runs.drafts.check(Draft(JOB, tmp_path, "a test")).previews
    return tuple(replace(one, job_file=tmp_path / "job.yaml") for one in found)


def test_each_run_is_sent_once_and_they_share_a_word(
    runs: Runs, site: Site, previews: tuple[Preview, ...]
) -> None:
    heard: list[Run] = []
    series = runs.series.begin_grid(previews)
    assert site.jobs == [] and series.id.startswith("vit-") and len(series.id) == len("vit-123456")
    outcomes = runs.series.send(series.id, sent=heard.append)
    assert site.jobs == LRS and [run.id for run in sent_of(outcomes)] == [run.id for run in heard]
    assert {run.note.split(":")[0] for run in heard} == {f"grid {series.id}"}
    assert series_failure(series, outcomes) is None and runs.series.unsent() == []
    assert runs.series.send(series.id) == (), "nothing is left"


@pytest.mark.parametrize(("error", "rest"), [(LinkError, 2), (OutcomeUnknown, 1)])
def test_the_first_that_fails_ends_it_and_the_rest_can_be_sent(
    runs: Runs,
    site: Site,
    previews: tuple[Preview, ...],
    error: type[LinkError | OutcomeUnknown],
    rest: int,
) -> None:
    def fail(run: Run) -> None:
        runs.history.begin(run)
        state = State.NOT_SENT if error is LinkError else State.UNKNOWN
        runs.history.update(run.id, state=state)
        raise error("The link was lost.", "Try again.")

    site.at[LRS[1]] = fail
    series = runs.series.begin_grid(previews)
    outcomes = runs.series.send(series.id)
    assert site.jobs == LRS[:1] and outcomes[2].run is None and outcomes[2].error is None
    stopped = series_failure(series, outcomes)
    assert isinstance(stopped, error) and "1 of 3 runs was sent: vit-" in str(stopped)
    assert why_stopped(outcomes) == "--lr=3e-4: The link was lost. Try again."
    (left,) = runs.series.unsent()
    assert [member.words for member in left.left] == LRS[3 - rest :]
    left_out = {2: "2 were not", 1: "1 was not, 1 still unknown"}[rest]
    assert left.sentence.endswith(f"1 of 3 runs was sent, {left_out}.")
    runs.series._ready.clear()  # as another process has it
    assert [one.cell for one in runs.series.made_ready(left)] == LRS[3 - rest :]
    runs.series.send(series.id)
    assert site.jobs == [LRS[0], *LRS[3 - rest :]], "what may be a job is not sent again"
    runs.series.leave_out(series.id)
    assert runs.series.unsent() == []


def test_nothing_is_sent_when_one_of_them_is_wrong(runs: Runs, site: Site, tmp_path: Path) -> None:
    text = JOB.replace("lr: [1e-3, 3e-4, 1e-4]", "nodes: [1, 9]")
    (tmp_path / "train.py").write_text("")
    with pytest.raises(InputError, match="9 nodes"):
        runs.series.begin_grid(runs.drafts.check(Draft(text, tmp_path, "a test")).previews)
    assert site.jobs == [] and runs.history.series.offered() == []


def never_begun(runs: Runs, run: Run) -> None:
    """Die after the claim, before history knows the run."""
    raise Killed


def on_the_way(runs: Runs, run: Run) -> None:
    """Die while the code is sent."""
    runs.history.begin(run)
    raise Killed


def submitted(runs: Runs, run: Run) -> None:
    """Die when the job is there and nobody knows."""
    runs.history.begin(run)
    runs.history.update(run.id, submitted=1.0)
    raise Killed


@pytest.mark.parametrize(
    ("death", "found", "again"),
    [
        (never_begun, None, True),
        (on_the_way, State.NOT_SENT, True),
        (submitted, State.QUEUED, False),
        (submitted, State.UNKNOWN, False),
    ],
)
def test_a_killed_program_leaves_what_the_next_one_needs(
    runs: Runs,
    site: Site,
    previews: tuple[Preview, ...],
    monkeypatch: pytest.MonkeyPatch,
    death: Callable[[Runs, Run], None],
    found: State | None,
    again: bool,
) -> None:
    site.at[LRS[1]] = lambda run: death(runs, run)
    series = runs.series.begin_grid(previews)
    with pytest.raises(Killed):
        runs.series.send(series.id)

    def refresh(site_name: str) -> None:
        """The site says what became of the run that was on its way."""
        assert site_name == "lumi" and found is not None
        job = "77" if found is State.QUEUED else None
        (lost,) = [run for run in runs.history.unfinished() if run.job_id is None]
        runs.history.update(lost.id, state=found, job_id=job)

    monkeypatch.setattr(runs, "refresh", refresh)
    (left,) = runs.series.unsent()
    assert [member.words for member, _ in left.sent] == LRS[:1]
    assert [member.words for member in left.left] == (LRS[2:] if found else LRS[1:])
    labels = dict(left.rows)
    assert labels["sent"].startswith("1 of 3: vit-") and "--lr=1e-4" in labels["not sent"]
    assert ("unknown" in labels) == (found is not None)
    runs.series.send(series.id)
    assert site.jobs == (LRS if again else [LRS[0], LRS[2]])
    open_now = found is State.UNKNOWN
    assert bool(runs.history.series.offered()) == open_now and runs.series.unsent() == []


def test_two_programs_never_send_one_series(
    runs: Runs, site: Site, previews: tuple[Preview, ...]
) -> None:
    series = runs.series.begin_grid(previews)
    with sender_lock(runs._locks, f"series-{series.id}"):
        assert runs.series.unsent() == [], "the other one is sending it"
        with pytest.raises(LumiError, match="Another process is sending the runs"):
            runs.series.send(series.id)
    assert site.jobs == []


def test_a_ladder_goes_on_after_a_refusal_and_its_rest_is_planned_again(
    runs: Runs, site: Site
) -> None:
    parent = train(runs.history, {1: 1000.0})[0]
    runs.history.update(parent.id, snapshot="0123456789abcdef")
    plans = [runs.plan_resubmission(parent.id, nodes=nodes) for nodes in (2, 4, 8)]

    def refused(run: Run) -> None:
        raise InputError("The queue is full.", "Wait.")

    def lost(run: Run) -> None:
        raise LinkError("lumi cannot be reached.", "Look.")

    site.at |= {"4": refused, "8": lost}
    series = runs.series.begin_again(plans)
    assert {plan.preview.name for plan in plans} == {parent.name}, "a size changes no name"
    assert series.id.rpartition("-")[0] == slug(parent.name)[:20]
    outcomes = runs.series.send(series.id)
    said = series_failure(series, outcomes)
    assert said is not None and said.message.splitlines() == [
        f"2 nodes: sent, {sent_of(outcomes)[0].id} is job 1.",
        "4 nodes: not sent. The queue is full.",
        "8 nodes: not sent. lumi cannot be reached.",
    ]
    assert json.loads(series.members[1].plan)["nodes"] == 4
    runs.series._ready.clear()
    runs.series.send(series.id)
    assert site.jobs == ["2", "4", "8"] and runs.series.unsent() == []
