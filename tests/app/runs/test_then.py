"""`then:`: each run of a sequence is sent once, and starts after the one before it."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.follow.refresh import Refreshed
from lumitui.app.history.listing.find_runs import RunListing
from lumitui.app.history.listing.page_cache import arranged
from lumitui.app.history.run import Run
from lumitui.app.launch.send.preview import Preview
from lumitui.app.runs import Runs
from lumitui.app.scale.resubmission import Resubmission
from lumitui.app.scale.series_words import SeriesUnfinished, series_failure, still_unknown
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError, LinkError, LumiError
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import finish, hello_project, wait_until
from tests.support.program.command_line import Here

JOB = """name: vit
site: lumi
account: project_462000001
partition: standard-g
nodes: 2
time: "01:00:00"
trainer: ddp
args: [--lr, "0.1"]
then:
  evaluate:
    script: evaluate.py
    args: [--checkpoint, "$AFTER_DIR/last.pt"]
    nodes: 1
  clean: {script: clean.sh, nodes: 1, when: any}
"""


@dataclass
class Site:
    """Takes what is sent, and remembers what each run waits for."""

    refuse: str = ""
    """The run whose first try loses the link."""
    kill: str = ""
    """The run during whose first try the program is killed."""
    sent: list[str] = field(default_factory=list)
    waits: dict[str, str] = field(default_factory=dict)
    args: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def send(self, runs: Runs, preview: Preview, **more: Any) -> Run:
        preview.check()
        begun: Callable[[Run], None] = more.get("begun", lambda run: None)
        name, spec = preview.name, preview.launch.spec
        run_id = f"{name}-{len(self.sent):06x}"
        again: Resubmission | None = more.get("resubmission")
        run = a_run(run_id, name=name, site="lumi", spec=spec, folder=f"/runs/{run_id}",
                    created=time.time(), snapshot="s",
                    parent=again.plan.parent.id if again else None)  # fmt: skip
        begun(run)
        self.sent.append(name)
        if name == self.refuse:
            self.refuse = ""
            raise LinkError("The link was lost.", "Try again.")
        runs.history.begin(run)
        if name == self.kill:
            self.kill = ""
            runs.history.update(run.id, state=State.SENDING, job_id=None)
            raise LumiError("The program was killed.")
        job = str(100 + len(self.sent))
        now = time.time()
        runs.history.update(run.id, state=State.QUEUED, job_id=job, updated=now, note=preview.note)
        options = re.findall(r"^#SBATCH --dependency=(.*)$", preview.launch.script, re.MULTILINE)
        self.waits[name], self.args[name] = " ".join(options), spec.args
        return runs.history.get(run.id)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    found = Site()
    monkeypatch.setattr(
        Runs, "send", lambda runs, preview, **more: found.send(runs, preview, **more)
    )
    return found


@pytest.fixture
def job(tmp_path: Path) -> Path:
    for name in ("evaluate.py", "clean.sh"):
        (tmp_path / name).write_text("print(1)\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path / "job.yaml"


def _run(runs: Runs, name: str) -> Run:
    return next(run for run in runs.history.page() if run.name == name)


def test_each_waits_for_the_one_before_it_and_finds_its_folder(
    here: Here, runs: Runs, site: Site, job: Path
) -> None:
    done = here("submit", str(job), "--yes")
    assert done.returncode == 0, done.stderr
    assert site.waits == {
        "vit": "", "vit-evaluate": "afterok:101", "vit-clean": "afterany:102,afterany:101"
    }  # fmt: skip
    assert site.args["vit-evaluate"] == ("--checkpoint", "/runs/vit-000000/last.pt")
    evaluation = _run(runs, "vit-evaluate")
    assert evaluation.awaited == ("vit-000000",)
    assert evaluation.note == "after vit-000000"
    assert _run(runs, "vit").note == "then evaluate, clean"
    assert _run(runs, "vit-clean").note == f"after {evaluation.id}"
    assert re.search(r"after +vit-000000", here("show", evaluation.id).stdout)
    lines = arranged(runs.history.finder.entries(RunListing(), 9, None))
    assert [(line.id, line.parent) for line in lines] == [
        ("vit-000000", None), ("vit-evaluate-000001", "vit-000000"),
        ("vit-clean-000002", "vit-000000"),
    ]  # fmt: skip


def test_preview_shows_each_script_and_the_whole_price(here: Here, job: Path) -> None:
    shown = here("preview", str(job))
    assert shown.returncode == 0 and shown.stdout.count("#!/bin/bash") == 3
    assert [line for line in shown.stdout.splitlines() if line.startswith("# ====")] == [
        f"# ======== {name} ========" for name in ("vit", "evaluate", "clean")
    ]
    assert "evaluate starts once vit is done; clean starts once evaluate has ended" in shown.stderr
    assert "3 runs; billed at most 16 GPU-hours" in shown.stderr
    assert "literal-argument" not in shown.stderr


def test_submitting_again_sends_only_what_was_not_sent(
    here: Here, runs: Runs, site: Site, job: Path
) -> None:
    site.refuse = "vit-evaluate"
    failed = here("submit", str(job), "--yes")
    assert failed.returncode == 3 and "1 of 3 runs was sent" in failed.stderr
    again = here("submit", str(job), "--yes")
    assert again.returncode == 0, again.stderr
    assert "--no-rest sends all runs again" in again.stderr
    assert site.sent == ["vit", "vit-evaluate", "vit-evaluate", "vit-clean"]
    assert site.waits["vit-evaluate"] == "afterok:101"
    here("submit", str(job), "--yes")
    assert site.sent[4:] == ["vit", "vit-evaluate", "vit-clean"], "it was sent whole before"


GRID = JOB[: JOB.index("then:")] + "grid: {lr: [1, 2]}\n"


def settle(monkeypatch: pytest.MonkeyPatch, state: State) -> None:
    """Let the site tell what became of the run that was being sent."""

    def refresh(runs: Runs, site: str | None = None, **more: Any) -> Refreshed:
        for run in runs.history.unfinished(site):
            if run.job_id is None:
                job = None if state in (State.UNKNOWN, State.NOT_SENT) else "500"
                runs.history.update(run.id, state=state, job_id=job)
        return Refreshed((), (), 1)

    monkeypatch.setattr(Runs, "refresh", refresh)


@pytest.mark.parametrize("how", [(), ("--rest",)])
@pytest.mark.parametrize("state", [State.QUEUED, State.NOT_SENT, State.UNKNOWN])
def test_a_last_run_that_may_be_a_job_is_settled_before_anything_is_sent(
    here: Here, site: Site, job: Path, monkeypatch: pytest.MonkeyPatch, state: State,
    how: tuple[str, ...],
) -> None:  # fmt: skip
    site.kill = "vit-clean"
    here("submit", str(job), "--yes")
    first = ["vit", "vit-evaluate", "vit-clean"]
    assert site.sent == first
    settle(monkeypatch, state)
    again = here("submit", str(job), "--yes", *how)
    assert site.sent == (first if state is not State.NOT_SENT else [*first, "vit-clean"])
    if state is State.UNKNOWN:
        assert again.returncode == 1 and "Try again in three minutes" in again.stderr
        assert "2 of 3 runs were sent, 1 still unknown" in again.stderr or how
        assert here("submit", str(job), "--yes", *how).returncode == 1
        assert site.sent == first
        settle(monkeypatch, State.NOT_SENT)
        again = here("submit", str(job), "--yes", *how)
        assert site.sent == [*first, "vit-clean"]
    assert again.returncode == 0, again.stderr
    if state is State.QUEUED:
        assert "All runs were sent already." in again.stderr
    else:
        assert "3 of 3: job" in again.stderr
    assert "were sent" not in here("status").stderr
    done = len(site.sent)
    assert here("submit", str(job), "--yes").returncode == 0
    assert site.sent[done:] == first, "it was sent whole before"


def test_a_changed_file_is_submitted_once_all_runs_of_the_interrupted_one_are_jobs(
    here: Here, site: Site, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.kill = "vit-clean"
    here("submit", str(job), "--yes")
    job.write_text(JOB.replace("0.1", "0.2"))
    settle(monkeypatch, State.UNKNOWN)
    refused = here("submit", str(job), "--yes")
    assert refused.returncode == 2 and "has changed since it was submitted" in refused.stderr
    settle(monkeypatch, State.QUEUED)
    done = here("submit", str(job), "--yes")
    assert done.returncode == 0 and "3 of 3 runs were sent." in done.stderr
    assert site.sent[3:] == ["vit", "vit-evaluate", "vit-clean"]


def test_a_series_begun_in_another_way_is_refused_while_one_is_unfinished(
    here: Here, runs: Runs, site: Site, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.kill = "vit-clean"
    here("submit", str(job), "--yes")
    with pytest.raises(SeriesUnfinished, match="2 of 3 runs were sent, 1 still unknown"):
        runs.send_grid(runs.previews(job))
    assert len(site.sent) == 3
    settle(monkeypatch, State.UNKNOWN)
    assert runs.series.unsent() == []
    (open_,) = runs.series.unsent(settle=True)
    assert "It is still unknown whether lumi has a job of vit-clean" in str(still_unknown(open_))
    settle(monkeypatch, State.QUEUED)
    assert runs.series.unsent(settle=True) == []
    runs.history.update("vit-clean-000002", state=State.UNKNOWN, job_id=None)
    assert here("submit", str(job), "--yes", "--no-rest").returncode == 0
    assert len(site.sent) == 6, "the user dropped it"


def test_the_note_about_an_older_series_names_a_command_that_sends_it(
    here: Here, runs: Runs, site: Site, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.write_text(GRID)
    site.kill = "vit-lr2"
    here("submit", str(job), "--yes")
    assert site.sent == ["vit-lr1", "vit-lr2"]
    settle(monkeypatch, State.UNKNOWN)
    open_ = here("submit", str(job), "--rest", "--yes")
    assert open_.returncode == 1 and "It is still unknown" in open_.stderr
    noted = here("submit", str(job), "--yes")
    assert "note: vit-" in noted.stderr and "1 of 2 runs was sent, 1 still unknown" in noted.stderr
    assert len(site.sent) == 4, "each submission of a grid sends all of it"
    settle(monkeypatch, State.NOT_SENT)
    status = here("status").stderr
    assert f"1 of 2 runs was sent, 1 was not. `lumitui submit {job} --rest` sends" in status
    sent = here("submit", str(job), "--rest", "--yes")
    assert sent.returncode == 0, sent.stderr
    assert "2 of 2: job" in sent.stderr and site.sent[4:] == ["vit-lr2"]
    assert "--rest" not in here("status").stderr
    none = here("submit", str(job), "--rest", "--yes")
    assert none.returncode == 2 and "has no unsent runs" in none.stderr


def test_a_file_that_changed_meanwhile_is_not_mixed_with_what_was_sent(
    here: Here, site: Site, job: Path
) -> None:
    site.refuse = "vit-evaluate"
    here("submit", str(job), "--yes")
    job.write_text(JOB.replace("0.1", "0.2"))
    refused = here("submit", str(job), "--yes")
    assert refused.returncode == 2 and "has changed since it was submitted" in refused.stderr
    assert site.sent == ["vit", "vit-evaluate"]
    assert here("submit", str(job), "--yes", "--rest").returncode == 0
    assert site.sent[2:] == ["vit-evaluate", "vit-clean"]


def test_nothing_is_resumed_where_nothing_was_sent(here: Here, site: Site, job: Path) -> None:
    site.refuse = "vit"
    assert here("submit", str(job), "--yes").returncode == 3
    job.write_text(JOB.replace("0.1", "0.2"))
    assert here("submit", str(job), "--yes").returncode == 0
    assert site.sent == ["vit", "vit", "vit-evaluate", "vit-clean"]
    assert site.args["vit"] == ("--lr", "0.2")


def test_what_waits_for_a_failure_is_not_sent_after_it(
    here: Here, runs: Runs, site: Site, job: Path
) -> None:
    site.refuse = "vit-evaluate"
    here("submit", str(job), "--yes")
    runs.history.update("vit-000000", state=State.FAILED, updated=time.time())
    failed = here("submit", str(job), "--yes")
    assert failed.returncode == 2 and "has ended as failed" in failed.stderr
    assert "To send all runs again, use --no-rest" in failed.stderr
    assert site.sent == ["vit", "vit-evaluate"]


def test_what_follows_whatever_happens_needs_no_dependency_on_an_end(
    here: Here, runs: Runs, site: Site, job: Path
) -> None:
    job.write_text(JOB.replace("nodes: 1\n", "nodes: 1\n    when: failed\n"))
    site.refuse = "vit-evaluate"
    here("submit", str(job), "--yes")
    runs.history.update("vit-000000", state=State.FAILED, updated=time.time())
    assert here("submit", str(job), "--yes").returncode == 0
    assert site.waits["vit-evaluate"] == "" and site.waits["vit-clean"] == "afterany:103"
    assert site.args["vit-evaluate"][1] == "/runs/vit-000000/last.pt"


def test_a_resubmission_names_what_followed_and_takes_it_along(
    here: Here, runs: Runs, site: Site, job: Path
) -> None:
    here("submit", str(job), "--yes")
    runs.history.update("vit-000000", state=State.FAILED, updated=time.time())
    alone = here("resubmit", "vit-000000", "--yes", "--set", "time=00:30:00")
    assert alone.returncode == 0, alone.stderr
    assert "vit-evaluate-000001, vit-clean-000002 followed vit-000000. To resubmit" in alone.stderr
    assert site.sent[3:] == ["vit"]
    site.refuse = "vit-clean"
    assert here("resubmit", "vit-000000", "--yes", "--then").returncode == 3
    assert site.waits["vit-evaluate"] == "afterok:105"
    assert site.args["vit-evaluate"] == ("--checkpoint", "/runs/vit-000004/last.pt")
    assert here("resubmit", "vit-000000", "--yes", "--then").returncode == 2, "unfinished"
    assert here("resubmit", "vit-000000", "--yes", "--rest").returncode == 0
    assert site.sent[4:] == ["vit", "vit-evaluate", "vit-clean", "vit-clean"]
    assert site.waits["vit-clean"] == "afterany:106,afterany:105"
    again = _run(runs, "vit-evaluate")
    assert again.parent == "vit-evaluate-000001" and again.awaited == ("vit-000004",)
    other = here("resubmit", "vit-clean-000002", "--yes", "--then")
    assert other.returncode == 2 and "No run followed vit-clean-000002" in other.stderr


def test_a_cancel_tells_what_waits_for_the_run(here: Here, site: Site, job: Path) -> None:
    here("submit", str(job), "--yes")
    said = here("cancel", "vit-000000").stderr
    assert "vit-evaluate-000001 waits for vit-000000 to be done, so it can never start." in said
    assert "vit-clean-000002 starts once vit-evaluate-000001 has ended." in said


def test_a_file_without_a_queue_or_with_one_run_only_is_told(here: Here, job: Path) -> None:
    job.write_text(JOB.replace("site: lumi", "site: laptop").replace("standard-g", "local"))
    assert "laptop has no queue" in here("preview", str(job)).stderr
    job.write_text(JOB)
    refused = here("export", str(job), str(job.parent / "out"))
    assert "The job file has 3 runs (`then:`)" in refused.stderr


def test_a_dependency_of_ones_own_is_refused_before_anything_is_sent(
    here: Here, site: Site, job: Path
) -> None:
    job.write_text(JOB.replace("nodes: 1\n", "nodes: 1\n    sbatch: [--dependency=singleton]\n"))
    assert "cannot be combined" in here("submit", str(job), "--yes").stderr
    assert not site.sent


def test_a_name_without_a_run_is_warned_of(here: Here, job: Path) -> None:
    job.write_text(JOB[: JOB.index("then:")].replace('"0.1"', '"$AFTER_DIR"'))
    assert "uses $AFTER_DIR, but has no `after:`" in here("preview", str(job)).stderr
    job.write_text(job.read_text() + "after: nothing-there\n")
    assert here("preview", str(job)).returncode != 0


HELLO = """name: hello
site: minilumi
account: project_462000001
partition: small-g
gpus_per_node: 1
time: "00:05:00"
proof: "off"
script: hello.py
then:
  look:
    script: look.sh
    args: [$AFTER_DIR]
  never: {script: look.sh, when: failed}
"""


@pytest.mark.cluster
@pytest.mark.both_slurms
def test_slurm_starts_each_when_the_one_before_it_has_ended(
    cluster_runs: Runs, tmp_path: Path
) -> None:
    project = hello_project(tmp_path / "hello")
    (project / "look.sh").write_text('#!/bin/bash\ncat "$1"/attempt-1.exit\n')
    (project / "look.sh").chmod(0o755)
    (project / "job.yaml").write_text(HELLO)
    hello, look, never = cluster_runs.send_grid(cluster_runs.previews(project / "job.yaml"))
    assert finish(cluster_runs, hello).state is State.DONE
    ended = finish(cluster_runs, look)
    assert ended.state is State.DONE and (ended.started or 0) >= (
        cluster_runs.history.get(hello.id).ended or 0
    )
    _, log = cluster_runs.read_log(look.id)
    assert b'"rc": 0' in log, "it found the run before it"

    def reason() -> str:
        cluster_runs.refresh("minilumi")
        return cluster_runs.history.get(never.id).reason

    wait_until(lambda: "DependencyNeverSatisfied" in reason())
    assert cluster_runs.cancel(never.id).state is State.CANCELLED
    failing = (project / "job.yaml").read_text().replace("proof:", 'env: {FAIL_RANK: "0"}\nproof:')
    (project / "job.yaml").write_text(failing)
    hello, look, never = cluster_runs.send_grid(cluster_runs.previews(project / "job.yaml"))
    assert finish(cluster_runs, hello).state is State.FAILED
    assert cluster_runs.left_waiting(hello.id)[0].startswith(look.id)
    assert cluster_runs.cancel(look.id).state is State.CANCELLED
    # A cancelled job counts as failed, for Slurm too.
    assert finish(cluster_runs, never).started is not None


def test_one_that_cannot_be_composed_stops_the_sequence(runs: Runs, site: Site, job: Path) -> None:
    series = runs.series.begin_grid(runs.previews(job))
    job.parent.joinpath("evaluate.py").unlink()
    runs.series._ready.clear()
    with pytest.raises(InputError):
        runs.series.send(series.id)
    assert site.sent == [] and series_failure(series, ()) is None
