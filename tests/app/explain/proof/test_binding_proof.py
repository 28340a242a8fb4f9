"""The verdict on what ranks report: proved, differing, unbound or not measured, and why."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumitui.app.explain.proof.binding_proof import verdict
from lumitui.app.explain.run_facts import differences, proof_table
from lumitui.app.job.launch import SHARED, RankLayout
from tests.support.jobs.binding.binding_reports import ALL_GPUS, EXACT, Report, reports, verdict_on

NUMA = replace(EXACT, planned_cores=("49-63", "49-63", "17-31", "17-31", "1-15", "1-15", "33-47",
                                     "33-47"), masks=(), exact=False)  # fmt: skip


def test_ranks_on_their_cores_are_proved() -> None:
    found = verdict_on(reports(EXACT))
    assert (found.kind, found.measured, found.expected) == ("proved", 16, 16)
    assert "16 ranks" in found.sentence and "2 nodes" in found.sentence
    assert all(row.ok and row.planned == row.found for row in found.rows)


def test_the_order_of_reports_and_of_ranges_does_not_matter() -> None:
    items = reports(EXACT)[::-1]
    items[0]["cores"] = "44-47,41,42,43"
    assert verdict_on(items).kind == "proved"
    assert [row.rank for row in verdict_on(items).rows] == list(range(16))


@pytest.mark.parametrize(
    ("cores", "how"),
    [
        ("1-7,65-71", "planned 1-7 (and their second hardware threads)"),
        ("1-7,9-15", "planned 1-7."),
        ("1-6", "planned 1-7 (only 6 of 7)"),
        ("9-15", "planned 1-7 (local rank 5's)"),
    ],
)
def test_how_cores_differ_has_a_name(cores: str, how: str) -> None:
    items = reports(EXACT)
    items[4]["cores"] = cores
    assert how in verdict_on(items, replace(EXACT, masks=("0x00fe000000000000",) * 8)).sentence


def test_threads_that_slurm_took_for_cores_are_named_with_what_to_write() -> None:
    every = replace(EXACT, masks=(), planned_cores=("1-63",) * 8)
    items = [item | {"cores": "1-63"} for item in reports(every)]
    items[4]["cores"] = "1-31,65-95"
    assert "set `sbatch_arguments: [--hint=nomultithread]`" in verdict_on(items, every).sentence
    items[4]["cores"] = "1-31,70-95"
    assert "nomultithread" not in verdict_on(items, every).sentence


def test_a_rank_with_all_cores_is_found_whether_exact_or_within() -> None:
    for layout in (EXACT, NUMA):
        items = reports(layout)
        items[9]["cores"] = "0-63"
        assert [row.rank for row in verdict_on(items, layout).rows if not row.ok] == [9]


def test_ranks_dealt_over_hosts_in_turn_are_found() -> None:
    items = reports(EXACT)
    for item in items:
        rank = int(str(item["rank"]))
        item["host"] = f"nid{5001 + rank % 2:06d}"
        item["local_rank"] = rank // 2
    assert verdict_on(items).kind == "differs"


def test_two_nodes_ranks_on_one_host_are_found() -> None:
    items = [item | {"host": "nid005001"} for item in reports(EXACT)]
    found = verdict_on(items)
    assert found.kind == "differs" and "already has 8" in found.sentence


def test_a_rank_on_another_host_than_its_node_is_found() -> None:
    items = reports(EXACT)
    items[2]["host"] = "nid005009"
    assert [row.rank for row in verdict_on(items).rows if not row.ok] == [2]


def test_within_a_domain_ranks_may_have_some_of_its_cores_but_not_the_same() -> None:
    items = reports(NUMA)
    assert verdict_on(items, NUMA).kind == "proved"
    items[0]["cores"] = "49-52"
    assert verdict_on(items, NUMA).kind == "proved"
    items[1]["cores"] = "52-63"
    found = verdict_on(items, NUMA)
    assert found.kind == "differs" and "shares cores with rank 0" in found.sentence


@pytest.mark.parametrize(
    ("gpus", "wrong"),
    [
        ([""] * 8, []),
        ([ALL_GPUS] * 8, []),
        ([str(local) for local in range(8)], []),
        (["0"] * 8, [1, 2, 3, 4, 5, 6, 7]),
        (["4,5,6,7,8,9,10,11"] * 8, []),
        ([ALL_GPUS] * 7 + ["0"], [7]),
        (["0,0,0,0,0,0,0,0"] * 8, [1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_each_rank_must_see_its_gpu(gpus: list[str], wrong: list[int]) -> None:
    layout = replace(EXACT, nodes=1)
    items = [item | {"gpus": gpus[n]} for n, item in enumerate(reports(layout))]
    assert [row.rank for row in verdict_on(items, layout).rows if not row.ok] == wrong


def test_the_same_report_twice_is_one_and_two_different_ones_are_wrong() -> None:
    items = reports(EXACT)
    assert verdict_on([*items, items[4]]).kind == "proved"
    assert verdict_on([*items, items[4]]).measured == 16
    found = verdict_on([*items, items[4] | {"cores": "0"}])
    assert found.kind == "differs" and "two processes" in found.sentence


def test_a_wrong_rank_counts_even_when_others_are_missing() -> None:
    items = reports(EXACT)[:3]
    items[1]["cores"] = "0"
    assert verdict_on(items).kind == "differs"


def test_a_rank_too_many_is_found() -> None:
    extra = reports(EXACT)[0] | {"rank": 16, "host": "nid005003"}
    assert "only 16 ranks" in verdict_on([*reports(EXACT), extra]).sentence


def test_ranks_without_taskset_are_not_measured() -> None:
    found = verdict_on([item | {"cores": ""} for item in reports(EXACT)])
    assert (found.kind, found.measured) == ("not measured", 0)
    assert "taskset" in found.sentence


def test_beyond_16_nodes_the_first_and_the_last_are_enough() -> None:
    layout = replace(EXACT, nodes=17)
    found = verdict_on(reports(layout, [0, 16]), layout)
    assert (found.kind, found.measured, found.expected) == ("proved", 16, 16)
    assert found.sentence == (
        "All 16 ranks measured on 2 nodes have the planned cores. The probe measured 2 of "
        "the run's 17 nodes, the first and the last; the cores of the other 15 are unknown."
    )
    # What differs there is said of these nodes, too; and a run that was measured whole is whole.
    items = reports(layout, [0, 16])
    items[3]["cores"] = "1-7"
    assert "2 of the run's 17 nodes" in verdict_on(items, layout).sentence
    assert "The probe measured" not in verdict_on(reports(layout), layout).sentence


def test_a_rank_without_cores_is_not_counted_as_measured() -> None:
    layout = replace(EXACT, nodes=17)
    items = reports(layout, [0, 16]) + [item | {"cores": ""} for item in reports(layout, [7])]
    found = verdict_on(items, layout)
    assert found.kind == "proved"
    assert found.sentence.startswith("All 16 ranks measured on 2 nodes ")
    assert verdict_on(reports(layout, [0]), layout).kind == "not measured"
    assert verdict_on(reports(EXACT), replace(EXACT, nodes=16)).expected == 128


def test_without_a_plan_nothing_is_proved_but_a_wrong_rank_is_still_reported() -> None:
    layout = replace(EXACT, planned_cores=(), masks=())
    items = [item | {"host": "laptop"} for item in reports(EXACT)]
    assert verdict_on(items, layout).kind == "not measured"
    items[1]["local_rank"] = 0
    assert verdict_on(items, layout).kind == "differs"


def test_what_has_not_come_yet_is_pending_until_the_job_ends() -> None:
    assert verdict(None, EXACT).kind == "pending"
    assert verdict(None, EXACT, ended=True).kind == "not measured"
    assert verdict("[]", EXACT).kind == "not measured"


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "3", '{"rank": 0}', "[1]", '[{"rank": "0", "local_rank": 0}]',
     '[{"rank": true, "local_rank": 0}]', "[" * 100_000],
)  # fmt: skip
def test_a_broken_file_is_not_measured(text: str) -> None:
    found = verdict(text, EXACT)
    assert found.kind == "not measured" and "cannot be read" in found.sentence


@pytest.mark.parametrize("cores", ["7-1", "0x1", "1-", "1--3", "9" * 5000, "none"])
def test_cores_that_cannot_be_read_are_wrong(cores: str) -> None:
    items = reports(EXACT)
    items[0]["cores"] = cores
    assert [row.rank for row in verdict_on(items).rows if not row.ok] == [0]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
)
_report = st.fixed_dictionaries(
    {"rank": st.integers(-2, 20), "local_rank": st.integers(-2, 9)},
    optional={"host": st.text(max_size=5), "cores": st.text("0123456789,-", max_size=8) | _json,
              "gpus": st.text("0123,", max_size=8) | _json},
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    text=st.text() | _json.map(json.dumps) | st.lists(_report, max_size=20).map(json.dumps),
    layout=st.sampled_from(
        [EXACT, NUMA, replace(EXACT, planned_cores=()), replace(EXACT, nodes=99)]
    ),
)
def test_garbage_never_raises_and_is_never_proved(text: str, layout: RankLayout) -> None:
    found = verdict(text, layout)
    assert found.kind in ("differs", "not measured")
    assert len(proof_table(found).rows) == len(found.rows)
    assert len(differences(found)) <= 11


def test_a_run_says_why_no_cores_were_promised() -> None:
    layout = replace(EXACT, planned_cores=(), masks=(), unplanned=SHARED)
    found = verdict_on(reports(EXACT), layout)
    assert found.kind == "not measured" and SHARED in found.sentence
    assert found.sentence.endswith("For a proof, set `exclusive: true`, then resubmit.")


def test_ranks_that_share_their_nodes_cores_are_unbound() -> None:
    layout = replace(EXACT, planned_cores=("0-63",) * 8, masks=())
    found = verdict_on([item | {"cores": "0-63"} for item in reports(EXACT)], layout)
    assert (found.kind, found.measured) == ("unbound", 16)
    assert "nothing binds a rank" in found.sentence


@pytest.mark.parametrize(
    ("probe", "says"),
    [
        ({"probe": 124, "said": ""}, "timed out."),
        ({"probe": 3, "said": "srun:  error"}, "ended with code 3: srun: error."),
    ],
)
def test_how_the_probe_ended_is_reported(probe: Report, says: str) -> None:
    found = verdict_on([probe])
    assert (found.kind, found.measured) == ("not measured", 0) and says in found.sentence
    some = verdict_on([*reports(EXACT)[:-2], probe])
    assert "Ranks 14-15 did not report." in some.sentence and says in some.sentence


def test_one_broken_line_costs_one_rank() -> None:
    lines = [json.dumps(item) for item in reports(EXACT)]
    lines[3] = lines[3][:20]
    found = verdict("[\n" + ",\n".join(lines) + "\n]", EXACT)
    assert (found.kind, found.measured) == ("not measured", 15)
    assert "Rank 3 did not report, and 1 report cannot be read." in found.sentence


def test_a_run_that_never_had_a_job_says_so() -> None:
    for proof in ("on", "off"):
        found = verdict(None, EXACT, ended=True, proof=proof, job=False)
        assert found.kind == "not measured"
        assert found.sentence == "There was no job, so nothing was measured."
    assert verdict(None, EXACT, job=False).kind == "pending"
