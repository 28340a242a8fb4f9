"""What the line below a log says about its link, and which rank stands out above it."""

import math
import time

from lumitui.app.explain import log_words
from lumitui.app.explain.log_words import RankMark
from lumitui.app.knowledge.log_lines import LogError
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run

NOW = time.mktime((2026, 11, 22, 1, 42, 0, 0, 0, -1))


def test_a_link_is_live_or_reconnecting_or_offline_never_following_in_silence() -> None:
    assert log_words.link(None, None, NOW) == "● live"
    assert log_words.link(NOW - 2, None, NOW) == "● live 2s ago"
    assert log_words.link(NOW + 5, None, NOW) == "● live", "the clock was set back"
    assert log_words.link(NOW - 12, None, NOW) == "◌ reconnecting 12s"
    assert log_words.link(NOW - 2, NOW - 12, NOW) == "◌ reconnecting 12s"
    assert log_words.link(NOW, -math.inf, NOW) == "○ waiting", "there is no connection"
    assert log_words.link(None, NOW - 180, NOW) == "○ offline since 01:39"
    assert log_words.link(None, NOW - 86_400, NOW) == "○ offline since 2026-11-21 01:42"


def test_a_silent_log_is_said_to_be_silent_in_tens_of_seconds() -> None:
    assert log_words.silence(NOW - 12, NOW) == "" == log_words.silence(NOW + 5, NOW)
    assert log_words.silence(NOW - 47, NOW) == "no new line for 40s"


def test_what_is_below_the_screen_is_counted_whole_and_new_only_while_more_may_come() -> None:
    assert log_words.below(1234, 0, 56, ended=False) == "1,234 lines below, 56 new (G)"
    assert log_words.below(1234, 0, 56, ended=True) == "1,234 lines below (G)"
    assert log_words.below(1, 0, 0, ended=False) == "1 line below (G)"
    assert log_words.below(None, 2_100_000_000, 7, ended=False) == "2.1 GB below, 7 new (G)"
    assert log_words.below(0, 0, 0, ended=False) == "paused (G follows)"
    assert log_words.below(0, 0, 0, ended=True) == "at the end"


def test_a_rank_failed_first_only_where_the_run_failed_and_its_exit_names_it() -> None:
    named = {state: log_words.failed_rank(a_run(state=state, failed_rank=3)) for state in State}
    failed = (State.FAILED, State.OUT_OF_MEMORY, State.NODE_FAILED)
    assert named == {state: 3 if state in failed else None for state in State}
    handled = [LogError(0, 5, "KeyError: 'k'"), LogError(9, 6, "ValueError: v")]
    assert log_words.rank_mark(3, handled) == RankMark(3, "failed first", failed=True)
    assert log_words.rank_mark(None, handled) == RankMark(5, "traceback", failed=False)
    killed = [LogError(0, 5, "Segmentation fault"), *handled]
    assert log_words.rank_mark(None, killed) == RankMark(5, "error", failed=False)
    for errors in (None, [], [LogError(0, None, "srun: error: x")]):
        assert log_words.rank_mark(None, errors) is None
