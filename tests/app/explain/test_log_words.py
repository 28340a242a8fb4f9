"""What the line below a log says about its link."""

import time

from lumitui.app.explain import log_words

NOW = time.mktime((2026, 11, 22, 1, 42, 0, 0, 0, -1))


def test_a_link_is_live_or_reconnecting_or_offline_never_following_in_silence() -> None:
    assert log_words.link(None, None, NOW) == "● live"
    assert log_words.link(NOW - 2, None, NOW) == "● live 2s ago"
    assert log_words.link(NOW + 5, None, NOW) == "● live 0s ago", "the clock was set back"
    assert log_words.link(NOW - 12, None, NOW) == "◌ reconnecting 12s"
    assert log_words.link(NOW - 2, NOW - 12, NOW) == "◌ reconnecting 12s"
    assert log_words.link(None, NOW - 180, NOW) == "○ offline since 01:39"
    assert log_words.link(None, NOW - 86_400, NOW) == "○ offline since 2026-11-21 01:42"
