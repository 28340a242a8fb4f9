"""A run as columns: what is read must be what a run can have."""

import json

import pytest

from lumitui.app.history.rows.run_row import from_row, to_row
from lumitui.remote.site.errors import HistoryError
from tests.support.jobs.made_runs import a_run


def test_a_run_comes_back_from_its_row() -> None:
    run = a_run(log_sizes={1: 10}, rc=0, binding="[]")
    assert from_row(to_row(run)) == run


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("created", "soon", "created: Input should be a valid number"),
        ("note", b"bytes", "note: Input should be a valid string"),
        ("attempt", "1", "attempt: Input should be a valid integer"),
        ("branch", b"bytes", "provenance.branch: Input should be a valid string"),
        ("layout", "{}", "layout.nodes: Field required"),
        ("price", None, "price: "),
        ("spec", "{", "spec: Invalid JSON"),
        ("spec", "[]", "spec: Input should be an object"),
        ("spec", '{"time": "1:00:00"}', "spec.partition: "),
        ("layout", "7", "layout: "),
        ("log_sizes", '{"1": "2"}', "log_sizes.1: "),
        ("log_sizes", '{"first": 1}', "log_sizes.first"),
        ("state", "DREAMING", "'DREAMING' is not a valid State"),
    ],
)
def test_a_column_of_another_kind_is_refused_by_its_name(
    name: str, value: object, complaint: str
) -> None:
    with pytest.raises(ValueError) as caught:
        from_row({**to_row(a_run()), name: value})
    assert str(caught.value).startswith(complaint)


def test_a_list_shows_the_run_of_a_later_version_until_all_of_its_job_file_is_asked() -> None:
    row = to_row(a_run("later-1"))
    row["spec"] = json.dumps({"partition": "gpu", "time": "1:00:00", "strategy": "tomorrow"})
    run = from_row(row, late=True)
    assert (run.brief.partition, run.brief.time, run.brief.account) == ("gpu", "1:00:00", "none")
    with pytest.raises(HistoryError, match=r"run later-1 .* another version .* spec\.name: "):
        assert run.spec
    with pytest.raises(ValueError, match=r"spec\.name: "):
        from_row(row)


def test_a_missing_column_is_named() -> None:
    row = to_row(a_run())
    del row["note"]
    with pytest.raises(ValueError, match="the column 'note' is missing"):
        from_row(row)
