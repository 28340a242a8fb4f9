"""Counts, sizes, times, prices and reasons in words."""

from dataclasses import replace

import pytest

from lumitui.app.cli import output
from lumitui.app.explain import words
from lumitui.app.job.launch import Price
from lumitui.app.knowledge.failure.diagnosis import Diagnosis
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run

NOW = 1_000_000.0
QUEUED = a_run(state=State.QUEUED, job_id="7", submitted=NOW - 600, updated=NOW)
RUNNING = replace(QUEUED, state=State.RUNNING, started=NOW - 450, expected_end=NOW + 3150)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (2.302585, "2.3026"),
        (0.0001, "0.0001"),
        (12345.6, "12346"),
        (123456.7, "123,457"),
        (1e20, "1e+20"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
    ],
)
def test_a_number_has_five_digits(value: float | None, shown: str) -> None:
    assert words.number(value) == shown


@pytest.mark.parametrize(
    ("seconds", "long", "short"),
    [
        (0, "0 s", "0s"),
        (59, "59 s", "59s"),
        (60, "1 min", "1m"),
        (102, "1 min 42 s", "1m42"),
        (179.9, "2 min 59 s", "2m59"),
        (600, "10 min", "10m"),
        (3599, "59 min", "59m"),
        (3600, "1 h 00 min", "1h00"),
        (90000, "1 d 01 h", "1d01"),
        (-5, "0 s", "0s"),
    ],
)
def test_a_length_of_time(seconds: float, long: str, short: str) -> None:
    assert (words.length(seconds), words.short_length(seconds)) == (long, short)


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (9_960, "10 kB"),
        (999_600, "1.0 MB"),
        (23_400_000, "23 MB"),
        (5_200_000_000, "5.2 GB"),
        (12_345_000_000_000, "12345 GB"),
    ],
)
def test_a_size_is_short(count: int, shown: str) -> None:
    assert words.size(count) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.6667, "0.67"), (4 / 3, "1.33"), (16.0, "16"), (133.333, "133.33"), (1234.5, "1,234"),
     (0.0004, "0.0004"), (0.0, "0")],
)  # fmt: skip
def test_a_price_has_one_form(value: float, shown: str) -> None:
    assert words.price(value) == shown
    assert words.amount(Price(value, "h", 1.0)) == (f"{shown} h" if value else "nothing")


def test_ranks_are_named_as_ranges() -> None:
    assert words.ranks_named([3]) == "Rank 3"
    assert words.ranks_named([8, 9, 3, 10]) == "Ranks 3, 8-10"


def test_what_a_run_cost() -> None:
    # 16 GPU-hours an hour, 32 at most.
    done = replace(RUNNING, state=State.DONE, ended=NOW)
    assert words.billed(done, NOW) == "about 2 GPU-hours (of at most 32)"
    again = replace(done, attempt=2)
    assert words.billed(again, NOW).startswith("about 2 GPU-hours in its last attempt (of")
    assert words.billed(RUNNING, NOW) == "about 2 GPU-hours so far, at most 32"
    assert words.billed(QUEUED, NOW) == "at most 32 GPU-hours"
    never = replace(QUEUED, state=State.CANCELLED, ended=NOW)
    assert words.billed(never, NOW) == "nothing (of at most 32)"
    free = replace(done, price=Price(0.0, "hours", 0.0))
    assert words.billed(free, NOW) == "nothing"
    assert output.run_data(done)["billed"] == 2.0


def test_a_price_has_a_label_and_a_sentence() -> None:
    price, free = QUEUED.price, Price(0.0, "hours", 0.0)
    assert words.amount(price) == "32 GPU-hours"
    assert words.price_limit(price) == "at most 32 GPU-hours"
    assert words.price_sentence(price) == "billed at most 32 GPU-hours"
    assert (words.price_limit(free), words.price_sentence(free)) == ("nothing", "nothing is billed")


def test_the_reason_of_a_failure_names_rank_and_exit_code() -> None:
    failed = replace(RUNNING, state=State.FAILED, rc=3, failed_rank=5, reason="NonZeroExitCode")
    assert words.reason(failed) == "rank 5, exit 3"
    assert words.reason(replace(failed, reason="OutOfMemory\n")) == "rank 5, exit 3, OutOfMemory"
    assert words.reason(replace(QUEUED, reason="None")) == ""


def test_a_cause_names_its_rank_once() -> None:
    assert Diagnosis("a", "It crashed.", "", rank=3).cause == "It crashed (rank 3)."
    assert Diagnosis("a", "Rank 3 crashed.", "", rank=3).cause == "Rank 3 crashed."
    assert Diagnosis("a", "It crashed.", "").cause == "It crashed."
