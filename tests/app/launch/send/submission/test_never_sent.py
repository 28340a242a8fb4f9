"""A send that ends before there can be a job: the history and the message say so, and why."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lumitui.app.launch.send import submit
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError, LinkLost
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.transfer.contents.content_upload import Shipped
from lumitui.remote.transfer.snapshots.snapshot_store import sync
from lumitui.remote.transport.transport import Transport
from tests.support.jobs.small_jobs import hello_job, hello_project


def test_a_file_that_changed_here_is_no_refusal_of_the_site(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = hello_project(tmp_path / "project")

    def later(
        transport: Transport,
        folder: str,
        state: Manifest,
        where: Callable[[str], Path],
        known: Manifest | None,
    ) -> Shipped:
        (project / "hello.py").write_text("other")
        return sync(transport, folder, state, where, known)

    monkeypatch.setattr(submit, "sync", later)
    job = hello_job(site="laptop", partition="local", account="none")
    with pytest.raises(InputError, match=r"'hello\.py' changed"):
        runs.send(runs.preview(job, project))
    (left,) = runs.history.page(9)
    assert left.state is State.NOT_SENT and "'hello.py' changed" in left.reason


def test_a_link_lost_before_the_submission_leaves_nothing_unknown(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: object) -> bool:
        raise LinkLost("The connection was lost.", "It is not known whether it was carried out.")

    monkeypatch.setattr(submit, "prepare", cut)
    job = hello_job(site="laptop", partition="local", account="none")
    with pytest.raises(LinkLost) as lost:
        runs.send(runs.preview(job, hello_project(tmp_path / "project")))
    assert lost.value.message == "The connection was lost. No job was submitted."
    assert lost.value.hint == "Send it again when the site answers."
    assert [run.state for run in runs.history.page(9)] == [State.NOT_SENT]
