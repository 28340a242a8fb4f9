"""The overview of a run in words: how far it is, how well it does, what to do next."""

from dataclasses import replace

import pytest

from lumitui.app.cli.views.tables import run_table
from lumitui.app.explain import row_words, run_facts, run_overview, words
from lumitui.app.explain.idle_words import idle_remark, waiting
from lumitui.app.explain.training_summary import Speedup, Summary, Throughput
from lumitui.app.explain.waiting import no_failure
from lumitui.app.follow.notifications.events import event_of
from lumitui.app.history.listing.state_filter import WENT_WRONG
from lumitui.app.history.run import NODE_PROBE, AttemptRecord
from lumitui.app.tui.flows.cancels import terms
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.gpu_use import GpuUse
from tests.support.jobs.binding.binding_reports import reports, verdict_on
from tests.support.jobs.made_runs import a_run

NOW = 1_000_000.0
RUN = a_run(state=State.RUNNING, job_id="7", submitted=NOW - 2100, started=NOW - 1860, updated=NOW)
TOTALS = Summary(812, 0.41, 61_000.0, None, 12.0, 16, 256)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "runs for 31 min of 1 h 00 min, after 4 min in the queue"),
        ({"started": None, "state": State.QUEUED}, "35 min in the queue"),
        (
            {"state": State.DONE, "ended": NOW - 179, "attempt": 2},
            "ran 28 min of 1 h 00 min, attempt 2, after 4 min in the queue; ended 2 min 59 s ago",
        ),
        (
            {"state": State.CANCELLED, "started": None, "ended": NOW - 100},
            "ended after 33 min in the queue",
        ),
        ({"job_id": None, "state": State.SENDING, "started": None}, ""),
    ],
)
def test_the_timing_is_told_in_one_line(changes: dict[str, object], words: str) -> None:
    assert run_overview.story(replace(RUN, **changes), NOW) == words  # type: ignore[arg-type]


def test_a_run_is_compared_with_its_parent() -> None:
    parent = replace(RUN, id="vit-1n", layout=replace(RUN.layout, nodes=1))
    child = replace(RUN, parent=parent.id, layout=replace(RUN.layout, nodes=4))
    rows = dict(
        run_overview.rows(child, NOW, None, TOTALS, (parent, Speedup(RUN.id, 3.7612, 94.03)))
    )
    assert rows["throughput"] == "61,000 samples/s (median step) on 16 ranks"
    assert rows["efficiency"] == "94 % of vit-1n: 3.76 x its throughput, 1 to 4 nodes"
    assert rows["loss"] == "0.41 after 812 steps"
    more = run_overview.against(Speedup(RUN.id, 4.4, 110.0), parent, child)
    assert more.startswith("110 % of vit-1n (above 100 % is noise): 4.4 x")
    same = run_overview.against(Speedup(RUN.id, 0.9961, 99.6), RUN, RUN)
    assert same == f"0.996 x the throughput of {RUN.id}, on as many nodes"
    assert rows["billed"] == "about 8.27 GPU-hours so far, at most 32"
    alone = dict(run_overview.rows(child, NOW, None, None, None))
    assert set(alone) == {"timing", "billed", "next"}, "what is not known is left out"


def test_every_state_says_what_to_do_or_is_waiting() -> None:
    waiting = {State.SENDING, State.QUEUED, State.FINISHING}
    for state in State:
        told = run_overview.next_step(replace(RUN, state=state), None)
        assert bool(told) != (state in waiting), state
    wrong = verdict_on([item | {"cores": "1-2"} for item in reports(RUN.layout)])
    assert run_overview.next_step(RUN, wrong) == run_overview.UNPROVED
    failed = replace(RUN, state=State.FAILED)
    assert "Find out why" in run_overview.next_step(failed, None)
    assert run_overview.next_step(failed, None, explained=True) == run_overview.EXPLAINED
    caused = replace(failed, cause="It ran out of memory.")
    for explained in (False, True):  # the cause is shown once
        rows = run_overview.rows(caused, NOW, None, None, None, explained=explained)
        assert ("reason" in dict(rows)) is not explained
    done = replace(RUN, state=State.DONE)
    assert run_overview.next_step(done, wrong) != run_overview.UNPROVED
    probe = replace(done, name=NODE_PROBE)  # a job that trains nothing
    shown = dict(run_overview.rows(probe, NOW, wrong, None, None))
    assert "proof" not in shown and shown["next"].startswith("Save its measurements: F5")
    saved = replace(probe, note="#saved")
    assert run_overview.next_step(saved, None).startswith("Create a job on New")
    for state in WENT_WRONG | {State.CANCELLED}:  # `resubmit` refuses such a run
        for explained in (False, True):
            wrong_end = replace(probe, state=state)
            offer = run_overview.next_step(wrong_end, None, explained=explained)
            assert offer.startswith("Measure again: F5"), state
            assert f"`lumitui site check {probe.site} --probe`" in offer


def test_a_silent_site_lets_neither_time_nor_bill_go_on() -> None:
    run = replace(RUN, started=NOW - 3000, updated=NOW - 1200, nodes_used="nid1")
    at = f"as of {words.clock(run.updated)[11:16]}"
    assert run.elapsed(NOW) == 1800 and run.elapsed(NOW + 500) == 1800
    assert run.billed(NOW + 500) == run.billed(NOW) == 8.0
    for said in (
        run_overview.story(run, NOW),
        words.billed(run, NOW),
        row_words.news(run, NOW),
    ):
        assert at in said, said
    assert "was seen running for 30 min" in run_overview.story(run, NOW)
    hour = at.removeprefix("as of ")
    assert run_facts.state(run, NOW) == f"running when last heard from, {hour}"
    assert dict(run_facts.facts(run, NOW))["latest end"].endswith(f"10 min, as of {hour}")
    assert run_overview.next_step(run, None, NOW).startswith("Wait for somewhere")
    waits = replace(run, state=State.QUEUED, started=None, expected_start=NOW - 600)
    assert "10 min ago, as of" in dict(run_facts.facts(waits, NOW))["expected start"]
    assert at in row_words.news(waits, NOW) and run_facts.state(waits, NOW).startswith("queued wh")
    assert "so far" not in words.billed(run, NOW)
    assert words.elapsed_of_limit(run, NOW) == "30m/1h00"
    fresh = replace(run, updated=NOW - 30)
    assert run_facts.state(fresh, NOW) == "running, seen 30 s ago"
    assert run_facts.state(replace(fresh, updated=NOW - 5), NOW) == "running"
    assert "as of" not in run_overview.story(fresh, NOW)
    waits = replace(waits, updated=NOW - 30)
    assert run_facts.state(waits, NOW) == "queued, seen 30 s ago"
    assert no_failure(waits, NOW).startswith("As of 30 s ago, it had not failed. Queued for")
    now = replace(waits, updated=NOW - 5)
    assert run_facts.state(now, NOW) == "queued"
    assert no_failure(now, NOW).startswith("It has not failed.")


def test_a_run_sent_while_the_clock_was_ahead_is_not_called_new() -> None:
    run = replace(RUN, created=NOW + 9 * 86400, submitted=NOW - 60)
    assert row_words.age(run, NOW) == "ahead"
    created = dict(run_facts.facts(run, NOW))["created"]
    assert created.endswith(" (this machine's clock was ahead)")
    slightly = replace(run, created=NOW + 3)
    assert row_words.age(slightly, NOW) == "0s"
    assert "created" not in dict(run_facts.facts(slightly, NOW))


def test_time_and_bill_of_a_short_job_are_of_one_moment() -> None:
    run = replace(
        RUN, started=NOW - 40, updated=NOW - 28, price=replace(RUN.price, per_hour=3600.0)
    )
    assert run.elapsed(NOW) == run.billed(NOW) == 12.0
    assert "runs for 12 s" in run_overview.story(run, NOW)


def test_a_chain_that_has_no_limit_left_is_to_be_continued() -> None:
    record = AttemptRecord(1, "7", "nid1", 100.0, 160.0, 85, 30, "used-up")
    spec = RUN.spec.model_copy(update={"chain": 4})
    ended = replace(RUN, state=State.FAILED, attempts=(record,), spec=spec)
    assert run_overview.next_step(ended, None, explained=True) == run_overview.CONTINUE
    failed = replace(ended, attempts=(replace(record, end="failed"),))
    assert run_overview.next_step(failed, None) == run_overview.NEXT[State.FAILED]
    assert "in 1 attempt of at most 4 x" in run_overview.story(replace(ended, job_id="7"), NOW)


def test_a_cause_that_is_known_is_the_reason_and_needs_no_question() -> None:
    failed = replace(RUN, state=State.FAILED, rc=1, failed_rank=5, ended=NOW)
    known = replace(failed, cause="rank 5 model.py:88: A GPU ran out of memory")
    asked, told = (dict(run_overview.rows(run, NOW, None, None, None)) for run in (failed, known))
    assert asked["reason"] == "rank 5, exit 1" and "Find out why" in asked["next"]
    assert told["reason"] == known.cause and "Find out why" not in told["next"]


CHAIN = replace(
    RUN,
    spec=RUN.spec.model_copy(update={"chain": 3, "time": "00:02:00"}),
    attempts=(AttemptRecord(1, "7", "nid1", NOW - 200, NOW - 140, 85, 350, "requeue"),),
    started=None,
    submitted=NOW - 140,
)


def test_a_chain_cancelled_between_attempts_did_train_and_can_go_on() -> None:
    # Histories have this reason of such runs.
    run = replace(CHAIN, state=State.CANCELLED, ended=NOW - 76, reason="before it started")
    told = dict(run_overview.rows(run, NOW, None, None, None)) | dict(run_facts.facts(run, NOW))
    assert told["reason"] == "before attempt 2 started; saved at step 350"
    assert told["timing"] == "ran 1 min in 1 attempt of at most 3 x 2 min; ended 1 min 16 s ago"
    assert told["next"] == run_overview.CONTINUE_CANCELLED and "not started" not in told.get(
        "time", ""
    )
    assert row_words.news(run, NOW) == told["reason"] and told["reason"] in no_failure(run, NOW)
    assert words.elapsed_of_limit(run, NOW) == "1m/6m"
    asked = dict(terms(replace(run, state=State.QUEUED)))
    assert asked["trained"] == "step 350 is saved and kept"
    never = replace(run, attempts=())
    assert "trained" not in dict(terms(replace(never, state=State.QUEUED)))
    assert words.reason(never) == "before it started"
    assert run_overview.next_step(never, None) == run_overview.NEXT[State.CANCELLED]


def test_a_chain_that_waits_for_its_next_attempt_says_which_and_why() -> None:
    run = replace(CHAIN, state=State.QUEUED, reason="BeginTime", expected_start=NOW + 60)
    told = dict(run_overview.rows(run, NOW, None, None, None)) | dict(run_facts.facts(run, NOW))
    assert told["job"] == "7, attempt 2 of at most 3"
    assert told["waits for"].startswith("its last attempt requeued it")
    assert "requeued" in told and "submitted" not in told and "time" not in told
    assert told["expected end"].endswith("; 1 attempt more may follow")
    assert told["timing"].startswith("ran 1 min in 1 attempt of at most 3 x 2 min")
    assert row_words.news(run, NOW).endswith("requeued")


@pytest.mark.parametrize(
    ("end", "step", "words"),
    [
        ("used-up", 650, "all 3 time limits are used; saved at step 650"),
        ("used-up", None, "all 3 time limits are used; a checkpoint is kept"),
        ("no-progress", 350, "no progress: it trained nothing new"),
        ("refused", 350, "its requeue was refused; saved at step 350"),
        ("failed", 350, "rank 0, exit 85"),
    ],
)
def test_a_chain_says_why_no_attempt_follows(end: str, step: int | None, words: str) -> None:
    last = AttemptRecord(2, "7", "nid1", NOW - 100, NOW - 40, 85, step, end)
    run = replace(
        CHAIN, state=State.FAILED, rc=85, failed_rank=0, attempts=(*CHAIN.attempts, last),
        started=NOW - 100, ended=NOW - 40,
    )  # fmt: skip
    assert row_words.news(run, NOW) == dict(run_overview.rows(run, NOW, None, None, None))["reason"]
    assert row_words.news(run, NOW) == words
    row = run_table([run], NOW, 200)
    assert words in row and "00:02:00/3x00:02:00" in row
    told = event_of(run, State.RUNNING)
    verb = "failed" if end == "failed" else "stopped"
    assert told is not None and f"{verb} after 2 min" in told.sentence and words in told.sentence


def test_an_attempt_is_not_shown_past_its_limit_unless_the_site_said_so() -> None:
    run = replace(CHAIN, state=State.RUNNING, started=NOW - 150, updated=NOW - 80)
    assert words.elapsed_of_limit(run, NOW) == "1m10/2m"
    assert words.elapsed_of_limit(replace(run, updated=NOW - 10), NOW) == "2m20/2m"


def test_the_limit_of_a_running_job_is_the_sites() -> None:
    """Slurm rounds 90 s up to two minutes, so that the job ends then."""
    run = a_run(spec=RUN.spec.model_copy(update={"time": "00:01:30"}), state=State.RUNNING,
                job_id="7", started=NOW - 33, updated=NOW, expected_end=NOW + 87)  # fmt: skip
    assert run_overview.story(run, NOW).startswith("runs for 33 s of 2 min,")
    assert words.elapsed_of_limit(run, NOW) == "33s/2m"
    assert row_words.share(run, NOW) == 33 / 120
    assert words.time_limit(replace(run, state=State.QUEUED)) == "1 min 30 s"


def test_the_overview_names_what_the_ranks_wait_for() -> None:
    parts = (("data_s", 0.35), ("forward_backward_s", 0.6), ("exposed_s", 0.25))
    waits = replace(TOTALS, throughput=Throughput(over_all=36_600.0, parts=parts))
    assert dict(run_overview.rows(RUN, NOW, None, waits, None))["idle"] == (
        "the ranks wait 35 % of each step for data: give the trainer more --workers; "
        "25 % of each step for gradients: try fewer nodes, or larger batches; "
        "40 % of the time for evaluation, saves and starts between steps"
    )
    assert "for gradients: try larger batches;" in waiting(waits, nodes=1)
    little = (("data_s", 0.05), ("exposed_s", 0.1))
    busy = replace(TOTALS, throughput=Throughput(over_all=60_000.0, parts=little))
    assert waiting(busy, 2) == waiting(None, 2) == waiting(TOTALS, 2) == ""


USE = GpuUse(7200, 8, 8, 0.31, 55.0, 31000, 65520)


@pytest.mark.parametrize(
    ("changes", "verdict", "remark"),
    [
        (
            {},
            "below 10 % use for 31 % of 2 h 00 min (8 GPUs of the first node, 55 % on average); "
            "34 of 64 GiB of GPU memory never used",
            True,
        ),
        (
            {"busy": 4, "low": 0.5},
            "below 10 % use for 50 % of 2 h 00 min (8 GPUs of the first node, 55 % on average, "
            "4 never used); 34 of 64 GiB of GPU memory never used; "
            "this job would fit on half the GPUs",
            True,
        ),
        (
            {"low": 0.02, "mean": 31.0, "used_mib": 20000},
            "below 10 % use for 2 % of 2 h 00 min (8 GPUs of the first node, 31 % on average); "
            "44 of 64 GiB of GPU memory never used; this job would fit on half the GPUs",
            True,
        ),
        (
            {"low": 0.02, "mean": 31.0, "used_mib": 40000},
            "below 10 % use for 2 % of 2 h 00 min (8 GPUs of the first node, 31 % on average); "
            "25 of 64 GiB of GPU memory never used",
            False,
        ),
        (
            {"low": 1.0, "mean": 0.0, "busy": 0, "seconds": 70},
            "below 10 % use for 100 % of 1 min 10 s (8 GPUs of the first node, 0 % on average, "
            "8 never used); 34 of 64 GiB of GPU memory never used",
            False,
        ),
    ],
    ids=["idle", "half never worked", "all did little", "its memory is needed", "too short"],
)
def test_readings_of_the_gpus_become_one_verdict(
    changes: dict[str, float], verdict: str, remark: bool
) -> None:
    run = replace(RUN, gpu_use=replace(USE, **changes))  # type: ignore[arg-type]
    assert dict(run_overview.rows(run, NOW, None, None, None))["idle"] == verdict
    assert idle_remark(run, None) == (verdict if remark else "")


def test_the_verdict_names_readings_and_waits_together() -> None:
    waits = replace(TOTALS, throughput=Throughput(parts=(("data_s", 0.35),)))
    verdict = dict(run_overview.rows(replace(RUN, gpu_use=USE), NOW, None, waits, None))["idle"]
    assert verdict.startswith("below 10 % use for 31 % of 2 h 00 min")
    assert verdict.endswith(
        "the ranks wait 35 % of each step for data: give the trainer more --workers"
    )


def test_a_debug_job_is_for_a_shell() -> None:
    run = replace(RUN, note="#debug")
    assert run_overview.next_step(run, None, NOW).startswith("Open a shell on its nodes")
    assert run_overview.next_step(replace(run, note=""), None, NOW) == "Follow its log."
