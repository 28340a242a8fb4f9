"""What TensorBoard shows of a run: its event files, or ones made of its kept metrics."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from lumitui.app.history.history import History
from lumitui.app.history.metric_points import MetricPoint
from lumitui.app.history.run import Run
from lumitui.remote.site.errors import InputError, LinkError, LumiError, RefusedError
from lumitui.remote.site.run_folder import EVENTS
from lumitui.remote.transfer.results.fetch_files import fetch
from lumitui.remote.transport.transport import Transport

_CONVERTER = Path(__file__).resolve().parents[3] / "trainers/monitor/event_file.py"
"""It stands alone, and is started by path like a trainer."""
_SECONDS = 120.0
"""Time limit of the conversion: a second for 20,000 points."""


@dataclass(frozen=True)
class Board:
    """A folder that TensorBoard can show."""

    folder: Path
    source: str
    """Where its numbers are from, in words."""


class Boards:
    """Makes such folders."""

    def __init__(self, history: History, transport: Callable[[Run], Transport]) -> None:
        """Read metrics from `history`; `transport` gives the connection to a run's site."""
        self._history, self._transport = history, transport

    def prepare(self, run_id: str, target: Path) -> Board:
        """Put a run's event files into `target`, in a folder with the run's id.

        A run that was not started with `--watch tensorboard` has none: they are made of the
        metrics that are kept here, and no site is asked.

        Raises:
            InputError: no such run, or it has reported nothing yet.
            LumiError: the folder cannot be written.
        """
        run = self._history.get(run_id)
        folder, why = target / run.id, ""
        if watched(run):
            try:
                brought = fetch(self._transport(run), run.folder, (EVENTS,), folder)
            except (LinkError, RefusedError) as error:
                why = f", as its event files could not be fetched: {error.message}"
            else:
                if brought.files:
                    return Board(folder, f"the event files that {run.site} has")
        points = self._history.metrics.of(run.id)
        if not any(point.step is not None for point in points):
            raise InputError(
                f"{run.id} has reported no numbers yet.",
                "Wait until it has trained some steps, and see `lumitui status`.",
            )
        _convert(points, folder)
        return Board(folder, f"the {len(points):,} lines of its metrics that are kept here{why}")


def watched(run: Run) -> bool:
    """Whether a bundled trainer was told to write event files."""
    words = " ".join(run.spec.args).replace("=", " ").split()
    return any(
        word == "--watch" and "tensorboard" in names.split(",") for word, names in pairwise(words)
    )


def check_tensorboard() -> None:
    """Raise when TensorBoard cannot be started here.

    Raises:
        LumiError: it is not installed.
    """
    if find_spec("tensorboard") is None:
        raise LumiError(
            "TensorBoard is not installed on this machine.",
            f"Install it: {sys.executable} -m pip install tensorboard. "
            "The TUI also shows the run's curves.",
        )


def tensorboard_command(board: Board, port: int) -> list[str]:
    """Return the command that shows a board on this machine alone; port 0: a free one."""
    program = [sys.executable, "-m", "tensorboard.main", "--logdir", str(board.folder)]
    return [*program, "--host", "127.0.0.1", "--port", str(port)]


def _convert(points: list[MetricPoint], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = folder / "metrics.jsonl"
    descriptor = os.open(lines, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(f"{_line(point)}\n" for point in points)
    done = subprocess.run(
        [sys.executable, "-I", str(_CONVERTER), str(lines), str(folder)],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or ["no reason"]
        raise LumiError(f"The metrics could not be converted: {said[0]}.", "Fetch the run's files.")


def _line(point: MetricPoint) -> str:
    known = {name: value for name, value in asdict(point).items() if value is not None}
    extra = known.pop("extra")
    return json.dumps(known | extra)
