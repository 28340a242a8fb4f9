"""The time and price of a resubmission are those of the job that is sent."""

import json
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from lumitui.app.cli import confirmation
from lumitui.app.cli.confirmation import agree_to_resubmit
from lumitui.app.cli.output import Reply
from lumitui.app.cli.series_verbs import resubmit_ladder
from lumitui.app.explain.words import price
from lumitui.app.history.run import AttemptRecord, Run
from lumitui.app.job.fields.mapping_fields import BatchRule, Scale
from lumitui.app.runs import InputError, Runs
from lumitui.app.scale.resubmission import CodeNews
from lumitui.app.scale.run_plan import CodeChoice, launch_of
from lumitui.app.scale.scaling import rungs
from lumitui.app.scale.scaling.measured import Training
from lumitui.app.scale.scaling.sent_work import work_ratio
from lumitui.app.scale.scaling.studies import ScalingQuestion
from lumitui.app.scale.scaling.study import Scaling
from lumitui.app.scale.series_words import ladder_terms
from lumitui.remote.site.states import State
from tests.support.jobs.trained_runs import lines_of, size_of, trained

SENT = ScalingQuestion(as_sent=True)


def trains(runs: Runs, *args: str, **changes: Any) -> Run:
    """Put a run of 20 steps on one node into history, and one on two nodes."""
    made = []
    for nodes in (1, 2):
        run = trained(f"r{nodes}", nodes, "r1" if nodes > 1 else None, snapshot="0123456789abcdef")
        spec = run.spec.model_copy(update={"args": (*run.spec.args, *args)})
        run = replace(run, spec=spec, **changes)
        runs.history.begin(run)
        lines = lines_of([1000.0 * nodes] * 20, 8 * nodes, 256 * nodes, 60_000)
        runs.history.metrics.add(run.id, lines)
        made.append(runs.history.get(run.id))
    return made[0]


def samples(found: Scaling, nodes: int) -> float:
    """Return the samples that the time of a size is for."""
    size = size_of(found, nodes)
    assert size.whole and size.speed
    return (size.whole.seconds.middle - (size.start_up or 0.0)) * size.speed.middle


def last(found: Scaling) -> list[str]:
    """Return the last cell of the sizes 1 and 2."""
    return [rung.cells[-1] for rung in rungs.rungs_of(found)][:2]


def test_fixed_steps_train_more_samples_with_a_larger_global_batch(runs: Runs) -> None:
    trains(runs, "--steps", "20")
    asked = runs.scaling.of("r1")
    assert [round(samples(asked, n)) for n in (1, 2)] == [5120, 5120], (
        "a study compares the same samples"
    )
    assert last(asked) == ["measured", "from its speed"]
    found = runs.scaling.of("r1", SENT)
    assert [round(samples(found, n)) for n in (1, 2)] == [5120, 10240]
    assert last(found) == ["measured", "measured"], "the run on two nodes had 20 steps"
    assert rungs.basis(found).startswith("Time and price are for the samples that each job trains.")


def test_other_lengths_are_known_and_other_arguments_are_not(runs: Runs) -> None:
    trains(runs, "--steps", "20")
    longer = runs.scaling.of("r1", replace(SENT, settings=("--steps=60",)))
    assert round(samples(longer, 1)) == 15360 and last(longer)[0] == "from its speed"
    wider = runs.scaling.of("r1", replace(SENT, settings=("--hidden=99", "env.A=b")))
    assert rungs.basis(wider) == (
        "Time and price are unknown, because this resubmission changes `args` and `env`."
    )
    time, _, price = rungs.rungs_of(wider)[0].cells[2:5]
    assert time == "-" and price.startswith("at most ")
    assert "changes `args`." in rungs.basis(
        runs.scaling.of("r1", replace(SENT, settings=("--batch-size=64",)))
    )
    coded = runs.scaling.of("r1", replace(SENT, other_code=True))
    assert "changes the code." in rungs.basis(coded)
    same = replace(SENT, settings=("time=01:00:00", "--lr=0.5"))
    assert last(runs.scaling.of("r1", same)) == ["measured", "measured"]


def test_epochs_keep_the_samples(runs: Runs) -> None:
    trains(runs, "--epochs", "2")
    found = runs.scaling.of("r1", SENT)
    assert round(samples(found, 2)) == 5120
    doubled = runs.scaling.of("r1", replace(SENT, settings=("--epochs=4",)))
    assert [round(samples(doubled, n)) for n in (1, 2)] == [10240, 10240]


def test_steps_count_where_a_run_reports_no_epochs_and_from_the_programs_default(
    runs: Runs,
) -> None:
    run = trains(runs)
    training = Training(samples=5120, global_batch=256)
    for nodes, steps, ratio in ((2, "20", 2), (1, "60", 3), (2, "60", 6)):
        planned = runs.plan_resubmission(
            "r1", nodes=nodes, settings=(f"--steps={steps}",), start="scratch"
        )
        launch = planned.preview.launch
        assert work_ratio(run, training, launch, {"--steps": "20"}) == ratio
        assert work_ratio(run, training, launch, {}) is None, "the run's own steps are unknown"


@pytest.mark.parametrize("why", ["checkpoint", "cancelled", "no steps before"])
def test_an_unknown_number_of_samples_is_not_called_measured(runs: Runs, why: str) -> None:
    trains(runs, state=State.CANCELLED if why == "cancelled" else State.DONE)
    settings = ("--steps=9",) if why == "no steps before" else ()
    question = replace(SENT, settings=settings, resumes=why == "checkpoint")
    found = runs.scaling.of("r1", question)
    assert last(found) == ["from its speed"] * 2
    assert "; lumitui does not know how many a job will train." in rungs.basis(found)


def test_the_confirmation_shows_the_price_of_the_row(runs: Runs) -> None:
    trains(runs, "--steps", "20")
    for nodes, other in ((1, False), (2, True)):
        planned = runs.plan_resubmission("r1", nodes=nodes, code="same", start="scratch")
        outlook = runs.resubmission_outlook(planned, CodeNews())
        row = rungs.rungs_of(runs.scaling.of("r1", SENT))[nodes - 1]
        assert (outlook.about, outlook.like, outlook.other_size) == (row.cells[4], "r1", other)
        assert outlook.takes == "1 min 40 s"
    late = runs.plan_resubmission("r1", nodes=1, settings=("time=00:01:00",), start="scratch")
    outlook = runs.resubmission_outlook(late, CodeNews())
    assert (outlook.about, outlook.takes) == ("", "1 min 40 s")
    changed = runs.plan_resubmission("r1", nodes=1, settings=("--hidden=99",), start="scratch")
    assert not runs.resubmission_outlook(changed, CodeNews()).about
    current = runs.plan_resubmission("r1", nodes=1, code="current", start="scratch")
    assert runs.resubmission_outlook(current, CodeNews()).about
    assert not runs.resubmission_outlook(current, CodeNews(differs=True)).about
    assert runs.resubmission_outlook(planned, CodeNews(differs=True)).about, "it has the old code"
    resumed = replace(planned, plan=replace(planned.plan, start="checkpoint"))
    assert not runs.resubmission_outlook(resumed, CodeNews()).about, "how much is left is unknown"


def test_a_ladder_shows_the_rows_of_the_dialog(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    trains(runs, "--steps", "20")
    plans = [runs.plan_resubmission("r1", nodes=nodes, start="scratch") for nodes in (1, 2)]
    with pytest.raises(InputError, match="confirmation"):
        resubmit_ladder(Reply(json=False), runs, plans, 120, yes=False)
    said = capsys.readouterr().err
    for rung in rungs.rungs_of(runs.scaling.of("r1", SENT))[:2]:
        assert " ".join(rung.cells) in " ".join(said.split())
    assert "the samples that each job trains" in " ".join(said.split())
    study = runs.resubmission_study(plans, CodeNews())
    assert ", about " in dict(ladder_terms(plans, study))["in all"]
    plans[1] = runs.plan_resubmission("r1", nodes=3, start="scratch")
    terms = dict(ladder_terms(plans, study))
    assert ", about " in terms["1 node"] and ", about " not in terms["in all"], "not of a part"


@pytest.mark.parametrize(
    ("code", "words"), [("same", "the code that ran"), ("current", "your current code")]
)
def test_the_question_names_the_code_and_the_price(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, code: CodeChoice, words: str
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(confirmation, "agreed", lambda _, question, **__: asked.append(question))
    trains(runs)
    planned = runs.plan_resubmission("r1", nodes=1, code=code, start="scratch")
    agree_to_resubmit(planned, CodeNews(), 80, "the price", yes=False, force=False)
    assert asked[0].startswith(f"Resubmit r1 with {words} from scratch; the price")


def test_an_argument_set_to_its_old_value_stays(runs: Runs) -> None:
    trains(runs, "--steps", "20", "--accumulate", "1")
    settings = ("scale.batch.keep=global", "--batch-size=32")
    planned = runs.plan_resubmission("r1", nodes=2, settings=settings, start="scratch")
    assert planned.plan.launch.global_batch == 512
    found = runs.resubmission_study((planned,), CodeNews())
    assert round(samples(found, 2)) == 10240


@pytest.mark.parametrize(("before", "after"), [("2.0", "4.0"), ("2e0", "4e0")])
def test_a_length_may_be_no_whole_number(runs: Runs, before: str, after: str) -> None:
    trains(runs, "--epochs", before)
    found = runs.scaling.of("r1", replace(SENT, settings=(f"--epochs={after}",)))
    assert round(samples(found, 1)) == 10240


def test_a_length_that_is_no_number_is_unknown(runs: Runs) -> None:
    trains(runs, "--epochs", "2k")
    assert last(runs.scaling.of("r1", SENT))[0] == "measured"
    found = runs.scaling.of("r1", replace(SENT, settings=("--epochs=4k",)))
    assert last(found) == ["from its speed"] * 2
    assert "; lumitui does not know how many a job will train." in rungs.basis(found)


def test_a_fixed_length_of_epochs_trains_more_samples_with_a_larger_batch(runs: Runs) -> None:
    trains(runs, "--epochs", "2", "--steps-per-epoch", "10")
    found = runs.scaling.of("r1", SENT)
    assert [round(samples(found, n)) for n in (1, 2)] == [5120, 10240]


def test_a_batch_that_is_named_only_now_is_compared_with_itself(runs: Runs) -> None:
    run = trains(runs, "--steps", "20", "--accumulate", "3")
    spec = run.spec.model_copy(update={"scale": None, "trainer": None, "script": "train.py"})
    run = replace(run, spec=spec, global_batch=None)
    named = spec.model_copy(update={"scale": Scale(batch=BatchRule(arg="--batch-size"))})
    launch = replace(launch_of(run), spec=named, global_batch=256)
    assert work_ratio(run, Training(samples=15360, global_batch=768), launch, {}) == 1


def test_runs_on_as_many_nodes_with_other_gpus_are_not_offered(runs: Runs) -> None:
    trains(runs, "--steps", "20")
    run = trained("r3", 1, "r1")
    spec = run.spec.model_copy(update={"gpus_per_node": 4, "partition": "small-g"})
    layout = replace(run.layout, gpus_per_node=4, ranks_per_node=4)
    runs.history.begin(replace(run, spec=spec, layout=layout))
    runs.history.metrics.add("r3", lines_of([500.0] * 20, 4, 128, 60_000))
    for run_id, gpus in (("r1", 8), ("r3", 4)):
        found = runs.scaling.of(run_id, SENT)
        assert rungs.rungs_of(found)[0].cells[:2] == ("1", str(gpus))
        assert len({rung.nodes for rung in rungs.rungs_of(found)}) == len(rungs.rungs_of(found))
        planned = runs.plan_resubmission(run_id, nodes=1, code="current", start="scratch")
        size = next(one for one in found.sizes if (one.nodes, one.gpus) == (1, gpus))
        outlook = rungs.outlook_of(found, runs.history.get(run_id), planned.plan.launch)
        assert size.whole and outlook.about == price(size.whole.price.middle)


def test_the_start_up_of_a_measured_size_is_its_own(runs: Runs) -> None:
    trains(runs, "--steps", "20")
    run = trained("r3", 1, "r1", ended=1050.0, updated=1050.0)
    layout = replace(run.layout, gpus_per_node=16)
    runs.history.begin(replace(run, spec=runs.history.get("r1").spec, layout=layout))
    runs.history.metrics.add("r3", lines_of([2000.0] * 20, 8, 256, 60_000))
    assert size_of(runs.scaling.of("r1", SENT), 2).start_up == pytest.approx(100 - 5.12)


def test_a_measured_size_has_the_work_of_its_job(runs: Runs) -> None:
    trains(runs, "--steps", "20")
    run = trained("r3", 3, "r1")
    runs.history.begin(run)
    runs.history.metrics.add("r3", lines_of([3000.0] * 20, 24, 768, 60_000))
    assert round(samples(runs.scaling.of("r1", SENT), 3)) == 15360


def test_runs_with_other_arguments_do_not_tell_the_speed(runs: Runs) -> None:
    first = trains(runs, "--steps", "20")
    for number, option in enumerate((("--hidden", "99"), ("--batch-size", "64"))):
        other = trained(f"other{number}", 1, "r1")
        spec = first.spec.model_copy(update={"args": (*first.spec.args, *option)})
        runs.history.begin(replace(other, spec=spec))
        lines = lines_of([400.0] * 20, 8, 256, 60_000)
        runs.history.metrics.add(other.id, lines)
    one, two = (size_of(runs.scaling.of("r1", SENT), nodes).speed for nodes in (1, 2))
    assert one and two and (one.middle, two.middle) == (1000, 2000)


def test_the_time_of_a_chain_is_that_of_all_its_attempts(runs: Runs) -> None:
    attempts = tuple(
        AttemptRecord(number, "8", "nid005001", 1000.0, 1040.0, end=end)
        for number, end in ((1, "requeue"), (2, "requeue"), (3, "done"))
    )
    trains(runs, "--steps", "20", attempt=3, attempts=attempts)
    size = size_of(runs.scaling.of("r1", SENT), 1)
    assert size.whole and size.whole.seconds.middle == pytest.approx(120)


def test_a_run_that_had_no_time_for_its_steps_at_its_speed_is_left_out(runs: Runs) -> None:
    run = trained("r1", 1)
    runs.history.begin(run)
    runs.history.metrics.add("r1", lines_of([12.5] * 20, 8, 256, 60_000))  # steps/s, say
    found = runs.scaling.of("r1", SENT)
    assert not found.measured
    assert "r1 is left out: its 5,120 samples at 12.5 samples/s take longer than it ran." in (
        rungs.basis(found)
    )


def test_steps_counted_from_each_epoch_do_not_tell_the_samples(runs: Runs) -> None:
    run = trained("r1", 1)
    runs.history.begin(run)
    start = {"event": "start", "world_size": 8, "global_batch": 256}
    steps = [
        {"step": step, "epoch": epoch, "loss": 1.0, "samples_per_s": 2560.0, "seconds": at / 10}
        for at, (epoch, step) in enumerate(product(range(1, 5), range(1, 21)), 1)
    ]
    lines = [json.dumps(line).encode() for line in (start, *steps)]
    runs.history.metrics.add("r1", lines)
    assert runs.scaling.of("r1", SENT).whole.samples == pytest.approx(80 * 256, rel=0.05)
