"""The steps of a send on a terminal: a line about a transfer replaces the one before it."""

import pytest

from lumitui.app.cli import send_progress


def test_a_transfer_is_one_line_that_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(send_progress, "has_person", lambda: True)
    for words in ("writing history", "staging D 1%", "staging D 2%", "staged D", "submitting"):
        send_progress.show_step("sync", words)
    back = "\r\x1b[K"
    assert capsys.readouterr().err == (
        f"… writing history\n… staging D 1%{back}… staging D 2%{back}… staged D\n… submitting\n"
    )


def test_nobody_watches_nothing_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(send_progress, "has_person", lambda: False)
    send_progress.show_step("sync", "staging D 1%")
    assert capsys.readouterr().err == ""
