"""A job file, profile or configuration that is no plain file is one sentence at once."""

import os
import signal
import socket
import time
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
    told(here("site", "show", "mine"), 2, "mine.yaml")


def test_a_configuration_that_is_no_file_is_said_at_once(
    here: Here, tmp_path: Path, odd: Callable[[Path], None]
) -> None:
    more = {"deepspeed": {"config": "ds.json"}, "strategy": "zero1", "launcher": "srun"}
    job = write(tmp_path / "job.yaml", LAPTOP | more)
    odd(job.parent / "ds.json")
    told(here("preview", str(job)), 2, "ds.json")


def test_a_script_that_is_no_file_is_said_at_once(
    here: Here, tmp_path: Path, odd: Callable[[Path], None]
) -> None:
    odd(tmp_path / "job.sh")
    told(here("lint", str(tmp_path / "job.sh")), 2, "job.sh")
    told(here("import", str(tmp_path / "job.sh")), 2, "job.sh")


@pytest.mark.parametrize(
    ("line", "count", "words"),
    [
        ("#", 7_500_000, "than Slurm's limit"),
        ("# no person", 200_000, "so a program probably wrote it"),
    ],
)
def test_a_script_that_nobody_wrote_is_said_at_once(
    here: Here, tmp_path: Path, line: str, count: int, words: str
) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n" + f"{line}\n" * count)
    begun = time.monotonic()
    told(here("lint", str(script)), 2, words)
    told(here("import", str(script)), 2, words)
    assert time.monotonic() - begun < 5


def test_a_hint_quotes_a_name_with_a_blank(here: Here, tmp_path: Path) -> None:
    (tmp_path / "my job.sh").write_text("#!/bin/bash\n#SBATCH -t 1:00\nsrun true\n")
    (tmp_path / "my job.py").write_text("import torch\n")
    for verb, name in (("preview", "sh"), ("preview", "py"), ("lint", "py")):
        told(here(verb, str(tmp_path / f"my job.{name}")), 2, f"my job.{name}'` ")


def test_an_empty_name_of_a_script_is_refused(here: Here) -> None:
    told(here("lint", ""), 2, "the path is empty")


def test_the_longest_script_that_slurm_takes_is_read(here: Here, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    data = ("A" * 76 + "\n") * 54_000
    script.write_text(f"#!/bin/bash\n#SBATCH -p nowhere -t 9x\ncat >data <<E\n{data}E\nhostname\n")
    assert "time-format" in here("lint", str(script)).stdout


def test_a_script_in_latin_1_is_read_and_said_to_be(here: Here, tmp_path: Path) -> None:
    script, job = tmp_path / "job.sh", tmp_path / "job.yaml"
    text = (
        "#!/bin/bash\n#SBATCH -A project_462000001 -p standard-g -N 1 -t 30\n"
        "# f\xfcr alle\nexport RUN=\xfcbung\nsrun python train.py --name caf\xe9\n"
    )
    script.write_bytes(text.encode("latin-1"))
    done = here("import", str(script), "-o", str(job))
    assert done.returncode == 0
    assert "characters in lines 3, 4, 5: Latin-1 → UTF-8" in done.stderr
    assert "caf\xe9" in job.read_text() and "\xfcbung" in job.read_text()
    assert "Latin-1" in job.read_text()
    assert here("lint", str(script)).returncode in (0, 1)
