"""A resubmission at other node counts: DeepSpeed's configuration is rescaled with the ranks."""

import json
from typing import Any

import pytest

from lumitui.app.job.launch import Launch
from lumitui.app.launch.deepspeed_batch import ACCUMULATION, MICRO, TRAIN
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.run_folder import DEEPSPEED_CONFIG
from tests.support.jobs.sites.rescaled_jobs import (
    CONFIG,
    LINEAR,
    LUMI,
    job,
    launched,
    rescale,
    zero,
)


def sent_config(launch: Launch) -> dict[str, Any]:
    found = json.loads(launch.texts[DEEPSPEED_CONFIG])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("keep", "nodes", "fields"),
    [("global", 2, (32, 2, 1)), ("per_gpu", 2, (64, 4, 1)), ("global", 4, (32, 1, 1))],
)
def test_deepspeeds_batch_fields_are_recomputed(
    keep: str, nodes: int, fields: tuple[int, int, int]
) -> None:
    spec = zero(scale={"batch": {"keep": keep}})
    first = launched(spec, CONFIG)
    scaled = rescale(first, LUMI, nodes=nodes, deepspeed_config=first.texts[DEEPSPEED_CONFIG])
    config = sent_config(scaled.launch)
    assert (config[TRAIN], config[MICRO], config[ACCUMULATION]) == fields


def test_the_guides_batch_of_32_does_not_fit_eight_nodes() -> None:
    # 64 ranks would get half a sample each (DeepSpeed: "Micro batch size per gpu: 0").
    with pytest.raises(InputError) as caught:
        rescale(launched(zero(), CONFIG), LUMI, nodes=8, deepspeed_config=CONFIG)
    assert "4 nodes" in caught.value.hint


@pytest.mark.parametrize(
    ("nodes", "fields"), [(4, (512, 8, 2)), (1, (512, 8, 8)), (2, (512, 8, 4))]
)
def test_the_micro_batch_never_grows_with_the_global_batch_kept(
    nodes: int, fields: tuple[int, int, int]
) -> None:
    config = f'{{"{TRAIN}": 512, "{MICRO}": 8, "{ACCUMULATION}": 4}}'
    first = launched(zero(nodes=2), config)
    scaled = rescale(first, LUMI, nodes=nodes, deepspeed_config=config)
    sent = sent_config(scaled.launch)
    assert (sent[TRAIN], sent[MICRO], sent[ACCUMULATION]) == fields


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


def test_a_configuration_without_a_rate_is_noted() -> None:
    config = json.dumps({TRAIN: 32, "optimizer": {"type": "Adam"}})
    first = launched(zero(scale=LINEAR), config)
    scaled = rescale(first, LUMI, nodes=2, deepspeed_config=config)
    assert any("has no learning rate" in note for note in scaled.notes)
    assert sent_config(scaled.launch)["optimizer"] == {"type": "Adam"}


def test_deepspeeds_rates_go_there_and_back() -> None:
    config = json.dumps({
        TRAIN: 32,
        "optimizer": {"type": "Adam", "params": {"lr": 3e-4}},
        "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_max_lr": 3e-4}},
    })  # fmt: skip
    first = launched(zero(scale=LINEAR), config)
    up = rescale(first, LUMI, nodes=3, deepspeed_config=config)
    down = rescale(up.launch, LUMI, nodes=1, deepspeed_config=up.launch.texts[DEEPSPEED_CONFIG])
    assert sent_config(down.launch) == sent_config(first)


def test_a_configuration_that_is_named_is_rescaled_for_every_strategy() -> None:
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
        ({"type": "WarmupDecayLR", "params": {"total_num_steps": 9}}, "total_num_steps=9, but"),
        ({"type": "WarmupLR", "params": {"warmup_max_lr": 0.1}}, ""),
        ({"type": "WarmupLR"}, "has no learning rate|Without `warmup_max_lr`"),
        ({"type": "WarmupLR", "params": {"warmup_num_steps": 9}},
         "has no learning rate|Without `warmup_max_lr`|warmup_num_steps=9, but"),
        ({"type": "WarmupCosineLR"}, "has no learning rate"),
    ],
)  # fmt: skip
def test_a_rate_that_is_not_written_out_is_noted(schedule: dict[str, object], noted: str) -> None:
    config = json.dumps({TRAIN: 32, "optimizer": {"type": "Adam"}, "scheduler": schedule})
    first = launched(zero(scale=LINEAR), config)
    notes = rescale(first, LUMI, nodes=2, deepspeed_config=config).notes
    expected = noted.split("|") if noted else []
    assert len(notes) == len(expected)
    assert all(words in note for words, note in zip(expected, notes, strict=True))
