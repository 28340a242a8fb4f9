"""A run as columns: what is read must be what a run can have."""

import json
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from lumitui.app.history.kept_spec import Brief
from lumitui.app.history.rows.run_row import from_row, to_row
from lumitui.app.job.spec import JobSpec
from lumitui.remote.site.errors import HistoryError
from tests.support.jobs.made_runs import a_run
from tests.support.program.child import child


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
        ("spec", "[]", "spec: Input should be a valid object"),
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


ADD_FIELDS = """
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated
from lumitui.app.history import run

@dataclass(frozen=True)
class Run(run.Run):
    colour: str = "blue"
    tries: int | None = None
    poem: Annotated[str, run.Text()] = ""

run.Run = Run
from lumitui.app.history.history import History
from tests.support.jobs.made_runs import a_run
history = History(Path(sys.argv[1]))
made = a_run(colour="red", poem="long")
history.begin(made)
history.update(made.id, tries=3)
assert history.get(made.id) == replace(made, tries=3), history.get(made.id)
assert [(run.colour, run.tries, run.poem) for run in history.page()] == [("red", 3, "")]
history.close()
"""


def test_a_field_of_a_run_is_a_column_and_nothing_else_lists_it(tmp_path: Path) -> None:
    added = child(ADD_FIELDS, str(tmp_path / "history.db"))
    _, error = added.communicate(timeout=30)
    assert (added.returncode, error) == (0, "")


def test_what_lists_show_of_a_job_file_has_the_defaults_of_its_keys() -> None:
    for item in fields(Brief):
        key = JobSpec.model_fields[item.name]
        assert key.is_required() if item.default is MISSING else key.default == item.default
