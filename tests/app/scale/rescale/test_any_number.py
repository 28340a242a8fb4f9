"""Batches and learning rates with any number that a person can write."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lumitui.app.launch.deepspeed_batch import (
    ACCUMULATION,
    MICRO,
    TRAIN,
    batch_of,
    read_config,
    whole,
)
from lumitui.app.scale import learning_rate
from lumitui.remote.site.errors import InputError
from tests.support.jobs.sites.rescaled_jobs import LUMI, job, launched, rescale

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


@given(st.text() | st.integers().map(str))
def test_a_number_of_samples_is_plain_digits(text: str) -> None:
    found = whole(text)
    assert found is None or (0 <= found < 10**8 and text.isascii() and text.isdigit())
