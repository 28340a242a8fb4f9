"""Trainers forked from a process that has imported PyTorch: three seconds of a core less each."""

import atexit
import functools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

PYTHON = os.environ.get("LUMITUI_TRAINER_PYTHON", sys.executable)
"""The Python that trains."""


class Process(Protocol):
    """What both a forked rank and a subprocess.Popen can do."""

    pid: int

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""

    def wait(self, timeout: float) -> int:
        """Return the exit code when it has ended."""

    def send_signal(self, number: signal.Signals, /) -> None:
        """Send a signal."""

    def kill(self) -> None:
        """Send SIGKILL."""


class Server:
    """The process of fork_server.py."""

    def __init__(self, *modules: str) -> None:
        """Start it; it imports these modules once."""
        program = Path(__file__).with_name("fork_server.py")
        environ = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"}
        self._process = subprocess.Popen(
            [PYTHON, str(program), *modules],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.close)
        self._answer()

    def ask(self, do: str, **values: object) -> dict[str, Any]:
        """Send one request and return its answer."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"do": do, **values}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line: dict[str, Any] = json.loads(self._process.stdout.readline())
        return line

    def close(self) -> None:
        """End it and all that it has forked."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(timeout=30)


LIBRARIES = {"deepspeed_zero.py": "deepspeed", "lightning_trainer.py": "lightning.pytorch"}
"""What a trainer imports beside PyTorch."""


@functools.cache
def server(library: str | None) -> Server:
    """The server of this test process for trainers, started when the first test needs it."""
    # PyTorch imports _dynamo with the first optimizer.
    names = ["torch._dynamo", "torch.distributed.fsdp", "torch.distributed.elastic.multiprocessing"]
    return Server(*names, *([library] if library else []))


class Forked:
    """A rank that the server has forked."""

    def __init__(self, words: list[str], environ: dict[str, str], out: Path, before: str) -> None:
        """Start it; `before` is Python that runs ahead of the trainer."""
        self._server = server(LIBRARIES.get(Path(words[0]).name))
        self._code: int | None = None
        values = {"words": words, "environ": environ, "out": str(out), "before": before}
        self.pid: int = self._server.ask("start", **values)["pid"]

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float) -> int:
        """Return the exit code when it has ended."""
        code = self._ended(timeout)
        assert code is not None, f"{self.pid} still runs"
        return code

    def _ended(self, seconds: float) -> int | None:
        if self._code is None:
            self._code = self._server.ask("wait", pid=self.pid, seconds=seconds)["code"]
        return self._code

    def send_signal(self, number: signal.Signals, /) -> None:
        """Send a signal, unless it has ended."""
        self._server.ask("signal", pid=self.pid, number=number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)
