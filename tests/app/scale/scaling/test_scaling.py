"""How a lineage scales: what was measured, what it costs, what is predicted and recommended."""

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.cli.output import as_data
from lumitui.app.explain import words
from lumitui.app.explain.run_facts import NO_METRICS
from lumitui.app.history.metric_points import parse_line
from lumitui.app.scale.scaling import rungs, scaling_words
from lumitui.app.scale.scaling.measured import NOTHING, MeasuredRun, Training, training_of
from lumitui.app.scale.scaling.model import Estimate
from lumitui.app.scale.scaling.size_advice import SizeGoal, advise_size, seconds_in
from lumitui.app.scale.scaling.study import Offer, Scaling, ScalingSize, scaling_of
from lumitui.app.tui.screens.scaling_screen import scaling_lines
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from tests.support.jobs.trained_runs import lines_of, size_of, trained

SPEEDS = {1: 1000.0, 2: 1940.0, 4: 3500.0}
RUN = trained("r1", 1)


def training(speed: float, **changes: object) -> Training:
    made = Training(speed, speed * 0.99, speed * 1.01, 50, samples=60_000, epoch=60_000)
    return replace(made, **changes)  # type: ignore[arg-type]


def study(speeds: dict[int, float], *nodes: int) -> Scaling:
    """The scaling of made runs, each with 70 s outside its steps; offers of 4 a node and hour."""
    family = [
        MeasuredRun(trained(f"r{n}", n, ended=1070.0 + 60_000 / speed), training(speed))
        for n, speed in speeds.items()
    ]
    offers = [Offer(n, 8 * n, 4.0 * n, 3600.0, 4.0 * n) for n in nodes]
    return scaling_of(family[0].run, family, offers)


def test_where_the_work_is_not_known_no_time_is_told_and_no_limit_passed() -> None:
    run = replace(RUN, state=State.TIMEOUT)
    family = [MeasuredRun(run, training(1000.0, samples=None, epoch=None))]
    offers = [Offer(n, 8 * n, 4.0 * n, 60.0, 4.0 * n) for n in (1, 2)]
    found = scaling_of(run, family, offers)
    assert not found.knows_work and size_of(found, 1).over_limit  # of a million samples
    assert [rung.cells[2] for rung in rungs.rungs_of(found)] == ["-", "-"]
    assert "limit" not in str(rungs.rungs_of(found)) and "unknown" in rungs.basis(found)
    assert "limit" not in scaling_words.recommendation(found, advise_size(found, SizeGoal()))
    assert study(SPEEDS, 8).knows_work


def test_a_chain_has_the_time_of_all_its_limits() -> None:
    chained = replace(RUN, spec=RUN.spec.model_copy(update={"chain": 4}))
    one, four = (
        size_of(scaling_of(run, [MeasuredRun(run, training(1000.0))], []), 1).offer
        for run in (RUN, chained)
    )
    assert one is not None and four is not None
    assert four.limit == 4 * one.limit


def test_metrics_say_speed_spread_and_work() -> None:
    parsed = [parse_line(line) for line in lines_of([10.0] * 5 + [90, 100, 110], 8, 64, 640)]
    found = training_of([point for point in parsed if point])
    assert (found.speed, found.low, found.high, found.steps) == (100.0, 90.0, 110.0, 8)
    assert (found.warm, found.ranks, found.samples) == (True, 8, 8 * 64)
    assert (found.epoch, found.planned) == (640, 1280)
    assert training_of([]) == Training(warm=False)


def test_the_steps_of_a_run_that_reports_every_fourth_are_counted_by_their_numbers() -> None:
    def told(lines: list[bytes], **changes: object) -> str:
        points = [point for line in lines if (point := parse_line(line))]
        item = MeasuredRun(replace(RUN, **changes), training_of(points))  # type: ignore[arg-type]
        return scaling_of(RUN, [item], []).sizes[0].source

    fourth = [b'{"step": %d, "samples_per_s": 500}' % at for at in range(4, 641, 4)]
    assert told(fourth) == "r1 (640 steps)"
    assert told(fourth[:5]) == "r1 (20 steps, all within the warm-up)"
    # From a log whose lines have no step number.
    lines = [line.replace(b"}", b', "counts": "line"}') for line in fourth]
    assert told(lines) == "r1 (640 lines)"


def test_an_epoch_is_known_from_where_its_number_changes() -> None:
    lines = [b'{"event": "start", "world_size": 2, "global_batch": 10}']
    lines += [b'{"step": %d, "epoch": %d}' % (step, 1 + step // 7) for step in range(1, 30)]
    parsed = [parse_line(line) for line in lines]
    found = training_of([point for point in parsed if point])
    assert (found.epoch, found.rounded) == (70, True)


def test_an_epoch_of_whole_steps_is_about_the_least_that_a_run_counted() -> None:
    def words(*epochs: tuple[int, bool]) -> str:
        family = [
            MeasuredRun(RUN, training(1000.0, epoch=epoch, rounded=rounded))
            for epoch, rounded in epochs
        ]
        return scaling_of(RUN, family, [Offer(1, 8, 4.0, 3600.0, 4.0)]).part.words

    assert words((2048, True), (1792, True)) == "an epoch of about 1,792 samples"
    assert words((1638, False), (1792, True)) == "an epoch of 1,638 samples"


def test_the_table_compares_with_the_smallest_size_and_prices_an_epoch() -> None:
    found = study({2: 2000.0, 1: 1000.0, 4: 3000.0}, 1, 2, 4)
    assert [size.nodes for size in found.measured] == [1, 2, 4]
    four = size_of(found, 4)
    assert four.speed_up and four.efficiency and four.part
    assert (four.speed_up.likely, four.efficiency.likely) == (3.0, 75.0)
    assert four.part.seconds.likely == 20.0
    assert four.part.gpu_hours.likely == pytest.approx(32 * 20 / 3600)
    assert four.part.price.likely == pytest.approx(16 * 20 / 3600)
    assert four.source == "r4 (50 steps)"
    assert found.part.words == "an epoch of 60,000 samples"
    assert four.start_up == 70.0 and four.start_up_of == 4
    # One basis for table and recommendation, said once.
    assert scaling_words.table(found).rows[2][6:8] == ("1m30", "0.40")
    assert scaling_words.heading(found).startswith(
        "Time and billed GPU-hours are for the 60,000 samples that r2 trained; "
    )
    said = scaling_words.recommendation(found, advise_size(found, SizeGoal()))
    assert "60,000" not in said and said.startswith(
        "Take 1 node. On 1 node, the work takes 2 min 10 s, 0.14 GPU-hours. 2 nodes keep 100 % "
        "efficiency in their steps, but would save 30 s of the 2 min 10 s on 1 node for 1.5 times "
        "the price: "
    )
    assert next(scaling_words.notes(found)) == (
        "Times include start, tests and checkpoints: 1 min 10 s on 1 node, 1 min 10 s on 2 nodes, "
        "1 min 10 s on 4 nodes."
    )
    assert four.whole and four.whole.seconds.likely == pytest.approx(90.0)


def test_a_measured_size_takes_what_its_own_runs_took() -> None:
    family = [
        MeasuredRun(trained("fast", 1, ended=1064.0), training(1000.0)),
        MeasuredRun(trained("slow", 2, ended=1230.0), training(2000.0)),
    ]
    found = scaling_of(family[0].run, family, [Offer(4, 32, 16.0, 3600.0, 16.0)])
    times = [round(size.whole.seconds.middle) for size in found.sizes if size.whole]
    # Outside the steps 4 s and 200 s; a size without a run is given that of the nearest.
    assert [size.start_up for size in found.sizes] == [4.0, 200.0, 200.0]
    assert times[:2] == [64, 230] and times[2] > 200


def test_a_sizes_time_reaches_to_each_of_its_runs_and_no_deadline_one_missed_is_sure() -> None:
    family = [
        MeasuredRun(trained("fast", 1, ended=1064.0), training(1000.0)),
        MeasuredRun(trained("slow", 1, ended=1244.0), training(1000.0)),
    ]
    offers = [Offer(n, 8 * n, 4.0 * n, 3600.0, 4.0 * n) for n in (1, 2)]
    for run, took in zip(
        (family[0].run, family[1].run, trained("new", 1)), (64, 244, 154), strict=True
    ):
        found = scaling_of(run, family, offers, samples=60_000)
        one, two = (size_of(found, nodes).whole for nodes in (1, 2))
        assert one and one.seconds.likely == pytest.approx(took)
        assert one.seconds.low <= 64 and one.seconds.high >= 244
        assert two and two.seconds.high >= 184 + 30, "nor is another size's start-up surer"
        assert advise_size(found, SizeGoal(deadline=240)).certainty != "measured"
        assert advise_size(found, SizeGoal(deadline=250)).certainty == "measured"


def test_the_time_at_a_runs_size_is_what_it_took_though_its_median_speed_says_longer() -> None:
    """Where most steps are slow and some very fast, the median is below the mean."""
    family = [
        MeasuredRun(trained("odd", 1, ended=1050.0), training(1000.0)),
        MeasuredRun(trained("even", 1, ended=1070.0), training(1000.0)),
    ]
    for item, took in zip(family, (50.0, 70.0), strict=True):
        one = size_of(scaling_of(item.run, family, [Offer(1, 8, 4.0, 3600.0, 4.0)]), 1)
        assert one.whole and one.whole.seconds.likely == pytest.approx(took)
        assert one.whole.seconds.low <= 50.0 and one.whole.seconds.high >= 70.0


@pytest.mark.parametrize(("planned", "start_up"), [(120_000, 200.0), (None, 4.0)])
def test_a_run_that_was_cut_short_of_its_goal_does_not_tell_the_start_up_of_all(
    planned: int | None, start_up: float
) -> None:
    cut = replace(trained("cut", 1, ended=1064.0), state=State.CANCELLED)
    family = [
        MeasuredRun(cut, training(1000.0, planned=planned)),
        MeasuredRun(trained("whole", 1, ended=1260.0), training(1000.0)),
    ]
    found = scaling_of(cut, family, [Offer(1, 8, 4.0, 3600.0, 4.0)])
    assert [size.start_up for size in found.measured] == [start_up]


def test_a_size_between_two_measured_ones_is_given_the_start_up_of_the_larger() -> None:
    family = [
        MeasuredRun(trained("small", 1, ended=1064.0), training(1000.0)),
        MeasuredRun(trained("large", 9, ended=1230.0), training(2000.0)),
    ]
    offers = [Offer(nodes, 8 * nodes, 4.0 * nodes, 3600.0, 4.0 * nodes) for nodes in (2, 3, 4)]
    found = scaling_of(family[0].run, family, offers)
    assert [size.start_up_of for size in found.sizes] == [1, 1, 9, 9, 9]


def test_a_size_whose_steps_alone_are_efficient_is_not_called_inefficient() -> None:
    """All of 1, 2 and 4 nodes keep 97 % in their steps; the 40 s around them are paid on each."""
    family = [
        MeasuredRun(
            trained(f"r{nodes}", nodes, started=0.0, ended=40 + 60_000 / speed), training(speed)
        )
        for nodes, speed in {1: 500.0, 2: 990.0, 4: 1960.0}.items()
    ]
    offers = [Offer(n, 8 * n, 4.0 * n, 3600.0, 4.0 * n) for n in (1, 2, 4)]
    found = scaling_of(family[0].run, family, offers)
    assert advise_size(found, SizeGoal()).sentence.startswith(
        "This is the largest size at which the whole run, including start and end, has an "
        "efficiency of at least 75 %. 4 nodes keep 98 % efficiency in their steps, but would save "
    )
    (two,) = (size for size in found.sizes if size.nodes == 2)
    said = scaling_words.recommendation(found, advise_size(found, SizeGoal()))
    assert two.whole and said.startswith(
        f"Take 2 nodes. On 2 nodes, the work takes {words.length(two.whole.seconds.middle + 0.5)} ("
    )


def test_runs_that_cannot_be_compared_are_left_out_with_the_reason() -> None:
    one = trained("one", 1)
    zero = trained("zero", 2, spec=one.spec.model_copy(update={"strategy": "zero2"}))
    family = [
        MeasuredRun(one, training(1000.0)),
        MeasuredRun(zero, training(1500.0)),
        MeasuredRun(trained("alone", 2), training(1000.0, ranks=1)),
        MeasuredRun(trained("elsewhere", 2, site="leonardo"), training(9000.0)),
        MeasuredRun(trained("waits", 2, state=State.QUEUED), Training()),
    ]
    found = scaling_of(one, family, [])
    assert [size.nodes for size in found.measured] == [1]
    assert [(item.run, item.why) for item in found.left_out] == [
        ("zero", "its strategy is zero2, not ddp"),
        ("alone", "it reports only 1 rank of 16 ranks"),
        ("elsewhere", "its site is leonardo, not lumi"),
    ]


def test_a_script_of_ones_own_is_told_which_key_is_missing() -> None:
    lines = {"samples_per_s": b'{"step": 1, "loss": 2}', "step": b'{"samples_per_s": 1}'}
    for key, line in lines.items():
        point = parse_line(line)
        assert point
        found = scaling_of(RUN, [MeasuredRun(RUN, training_of([point] * 9))], [])
        assert list(scaling_words.notes(found)) == [
            f"r1 is left out: its lines in metrics.jsonl have no `{key}`."
        ]
        assert scaling_words.heading(found).startswith(
            "No run of this lineage has reported samples/s"
        )
        assert "samples_per_s" in scaling_words.heading(found)
    offered = scaling_of(RUN, [], [Offer(16, 128, 64.0, 3600.0, 64.0)])
    assert scaling_words.table(offered).rows[0][:3] == ("16", "128", "-")
    assert training_of([]).missing == ""


@pytest.mark.parametrize("state", [State.RUNNING, State.DONE])
def test_a_run_whose_patterns_find_no_speed_is_not_said_to_write_a_file(state: State) -> None:
    spec = RUN.spec.model_copy(update={"metrics": {"loss": "loss (.*)"}, "trainer": None})
    run = replace(RUN, spec=spec, state=state)
    point = parse_line(b'{"step": 1, "loss": 2}')
    assert point
    found = scaling_of(run, [MeasuredRun(run, training_of([point] * 9))], [])
    words = " ".join((scaling_words.heading(found), *scaling_words.notes(found)))
    assert "metrics.jsonl" not in words and "yet" not in words
    assert "r1 has no pattern for samples/s under `metrics:`" in words
    assert "r1 is left out: no pattern under its `metrics:` finds samples/s." in words


def test_more_than_ideal_is_called_noise_and_never_predicted() -> None:
    found = study({1: 1000.0, 2: 2200.0}, 4, 16)
    assert any("110 % of 2 nodes is more than ideal" in note for note in scaling_words.notes(found))
    for nodes in (4, 16):
        size = size_of(found, nodes)
        assert size.speed and size.speed.likely == pytest.approx(1000.0 * nodes)
        assert size.efficiency and size.efficiency.likely == pytest.approx(100.0)
        assert scaling_words.percent(size.efficiency) == "100 %"
    # A size is not predicted to be better than the largest that was measured.
    worse = study({1: 1000.0, 2: 1900.0, 4: 2000.0}, 8)
    assert size_of(worse, 8).efficiency.likely <= 50.0  # type: ignore[union-attr,operator]
    one = size_of(study({1: 1000.0}, 2), 2)
    assert scaling_words.percent(one.efficiency) == "50-100 %"


def test_what_else_differs_is_told() -> None:
    one = trained("one", 1)
    other = ("--batch-size", "16", "--lr", "0.9", "--model", "large")
    family = [
        MeasuredRun(one, training(1000.0)),
        MeasuredRun(trained("same", 2), training(1900.0)),
        MeasuredRun(trained("code", 4, snapshot="other"), training(3500.0)),
        MeasuredRun(
            trained("model", 8, spec=one.spec.model_copy(update={"args": other})), training(900.0)
        ),
    ]
    assert list(scaling_words.notes(scaling_of(one, family, [])))[1:] == [
        "code is compared although its code differs.",
        "model is compared although its arguments differ.",
    ]


def test_runs_with_the_same_code_do_not_differ_because_the_asked_run_is_left_out() -> None:
    failed = trained("failed", 2, snapshot="broken", state=State.FAILED)
    family = [
        MeasuredRun(trained("one", 1), training(1000.0)),
        MeasuredRun(trained("two", 2), training(1900.0)),
        MeasuredRun(failed, training(155.0, steps=5)),
    ]
    found = scaling_of(failed, family, [])
    assert [item.run for item in found.left_out] == ["failed"] and not found.doubts


def test_a_run_too_short_to_warm_up_counts_only_alone() -> None:
    short, one = training(1000.0, warm=False, steps=3), trained("one", 1)
    assert "within the warm-up" in scaling_of(one, [MeasuredRun(one, short)], []).sizes[0].source
    both = [MeasuredRun(one, training(1000.0)), MeasuredRun(trained("two", 1), short)]
    assert scaling_of(one, both, []).sizes[0].source == "one (50 steps)"


def test_where_more_nodes_are_slower_no_law_is_claimed_and_no_line_drawn() -> None:
    found = study({1: 34_300.0, 2: 27_500.0}, 1, 2, 4)
    words = scaling_words.basis(found)
    assert "slower: 34,300 samples/s on 1 node, 27,500 on 2." in words and "Amdahl" not in words
    four = size_of(found, 4).speed
    assert four is not None and four.likely is None and four.high < 28_000
    _, range_, measured = scaling_lines(found)
    assert range_.name == "range" and range_.points == measured.points
    assert scaling_lines(study(SPEEDS, 8))[1].name == "predicted"


def test_a_cancelled_run_of_few_steps_does_not_count_beside_one_that_is_done() -> None:
    done, cut = (trained(f"r{n}", 1, created=n) for n in (1, 2))
    cut = replace(cut, state=State.CANCELLED)
    family = [MeasuredRun(done, training(1000.0)), MeasuredRun(cut, training(1500.0, steps=20))]
    found = scaling_of(done, family, [])
    assert size_of(found, 1).source == "r1 (50 steps)"
    assert "r2 is left out: it is cancelled, with 20 of 50 steps." in scaling_words.notes(found)
    alone = scaling_of(cut, family[1:], [])
    assert size_of(alone, 1).source == "r2 (20 steps, cancelled)"


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING])
def test_a_size_that_is_under_way_is_not_asked_for(state: State) -> None:
    done, sent = trained("r1", 1), replace(trained("r2", 2, "r1"), state=state)
    family = [MeasuredRun(done, training(1000.0)), MeasuredRun(sent, Training())]
    words = scaling_words.basis(scaling_of(done, family, []))
    assert words.endswith(f"Another size is under way: r2 on 2 nodes is {state}.")
    assert "Run one more" not in words
    # Once it has steps, its size is measured, and a third one would help.
    family[1] = MeasuredRun(sent, training(1900.0))
    assert "Run a third size" in scaling_words.basis(scaling_of(done, family, []))
    family[1] = MeasuredRun(replace(sent, state=State.FAILED), Training())
    assert "Run one more" in scaling_words.basis(scaling_of(done, family, []))


def test_what_is_predicted_says_how_sure_it_is() -> None:
    one = study({1: 1000.0}, 1, 2)
    assert size_of(one, 2).speed and size_of(one, 2).speed.likely is None  # type: ignore[union-attr]
    assert "Run one more size" in scaling_words.basis(one)
    assert "Run a third size to check it" in scaling_words.basis(study({1: 1000.0, 2: 1900.0}, 4))
    assert "8 of 10" in scaling_words.basis(study(SPEEDS, 8))
    assert "With two, other sizes" in scaling_words.basis(study({1: 1000.0, 2: 1900.0}, 4))
    no_gain = replace(study({1: 1000.0, 2: 1000.0}, 4), serial_share=1.0)
    assert ": 100 % of the time on 1 node stays" in scaling_words.basis(no_gain)
    none = scaling_of(trained("r", 1), [], [])
    assert scaling_words.heading(none) == NOTHING and scaling_words.basis(none) == ""
    assert all("A bundled trainer" in text for text in (NOTHING, NO_METRICS))


@pytest.mark.parametrize(
    ("goal", "nodes", "certainty"),
    [
        (SizeGoal(), 4, "measured"),
        (SizeGoal(deadline=200), 1, "measured"),
        (SizeGoal(deadline=60.3), 2, "measured"),  # a surer size before a cheaper one
        (SizeGoal(deadline=35), 2, "measured"),
        (SizeGoal(deadline=14), 8, "sure"),
        (SizeGoal(deadline=12), 8, "likely"),
        (SizeGoal(deadline=1), None, "none"),
        (SizeGoal(budget=0.0001), None, "none"),
        (SizeGoal(deadline=35, budget=0.02), None, "none"),
    ],
)
def test_a_size_is_recommended_for_a_goal(
    goal: SizeGoal, nodes: int | None, certainty: str
) -> None:
    found = study({1: 1000.0, 2: 1900.0, 4: 3200.0}, 8)
    found = replace(found, sizes=tuple(_without_start(size) for size in found.sizes))
    advice = advise_size(found, goal)
    assert (advice.nodes, advice.certainty) == (nodes, certainty)
    assert scaling_words.recommendation(found, advice)


def _without_start(size: ScalingSize) -> ScalingSize:
    return replace(size, whole=size.part)


def test_a_predicted_number_carries_its_sign() -> None:
    found = study({1: 1000.0, 2: 1900.0, 4: 3500.0}, 8)
    *measured, predicted = scaling_words.table(found).rows
    assert [cell[:1] for cell in predicted[4:8:2]] == ["~", "~"] and predicted[7][:1] == "~"
    assert "~" not in str(measured)
    *sent, rung = rungs.rungs_of(found)
    assert rung.cells[2][:1] == rung.cells[4][:1] == "~" and "~" not in str(sent)


def test_nothing_is_recommended_that_nobody_knows() -> None:
    found = study({1: 1000.0, 2: 1980.0}, 4, 8)
    found = replace(found, sizes=tuple(_without_start(size) for size in found.sizes))
    advice = advise_size(found, SizeGoal())
    assert (advice.nodes, advice.certainty) == (2, "measured")
    assert (
        "lumitui cannot tell whether larger sizes reach 75 %: it predicts 25 to 100 %."
        in advice.sentence
    )
    assert scaling_words.table(found).rows[3][5] == "25-100 %"


def test_a_size_of_another_partition_is_named_and_not_recommended_by_itself() -> None:
    moved = Offer(4, 32, 16.0, 3600.0, 16.0, "whole-nodes", idle=6)
    family = [MeasuredRun(trained(f"r{n}", n), training(1000.0 * n)) for n in (1, 2, 4)]
    found = scaling_of(family[0].run, family, [moved])
    found = replace(found, sizes=tuple(_without_start(size) for size in found.sizes))
    assert advise_size(found, SizeGoal()).nodes == 2
    said = "On 4 nodes, the job moves to whole-nodes, where 6 GPUs of each node stay idle"
    assert any(note.startswith(said) for note in scaling_words.notes(found))
    chosen = scaling_words.recommendation(found, advise_size(found, SizeGoal(deadline=16)))
    assert chosen.startswith("Take 4 nodes.") and "The job moves to whole-nodes, where" in chosen


def test_one_size_keeps_to_a_deadline_at_best() -> None:
    found = study({1: 1000.0}, 2)
    found = replace(found, sizes=tuple(_without_start(size) for size in found.sizes))
    assert advise_size(found, SizeGoal(deadline=40)).certainty == "at best"


def test_an_advice_names_the_deadline_and_the_budget_given() -> None:
    """`--deadline 10` are minutes, as in Slurm."""
    found = study({1: 1000.0}, 1)
    both = advise_size(found, SizeGoal(seconds_in("10"), 5.0))
    assert both.sentence.endswith("almost certain to stay within 10 min and 5 GPU-hours.")
    none = advise_size(found, SizeGoal(deadline=30.0))
    assert none.sentence.startswith("No size up to 1 node stays within 30 s. Allow more time")
    cheap = advise_size(found, SizeGoal(budget=0.001))
    assert "stays within 0.001 GPU-hours. Train fewer" in cheap.sentence


def test_a_budget_alone_buys_the_fastest() -> None:
    found = study({1: 1000.0, 2: 1900.0, 4: 3200.0}, 8)
    most = size_of(found, 2).whole
    assert most is not None
    assert advise_size(found, SizeGoal(budget=most.price.high)).nodes == 2


def test_times_and_shares_are_written_as_people_read_them() -> None:
    times = [scaling_words.time_text(seconds) for seconds in (0.5, 46.2, 106, 599.7, 4000)]
    assert times == ["0.5s", "46s", "1m46", "10m", "1h06"]
    assert [scaling_words.length(seconds) for seconds in (3, 60, 106, 7200)] == [
        "3 s", "1 min", "1 min 46 s", "2 h 00 min"
    ]  # fmt: skip
    shares = [scaling_words.percent(Estimate(*each)) for each in ((90, 98, 94), (49, 100, None))]
    assert shares == ["94 %", "49-100 %"]
    assert scaling_words.percent(Estimate(100, 6400, None)) == "100+ %"


def test_lengths_of_time_are_read_as_people_write_them() -> None:
    assert [seconds_in(text) for text in ("6h", "90m", "1.5d", "06:00:00", "30")] == [
        21600, 5400, 129600, 21600, 1800
    ]  # fmt: skip
    for text in ("", "six", "-1h", "1e9h", "nan"):
        with pytest.raises(InputError, match="not a duration"):
            seconds_in(text)


_trainings = st.builds(
    training,
    st.floats(1e-9, 1e15),
    samples=st.none() | st.integers(1, 10**12),
    epoch=st.none() | st.integers(1, 10**12),
)


@given(st.dictionaries(st.integers(1, 1024), _trainings, max_size=4), st.floats(0, 1e9))
def test_any_lineage_gives_finite_numbers_and_words(
    trainings: dict[int, Training], limit: float
) -> None:
    family = [MeasuredRun(trained(f"r{n}<&", n), item) for n, item in trainings.items()]
    run = family[0].run if family else trained("none", 1)
    found = scaling_of(run, family, [Offer(n, 8 * n, 4.0, 60.0, 1.0) for n in (1, 16, 1024)])
    advice = advise_size(found, SizeGoal(deadline=limit))
    assert _finite(as_data(found)) and scaling_words.recommendation(found, advice)
    shown = scaling_words.table(found)
    assert {len(row) for row in shown.rows} <= {len(shown.titles)}


def _finite(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, list):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def test_a_budget_that_a_faster_size_may_exceed_names_that_size() -> None:
    found = study({1: 1000.0, 2: 1900.0, 4: 3500.0}, 1, 2, 4, 8)
    cost = size_of(found, 8).whole
    assert cost and cost.price.likely
    advice = advise_size(found, SizeGoal(budget=(cost.price.likely + cost.price.high) / 2))
    assert re.match(
        r"It is the fastest size that is almost certain to stay within 0\.\d+ GPU-hours\. "
        r"8 nodes may exceed it: the prediction is 0\.",
        advice.sentence,
    )
    advice = advise_size(found, SizeGoal(budget=cost.price.high * 1.01))
    assert advice.nodes == 8 and "exceed" not in advice.sentence
