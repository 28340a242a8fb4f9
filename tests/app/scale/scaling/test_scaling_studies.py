"""How the runs of a history scale, with what is known of their site."""

import os
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.history.history import History
from lumitui.app.history.metric_points import parse_line
from lumitui.app.history.run import Run
from lumitui.app.job.fields.mapping_fields import BatchRule, LearningRateRule, Scale
from lumitui.app.runs import Runs
from lumitui.app.scale.scaling import rungs, scaling_words
from lumitui.app.scale.scaling.measured import MeasuredRun, training_of
from lumitui.app.scale.scaling.size_advice import SizeGoal, advise_size
from lumitui.app.scale.scaling.studies import ScalingQuestion
from lumitui.app.scale.scaling.study import Offer, scaling_of
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.node import Links
from lumitui.remote.site.states import State
from tests.support.jobs.trained_runs import lines_of, size_of, train, trained

SPEEDS = {1: 1000.0, 2: 1940.0, 4: 3500.0}
RUN = trained("r1", 1)
STEPS = range(1, 41)


def test_the_history_and_the_profile_make_a_study(runs: Runs) -> None:
    made = train(runs.history, SPEEDS)
    found = runs.scaling.of(made[1].id, ScalingQuestion((32,)))
    assert [size.nodes for size in found.sizes] == [1, 2, 4, 8, 16, 32]
    assert [size.nodes for size in found.measured] == [1, 2, 4]
    eight = size_of(found, 8)
    assert eight.offer and eight.offer.per_hour == 32.0
    assert found.whole.words == f"the {20 * 512:,} samples that {made[1].id} trained"
    refused = size_of(runs.scaling.of(made[1].id, ScalingQuestion((5000,))), 5000).refused
    assert refused.startswith("5000 nodes are more than")
    assert runs.scaling.of(made[1].id) == runs.scaling.of(made[1].id)
    two = runs.scaling.of(made[1].id, ScalingQuestion(epochs=2)).whole
    assert two.samples == 120_000 and two.words == "120,000 samples"
    ten = runs.scaling.of(made[1].id, ScalingQuestion(times=10)).whole
    assert ten.samples == 10 * found.whole.samples
    runs.history.begin(trained("none", 1))
    with pytest.raises(InputError, match="samples of none is unknown"):
        runs.scaling.of("none", ScalingQuestion(times=2))
    with pytest.raises(InputError, match="is unknown"):
        runs.scaling.of("none", ScalingQuestion(epochs=1))


def test_metrics_that_came_later_count(runs: Runs) -> None:
    history: History = runs.history
    (made,) = train(history, {1: 1000.0})
    assert runs.scaling.of(made.id).sizes[0].source == f"{made.id} (20 steps)"
    lines = [b'{"step": %d, "samples_per_s": 1000}' % step for step in range(21, 31)]
    history.metrics.add(made.id, lines)
    history.update(made.id, metrics_offset=2)
    assert runs.scaling.of(made.id).sizes[0].source == f"{made.id} (30 steps)"


def test_the_work_of_a_run_that_reports_no_batch_is_not_guessed_from_its_start(
    runs: Runs,
) -> None:
    runs.history.begin(trained("done", 1, global_batch=None))
    runs.history.metrics.add("done", [b'{"step": 1, "samples_per_s": 50}'] * 9)
    found = runs.scaling.of("done")
    assert not found.knows_work and size_of(found, 1).start_up is None
    assert [rung.cells[2] for rung in rungs.rungs_of(found)][:2] == ["-", "-"]
    assert rungs.basis(found).startswith(
        "The number of samples is unknown, so lumitui cannot predict a time. If an argument sets "
    )
    assert "No run has reported its start-up yet" in " ".join(scaling_words.notes(found))
    # A run of the same size says how long the start takes: 100 s less 15 s of steps.
    runs.history.begin(trained("known", 1, "done", global_batch=50))
    lines = [b'{"step": %d, "samples_per_s": 50}' % at for at in range(1, 16)]
    runs.history.metrics.add("known", lines)
    found = runs.scaling.of("done")
    assert found.whole.words == "about 750 samples, the speed of done times its training time"
    assert size_of(found, 1).start_up == 85.0
    assert rungs.rungs_of(found)[0].cells[2] == "1m40"


NAMED = Scale(batch=BatchRule(arg="--batch-size"), lr=LearningRateRule(arg="--lr"))
PROGRAM = """import argparse
p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=32)
p.add_argument("--steps", type=int, default=200)
args = p.parse_args()
"""


def own_run(runs: Runs, project: Path, nodes: int, took: float, speed: float, **more: Any) -> Run:
    """A run of a script of one's own that prints 200 steps; it has lasted `took` seconds."""
    spec = RUN.spec.model_copy(update={
        "trainer": None, "script": "train.py", "scale": None, "args": ("--steps", "200"),
        "nodes": nodes, **more,
    })  # fmt: skip
    program = project / "train.py"
    if not program.exists():
        program.write_text(PROGRAM)
    os.utime(program, (500, 500))
    batch = 256 * nodes if spec.scale else None
    run = trained(
        f"own{nodes}", nodes, "own1" if nodes > 1 else None, spec=spec, project=str(project),
        global_batch=batch, ended=1000 + took, updated=1000 + took,
    )  # fmt: skip
    runs.history.begin(run)
    lines = [b'{"step": %d, "samples_per_s": %f}' % (at, speed) for at in range(1, 201)]
    runs.history.metrics.add(run.id, lines)
    return run


def test_each_size_has_its_own_start_up_and_the_time_that_its_run_took(
    runs: Runs, tmp_path: Path
) -> None:
    own_run(runs, tmp_path, 1, 183, 1124)
    named = ("--steps", "200", "--batch-size", "32", "--lr", "0.05")
    own_run(runs, tmp_path, 2, 264, 1730, args=named, scale=NAMED)
    small, large = runs.scaling.of("own1"), runs.scaling.of("own2")
    # 200 steps of 8 x 32 samples in 51,200 / 1,124 = 45.6 s, so 137.4 s of 183 s are start-up;
    # on 2 nodes, 102,400 / 1,730 = 59.2 s of 264 s leave 204.8 s.
    # So 1 node takes 137.4 + 102,400 / 1,124 s for the work of 2.
    for found in (small, large):
        assert [round(size_of(found, n).start_up or 0, 1) for n in (1, 2)] == [137.4, 204.8]
    assert small.whole.words == "the 51,200 samples that own1 trained"
    assert large.whole.words == "the 102,400 samples that own2 trained"
    times = [
        [round(size.whole.seconds.middle, 1) for size in found.measured if size.whole]
        for found in (small, large)
    ]
    assert times == [[183.0, 204.8 + 29.6], [228.6, 264.0]]
    assert [rung.cells[2] for rung in rungs.rungs_of(small)][:2] == ["3m03", "3m54"]
    assert [rung.cells[-1] for rung in rungs.rungs_of(small)][:3] == [
        "measured", "from its speed", "predicted"
    ]  # fmt: skip
    assert [rung.cells[-1] for rung in rungs.rungs_of(large)][:2] == ["from its speed", "measured"]
    # The start-up of the nearest measured size is the floor of a prediction.
    sixteen = size_of(large, 16)
    assert sixteen.start_up_of == 2 and sixteen.whole and sixteen.whole.seconds.low > 204.8
    notes = list(scaling_words.notes(large))
    assert notes[0] == (
        "Times include start, tests and checkpoints: 2 min 17 s on 1 node, 3 min 25 s on 2 nodes. "
        "On 4, 8, 16 nodes, lumitui assumes the start-up of 2 nodes."
    )
    assert notes[1].startswith("lumitui counts `--batch-size 32` as the samples of each rank.")
    assert "own1 was billed 0.20 GPU-hours for 51,200 samples." in notes
    assert not large.doubts
    advice = advise_size(large, SizeGoal())
    assert advice.nodes == 1
    assert "but would add 35 s to the 3 min 49 s on 1 node, for 2.3 times" in advice.sentence


@pytest.mark.parametrize("change", ["edited", "global", "too many", "no default"])
def test_a_batch_that_the_run_may_not_have_had_is_not_assumed(
    runs: Runs, tmp_path: Path, change: str
) -> None:
    program = tmp_path / "train.py"
    texts = {"global": PROGRAM.replace("--batch", "--global-batch"),
             "no default": PROGRAM.replace("default=32", "required=True")}  # fmt: skip
    program.write_text(texts.get(change, PROGRAM))
    # 51,200 samples would take 1,024 s at 50 samples/s: the batch is that of all ranks.
    own_run(runs, tmp_path, 1, 183, 50 if change == "too many" else 1124)
    if change == "edited":
        os.utime(program, (1500, 1500))
    assert not runs.scaling.of("own1").knows_work


def test_a_resumed_run_has_not_trained_the_steps_of_its_parent(runs: Runs) -> None:
    runs.history.begin(trained("resumed", 1, resumed_from="earlier"))
    lines = [b'{"step": %d, "samples_per_s": 512}' % at for at in range(510, 601, 10)]
    runs.history.metrics.add("resumed", lines)
    runs.history.begin(trained("cut", 1, "resumed", state=State.CANCELLED, ended=1070.0))
    runs.history.metrics.add("cut", [line.replace(b'"step": 5', b'"step": 1') for line in lines])
    found = runs.scaling.of("resumed")
    assert found.whole.samples == 100 * 256
    # 100 s, of which 25,600 samples at 512 a second are 50: what it took, not a median.
    (size,) = found.measured
    assert size.start_up == 50.0 and size.whole and size.whole.seconds.middle == 100.0


def test_a_run_has_trained_its_steps_times_the_batch_of_its_arguments(runs: Runs) -> None:
    for nodes, steps in ((1, 60), (2, 120)):
        run_id = f"r{nodes}"
        runs.history.begin(trained(run_id, nodes, None if nodes == 1 else "r1"))
        lines = [b'{"step": %d, "samples_per_s": 500}' % at for at in range(5, steps + 1, 5)]
        runs.history.metrics.add(run_id, lines)
    found = runs.scaling.of("r1")
    assert found.whole.words == "the 15,360 samples that r1 trained"
    one, two = found.measured
    assert one.whole and one.whole.price.middle == pytest.approx(runs.history.get("r1").billed(0.0))
    assert two.whole and two.whole.price.middle < runs.history.get("r2").billed(0.0)
    notes = list(scaling_words.notes(found))
    assert "r2 was billed 0.22 GPU-hours for 61,440 samples." in notes
    assert (
        "LUMI bills a card of two GCDs as one GPU, so an hour on one GCD costs 0.5 GPU-hours."
        in notes
    )
    assert "GPU-h" not in scaling_words.table(found).titles


def test_the_start_of_a_run_is_not_trained_again_on_another_size(runs: Runs) -> None:
    # It started for 60 s, then trained for 40 s.
    lines = [b'{"step": %d, "samples_per_s": 50, "seconds": %d}' % (at, 60 + at) for at in STEPS]
    runs.history.begin(trained("done", 1, global_batch=None))
    runs.history.metrics.add("done", lines)
    found = runs.scaling.of("done")
    assert found.whole.words == "about 2,000 samples, the speed of done times its training time"
    assert size_of(found, 1).start_up == 60.0
    assert [rung.cells[2] for rung in rungs.rungs_of(found)][:2] == ["1m40", "1m20-1m40"]
    # One that still trains: from its start to its first step.
    runs.history.begin(trained("going", 1, state=State.RUNNING, ended=None))
    begun = b'{"event": "start", "time": 1055, "global_batch": 50, "train_samples": 9, "epochs": 9}'
    timed = [b'{"step": %d, "samples_per_s": 50, "seconds": %d}' % (at, 5 + at) for at in STEPS]
    runs.history.metrics.add("going", [begun, *timed])
    going = runs.scaling.of("going")
    assert size_of(going, 1).start_up == 60.0
    assert rungs.rungs_of(going)[0].cells[-1] == "from its speed so far"


def test_a_lineage_without_a_prediction_says_why_and_what_to_do(runs: Runs) -> None:
    spec = RUN.spec.model_copy(update={"metrics": {"samples_per_s": r"(\d+)/s"}})
    going = trained("going", 1, state=State.RUNNING, ended=None, spec=spec)
    runs.history.begin(going)
    basis = rungs.basis(runs.scaling.of("going"))
    assert basis.startswith("going is running, and lumitui has read no samples/s in its log yet.")
    runs.history.metrics.add("going", lines_of([50.0] * 9, 1, 50, 100))
    runs.history.update("going", metrics_offset=2)
    assert rungs.basis(runs.scaling.of("going")) == (
        "lumitui can compare no run of this lineage, so it cannot predict a time. "
        "going is left out: it reports only 1 rank of 8 ranks."
    )


def test_one_size_predicts_others_where_the_links_of_the_site_are_known(runs: Runs) -> None:
    (made,) = train(runs.history, {1: 1000.0}, parameters=86_567_656)
    found = runs.scaling.of(made.id)
    four = size_of(found, 4)
    assert four.speed and four.speed.likely and four.efficiency
    # More than no gain, less than ideal: the exchange of 350 MB costs a little of 256 ms.
    assert 3700 < four.speed.likely < 3995 and four.speed.low < 0.8 * four.speed.likely
    said = scaling_words.basis(found)
    assert said.startswith("A step on 1 node takes 256 ms, of which the exchange adds")
    assert "each rank sends 693 MB per step" in said and "87.6 GB/s between nodes" in said
    assert scaling_words.table(found).rows[2][2].startswith("~")
    advice = advise_size(found, SizeGoal())
    assert (advice.nodes, advice.certainty) == (1, "measured")
    assert "the only measured size: run one more" in advice.sentence


def test_an_exchange_that_the_run_measured_counts_not_the_profiles_links(runs: Runs) -> None:
    plain, told = trained("plain", 1, metrics_offset=2), trained("told", 1, metrics_offset=2)
    for run in (plain, told):
        runs.history.begin(run)
        lines = lines_of([1000.0] * 20, 8, 256, 60_000, parameters=25_000)
        if run is told:  # 15 % of the 256 ms on the wire, 10 % waiting for it
            lines.append(
                b'{"step": 21, "samples_per_s": 1000, "communication_s": 0.0384,'
                b' "exposed_s": 0.0256}'
            )
        runs.history.metrics.add(run.id, lines)
    found, assumed = runs.scaling.of("told"), runs.scaling.of("plain")
    assert found.steps and found.steps.calibrated.exposed == 0.0256
    assert found.steps.step(8, 1).exposed == pytest.approx(0.0256)
    said = scaling_words.basis(found)
    assert (
        "waited 25.6 ms for gradients, as measured (38.4 ms of exchange); computation takes 230 ms"
        in said
    )
    assert "times as long as at 100 GB/s in a node and" in said and "profile" not in said
    four, hoped = size_of(found, 4).speed, size_of(assumed, 4).speed
    assert four and hoped and four.likely and hoped.likely and four.likely < 0.95 * hoped.likely


@pytest.mark.parametrize("exposed", [-1.0, 0.0, 9e9])
def test_figures_of_the_wire_that_cannot_be_true_change_nothing(exposed: float) -> None:
    line = b'{"step": 1, "communication_s": %f, "exposed_s": %f}' % (exposed, exposed)
    parsed = [parse_line(each) for each in [*lines_of([10.0] * 9, 8, 64, 640, parameters=9), line]]
    made = training_of([point for point in parsed if point])
    offers = [Offer(2, 16, 8.0, 60.0, 8.0)]
    links = Links(in_node=100, between_nodes=50, latency_in_node=1, latency_between_nodes=9)
    found = scaling_of(RUN, [MeasuredRun(RUN, made)], offers, links=links)
    assert found.steps and found.steps.measured.wire is None


def test_a_batch_that_is_shared_by_more_ranks_is_predicted_as_such(runs: Runs) -> None:
    (made,) = train(runs.history, {1: 1000.0}, parameters=86_567_656)
    kept = made.spec.model_copy(update={"scale": None})
    shared = trained("shared", 1, spec=kept, metrics_offset=2)
    runs.history.begin(shared)
    lines = lines_of([1000.0] * 20, 8, 256, 60_000, parameters=86_567_656)
    runs.history.metrics.add("shared", lines)
    grown, split = (size_of(runs.scaling.of(name), 16).speed for name in (made.id, "shared"))
    assert grown and split and grown.likely and split.likely
    # A sixteenth of the work in a step, and as much to exchange.
    assert split.likely < 0.75 * grown.likely


def test_a_run_alone_predicts_what_its_lineage_measured(runs: Runs) -> None:
    made = train(runs.history, SPEEDS, parameters=25_557_032)
    alone = runs.scaling.of(made[0].id, ScalingQuestion(alone=True))
    assert [size.nodes for size in alone.measured] == [1]
    four = size_of(alone, 4).speed
    assert four and four.low < SPEEDS[4] < four.high
    assert runs.scaling.of(made[0].id).steps is None  # three sizes check Amdahl's law


def test_what_cannot_be_predicted_alone_says_what_is_missing(runs: Runs) -> None:
    (without,) = train(runs.history, {1: 1000.0})
    with pytest.raises(InputError, match=r"start line .* has no `parameters`"):
        runs.scaling.of(without.id, ScalingQuestion(alone=True))
    runs.history.begin(trained("none", 1))
    with pytest.raises(InputError, match="none has reported no samples/s"):
        runs.scaling.of("none", ScalingQuestion(alone=True))
    here = trained("here", 1, site="laptop", metrics_offset=2)
    runs.history.begin(here)
    runs.history.metrics.add("here", lines_of([1.0] * 20, 8, 256, 60_000, parameters=1))
    with pytest.raises(InputError, match="The profile of laptop does not contain the speed of"):
        runs.scaling.of("here", ScalingQuestion(alone=True))
