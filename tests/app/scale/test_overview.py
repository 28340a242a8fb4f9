"""The overview of a run read from history: its relatives, and what is computed once."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.explain.run_overview import with_outlook
from lumitui.app.follow.results import summary
from lumitui.app.history.history import History
from lumitui.app.history.listing.series_runs import RunSeries, SeriesMember
from lumitui.app.history.run import AttemptRecord
from lumitui.app.scale.lineage_overview import Overviews
from lumitui.remote.site.states import State
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.trained_runs import lines_of, train, trained


def measured(history: History, run_id: str, parent: str | None, nodes: int, speed: float) -> None:
    """Put a run into the history that trained at `speed` samples a second."""
    created = float(len(history.page()))
    run = a_run(run_id, parent=parent, created=created)
    history.begin(replace(run, layout=replace(run.layout, nodes=nodes)))
    points = [
        {"event": "step", "step": step, "loss": 1 / step, "samples_per_s": speed,
         "world_size": 8 * nodes}
        for step in range(1, 11)
    ]  # fmt: skip
    lines = [json.dumps(point).encode() for point in points]
    history.metrics.add(run_id, lines, (0, 100))


def test_each_run_of_a_lineage_is_compared_with_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(tmp_path / "history.db")
    measured(history, "one", None, 1, 100.0)
    measured(history, "two", "one", 2, 190.0)
    measured(history, "six", "one", 6, 300.0)
    measured(history, "four", "two", 4, 342.0)
    overviews = Overviews(history)
    read: list[str] = []
    of = history.metrics.of

    def counted(run_id: str, **words: int) -> object:
        read.append(run_id)
        return of(run_id, **words)

    monkeypatch.setattr(history.metrics, "of", counted)
    found = overviews.of("two")
    assert [(item.run.id, item.depth) for item in found.relatives] == [
        ("one", 0), ("two", 1), ("four", 2),
    ]  # fmt: skip
    parent, beside = found.comparison or pytest.fail("nothing to compare")
    assert (parent.id, beside.speed_up, beside.efficiency) == ("one", 1.9, 95.0)
    tree = overviews.of("one")
    assert [item.run.id for item in tree.relatives] == ["one", "two", "four", "six"]
    assert tree.comparison is None
    efficiencies = [item.beside_parent and item.beside_parent.efficiency for item in tree.relatives]
    assert efficiencies == pytest.approx([None, 95.0, 90.0, 50.0])
    for _ in range(3):
        overviews.of("one")
    assert sorted(read) == ["four", "one", "six", "two"], "each run's metrics are read once"
    history.metrics.add("six", [b'{"step": 11}'], (100, 200))
    overviews.of("one")
    assert read.count("six") == 2 and len(read) == 5
    history.close()


def test_a_chain_that_cannot_finish_says_how_far_it_comes(tmp_path: Path) -> None:
    history = History(tmp_path / "history.db")
    run = a_run(state=State.RUNNING)
    spec = run.spec.model_copy(update={"chain": 4, "args": ("--steps", "4800")})
    ended = tuple(
        AttemptRecord(at, "7", "nid1", 1000.0 * at, 1000.0 * at + 90, 85, 800 * at, "requeue")
        for at in (1, 2)
    )
    chain = replace(run, spec=spec, attempts=ended)
    history.begin(chain)
    planned = Overviews(history).of(run.id).planned
    assert planned == 4800
    assert with_outlook([("next", "x")], chain, planned, ()) == [
        ("chain", "at this pace 3,200 of 4,800 steps by the last attempt"), ("next", "x"),
    ]  # fmt: skip
    for finishes in (replace(chain, state=State.DONE), replace(chain, attempts=())):
        assert with_outlook([], finishes, planned, ()) == []
    assert with_outlook([], chain, 3200, ()) == with_outlook([], chain, None, ()) == []
    epochs = [b'{"event": "start", "train_samples": 1000, "epochs": 10, "global_batch": 50}']
    by_epochs = replace(chain, id="by-epochs-1", spec=spec.model_copy(update={"args": ()}))
    history.begin(by_epochs)
    history.metrics.add(by_epochs.id, epochs, (0, 90))
    assert Overviews(history).of(by_epochs.id).planned == 200
    history.close()


def test_the_lineage_of_one_size_of_a_ladder_has_the_other_sizes(tmp_path: Path) -> None:
    history = History(tmp_path / "history.db")
    for run_id, parent, nodes in (("one", None, 1), ("two", "one", 2), ("four", "one", 4),
                                  ("other", "one", 8), ("again", "four", 4)):  # fmt: skip
        measured(history, run_id, parent, nodes, 100.0 * nodes)
    members = tuple(SeriesMember(place, f"{place} nodes", "{}") for place in (2, 4))
    history.series.begin(RunSeries("ladder-1", "ladder", "lumi", "one", 1.0, members))
    history.series.claim("ladder-1", 2, "two")
    history.series.claim("ladder-1", 4, "four")
    overviews = Overviews(history)
    assert [item.run.id for item in overviews.of("two").relatives] == ["one", "two", "four"]
    assert [item.run.id for item in overviews.of("four").relatives] == [
        "one", "two", "four", "again",
    ]  # fmt: skip
    assert [item.run.id for item in overviews.of("other").relatives] == ["one", "other"]
    history.close()


@pytest.mark.parametrize(("state", "steps", "compared"), [
    (State.FAILED, 2, False), (State.FAILED, 15, True), (State.RUNNING, 2, True),
    (State.DONE, 2, True),
])  # fmt: skip
def test_a_run_that_failed_early_is_not_compared_with_its_parent(
    tmp_path: Path, state: State, steps: int, *, compared: bool
) -> None:
    history = History(tmp_path / "history.db")
    (parent,) = train(history, {2: 1000.0}, steps=20)
    history.begin(trained("child", 1, parent.id, state=state))
    history.metrics.add("child", lines_of([155.0] * steps, 8, 512, 60_000, 2, None))
    found = Overviews(history).of("child")
    assert (found.comparison is not None) is compared
    assert found.figures.summary.samples_per_s == 155.0, "its own speed stays"
    history.close()


def test_a_circle_of_parents_ends(tmp_path: Path) -> None:
    history = History(tmp_path / "history.db")
    history.begin(a_run("a", parent="b"))
    history.begin(a_run("b", parent="a"))
    assert Overviews(history).of("a").comparison is None
    assert summary.summarize([]).steps == 0
    history.close()


def test_a_run_of_a_grid_over_workers_says_how_many_to_take(tmp_path: Path) -> None:
    history = History(tmp_path / "history.db")
    members = tuple(SeriesMember(at, f"--workers={at}", "{}") for at in (1, 2))
    history.series.begin(RunSeries("grid-1", "grid", "somewhere", "job.yaml", 1.0, members))
    for at, speed in ((1, 100.0), (2, 300.0)):
        history.series.claim("grid-1", at, f"w{at}")
        history.begin(replace(a_run(f"w{at}", created=float(at)), state=State.DONE))
        start = {"event": "start", "global_batch": 10, "train_samples": 60}
        steps = [{"step": step, "samples_per_s": speed} for step in range(1, 11)]
        lines = [json.dumps(line).encode() for line in (start, *steps)]
        history.metrics.add(f"w{at}", lines, (0, 100))
    overviews = Overviews(history)
    (advice,) = overviews.of("w1").advice
    assert advice.startswith("Use --workers=2: 3.0 times as fast as --workers=1.")
    assert with_outlook([("loss", "1"), ("next", "x")], a_run(), None, (advice,))[1:] == [
        ("grid", advice),
        ("next", "x"),
    ]
    measured(history, "other", None, 1, 100.0)
    assert overviews.of("other").advice == ()
