"""A job file, profile or configuration that is no plain file is one sentence at once."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.program.command_line import LAPTOP, Here, told, write
from tests.support.program.home import Home


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(path.parent)  # a socket's path has at most 107 bytes
        made.bind(path.name)
        os.chdir(here)


def _large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1_000_000_000)


def _folder(path: Path) -> None:
    path.mkdir()


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _terminal(path: Path) -> None:
    path.symlink_to("/dev/tty")


ODD: dict[str, Callable[[Path], None]] = {
    "pipe": _pipe,
    "socket": _socket,
    "large": _large,
    "folder": _folder,
    "device": _device,
    "terminal": _terminal,
}


@pytest.fixture(params=sorted(ODD))
def odd(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    """Makes each kind of thing that is no small file."""
    return ODD[str(request.param)]


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    """A verb that waits for a file for ever fails; it would keep all tests waiting."""

    def late(*_: object) -> None:
        raise TimeoutError("it still reads the file")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_a_job_file_that_is_no_file_is_said_at_once(
    here: Here, tmp_path: Path, odd: Callable[[Path], None]
) -> None:
    odd(tmp_path / "job.yaml")
    told(here("preview", str(tmp_path / "job.yaml")), 2, "job.yaml")


def test_a_profile_that_is_no_file_is_said_at_once(
    home: Home, here: Here, odd: Callable[[Path], None]
) -> None:
    odd(home.config / "sites" / "mine.yaml")
    told(here("sites", "mine"), 2, "mine.yaml")


def test_a_configuration_that_is_no_file_is_said_at_once(
    here: Here, tmp_path: Path, odd: Callable[[Path], None]
) -> None:
    more = {"deepspeed": {"config": "ds.json"}, "strategy": "zero1", "launcher": "srun"}
    job = write(tmp_path / "job.yaml", LAPTOP | more)
    odd(job.parent / "ds.json")
    told(here("preview", str(job)), 2, "ds.json")
