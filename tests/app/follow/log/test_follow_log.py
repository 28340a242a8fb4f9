"""A log is followed across cut links and requeued attempts, at a site that acts by a script."""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest

from lumitui.app.follow import log_follower as follow_log
from lumitui.app.follow.log_follower import (
    LogBegan,
    LogEnded,
    LogEvent,
    LogFollower,
    LogGrew,
    LogLost,
    LogWaits,
)
from lumitui.app.runs import Runs
from lumitui.remote.connect import Connection
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site import profile
from lumitui.remote.site.errors import AnswerNeeded, LinkError, LinkLost, RefusedError
from lumitui.remote.ssh.prompts import Ask
from lumitui.remote.transport.transport import Result
from tests.support.jobs.made_runs import a_run
from tests.support.program.home import Home
from tests.support.servers.transports import FixedAnswer

Step = bytes | Exception | Callable[[], None]
"""What a stream does next: bytes arrive (b"" is silence), it breaks, or something else happens."""


class Site:
    """A site whose logs hold `logs`, and whose streams do what `streams` says in turn."""

    def __init__(self, logs: dict[int, bytes], streams: list[list[Step]]) -> None:
        self.run_now = a_run("vit", state=State.RUNNING, job_id="7", folder="/f")
        self.logs, self.streams = logs, streams
        self.asked: list[str] = []
        """`end 1` for the end of attempt 1's log, `1 from 5` for a stream of it from byte 5 on."""

    def change(self, **changes: object) -> Callable[[], None]:
        """Return what changes the run."""

        def change() -> None:
            self.run_now = replace(self.run_now, **changes)  # type: ignore[arg-type]

        return change

    def run(
        self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
    ) -> Result:
        """Answer with the end of a log."""
        attempt = int(re.findall(r"attempt-(\d+)\.out", script)[0])
        last = int(re.findall(r"size > (\d+)", script)[0])
        self.asked.append(f"end {attempt}")
        log = self.logs.get(attempt)
        if log is None:
            return Result(44, b"", b"")
        start = max(0, len(log) - last)
        return Result(0, f"{start}\n".encode() + log[start:], b"")

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        """Do what the next script says."""
        attempt, first = re.findall(r"attempt-(\d+)\.out.*tail -c \+(\d+)", script)[0]
        self.asked.append(f"{attempt} from {int(first) - 1}")
        for step in self.streams.pop(0):
            if isinstance(step, Exception):
                raise step
            if isinstance(step, bytes):
                yield step
            else:
                step()
        while not stop():
            yield b""

    def close(self) -> None:
        """Nothing is open."""

    def events(self) -> list[LogEvent]:
        """Return what a reader of the whole log is given."""
        return list(
            LogFollower(self, lambda: False, run=lambda: self.run_now, last=100, pause=0).events()
        )

    def on_screen(self, attempt: int | None = None, offset: int = 0) -> list[LogEvent]:
        """Return what a screen is given that has `offset` bytes of `attempt` already."""
        follower = LogFollower(
            self, lambda: False, run=lambda: self.run_now, last=2, attempt=attempt,
            offset=offset, pause=0, waits=True,
        )  # fmt: skip
        return list(follower.events())


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made; none takes any time."""
    made: list[float] = []
    monkeypatch.setattr(follow_log, "sleep_unless", lambda seconds, stop: made.append(seconds))
    monkeypatch.setattr(follow_log, "LAST_WORDS", 0.01)
    return made


LOST = LinkLost("The link was cut.")
CODE = AnswerNeeded("Needs your code.")


def test_a_log_is_followed_from_its_end_until_the_run_has_ended() -> None:
    site = Site({1: b"0" * 150}, [])
    site.streams = [[b"ab", b"", site.change(state=State.DONE), b"c", b"last"]]
    assert site.events() == [
        LogBegan(1, 50),
        LogGrew(b"0" * 100, 150),
        LogGrew(b"ab", 152),
        LogGrew(b"c", 153),
        LogGrew(b"last", 157),
        LogEnded("ended: done"),
    ]
    assert site.asked == ["end 1", "1 from 150"]


def test_a_cut_link_is_resumed_at_its_byte_ever_more_slowly(pauses: list[float]) -> None:
    site = Site({}, [])
    done = site.change(state=State.DONE)
    site.streams = [[b"ab", LOST], [LOST], [LOST], [b"c", LOST], [done, b"d"]]
    assert site.events() == [
        LogBegan(1, 0),
        LogGrew(b"ab", 2),
        LogGrew(b"c", 3),
        LogGrew(b"d", 4),
        LogEnded("ended: done"),
    ]
    assert site.asked[1:] == ["1 from 0", "1 from 2", "1 from 2", "1 from 2", "1 from 3"]
    assert pauses == [2, 4, 8, 2]


def test_a_link_that_is_cut_again_and_again_is_given_up() -> None:
    site = Site({}, [[LOST] for _ in range(20)])
    with pytest.raises(LinkError):
        site.events()
    assert len(site.asked) == 2 + follow_log.TRIES


def test_a_requeued_run_goes_on_with_the_log_of_its_next_attempt() -> None:
    def streams(site: Site) -> list[list[Step]]:
        site.logs[2] = b"second"
        return [[b"first", site.change(attempt=2), b"!"], [site.change(state=State.FAILED), b"?"]]

    site = Site({1: b""}, [])
    site.streams = streams(site)
    assert site.events() == [
        LogBegan(1, 0),
        LogGrew(b"first", 5),
        LogGrew(b"!", 6),
        LogBegan(2, 0),  # its bytes come by the stream
        LogGrew(b"?", 1),
        LogEnded("ended: failed"),
    ]
    assert site.asked == ["end 1", "1 from 0", "2 from 0"]
    screen = Site({1: b""}, [])
    screen.streams = streams(screen)
    assert screen.on_screen(1, 0)[2:] == [
        LogBegan(2, 4),  # it may be long by the time that history knows of it
        LogGrew(b"nd", 6),
        LogGrew(b"?", 7),
        LogEnded("ended: failed"),
    ]


def test_a_screen_waits_for_a_link_that_needs_a_person_and_nobody_else_does() -> None:
    site = Site({}, [])
    site.streams = [[b"ab", LOST], [CODE], [CODE], [b"", site.change(state=State.DONE), b""]]
    grew, lost, *others = site.on_screen(1, 7)
    assert grew == LogGrew(b"ab", 9)
    assert isinstance(lost, LogLost) and lost.words == "The link was cut."
    assert others == [
        LogWaits("Needs your code."),
        LogGrew(b"", 9),
        LogEnded("ended: done"),
    ]
    assert site.asked == ["1 from 7", "1 from 9", "1 from 9", "1 from 9"]
    site.streams = [[CODE]]
    site.run_now = replace(site.run_now, state=State.RUNNING)
    with pytest.raises(AnswerNeeded):
        site.events()


def test_a_run_that_never_had_a_job_has_no_log_to_wait_for() -> None:
    site = Site({}, [])
    site.change(state=State.NOT_SENT, job_id=None)()
    (ended,) = site.events()
    assert isinstance(ended, LogEnded) and "there is no log" in ended.words
    assert site.asked == []


def test_a_job_that_nobody_knows_ends_the_command_but_not_the_screen() -> None:
    site = Site({1: b"", 2: b"two"}, [])
    lost = site.change(state=State.UNKNOWN, reason="accounting does not list it")
    site.streams = [[b"one", lost]]
    assert site.events()[-1] == LogEnded("ended: unknown")

    found, done = site.change(state=State.RUNNING, attempt=2), site.change(state=State.DONE)
    silence: list[Step] = [lambda: time.sleep(0.02), b""] * 2
    site.streams = [[b"", *silence, b"more", found], [b"", done]]
    assert site.on_screen(attempt=1, offset=3) == [
        LogGrew(b"", 3),  # the first answer
        LogGrew(b"more", 7),
        LogBegan(2, 1),
        LogGrew(b"wo", 3),
        LogEnded("ended: done"),
    ]


def test_the_log_of_a_job_that_can_never_start_ends_but_stays_on_a_screen() -> None:
    queued = {"state": State.QUEUED, "reason": "Dependency"}
    never = {"reason": "DependencyNeverSatisfied"}
    site = Site({}, [])
    site.streams = [[site.change(**queued), b"", b"", site.change(**never), b""]]
    assert site.events() == [LogBegan(1, 0), LogEnded("ended: queued")]
    site.streams = [[b"", b"", site.change(state=State.CANCELLED)]]
    assert site.on_screen()[-1] == LogEnded("ended: cancelled")


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (None, "vit-tiny-000001 has no log."),
        (1, "vit-tiny-000001 has no log."),
        (99, "vit-tiny-000001 has no attempt 99: it has only attempt 1."),
    ],
)
def test_an_ended_run_without_such_a_log_does_not_get_one_later(
    attempt: int | None, words: str
) -> None:
    run = a_run("vit-tiny-000001", state=State.DONE, job_id="7")
    assert follow_log._no_log(run, attempt).message == words


@pytest.mark.parametrize("state", [State.REFUSED, State.NOT_SENT])
def test_a_run_that_never_had_a_job_needs_no_connection(home: Home, state: State) -> None:
    """Not even a profile of its site: the person may have removed it."""
    asked: list[str] = []

    def connecting(site: profile.Site, ask: Ask) -> Connection:
        asked.append(site.name)
        raise LinkError("The site is away.")

    runs = Runs(home.settings, connect=connecting)
    for site in ("laptop", "gone"):
        runs.history.begin(a_run(f"never-{site}", site=site, state=state))
        for reading in (runs.follow, runs.show_log):
            assert list(reading(f"never-{site}")) == [LogEnded(f"{state}: there is no log")]
    with pytest.raises(RefusedError, match=f"has no log: it is {state}"):
        follow_log.read_end(FixedAnswer(b""), runs.history.get("never-gone"), None, 10)
    assert asked == []
    runs.close()
