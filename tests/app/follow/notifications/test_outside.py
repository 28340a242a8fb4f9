"""Notices outside the TUI: what terminals and webhooks are really given."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from lumitui.app.follow.notifications import outside
from lumitui.app.follow.notifications.events import Event, Happened
from lumitui.app.follow.notifications.last_seen import (
    LastSeen,
    mark_told,
    read_last_seen,
    write_last_seen,
)
from lumitui.app.follow.notifications.notification_settings import Notify, read_notify
from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from tests.support.servers.webhook import webhook

EVENT = Event("vit-1", "lumi", State.FAILED, Happened.FAILED, "vit-1: failed (exit 9).")


def test_a_webhook_gets_a_small_object_and_its_failure_is_a_sentence_without_a_secret() -> None:
    with webhook() as hook:
        notify = Notify(webhook=f"{hook.address}/services/SECRET")
        assert outside.post(EVENT, notify) == ""
        assert [json.loads(body) for _, _, body in hook.told] == [
            {"text": EVENT.sentence, "run": "vit-1", "site": "lumi", "state": "failed",
             "event": "failed"}
        ]  # fmt: skip
        for status in (500, 302):
            hook.status = status
            said = outside.post(EVENT, notify)
            assert said == f"The webhook at 127.0.0.1 failed: {status}."
    nobody = outside.post(EVENT, Notify(webhook="http://127.0.0.1:1/SECRET"))
    assert "refused" in nobody and "SECRET" not in nobody


def test_nothing_outside_keeps_the_program_from_ending(
    settings: Settings,
) -> None:
    left: list[float] = []
    with dripping() as port:
        settings.file.write_text(f"notify:\n  webhook: http://127.0.0.1:{port}/\n")

        async def leave(pilot: Pilot[object]) -> None:
            await pilot.pause()
            assert isinstance(pilot.app, LumiApp)
            pilot.app.notices._tell([EVENT])
            await pilot.pause(0.5)
            left.append(time.monotonic())
            pilot.app.exit()

        asyncio.run(LumiApp(settings).run_async(headless=True, auto_pilot=leave))
    assert time.monotonic() - left[0] < 2


@contextmanager
def dripping() -> Iterator[int]:
    """A server whose answer never ends: a header's byte now and then."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def answer() -> None:
            with suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                    while not ended.wait(0.1):
                        connection.sendall(b"x")

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            ended.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@given(st.text())
def test_no_text_leaves_its_escape_sequence(text: str) -> None:
    osc9 = outside.sequence(text, "osc9", {})
    assert osc9.startswith("\x1b]9;lumitui: ") and osc9.endswith("\x1b\\")
    osc777 = outside.sequence(text, "osc777", {})
    assert osc777.startswith("\x1b]777;notify;lumitui;") and osc777.count(";") == 3
    for whole in (osc9, osc777):
        assert not set(whole[1:-2]) & {"\x1b", "\x07", "\x9c", "\n"}
    assert outside.sequence(text, "off", {}) == ""
    assert outside.sequence("x", "osc9", {"TMUX": "1"}) == (
        "\x1bPtmux;\x1b\x1b]9;lumitui: x\x1b\x1b\\\x1b\\"
    )


def test_the_settings_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    assert read_notify([file]) == Notify()
    file.write_text("keys: {}\n")
    assert read_notify([file]) == Notify()
    file.write_text("notify:\n  terminal: osc777\n  events: [failed]\n")
    assert read_notify([file]) == Notify(terminal="osc777", events=(Happened.FAILED,))
    own = tmp_path / "own.yaml"
    own.write_text("notify: {terminal: 'off'}\n")
    assert read_notify([own, file]) == Notify(terminal="off", events=(Happened.FAILED,))
    for wrong, words in (
        ("webhook: http://example.org/x", "only https is allowed"),
        ("webhook: file:///etc/passwd", "it is not an address"),
        ("webhook: ftp://example.org/x", "it is not an address"),
        ("webhook: javascript:alert(1)", "it is not an address"),
        ("webhook: https:///x", "it is not an address"),
        ("webhook: https://example.org:port/x", "it is not an address"),
        ("webhook: http://127.0.0.1@evil.example/", "before the host"),
        ("webhook: https://name:word@example.org/", "before the host"),
        ("webhook: http://@127.0.0.1/", "before the host"),
        ("webhook: http://localhost.evil.example/", "only https is allowed"),
        ("webhook: http://127.0.0.1.evil.example/", "only https is allowed"),
        ('webhook: "https://example.org/x\\nHost: y"', "character that is invalid in an address"),
        ('webhook: "https://exam\\tple.org/"', "character that is invalid in an address"),
        (
            'webhook: "http://127.0.0.1\\\\.evil.example/"',
            "character that is invalid in an address",
        ),
        ("terminal: bell", "osc9"),
        ("loud: true", "unknown key"),
        ("webhok: https://example.org/x", "did you mean `webhook`?"),
    ):
        file.write_text(f"notify:\n  {wrong}\n")
        with pytest.raises(InputError) as caught:
            read_notify([file])
        assert words in str(caught.value) and "settings.yaml:2" in str(caught.value)


def test_what_was_seen_last_is_kept_for_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "last-seen"
    assert read_last_seen(file) is None
    write_last_seen(file, 1_700_000_000.7, ["a", "b"])
    seen = read_last_seen(file)
    assert seen is not None and (seen.at, seen.unfinished) == (1_700_000_000.0, ("a", "b"))
    assert file.stat().st_mode & 0o777 == 0o600
    mark_told(file, "a")
    mark_told(file, "c")
    assert read_last_seen(file) == LastSeen(1_700_000_000.0, ("a", "b"), frozenset("ac"))
    for broken in (b"", b"\xff\n", b"soon\nx"):
        file.write_bytes(broken)
        assert read_last_seen(file) is None
    assert [path.name for path in tmp_path.iterdir()] == ["last-seen"]
