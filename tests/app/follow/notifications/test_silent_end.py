"""A job that is killed outright cannot send its notice: the laptop that watches it does."""

from dataclasses import replace

import pytest

from lumitui.app.follow.notifications import outside
from lumitui.app.follow.notifications.silent_end import ended_silently, tell_silent_end
from lumitui.app.job.spec import changed
from lumitui.remote.site.states import State
from tests.support.jobs.made_runs import a_run

SECRET = "https://hooks.example/a-path-that-nobody-may-read"
ASKED = a_run(state=State.NODE_FAILED, job_id="7", started=1000.0, ended=4600.0)
ASKED = replace(ASKED, spec=changed(ASKED.spec, {"notify": "HOOK"}, "t"))


@pytest.mark.parametrize(
    ("changes", "silent"),
    [
        ({}, True),
        ({"state": State.FAILED}, True),
        ({"state": State.OUT_OF_MEMORY}, True),
        ({"state": State.FAILED, "rc": 3}, False),
        ({"state": State.TIMEOUT}, False),
        ({"state": State.CANCELLED}, False),
        ({"state": State.DONE, "rc": 0}, False),
        ({"started": None}, False),
        ({"spec": changed(ASKED.spec, {"notify": {"mail": "me@example.org"}}, "t")}, False),
        ({"spec": changed(ASKED.spec, {"notify": None}, "t")}, False),
    ],
)
def test_only_an_end_that_the_job_could_not_tell_is_told(
    changes: dict[str, object], silent: bool
) -> None:
    assert ended_silently(replace(ASKED, **changes)) is silent  # type: ignore[arg-type]


def test_the_line_goes_to_the_address_of_the_jobs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []

    def send(address: str, text: str, *, as_json: bool) -> str:
        sent.append((address, text, as_json))
        return "The webhook at hooks.example failed: 500." if as_json else ""

    monkeypatch.setattr(outside, "post_line", send)
    words = tell_silent_end(ASKED, {"HOOK": SECRET})
    assert sent == [
        (
            SECRET,
            f"{ASKED.id} at {ASKED.site}: node failed after 1 h 00 min; its job was killed.",
            False,
        )
    ]
    assert words.endswith("could send its notification; lumitui sent it from this machine.")
    how = {"webhook": "HOOK", "format": "json"}
    as_json = replace(ASKED, spec=changed(ASKED.spec, {"notify": how}, "t"))
    assert tell_silent_end(as_json, {"HOOK": SECRET}).endswith("hooks.example failed: 500.")


@pytest.mark.parametrize("address", ["", "http://example.org/x", "file:///etc/passwd"])
def test_an_address_that_cannot_be_used_is_said_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr(outside, "post_line", lambda *given, **named: pytest.fail("it was sent"))
    words = tell_silent_end(ASKED, {"HOOK": address})
    assert (
        "$HOOK is not set on this machine" in words
        if not address
        else "$HOOK cannot be used" in words
    )
    assert not address or address not in words
