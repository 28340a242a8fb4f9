"""`lumitui grid` and `lumitui scaling`: what the runs of a series came to."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.app.runs.launches import Launches
from lumitui.remote.site.errors import LinkError
from tests.support.jobs.trained_runs import train
from tests.support.program.command_line import HELLO, Here


def test_a_grid_is_shown_whole_and_sent_whole(here: Here, job: Path, runs: Runs) -> None:
    job.write_text(HELLO + 'grid: {env.SEED: ["1", "2", "3"]}\n')
    shown = here("preview", str(job))
    assert "  3  env.SEED=3  nothing is billed" in shown.stderr
    assert "3 runs; nothing is billed" in shown.stderr
    assert "requests 1 node, 1 rank on CPU of local, at most 00:05:00; code: 2" in shown.stderr
    assert "SEED=1" in shown.stdout or "SEED='1'" in shown.stdout
    given = json.loads(here("preview", str(job), "--json").stdout)["data"]["runs"]
    assert [row["settings"] for row in given] == ["env.SEED=1", "env.SEED=2", "env.SEED=3"]
    assert here("submit", str(job), "--yes", "--wait").returncode == 2, "of which run?"
    assert not runs.history.page()

    sent = here("submit", str(job), "--yes")
    assert sent.returncode == 0, sent.stderr
    made = runs.history.page()
    assert sent.stdout.split() == [run.id for run in reversed(made)]
    assert [run.spec.env["SEED"] for run in reversed(made)] == ["1", "2", "3"]
    notes = [run.note.split(": ") for run in made]
    assert notes[0][0] == notes[1][0] and notes[0][1] == "env.SEED=3"
    exported = here("export", str(job), str(job.parent / "out"))
    assert exported.returncode == 2 and "has 3 runs (`grid:`)" in exported.stderr


def test_the_rest_of_a_grid_is_sent_by_one_option(
    here: Here, job: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job.rename(job.with_name("it's a grid.yaml"))
    job.write_text(HELLO + 'grid: {env.SEED: ["1", "2", "3"]}\n')
    pasted = f"`lumitui submit {shlex.quote(str(job))} --rest`"
    none = here("submit", str(job), "--rest", "--yes")
    assert none.returncode == 2 and "has no unsent runs" in none.stderr
    send, tried = Launches.send, list[str]()

    def failing(self: Launches, preview: Any, **rest: Any) -> Run:
        tried.append(preview.cell)
        if len(tried) == 2:
            raise LinkError("The link was lost.", "Look at the network.")
        return send(self, preview, **rest)

    monkeypatch.setattr(Launches, "send", failing)
    stopped = here("submit", str(job), "--yes", "--json")
    assert stopped.returncode == 3
    assert f"{pasted} sends the rest." in stopped.stderr
    told = json.loads(stopped.stdout)["data"]
    assert [row["run"] is None for row in told["members"]] == [False, True, True]
    assert told["members"][1]["error"] == "The link was lost."
    noted = here("status").stderr
    assert f"1 of 3 runs was sent, 2 were not. {pasted}" in noted
    asked = here("submit", str(job), "--no-rest")
    assert asked.returncode == 2 and "1 of 3 runs was sent" in here("status").stderr, (
        "nobody agreed"
    )
    sent = here("submit", str(job), "--rest", "--yes")
    assert sent.returncode == 0, sent.stderr
    assert "were not" not in here("status").stderr
    assert "not sent: env.SEED=2, env.SEED=3" in sent.stderr
    assert [run.spec.env["SEED"] for run in runs.history.page()] == ["3", "2", "1"]
    tried[:] = ["once"]
    assert here("submit", str(job), "--yes").returncode == 3
    assert "0 of 3 runs were sent" in here("status").stderr
    tried[:] = ["once", "twice"]
    job.write_text(HELLO + 'grid: {env.SEED: ["4", "5"]}\n')
    anew = here("submit", str(job), "--no-rest", "--yes")
    assert anew.returncode == 0, anew.stderr
    assert "0 of 3 runs were sent" not in anew.stderr + here("status").stderr


def test_a_ladder_is_one_question_and_each_size_once(here: Here, job: Path, runs: Runs) -> None:
    several = HELLO.replace("launcher: plain", "launcher: srun").replace("single", "ddp")
    job.write_text(several)
    assert here("submit", str(job), "--yes", "--wait").returncode == 0
    (parent,) = runs.history.page()
    for words, said in (
        (("--ladder", "1,x"), "not a list of node counts"),
        (("--ladder", "1,2", "--nodes", "2"), "cannot be combined"),
        (("--ladder", "1,99"), "On 99 nodes: 99 nodes are more than"),
    ):
        refused = here("resubmit", "last", *words, "--yes")
        assert refused.returncode == 2 and said in refused.stderr, refused.stderr
    assert here("resubmit", "last", "--ladder", "1,2").returncode == 2, "nobody agreed"
    assert len(runs.history.page()) == 1
    done = here("resubmit", parent.id, "--ladder", "2,1,2", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert "NODES  RANKS" in done.stderr and "in all: nothing is billed" in done.stderr
    made = [run for run in runs.history.page() if run.parent == parent.id]
    assert sorted(run.layout.nodes for run in made) == [1, 2]
    (ladder,) = {run.note.split(":")[0] for run in made}
    assert ladder == f"ladder {json.loads(done.stdout)['data']['series']}"
    assert {run.note.partition(": ")[2] for run in made} == {"1 node", "2 nodes"}
    told = json.loads(done.stdout)["data"]
    assert [row["settings"] for row in told["members"]] == ["1 node", "2 nodes"]
    assert {row["run"] for row in told["members"]} == {run.id for run in made}
    for run in made:
        runs.wait(run.id)

    # An earlier ladder that is unfinished: its sizes are not sent twice.
    left = runs.series.begin_again(
        [runs.plan_resubmission(parent.id, nodes=nodes) for nodes in (1, 2)]
    )
    refused = here("resubmit", parent.id, "--ladder", "1,2", "--yes", "--json")
    assert refused.returncode == 2 and f"{left.id}: 0 of 2 runs were sent" in refused.stderr
    assert f"`lumitui resubmit {parent.id} --rest`" in refused.stderr
    assert len(runs.history.page()) == 3
    assert f"`lumitui resubmit {parent.id} --rest` sends those." in here("status").stderr
    assert here("resubmit", parent.id, "--rest", "--nodes", "2", "--yes").returncode == 2
    planned = here("resubmit", parent.id, "--rest", "--code", "same", "--from", "scratch", "--yes")
    assert planned.returncode == 2 and "--code cannot change the planned" in planned.stderr
    rest = here("resubmit", parent.id, "--rest", "--yes", "--json")
    assert rest.returncode == 0, rest.stderr
    assert "not sent: 1 node, 2 nodes" in rest.stderr
    told = json.loads(rest.stdout)["data"]
    assert told["series"] == left.id and [row["error"] for row in told["members"]] == [None, None]
    assert "has unsent runs" in here("resubmit", parent.id, "--rest", "--yes").stderr
    for run in runs.history.page(2):
        runs.wait(run.id)


def test_a_lineage_is_shown_and_given_as_json(here: Here, runs: Runs) -> None:
    run = train(runs.history, {1: 1000.0, 2: 1940.0, 4: 3500.0})[0]
    shown = here("scaling", run.id)
    assert "are for the 5,120 samples that" in " ".join(shown.stdout.split())
    assert "An epoch has 60,000 samples." in shown.stdout
    assert "97 %" in shown.stdout and "predicted" in shown.stdout
    assert "Take 1 node." in shown.stdout and "for longer training." in shown.stdout
    longer = " ".join(here("scaling", run.id, "--samples", "100000000").stdout.split())
    assert "Take 4 nodes." in longer and "whether larger sizes reach 75 %" in longer
    data = json.loads(here("scaling", run.id, "--json", "--deadline", "1h").stdout)["data"]
    assert data["advice"]["nodes"] == 1 and len(data["scaling"]["sizes"]) == 5
    assert here("scaling", run.id, "--deadline", "soon").returncode == 2


def test_a_lineage_without_figures_says_how_to_get_some(here: Here, runs: Runs) -> None:
    run = train(runs.history, {1: 1000.0}, steps=0)[0]
    shown = here("scaling", run.id)
    assert shown.returncode == 0 and "has reported samples/s" in shown.stdout
    assert "NODES" not in shown.stdout, "a table of dashes"


def test_a_run_alone_predicts_other_sizes(here: Here, runs: Runs) -> None:
    run = train(runs.history, {1: 1000.0, 2: 1200.0}, parameters=86_567_656)[0]
    shown = here("scaling", run.id, "--predict", "--json")
    data = json.loads(shown.stdout)["data"]["scaling"]
    assert [size["measured"] for size in data["sizes"][:2]] == [True, False]
    assert data["steps"]["exchange"]["links"]["between_nodes"] > 0
    text = " ".join(here("scaling", run.id, "--predict").stdout.split())
    assert "8 of 10 published training runs lie within the interval." in text


def test_a_resubmission_shows_what_it_probably_costs(here: Here, runs: Runs) -> None:
    run = train(runs.history, {1: 1000.0, 2: 1940.0})[0]
    runs.history.update(run.id, snapshot="0123456789abcdef")
    shown = " ".join(here("resubmit", run.id, "--code", "same").stderr.split())
    assert f"GPU-hours, about 0.11 in 1 min 40 s if it runs like {run.id}" in shown
    other = " ".join(here("resubmit", run.id, "--set", "--hidden=9").stderr.split())
    assert "at most 4 GPU-hours" in other and "about" not in other
