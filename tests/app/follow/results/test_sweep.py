"""The runs of a grid beside each other: what an epoch takes, and how many workers to take."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from lumitui.app.follow.results.sweep import StepPace, Sweep, pace_of, sweep
from lumitui.app.history.listing.series_runs import RunSeries, SeriesMember
from lumitui.app.history.metric_points import parse_line
from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import finish
from tests.support.program.command_line import HELLO, Here, envelope

BATCH = 10


def told(step_s: float, data_s: float, *, epochs: int = 2, samples: int | None = 60) -> list[str]:
    """The lines of a training whose first epoch is slow."""
    start: dict[str, object] = {"event": "start", "global_batch": BATCH, "world_size": 1}
    lines = [start | ({"train_samples": samples} if samples else {})]
    for step in range(1, 6 * epochs + 1):
        epoch = (step - 1) // 6 + 1
        spent = step_s * (10 if epoch == 1 and epochs > 1 else 1)
        lines.append({"step": step, "epoch": epoch, "loss": 1 / step, "data_s": data_s,
                      "samples_per_s": BATCH / spent, "seconds": spent * step})  # fmt: skip
    return [json.dumps(line) for line in lines]


def of(runs: Mapping[str, list[str] | None], *, unsent: int = 0, last: str = "done") -> Sweep:
    """The sweep of a grid whose settings have these lines, each."""
    members = [SeriesMember(at, name, "", f"run-{at}") for at, name in enumerate(runs, 1)]
    members += [SeriesMember(len(runs) + at, f"--workers={90 + at}", "") for at in range(unsent)]
    lines = {f"run-{at}": found or [] for at, found in enumerate(runs.values(), 1)}

    def pace(run: str) -> StepPace:
        return pace_of([point for line in lines[run] if (point := parse_line(line.encode()))])

    series = RunSeries("g1", "grid", "laptop", "", 1.0, tuple(members))
    states = dict.fromkeys(lines, "done") | {f"run-{len(runs)}": last}
    return sweep(series, states, pace)


def workers(*seconds: float, waits: float = 0.0) -> Sweep:
    """A grid over 0, 1, 2 … workers, with the seconds of a step of each."""
    return of({f"--workers={at}": told(each, waits * each) for at, each in enumerate(seconds)})


def test_an_epoch_is_that_of_the_steps_after_the_first() -> None:
    found = workers(0.5, 0.25, waits=0.1)
    assert [row.pace.epoch_s for row in found.rows] == pytest.approx([3.0, 1.5])
    assert [row.pace.samples_per_s for row in found.rows] == pytest.approx([20, 40])
    assert [row.pace.waiting for row in found.rows] == pytest.approx([0.1, 0.1])
    row = of({"--workers=0": told(0.5, 0.0, epochs=1, samples=None)}).rows[0]
    assert row.pace.epoch_s is None and row.pace.samples_per_s == pytest.approx(20)
    assert row.cells == ("--workers=0", "-", "20", "0 %", "0.1667", "done", "run-1")


@pytest.mark.parametrize(
    ("seconds", "sentence"),
    [
        (
            (1.0, 0.5, 0.25, 0.245),
            "Use --workers=2: 4.0 times as fast as --workers=0; higher values shorten",
        ),
        ((1.0, 0.99, 0.97), "Use --workers=0: higher values shorten an epoch by less than 5 %."),
        ((1.0, 0.5, 0.3), "This is the largest value tried: if a rank has more cores, try more."),
        (
            (1.0, 0.4, 0.9),
            "Use --workers=1: 2.5 times as fast as --workers=0; higher values shorten",
        ),
    ],
)
def test_the_fewest_workers_are_advised_that_are_fast_enough(
    seconds: tuple[float, ...], sentence: str
) -> None:
    found = workers(*seconds)
    (advice,) = found.advice
    assert sentence in advice and f"Use {found.advised}" in advice


def test_a_loader_that_no_worker_helps_is_named() -> None:
    advice = workers(1.0, 0.99, waits=0.4).advice
    assert "still spends 40 % of its time waiting for data: pack the samples" in advice[1]


def test_what_is_not_known_is_said_and_other_grids_get_no_advice() -> None:
    found = of({"--workers=0": told(1.0, 0), "--workers=1": None}, unsent=1)
    silent, waiting = found.advice
    assert silent.startswith("1 of 3 runs ended without figures. If the program prints its loss")
    assert waiting == "No figures yet from 1 of 3 runs."
    assert [row.state for row in found.rows] == ["done", "done", "not sent"]
    mixed = {"--workers=1 --lr=1": told(1.0, 0), "--workers=2 --lr=2": told(0.5, 0)}
    for same in ({"--lr=1": told(1.0, 0), "--lr=2": told(0.5, 0)}, mixed):
        assert of(same).advice == ("The runs end with the same loss, 0.08333.",)


def test_a_grid_without_workers_names_the_lowest_loss() -> None:
    def lines(loss: float) -> list[str]:
        return [*told(1.0, 0)[:-1], json.dumps({"event": "step", "step": 12, "loss": loss})]

    found = of({"--lr=1": lines(0.5), "--lr=2": lines(0.25), "--lr=3": lines(math.nan)})
    assert found.advice == ("--lr=2 has the lowest loss of the 2 runs that report one, 0.25.",)
    assert of({"--lr=1": lines(0.5), "--lr=2": lines(0.25)}).advice == (
        "--lr=2 has the lowest loss, 0.25.",
    )


def test_runs_without_a_loss_get_a_pattern_that_finds_one() -> None:
    silent = of({"--lr=1": [], "--lr=2": []}).advice
    paced = [json.dumps({"event": "step", "step": at, "samples_per_s": 9.0}) for at in range(1, 9)]
    quick = of({"--lr=1": paced, "--lr=2": paced}).advice
    assert silent[0].startswith("2 of 2 runs ended without figures.")
    assert quick[0].startswith("No run reports a loss to compare.")
    for (advice,) in (silent, quick):
        keys = yaml.safe_load(advice.split("`")[-2])
        job = parse_job(HELLO + yaml.safe_dump(keys), "job.yaml")
        found = re.search(job.metrics["loss"], "epoch 3 loss: 2.5e-01")
        assert found and float(found[1]) == 0.25


def test_patterns_that_match_nothing_are_named() -> None:
    series = RunSeries("g1", "grid", "laptop", "", 1.0, (SeriesMember(1, "--lr=1", "", "r"),))
    found = sweep(series, {"r": "done"}, lambda _: StepPace(), ("loss", "acc"))
    assert "matches `metrics:` (loss, acc): compare the patterns" in found.advice[0]


@pytest.mark.parametrize("key", ["--lr", "--workers"])
def test_no_setting_is_recommended_while_a_run_goes_on(key: str) -> None:
    found = of({f"{key}=1": told(1.0, 0), f"{key}=2": told(0.5, 0, epochs=3)}, last="running")
    assert found.advised == "" and found.advice == (
        "lumitui recommends no setting yet (1 of 2 runs unfinished).",
    )


def test_a_grids_speed_is_called_the_mean_since_a_runs_own_is_the_median() -> None:
    last = json.dumps({"step": 13, "epoch": 2, "loss": 0.1, "samples_per_s": 1.0})
    found = of({"--lr=1": [*told(1.0, 0), last]})
    assert found.titles[2] == "mean samples/s"
    assert (found.rows[0].pace.samples_per_s or 0) < 5, "the median is 10"
    own = [
        json.dumps({"step": at, "samples_per_s": speed}) for at, speed in ((1, 9), (2, 1), (3, 9))
    ]
    found = of({"--lr=1": own})
    assert found.titles[2] == "samples/s" and found.rows[0].pace.samples_per_s == 9


def test_an_epoch_is_known_from_the_logged_epochs_alone() -> None:
    lines = told(0.5, 0.0, epochs=3, samples=None)
    assert of({"--workers=0": lines}).rows[0].pace.epoch_s == pytest.approx(6 * 0.5)
    one = [line for line in lines if '"epoch": 1' in line or "start" in line]
    assert of({"--workers=0": one}).rows[0].pace.epoch_s is None


@pytest.mark.slow
def test_the_example_is_a_study_of_loader_workers_on_this_machine(
    here: Here, runs: Runs, tmp_path: Path
) -> None:
    path = tmp_path / "job.yaml"
    assert here("new", "--example", "loader-workers", "--output", str(path)).returncode == 0
    text = path.read_text().replace('["0", "1", "2", "4", "7"]', '["0", "1"]')
    path.write_text(text.replace("--epochs, ", '--limit, "640", --epochs, '))
    done = here("submit", str(path), "--yes")
    assert done.returncode == 0, done.stderr
    sent = [finish(runs, run) for run in runs.history.page(limit=5)]
    assert [run.state for run in sent] == [State.DONE] * 2
    found = envelope(here("grid", sent[0].id, "--json"))["data"]
    assert [row["setting"] for row in found["rows"]] == ["--workers=0", "--workers=1"]
    assert all(row["pace"]["epoch_s"] > 0 and 0 <= row["pace"]["waiting"] <= 1
               for row in found["rows"])  # fmt: skip
    assert any("Use --workers=" in sentence for sentence in found["advice"])
    assert "Use --workers=" in here("show", sent[0].id).stdout
    shown = here("grid", sent[0].id).stdout.splitlines()
    assert shown[0].split()[:2] == ["SETTING", "S/EPOCH"] and max(map(len, shown[:3])) <= 100


PRINTS = """\
name: own
site: laptop
partition: local
gpus_per_node: 1
time: "00:05:00"
strategy: single
script: train.sh
proof: "off"
metrics: {loss: 'loss=(\\S+)', images_per_s: 'Images/sec: (\\S+)', accuracy: 'acc (\\S+)'}
grid: {--try: ["1", "2"]}
"""
"""A program of one's own, that prints its figures and writes no metrics.jsonl."""
STEPS = """\
#!/bin/bash
try=${*: -1} try=${try##*=}
for n in 1 2 3 4 5 6 7; do echo "step $n loss=0.$n Images/sec: $try$n"; done
echo "acc 0.$try"
"""


def test_figures_that_a_program_prints_stand_in_the_grid_and_beside_each_other(
    here: Here, runs: Runs, tmp_path: Path
) -> None:
    (tmp_path / "train.sh").write_text(STEPS)
    (tmp_path / "train.sh").chmod(0o755)
    path = tmp_path / "job.yaml"
    path.write_text(PRINTS)
    assert here("submit", str(path), "--yes").returncode == 0
    first, second = sorted(
        (finish(runs, run) for run in runs.history.page(limit=5)), key=lambda run: run.spec.args
    )
    shown = here("grid", first.id).stdout
    assert shown.splitlines()[0].split()[-5:] == ["DATA", "LOSS", "ACCURACY", "STATE", "RUN"]
    assert "no figures" not in shown
    paces = [row["pace"] for row in envelope(here("grid", first.id, "--json"))["data"]["rows"]]
    assert [(one["samples_per_s"], one["loss"]) for one in paces] == [(16.5, 0.7), (26.5, 0.7)]
    rows = {line.split()[0]: line.split()[1:] for line in
            here("diff", first.id, second.id).stdout.splitlines() if line.strip()}  # fmt: skip
    assert rows["samples/s"] == ["16.5", "26.5"] and rows["accuracy"] == ["0.1", "0.2"]
    scaling = here("scaling", first.id).stdout
    print(scaling)
    assert "16.5" in scaling


def test_a_run_that_was_sent_by_itself_has_no_grid(here: Here, runs: Runs) -> None:
    runs.history.begin(a_run("alone-1"))
    done = here("grid", "alone-1")
    assert done.returncode == 2
    assert "alone-1 is not part of a grid" in done.stderr
