"""What the title bars say of the way to each site: true at any time, short where room is scarce."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from lumitui.app.follow.sites.poll_schedule import (
    IDLE_SECONDS,
    LinkState,
    RefreshEnding,
    Schedule,
    SiteLink,
    link_titles,
    site_links,
)
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run

CLOCK = 1_700_000_000.0
DOWN = RefreshEnding(1, ("a: no route",), answered=False)


def words(schedule: Schedule, now: float) -> str:
    schedule.last_input = now
    return site_links(schedule, ["a"], now, CLOCK + now)[0].words


def test_a_link_goes_from_live_to_offline_and_back() -> None:
    schedule = Schedule(last_input=0.0)
    assert words(schedule, 0.0) == "connecting"
    schedule.began("a", 0.0)
    assert words(schedule, 3.0) == "connecting"
    assert words(schedule, 12.0) == "connecting 12s", "a link that stalls is no live one"
    schedule.ended("a", 12.0, RefreshEnding(1), pause=45)
    assert words(schedule, 14.0) == "live 2s"
    schedule.began("a", 57.0)
    assert words(schedule, 58.0) == "live 46s"
    assert words(schedule, 69.0) == "reconnecting 12s"
    schedule.ended("a", 70.0, DOWN, pause=45)
    assert words(schedule, 80.0) == "reconnecting 23s"
    schedule.began("a", 90.0)
    schedule.ended("a", 90.0, DOWN, pause=45)
    seen = time.strftime("%H:%M", time.localtime(CLOCK + 12.0))
    assert words(schedule, 130.0) == f"offline, last {seen}"
    schedule.began("a", 140.0)
    schedule.ended("a", 141.0, RefreshEnding(1), pause=45)
    assert words(schedule, 141.0) == "live 0s"


def test_an_answer_to_anything_makes_a_link_live_that_failed() -> None:
    schedule = Schedule(last_input=0.0)
    schedule.began("a", 0.0)
    schedule.ended("a", 0.0, RefreshEnding(1), pause=45)
    schedule.began("a", 45.0)
    schedule.ended("a", 60.0, DOWN, pause=600)
    schedule.hear("a", 62.0, 2.5)
    schedule.hear("a", 62.0, 0.0)
    schedule.hear("a", 62.0, math.inf)
    assert words(schedule, 62.0) == "reconnecting 17s", "it was heard before it failed, or never"
    schedule.hear("a", 65.0, 1.0)
    assert words(schedule, 65.0) == "live 1s" and schedule.due(["a"], 65.0) == ["a"]
    schedule.began("a", 65.0)
    schedule.ended("a", 70.0, DOWN, pause=600)
    schedule.hear("a", 72.0, 1.0)
    assert words(schedule, 72.0) == "reconnecting 7s" and not schedule.due(["a"], 72.0)


def test_a_site_is_offline_from_the_second_on_from_which_its_runs_are_dated() -> None:
    schedule = Schedule(last_input=0.0)
    schedule.began("a", 0.0)
    schedule.ended("a", 0.0, RefreshEnding(1), pause=2)
    schedule.began("a", 2.0)
    schedule.ended("a", 17.0, DOWN, pause=2)
    run = a_run("r-000001", state=State.RUNNING, job_id="7", started=CLOCK - 75, updated=CLOCK)
    for now in (59.0, 61.0, 89.0, 91.0):
        dated = run.as_of(CLOCK + now) is not None
        assert words(schedule, now).startswith("offline") == dated, now


def test_what_is_no_broken_link_has_its_own_word() -> None:
    schedule = Schedule(last_input=0.0)
    schedule.began("a", 0.0)
    schedule.ended(
        "a", 1.0, RefreshEnding(0, ("a: needs",), answered=False, needs_person=True), pause=45
    )
    assert words(schedule, 100.0) == "login needed, press r"
    schedule.began("a", 100.0)
    schedule.ended("a", 101.0, RefreshEnding(1, ("a: squeue failed",)), pause=45)
    assert words(schedule, 103.0) == "incomplete 2s"
    schedule.last_input = 0.0
    idle = site_links(schedule, ["a"], IDLE_SECONDS + 200, CLOCK)[0]
    assert idle.state is LinkState.PAUSED and idle.words.startswith("paused, last ")
    schedule.began("b", 0.0)
    schedule.ended("b", 1.0, DOWN, pause=45)
    schedule.last_input = 100.0
    assert site_links(schedule, ["b"], 100.0, CLOCK)[0].words == "offline, never seen"


def test_after_a_sleep_nothing_is_live_before_the_site_answers() -> None:
    schedule = Schedule(last_input=0.0)
    schedule.wake(0.0, CLOCK)
    schedule.began("a", 0.0)
    schedule.ended("a", 1.0, RefreshEnding(1), pause=45)
    schedule.wake(2.0, CLOCK + 30_000)
    schedule.began("a", 2.0)
    assert words(schedule, 3.0) == "reconnecting 1s"
    schedule.ended("a", 4.0, RefreshEnding(1), pause=45)
    assert words(schedule, 4.0) == "live 0s"


LINK = st.builds(
    SiteLink, st.from_regex(r"[a-z][a-z0-9-]{0,30}", fullmatch=True), st.sampled_from(LinkState),
    st.sampled_from(["", "2s", "last 01:39"]),
)  # fmt: skip


@given(st.lists(LINK, max_size=6), st.integers(20, 200))
def test_what_a_bar_says_fits_and_hides_no_trouble(found: list[SiteLink], width: int) -> None:
    said = link_titles(found, width)
    text = "  ".join(words for _, words in said)
    assert cell_len(text) <= width
    assert bool(said) == bool(found)
    bad = {link.state for link in found} - {LinkState.LIVE}
    assert not bad or {state for state, _ in said} & bad


def test_a_log_that_loses_its_link_makes_no_link_live() -> None:
    schedule = Schedule(last_input=0.0)
    schedule.ended("a", 0.0, RefreshEnding(1), pause=45)
    schedule.lose("a", 10.0)
    assert words(schedule, 12.0) == "reconnecting 2s"
    assert schedule.due(["a"], 12.0) == ["a"], "a poll shows whether it is back"
    schedule.began("a", 12.0)
    schedule.lose("a", 13.0)
    assert words(schedule, 13.0) == "reconnecting 3s"
    schedule.ended("a", 13.0, RefreshEnding(1), pause=45)
    assert words(schedule, 14.0) == "live 1s" and not schedule.due(["a"], 14.0)


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (60, ["● lumi live 2s", "◌ mahti reconnecting 12s"]),
        (36, ["● lumi live", "◌ mahti reconnecting"]),
        (24, ["◌ mahti reconnecting +1"]),
        (20, ["◌ reconnecting +1"]),
    ],
)
def test_two_sites_stand_side_by_side(width: int, words: list[str]) -> None:
    two = [
        SiteLink("lumi", LinkState.LIVE, "2s"),
        SiteLink("mahti", LinkState.RECONNECTING, "12s"),
    ]
    assert [text for _, text in link_titles(two, width)] == words


def test_a_send_that_hangs_makes_no_link_live() -> None:
    schedule = Schedule(last_input=0.0)
    schedule.began("a", 0.0)
    schedule.ended("a", 0.0, RefreshEnding(1), pause=3)
    held = RefreshEnding(0, answered=False, asked=False, held=True)
    for now in (3.0, 6.0):
        schedule.began("a", now)
        schedule.ended("a", now, held, pause=3)
    assert schedule.requests == 1, "what waits behind a send asks nothing"
    schedule.listen("a", 7.0, 0.5)
    assert words(schedule, 7.0) == "live 0s", "the send itself hears the site"
    schedule.listen("a", 20.0, 13.5)
    assert words(schedule, 20.0) == "reconnecting 13s"
    schedule.listen("a", 105.0, 98.5)
    schedule.listen("a", 106.0, None)
    assert words(schedule, 106.0).startswith("offline, last ")
    assert schedule.due(["a"], 106.0) == ["a"], "asked at once when the send is over"
    schedule.began("a", 106.0)
    schedule.ended("a", 107.0, RefreshEnding(1), pause=3)
    assert words(schedule, 107.0) == "live 0s"
