"""A run as columns: what is read must be what a run can have."""

import pytest

from lumitui.app.history.run_row import from_row, to_row
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


def test_a_missing_column_is_named() -> None:
    row = to_row(a_run())
    del row["note"]
    with pytest.raises(ValueError, match="the column 'note' is missing"):
        from_row(row)
