"""A grid becomes one ordinary run for each combination of its values."""

import re
from pathlib import Path

import pytest

from lumitui.app.job.grid import MOST_RUNS, cells
from lumitui.app.job.spec import JobSpec, changed, parse_job
from lumitui.remote.site.errors import InputError
from tests.support.jobs.made_runs import SPEC

JOB = """name: vit
site: lumi
partition: standard-g
time: "01:00:00"
script: train.py
args: [--lr, "0.1", --epochs, "3"]
grid:
"""


def grid(lines: str) -> JobSpec:
    return parse_job(JOB + lines, "job.yaml")


def test_every_combination_is_a_job_of_its_own_name_in_the_order_of_the_lists() -> None:
    found = cells(grid("  lr: [1e-3, 3e-4]\n  nodes: [1, 2]\n  env.SEED: [7]\n"))
    assert [cell.words for cell in found] == [
        "--lr=1e-3 nodes=1 env.SEED=7",
        "--lr=1e-3 nodes=2 env.SEED=7",
        "--lr=3e-4 nodes=1 env.SEED=7",
        "--lr=3e-4 nodes=2 env.SEED=7",
    ]
    last = found[-1].spec
    assert last.name == "vit-lr3e-4-nodes2-SEED7" and not last.grid
    assert last.args == ("--lr", "3e-4", "--epochs", "3")
    assert last.nodes == 2 and last.env == {"SEED": "7"}
    assert len({cell.spec.name for cell in found}) == 4


def test_without_a_grid_the_job_is_its_only_run() -> None:
    spec = parse_job(JOB.removesuffix("grid:\n"), "job.yaml")
    assert [cell.spec for cell in cells(spec)] == [spec]


@pytest.mark.parametrize(
    ("key", "argument"),
    [("seed", "--seed"), ("batch_size", "--batch-size"), ("weight-decay", "--weight-decay"),
     ("model.depth", "--model.depth"), ("gamma", "--gamma")],
)  # fmt: skip
def test_a_key_that_is_none_of_the_job_file_is_an_argument_by_its_name(
    key: str, argument: str
) -> None:
    text = JOB.replace('--epochs, "3"', '--batch-size, "32"')
    found = cells(parse_job(f"{text}  {key}: [1, 2]\n", "job.yaml"))
    assert [cell.words for cell in found] == [f"{argument}=1", f"{argument}=2"]


def test_the_grid_of_the_page_is_composed() -> None:
    docs = Path(__file__).parents[3] / "docs"
    first, page = (docs / "first_job.md").read_text("utf-8"), (docs / "sweep.md").read_text("utf-8")
    (job, *_), grids = (
        re.findall(r"```yaml\n(.*?)```", first, re.DOTALL), re.findall(r"grid: \{.*?\}", page)
    )  # fmt: skip
    text = "\n".join(line.strip() for line in job.splitlines())
    assert grids
    for each in grids:
        assert len(cells(parse_job(f"{text}\n{each}\n", "job.yaml"))) > 1


def test_a_long_name_is_numbered() -> None:
    spec = grid(f"  --note: [{'x' * 95}a, {'x' * 95}b]\n")
    assert [cell.spec.name for cell in cells(spec)] == ["vit-1", "vit-2"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("  node: [1, 2]\n", "Did you mean `nodes`"),
        ("  partitions: [a, b]\n", "Did you mean `partition`"),
        ("  lr rate: [1]\n", "cannot vary"),
        ("  nodes: [0]\n", "nodes"),
        (f"  --a: {[*range(101)]}\n", f"at most {MOST_RUNS}"),
        ("  name: [a]\n", "name"),
    ],
)
def test_what_is_no_grid_is_refused(lines: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        cells(grid(lines))
    assert words in str(refused.value)


def test_an_empty_list_is_a_mistake_in_the_file() -> None:
    with pytest.raises(InputError, match="grid"):
        grid("  lr: []\n")


def test_python_may_give_numbers_where_a_file_has_text() -> None:
    changes: dict[str, object] = {
        "grid": {"--lr": [0.1, 1]}, "env": {"A": 2, "B": True}, "args": [0.5]
    }  # fmt: skip
    spec = changed(SPEC, changes, "`changes`")
    assert spec.grid == {"--lr": ("0.1", "1")}
    assert (spec.env, spec.args) == ({"A": "2", "B": "true"}, ("0.5",))


def test_a_list_with_a_wrong_entry_is_not_called_empty() -> None:
    with pytest.raises(InputError) as raised:
        changed(SPEC, {"grid": {"--lr": [None]}}, "`changes`")
    assert "an empty value is not text" in raised.value.message
    assert "it is empty" not in raised.value.message
    with pytest.raises(InputError, match="it is empty"):
        changed(SPEC, {"grid": {"--lr": []}}, "`changes`")
