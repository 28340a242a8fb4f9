"""The facts, lineage, metrics and proof of a run as rows."""

from dataclasses import replace

from lumitui.app.explain import run_facts
from lumitui.app.explain.training_summary import Summary, Throughput
from lumitui.app.follow.results.summary import PARTS
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.binding.binding_reports import EXACT, reports, verdict_on
from tests.support.jobs.made_runs import a_run

NOW = 1_000_000.0
RUN = a_run(state=State.RUNNING, job_id="7", submitted=NOW - 600, started=NOW - 450, updated=NOW)


def test_the_facts_of_a_failed_run() -> None:
    failed = replace(
        RUN,
        state=State.FAILED,
        ended=NOW - 10,
        rc=3,
        failed_rank=5,
        reason="NonZeroExitCode",
        log_sizes={1: 1400},
    )
    facts = dict(run_facts.facts(failed, NOW))
    assert facts["exit"] == "code 3, rank 5 failed first"
    assert facts["job"] == "7, attempt 1"
    assert "time" not in facts, "the overview tells it"
    assert facts["logs"] == "1: 1.4 kB"
    assert all(facts.values())


def test_a_queued_run_has_its_reason_once() -> None:
    queued = replace(RUN, state=State.QUEUED, started=None, reason="Priority")
    facts = dict(run_facts.facts(queued, NOW))
    assert "reason" not in facts and "(Priority)" in facts["waits for"]
    assert facts["time"] == "not started, at most 1 h 00 min"


def test_a_lineage_is_indented_and_marks_the_run() -> None:
    child = replace(RUN, id="b", parent=RUN.id)
    lines = run_facts.lineage(child, [RUN, child])
    assert lines == [f"  {RUN.id}  running, 2 nodes", ">   b  running, 2 nodes"]
    assert run_facts.lineage(RUN, [RUN]) == []


def test_metrics_that_are_not_known_have_no_row() -> None:
    totals = Summary(1200, 0.5, None, None, 12.0, 16, 256)
    assert run_facts.metrics(totals, 1) == [
        ("steps", "1,200"),
        ("last loss", "0.5"),
        ("trained for", "12 s, start-up included"),
        ("ranks", "16"),
        ("global batch", "256 samples per step over all ranks"),
        ("left out", "1 line of metrics.jsonl cannot be read"),
    ]
    other = dict(run_facts.metrics(totals, 0, planned=2048))["global batch"]
    assert other.endswith("; the job file's arguments give 2048")
    assert run_facts.metrics(replace(totals, steps=0), 0) == []
    later = replace(totals, steps=2810, before=500)
    (row, *_) = run_facts.metrics(later, 0, resumed=True)
    assert row == ("steps", "2,310, after 500 of an earlier run")
    assert run_facts.metrics(later, 0)[0] == ("steps", "2,810")
    assert ("trained for", "1 h 30 min, start-up included") in run_facts.metrics(
        replace(totals, seconds=5421.3), 0
    )
    assert run_facts.log_metrics({"speed": [1.0, 300.0], "loss": []}) == [
        ("speed", "300 (last of 2 at the end of the log)"),
        ("loss", "not found at the end of the log"),
    ]


def test_what_a_trainer_tells_of_its_speed_has_a_row_each() -> None:
    parts = (("data_s", 0.03), ("x_s", 0.9))
    told = Throughput(640.123, 1_310_972.2, 154.321, 0.49462, 312.0, "bf16", 38.25, parts)
    totals = Summary(1200, 0.5, 812.0, None, 12.0, 16, 256, told)
    rows = dict(run_facts.metrics(totals, 0))
    assert rows["throughput"] == "640 samples/s overall; median step 812"
    assert rows["tokens"] == "1,310,972 tokens/s"
    assert rows["compute"] == "154.3 TFLOP/s per rank, MFU 49.5 % of 312 (bf16)"
    assert rows["memory"] == "38.25 GiB at most"
    assert rows["a step's time"] == "data 3 %, x_s 90 %"
    rows = dict(run_facts.metrics(replace(totals, throughput=Throughput(tflops=0.25)), 0))
    assert rows["throughput"] == "812 samples/s (median after warm-up)"
    assert rows["compute"] == "0.25 TFLOP/s per rank"
    assert not {"tokens", "memory", "a step's time"} & set(rows)


def test_the_proof_has_a_row_a_rank_and_says_which_differs() -> None:
    items = reports(EXACT)
    items[3]["cores"] = "0-63"
    found = run_facts.proof_table(verdict_on(items))
    assert found.titles == ("rank", "local", "host", "planned", "found", "GPU", "verdict")
    assert [row.cells[-1] for row in found.rows] == ["differs"] + ["ok"] * 15
    assert found.rows[0].cells[5] == "3", "the number of its GPU"
    assert found.rows[0].cells[:5:4] == ("3", "0-63") and not found.rows[0].ok


def test_a_plan_that_all_ranks_share_has_no_column() -> None:
    layout = replace(EXACT, masks=(), planned_cores=("1-63",) * 8)
    found = run_facts.proof_table(verdict_on(reports(layout), layout))
    assert found.titles == ("rank", "host", "found", "GPU", "verdict")
    assert all(len(row.cells) == 5 for row in found.rows)


def test_the_proof_has_no_column_for_gpus_that_no_rank_told_of() -> None:
    items = [item | {"gpus": ""} for item in reports(EXACT)]
    found = run_facts.proof_table(verdict_on(items, replace(EXACT, on_cpu=True)))
    assert found.titles == ("rank", "local", "host", "planned", "found", "verdict")
    assert {len(row.cells) for row in found.rows} == {6}


def test_the_parts_of_a_step_add_up_and_what_lies_within_them_is_said_apart() -> None:
    shares = (0.0, 0.98, 0.01, 0.15, 0.1)
    told = Throughput(parts=tuple(zip(PARTS, shares, strict=True)))
    rows = dict(run_facts.metrics(Summary(9, 0.5, 812.0, None, 12.0, 2, 64, told), 0))
    adding, _, within = rows["a step's time"].partition("; ")
    assert adding == "data 0 %, forward and backward 98 %, optimizer 1 %"
    assert within == (
        "the backward pass includes: exchanging gradients 15 %, of which waiting for gradients 10 %"
    )
