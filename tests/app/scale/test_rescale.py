"""Resubmission at other node counts: everything that follows is recomputed."""

import json
from typing import Any

import pytest

from lumitui.app.compose.deepspeed_batch import (
    ACCUMULATION,
    MICRO,
    TRAIN,
    batch_of,
    fitting_worlds,
    sent_text,
)
from lumitui.app.compose.launch import compose
from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import JobSpec, changed, parse_job
from lumitui.app.scale.rescale import apply_settings, rescale
from lumitui.remote.errors import InputError
from lumitui.remote.site.sites import BUILT_IN, Sites

LUMI = Sites([BUILT_IN]).load("lumi")
DDP = parse_job(
    "name: t\nsite: lumi\naccount: project_462000001\npartition: standard-g\ntime: '01:00:00'\n"
    "trainer: ddp\nargs: [--batch-size, 32, --lr, 0.01]\n",
    "t",
)
CONFIG = '{"train_batch_size": 32, "optimizer": {"type": "Adam", "params": {"lr": 0.001}},}'


def launched(spec: JobSpec, config: str | None = None) -> Launch:
    return compose(spec, LUMI, deepspeed_config=config)


def job(**changes: object) -> JobSpec:
    return changed(DDP, changes, "t")


def zero(**changes: object) -> JobSpec:
    return job(**({"trainer": "deepspeed_zero", "strategy": "zero1", "args": []} | changes))


def test_without_a_rule_batch_and_rate_stay_and_it_is_said() -> None:
    scaled = rescale(launched(DDP), LUMI, nodes=2)
    assert scaled.launch.spec.args == ("--batch-size", "16", "--lr", "0.01")
    assert scaled.launch.global_batch == 256
    assert any("stay" in note for note in scaled.notes)


@pytest.mark.parametrize(
    ("scale", "args"),
    [
        ({"batch": {"keep": "per_gpu"}}, ("32", "0.01")),
        ({"batch": {"keep": "per_gpu"}, "lr": {"rule": "linear"}}, ("32", "0.04")),
        ({"batch": {"keep": "per_gpu"}, "lr": {"rule": "sqrt"}}, ("32", "0.02")),
        ({"batch": {"keep": "global"}, "lr": {"rule": "linear"}}, ("8", "0.01")),
    ],
)
def test_batch_and_rate_follow_their_rules(scale: dict[str, object], args: tuple[str, str]) -> None:
    scaled = rescale(launched(job(scale=scale)), LUMI, nodes=4)
    assert (scaled.launch.spec.args[1], scaled.launch.spec.args[3]) == args


def test_there_and_back_is_the_same_job() -> None:
    spec = job(scale={"batch": {"keep": "per_gpu"}, "lr": {"rule": "linear"}})
    up = rescale(launched(spec), LUMI, nodes=4).launch
    down = rescale(up, LUMI, nodes=1).launch
    assert down.spec == spec
    assert down.script == launched(spec).script


def test_an_indivisible_batch_names_the_nearest_node_counts() -> None:
    with pytest.raises(InputError) as caught:
        rescale(launched(job(args=["--batch-size", "12", "--lr", "0.1"])), LUMI, nodes=5)
    assert "96" in caught.value.message
    assert "4 nodes or 6 nodes" in caught.value.hint


def test_the_partition_changes_when_its_limit_is_passed() -> None:
    spec = job(partition="small-g", nodes=4)
    scaled = rescale(launched(spec), LUMI, nodes=8)
    assert scaled.launch.spec.partition == "standard-g"
    assert len(scaled.launch.layout.masks) == 8
    assert any("moves to standard-g" in note for note in scaled.notes)


def test_time_never_shrinks_by_itself() -> None:
    assert rescale(launched(DDP), LUMI, nodes=8).launch.spec.time == "01:00:00"


def test_the_table_shows_what_changes_and_what_is_billed() -> None:
    rows = {row.what: row for row in rescale(launched(DDP), LUMI, nodes=2).changes}
    assert (rows["ranks"].before, rows["ranks"].after) == ("8", "16")
    assert (rows["billed at most"].before, rows["billed at most"].after) == (
        "4 GPU-hours",
        "8 GPU-hours",
    )
    assert not rows["time limit"].differs


@pytest.mark.parametrize(
    ("keep", "nodes", "fields"),
    [("global", 2, (32, 2, 1)), ("per_gpu", 2, (64, 4, 1)), ("global", 4, (32, 1, 1))],
)
def test_deepspeeds_batch_fields_are_recomputed(
    keep: str, nodes: int, fields: tuple[int, int, int]
) -> None:
    spec = zero(scale={"batch": {"keep": keep}})
    first = launched(spec, CONFIG)
    sent = next(file.content for file in first.files if file.name == "ds_config.json")
    scaled = rescale(first, LUMI, nodes=nodes, deepspeed_config=sent)
    config = json.loads(next(f.content for f in scaled.launch.files if f.name == "ds_config.json"))
    assert (config[TRAIN], config[MICRO], config[ACCUMULATION]) == fields


def test_deepspeeds_learning_rate_follows_the_rule() -> None:
    spec = zero(scale={"batch": {"keep": "per_gpu"}, "lr": {"rule": "linear"}})
    scaled = rescale(launched(spec, CONFIG), LUMI, nodes=2, deepspeed_config=CONFIG)
    config = json.loads(next(f.content for f in scaled.launch.files if f.name == "ds_config.json"))
    assert config["optimizer"]["params"]["lr"] == 0.002


def test_the_guides_batch_of_32_does_not_fit_eight_nodes() -> None:
    # 64 ranks would get half a sample each (DeepSpeed: "Micro batch size per gpu: 0").
    with pytest.raises(InputError) as caught:
        rescale(launched(zero(), CONFIG), LUMI, nodes=8, deepspeed_config=CONFIG)
    assert "4 nodes" in caught.value.hint


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


@pytest.mark.parametrize(
    ("setting", "check"),
    [
        ("time=02:00:00", lambda spec: spec.time == "02:00:00"),
        ("env.NCCL_DEBUG=INFO", lambda spec: spec.env == {"NCCL_DEBUG": "INFO"}),
        ("--epochs=20", lambda spec: spec.args[-2:] == ("--epochs", "20")),
        ("--lr=0.5", lambda spec: spec.args == ("--batch-size", "32", "--lr", "0.5")),
        ("args=[--a, 'b c']", lambda spec: spec.args == ("--a", "b c")),
        ("scale.lr.rule=linear", lambda spec: spec.scale.lr.rule == "linear"),
    ],
)
def test_settings_change_the_job(setting: str, check: object) -> None:
    assert check(apply_settings(DDP, [setting]))  # type: ignore[operator]  # a predicate


@pytest.mark.parametrize("setting", ["time", "tiem=1", "time=10", "nodes=many", "name.x=1"])
def test_a_wrong_setting_is_said(setting: str) -> None:
    with pytest.raises(InputError):
        apply_settings(DDP, [setting])


@pytest.mark.parametrize(
    ("nodes", "fields"), [(4, (512, 8, 2)), (1, (512, 8, 8)), (2, (512, 8, 4))]
)
def test_the_micro_batch_never_grows_with_the_global_batch_kept(
    nodes: int, fields: tuple[int, int, int]
) -> None:
    config = f'{{"{TRAIN}": 512, "{MICRO}": 8, "{ACCUMULATION}": 4}}'
    first = launched(zero(nodes=2), config)
    scaled = rescale(first, LUMI, nodes=nodes, deepspeed_config=config)
    sent = json.loads(next(f.content for f in scaled.launch.files if f.name == "ds_config.json"))
    assert (sent[TRAIN], sent[MICRO], sent[ACCUMULATION]) == fields


LINEAR: dict[str, object] = {"batch": {"keep": "per_gpu"}, "lr": {"rule": "linear"}}


@pytest.mark.parametrize(
    ("keep", "nodes", "settings", "batch", "rate"),
    [
        # 8 ranks of 32 are 256 samples; the rate of 0.01 follows what becomes of them.
        ("per_gpu", 4, ["--batch-size=8"], 256, "0.01"),
        ("per_gpu", 4, ["--batch-size=16"], 512, "0.02"),
        ("global", 2, ["--batch-size=32"], 512, "0.02"),
        ("global", 2, ["--batch-size=64"], 1024, "0.04"),
        ("per_gpu", 1, ["--batch-size=64"], 512, "0.02"),
        ("per_gpu", 2, ["--batch-size=64", "--lr=0.5"], 1024, "0.5"),
    ],
)
def test_the_rate_follows_the_global_batch_set_by_hand(
    keep: str, nodes: int, settings: list[str], batch: int, rate: str
) -> None:
    scale = {"batch": {"keep": keep}, "lr": {"rule": "linear"}}
    scaled = rescale(launched(job(scale=scale)), LUMI, nodes=nodes, settings=settings)
    assert scaled.launch.global_batch == batch
    assert scaled.launch.spec.args[-1] == rate


def test_a_batch_set_by_hand_changes_no_rate_without_a_rule() -> None:
    scaled = rescale(launched(DDP), LUMI, settings=["--batch-size=64"])
    assert scaled.launch.spec.args == ("--batch-size", "64", "--lr", "0.01")
    assert not scaled.notes


def test_a_scripts_rate_follows_the_ranks_when_its_batch_is_its_own() -> None:
    script = changed(
        DDP,
        {"trainer": None, "script": "t.py", "args": ["--rate", "0.1"],
         "scale": {"batch": {"keep": "per_gpu"}, "lr": {"rule": "linear", "arg": "--rate"}}},
        "t",
    )  # fmt: skip
    assert rescale(launched(script), LUMI, nodes=2).launch.spec.args == ("--rate", "0.2")


def sent_config(launch: Launch) -> dict[str, Any]:
    text = next(file.content for file in launch.files if file.name == "ds_config.json")
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("schedule", "name", "after"),
    [
        ({"type": "WarmupLR", "params": {"warmup_max_lr": 0.001}}, "warmup_max_lr", 0.002),
        ({"type": "WarmupLR", "params": {"warmup_max_lr": "auto"}}, "warmup_max_lr", "auto"),
        ({"type": "WarmupDecayLR", "params": {"warmup_max_lr": 3e-5}}, "warmup_max_lr", 6e-5),
        ({"type": "WarmupDecayLR", "params": {"total_num_steps": 9}}, "warmup_max_lr", 0.002),
        ({"type": "WarmupDecayLR"}, "warmup_max_lr", 0.002),
        ({"type": "WarmupLR", "params": {"warmup_max_lr": [0.1, 1]}}, "warmup_max_lr", [0.2, 2]),
        ({"type": "OneCycle", "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 1}},
         "cycle_max_lr", 2.0),
        ({"type": "WarmupCosineLR", "params": {"cos_min_ratio": 0.1}}, "cos_min_ratio", 0.1),
    ],
)  # fmt: skip
def test_deepspeeds_schedule_follows_the_rule(
    schedule: dict[str, object], name: str, after: object
) -> None:
    config = json.dumps({TRAIN: 32, "optimizer": {"type": "Adam", "params": {"lr": 0.001}},
                         "scheduler": schedule})  # fmt: skip
    scaled = rescale(launched(zero(scale=LINEAR), config), LUMI, nodes=2, deepspeed_config=config)
    assert sent_config(scaled.launch)["scheduler"]["params"][name] == after
    assert sent_config(scaled.launch)["optimizer"]["params"]["lr"] == 0.002


def test_deepspeeds_rate_that_is_an_argument_follows_the_rule() -> None:
    scale = {"batch": {"keep": "per_gpu"}, "lr": {"rule": "linear", "arg": "--rate"}}
    spec = zero(trainer=None, script="t.py", args=["--rate", "0.1"], scale=scale)
    config = json.dumps({TRAIN: 32})
    first = launched(spec, config)
    scaled = rescale(first, LUMI, nodes=2, deepspeed_config=config)
    assert scaled.launch.spec.args == ("--rate", "0.2")
    by_hand = rescale(first, LUMI, nodes=2, settings=["--rate=0.7"], deepspeed_config=config)
    assert by_hand.launch.spec.args == ("--rate", "0.7")


def test_a_configuration_without_a_rate_is_told() -> None:
    config = json.dumps({TRAIN: 32, "optimizer": {"type": "Adam"}})
    first = launched(zero(scale=LINEAR), config)
    scaled = rescale(first, LUMI, nodes=2, deepspeed_config=config)
    assert any("names no learning rate" in note for note in scaled.notes)
    assert sent_config(scaled.launch)["optimizer"] == {"type": "Adam"}


def test_the_table_shows_the_learning_rate_of_arguments_and_of_deepspeed() -> None:
    def rate(earlier: Launch, config: str | None = None) -> tuple[str, str]:
        scaled = rescale(earlier, LUMI, nodes=2, deepspeed_config=config)
        row = next(row for row in scaled.changes if row.what == "learning rate")
        return row.before, row.after

    assert rate(launched(job(scale=LINEAR))) == ("0.01", "0.02")
    assert rate(launched(DDP)) == ("0.01", "0.01")
    config = json.dumps({
        TRAIN: 32,
        "optimizer": {"type": "Adam", "params": {"lr": 0.001}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.001}},
    })  # fmt: skip
    assert rate(launched(zero(scale=LINEAR), config), config) == (
        "0.001, warmup_max_lr 0.001",
        "0.002, warmup_max_lr 0.002",
    )


def test_deepspeeds_rates_go_there_and_back() -> None:
    config = json.dumps({
        TRAIN: 32,
        "optimizer": {"type": "Adam", "params": {"lr": 3e-4}},
        "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_max_lr": 3e-4}},
    })  # fmt: skip
    first = launched(zero(scale=LINEAR), config)
    up = rescale(first, LUMI, nodes=3, deepspeed_config=config)
    down = rescale(up.launch, LUMI, nodes=1, deepspeed_config=sent_text(up.launch))
    assert sent_config(down.launch) == sent_config(first)


def test_a_configuration_that_is_named_follows_whatever_the_strategy() -> None:
    spec = job(
        trainer=None,
        script="t.py",
        args=["--lr", "0.1"],
        deepspeed={"config": "ds.json"},
        scale=LINEAR,
    )
    scaled = rescale(launched(spec, CONFIG), LUMI, nodes=2, deepspeed_config=CONFIG)
    sent = sent_config(scaled.launch)
    assert (spec.strategy, sent[TRAIN], sent["optimizer"]["params"]["lr"]) == ("ddp", 64, 0.002)
    assert scaled.launch.spec.args == ("--lr", "0.1")


def test_a_rule_without_its_argument_is_told() -> None:
    spec = job(trainer=None, script="t.py", args=["--lr", "0.1"], scale=LINEAR)
    told = "`scale.lr.rule` is linear, but no `lr.arg` names the argument: the learning rate stays."
    assert told in rescale(launched(spec), LUMI, nodes=2).notes
    assert told not in rescale(launched(spec), LUMI).notes


@pytest.mark.parametrize(
    ("keep", "settings", "args"),
    [
        ("per_gpu", ["--lr=0.01"], ("32", "0.01")),
        ("global", ["--batch-size=32", "--lr=0.01"], ("32", "0.01")),
    ],
)
def test_what_is_typed_stays_also_at_the_value_it_had(
    keep: str, settings: list[str], args: tuple[str, str]
) -> None:
    scale = {"batch": {"keep": keep}, "lr": {"rule": "linear"}}
    scaled = rescale(launched(job(scale=scale)), LUMI, nodes=2, settings=settings)
    assert scaled.launch.spec.args[1::2] == args


def test_a_rate_that_is_typed_stays_beside_deepspeeds_configuration() -> None:
    scale = LINEAR | {"lr": {"rule": "linear", "arg": "--rate"}}
    spec = zero(trainer=None, script="t.py", args=["--rate", "0.1"], scale=scale)
    config = json.dumps({TRAIN: 32})
    scaled = rescale(
        launched(spec, config), LUMI, nodes=2, settings=["--rate=0.1"], deepspeed_config=config
    )
    assert scaled.launch.spec.args == ("--rate", "0.1")


@pytest.mark.parametrize(
    ("schedule", "noted"),
    [
        ({"type": "WarmupDecayLR", "params": {"total_num_steps": 9}}, "total_num_steps 9 stay"),
        ({"type": "WarmupLR", "params": {"warmup_max_lr": 0.1}}, ""),
        ({"type": "WarmupLR"}, "names no learning rate|Without `warmup_max_lr`"),
        ({"type": "WarmupLR", "params": {"warmup_num_steps": 9}},
         "names no learning rate|Without `warmup_max_lr`|warmup_num_steps 9 stay"),
        ({"type": "WarmupCosineLR"}, "names no learning rate"),
    ],
)  # fmt: skip
def test_a_rate_that_is_not_written_out_is_noted(schedule: dict[str, object], noted: str) -> None:
    config = json.dumps({TRAIN: 32, "optimizer": {"type": "Adam"}, "scheduler": schedule})
    first = launched(zero(scale=LINEAR), config)
    notes = rescale(first, LUMI, nodes=2, deepspeed_config=config).notes
    expected = noted.split("|") if noted else []
    assert len(notes) == len(expected)
    assert all(words in note for words, note in zip(expected, notes, strict=True))


@pytest.mark.parametrize("size", ["²", "٣", "0", "many"])
def test_a_batch_that_is_not_a_number_is_refused(size: str) -> None:
    first = launched(job(args=["--batch-size", size, "--lr", "0.1"]))
    with pytest.raises(InputError, match="not a number of samples"):
        rescale(first, LUMI, nodes=2)
    rescale(first, LUMI, nodes=2, settings=["--batch-size=8"])
