"""Sentences about numbers, prices, transfers, CPUs and logs, whatever the values are."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.cli import output
from lumitui.app.explain import row_words, words
from lumitui.app.explain.run_phrases import (
    Outlook,
    price_outlook,
    price_outlook_sentence,
    progress_line,
    time_limit,
)
from lumitui.app.history.run import Run
from lumitui.app.job.launch import Launch, Price, RankLayout
from lumitui.app.knowledge.failure.diagnosis import Diagnosis
from lumitui.app.launch.draft import job_form
from lumitui.app.launch.draft.node_map import gpu_word, node_map, node_map_lines
from lumitui.app.scale.scaling import rungs, scaling_words
from lumitui.app.scale.scaling.measured import MeasuredRun, Training
from lumitui.app.scale.scaling.study import Offer, scaling_of
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.sites import Sites
from lumitui.remote.site.walltime import seconds_of
from lumitui.remote.transfer.contents.shipment_progress import Meter, ShipmentProgress
from tests.support.jobs.made_runs import SPEC, a_run
from tests.support.program.home import Home

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
    ("time", "long", "short"),
    [
        ("00:09:50", "9 min 50 s", "9m50"),
        ("01:00:00", "1 h 00 min", "1h00"),
        ("00:12:30", "12 min 30 s", "13m"),
        ("00:59:30", "59 min 30 s", "1h00"),
        ("02:00:01", "2 h 00 min 1 s", "2h01"),
        ("2-12:30:15", "2 d 12 h 30 min 15 s", "2d13"),
    ],
)
def test_a_time_limit_is_never_rounded_down(time: str, long: str, short: str) -> None:
    run = a_run(spec=SPEC.model_copy(update={"time": time}))
    assert words.limit(seconds_of(time)) == long
    assert words.elapsed_of_limit(run, 0.0) == f"-/{short}"


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


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.3333, "0.34"), (0.1 + 0.2, "0.30"), (2.04, "2.04"), (4 / 3, "1.34"), (16.0, "16"),
     (999.991, "1,000"), (1234.1, "1,235"), (0.00041, "0.0005"), (1e-320, "1e-320"), (0.0, "0")],
)  # fmt: skip
def test_an_upper_limit_is_rounded_up(value: float, shown: str) -> None:
    assert words.most(value) == shown
    assert words.amount(Price(value, "h", 1.0)) == (f"{shown} h" if value else "nothing")
    run = replace(RUNNING, state=State.DONE, ended=RUNNING.started, price=Price(value, "h", 1.0))
    assert words.billed(run, NOW) == (f"nothing (of at most {shown})" if value else "nothing")


def test_ranks_are_named_as_ranges() -> None:
    assert words.ranks_named([3]) == "Rank 3"
    assert words.ranks_named([8, 9, 3, 10]) == "Ranks 3, 8-10"


def test_what_a_run_cost() -> None:
    # 16 GPU-hours an hour, 32 at most.
    done = replace(RUNNING, state=State.DONE, ended=NOW)
    assert words.billed(done, NOW) == "about 2 GPU-hours (of at most 32)"
    started = NOW - 2 * 3600 - 225  # Slurm ended it after its limit, and bills that time.
    late = replace(done, started=started)
    assert words.billed(late, NOW) == (
        "about 33 GPU-hours (32 for its time limit, which it exceeded)"
    )
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


MOMENTS = st.floats() | st.sampled_from([math.inf, -math.inf, math.nan, 1e18, -1e18, 2.0**63])


@given(MOMENTS, MOMENTS)
def test_moments_and_lengths_are_always_words(moment: float, now: float) -> None:
    for text in (
        words.clock(moment),
        words.recent_clock(moment, now),
        words.ahead(moment, now),
        words.length(moment),
        words.short_length(moment),
    ):
        assert len(text) < 120 and "\n" not in text


@given(MOMENTS | st.none())
def test_numbers_are_always_words(value: float | None) -> None:
    assert 0 < len(words.number(value, " GB")) < 40


@given(st.integers(0, 10**30))
def test_sizes_are_always_words(count: int) -> None:
    assert words.size(count)[-1] == "B"


PRICE = Outlook(Price(32.0, "GPU-hours", 16.0))
LIKE = replace(PRICE, about="6.10", like="ab12")
ALL = replace(LIKE, left=812.0, limit=1000.0, asked=1000.0)


def test_as_much_is_said_as_is_known() -> None:
    assert price_outlook(PRICE, 0) == "at most 32 GPU-hours"
    assert price_outlook(LIKE, 0) == "at most 32 GPU-hours, about 6.10 if it runs like ab12"
    assert price_outlook(ALL, 1180) == (
        "at most 32 GPU-hours, about 6.10 if it runs like ab12; 812 of 1,000 GPU-hours left "
        "(queried 3 min ago)"
    )
    timed = replace(LIKE, takes="50 min")
    assert price_outlook(timed, 0).endswith(", about 6.10 in 50 min if it runs like ab12")
    assert price_outlook(replace(timed, about=""), 0) == (
        "at most 32 GPU-hours; if it runs like ab12, it takes 50 min, over the time limit"
    )
    assert "if it scales as ab12" in price_outlook(replace(LIKE, other_size=True), 0)
    assert price_outlook(replace(PRICE, left=5.0), 0).endswith("; 5 GPU-hours left")
    used = replace(PRICE, left=-3.0, limit=10.0)
    assert price_outlook(used, 0).endswith("; nothing of 10 GPU-hours left")


def test_what_costs_nothing_is_said_to() -> None:
    free = Outlook(Price(0.0, "GPU-hours", 0.0))
    assert price_outlook_sentence(free, 0) == "nothing is billed"
    assert price_outlook_sentence(PRICE, 0) == "billed at most 32 GPU-hours"


def test_a_line_says_what_a_person_wants_to_know() -> None:
    line = progress_line(
        ShipmentProgress("DATA", "sending", 750_000_000, 3_000_000_000, 22_500_000.0)
    )
    assert line == "staging DATA [##......]  25% 750 MB of 3.0 GB 22 MB/s 1m40 left"
    longest = ShipmentProgress("N" * 20, "reading", 999_000_000, 999_000_000_000, 1_000_000.0)
    assert len(progress_line(longest)) <= 82
    assert progress_line(ShipmentProgress("D", "asking")) == "staging D: checking what the site has"
    assert (
        progress_line(ShipmentProgress("D", "sending", 0, 0))
        == "staging D [########] 100% 0 B of 0 B"
    )


def test_the_rate_is_of_the_last_ten_seconds_and_what_was_there_is_no_speed() -> None:
    told, clock = list[ShipmentProgress](), [0.0]
    meter = Meter("DATA", told.append, lambda: clock[0])
    meter.begin("sending", 1_000_000, 400_000)
    for second in range(1, 21):
        clock[0] = second
        list(meter.pass_on([b"x" * (1000 if second < 10 else 10_000)]))
    assert 9_000 <= told[-1].rate <= 10_000
    assert told[-1].done == 400_000 + 9 * 1000 + 11 * 10_000
    # Five reports a second at most, however small the pieces are.
    before = len(told)
    list(meter.pass_on([b"x"] * 1000))
    assert len(told) == before


CORES = ("0", "1")


def a_cpu_run(nodes: int = 2) -> Run:
    return a_run(layout=RankLayout(nodes, 2, 2, 1, 2, True, (), CORES, on_cpu=True))


def test_no_table_and_no_sentence_names_gpus(home: Home) -> None:
    site = Sites(home.settings.profiles).load("laptop")
    run = a_cpu_run()
    map_lines = node_map_lines(node_map(site, run.layout), 80, gpu_word(site))
    drawn = ["".join(part.text for part in line) for line in map_lines]
    study = scaling_of(
        run,
        [MeasuredRun(run, Training(1000.0, 990.0, 1010.0, 50, samples=60_000, epoch=60_000))],
        [Offer(2, 4, 0.0, 3600.0, 0.0), Offer(4, 8, 0.0, 3600.0, 0.0)],
    )
    said = [
        *drawn,
        words.layout_size(run.layout),
        *(field.help for field in job_form.fields({}, site, {}, ())),
        *rungs.titles(study),
        *scaling_words.table(study).titles,
        scaling_words.basis(study),
    ]
    assert not [text for text in said if "GPU" in text or "GCD" in text], said
    assert f"2 of {site.node.gpus} ranks" in drawn[0]
    assert rungs.titles(study)[1] == "ranks" and "rank-h" in scaling_words.table(study).titles
    assert row_words.size(run) == "2x2r" and "4 ranks on CPU" in words.layout_size(run.layout)
    gpus = replace(run, layout=replace(run.layout, on_cpu=False))
    assert row_words.size(gpus) == "2x2" and gpus.layout.device.some(1) == "1 GPU"


def test_more_ranks_than_the_machine_has_are_called_ranks(home: Home) -> None:
    from lumitui.app.job.spec import parse_job
    from lumitui.app.launch.compose import compose

    site = Sites(home.settings.profiles).load("laptop")
    text = "name: a\nsite: laptop\npartition: local\ntime: '00:05:00'\nscript: a.py\n"
    try:
        compose(parse_job(f"{text}gpus_per_node: 64\n", "job"), site)
    except InputError as error:
        assert "ranks per node" in str(error) and "GPUs" not in str(error)
    else:
        raise AssertionError("64 ranks fit")


def test_a_finding_names_the_command_that_prints_its_page() -> None:
    own = Finding("links", "error", "It leads out.", "Copy it.", "srun(1); docs/scripts.md")
    assert words.finding(own).endswith("[links; srun(1); lumitui docs scripts]")
    assert words.source("Yelp/detect-secrets, docs/design.md").endswith("docs/design.md")


def test_a_cancelled_run_that_slurm_still_ends_is_cancelled() -> None:
    ending = replace(RUNNING, state=State.FINISHING)
    assert words.after_cancel(ending) == f"{ending.id} is cancelled; Slurm is ending its job."


def test_a_billed_limit_with_seconds_says_what_slurm_makes_of_it() -> None:
    def told(time: str, amount: float, **changes: int) -> str:
        spec = SPEC.model_copy(update={"time": time, **changes})
        return time_limit(
            cast("Launch", SimpleNamespace(spec=spec, price=Price(amount, "GPU-hours", 1.0)))
        )

    assert told("00:01:30", 0.54, chain=4) == "4 x 00:01:30 (Slurm rounds up to 00:02:00)"
    assert told("00:01:30", 0.0) == "00:01:30", "a laptop rounds nothing"
    assert told("01:00:00", 4.0) == "01:00:00"
