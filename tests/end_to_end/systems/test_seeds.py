"""Ours does what each job script of the documents does, but for what the table says."""

import pytest

from tests.support.systems.differences import differences
from tests.support.systems.launch_line import parts_of
from tests.support.systems.page import PAGE, page, scripts_of
from tests.support.systems.rows import Row, table

ROWS = table().rows


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_ours_differs_from_the_script_in_what_the_table_lists_and_in_nothing_else(
    row: Row,
) -> None:
    found = differences(row, table().launch_of(row).script)
    listed = table().expected(row)
    unlisted = {key: both for key, both in found.items() if key not in listed}
    assert not unlisted, f"these differ (theirs, ours) and have no reason: {unlisted}"
    assert not listed - set(found), "these are listed and do not differ"


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_ours_starts_as_many_ranks_as_the_script(row: Row) -> None:
    layout = table().launch_of(row).layout
    assert layout.ranks_per_node == row.ranks
    assert layout.nodes == int(row.asks.get("nodes", row.nodes))


def test_each_of_the_five_documents_has_its_rows() -> None:
    groups = table().groups
    documents = {groups[row.group].document for row in ROWS} - {""}
    assert documents == {"000", "001", "002", "003", "004"}
    assert {row.group for row in ROWS} == set(groups)


def test_the_page_of_the_last_run_has_the_rows_of_the_table() -> None:
    assert scripts_of(PAGE.read_text(encoding="utf-8")) == [row.name for row in ROWS]


def test_a_row_that_was_not_run_again_keeps_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.systems.page.kept", lambda row: None)
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text
    other = text.replace("| 1 x 8 |", "| 1 x 9 |", 1)  # the job file has changed since
    assert "| 1 x 8 | not run |  |" in page(other)


def test_one_row_of_each_site_that_still_runs_jobs_is_also_run_by_make_test() -> None:
    sites = [table().site_of(row) for row in ROWS if row.ci]
    assert sorted(sites) == ["karolina", "mn5", "roihu"]


@pytest.mark.parametrize(
    ("planted", "key"),
    [
        (("--cpus-per-task=40", "--cpus-per-task=39"), "--cpus-per-task"),
        (("--rdzv_backend=c10d", "--rdzv_backend=static"), "torchrun --rdzv_backend"),
        (("--label", ""), "srun --label"),
        (("-m torch.distributed.run", ""), "launcher"),
    ],
)
def test_a_planted_difference_is_found(planted: tuple[str, str], key: str) -> None:
    row = next(row for row in ROWS if row.name == "csc-2024/run-ddp-gpu8.sh")
    script = table().launch_of(row).script
    before = set(differences(row, script))
    changed = script.replace(*planted)
    assert changed != script
    assert key in before ^ set(differences(row, changed))


def test_the_ways_of_writing_a_launch_line_are_the_same_to_the_table() -> None:
    plain = parts_of("srun torchrun --nnodes=$SLURM_NNODES --nproc-per-node=4 x.py")
    quoted = parts_of(
        'time srun python3 -m torch.distributed.run --nnodes="${SLURM_NNODES}" \\\n'
        "  --nproc_per_node 4 x.py --epochs=2"
    )
    in_shell = parts_of(r'srun bash -c "torchrun --nnodes=\$SLURM_NNODES --nproc_per_node=4 x.py"')
    assert plain == quoted == in_shell
    tasks = parts_of("srun bash -c 'export RANK=$SLURM_PROCID; exec \"$@\"' rank python x.py")
    assert tasks == parts_of('srun bash -c "RANK=\\$SLURM_PROCID python x.py"')
    assert tasks["task RANK"] == "$SLURM_PROCID"
