"""What is gathered about a run's end for the diagnosis: log, last event, the code that raised."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from lumitui.app.follow.ending import code_around, ending_of
from lumitui.app.follow.refresh import Watcher
from lumitui.app.history.history import History
from lumitui.app.knowledge.failure.diagnose import STOPPED_EARLY
from lumitui.app.launch.send.code import project_files
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.transport.local import Local
from tests.support.jobs.made_runs import SPEC, a_run


@pytest.mark.parametrize(("event", "rc"), [("stop", STOPPED_EARLY), ("step", 1)])
def test_a_log_and_a_last_event_add_to_what_history_knows(
    tmp_path: Path, event: str, rc: int
) -> None:
    history, local = History(tmp_path / "history.db"), Local()
    there = SimpleNamespace(transport=local)
    site = SimpleNamespace(node=SimpleNamespace(memory_gib=480))
    sites = SimpleNamespace(load=lambda name: site)
    watcher = cast(
        Watcher, SimpleNamespace(history=history, sites=sites, connection=lambda name: there)
    )
    run = a_run(folder=str(tmp_path), state=State.FAILED, job_id="7", rc=1, failed_rank=3)
    history.begin(run)
    history.metrics.add(run.id, [b'{"event": "step"}', f'{{"event": "{event}"}}'.encode()])
    try:
        assert ending_of(watcher, run).log == "", "no log yet is no error"
        (tmp_path / "attempt-1.out").write_bytes(b"boom \xff\n")
        ending = ending_of(watcher, run)
    finally:
        local.close()
        history.close()
    assert (ending.log, ending.rc, ending.failed_rank) == ("boom \ufffd\n", rc, 3)
    assert (ending.world_size, ending.node_gib) == (run.layout.world_size, 480)


def test_no_site_is_asked_about_a_run_that_never_had_a_job(tmp_path: Path) -> None:
    history = History(tmp_path / "history.db")
    watcher = cast(Watcher, SimpleNamespace(history=history))
    assert ending_of(watcher, a_run(state=State.NOT_SENT, job_id=None)).log == ""
    history.close()


CODE = "import torch\nlogin(key='Xk29fjQp')\ndef step(x):\n    return x / 0\n\n\nprint('end')\n"


def test_the_lines_around_are_those_that_were_sent(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    train = tmp_path / "src" / "train.py"
    train.write_text(CODE)
    spec = SPEC.model_copy(update={"trainer": None, "script": "src/train.py"})
    sent = project_files.collect(spec, tmp_path, tmp_path / "hashes").manifest
    run = a_run(spec=spec, project=str(tmp_path), snapshot=sent.id)
    found = code_around(run, "train.py:4 (step)", sent.text)
    assert found is not None and found.path == "src/train.py"
    numbers = [row[:6] for row in found.rows]
    assert numbers == ["     2", "     3", ">    4", "     5", "     6"]
    assert found.rows[2] == ">    4      return x / 0"
    assert found.rows[0] == "     2  login(key=…)", "users paste it into tickets"
    first = code_around(run, "train.py:1", sent.text)
    assert first is not None and first.rows[0] == ">    1  import torch"
    for place in ("", "nowhere", "train.py:99", "other.py:1", "<string>:1"):
        assert code_around(run, place, sent.text) is None
    assert code_around(run, "train.py:4", None) is None
    assert code_around(a_run(project=str(tmp_path)), "train.py:4", sent.text) is None
    train.write_text(f"# moved down\n{CODE}")
    assert code_around(run, "train.py:4", sent.text) is None, "it is not what ran any more"


@pytest.mark.parametrize("data", [b"\xff" * 9, b""])
def test_of_two_files_of_a_name_and_of_what_is_no_text_nothing_is_shown(
    tmp_path: Path, data: bytes
) -> None:
    for name in ("a", "b") if not data else ("a",):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_bytes(data or CODE.encode())
    sent = project_files.collect(SPEC, tmp_path, tmp_path / "hashes").manifest
    run = a_run(project=str(tmp_path), snapshot=sent.id)
    assert code_around(run, "train.py:1", sent.text) is None
