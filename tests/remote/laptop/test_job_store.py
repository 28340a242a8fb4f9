"""The jobs of the embedded site: their ids, what cancels them, and their processes."""

import contextlib
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from lumitui.remote.laptop import process_tree
from lumitui.remote.scheduler.scheduler_protocol import State, Watch
from lumitui.remote.site.errors import RefusedError
from tests.support.servers.embedded_site import EmbeddedSite, until


def test_ids_are_unique_however_many_submit_at_once(site: EmbeddedSite) -> None:
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: site.submit("true"), range(3)))
    assert len({answer.job_id for _, answer in found}) == 3
    for run, answer in found:
        assert site.end(run, answer).state is State.DONE


def test_an_id_whose_port_is_taken_is_left_out(site: EmbeddedSite) -> None:
    run, answer = site.submit("true")
    site.end(run, answer)
    number = int(answer.job_id or "0")
    with socket.socket() as other:
        while True:
            number += 1
            with contextlib.suppress(OSError):  # taken already: not the next id either
                other.bind(("127.0.0.1", 10000 + number))
                break
        other.listen()
        assert int(site.submit("true")[1].job_id or "0") > number


def test_numbers_of_removed_runs_are_forgotten_but_for_the_last(site: EmbeddedSite) -> None:
    made = []
    for _ in range(3):
        run, answer = site.submit("true")
        site.end(run, answer)
        until(lambda: not list((site.root / "state").glob("lumitui/jobs/*/door")))
        made.append(int(answer.job_id or "0"))
        subprocess.run(["rm", "-r", str(run)], check=True)
    jobs = sorted(int(entry.name) for entry in (site.root / "state/lumitui/jobs").iterdir())
    assert jobs == made[-2:]
    assert int(site.submit("true")[1].job_id or "0") > made[-1]


def test_cancel_of_what_is_no_job_is_refused(site: EmbeddedSite) -> None:
    with pytest.raises(RefusedError, match="Invalid job id"):
        site.process.cancel([Watch("run", "/nowhere", "../5")])
    assert set(site.process.cancel([Watch("run", "/nowhere", "5")])) == {"run"}


def test_a_job_is_cancelled_where_the_folder_of_jobs_is_another_one_by_now(
    site: EmbeddedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record, which has its id and its name, says where its supervisor is."""
    run, answer = site.submit("sleep 60")
    with monkeypatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(site.root / "another"))
        watch = Watch(run.name, str(run), answer.job_id or "")
        assert set(site.process.cancel([replace(watch, run="another")])) == {"another"}
        assert site.process.cancel([watch]) == {}
    assert site.end(run, answer).word == "CANCELLED"


def test_the_process_table_needs_no_ps(monkeypatch: pytest.MonkeyPatch) -> None:
    with_ps = process_tree.processes()
    assert with_ps[os.getpid()] == os.getppid()
    if sys.platform == "linux":
        monkeypatch.setenv("PATH", "/nonexistent")
        without = process_tree.processes()
        assert without[os.getpid()] == os.getppid()
        assert len(set(with_ps) ^ set(without)) < len(with_ps) / 2


def test_descendants() -> None:
    parents = {2: 1, 3: 2, 4: 3, 5: 1, 6: 5}
    assert process_tree.below({2, 6}, parents) == {3, 4}
