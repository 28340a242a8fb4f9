"""A build on the login host: what it says, how it fails, and that it ends with its connection."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.remote.site.errors import LinkLost, RefusedError
from lumitui.remote.site.run_folder import VENV_SCRIPT
from lumitui.remote.transfer.environments.venvs import build, reason_of
from lumitui.remote.transport.transport import Transport
from tests.support.jobs.small_jobs import wait_until
from tests.support.servers.transports import FixedAnswer, open_transport


@pytest.fixture(scope="module", params=["sh", "ssh"])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Transport]:
    """This machine's shell, and a real sshd."""
    with open_transport(request.param, tmp_path_factory.mktemp("site")) as opened:
        yield opened


def run_with(folder: Path, text: str) -> str:
    """Return a run's folder whose build is `text`."""
    run = folder / "it's a run"
    run.mkdir()
    (run / VENV_SCRIPT).write_text(text)
    return str(run)


def test_it_reports_what_it_does(site: Transport, tmp_path: Path) -> None:
    said: list[str] = []
    text = (
        "printf 'lumitui: building\\nCollecting a\\n  in a cache\\nInstalling b' >&2; echo; echo /p"
    )
    build(site, run_with(tmp_path, text), 60, said.append)
    assert said == ["building", "Collecting a", "Installing b"]


def test_a_failure_has_pips_words_and_names_the_log(site: Transport, tmp_path: Path) -> None:
    run = run_with(tmp_path, "echo 'ERROR: No matching distribution found for x' >&2; exit 1")
    with pytest.raises(RefusedError, match=r"built: No matching distribution found for x\.") as no:
        build(site, run, 60, lambda words: None)
    assert f"{run}/venv.log" in no.value.hint


class Enough(Exception):
    """A person interrupts."""


def test_it_ends_with_the_request(site: Transport, tmp_path: Path) -> None:
    text = f"trap 'echo end >{tmp_path}/ended' EXIT\ntrap 'exit 143' HUP INT TERM\n"
    run = run_with(tmp_path, f"{text}echo 'lumitui: building'\nsleep 60 & wait")

    def interrupt(words: str) -> None:
        raise Enough

    with pytest.raises(Enough):
        build(site, run, 60, interrupt)
    wait_until((tmp_path / "ended").exists)


def test_a_build_without_an_end_is_a_lost_link() -> None:
    with pytest.raises(LinkLost):
        build(FixedAnswer(b"Collecting a\n"), "/run", 60, lambda words: None)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (["ERROR: A.", "ERROR: A.", "more"], "A"),
        (["ERROR: it needs b", "ERROR: ResolutionImpossible"], "it needs b; ResolutionImpossible"),
        (["x", "lumitui: the environment could not be built: no disk"], "no disk"),
        (["FATAL: no image"], "FATAL: no image"),
        ([], "it printed nothing"),
    ],
)
def test_the_reason_is_pips_last_error(said: list[str], reason: str) -> None:
    assert reason_of(said) == reason
