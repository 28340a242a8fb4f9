"""A run as a row of the history, and as the record in its folder on the site."""

import json
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.history.kept_spec import Brief
from lumitui.app.history.rows.run_record import REBUILT, record_text, run_of
from lumitui.app.history.rows.run_row import from_row, to_row
from lumitui.app.history.run import Provenance, Run
from lumitui.app.job.spec import JobSpec
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import HistoryError
from tests.support.jobs.made_runs import SPEC, a_run
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


ROOT = "/scratch/me/project"


def made(**changes: object) -> Run:
    return a_run("vit-tiny-000001", root=ROOT, **changes)


def folder_of(run: Run) -> str:
    return f"{ROOT}/runs/{run.id}"


def read(run: Run, **changes: object) -> Run:
    said = json.loads(record_text(run)) | changes
    return run_of(json.dumps(said).encode(), folder_of(run))


def test_a_run_comes_back_from_its_record() -> None:
    run = made(parent="vit-tiny-000000", resumed_from="vit-tiny-000000", snapshot="ab12",
               machinery="begin() { :; }\n", probe="exit 0\n")  # fmt: skip
    expected = replace(
        run,
        folder=folder_of(run),
        provenance=Provenance("abc123", "main", "", True),
        state=State.UNKNOWN,
        reason=REBUILT,
    )
    assert read(run) == expected


def test_what_may_be_missing_may_be_missing() -> None:
    run = made(global_batch=None, deepspeed_config=None, job_file=None,
               provenance=Provenance(None, None, "", False))  # fmt: skip
    found = read(run)
    assert (found.snapshot, found.parent, found.job_file) == (None, None, None)
    assert found.provenance == run.provenance


@given(st.text(), st.text())
def test_any_text_is_kept(script: str, project: str) -> None:
    run = made(script=script, project=project)
    assert (read(run).script, read(run).project) == (script, project)


def test_a_name_that_is_not_utf8_spoils_no_record() -> None:
    assert read(made(project="/home/\udcff")).project == "/home/?"


def test_an_older_record_has_nothing_beside_its_script() -> None:
    said = json.loads(record_text(made(machinery="m", probe="p")))
    for name in ("machinery", "probe"):
        del said[name]
    found = run_of(json.dumps(said).encode(), folder_of(made()))
    assert (found.machinery, found.probe) == (None, None)
    assert found.files == {"job.sh": found.script}


@pytest.mark.parametrize(
    ("note", "back"), [("a try", ""), ("a #agents try", ""), ("grid a-1: 2 #agent", "#agent")]
)
def test_that_an_agent_sent_it_is_all_that_a_record_keeps_of_a_note(note: str, back: str) -> None:
    assert read(made(note=note)).note == back
    assert "a try" not in record_text(made(note=note))


def test_a_later_version_may_say_more() -> None:
    assert read(made(), colour="blue").id == "vit-tiny-000001"


def test_neither_the_patch_nor_a_secret_is_in_it() -> None:
    spec = SPEC.model_copy(update={"secrets": ("WANDB_API_KEY",)})
    text = record_text(made(spec=spec))
    assert "+a patch" not in text
    assert json.loads(text)["spec"]["secrets"] == ["WANDB_API_KEY"]


@pytest.mark.parametrize(
    "root", ["/", "/home/me", "/scratch/me", "/scratch/me/..", "/scratch/me/", "relative", ""]
)
def test_a_root_outside_the_work_root_is_not_believed(root: str) -> None:
    """`prune` removes old code below a run's root."""
    assert read(made(), root=root).root == ROOT


def test_the_root_of_another_project_beside_it_is_kept() -> None:
    assert read(made(), root="/scratch/me/other").root == "/scratch/me/other"


def layout(**changes: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(record_text(made()))["layout"]
    return found | changes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": 2}, "a newer lumitui wrote it"),
        ({"format": 0}, "format"),
        ({"format": "two"}, "format"),
        ({"id": "other-000001"}, "other-000001"),
        ({"id": "../../etc"}, "id"),
        ({"spec": {"name": "x"}}, "spec"),
        ({"spec": None}, "spec"),
        ({"token": "$(reboot)"}, "token"),
        ({"snapshot": "../../.."}, "snapshot"),
        ({"created": "yesterday"}, "created"),
        ({"created": 1e300}, "created"),
        ({"global_batch": 10**30}, "global_batch"),
        ({"layout": layout(nodes=10**9)}, "the layout"),
        ({"layout": layout(ranks_per_node=10**9)}, "the layout"),
        ({"layout": layout(masks=["0x1"] * 5000)}, "the layout"),
        ({"layout": layout(nodes="two")}, "layout.nodes"),
        ({"layout": []}, "layout"),
        ({"price": {"amount": 1}}, "price"),
        ({"script": None}, "script"),
    ],
)
def test_what_is_no_record_is_refused_in_a_line(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        read(made(), **changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"id": NaN}',
        b"[" * 100_000,
        b'{"a": 1' + b"0" * 9999,
    ],
)
def test_what_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        run_of(text, folder_of(made()))


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(text: bytes) -> None:
    with pytest.raises(ValueError):
        run_of(text, folder_of(made()))


def test_a_lone_surrogate_is_refused() -> None:
    text = record_text(made()).replace("#!/bin/bash", "\\ud800")
    with pytest.raises(ValueError, match="surrogates"):
        run_of(text.encode(), folder_of(made()))
