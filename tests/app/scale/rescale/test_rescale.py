"""Resubmission at other node counts: everything that follows is recomputed."""

import json
import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import changed
from lumitui.app.launch.deepspeed_batch import (
    ACCUMULATION,
    MICRO,
    TRAIN,
    batch_of,
    read_config,
    whole,
)
from lumitui.app.scale import learning_rate
from lumitui.app.scale.rescale import apply_settings
from lumitui.remote.site.errors import InputError
from tests.support.jobs.sites.rescaled_jobs import DDP, LINEAR, LUMI, job, launched, rescale, zero


def test_without_a_rule_batch_and_rate_stay_with_a_note() -> None:
    scaled = rescale(launched(DDP), LUMI, nodes=2)
    assert scaled.launch.spec.args == ("--batch-size", "16", "--lr", "0.01")
    assert scaled.launch.global_batch == 256
    assert any("are kept" in note for note in scaled.notes)


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


OWN = {"trainer": None, "script": "train.py", "args": ["--batch-size", "256", "--lr", "0.01"]}


@pytest.mark.parametrize(
    ("keep", "argument", "batch", "rate"),
    [("global", "256", 256, "0.01"), ("per_gpu", "512", 512, "0.02")],
)
def test_an_argument_that_is_the_global_batch_changes_only_with_the_batch(
    keep: str, argument: str, batch: int, rate: str
) -> None:
    rule = {"arg": "--batch-size", "arg_is": "global", "keep": keep}
    scale = {"batch": rule, "lr": {"arg": "--lr", "rule": "linear"}}
    first = launched(job(**OWN, scale=scale))
    assert first.global_batch == 256
    scaled = rescale(first, LUMI, nodes=2).launch
    assert scaled.spec.args == ("--batch-size", argument, "--lr", rate)
    assert scaled.global_batch == batch
    assert rescale(scaled, LUMI, nodes=1).launch.spec == first.spec


def test_a_global_batch_that_the_ranks_cannot_share_is_refused() -> None:
    scale = {"batch": {"arg": "--batch-size", "arg_is": "global"}}
    with pytest.raises(InputError, match="256 cannot be split evenly over 24 ranks"):
        rescale(launched(job(**OWN, scale=scale)), LUMI, nodes=3)


@pytest.mark.parametrize(
    "changes",
    [
        {"scale": {"batch": {"arg_is": "global"}}, **OWN},
        {"scale": {"batch": {"arg": "--batch-size", "arg_is": "global"}}},
    ],
    ids=["without arg", "of a trainer"],
)
def test_only_a_named_argument_of_ones_own_script_is_the_global_batch(
    changes: dict[str, object],
) -> None:
    with pytest.raises(InputError, match="arg_is: global"):
        job(**changes)


@pytest.mark.parametrize(
    ("batch", "partition", "keep", "nodes", "hint"),
    [
        ("256", "standard-g", "global", 3, "Use 2 nodes or 4 nodes, or make the batch"),
        ("2400", "small-g", "global", 7, "Use 6 nodes or 10 nodes, or"),
        ("8256", "standard-g", "global", 1000, "Use 516 nodes, or"),  # 1032 are too many
        # On no other size, the ranks could share what grows from 100 samples.
        ("100", "standard-g", "per_gpu", 3, "Make the batch a multiple of 8."),
        ("100", "standard-g", "global", 3, "Make the batch a multiple of 24."),
    ],
)  # fmt: skip
def test_the_hint_names_only_sizes_that_lumitui_accepts(
    batch: str, partition: str, keep: str, nodes: int, hint: str
) -> None:
    scale = {"batch": {"arg": "--batch-size", "arg_is": "global", "keep": keep}}
    own = {**OWN, "args": ["--batch-size", batch], "partition": partition, "scale": scale}
    with pytest.raises(InputError) as caught:
        rescale(launched(job(**own)), LUMI, nodes=nodes)
    assert caught.value.hint.startswith(hint)
    for size in re.findall(r"(\d+) nodes? or|(\d+) nodes?, or", hint):
        rescale(launched(job(**own)), LUMI, nodes=int("".join(size)))


def test_there_and_back_is_the_same_job() -> None:
    spec = job(scale={"batch": {"keep": "per_gpu"}, "lr": {"rule": "linear"}})
    up = rescale(launched(spec), LUMI, nodes=4).launch
    down = rescale(up, LUMI, nodes=1).launch
    assert down.spec == spec
    assert down.script == launched(spec).script


@pytest.mark.parametrize("keep", ["global", "per_gpu"])
def test_the_global_batch_counts_what_a_trainer_accumulates(keep: str) -> None:
    scale = {"batch": {"keep": keep}, "lr": {"rule": "linear"}}
    args = ["--batch-size", "16", "--lr", "0.1", "--accumulate", "4"]
    first = launched(job(args=args, scale=scale))
    assert first.global_batch == 16 * 4 * 8
    two = rescale(first, LUMI, nodes=2)
    assert two.launch.global_batch == (512 if keep == "global" else 1024)
    halved = rescale(first, LUMI, settings=["--accumulate=2"]).launch
    assert (halved.global_batch, halved.spec.args[3]) == (256, "0.05")


@pytest.mark.parametrize(("batch", "nodes"), [("33", 1), ("1", 1), ("40", 4)])
def test_a_batch_that_the_earlier_ranks_could_not_share_is_never_rounded(
    batch: str, nodes: int
) -> None:
    scale = {"batch": {"arg": "--batch-size", "arg_is": "global", "keep": "per_gpu"}}
    own = OWN | {"args": ["--batch-size", batch], "nodes": 2, "scale": scale}
    with pytest.raises(InputError, match=f"{batch} cannot be split evenly over 16 ranks"):
        rescale(launched(job(**own)), LUMI, nodes=nodes)


@pytest.mark.parametrize("rate", ["0.1", "3e-4", "0.0123456789012"])
@pytest.mark.parametrize("rule", ["linear", "sqrt"])
def test_a_rate_is_the_same_after_a_way_over_other_sizes(rate: str, rule: str) -> None:
    scale = {"batch": {"keep": "per_gpu"}, "lr": {"rule": rule}}
    launch = launched(job(scale=scale, args=["--batch-size", "16", "--lr", rate]))
    for nodes in (2, 3, 8, 6, 1):
        launch = rescale(launch, LUMI, nodes=nodes).launch
    assert float(launch.spec.args[-1]) == float(rate)


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


def test_the_table_shows_what_changes_and_what_is_billed() -> None:
    rows = {row.what: row for row in rescale(launched(DDP), LUMI, nodes=2).changes}
    assert (rows["ranks"].before, rows["ranks"].after) == ("8", "16")
    assert (rows["billed at most"].before, rows["billed at most"].after) == (
        "4 GPU-hours",
        "8 GPU-hours",
    )
    assert not rows["time limit"].differs


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


@pytest.mark.parametrize(
    "setting",
    ["time", "tiem=1", "time=10", "nodes=many", "name.x=1", "site=mn5", "project=..", "at_once=2"],
)
def test_a_wrong_setting_is_refused(setting: str) -> None:
    with pytest.raises(InputError):
        apply_settings(DDP, [setting])


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


def test_the_table_shows_the_learning_rate_of_arguments_and_of_deepspeed() -> None:
    def rate(earlier: Launch, config: str | None = None) -> tuple[str, str]:
        scaled = rescale(earlier, LUMI, nodes=2, deepspeed_config=config)
        row = next(row for row in scaled.changes if row.what == "learning rate")
        return row.before, row.after

    assert rate(launched(job(scale=LINEAR))) == ("0.01", "0.02")
    assert rate(launched(DDP)) == ("0.01", "0.01")
    unnamed = {"trainer": None, "script": "t.py", "args": ["--batch-size=8", "--lr=0.05"],
               "scale": {"batch": {"arg": "--batch-size", "keep": "per_gpu"}}}  # fmt: skip
    assert rate(launched(changed(DDP, unnamed, "t"))) == ("0.05", "0.05")
    config = json.dumps({
        TRAIN: 32,
        "optimizer": {"type": "Adam", "params": {"lr": 0.001}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.001}},
    })  # fmt: skip
    assert rate(launched(zero(scale=LINEAR), config), config) == (
        "0.001, warmup_max_lr 0.001",
        "0.002, warmup_max_lr 0.002",
    )


def test_an_empty_argument_is_drawn_as_two_quotes() -> None:
    spec = job(trainer=None, script="t.py", args=["--data", "x", "--lr", "0.1"])
    changes = rescale(launched(spec), LUMI, settings=["--data="]).changes
    (row,) = (one for one in changes if one.what == "arguments")
    assert (row.before, row.after) == ("--data x --lr 0.1", "--data '' --lr 0.1")


def test_a_rule_without_its_argument_is_noted() -> None:
    spec = job(trainer=None, script="t.py", args=["--lr", "0.1"], scale=LINEAR)
    told = "`scale.lr.rule` is linear, but `lr.arg` is not set: the learning rate stays the same."
    assert told in rescale(launched(spec), LUMI, nodes=2).notes
    assert told not in rescale(launched(spec), LUMI).notes


@pytest.mark.parametrize("settings", [(), ("--lr=auto",), ("--batch-size=32",)])
def test_a_rate_that_the_program_chooses_stays(settings: tuple[str, ...]) -> None:
    args = ["--batch-size", "16", "--lr", "auto"]
    scale = LINEAR | {"batch": {"arg": "--batch-size", "keep": "per_gpu"}}
    spec = job(
        trainer=None,
        script="t.py",
        args=args,
        scale=scale | {"lr": {"rule": "linear", "arg": "--lr"}},
    )
    scaled = rescale(launched(spec), LUMI, nodes=2, settings=settings)
    assert scaled.launch.spec.args[-2:] == ("--lr", "auto")
    told = "--lr stays auto: the program chooses the rate for the new global batch."
    assert (told in scaled.notes) == ("--lr=auto" not in settings)
    unsaid = changed(spec, {"args": ["--batch-size", "16", "--lr", "1e-3x"]}, "t")
    with pytest.raises(InputError, match="--lr is '1e-3x', not a learning rate"):
        rescale(launched(unsaid), LUMI, nodes=2)


@pytest.mark.parametrize(
    ("keep", "settings", "args"),
    [
        ("per_gpu", ["--lr=0.01"], ("32", "0.01")),
        ("global", ["--batch-size=32", "--lr=0.01"], ("32", "0.01")),
    ],
)
def test_what_is_typed_stays_even_at_the_value_it_had(
    keep: str, settings: list[str], args: tuple[str, str]
) -> None:
    scale = {"batch": {"keep": keep}, "lr": {"rule": "linear"}}
    scaled = rescale(launched(job(scale=scale)), LUMI, nodes=2, settings=settings)
    assert scaled.launch.spec.args[1::2] == args


@pytest.mark.parametrize("size", ["²", "٣", "0", "many"])
def test_a_batch_that_is_not_a_number_is_refused(size: str) -> None:
    first = launched(job(args=["--batch-size", size, "--lr", "0.1"]))
    with pytest.raises(InputError, match="not a number of samples"):
        rescale(first, LUMI, nodes=2)
    rescale(first, LUMI, nodes=2, settings=["--batch-size=8"])


def test_a_chain_stays_and_is_paid_for_on_every_size() -> None:
    scaled = rescale(launched(job(chain=4)), LUMI, nodes=2)
    assert (scaled.launch.spec.chain, "lumitui_chain 4" in scaled.launch.script) == (4, True)
    one = rescale(launched(job(chain=4)), LUMI, nodes=2, settings=["chain=1"])
    assert scaled.launch.price.amount == 4 * one.launch.price.amount
    assert apply_settings(job(), ["chain=3"]).chain == 3
    line = apply_settings(job(), ["args=--name 'a b' {c"])
    assert line.args == ("--name", "a b", "{c")


WILD = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([10**400, -(10**400), 2**63, 0, -1, math.inf, math.nan, 1e308, 5e-324]),
    st.text(max_size=8),
    st.sampled_from(["1e999", "nan", "-inf", "9" * 400, "9" * 5000, "0x10", "1_000", "٣"]),
    st.booleans(),
    st.none(),
)


@given(st.fixed_dictionaries({}, optional={TRAIN: WILD, MICRO: WILD, ACCUMULATION: WILD}),
       st.integers(1, 8), st.integers(1, 10_000))  # fmt: skip
def test_a_batch_fits_or_is_refused(config: dict[str, object], ranks: int, nodes: int) -> None:
    try:
        batch = batch_of(config, ranks, nodes)
    except InputError as error:
        assert len(error.message) < 500
        return
    assert batch.train == batch.micro * batch.accumulation * ranks * nodes
    assert min(batch.train, batch.micro, batch.accumulation) >= 1


@given(st.dictionaries(st.sampled_from([TRAIN, MICRO, "optimizer"]), WILD))
def test_a_configuration_with_any_number_is_read_or_refused(config: dict[str, object]) -> None:
    try:
        read_config(json.dumps(config), "ds.json")
    except InputError:
        return
    except ValueError as error:
        # The interpreter writes no integer of more than 4,300 digits.
        assert "digits" in str(error)


@example(1.7976931345e308, 1.0)
@given(WILD, st.sampled_from([0.0, 0.5, 1.0, 2.0, 1e300, 1e-300]))
def test_a_rate_stays_finite_or_is_refused(value: object, factor: float) -> None:
    if not learning_rate.is_number(value):
        return
    try:
        assert math.isfinite(learning_rate.times(value, factor))
    except InputError as error:
        assert "learning rate" in error.message


@pytest.mark.parametrize("rate", ["nan", "inf", "-inf", "1e999", "9" * 400, "", "x"])
def test_a_rate_that_is_no_number_is_refused(rate: str) -> None:
    scale = {"batch": {"keep": "per_gpu"}, "lr": {"rule": "linear"}}
    before = launched(job(scale=scale, args=["--batch-size", "16", "--lr", rate]))
    with pytest.raises(InputError, match=r"learning rate|--lr"):
        rescale(before, LUMI, nodes=4)


@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("rate", ["abc", "", "nan"])
def test_a_new_rate_that_is_no_number_is_refused(rate: str, nodes: int) -> None:
    with pytest.raises(InputError, match=f"--lr is '{rate}', not a learning rate"):
        rescale(launched(job()), LUMI, nodes=nodes, settings=[f"--lr={rate}"])
    assert rescale(launched(job()), LUMI, settings=["--lr=0"]).launch.spec.args[-1] == "0"


def test_a_new_name_is_among_the_changes() -> None:
    rows = rescale(launched(job()), LUMI, settings=["name=longer"]).changes
    assert [(row.before, row.after) for row in rows if row.what == "name"] == [("t", "longer")]


def test_a_rate_that_grows_beyond_a_float_is_refused() -> None:
    scale = {"batch": {"keep": "per_gpu"}, "lr": {"rule": "linear"}}
    before = launched(job(scale=scale, args=["--batch-size", "16", "--lr", "1.7e308"]))
    with pytest.raises(InputError, match="cannot be multiplied"):
        rescale(before, LUMI, nodes=4)


@given(st.integers() | st.sampled_from([0, -1, 2**63, 10**400]))
def test_any_number_of_nodes_is_planned_or_refused(nodes: int) -> None:
    try:
        assert rescale(launched(job()), LUMI, nodes=nodes).launch.spec.nodes == nodes
    except InputError as error:
        assert error.message


@given(st.text("0159_+- ") | st.integers().map(str))
def test_a_number_of_samples_is_one_that_python_reads(text: str) -> None:
    found = whole(text)
    assert found is None or (0 < found < 10**8 and found == int(text))
