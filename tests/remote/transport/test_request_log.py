"""What a site was asked is noted: the purpose, the bytes, the end; never a script or an answer."""

from collections.abc import Generator

import pytest

from lumitui.app.runs import Runs
from lumitui.remote.site.errors import LinkLost
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.request_log import MOST_REQUESTS, Logged, RequestLog, purpose


def test_each_request_is_noted_with_its_purpose_and_bytes() -> None:
    log = RequestLog()
    logged = Logged(Local(), log)
    with purpose("send"):
        done = logged.run("cat; echo SECRET >&2; exit 3", stdin=[b"12345", b"", b"678"])
    assert (done.code, done.out) == (3, b"12345678")
    (request,) = log.latest()
    assert (request.kind, request.result) == ("send", "exit 3")
    assert request.up == len("cat; echo SECRET >&2; exit 3") + 8
    assert request.down == len(b"12345678") + len(b"SECRET\n") and request.seconds > 0
    assert "SECRET" not in repr(log.latest())
    with pytest.raises(LinkLost):
        logged.run("sleep 30", timeout=0.2)
    assert log.latest()[0].result == "link lost" and log.latest()[0].kind == "other"


def test_a_stream_is_noted_while_it_runs_and_when_it_ends() -> None:
    log = RequestLog()
    logged = Logged(Local(), log)
    with purpose("log"):
        chunks = logged.stream("echo one; cat >/dev/null", stop=lambda: False)
    assert isinstance(chunks, Generator)
    while not log.latest() or not log.latest()[0].down:
        next(chunks)
    (request,) = log.latest()
    assert (request.kind, request.down, request.result) == ("log", 4, "under way")
    chunks.close()
    assert log.latest()[0].result == "stopped"
    assert b"".join(logged.stream("echo two", stop=lambda: False)) == b"two\n"
    assert log.latest()[0].result == "ok"


def test_the_oldest_go_first() -> None:
    log = RequestLog()
    for number in range(MOST_REQUESTS + 10):
        log.note(log.begin(str(number)), 1.0, (1, 2), "ok")
    kinds = [request.kind for request in log.latest()]
    assert len(kinds) == MOST_REQUESTS and kinds[0] == str(MOST_REQUESTS + 9)
    log.note(1, 1.0, (1, 2), "too late")


def test_every_verb_says_what_its_requests_are_for(runs: Runs) -> None:
    assert runs.requests() == {}
    runs.doctor("laptop")
    runs.prune("laptop", dry=True)
    requests = runs.requests()["laptop"]
    assert len(requests) == runs.footprint("laptop").requests > 0
    assert {request.kind for request in requests} <= {"doctor", "prune", "tidy"}
