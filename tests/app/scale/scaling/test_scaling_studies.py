"""How the runs of a history scale, with what is known of their site."""

import pytest

from lumitui.app.history.history import History
from lumitui.app.history.metric_points import parse_line
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
    with pytest.raises(InputError, match="is unknown"):
        runs.history.begin(trained("none", 1))
        runs.scaling.of("none", ScalingQuestion(epochs=1))


def test_metrics_that_came_later_count(runs: Runs) -> None:
    history: History = runs.history
    (made,) = train(history, {1: 1000.0})
    assert runs.scaling.of(made.id).sizes[0].source == f"{made.id} (15 steps)"
    lines = [b'{"step": %d, "samples_per_s": 1000}' % step for step in range(21, 31)]
    history.metrics.add(made.id, lines)
    history.update(made.id, metrics_offset=2)
    assert runs.scaling.of(made.id).sizes[0].source == f"{made.id} (25 steps)"


def test_a_run_that_reports_no_batch_has_trained_as_fast_as_it_says_for_all_its_time(
    runs: Runs,
) -> None:
    runs.history.begin(trained("done", 1, global_batch=None))
    runs.history.metrics.add("done", [b'{"step": 1, "samples_per_s": 50}'] * 9)
    found = runs.scaling.of("done")
    assert found.whole.words == (
        "at most 5,000 samples, the speed of done times its duration, in which it also started"
    )
    assert [rung.cells[2] for rung in rungs.rungs_of(found)][:2] == ["1m40", "50s-1m40"]


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
    assert "The runs' own bills in GPU-hours, which differ: r2 0.22 for 61,440 samples." in notes
    assert "An hour of one GCD, which Slurm calls a GPU, costs 0.5 GPU-hours." in notes
    assert "GPU-h" not in scaling_words.table(found).titles


def test_the_start_of_a_run_is_not_trained_again_on_another_size(runs: Runs) -> None:
    # It started for 60 s, then trained for 40 s.
    lines = [b'{"step": %d, "samples_per_s": 50, "seconds": %d}' % (at, 60 + at) for at in STEPS]
    runs.history.begin(trained("done", 1, global_batch=None))
    runs.history.metrics.add("done", lines)
    found = runs.scaling.of("done")
    assert found.whole.words == "about 2,000 samples, the speed of done times its training time"
    assert found.overhead == 60.0
    assert [rung.cells[2] for rung in rungs.rungs_of(found)][:2] == ["1m40", "1m20-1m40"]
    # One that still trains: from its start to its first step.
    runs.history.begin(trained("going", 1, state=State.RUNNING, ended=None))
    begun = b'{"event": "start", "time": 1055, "global_batch": 50, "train_samples": 9, "epochs": 9}'
    timed = [b'{"step": %d, "samples_per_s": 50, "seconds": %d}' % (at, 5 + at) for at in STEPS]
    runs.history.metrics.add("going", [begun, *timed])
    going = runs.scaling.of("going")
    assert going.overhead == 60.0
    assert rungs.rungs_of(going)[0].cells[-1] == "measured so far"


def test_a_lineage_without_a_prediction_says_why_and_what_to_do(runs: Runs) -> None:
    spec = RUN.spec.model_copy(update={"metrics": {"samples_per_s": r"(\d+)/s"}})
    going = trained("going", 1, state=State.RUNNING, ended=None, spec=spec)
    runs.history.begin(going)
    basis = rungs.basis(runs.scaling.of("going"))
    assert basis.startswith("going is running: for a prediction, lumitui reads")
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
    assert said.startswith("A step of 1 node takes 256 ms, of which the exchange adds")
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
    assert "waited 25.6 ms for gradients, as measured (38.4 ms of exchange); 230 ms" in said
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
