"""DeepSpeed's batch beside the script's own argument, at the first launch, and its schedules."""

import json

import pytest

from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import JobSpec, changed, parse_job
from lumitui.app.job.strategies import STRATEGIES
from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.compose import compose
from lumitui.app.launch.deepspeed_batch import (
    ACCUMULATION,
    MICRO,
    TRAIN,
    batch_of,
    fitting_worlds,
    sent_config,
    with_strategy,
)
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.sites.rescaled_jobs import Scaled, rescale

LUMI = Sites([BUILT_IN]).load("lumi")
KEEP = "scale: {batch: {arg: --batch-size, keep: global}}\n"
GROW = "scale: {batch: {arg: --batch-size, keep: per_gpu}, lr: {rule: linear}}\n"


def job(scale: str, *args: str) -> JobSpec:
    return parse_job(
        "name: t\nsite: lumi\naccount: project_462000001\npartition: standard-g\n"
        f"time: '01:00:00'\nscript: t.py\ndeepspeed: {{config: ds.json}}\nargs: {[*args]}\n{scale}",
        "t",
    )


def config(**fields: object) -> str:
    optimizer = {"type": "Adam", "params": {"lr": 0.001}}
    return json.dumps({TRAIN: 64, "optimizer": optimizer, **fields})


def launched(scale: str, *args: str, text: str = "") -> Launch:
    return compose(job(scale, *args), LUMI, deepspeed_config=text or config())


def scaled(first: Launch, nodes: int | None = None, *settings: str) -> Scaled:
    text = json.dumps(sent_config(first))
    return rescale(first, LUMI, nodes=nodes, settings=settings, deepspeed_config=text)


def fields(launch: Launch) -> tuple[object, ...]:
    found = sent_config(launch)
    return found[TRAIN], found[MICRO], found[ACCUMULATION]


# -- the script's argument is the micro batch


@pytest.mark.parametrize(
    ("scale", "args", "reported"),
    [
        (KEEP, ("--batch-size", "8"), False),
        (KEEP, ("--batch-size=16",), True),
        (KEEP, ("--batch-size", "many"), True),
        (KEEP, (), False),
        ("", ("--batch-size", "16"), False),
    ],
)
def test_two_sizes_for_one_batch_are_found_before_the_first_launch(
    scale: str, args: tuple[str, ...], reported: bool
) -> None:
    # 64 samples over 8 ranks.
    found = {item.rule: item for item in findings(launched(scale, *args), LUMI)}
    assert ("two-micro-batches" in found) == reported
    if reported:
        assert "micro batch is 8" in found["two-micro-batches"].message
        assert "batch of 64" in found["two-micro-batches"].message


@pytest.mark.parametrize(("zero", "differs"), [(3, True), (2, False), (None, False)])
def test_another_zero_stage_than_the_strategys_is_found(zero: int | None, differs: bool) -> None:
    text = config(**({"zero_optimization": {"stage": zero}} if zero else {}))
    spec = changed(job(""), {"strategy": "zero2"}, "t")
    launch = compose(spec, LUMI, deepspeed_config=text)
    found = {item.rule: item.severity for item in findings(launch, LUMI)}
    assert found.get("zero-stage") == ("warning" if differs else None)


def test_the_scripts_argument_stays_deepspeeds_micro_batch() -> None:
    up = scaled(launched(KEEP, "--batch-size", "8"), 4)
    assert fields(up.launch) == (64, 2, 1)
    assert up.launch.spec.args == ("--batch-size", "2")
    assert ("global batch", "64", "64") in [(c.what, c.before, c.after) for c in up.changes]
    assert (MICRO, "8", "2") in [(c.what, c.before, c.after) for c in up.changes]
    assert len(up.notes) == 0
    grown = scaled(launched(GROW, "--batch-size=8"), 4)
    assert (fields(grown.launch), grown.launch.spec.args) == ((256, 8, 1), ("--batch-size=8",))
    assert scaled(launched(KEEP), 4).launch.spec.args == ("--batch-size", "2")


@pytest.mark.parametrize(
    ("nodes", "batch", "rate"), [(None, (128, 16, 1), 0.002), (2, (256, 16, 1), 0.004)]
)
def test_an_argument_set_by_hand_is_the_micro_batch(
    nodes: int | None, batch: tuple[int, int, int], rate: float
) -> None:
    up = scaled(launched(GROW, "--batch-size", "8"), nodes, "--batch-size=16")
    assert (fields(up.launch), up.launch.global_batch) == (batch, batch[0])
    assert up.launch.spec.args == ("--batch-size", "16")
    assert "learning rate" in [c.what for c in up.changes if c.differs]
    optimizer = sent_config(up.launch)["optimizer"]
    assert isinstance(optimizer, dict) and optimizer["params"]["lr"] == rate


def test_a_micro_batch_set_by_hand_keeps_its_accumulation() -> None:
    first = launched(KEEP, "--batch-size", "4", text=config(**{MICRO: 4}))
    assert fields(first) == (64, 4, 2)
    assert fields(scaled(first, None, "--batch-size=2").launch) == (32, 2, 2)
    # Typed, it stays, also at its old value.
    assert fields(scaled(first, 2, "--batch-size=4").launch) == (128, 4, 2)


def test_a_rate_that_is_an_argument_follows_it_too() -> None:
    scale = "scale: {batch: {arg: -b, keep: per_gpu}, lr: {arg: --lr, rule: linear}}\n"
    first = launched(scale, "-b", "8", "--lr", "0.1", text=json.dumps({TRAIN: 64}))
    assert scaled(first, None, "-b=16").launch.spec.args == ("-b", "16", "--lr", "0.2")


def test_an_argument_that_differs_from_the_micro_batch_is_noted() -> None:
    first = launched(KEEP, "--batch-size", "32")
    same = scaled(first)
    assert same.launch.spec.args == ("--batch-size", "32")
    assert "--batch-size was 32, but DeepSpeed's micro batch was 8" in same.notes[0]
    assert scaled(first, 2).launch.spec.args == ("--batch-size", "4")
    with pytest.raises(InputError, match="'many', not a number of samples"):
        scaled(first, None, "--batch-size=many")


# -- the first launch


@pytest.mark.parametrize(
    ("written", "ranks", "batch"),
    [
        ((64, 4, 2), 2, (64, 4, 8)),
        ((64, 4, 2), 16, (64, 4, 1)),
        ((64, 4, 2), 32, (64, 2, 1)),
        ((96, 4, 3), 4, (96, 4, 6)),
        ((96, 5, 2), 8, (96, 4, 3)),
        ((64, None, 3), 2, (64, 8, 4)),
        ((64, 4, None), 32, (64, 2, 1)),
    ],
)
def test_the_micro_batch_never_grows_at_the_first_launch(
    written: tuple[int, int | None, int | None], ranks: int, batch: tuple[int, int, int]
) -> None:
    config = dict(zip((TRAIN, MICRO, ACCUMULATION), written, strict=True))
    found = batch_of({name: value for name, value in config.items() if value}, ranks, 1)
    assert (found.train, found.micro, found.accumulation) == batch


def test_a_hint_for_a_resubmission_comes_at_a_resubmission_alone() -> None:
    with pytest.raises(InputError) as first:
        compose(job("nodes: 8\n"), LUMI, deepspeed_config=config(**{TRAIN: 32}))
    assert "4 nodes" in first.value.hint and "per_gpu" not in first.value.hint
    with pytest.raises(InputError) as again:
        scaled(launched("", text=config(**{TRAIN: 32})), 8)
    assert "per_gpu" in again.value.hint


# -- schedules


def test_a_schedules_lengths_are_noted_when_the_batch_changes() -> None:
    steps = {"total_num_steps": 10000, "warmup_num_steps": 1000, "warmup_max_lr": 0.001}
    text = config(scheduler={"type": "WarmupDecayLR", "params": steps})
    first = launched(GROW.replace("arg: --batch-size, ", ""), text=text)
    (note,) = scaled(first, 4).notes
    assert "keeps the schedule's total_num_steps=10000 and warmup_num_steps=1000, but" in note
    assert "0.25 times as many steps" in note and "divide these step counts by 4" in note
    assert not scaled(first).notes


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        ({TRAIN: 32}, (32, 4, 1)),
        ({MICRO: 3}, (24, 3, 1)),
        ({TRAIN: 64, MICRO: 2}, (64, 2, 4)),
        ({TRAIN: 64, ACCUMULATION: 2}, (64, 4, 2)),
        ({MICRO: 2, ACCUMULATION: 3}, (48, 2, 3)),
    ],
)
def test_batch_fields_are_derived_as_deepspeed_does(
    config: dict[str, object], fields: tuple[int, int, int]
) -> None:
    batch = batch_of(config, 8, 1)
    assert (batch.train, batch.micro, batch.accumulation) == fields


def test_fitting_node_counts_are_the_nearest() -> None:
    assert fitting_worlds(96, 8, 5) == [4, 6]
    assert fitting_worlds(32, 8, 8) == [4]


def test_an_offloaded_stage_says_what_the_memory_of_the_nodes_holds() -> None:
    optimizer = {"type": "Adam", "params": {"lr": 0.1, "torch_adam": True}}
    config: dict[str, object] = {"optimizer": optimizer, "zero_optimization": {"stage": 1, "x": 2}}
    there = {"device": "cpu", "pin_memory": True}
    found = {name: with_strategy(config, row) for name, row in STRATEGIES.items() if row.zero_stage}
    assert found["zero2"] == config | {"zero_optimization": {"stage": 2, "x": 2}}
    for stage in (1, 2, 3):
        zero = {"stage": stage, "x": 2, "offload_optimizer": there}
        if stage == 3:
            zero["offload_param"] = there
        # PyTorch's Adam would step at a fifth of the speed of DeepSpeed's there.
        own = {"type": "Adam", "params": {"lr": 0.1}}
        assert found[f"zero{stage}-offload"] == {"optimizer": own, "zero_optimization": zero}
    assert with_strategy({}, STRATEGIES["zero1-offload"])["zero_optimization"] == {
        "stage": 1,
        "offload_optimizer": there,
    }
